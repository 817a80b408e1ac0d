//! Effects: the gate, brackets, doubt and late results.

use planwright_domain::{
    attempt::{CallAttempt, ModelAttempt},
    command::{Approving, Decision, PersonCommand, SystemCommand, Terms, Verdict},
    digest::Digest,
    effect::{Aim, Touched},
    next::{Next, Waiting, next},
    plan::{PauseReason, PlanStatus, Progress, observe::observe},
    session::SessionEvent,
    turn::{
        CallState, ToolReply,
        event::{TurnEnd, TurnEvent},
    },
};

use crate::given::*;

fn refusals(world: &World) -> Vec<String> {
    let refused = |event: &SessionEvent| match event {
        SessionEvent::Turn(TurnEvent::CallAnswered {
            reply: ToolReply::Refused { kind, .. },
            ..
        }) => Some(kind.clone()),
        _ => None,
    };
    world.events.iter().filter_map(refused).collect()
}

#[test]
fn a_write_inside_an_executing_approved_plan_runs_under_its_lease() {
    let world = running().answers("", vec![write("a.txt")]).calls_start();
    assert_eq!(world.session.open.values().next().unwrap().plan, Some(world.plan().id));
    let world = world.calls_give(&wrote("a.txt"));
    assert_eq!(world.plan().touched, [Touched::Wrote { path: "a.txt".into(), bytes: 1 }]);
}

#[test]
fn a_turn_that_began_before_the_approval_has_no_lease() {
    let world =
        ready().says("x").turn_starts().answers("", vec![write("a.txt")]).approved().calls_start();
    assert_eq!((world.session.ask.is_some(), world.session.open.len()), (true, 0));
}

#[test]
fn after_a_supersede_the_remaining_calls_of_the_answer_have_no_lease() {
    let world = running()
        .answers("", vec![set_content(SECOND), write("a.txt")])
        .plan_tools_run()
        .calls_start();
    assert_eq!((world.session.ask.is_some(), world.session.open.len()), (true, 0));
}

#[test]
fn after_the_report_the_remaining_calls_of_the_answer_have_no_lease() {
    let world =
        running().answers("", vec![report("done"), write("a.txt")]).plan_tools_run().calls_start();
    assert_eq!((world.session.ask.is_some(), world.session.open.len()), (true, 0));
}

#[test]
fn a_tool_that_is_not_leased_asks_inside_an_execution() {
    let mut world = ready().shown();
    let mut schemas = schemas();
    schemas.remove("write_file");
    let digest = world.digest();
    let approving = Approving::of(digest, Terms { schemas, ..terms() });
    world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap();
    let world = world.turn_starts().answers("", vec![write("a.txt")]).calls_start();
    assert_eq!((world.session.ask.is_some(), world.session.open.len()), (true, 0));
}

#[test]
fn a_leased_tool_whose_schema_changed_pauses_the_execution() {
    let world = running()
        .answers("", vec![write("a.txt"), write("b.txt")])
        .calls_start_with(Digest::of(b"other"));
    let reason = PauseReason::ToolChanged { tool: "write_file".into() };
    assert!(
        matches!(&world.plan().status, PlanStatus::Executing(_, Progress::Paused(paused)) if *paused == reason)
    );
    assert_eq!((world.session.open.len(), refusals(&world).len()), (0, 2));
}

#[test]
fn a_tool_that_is_gone_is_refused() {
    let mut world = a_session().says("x").turn_starts().answers("", vec![read("a")]);
    let due = world.due_calls()[0];
    let calls = vec![planwright_domain::command::StartingCall {
        attempt: due,
        tool: None,
        aim: Aim::default(),
    }];
    world.system(world.start_calls(calls)).unwrap();
    assert_eq!(refusals(&world), ["unknown_tool"]);
}

#[test]
fn a_call_that_names_no_tool_is_answered_at_once() {
    let world = a_session().says("x").turn_starts().answers("", vec![unusable()]);
    assert_eq!(refusals(&world), ["unusable_call"]);
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { round: 2, .. }, .. }
    ));
}

#[test]
fn reads_of_one_answer_run_together_and_the_rest_one_by_one_in_order() {
    let calls = vec![read("a"), read("b"), write("c"), write("d"), read("e")];
    let world = running().answers("", calls);
    assert_eq!(world.due_calls().len(), 2);
    let world = world.calls_start().calls_give(&done("ok"));
    assert_eq!(world.due_calls().len(), 1);
    let world = world.calls_start();
    assert!(
        matches!(next(&world.session), Next::AwaitCalls(_)),
        "the second write waits for the first"
    );
    let world = world.calls_give(&wrote("c")).calls_start().calls_give(&wrote("d"));
    let world = world.calls_start().calls_give(&done("e"));
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { round: 2, .. }, .. }
    ));
}

/// Invariant: `effects-bracketed`.
#[test]
fn nothing_but_the_calls_that_are_due_can_start() {
    let mut world = running().answers("", vec![write("a"), write("b")]);
    let second = world.session.turn.as_ref().unwrap().calls()[1].requested.id;
    let calls = vec![planwright_domain::command::StartingCall {
        attempt: CallAttempt { call: second, number: 1 },
        tool: None,
        aim: Aim::default(),
    }];
    assert_eq!(world.system(world.start_calls(calls)).unwrap_err().kind(), "moved_on");
}

#[test]
fn a_read_whose_process_died_is_made_again() {
    let world = running().answers("", vec![read("a")]).calls_start().the_process_dies();
    assert_eq!(world.session.turn.as_ref().unwrap().calls()[0].state, CallState::Pending(2));
    assert!(world.session.doubts.is_empty());
}

#[test]
fn a_model_call_whose_process_died_is_made_again() {
    let world = a_session().says("x").turn_starts().model_is_asked().the_process_dies();
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { round: 1, number: 2, .. }, not_before: None }
    ));
}

/// Invariant: `effects-bracketed`.
#[test]
fn a_write_whose_process_died_is_in_doubt_and_never_repeated_unasked() {
    let world = in_doubt();
    assert_eq!(
        world.session.doubts.values().map(|doubt| doubt.tool.as_str()).collect::<Vec<_>>(),
        ["write_file"]
    );
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Doubt));
    assert_eq!(world.status(), "executing_paused");
    assert_eq!(refusals(&world), ["in_doubt"], "the other write of the answer was not run");
    let ended = world.events.iter().any(|event| {
        matches!(
            event,
            SessionEvent::Turn(TurnEvent::TurnFinished { end: TurnEnd::InDoubt { .. }, .. })
        )
    });
    assert!(ended);
}

#[test]
fn an_execution_with_a_call_in_doubt_cannot_be_resumed() {
    let refusal = in_doubt().person(in_doubt().resume_command()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "1 call(s) are in doubt; settle them first, then the execution can go on"
    );
}

#[test]
fn a_person_who_saw_that_it_happened_settles_the_doubt_and_the_execution_goes_on() {
    let world = in_doubt();
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::Happened);
    let world = world.does(command);
    assert_eq!((world.session.doubts.len(), world.status().as_str()), (0, "executing"));
    assert!(matches!(next(&world.session), Next::StartTurn(_)));
}

#[test]
fn a_step_whose_call_a_person_saw_to_have_happened_is_not_one_without_a_call() {
    let world = replaying().calls_start().the_process_dies();
    let call = *world.session.doubts.keys().next().unwrap();
    assert_eq!(observe(world.plan()).steps_without_calls.len(), 2);
    let command = world.settle_command(call, Verdict::Happened);
    let world = world.does(command);
    let left: Vec<_> =
        observe(world.plan()).steps_without_calls.into_iter().map(|step| step.number).collect();
    assert_eq!(left, [2]);
}

#[test]
fn that_it_did_not_happen_can_be_said_only_after_the_deadline() {
    let mut world = in_doubt();
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::DidNotHappen);
    assert_eq!(world.person(command.clone()).unwrap_err().kind(), "doubt_too_fresh");
    world.now = world.now.plus_micros(20_000_000);
    world.person(command.clone()).unwrap();
    assert_eq!(world.person(command).unwrap_err().kind(), "no_such_doubt");
}

/// Invariant: `facts-only-grow`.
#[test]
fn a_late_result_settles_a_doubt_and_moves_nothing() {
    let mut world = in_doubt();
    let (call, doubt) = world.session.doubts.iter().next().unwrap();
    let attempt = CallAttempt { call: *call, number: doubt.attempt };
    world
        .system(SystemCommand::RecordResult { attempt, result: wrote("a.txt"), note_every: 0 })
        .unwrap();
    assert_eq!((world.session.doubts.len(), world.status().as_str()), (0, "executing_paused"));
    assert_eq!(world.plan().touched.len(), 1);
    let command = world.resume_command();
    assert_eq!(world.does(command).status(), "executing");
}

#[test]
fn a_call_that_runs_when_the_turn_is_stopped_is_left_to_end_and_recorded() {
    let world = running().answers("", vec![write("a"), write("b")]).calls_start();
    let attempt = world.open_calls()[0];
    let mut world = world.does(PersonCommand::Stop);
    assert!(world.session.turn.is_none());
    assert!(matches!(next(&world.session), Next::AwaitCalls(_)), "nobody forgets it");
    world
        .system(SystemCommand::RecordResult { attempt, result: wrote("a"), note_every: 0 })
        .unwrap();
    assert_eq!(
        (world.plan().touched.len(), next(&world.session)),
        (1, Next::WaitForPerson(Waiting::Resume))
    );
}

#[test]
fn a_call_left_running_whose_process_dies_is_in_doubt() {
    let world = running()
        .answers("", vec![write("a")])
        .calls_start()
        .does(PersonCommand::Stop)
        .the_process_dies();
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Doubt));
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::Happened);
    let world = world.does(command);
    assert_eq!(world.status(), "executing_paused", "a person stopped it, so a person resumes it");
}

#[test]
fn no_effect_starts_after_the_acknowledgement_of_a_stop() {
    for command in [PersonCommand::Stop, PersonCommand::PausePlan, PersonCommand::Reset] {
        let world = running().answers("", vec![write("a")]);
        let due = world.due_calls();
        let mut world = world.does(command);
        let starting = |due: CallAttempt| planwright_domain::command::StartingCall {
            attempt: due,
            tool: None,
            aim: Aim::default(),
        };
        let calls = due.into_iter().map(starting).collect();
        assert_eq!(world.system(world.start_calls(calls)).unwrap_err().kind(), "moved_on");
    }
}

#[test]
fn a_result_that_nobody_waits_for_is_refused() {
    let mut world = running().answers("", vec![write("a")]).calls_start();
    let attempt = world.open_calls()[0];
    let result = wrote("a");
    world
        .system(SystemCommand::RecordResult { attempt, result: result.clone(), note_every: 0 })
        .unwrap();
    let refusal = world
        .system(SystemCommand::RecordResult { attempt, result: result.clone(), note_every: 0 })
        .unwrap_err();
    assert_eq!(refusal.kind(), "moved_on");
    let refusal = world
        .system(SystemCommand::RecordResult {
            attempt: CallAttempt { number: 9, ..attempt },
            result,
            note_every: 0,
        })
        .unwrap_err();
    assert_eq!(refusal.kind(), "moved_on");
}

/// Invariant: `effects-bracketed`.
#[test]
fn a_call_that_did_not_begin_is_due_again_and_uses_up_no_lease() {
    let mut world = running().answers("", vec![write("a.txt")]).calls_start();
    assert_eq!(world.plan().calls_made, 1);
    let attempt = world.open_calls()[0];
    let why = "too late".to_owned();
    world.system(SystemCommand::AbandonCall { attempt, why: why.clone() }).unwrap();
    assert!(world.session.doubts.is_empty() && world.session.open.is_empty());
    let due = CallAttempt { number: attempt.number + 1, ..attempt };
    assert_eq!((next(&world.session), world.plan().calls_made), (Next::RunCalls(vec![due]), 0));
    let again = world.system(SystemCommand::AbandonCall { attempt, why });
    assert_eq!(again.unwrap_err().kind(), "moved_on");
    let world = world.calls_start().calls_give(&wrote("a.txt"));
    assert_eq!(world.plan().touched, [Touched::Wrote { path: "a.txt".into(), bytes: 1 }]);
}

#[test]
fn a_model_call_that_did_not_begin_is_made_again() {
    let mut world = a_session().says("hi").turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    let why = "too late".to_owned();
    world.system(SystemCommand::AbandonModelCall { attempt, why }).unwrap();
    let due = Next::CallModel {
        attempt: ModelAttempt { number: attempt.number + 1, ..attempt },
        not_before: None,
    };
    assert_eq!(next(&world.session), due);
}
