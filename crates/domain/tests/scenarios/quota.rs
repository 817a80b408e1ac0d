//! What owners may use: what warns, what pauses, what is refused, and who may raise it.

use std::sync::Arc;

use planwright_domain::{
    actor::{PersonId, Standing},
    attempt::ModelAttempt,
    command::{Issued, PersonCommand, SessionCommand, SystemCommand},
    id::OwnerId,
    next::{Due, Next, Waiting, next, waiting},
    owner::{self, DayUse, Owner, OwnerCommand},
    policy::Policy,
    quota::{Day, Limit, LimitReached, Quota, QuotaUse, Used},
    refusal::Refusal,
    session::{SessionEvent, begins_turn, decide, limits_of, may_raise},
    time::Time,
    turn::decide::LOOK_AGAIN_MICROS,
};
use proptest::prelude::*;
use uuid::Uuid;

use crate::given::{World, a_session, ada};

const DAY: i64 = 86_400_000_000;

fn stands(quota: Quota, used: Used) -> Arc<QuotaUse> {
    Arc::new(QuotaUse { owner: PersonId("ada".into()), quota, used })
}

fn money(max: u64, used: u64) -> Arc<QuotaUse> {
    let quota = Quota { cost_micros: Some(max), ..Quota::default() };
    stands(quota, Used { cost_micros: used, ..Used::default() })
}

/// Asks for the model call that is due, for an owner who stands so.
fn model_call(world: &mut World, quota: Arc<QuotaUse>) -> Vec<SessionEvent> {
    let (Next::CallModel { attempt, .. } | Next::AwaitLimit { attempt, .. }) = next(&world.session)
    else {
        panic!("no model call is due: {:?}", next(&world.session))
    };
    let bracket = world.bracket();
    let command = SessionCommand::System(SystemCommand::StartModelCall { attempt, bracket });
    let issued = Issued::new(world.fresh(), world.now, command).with_quota(Some(quota));
    let events = decide(&world.session, &issued).unwrap();
    world.session = world.session.fold(world.now, &events).unwrap();
    events
}

fn kinds(events: &[SessionEvent]) -> Vec<&'static str> {
    events.iter().map(SessionEvent::kind).collect()
}

#[test]
fn most_of_a_day_warns_once_in_a_session_and_all_of_it_pauses_until_the_next() {
    let mut world = a_session().says("hello").turn_starts();
    assert_eq!(kinds(&model_call(&mut world, money(100, 79))), ["model_call_started"]);
    let mut world = world.answers("one", vec![]).says("and?").turn_starts();
    let warned = ["limit_warned", "model_call_started"];
    assert_eq!(kinds(&model_call(&mut world, money(100, 80))), warned);
    let mut world = world.answers("two", vec![]).says("and?").turn_starts();
    assert_eq!(kinds(&model_call(&mut world, money(100, 99))), ["model_call_started"], "told");
    let mut world = world.answers("three", vec![]).says("and?").turn_starts();
    assert_eq!(kinds(&model_call(&mut world, money(100, 100))), ["turn_paused"]);
    assert_eq!(waiting(&world.session), Some(Waiting::Limit));
    assert!(next(&world.session).is_rest());
    assert_eq!(next(&world.session).due(), Due::At(world.now.plus_micros(LOOK_AGAIN_MICROS)));
    world.now = Day::of(world.now).ends();
    assert_eq!(kinds(&model_call(&mut world, money(100, 0))), ["model_call_started"]);
    assert_eq!(waiting(&world.session), None);
    let mut world = world.answers("four", vec![]).says("and?").turn_starts();
    assert_eq!(kinds(&model_call(&mut world, money(100, 90))), warned, "it is another day");
}

#[test]
fn a_limit_that_is_raised_lets_the_turn_look_again_and_a_stop_ends_it() {
    let mut world = a_session().says("hello").turn_starts();
    model_call(&mut world, money(100, 100));
    let events = world.system(SystemCommand::ResumeTurn).unwrap();
    assert_eq!(kinds(&events), ["turn_resumed"]);
    assert!(matches!(next(&world.session), Next::CallModel { not_before: None, .. }));
    assert!(world.system(SystemCommand::ResumeTurn).is_err(), "nothing waits any more");
    model_call(&mut world, money(100, 100));
    let world = world.does(PersonCommand::Stop);
    assert_eq!((next(&world.session), waiting(&world.session)), (Next::Nothing, None));
}

#[test]
fn who_has_stored_what_they_may_adds_nothing_and_may_still_end_and_delete() {
    let quota = Quota { bytes: Some(1_000_000), ..Quota::default() };
    let full = stands(quota, Used { bytes: 1_000_000, ..Used::default() });
    let mut world = a_session().says("hello");
    let mut asked = |command: PersonCommand| {
        let command = SessionCommand::Person(ada(), command);
        let needs = limits_of(&command).contains(&Limit::Bytes);
        let issued = Issued::new(world.fresh(), world.now, command).with_quota(Some(full.clone()));
        (needs, decide(&world.session, &issued))
    };
    let (needs, refused) = asked(PersonCommand::Say { text: "more".into() });
    let words = refused.unwrap_err().to_string();
    assert!(needs);
    assert_eq!(
        words,
        "ada may use 1.0 MB stored, and 1.0 MB are; this holds until something is deleted; delete sessions that are of no use any more; the operator changes the limit in [limits]"
    );
    for command in
        [PersonCommand::Reset, PersonCommand::Life(planwright_domain::command::LifeCommand::Delete)]
    {
        let (needs, decided) = asked(command);
        assert!(!needs && decided.is_ok());
    }
}

#[test]
fn a_turn_begins_with_its_first_model_call_unless_a_limit_holds_that_back() {
    let starts = |quota| {
        let mut world = a_session().says("one").says("two");
        let Next::StartTurn(queued) = next(&world.session) else { panic!("a turn is due") };
        let (turn, call) = (world.fresh().into(), Some(world.bracket()));
        let (profile, recalled) = (None, Default::default());
        let command = SystemCommand::StartTurn { turn, queued, profile, recalled, call };
        let command = SessionCommand::System(command);
        assert!(limits_of(&command).contains(&Limit::Money), "{:?}", limits_of(&command));
        let issued = Issued::new(world.fresh(), world.now, command).with_quota(Some(quota));
        let events = decide(&world.session, &issued).unwrap();
        world.session = world.session.fold(world.now, &events).unwrap();
        (kinds(&events), world, ModelAttempt::first(turn))
    };
    let (begun, world, attempt) = starts(money(100, 80));
    assert_eq!(begun, ["turn_started", "limit_warned", "model_call_started"]);
    let bracket = world.bracket();
    assert_eq!(next(&world.session), Next::AwaitModel { attempt, bracket });
    assert_eq!(world.session.queue.len(), 0, "what was said meanwhile is part of it");
    let (begun, mut world, attempt) = starts(money(100, 100));
    assert_eq!(begun, ["turn_started"]);
    assert_eq!(next(&world.session), Next::CallModel { attempt, not_before: None });
    assert_eq!(kinds(&model_call(&mut world, money(100, 100))), ["turn_paused"]);
}

#[test]
fn a_turn_needs_room_and_a_cause_that_is_withdrawn_needs_none() {
    let mut world = a_session().says("hello");
    let Next::StartTurn(queued) = next(&world.session) else { panic!("a turn is due") };
    let turn = world.fresh().into();
    let (profile, recalled, call) = (None, Default::default(), None);
    let command =
        SessionCommand::System(SystemCommand::StartTurn { turn, queued, profile, recalled, call });
    assert_eq!(limits_of(&command), [Limit::Turns]);
    let before = world.session.clone();
    let events = world.ask(command).unwrap();
    assert!(begins_turn(&before, &events) && !begins_turn(&before, &events[..0]));
    let (before, paused) = (world.session.clone(), model_call(&mut world, money(100, 100)));
    assert!(!begins_turn(&before, &paused));
    world.system(SystemCommand::ResumeTurn).unwrap();
    let (before, goes_on) = (world.session.clone(), model_call(&mut world, money(100, 0)));
    assert!(begins_turn(&before, &goes_on), "a turn that was paused needs room as well");
    let room = stands(Quota { turns: Some(2), ..Quota::default() }, Used::default());
    let room = room.turn_room().unwrap();
    assert!(room.check(1).is_ok());
    let words = room.check(2).unwrap_err().in_words();
    assert_eq!(
        words,
        "ada may use 2 turns at the same time, and 2 are under way; this holds until one of them ends"
    );
}

#[test]
fn who_may_only_speak_raises_nothing() {
    let speaks = planwright_domain::actor::Person { standing: Standing::Speaks, ..ada() };
    assert!(may_raise(&ada(), Time(0), &Policy::default()).is_ok());
    assert!(may_raise(&speaks, Time(0), &Policy::default()).is_err());
    let lately = Policy { risky_age_micros_max: Some(60_000_000), ..Policy::default() };
    let refused = may_raise(&ada(), Time(0), &lately).unwrap_err();
    assert!(matches!(refused, Refusal::Plan(_)), "money needs the passphrase anew: {refused}");
}

fn owner() -> Owner {
    Owner::new(OwnerId(Uuid::from_u128(1)))
}

fn does(owner: &Owner, command: &OwnerCommand) -> Owner {
    owner.fold(&owner::decide(owner, command).unwrap()).unwrap()
}

#[test]
fn a_limit_is_raised_once_for_what_a_person_read_and_only_for_its_day() {
    let quota = Quota { cost_micros: Some(1_000_000), ..Quota::default() };
    let read = QuotaUse {
        owner: PersonId("ada".into()),
        quota,
        used: Used { cost_micros: 1_000_000, ..Used::default() },
    };
    let read = read.reached(&[Limit::Money], Time(0)).unwrap();
    let by = PersonId("ada".into());
    let raise = OwnerCommand::RaiseLimit { read, quota, day: Day(0), by };
    let raised = does(&owner(), &raise);
    assert_eq!(raised.quota_on(quota, Day(0)).cost_micros, Some(2_000_000));
    assert_eq!(does(&raised, &raise), raised, "said twice, it holds once");
    assert_eq!(raised.quota_on(quota, Day(1)), quota, "the next day is as every day");
}

#[test]
fn what_was_used_is_kept_by_days_for_a_month() {
    let used = DayUse { tokens: 3, cost_micros: 5 };
    let mut owner = owner();
    for day in 0..40 {
        owner = does(&owner, &OwnerCommand::CountUse { day: Day(day), used });
    }
    assert_eq!(
        (owner.days.len(), owner.used_on(Day(39)), owner.used_on(Day(8))),
        (31, used, DayUse::default())
    );
    let none = OwnerCommand::CountUse { day: Day(39), used: DayUse::default() };
    assert_eq!(does(&owner, &none), owner);
}

#[test]
fn what_is_too_old_is_deleted_only_where_nothing_goes_on_or_happened_since() {
    let mut world = a_session().says("hello");
    let version = world.session.version;
    assert!(world.system(SystemCommand::DeleteByAge { version }).is_err(), "a turn is due");
    let mut world = world.turn_starts().answers("there", vec![]);
    assert!(world.system(SystemCommand::DeleteByAge { version }).is_err(), "it moved on");
    let version = world.session.version;
    let events = world.system(SystemCommand::DeleteByAge { version }).unwrap();
    assert!(kinds(&events).contains(&"session_deleted"), "{events:?}");
    let deletion = world.session.deletion.as_ref().unwrap();
    assert_eq!(deletion.by.0, "retention");
}

proptest! {
    /// Whatever is used, and whatever may be: reached from the limit on, near from four fifths on, until the day ends.
    #[test]
    fn a_limit_is_reached_exactly_from_its_maximum_on(used: u64, max in 1_u64.., at in 0..1_000 * DAY) {
        let at = Time(at);
        let stands = money(max, used);
        let reached = stands.reached(&[Limit::Money], at);
        prop_assert_eq!(reached.is_some(), used >= max);
        let near = !stands.near(&[Limit::Money], at).is_empty();
        prop_assert_eq!(near, u128::from(used) * 5 >= u128::from(max) * 4);
        if let Some(LimitReached { until: Some(until), .. }) = reached {
            prop_assert!(at < until && until.0 - at.0 <= DAY && until.0 % DAY == 0);
        }
        prop_assert!(!stands.is_far() || !near);
        prop_assert!(stands.reached(&[Limit::Tokens, Limit::Turns, Limit::Bytes], at).is_none());
    }
}
