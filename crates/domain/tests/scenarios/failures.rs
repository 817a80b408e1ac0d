//! Models that fail: what time mends is tried again, what another model mends goes to it, and nothing goes on for ever.

use planwright_domain::{
    limits,
    next::{Due, Next, next},
    plan::{PauseReason, PlanStatus, Progress},
    session::SessionEvent,
    turn::{
        FailureKind, ModelFailure,
        asking::Asking,
        event::{TurnEnd, TurnEvent},
    },
};

use crate::given::*;

fn asked() -> World {
    a_session().says("one").turn_starts()
}

fn busy() -> ModelFailure {
    a_failure(FailureKind::Transient)
}

/// When the model is asked again, counted from now.
fn wait(world: &World) -> Option<i64> {
    match next(&world.session) {
        Next::CallModel { not_before, .. } => Some(not_before.map_or(0, |at| at.0 - world.now.0)),
        _ => None,
    }
}

fn asking(world: &World) -> Asking {
    world.session.turn.as_ref().unwrap().asking
}

fn end(world: &World) -> Option<TurnEnd> {
    world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end.clone()),
        _ => None,
    })
}

/// Time goes on until the model is due.
fn later(mut world: World) -> World {
    if let Due::At(at) = next(&world.session).due() {
        world.now = at;
    }
    world
}

/// The model fails like this until it is not asked any more.
fn fails_until_given_up(mut world: World, failure: &ModelFailure) -> (World, Vec<i64>) {
    let mut waits = Vec::new();
    while wait(&world).is_some() {
        world = later(world).fails(failure.clone(), 0);
        waits.push(wait(&world).unwrap_or(0));
        assert!(waits.len() < 200, "it does not go on for ever");
    }
    (world, waits)
}

#[test]
fn a_busy_model_is_asked_again_after_twice_the_time_with_a_jitter_of_its_own() {
    let mut world = asked();
    let mut waits = Vec::new();
    for _ in 1..limits::MODEL_ATTEMPTS_MAX {
        world = later(world).fails(busy(), 0);
        waits.push(wait(&world).unwrap());
    }
    for (wait, plain) in waits.iter().zip([1_000_000, 2_000_000, 4_000_000]) {
        assert!((plain * 3 / 4..=plain * 5 / 4).contains(wait), "{waits:?}");
    }
    let other = a_session().says("zero").turn_starts().answers("a", vec![]).says("one");
    assert_ne!(wait(&other.turn_starts().fails(busy(), 0)).unwrap(), waits[0], "two turns differ");
}

#[test]
fn a_turn_that_stays_busy_is_suspended_wakes_by_itself_and_gives_up_in_the_end() {
    let world = asked();
    let begun = world.now;
    let (world, waits) = fails_until_given_up(world, &busy());
    let longest = waits.into_iter().max().unwrap();
    assert!((12 * 60_000_000..=19 * 60_000_000).contains(&longest), "{longest}");
    let took = world.now.0 - begun.0;
    assert!((5 * 3_600_000_000..=limits::SUSPENDED_MICROS_MAX).contains(&took), "{took}");
    assert_eq!(end(&world), Some(TurnEnd::Failed { failure: busy() }));
}

#[test]
fn someone_who_speaks_wakes_a_suspended_turn_once() {
    let mut world = asked();
    for _ in 0..limits::MODEL_ATTEMPTS_MAX {
        world = later(world).fails(busy(), 0);
    }
    assert!(asking(&world).is_suspended() && wait(&world).unwrap() > 40_000_000);
    let woken = world.says("are you there?");
    assert_eq!(wait(&woken), Some(0));
    let again = woken.fails(busy(), 0);
    assert!(wait(&again).unwrap() > 0, "one word, one try");
    let answered = later(again).answers("here", vec![]);
    assert_eq!((end(&answered), answered.session.queue.len()), (Some(TurnEnd::Answered), 0));
}

#[test]
fn what_a_server_asks_for_is_waited_for_unless_it_is_without_end() {
    let asks =
        |seconds: i64| ModelFailure { retry_after_micros: Some(seconds * 1_000_000), ..busy() };
    assert_eq!(wait(&asked().fails(asks(7), 0)), Some(7_000_000));
    assert_eq!(wait(&asked().fails(asks(3_600), 0)), Some(3_600_000_000));
    let never = asked().fails(asks(10 * 365 * 86_400), 0);
    assert!(matches!(end(&never), Some(TurnEnd::Failed { .. })));
    assert_eq!(wait(&asked().fails(asks(10 * 365 * 86_400), 1)), Some(0), "another one is asked");
}

#[test]
fn another_model_is_asked_when_one_stays_busy_or_cannot_answer_at_all() {
    let world = asked().fails(busy(), 2);
    assert_eq!((asking(&world).model, asking(&world).tries), (0, 1));
    let world = later(world).fails(busy(), 2);
    assert_eq!((asking(&world).model, wait(&world)), (1, Some(0)));
    let world = world.fails(a_failure(FailureKind::Permanent), 2);
    assert_eq!((asking(&world).model, wait(&world)), (2, Some(0)));
    let answered = world.clone().answers("at last", vec![]);
    assert_eq!(end(&answered), Some(TurnEnd::Answered));
    let failed = world.fails(a_failure(FailureKind::Permanent), 2);
    assert!(matches!(end(&failed), Some(TurnEnd::Failed { .. })), "there is no other");
    let new = answered.says("two").turn_starts();
    assert_eq!(asking(&new), Asking::default(), "a new turn begins with the first");
}

#[test]
fn what_time_cannot_mend_is_never_tried_again() {
    for kind in [FailureKind::Permanent, FailureKind::Withheld, FailureKind::Limit] {
        let world = asked().fails(a_failure(kind), 0);
        assert_eq!(
            (end(&world), next(&world.session)),
            (Some(TurnEnd::Failed { failure: a_failure(kind) }), Next::Nothing)
        );
    }
    for kind in [FailureKind::Withheld, FailureKind::Limit] {
        let world = asked().fails(a_failure(kind), 3);
        assert!(end(&world).is_some(), "another model is not asked for {kind:?}");
    }
}

#[test]
fn an_answer_of_no_use_is_asked_for_a_few_times_and_no_more() {
    for kind in [FailureKind::Malformed, FailureKind::Empty] {
        let (_, waits) = fails_until_given_up(asked(), &a_failure(kind));
        assert_eq!(waits.len(), limits::MODEL_ATTEMPTS_MAX as usize);
    }
}

#[test]
fn a_request_that_a_server_finds_too_large_is_made_smaller_a_few_times() {
    let too_large = || a_failure(FailureKind::TooLarge);
    let mut world = asked();
    for halved in 1..=limits::HALVED_MAX {
        world = world.fails(too_large(), 0);
        assert_eq!((asking(&world).halved, wait(&world)), (halved, Some(0)));
    }
    assert_eq!(end(&world.fails(too_large(), 0)), Some(TurnEnd::Failed { failure: too_large() }));
}

#[test]
fn an_execution_whose_model_stays_away_is_paused_with_the_reason() {
    let (world, _) = fails_until_given_up(running(), &busy());
    let reason = PauseReason::TurnFailed { message: "busy".into() };
    assert!(
        matches!(&world.plan().status, PlanStatus::Executing(_, Progress::Paused(paused)) if *paused == reason)
    );
}
