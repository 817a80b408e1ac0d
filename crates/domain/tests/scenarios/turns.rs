//! Turns: causes, queue, steering, stop, and models that fail.

use planwright_domain::{
    attempt::ModelAttempt,
    command::{PersonCommand, SystemCommand},
    limits,
    next::{Due, Next, Waiting, next},
    plan::{PauseReason, PlanStatus, Progress},
    session::SessionEvent,
    turn::{
        Cause, FailureKind, ModelFailure,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};

use crate::given::*;

fn last_end(world: &World) -> TurnEnd {
    let end = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end.clone()),
        _ => None,
    });
    end.expect("a turn has ended")
}

#[test]
fn a_message_is_answered_in_a_turn_of_its_own() {
    let world = a_session().says("hello").turn_starts().answers("hi", vec![]);
    assert_eq!((last_end(&world), next(&world.session)), (TurnEnd::Answered, Next::Nothing));
}

#[test]
fn causes_are_taken_in_the_order_in_which_they_were_committed() {
    let world = a_session().says("one").says("two").turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().cause.seq.0, 1);
    assert_eq!(world.session.queue.len(), 1);
}

#[test]
fn a_message_during_a_turn_enters_it_before_the_next_model_call() {
    let world = a_session().says("one").turn_starts().answers("", vec![read("a")]).says("two");
    let world = world.calls_start().calls_give(&done("a")).model_is_asked();
    assert!(world.session.queue.is_empty());
    let entered = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::ModelCallStarted { entered, .. }) => Some(entered.len()),
        _ => None,
    });
    assert_eq!(entered, Some(1));
}

#[test]
fn a_message_that_comes_too_late_for_a_turn_gets_its_own() {
    let world = a_session()
        .says("one")
        .turn_starts()
        .model_is_asked()
        .says("two")
        .answers("to one", vec![]);
    assert_eq!(world.turn_starts().session.turn.unwrap().cause.cause, Cause::Message);
}

#[test]
fn an_execution_waits_for_the_turn_that_is_open() {
    let world = ready().says("more").turn_starts().approved();
    assert_eq!(world.session.turn.as_ref().unwrap().executes(), None);
    let world = world.answers("fine", vec![]).turn_starts();
    assert_eq!(world.session.turn.as_ref().unwrap().executes(), Some(world.plan().id));
}

#[test]
fn one_turn_at_a_time() {
    let mut world = a_session().says("one").says("two").turn_starts();
    let queued = world.session.queue[0].seq;
    let turn = world.fresh().into();
    let refusal = world
        .system(SystemCommand::StartTurn {
            turn,
            queued,
            profile: None,
            recalled: Default::default(),
            call: None,
        })
        .unwrap_err();
    assert_eq!(refusal.kind(), "moved_on");
}

#[test]
fn the_queue_has_a_limit_and_says_so() {
    let mut world = a_session();
    for _ in 0..limits::QUEUE_MAX {
        world.person(PersonCommand::Say { text: "x".into() }).unwrap();
    }
    let refusal = world.person(PersonCommand::Say { text: "x".into() }).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "1000 messages already wait in this session; let some be answered, or send /reset"
    );
}

#[test]
fn a_message_has_a_limit_and_says_so() {
    let mut world = a_session();
    let longest = "x".repeat(limits::MESSAGE_BYTES_MAX);
    let refusal = world.person(PersonCommand::Say { text: format!("{longest}x") }).unwrap_err();
    assert_eq!(refusal.kind(), "message_too_long");
    world.person(PersonCommand::Say { text: longest }).unwrap();
    assert_eq!(
        world.person(PersonCommand::Say { text: " \n".into() }).unwrap_err().kind(),
        "empty_message"
    );
}

#[test]
fn stop_ends_the_turn_and_keeps_the_queue() {
    let world = a_session().says("one").turn_starts().says("two").does(PersonCommand::Stop);
    assert_eq!((last_end(&world), world.session.queue.len()), (TurnEnd::Stopped { by: ada() }, 1));
    assert!(matches!(next(&world.session), Next::StartTurn(_)));
}

#[test]
fn stop_without_anything_running_says_so() {
    let refusal = a_session().person(PersonCommand::Stop).unwrap_err();
    assert_eq!(refusal.to_string(), "nothing is running in this session");
}

#[test]
fn stopping_an_execution_withdraws_a_turn_that_waits_for_it() {
    let world = ready().approved().does(PersonCommand::Stop);
    assert_eq!(
        (world.session.queue.len(), next(&world.session)),
        (0, Next::WaitForPerson(Waiting::Resume))
    );
}

/// Invariant: `no-zombies`.
#[test]
fn reset_ends_turn_queue_and_plan_and_starts_a_new_view() {
    let world = running().model_is_asked().says("later").does(PersonCommand::Reset);
    let session = &world.session;
    assert_eq!((&session.turn, session.queue.len(), session.plan()), (&None, 0, None));
    // The last event is the word of the decision log.
    assert_eq!((session.view_from.following(), next(session)), (session.version, Next::Nothing));
    let notices =
        world.events.iter().filter(|event| matches!(event, SessionEvent::CauseWithdrawn { .. }));
    assert_eq!(notices.count(), 1, "the waiting message is answered with a notice");
}

/// Invariant: `facts-only-grow`.
#[test]
fn an_answer_after_the_stop_is_recorded_and_moves_nothing() {
    let mut world = a_session().says("one").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    let mut world = {
        world.person(PersonCommand::Stop).unwrap();
        world
    };
    let mut answer = world.answer("late", vec![write("a.txt")]);
    answer.usage.output = 5;
    let events = world.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 }).unwrap();
    assert!(matches!(
        &events[..],
        [SessionEvent::Turn(TurnEvent::ModelAnswered { arrival: Arrival::Late, .. })]
    ));
    assert_eq!((next(&world.session), world.session.usage.output), (Next::Nothing, 5));
}

#[test]
fn an_answer_of_an_earlier_try_is_late() {
    let world = a_session().says("one").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    let mut world = world.the_process_dies().model_is_asked();
    let answer = world.answer("from the grave", vec![]);
    world.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 }).unwrap();
    assert!(matches!(
        next(&world.session),
        Next::AwaitModel { attempt: ModelAttempt { number: 2, .. }, .. }
    ));
}

#[test]
fn a_passing_failure_is_tried_again_after_the_wait_that_the_server_asks_for() {
    let mut world = a_session().says("one").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    let failure =
        ModelFailure { retry_after_micros: Some(7_000_000), ..a_failure(FailureKind::Transient) };
    world = world.fails(failure, 0);
    let at = world.now.plus_micros(7_000_000);
    assert_eq!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { number: 2, ..attempt }, not_before: Some(at) }
    );
    assert_eq!(next(&world.session).due(), Due::At(at));
}

#[test]
fn an_empty_answer_is_no_answer() {
    let world = a_session().says("one").turn_starts().answers("", vec![]);
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { number: 2, .. }, not_before: Some(_) }
    ));
}

#[test]
fn silence_after_a_plan_was_written_is_an_end() {
    let world = collecting()
        .says("x")
        .turn_starts()
        .answers("", vec![set_content(FIRST)])
        .plan_tools_run()
        .answers("", vec![]);
    assert_eq!(last_end(&world), TurnEnd::Planned { plan: world.plan().id });
}

#[test]
fn an_answer_with_too_many_calls_is_refused() {
    let calls = (0..=limits::CALLS_PER_ANSWER_MAX).map(|_| read("a")).collect();
    let world = a_session().says("one").turn_starts().answers("", calls);
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { number: 2, .. }, .. }
    ));
}

#[test]
fn a_turn_without_an_end_is_ended() {
    let mut world = a_session().says("one").turn_starts();
    for _ in 0..limits::MODEL_ROUNDS_MAX {
        world = world.answers("", vec![read("a")]).calls_start().calls_give(&done("a"));
    }
    world = world.model_is_asked();
    assert!(
        matches!(last_end(&world), TurnEnd::Failed { failure } if failure.kind == FailureKind::Limit)
    );
}

#[test]
fn an_execution_that_ends_unreported_pauses_and_asks() {
    let world = paused();
    assert!(matches!(
        &world.plan().status,
        PlanStatus::Executing(_, Progress::Paused(PauseReason::Unreported))
    ));
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Resume));
}

#[test]
fn an_execution_that_reports_done_completes_the_plan_with_its_evidence() {
    let world = running().answers("", vec![report("done")]).plan_tools_run();
    let ended = world.session.last_ended.clone().unwrap();
    assert_eq!(
        (world.status().as_str(), ended.account.in_words().as_str()),
        ("done", "the model reports: as asked")
    );
    let world = world.answers("all done", vec![]);
    assert_eq!(last_end(&world), TurnEnd::Planned { plan: ended.plan });
}

#[test]
fn an_execution_that_reports_blocked_pauses_and_says_why() {
    let world =
        running().answers("", vec![report("blocked")]).plan_tools_run().answers("hm", vec![]);
    let reason = PauseReason::Blocked { summary: "as asked".into() };
    assert!(
        matches!(&world.plan().status, PlanStatus::Executing(_, Progress::Paused(paused)) if *paused == reason)
    );
}

#[test]
fn a_report_outside_an_execution_is_denied() {
    for world in [ready(), held(), paused(), failed()] {
        let status = world.status();
        let world =
            world.says("x").turn_starts().answers("", vec![report("done")]).plan_tools_run();
        assert_eq!(world.status(), status);
    }
}
