//! The test list of the first seed document, line by line.

use planwright_domain::{
    plan::{Ended, Strategy},
    prompt::plan_paragraph,
    session::SessionEvent,
    tools::{PlanTool, available, listed},
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
    insta::assert_snapshot!(PlanTool::SetContent.spec().parameters, @r#"{"properties":{"plan_markdown":{"type":"string"},"replies":{"items":{"type":"object"},"type":"array"},"title":{"type":"string"}},"required":["plan_markdown"],"type":"object"}"#);
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
fn plan_tools_are_listed_only_while_plan_work_is_active_and_usable_only_in_their_state() {
    let usable = |world: &World| available(&world.session, world.session.turn.as_ref().unwrap());
    let drafts = [PlanTool::Get, PlanTool::SetContent];
    let all = [PlanTool::Get, PlanTool::SetContent, PlanTool::Report];
    for world in [collecting(), ready(), held(), paused(), failed()] {
        let world = world.says("x").turn_starts();
        assert_eq!((listed(&world.session), usable(&world).as_slice()), (&all[..], &drafts[..]));
    }
    let world = running();
    assert_eq!((listed(&world.session), usable(&world).as_slice()), (&all[..], &all[..]));
    let ended = collecting().ends(planwright_domain::command::Ending::Off);
    for world in [a_session(), ended] {
        let world = world.says("x").turn_starts();
        assert_eq!((listed(&world.session), usable(&world)), (&[][..], vec![]));
    }
}

/// Invariant: `mode-gating`, `inactive-is-inert`.
#[test]
fn a_report_outside_an_execution_is_refused_and_changes_nothing() {
    for world in [collecting(), ready(), held(), paused(), failed()] {
        let work = world.session.work.clone();
        let world =
            world.says("x").turn_starts().answers("", vec![report("done")]).plan_tools_run();
        assert_eq!(world.session.work, work);
        let refusal = world.last_refusal();
        assert!(refusal.starts_with("policy_denied: plan_report"), "{refusal}");
    }
}

/// Invariant: `compaction-safe`.
#[test]
fn every_request_of_active_plan_work_says_how_to_load_the_plan() {
    for strategy in [Strategy::Document, Strategy::Collect, Strategy::Build] {
        let words = plan_paragraph(strategy);
        assert!(words.starts_with("Plan work is active; plan_get loads the plan."), "{words}");
    }
    insta::assert_snapshot!(plan_paragraph(Strategy::Document), @"Plan work is active; plan_get loads the plan. Until approved, changes ask.");
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
