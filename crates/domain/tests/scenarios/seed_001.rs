//! Every line of seed 001's test list, and what the rulings add to it: calls recorded, finalised, replayed.

use planwright_domain::{
    attempt::ModelAttempt,
    command::{Approving, Decision, PersonCommand, Verdict},
    digest::Digest,
    effect::Envelope,
    next::{Next, Waiting, next},
    outcome::PlanCard,
    plan::{Reads, Strategy, draft, event::PlanEvent, observation::Basis, step::OnFailure},
    session::SessionEvent,
    tools::{self, PlanTool},
    turn::{CallKind, CallResult, ToolReply, Work, event::TurnEvent},
};

use crate::given::*;

fn collecting_calls() -> World {
    a_session().plan_on_with(Strategy::Collect).says("plan it").turn_starts()
}

fn failing(output: &str) -> CallResult {
    CallResult::failed(output)
}

fn steps(world: &World) -> Vec<String> {
    world.plan().steps().iter().map(|step| step.in_words().to_owned()).collect()
}

fn revision(world: &World) -> planwright_domain::plan::Revision {
    let added = |event: &SessionEvent| match event {
        SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => Some(revision.clone()),
        _ => None,
    };
    *world.events.iter().rev().find_map(added).expect("a revision")
}

#[test]
fn calls_are_recorded_as_steps_and_answered_planned() {
    let world = collecting_calls().answers("", vec![write("a.txt"), read("b")]).plan_tools_run();
    assert_eq!(world.reply(), [ToolReply::Planned, ToolReply::Planned]);
    assert_eq!(world.plan().draft.as_ref().unwrap().steps.len(), 2);
    assert!(world.session.open.is_empty(), "nothing ran");
    assert!(
        matches!(
            next(&world.session),
            Next::CallModel { attempt: ModelAttempt { round: 2, .. }, .. }
        ),
        "the model goes on"
    );
}

#[test]
fn finalize_makes_the_recorded_calls_a_plan_that_waits_for_approval() {
    let world = collected();
    assert_eq!(world.status(), "ready");
    assert_eq!(steps(&world), ["write_file", "write_file"]);
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Decision));
    let revision = revision(&world);
    insta::assert_snapshot!(revision.markdown, @r##"
    # Write two files

    ## Step 1: write_file (write)

    ```json
    {"content":"x","path":"a.txt"}
    ```

    ## Step 2: write_file (write)

    ```json
    {"content":"x","path":"b.txt"}
    ```
    "##);
}

#[test]
fn finalize_with_no_recorded_call_cancels_the_plan_and_ends_plan_work() {
    let world = collecting_calls().answers("", vec![finalize()]).plan_tools_run();
    assert_eq!((world.status().as_str(), world.session.plan()), ("cancelled", None));
}

#[test]
fn text_calls_and_finalize_in_one_answer_are_recorded_first_wherever_they_stand() {
    let plain = || tool("plan_finalize", serde_json::json!({}));
    let world = collecting_calls()
        .answers("Both files, then rest.", vec![write("a.txt"), plain(), write("b.txt")])
        .plan_tools_run();
    assert_eq!(world.status(), "ready");
    assert_eq!(steps(&world), ["write_file", "write_file"]);
    assert_eq!(revision(&world).title, "Both files, then rest.", "the words are the summary");
}

#[test]
fn a_plan_that_is_never_finalised_stays_collecting_and_nobody_is_nagged() {
    let world = collecting_calls()
        .answers("", vec![write("a.txt")])
        .plan_tools_run()
        .answers("I am thinking", vec![]);
    assert_eq!((world.status().as_str(), next(&world.session)), ("collecting", Next::Nothing));
    let world = world.says("go on").turn_starts().answers("", vec![finalize()]).plan_tools_run();
    assert_eq!((world.status().as_str(), steps(&world).len()), ("ready", 1));
}

/// Invariant: `mode-gating`.
#[test]
fn finalize_is_usable_only_while_a_plan_is_collected() {
    let usable = |world: &World| {
        let turn = world.session.turn.as_ref().unwrap();
        tools::available(&world.session, turn)
    };
    assert_eq!(usable(&collecting_calls()), [PlanTool::Get, PlanTool::Finalize]);
    assert_eq!(usable(&a_session().says("x").turn_starts()), []);
    assert_eq!(usable(&replaying()), [PlanTool::Get]);
    assert!(!usable(&collecting().says("x").turn_starts()).contains(&PlanTool::Finalize));
}

/// Invariant: `inactive-is-inert`.
#[test]
fn finalize_outside_its_strategy_is_denied_and_changes_nothing() {
    for world in [a_session(), collecting(), ready()] {
        let (work, world) = (world.session.work.clone(), world);
        let world = world.says("x").turn_starts().answers("", vec![finalize()]).plan_tools_run();
        assert_eq!(world.session.work, work);
        assert!(world.last_refusal().starts_with("policy_denied: plan_finalize"));
    }
}

#[test]
fn reads_run_while_a_plan_is_collected_where_the_operator_says_so() {
    let mut world = a_session();
    let plan = world.fresh().into();
    let reads = PersonCommand::StartPlan { plan, strategy: Strategy::Collect, reads: Reads::Run };
    let world = world.does(reads).says("plan it").turn_starts();
    let world = world.answers("", vec![read("a"), write("b"), read("c")]);
    let world = world.calls_start().calls_give(&done("text")).plan_tools_run();
    assert_eq!(world.plan().draft.as_ref().unwrap().steps.len(), 1);
    assert_eq!(world.due_calls().len(), 1, "the last read runs as well");
}

#[test]
fn arguments_stand_in_the_plan_byte_for_byte() {
    let arguments = "{\"path\": \"a.txt\",  \"content\": \"```\\n````\"}";
    let Asks(name, _, kind) = write("a.txt");
    let world = collected_of(vec![Asks(name, arguments.into(), kind)]);
    let revision = revision(&world);
    assert!(revision.markdown.contains(&format!("\n`````json\n{arguments}\n`````\n")));
    assert_eq!(revision.steps, [a_call(1, arguments)]);
    assert_eq!(
        draft::collected(&revision.title, &revision.title, &revision.steps),
        revision.markdown
    );
}

#[test]
fn a_call_that_no_tool_can_take_is_told_so_and_never_a_step() {
    let world =
        collecting_calls().answers("", vec![unusable(), write("a"), finalize()]).plan_tools_run();
    assert_eq!(steps(&world), ["write_file"]);
}

#[test]
fn a_new_collection_after_a_revision_begins_empty_and_replaces_it() {
    let world = collected()
        .says("only one")
        .turn_starts()
        .answers("", vec![write("c.txt"), finalize()])
        .plan_tools_run();
    assert_eq!((steps(&world).len(), world.plan().current.as_ref().unwrap().number), (1, 2));
    let world = world.answers("", vec![finalize()]).plan_tools_run();
    assert!(world.last_refusal().contains("nothing is new since revision 2"));
    assert_eq!(world.status(), "ready");
}

#[test]
fn the_execution_replays_the_approved_calls_one_by_one_without_the_model() {
    let world = replaying();
    assert_eq!(world.session.turn.as_ref().unwrap().work, Work::Replays);
    let world = world.calls_start();
    assert_eq!((world.open_calls().len(), world.step_ends()), (1, vec![]));
    let world = world.calls_give(&wrote("a.txt")).calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(world.step_ends(), [(1, "done"), (2, "done")]);
    assert_eq!((world.status().as_str(), next(&world.session)), ("done", Next::Nothing));
    let ended = world.session.last_ended.as_ref().unwrap();
    assert_eq!(
        (ended.account.in_words().as_str(), ended.touched.len()),
        ("all 2 steps are done", 2)
    );
    let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
    assert_eq!((card.basis, card.gaps), (Some(Basis::Observed), vec![]), "the record shows it");
    assert_eq!(card.claimed.as_deref(), Some("all 2 recorded steps ran"));
    assert_eq!(card.observed.first().map(String::as_str), Some("2 calls ran"));
    let asked = world
        .events
        .iter()
        .filter(|event| matches!(event, SessionEvent::Turn(TurnEvent::ModelCallStarted { .. })));
    assert_eq!(asked.count(), 2, "the model was asked to plan and to answer, and never to execute");
}

#[test]
fn interception_ends_at_the_approval() {
    let world = collected().shown();
    let command = world.approve_command(world.digest(), planwright_domain::command::Start::Hold);
    let world = world.does(command).says("x").turn_starts().answers("", vec![write("c.txt")]);
    assert!(!matches!(next(&world.session), Next::UsePlanTool { .. }));
}

#[test]
fn a_step_that_fails_stops_the_rest_and_can_be_resumed() {
    let world = replaying().calls_start().calls_give(&failing("disk full"));
    assert_eq!((world.status().as_str(), world.step_ends()), ("failed", vec![(1, "failed")]));
    let command = world.resume_command();
    let world = world.does(command).turn_starts().calls_start().calls_give(&wrote("a.txt"));
    let world = world.calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(world.status(), "done");
}

#[test]
fn a_failed_step_can_be_skipped_and_the_rest_goes_on() {
    let world = replaying().calls_start().calls_give(&failing("disk full"));
    let world = world.does(PersonCommand::Decide(Decision::SkipStep { step: 1 }));
    let command = world.resume_command();
    let world = world.does(command).turn_starts().calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(world.step_ends(), [(1, "failed"), (1, "skipped"), (2, "done")]);
    let ended = world.session.last_ended.as_ref().unwrap();
    assert_eq!(ended.account.in_words(), "1 steps are done, 1 skipped");
}

#[test]
fn a_step_that_came_out_cannot_be_skipped() {
    let world = replaying().calls_start().calls_give(&wrote("a.txt")).calls_start();
    let mut world = world.calls_give(&failing("disk full"));
    let skip = |step| PersonCommand::Decide(Decision::SkipStep { step });
    let refusal = world.person(skip(1)).unwrap_err();
    assert_eq!(refusal.to_string(), "there is no such step 1; there are 2");
    assert_eq!(world.person(skip(9)).unwrap_err().kind(), "no_such_step");
}

/// Invariant: `effects-bracketed`.
#[test]
fn a_step_left_running_that_falls_in_doubt_after_a_resume_is_not_made_again_unasked() {
    let world = replaying().calls_start().does(PersonCommand::Stop);
    let command = world.resume_command();
    let world = world.does(command).the_process_dies();
    assert_eq!((world.status().as_str(), world.session.queue.len()), ("executing_paused", 0));
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Doubt));
}

#[test]
fn a_step_in_doubt_or_under_way_cannot_be_skipped() {
    let skip = PersonCommand::Decide(Decision::SkipStep { step: 1 });
    let mut doubted = replaying().calls_start().the_process_dies();
    assert_eq!(doubted.person(skip.clone()).unwrap_err().kind(), "step_under_way");
    let mut left = replaying().calls_start().does(PersonCommand::Stop);
    assert_eq!(left.person(skip).unwrap_err().kind(), "step_under_way");
}

#[test]
fn where_the_approver_says_continue_the_steps_after_a_failure_run_and_the_plan_fails_at_the_end() {
    let mut world = collected().shown();
    let plain = Approving::of(world.digest(), terms());
    let approving = Approving { on_failure: OnFailure::Continue, ..plain };
    world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap();
    let world = world.turn_starts().calls_start().calls_give(&failing("disk full"));
    assert_eq!(world.status(), "executing");
    let world = world.calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(
        (world.status().as_str(), world.step_ends()),
        ("failed", vec![(1, "failed"), (2, "done")])
    );
    let command = world.resume_command();
    let world = world.does(command).turn_starts().calls_start();
    assert_eq!(world.open_calls().len(), 1, "only what failed is made again");
    assert_eq!(world.calls_give(&wrote("a.txt")).status(), "done");
}

#[test]
fn a_step_whose_process_died_is_in_doubt_and_a_person_says_what_became_of_it() {
    let world = replaying().calls_start().the_process_dies();
    assert_eq!(next(&world.session), Next::WaitForPerson(Waiting::Doubt));
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::Happened);
    let world = world.does(command).turn_starts();
    assert_eq!(world.step_ends(), [(1, "done")]);
    let world = world.calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(world.status(), "done");

    let mut world = replaying().calls_start().the_process_dies();
    world.now = world.now.plus_micros(20_000_000);
    let first = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(first, Verdict::DidNotHappen);
    let world = world.does(command).turn_starts().calls_start();
    let again = world.open_calls()[0];
    assert_ne!(again.call, first, "a call that is made again by a person's word is another call");
    assert_eq!(again.number, 1);
}

#[test]
fn the_last_step_settled_by_a_person_completes_the_plan() {
    let world =
        replaying().calls_start().calls_give(&wrote("a.txt")).calls_start().the_process_dies();
    let call = *world.session.doubts.keys().next().unwrap();
    let command = world.settle_command(call, Verdict::Happened);
    assert_eq!(world.does(command).status(), "done");
}

#[test]
fn a_stop_pauses_the_replay_and_what_runs_is_recorded_on_its_step() {
    let world = replaying().calls_start();
    let attempt = world.open_calls()[0];
    let mut world = world.does(PersonCommand::Stop);
    let result = wrote("a.txt");
    world
        .system(planwright_domain::command::SystemCommand::RecordResult {
            attempt,
            result,
            note_every: 0,
        })
        .unwrap();
    assert_eq!(
        (world.status().as_str(), world.step_ends()),
        ("executing_paused", vec![(1, "done")])
    );
    let command = world.resume_command();
    let world = world.does(command).turn_starts().calls_start().calls_give(&wrote("b.txt"));
    assert_eq!(world.status(), "done");
}

#[test]
fn a_last_step_that_comes_out_while_its_next_turn_waits_completes_the_plan() {
    let world = replaying().calls_start().calls_give(&wrote("a.txt")).calls_start();
    let attempt = world.open_calls()[0];
    let world = world.does(PersonCommand::Stop);
    let command = world.resume_command();
    let mut world = world.does(command);
    let result = wrote("b.txt");
    world
        .system(planwright_domain::command::SystemCommand::RecordResult {
            attempt,
            result,
            note_every: 0,
        })
        .unwrap();
    let world = world.turn_starts();
    assert_eq!((world.status().as_str(), world.session.turn.is_none()), ("done", true));
}

#[test]
fn a_tool_that_changed_since_the_call_was_recorded_pauses_the_replay() {
    let world = replaying().calls_start_with(Digest::of(b"other"));
    assert_eq!((world.status().as_str(), world.session.open.len()), ("executing_paused", 0));
}

#[test]
fn internal_tools_are_never_recorded() {
    let mut asks = read("x");
    if let CallKind::Tool(facts) = &mut asks.2 {
        facts.effect = planwright_domain::effect::Effect::Internal;
    }
    let world = collecting_calls().answers("", vec![asks]);
    assert_eq!(world.due_calls().len(), 1);
}
