//! What was said before is summed up: a view over facts that stay.

use planwright_domain::{
    attempt::ModelAttempt,
    command::{PersonCommand, Summed, SystemCommand},
    id::Seq,
    next::{Next, next},
    prompt::plan_paragraph,
    refusal::Refusal,
    session::{Session, SessionEvent},
    turn::{
        FailureKind, Measure, Usage, Work,
        event::{TurnEnd, TurnEvent},
        role::Role,
    },
};

use crate::given::*;

fn summed(upto: Seq) -> Summed {
    let usage = Usage { cost_micros: 7, ..Usage::tokens(30, 3) };
    Summed { upto, messages: 4, summary: "they talked".into(), usage, by: "m".into() }
}

fn sums_up(mut world: World, summed: Option<Summed>) -> World {
    let attempt = world.open_model_call();
    world.system(SystemCommand::RecordCompaction { attempt, summed }).unwrap();
    world
}

fn last_end(world: &World) -> Option<TurnEnd> {
    world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end.clone()),
        _ => None,
    })
}

#[test]
fn a_turn_that_must_make_room_first_is_then_asked_again() {
    let world = a_session().says("one").turn_starts().model_is_asked();
    let upto = world.session.version;
    let world = sums_up(world, Some(summed(upto)));
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { number: 2, .. }, not_before: None }
    ));
    assert_eq!((world.session.usage.input, world.session.usage.cost_micros), (30, 7));
    let world = world.answers("done", vec![]);
    assert_eq!(last_end(&world), Some(TurnEnd::Answered));
}

/// How the plan is loaded is said in every request, whatever was summed up.
/// Invariant: `compaction-safe`.
#[test]
fn the_plan_survives_every_summary() {
    let world = running().model_is_asked();
    let plan = world.plan().clone();
    let upto = world.session.version;
    let world = sums_up(world, Some(summed(upto)));
    let after = world.plan();
    assert!(plan_paragraph(after.strategy).contains("plan_get loads the plan"));
    assert_eq!(
        (&after.current, &after.status, after.revisions.len()),
        (&plan.current, &plan.status, plan.revisions.len())
    );
    assert_eq!(after.spent_micros, plan.spent_micros + 7, "the lease pays for it");
}

#[test]
fn a_person_asks_for_it_and_it_answers_nobody_else() {
    let mut world = a_session();
    assert_eq!(world.person(PersonCommand::Compact).unwrap_err(), Refusal::NothingToCompact);
    let mut world = world.says("one").turn_starts().answers("a", vec![]);
    world.person(PersonCommand::Compact).unwrap();
    assert!(world.person(PersonCommand::Compact).unwrap().is_empty(), "said twice, it waits once");
    let world = world.says("two").turn_starts();
    let turn = world.session.turn.clone().unwrap();
    assert_eq!((turn.work, Role::of(&world.session, &turn)), (Work::Compacts, Role::SumUp));
    let mut world = world.model_is_asked();
    assert_eq!(world.session.queue.len(), 1, "what was said waits for a turn of its own");
    let attempt = world.open_model_call();
    let answer = world.answer("hello", vec![]);
    let refused = world.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 });
    assert!(refused.is_err());
    let upto = world.session.version;
    let world = sums_up(world, Some(summed(upto)));
    assert_eq!(last_end(&world), Some(TurnEnd::Compacted { messages: 4 }));
    let world = world.turn_starts().answers("b", vec![]);
    assert_eq!(last_end(&world), Some(TurnEnd::Answered));
}

#[test]
fn nothing_to_sum_up_is_said_and_drops_nothing() {
    let mut world = a_session().says("one").turn_starts().answers("a", vec![]);
    world.person(PersonCommand::Compact).unwrap();
    let world = sums_up(world.turn_starts().model_is_asked(), None);
    assert_eq!(last_end(&world), Some(TurnEnd::Compacted { messages: 0 }));
    let mut talking = a_session().says("one").turn_starts().model_is_asked();
    let attempt = talking.open_model_call();
    let nothing = SystemCommand::RecordCompaction { attempt, summed: None };
    assert!(talking.system(nothing).is_err(), "a turn that answers does not end with nothing");
}

#[test]
fn a_summary_that_fails_is_tried_again_like_any_answer() {
    let mut world = a_session().says("one").turn_starts().answers("a", vec![]);
    world.person(PersonCommand::Compact).unwrap();
    let world = world.turn_starts().fails(a_failure(FailureKind::Transient), 0);
    assert!(matches!(next(&world.session), Next::CallModel { not_before: Some(_), .. }));
    let world = world.fails(a_failure(FailureKind::Permanent), 0);
    assert!(matches!(last_end(&world), Some(TurnEnd::Failed { .. })));
    let compacted = |event: &SessionEvent| event.kind() == "view_compacted";
    assert!(!world.events.iter().any(compacted), "nothing was dropped");
}

/// It is paid for, whenever it comes; the view is changed only by what comes in time.
#[test]
fn a_summary_that_comes_late_costs_and_changes_nothing() {
    let mut world = a_session().says("one").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    world.person(PersonCommand::Stop).unwrap();
    let before = world.session.clone();
    let summed = Some(summed(Seq(1)));
    world.system(SystemCommand::RecordCompaction { attempt, summed }).unwrap();
    assert_eq!(world.session.usage.cost_micros, before.usage.cost_micros + 7);
    let paid = Session { usage: world.session.usage, version: world.session.version, ..before };
    assert_eq!(world.session, paid);
}

#[test]
fn a_measure_learns_what_a_model_counts_and_stays_within_reason() {
    let fresh = Measure::default();
    assert_eq!((fresh.expect(400), fresh.expect(401)), (100, 101));
    let dense = fresh.with(1_000, 500);
    assert_eq!(dense.expect(400), 200);
    let settled = (0..20).fold(dense, |measure, _| measure.with(1_000, 250));
    assert!((99..=101).contains(&settled.expect(400)), "{}", settled.expect(400));
    assert_eq!(fresh.with(10, 100_000).expect(400), 400, "no text is denser than that");
    assert_eq!(fresh.with(100_000, 1).expect(1_600), 100, "nor thinner");
    assert_eq!(dense.with(0, 9).with(9, 0), dense, "what says nothing teaches nothing");
}
