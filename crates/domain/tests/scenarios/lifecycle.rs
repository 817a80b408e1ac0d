//! Every cell of the lifecycle table, named after it.

use planwright_domain::{
    command::{Ending, PersonCommand, Start},
    plan::{Ended, Review},
};

use crate::given::*;

/// What a cell asks of a world, and where the plan then stands or why not.
fn outcome(mut world: World, command: impl FnOnce(&World) -> PersonCommand) -> String {
    let command = command(&world);
    let before = world.session.clone();
    match world.person(command) {
        Ok(_) => world.status(),
        Err(refusal) => {
            assert_eq!(world.session, before, "a refusal changes nothing");
            format!("refused: {}", refusal.kind())
        }
    }
}

fn approve(world: &World) -> PersonCommand {
    world.approve_command(
        world.plan().current.as_ref().map_or(schema(), |head| head.digest),
        Start::AtOnce,
    )
}

fn changes(world: &World) -> PersonCommand {
    world.changes_command(world.plan().current.as_ref().map_or(schema(), |head| head.digest))
}

fn reject(world: &World) -> PersonCommand {
    world.reject_command(world.plan().current.as_ref().map_or(schema(), |head| head.digest))
}

fn resume(world: &World) -> PersonCommand {
    world.resume_command()
}

fn plan_stop(_: &World) -> PersonCommand {
    PersonCommand::PausePlan
}

fn stop(_: &World) -> PersonCommand {
    PersonCommand::Stop
}

fn off(_: &World) -> PersonCommand {
    PersonCommand::EndPlan(Ending::Off)
}

fn finish(_: &World) -> PersonCommand {
    PersonCommand::EndPlan(Ending::Done)
}

fn reset(_: &World) -> PersonCommand {
    PersonCommand::Reset
}

macro_rules! cells {
    ($($name:ident: $world:expr, $command:expr => $outcome:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(outcome($world, $command), $outcome);
        }
    )*};
}

cells! {
    a_collecting_plan_cannot_be_approved: collecting(), approve => "refused: nothing_to_decide";
    a_collecting_plan_takes_no_request_for_changes: collecting(), changes => "refused: nothing_to_decide";
    a_collecting_plan_cannot_be_rejected: collecting(), reject => "refused: nothing_to_decide";
    a_collecting_plan_cannot_be_resumed: collecting(), resume => "refused: nothing_to_resume";
    a_collecting_plan_has_no_execution_to_stop: collecting(), plan_stop => "refused: nothing_to_stop";
    stop_ends_the_turn_of_a_collecting_plan: collecting().says("x").turn_starts(), stop => "collecting";
    a_collecting_plan_ends_cancelled_when_done: collecting(), finish => "cancelled";
    a_collecting_plan_ends_cancelled_when_off: collecting(), off => "cancelled";
    a_collecting_plan_ends_cancelled_at_reset: collecting(), reset => "cancelled";

    a_ready_plan_that_is_approved_executes: ready().shown(), approve => "executing";
    a_ready_plan_that_is_approved_with_hold_waits: ready().shown(), |world: &World| world.approve_command(world.digest(), Start::Hold) => "approved";
    a_ready_plan_stays_ready_when_changes_are_requested: ready(), changes => "ready";
    a_ready_plan_that_is_rejected_ends: ready(), reject => "rejected";
    a_ready_plan_cannot_be_resumed: ready(), resume => "refused: nothing_to_resume";
    a_ready_plan_has_no_execution_to_stop: ready(), plan_stop => "refused: nothing_to_stop";
    stop_ends_the_turn_of_a_ready_plan: ready().says("x").turn_starts(), stop => "ready";
    a_ready_plan_ends_cancelled_when_done: ready(), finish => "cancelled";
    a_ready_plan_ends_cancelled_when_off: ready(), off => "cancelled";
    a_ready_plan_ends_cancelled_at_reset: ready(), reset => "cancelled";
    a_withdrawn_revision_cannot_be_approved: withdrawn(), approve => "refused: revision_withdrawn";

    an_approved_plan_is_already_decided: held(), approve => "refused: already_decided";
    an_approved_plan_takes_no_request_for_changes: held(), changes => "refused: already_decided";
    an_approved_plan_cannot_be_rejected: held(), reject => "refused: already_decided";
    an_approved_plan_that_is_resumed_executes: held(), resume => "executing";
    an_approved_plan_has_no_execution_to_stop: held(), plan_stop => "refused: nothing_to_stop";
    stop_ends_the_turn_of_an_approved_plan: held().says("x").turn_starts(), stop => "approved";
    an_approved_plan_ends_cancelled_when_done: held(), finish => "cancelled";
    an_approved_plan_ends_cancelled_when_off: held(), off => "cancelled";
    an_approved_plan_ends_cancelled_at_reset: held(), reset => "cancelled";

    a_running_plan_is_already_decided: running(), approve => "refused: already_decided";
    a_running_plan_takes_no_request_for_changes: running(), changes => "refused: already_decided";
    a_running_plan_cannot_be_rejected: running(), reject => "refused: already_decided";
    a_running_plan_needs_no_resume: running(), resume => "refused: nothing_to_resume";
    a_running_plan_that_is_stopped_pauses: running(), stop => "executing_paused";
    a_running_plan_whose_execution_is_stopped_pauses: running(), plan_stop => "executing_paused";
    a_running_plan_is_complete_by_the_persons_word: running(), finish => "done";
    a_running_plan_ends_cancelled_when_off: running(), off => "cancelled";
    a_running_plan_ends_cancelled_at_reset: running(), reset => "cancelled";

    a_paused_plan_is_already_decided: paused(), approve => "refused: already_decided";
    a_paused_plan_takes_no_request_for_changes: paused(), changes => "refused: already_decided";
    a_paused_plan_cannot_be_rejected: paused(), reject => "refused: already_decided";
    a_paused_plan_that_is_resumed_runs: paused(), resume => "executing";
    a_paused_plan_that_is_stopped_stays_paused: paused(), stop => "executing_paused";
    a_paused_plan_is_complete_by_the_persons_word: paused(), finish => "done";
    a_paused_plan_ends_cancelled_when_off: paused(), off => "cancelled";
    a_paused_plan_ends_cancelled_at_reset: paused(), reset => "cancelled";

    a_failed_plan_cannot_be_approved: failed(), approve => "refused: nothing_to_decide";
    a_failed_plan_takes_no_request_for_changes: failed(), changes => "refused: nothing_to_decide";
    a_failed_plan_cannot_be_rejected: failed(), reject => "refused: nothing_to_decide";
    a_failed_plan_that_is_resumed_executes: failed(), resume => "executing";
    a_failed_plan_has_nothing_to_stop: failed(), stop => "refused: nothing_running";
    a_failed_plan_has_no_execution_to_stop: failed(), plan_stop => "refused: nothing_to_stop";
    a_failed_plan_ends_cancelled_when_done: failed(), finish => "cancelled";
    a_failed_plan_ends_cancelled_when_off: failed(), off => "cancelled";
    a_failed_plan_ends_cancelled_at_reset: failed(), reset => "cancelled";

    plan_work_that_is_active_cannot_be_started: ready(), |_: &World| start_plan(uuid::Uuid::from_u128(99).into(), Default::default()) => "refused: work_already_active";
}

#[test]
fn new_content_makes_a_collecting_plan_ready() {
    let world = new_content(collecting());
    assert_eq!(
        (world.status().as_str(), world.plan().current.as_ref().unwrap().number),
        ("ready", 1)
    );
}

#[test]
fn new_content_gives_a_ready_plan_its_next_revision() {
    let first = ready();
    let world = new_content(first.clone());
    assert_eq!(
        (world.status().as_str(), world.plan().current.as_ref().unwrap().number),
        ("ready", 2)
    );
    assert_eq!(world.plan().id, first.plan().id);
    assert_ne!(world.digest(), first.digest());
}

#[test]
fn new_content_opens_a_withdrawn_plan_for_approval_again() {
    let world = new_content(withdrawn().turn_starts());
    assert_eq!(world.plan().current.as_ref().unwrap().review, Review::Open);
    assert_eq!(outcome(world.shown(), approve), "executing");
}

fn superseded(before: World) {
    let old = before.plan().id;
    let world = new_content(before);
    assert_eq!(world.status(), "ready");
    assert_eq!(world.plan().predecessor, Some(old));
    let ended = world.session.last_ended.as_ref().unwrap();
    assert_eq!((ended.plan, ended.ended), (old, Ended::Superseded));
    assert_ne!(world.plan().id, old);
    assert_eq!(world.plan().status.approval(), None, "an approval never carries over");
}

#[test]
fn new_content_supersedes_an_approved_plan() {
    superseded(held());
}

#[test]
fn new_content_supersedes_a_running_plan() {
    superseded(running());
}

#[test]
fn new_content_supersedes_a_paused_plan() {
    superseded(paused());
}

#[test]
fn new_content_supersedes_a_failed_plan() {
    superseded(failed());
}

#[test]
fn without_plan_work_every_plan_command_is_refused() {
    for command in [
        a_session().approve_command(schema(), Start::AtOnce),
        a_session().changes_command(schema()),
        a_session().reject_command(schema()),
        a_session().resume_command(),
        PersonCommand::PausePlan,
        PersonCommand::EndPlan(Ending::Off),
        PersonCommand::EndPlan(Ending::Done),
        PersonCommand::RecordShown { digest: schema() },
    ] {
        assert_eq!(outcome(a_session(), |_| command), "refused: work_inactive");
    }
}

#[test]
fn a_superseded_plan_takes_its_waiting_execution_out_of_the_queue() {
    let world = held().says("rework it").turn_starts();
    let command = world.resume_command();
    let world = new_content(world.does(command)).answers("there", vec![]);
    assert_eq!((world.status().as_str(), world.session.queue.len()), ("ready", 0));
}
