//! What the runtime reports: in time, late, or about something else.

use planwright_domain::{
    attempt::{CallAttempt, ModelAttempt},
    command::{Decision, Ending, PersonCommand, Start, SystemCommand, Verdict},
    id::CallId,
    next::{Next, next},
    plan::{PauseReason, PlanStatus, Progress, Strategy, event::PlanEvent},
    refusal::Refusal,
    session::SessionEvent,
    turn::{
        CallResult,
        event::{TurnEnd, TurnEvent},
        profile::Profile,
    },
};

use crate::given::*;

#[test]
fn a_turn_beside_the_execution_did_not_plan() {
    // The execution waits in the queue while a talk is open.
    let beside = ready().says("hm").turn_starts().shown();
    let command = beside.approve_command(beside.digest(), Start::AtOnce);
    let beside = beside.does(command);
    let planned = |world: &World| world.session.turn.as_ref().and_then(|turn| turn.planned);
    assert_eq!(planned(&beside.clone().does(PersonCommand::PausePlan)), None);
    assert_eq!(planned(&beside.ends(Ending::Done)), None);
    // An empty draft ends by the model's word, in a turn that executes nothing.
    let empty = a_session()
        .plan_on_with(Strategy::Collect)
        .says("plan it")
        .turn_starts()
        .answers("", vec![finalize()])
        .plan_tools_run()
        .answers("nothing to do", vec![]);
    let end = empty.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end.clone()),
        _ => None,
    });
    assert!(matches!(end, Some(TurnEnd::Planned { .. })), "{end:?}");
}

#[test]
fn a_doubt_can_be_denied_from_its_deadline_on() {
    let settled = |early: i64| {
        let mut world = in_doubt();
        let (call, doubt) = world.session.doubts.iter().next().unwrap();
        let (call, deadline) = (*call, doubt.deadline);
        // Asking takes one thousandth of a second in every scenario.
        world.now = deadline.plus_micros(-1_000 - early);
        let settle = Decision::SettleDoubt { call, verdict: Verdict::DidNotHappen };
        world.person(PersonCommand::Decide(settle)).map(drop)
    };
    assert_eq!(settled(1), Err(Refusal::DoubtTooFresh));
    assert_eq!(settled(0), Ok(()));
}

#[test]
fn a_profile_of_the_same_name_that_says_something_else_pauses_the_execution() {
    let mut world = built().approved();
    let Next::StartTurn(queued) = next(&world.session) else { panic!("a turn is due") };
    let profile = Some(Profile::new("coder", "be careless", "scripted", None, None));
    let turn = world.fresh().into();
    world
        .system(SystemCommand::StartTurn {
            turn,
            queued,
            profile,
            recalled: Default::default(),
            call: None,
        })
        .unwrap();
    assert_eq!(world.status(), "executing_paused");
}

#[test]
fn only_the_model_call_that_is_due_starts() {
    let world = || a_session().says("x").turn_starts();
    let turn = world().session.turn.unwrap().id;
    for (round, number, starts) in [(1, 1, true), (2, 1, false), (1, 2, false), (2, 2, false)] {
        let mut world = world();
        let bracket = world.bracket();
        let attempt = ModelAttempt { turn, round, number };
        let started = world.system(SystemCommand::StartModelCall { attempt, bracket });
        assert_eq!(started.is_ok(), starts, "{attempt:?}");
    }
}

#[test]
fn the_last_doubt_that_a_late_result_settles_says_so() {
    let reason = |world: &World| match &world.plan().status {
        PlanStatus::Executing(_, Progress::Paused(reason)) => reason.clone(),
        other => panic!("{other:?}"),
    };
    let mut world = in_doubt();
    let (call, doubt) = world.session.doubts.iter().next().unwrap();
    let attempt = CallAttempt { call: *call, number: doubt.attempt };
    let before = reason(&world);
    assert_ne!(before, PauseReason::DoubtSettled);
    let result = wrote("a.txt");
    world.system(SystemCommand::RecordResult { attempt, result, note_every: 0 }).unwrap();
    assert_eq!((world.session.doubts.len(), reason(&world)), (0, PauseReason::DoubtSettled));
}

#[test]
fn an_answer_in_time_does_not_say_so_and_a_late_one_does() {
    let arrival = |world: &World| {
        let answered = world.events.iter().rev().find(|event| event.kind() == "model_answered");
        let text = serde_json::to_string(answered.unwrap()).unwrap();
        text.contains("\"arrival\":\"late\"")
            .then_some("late")
            .or(text.contains("arrival").then_some("?"))
    };
    let world = a_session().says("x").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    assert_eq!(arrival(&world.clone().answers("hi", vec![])), None);
    let mut stopped = world.does(PersonCommand::Stop);
    let answer = stopped.answer("hi", vec![]);
    stopped.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 }).unwrap();
    assert_eq!(arrival(&stopped), Some("late"));
}

fn failing(output: &str) -> CallResult {
    CallResult::failed(output)
}

/// The calls that were answered without running, by how often each.
fn unrun(events: &[SessionEvent]) -> Vec<CallId> {
    let answered = |event: &SessionEvent| match event {
        SessionEvent::Turn(TurnEvent::CallAnswered { call, .. }) => Some(*call),
        _ => None,
    };
    events.iter().filter_map(answered).collect()
}

#[test]
fn what_a_call_of_an_ended_plan_did_is_not_what_the_next_plan_did() {
    let world = running().answers("", vec![write("a.txt")]).calls_start();
    let attempt = world.open_calls()[0];
    let mut world = world.ends(Ending::Off).plan_on();
    let result = wrote("a.txt");
    world.system(SystemCommand::RecordResult { attempt, result, note_every: 0 }).unwrap();
    assert_eq!(world.plan().touched.len(), 0);
}

#[test]
fn a_recorded_call_that_fails_says_why_and_answers_each_that_is_left_once() {
    let world = collected_of(vec![write("a"), write("b"), write("c")]).approved().turn_starts();
    let world = world.calls_start().calls_give(&wrote("a")).calls_start();
    let calls = world.session.turn.as_ref().unwrap().calls().to_vec();
    let before = world.events.len();
    let world = world.calls_give(&failing("the disk is full"));
    assert_eq!(world.status(), "failed");
    assert_eq!(unrun(&world.events[before..]), [calls[2].requested.id]);
    let failed = world.events.iter().find_map(|event| match event {
        SessionEvent::Plan(PlanEvent::PlanFailed { summary }) => Some(summary.as_str()),
        _ => None,
    });
    assert_eq!(failed, Some("step 2 failed: the disk is full"));
}

#[test]
fn a_question_that_nobody_answers_leaves_each_call_answered_once() {
    let outside = vec![mail(), write("b.txt")];
    let mut world = running().answers("", outside).calls_start();
    let calls: Vec<_> = {
        let turn = world.session.turn.as_ref().unwrap();
        turn.calls().iter().map(|call| call.requested.id).collect()
    };
    world.now = world.now.plus_micros(2 * ASK_MICROS);
    let call = world.session.ask.as_ref().unwrap().call;
    let events = world.system(SystemCommand::ExpireAsk { call }).unwrap();
    let mut answered = unrun(&events);
    answered.sort();
    assert_eq!((answered, world.status().as_str()), (calls, "executing_paused"));
}

#[test]
fn the_words_beside_a_finalize_are_the_summary_and_are_cut_at_a_letter() {
    let finalized = |text: &str| {
        let calls = vec![tool("plan_finalize", serde_json::json!({}))];
        let world = a_session().plan_on_with(Strategy::Collect).says("plan it").turn_starts();
        let world = world.answers("looking", vec![write("a.txt")]).plan_tools_run();
        let world = world.answers(text, calls).plan_tools_run();
        let markdown = world.events.iter().rev().find_map(|event| match event {
            SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => {
                Some(revision.markdown.clone())
            }
            _ => None,
        });
        (world.plan().current.as_ref().unwrap().title.clone(), markdown.unwrap())
    };
    let (title, markdown) = finalized("Write one file");
    assert_eq!((title.as_str(), markdown.matches("Write one file").count()), ("Write one file", 1));
    let (title, markdown) = finalized(&format!("a{}", "ä".repeat(5_000)));
    assert_eq!(title, format!("a{}", "ä".repeat(99)));
    let whole = format!("\na{}\n", "ä".repeat(4_095));
    assert!(markdown.contains(&whole), "the whole summary stands below the title");
}

#[test]
fn a_late_result_of_a_stopped_turn_does_not_end_the_one_that_replays_now() {
    let world = collected_of(vec![write("a")]).approved().turn_starts().calls_start();
    let attempt = world.open_calls()[0];
    let mut world = world.does(PersonCommand::Stop);
    let result = failing("too late");
    let resumed = world.person(world.resume_command());
    assert!(resumed.is_ok(), "{resumed:?}");
    let mut world = if matches!(next(&world.session), Next::StartTurn(_)) {
        world.turn_starts()
    } else {
        world
    };
    let before = world.session.turn.as_ref().map(|turn| turn.id);
    world.system(SystemCommand::RecordResult { attempt, result, note_every: 0 }).unwrap();
    assert_eq!(world.session.turn.as_ref().map(|turn| turn.id), before);
}
