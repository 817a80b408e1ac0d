//! Invariants that hold for any commands in any order, and those that need a scenario of their own.

use planwright_domain::{
    command::{Ending, PersonCommand},
    identity::{SessionIdentity, SessionKey},
    plan::Revision,
    session::{Session, SessionEvent},
    turn::{ToolReply, event::TurnEvent},
};
use proptest::prelude::*;

use crate::given::*;

/// Invariant: `single-active-plan`.
#[test]
fn a_second_plan_has_nowhere_to_live() {
    let mut world = collecting();
    let plan = world.fresh().into();
    let refusal = world.person(start_plan(plan, Default::default())).unwrap_err();
    assert_eq!(refusal.kind(), "work_already_active");
    let superseded = new_content(running());
    assert_eq!(superseded.session.plan().map(|plan| plan.status.name()), Some("ready"));
}

/// Invariant: `no-zombies`.
#[test]
fn ending_plan_work_leaves_no_plan_and_no_turn_that_waits_for_one() {
    for ending in [Ending::Off, Ending::Done] {
        for world in [
            collecting(),
            ready(),
            withdrawn(),
            held(),
            ready().approved(),
            running(),
            paused(),
            failed(),
            in_doubt(),
        ] {
            let status = world.status();
            let world = world.ends(ending);
            assert_eq!(world.session.plan(), None, "{status}");
            assert!(
                world.session.queue.iter().all(|waiting| waiting.cause.plan().is_none()),
                "{status}"
            );
            assert!(
                world.session.turn.as_ref().is_none_or(|turn| turn.executes().is_none()),
                "{status}"
            );
        }
    }
}

/// Invariant: `no-zombies`.
#[test]
fn a_few_cycles_of_on_and_off_leave_nothing_behind() {
    let mut world = a_session();
    for _ in 0..20 {
        world = world.plan_on().ends(Ending::Off);
    }
    assert_eq!(world.status(), "cancelled");
    assert!(world.plan_on().session.plan().is_some());
}

/// Invariant: `no-side-effects-in-plan-tools`.
#[test]
fn plan_tools_start_no_effect() {
    let calls = vec![get(), set_content(SECOND), get(), report("done")];
    let world = running().answers("", calls).plan_tools_run();
    let started = world
        .events
        .iter()
        .any(|event| matches!(event, SessionEvent::Turn(TurnEvent::CallStarted { .. })));
    assert!(!started && world.session.open.is_empty());
}

/// Invariant: `every-call-answered`.
#[test]
fn every_call_of_a_stopped_turn_gets_exactly_one_answer() {
    let calls = vec![read("a"), write("b"), set_content(SECOND), unusable()];
    let stages = [
        running().answers("", calls),
        running().answers("", vec![read("a"), write("b")]).calls_start(),
        running().answers("", vec![write("a"), write("b")]).calls_start(),
    ];
    for world in stages {
        let asked: Vec<_> = world
            .session
            .turn
            .as_ref()
            .unwrap()
            .calls()
            .iter()
            .map(|call| call.requested.id)
            .collect();
        let world = world.does(PersonCommand::Stop);
        for id in asked {
            let answers = world.events.iter().filter(|event| match event {
                SessionEvent::Turn(
                    TurnEvent::CallAnswered { call, .. } | TurnEvent::CallFinished { call, .. },
                ) => *call == id,
                _ => false,
            });
            assert_eq!(answers.count(), 1);
        }
    }
}

/// Invariant: `every-call-answered`.
#[test]
fn a_call_left_running_is_answered_as_such() {
    let world = running().answers("", vec![write("a")]).calls_start().does(PersonCommand::Stop);
    let reply = world.events.iter().any(|event| {
        matches!(
            event,
            SessionEvent::Turn(TurnEvent::CallAnswered { reply: ToolReply::LeftRunning, .. })
        )
    });
    assert!(reply);
}

/// Invariant: `session-isolation`.
#[test]
fn the_same_revision_in_two_sessions_has_two_digests() {
    let revision = Revision {
        plan: uuid::Uuid::from_u128(1).into(),
        number: 1,
        strategy: Default::default(),
        title: "t".into(),
        markdown: "m".into(),
        steps: vec![],
        brief: None,
        envelope: None,
    };
    let digest = |text: &str| revision.digest(&ada_key(text));
    assert_ne!(digest("cli:talk-0001"), digest("web:talk-0001"));
    assert_ne!(digest("cli:talk-0001"), digest("cli:talk-0002"));
    let theirs = SessionKey::named("cli:talk-0001", owner_id("bea")).unwrap();
    assert_ne!(digest("cli:talk-0001"), revision.digest(&theirs), "of another owner");
}

/// An envelope of which one part is declared.
fn leasing(part: &str, value: &str) -> planwright_domain::effect::Declared {
    let text = format!("---\n{part}: {value}\n---\n");
    planwright_domain::plan::front_matter::declared(&text).unwrap().unwrap()
}

#[test]
fn every_field_of_a_revision_is_in_its_digest() {
    let identity = ada_key("cli:talk-0001");
    let revision = Revision {
        plan: uuid::Uuid::from_u128(1).into(),
        number: 1,
        strategy: Default::default(),
        title: "ab".into(),
        markdown: "c".into(),
        steps: vec![],
        brief: None,
        envelope: None,
    };
    let original = revision.digest(&identity);
    let changed = [
        Revision { plan: uuid::Uuid::from_u128(2).into(), ..revision.clone() },
        Revision { number: 2, ..revision.clone() },
        Revision { strategy: planwright_domain::plan::Strategy::Build, ..revision.clone() },
        Revision { title: "a".into(), markdown: "bc".into(), ..revision.clone() },
        Revision { markdown: "c\n".into(), ..revision.clone() },
        Revision { envelope: Some(Default::default()), ..revision.clone() },
        Revision { envelope: Some(leasing("tools", "a")), ..revision.clone() },
        Revision { envelope: Some(leasing("paths", "a")), ..revision.clone() },
        Revision { envelope: Some(leasing("hosts", "a")), ..revision.clone() },
        Revision { envelope: Some(leasing("calls", "1")), ..revision.clone() },
        Revision { envelope: Some(leasing("spend", "1")), ..revision.clone() },
        Revision { envelope: Some(leasing("expires", "1h")), ..revision.clone() },
        Revision { steps: vec![a_task(1, "coder")], ..revision.clone() },
        Revision { steps: vec![a_task(2, "coder")], ..revision.clone() },
        Revision { steps: vec![a_task(1, "writer")], ..revision.clone() },
        Revision { steps: vec![a_call(1, "{}")], ..revision.clone() },
        Revision { steps: vec![a_call(1, "{ }")], ..revision.clone() },
    ];
    let mut digests = std::collections::BTreeSet::from([original]);
    for changed in changed {
        assert!(digests.insert(changed.digest(&identity)), "{changed:?}");
    }
}

/// Invariant: `replay-equals-state`.
#[test]
fn folding_the_recorded_events_gives_the_state_again() {
    for world in [
        ready(),
        withdrawn(),
        held(),
        running(),
        paused(),
        failed(),
        in_doubt(),
        new_content(running()),
    ] {
        let stored: Vec<SessionEvent> = world
            .events
            .iter()
            .map(|event| serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap())
            .collect();
        let again = world.folded(&stored).unwrap();
        assert_eq!(again, world.session);
        let snapshot: Session =
            serde_json::from_str(&serde_json::to_string(&world.session).unwrap()).unwrap();
        assert_eq!(snapshot, world.session);
    }
}

/// Invariant: `replay-equals-state`.
#[test]
fn an_approval_record_that_was_changed_at_rest_is_not_folded() {
    let world = ready().approved();
    let text =
        serde_json::to_string(&world.events).unwrap().replace("\"policy\":2", "\"policy\":3");
    let changed: Vec<SessionEvent> = serde_json::from_str(&text).unwrap();
    let corrupt = world.folded(&changed).unwrap_err();
    assert_eq!(corrupt.what, "an approval record that does not match its digest");
}

proptest! {
    #[test]
    fn two_identities_never_share_a_text(first in "\\PC{1,12}", second in "\\PC{1,12}") {
        use planwright_domain::identity::{ChannelType, ConversationKey};
        let identity = |channel, key: &str| SessionIdentity::new(channel, ConversationKey::legacy(key).unwrap());
        for (one, other) in [(ChannelType::Web, ChannelType::Cli), (ChannelType::Cli, ChannelType::Cli)] {
            let (a, b) = (identity(one, &first), identity(other, &second));
            prop_assert_eq!(a == b, a.to_string() == b.to_string());
            prop_assert_eq!(a == b, a.path_segment() == b.path_segment());
            prop_assert_eq!(a.path_segment(), a.path_segment().to_lowercase());
            prop_assert_eq!(SessionIdentity::parse(&a.to_string()).unwrap(), a);
        }
    }
}
