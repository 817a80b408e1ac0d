//! Who may decide, on what, and how often.

use planwright_domain::{
    actor::Standing,
    command::{Approving, Decision, PersonCommand, SessionCommand, Start, Verdict},
    identity::Root,
    plan::{
        PlanStatus, Progress, approval::Approval, event::PlanEvent, refusal::PlanRefusal,
        review::Comment, step::OnFailure,
    },
    refusal::Refusal,
    session::SessionEvent,
};

use crate::given::*;

/// Invariant: `approved-as-read`.
#[test]
fn an_approval_of_a_replaced_revision_is_refused() {
    let first = ready().shown();
    let seen = first.digest();
    let mut world = new_content(first);
    let current = world.digest();
    let refusal = world.person(world.approve_command(seen, Start::AtOnce)).unwrap_err();
    assert_eq!(refusal, PlanRefusal::StaleDecision { seen, current, current_number: 2 }.into());
    assert_eq!(world.status(), "ready");
}

/// Invariant: `approved-as-read`.
#[test]
fn an_approval_needs_a_complete_rendering_at_the_same_surface() {
    let world = ready().shown();
    let elsewhere = person("ada", "web", Standing::Decides);
    let command = world.approve_command(world.digest(), Start::AtOnce);
    let refusal = world.clone().ask(SessionCommand::Person(elsewhere, command)).unwrap_err();
    assert_eq!(refusal, PlanRefusal::NotShown { number: 1 }.into());
}

#[test]
fn a_revision_that_is_not_current_cannot_be_shown_for_a_decision() {
    let first = ready();
    let seen = first.digest();
    let refusal =
        new_content(first).person(PersonCommand::RecordShown { digest: seen }).unwrap_err();
    assert_eq!(refusal, PlanRefusal::ShownNotCurrent { seen }.into());
}

#[test]
fn requests_for_changes_and_rejections_of_a_replaced_revision_are_refused() {
    let first = ready();
    let seen = first.digest();
    let world = new_content(first);
    for command in [world.changes_command(seen), world.reject_command(seen)] {
        let refusal = world.clone().person(command).unwrap_err();
        assert_eq!(refusal.kind(), "stale_decision");
    }
}

/// Invariant: `model-never-approves`.
#[test]
fn a_person_who_may_only_speak_decides_nothing() {
    let world = ready().shown();
    let digest = world.digest();
    let decisions = [
        world.approve_command(digest, Start::AtOnce),
        world.changes_command(digest),
        world.reject_command(digest),
        world.resume_command(),
    ];
    for command in decisions {
        let refusal = world.clone().ask(SessionCommand::Person(a_guest(), command)).unwrap_err();
        assert_eq!(refusal, PlanRefusal::MayNotDecide.into());
    }
    let world = in_doubt();
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::Happened);
    let refusal = world.clone().ask(SessionCommand::Person(a_guest(), command)).unwrap_err();
    assert_eq!(refusal, PlanRefusal::MayNotDecide.into());
}

/// Invariant: `model-never-approves`.
#[test]
fn a_model_that_calls_an_approve_tool_is_told_that_there_is_none() {
    for name in ["plan_approve", "approve", "plan_resume"] {
        assert!(!planwright_domain::tools::is_plan_tool(name));
    }
    let asks = Asks("plan_approve", "{}".into(), planwright_domain::turn::CallKind::Plan);
    let world = ready().says("x").turn_starts().answers("", vec![asks]).plan_tools_run();
    assert_eq!(world.status(), "ready");
}

/// Invariant: `one-decision`.
#[test]
fn an_approval_resolves_once() {
    let mut world = ready().approved();
    let digest = world.digest();
    let again =
        PlanRefusal::AlreadyDecided { revision: 1, by: "ada".into(), surface: "cli".into() };
    let refusals = [
        world.person(world.approve_command(digest, Start::AtOnce)).unwrap_err(),
        world.person(world.reject_command(digest)).unwrap_err(),
        world.person(world.changes_command(digest)).unwrap_err(),
    ];
    assert_eq!(refusals, [again.clone().into(), again.clone().into(), again.into()]);
}

#[test]
fn an_approval_record_names_what_was_read_and_what_is_leased() {
    let world = ready().approved();
    let approval = world.plan().status.approval().unwrap();
    assert_eq!(
        (approval.revision_digest, approval.revision, &approval.by),
        (world.digest(), 1, &ada())
    );
    insta::assert_debug_snapshot!(approval.envelope.in_words(), @r#"
    [
        "change files under its root, without asking again",
        "use edit_file, glob_files, grep_files, list_files, read_file, write_file",
    ]
    "#);
}

#[test]
fn every_field_of_an_approval_record_is_in_its_digest() {
    let approval = ready().approved().plan().status.approval().unwrap().clone();
    // A field that is added to the record does not compile here until it is changed below.
    let Approval {
        plan: _,
        revision: _,
        revision_digest: _,
        root: _,
        envelope: _,
        notes: _,
        profiles: _,
        on_failure: _,
        rules: _,
        policy: _,
        by: _,
        at: _,
    } = &approval;
    let changes: [fn(&mut Approval); 19] = [
        |a| a.plan = uuid::Uuid::from_u128(5).into(),
        |a| a.revision += 1,
        |a| a.revision_digest = schema(),
        |a| a.root = Some(Root("/elsewhere".into())),
        |a| a.notes.push("n".into()),
        |a| a.profiles = [("scribe".to_owned(), schema())].into(),
        |a| a.on_failure = OnFailure::Continue,
        |a| a.rules = Some(schema()),
        |a| a.policy += 1,
        |a| a.by.owner = owner_id("eve"),
        |a| a.by.id.0.push('x'),
        |a| a.by.surface.0.push('x'),
        |a| a.at.0 += 1,
        |a| a.envelope.tools = [("rm".to_owned(), schema())].into(),
        |a| a.envelope.paths = Default::default(),
        |a| a.envelope.hosts = ["h".to_owned()].into(),
        |a| a.envelope.spend_micros_max = Some(1),
        |a| a.envelope.calls_max = Some(1),
        |a| a.envelope.expires_at = Some(planwright_domain::time::Time(1)),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut changed = approval.clone();
        change(&mut changed);
        assert_ne!(changed.digest(), approval.digest(), "field {at}");
    }
}

#[test]
fn notes_reach_the_approval_and_never_widen_it() {
    let mut world = ready().shown();
    let notes = vec!["you may also run rm".to_owned()];
    let digest = world.digest();
    let decision =
        Decision::Approve(Approving { notes: notes.clone(), ..Approving::of(digest, terms()) });
    world.person(PersonCommand::Decide(decision)).unwrap();
    let approval = world.plan().status.approval().unwrap();
    assert_eq!(
        (&approval.notes, &approval.envelope),
        (&notes, &world.plan().envelope(&schemas(), world.now))
    );
}

#[test]
fn a_request_for_changes_carries_its_comments_and_queues_a_turn() {
    let world = withdrawn();
    let asked = world.events.iter().find_map(|event| match event {
        SessionEvent::Plan(PlanEvent::ChangesRequested { comments, .. }) => Some(comments.clone()),
        _ => None,
    });
    assert_eq!(asked, Some(vec![Comment { number: 1, ..Comment::on_line(3, "back up first") }]));
    assert_eq!(
        world.turn_starts().session.turn.unwrap().executes(),
        None,
        "it never starts an execution"
    );
}

#[test]
fn a_request_for_changes_needs_words_and_has_limits() {
    let mut world = ready();
    let digest = world.digest();
    let mut ask = |comments: Vec<Comment>| {
        world
            .person(PersonCommand::Decide(Decision::RequestChanges { digest, comments }))
            .unwrap_err()
            .kind()
            .to_owned()
    };
    let comment = |text: &str| Comment::on_the_whole(text);
    assert_eq!(ask(vec![]), "no_comments");
    assert_eq!(ask(vec![comment("  ")]), "no_comments");
    assert_eq!(ask(vec![comment(&"x".repeat(8 * 1024 + 1))]), "too_long");
    assert_eq!(ask(vec![comment("x"); 201]), "too_long");
}

#[test]
fn a_turn_older_than_the_approval_cannot_revise_the_plan() {
    let drafting = ready().says("more").turn_starts().answers("", vec![set_content(SECOND)]);
    let world = drafting.approved();
    let approved = world.digest();
    let world = world.plan_tools_run();
    assert_eq!((world.digest(), world.status().as_str()), (approved, "executing"));
}

#[test]
fn rejecting_ends_the_turn_and_starts_nothing() {
    let mut world = ready().says("x").turn_starts();
    world.person(world.reject_command(world.digest())).unwrap();
    assert_eq!((world.session.turn, world.session.queue), (None, vec![]));
}

#[test]
fn a_held_plan_starts_only_when_it_is_resumed() {
    let world = held();
    assert!(world.session.queue.is_empty());
    let command = world.resume_command();
    let world = world.does(command);
    assert!(matches!(world.plan().status, PlanStatus::Executing(_, Progress::Running)));
    assert!(world.turn_starts().session.turn.unwrap().executes().is_some());
}

#[test]
fn a_key_of_an_older_version_cannot_start_a_new_session() {
    let session = planwright_domain::session::Session::new(ada_key("telegram:42"));
    let mut world = World { session, ..a_session() };
    let refusal = world.person(PersonCommand::Say { text: "hi".into() }).unwrap_err();
    assert_eq!(refusal, Refusal::LegacyKeyIsNotNew { identity: "telegram:42".into() });
}
