//! The test list of the first seed document, line by line.

use planwright_domain::{
    plan::Ended,
    prompt::plan_paragraph,
    session::SessionEvent,
    tools::{PlanTool, available},
    turn::{ToolReply, event::TurnEvent},
};

use crate::given::*;

fn reply(world: &World) -> ToolReply {
    let reply = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::CallAnswered { reply, .. }) => Some(reply.clone()),
        _ => None,
    });
    reply.expect("a call was answered")
}

fn refused_kind(world: &World) -> String {
    match reply(world) {
        ToolReply::Refused { kind, .. } => kind,
        other => panic!("it was not refused: {other:?}"),
    }
}

/// Invariant: `inactive-is-inert`.
#[test]
fn plan_set_content_is_denied_when_plan_work_is_inactive() {
    let before = a_session().says("hello").turn_starts().answers("", vec![set_content(FIRST)]);
    let world = before.clone().plan_tools_run();
    assert_eq!(refused_kind(&world), "policy_denied");
    assert_eq!(
        (&world.session.work, &world.session.last_ended),
        (&before.session.work, &before.session.last_ended)
    );
}

#[test]
fn the_schema_of_plan_set_content_requires_plan_markdown() {
    insta::assert_snapshot!(PlanTool::SetContent.spec().parameters, @r#"{"properties":{"plan_markdown":{"type":"string"},"title":{"type":"string"}},"required":["plan_markdown"],"type":"object"}"#);
}

/// Invariant: `inactive-is-inert`.
#[test]
fn plan_get_is_denied_when_plan_work_is_inactive() {
    let world = a_session().says("hello").turn_starts().answers("", vec![get()]).plan_tools_run();
    assert_eq!(refused_kind(&world), "policy_denied");
}

/// Invariant: `markdown-is-canonical`.
#[test]
fn plan_get_returns_the_current_revision_when_plan_work_is_active() {
    let world = ready().says("read it").turn_starts().answers("", vec![get()]).plan_tools_run();
    let heading = "Ready, revision 1: Move the photos".to_owned();
    assert_eq!(reply(&world), ToolReply::Revision { digest: world.digest(), heading });
}

#[test]
fn plan_get_says_so_when_nothing_is_written_yet() {
    let world =
        collecting().says("read it").turn_starts().answers("", vec![get()]).plan_tools_run();
    assert_eq!(
        reply(&world),
        ToolReply::Text { text: "The plan is empty. Save a draft with plan_set_content.".into() }
    );
}

/// Invariant: `markdown-is-canonical`.
#[test]
fn content_set_while_collecting_is_kept_byte_for_byte() {
    let text = "# Título\r\n\r\n- a  \n- b\u{a0}\n\n";
    let world =
        collecting().says("x").turn_starts().answers("", vec![set_content(text)]).plan_tools_run();
    let kept = world.events.iter().find_map(|event| match event {
        SessionEvent::Plan(planwright_domain::plan::event::PlanEvent::RevisionAdded {
            revision,
            ..
        }) => Some(revision.markdown.clone()),
        _ => None,
    });
    assert_eq!((world.status().as_str(), kept.as_deref()), ("ready", Some(text)));
}

#[test]
fn content_set_while_ready_replaces_what_is_current() {
    let world = new_content(ready());
    assert_eq!(
        (world.status().as_str(), world.plan().current.as_ref().unwrap().number),
        ("ready", 2)
    );
}

#[test]
fn content_set_while_executing_ends_the_old_plan_and_makes_a_new_one() {
    let old = running();
    let world = new_content(old.clone());
    assert_eq!(world.session.last_ended.as_ref().unwrap().ended, Ended::Superseded);
    let ToolReply::Text { text } = reply(&world) else { panic!("it was refused") };
    assert!(
        text.contains(&world.plan().id.to_string()),
        "the result carries the new plan's id: {text}"
    );
    assert!(!text.contains(&old.plan().id.to_string()));
}

/// Invariant: `mode-gating`.
#[test]
fn plan_tools_are_advertised_only_while_plan_work_is_active() {
    let advertised =
        |world: &World| available(&world.session, world.session.turn.as_ref().unwrap());
    assert_eq!(advertised(&a_session().says("x").turn_starts()), []);
    assert_eq!(
        advertised(&collecting().says("x").turn_starts()),
        [PlanTool::Get, PlanTool::SetContent]
    );
    assert_eq!(advertised(&ready().says("x").turn_starts()), [PlanTool::Get, PlanTool::SetContent]);
    assert_eq!(advertised(&held().says("x").turn_starts()), [PlanTool::Get, PlanTool::SetContent]);
    assert_eq!(advertised(&running()), [PlanTool::Get, PlanTool::SetContent, PlanTool::Report]);
    let ended = collecting().ends(planwright_domain::command::Ending::Off);
    assert_eq!(advertised(&ended.says("x").turn_starts()), []);
}

/// Invariant: `compaction-safe`.
#[test]
fn every_request_of_active_plan_work_says_how_to_load_the_plan() {
    let paragraph =
        |world: &World| plan_paragraph(&world.session, world.session.turn.as_ref().unwrap());
    assert_eq!(paragraph(&a_session().says("x").turn_starts()), None);
    for world in [collecting(), ready(), withdrawn(), held(), paused(), failed()] {
        let world = world.says("x");
        let world = world.turn_starts();
        assert!(paragraph(&world).unwrap().contains("plan_get"), "{}", world.status());
    }
    insta::assert_snapshot!(paragraph(&ready().says("x").turn_starts()).unwrap(), @"Plan work is active; the plan is Ready. Load it with plan_get. When you have a new draft, call plan_set_content with all of it. Until a person approves it, every change asks them.");
    insta::assert_snapshot!(paragraph(&running()).unwrap(), @"You are executing an approved plan; plan_get loads it. Do only what it says, then call plan_report. New content needs a new approval.");
}

#[test]
fn text_and_plan_tools_may_stand_in_one_answer_in_any_order() {
    let calls = vec![read("a"), set_content(FIRST), read("b"), get()];
    let world = collecting().says("x").turn_starts().answers("here is my plan", calls);
    let world = world
        .calls_start()
        .calls_give(&done("a"))
        .plan_tools_run()
        .calls_start()
        .calls_give(&done("b"))
        .plan_tools_run();
    assert_eq!(world.status(), "ready");
    let answered = world.events.iter().filter(|event| {
        matches!(
            event,
            SessionEvent::Turn(TurnEvent::CallAnswered { .. } | TurnEvent::CallFinished { .. })
        )
    });
    assert_eq!(answered.count(), 4);
}

#[test]
fn empty_or_oversize_content_is_refused_and_changes_nothing() {
    let long = "x".repeat(planwright_domain::limits::PLAN_MARKDOWN_BYTES_MAX + 1);
    for (text, kind) in [("  \n", "empty_plan"), (long.as_str(), "too_long")] {
        let world = collecting()
            .says("x")
            .turn_starts()
            .answers("", vec![set_content(text)])
            .plan_tools_run();
        assert_eq!((refused_kind(&world).as_str(), world.status().as_str()), (kind, "collecting"));
    }
    let longest = &long[1..];
    let world = collecting()
        .says("x")
        .turn_starts()
        .answers("", vec![set_content(longest)])
        .plan_tools_run();
    assert_eq!(world.status(), "ready");
}

#[test]
fn arguments_that_do_not_fit_are_told_to_the_model() {
    let broken = Asks(
        "plan_set_content",
        "{\"markdown\":\"x\"".into(),
        planwright_domain::turn::CallKind::Plan,
    );
    let world = collecting().says("x").turn_starts().answers("", vec![broken]).plan_tools_run();
    assert_eq!(
        (refused_kind(&world).as_str(), world.status().as_str()),
        ("bad_arguments", "collecting")
    );
}
