//! Permission: what is not leased asks, is decided once, and denied when nobody decides.

use planwright_domain::{
    attempt::ModelAttempt,
    command::{Approving, Decision, Permit, PersonCommand, SystemCommand},
    digest::Digest,
    effect::Declared,
    next::{Due, Next, Waiting, next, waiting},
    plan::{PauseReason, PlanStatus, Progress},
    turn::{CallState, ToolReply},
};

use crate::given::*;

fn asking() -> World {
    a_session().says("x").turn_starts().answers("", vec![write("a.txt")]).calls_start()
}

/// An execution whose approval leases nothing.
fn bare(calls: Vec<Asks>) -> World {
    granted(Some(Declared::default()), calls)
}

fn granted(grant: Option<Declared>, calls: Vec<Asks>) -> World {
    let mut world = ready().shown();
    let approving = Approving { grant, ..Approving::of(world.digest(), terms()) };
    world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap();
    world.turn_starts().answers("", calls).calls_start()
}

fn progress(world: &World) -> Progress {
    match &world.plan().status {
        PlanStatus::Executing(_, progress) => progress.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_that_nothing_leases_asks_in_every_status() {
    for world in [a_session(), collecting(), ready(), withdrawn(), held(), paused(), failed()] {
        let status = world.status();
        let world = world.says("x").turn_starts().answers("", vec![write("a.txt")]).calls_start();
        assert!(world.session.open.is_empty(), "{status}");
        assert_eq!(waiting(&world.session), Some(Waiting::Permission), "{status}");
        let ask = world.session.ask.as_ref().unwrap();
        assert_eq!(ask.why, "write_file changes things, and no approved plan leases it");
    }
}

#[test]
fn a_call_that_asks_is_a_row_with_an_end_and_not_a_process() {
    let world = asking();
    let Next::AwaitPermission { until, .. } = next(&world.session) else { panic!("it waits") };
    assert_eq!(next(&world.session).due(), Due::At(until));
}

#[test]
fn allowed_once_it_runs_once_and_the_same_call_asks_again() {
    let world = asking().permitted(Permit::Once).calls_start();
    assert_eq!(world.session.open.len(), 1);
    let world = world.calls_give(&wrote("a.txt")).answers("", vec![write("a.txt")]).calls_start();
    assert!(world.session.ask.is_some());
}

#[test]
fn denied_it_is_told_so_and_the_turn_goes_on() {
    let world = asking().permitted(Permit::Deny);
    assert_eq!(world.last_refusal(), "a person denied this call");
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { round: 2, .. }, .. }
    ));
}

/// Invariant: `one-decision`.
#[test]
fn a_call_is_decided_on_once_by_the_digest_that_was_shown() {
    let mut world = asking();
    let digest = world.asks();
    let decide = |digest, permit| PersonCommand::Decide(Decision::Permit { digest, permit });
    let stale = world.person(decide(Digest::of(b"other"), Permit::Once)).unwrap_err();
    assert_eq!(stale.kind(), "no_such_ask");
    world.person(decide(digest, Permit::Once)).unwrap();
    assert_eq!(world.person(decide(digest, Permit::Deny)).unwrap_err().kind(), "no_such_ask");
}

/// Invariant: `model-never-approves`.
#[test]
fn only_a_person_who_may_decide_can_allow() {
    let mut world = asking();
    let digest = world.asks();
    let command = PersonCommand::Decide(Decision::Permit { digest, permit: Permit::Once });
    let refusal = world
        .ask(planwright_domain::command::SessionCommand::Person(a_guest(), command))
        .unwrap_err();
    assert_eq!(refusal.kind(), "may_not_decide");
}

#[test]
fn a_tool_that_changed_between_permission_and_start_asks_again() {
    let world = asking().permitted(Permit::Once).calls_start_with(Digest::of(b"other"));
    assert_eq!(world.session.open.len(), 0);
    assert_eq!(world.session.ask.as_ref().unwrap().why, "write_file changed since it was allowed");
}

#[test]
fn when_nobody_decides_it_is_denied_and_the_execution_pauses() {
    let mut world = bare(vec![write("a.txt"), write("b.txt")]);
    let call = world.session.ask.as_ref().unwrap().call;
    let early = world.system(SystemCommand::ExpireAsk { call }).unwrap_err();
    assert_eq!(early.kind(), "moved_on");
    world.now = world.now.plus_micros(ASK_MICROS);
    assert_eq!(world.permit(Permit::Once).unwrap_err().kind(), "ask_expired");
    world.system(SystemCommand::ExpireAsk { call }).unwrap();
    let reason = PauseReason::PermissionExpired { tool: "write_file".into() };
    assert_eq!(progress(&world), Progress::Paused(reason));
    assert_eq!((world.session.turn.is_none(), world.session.ask.is_none()), (true, true));
    let refused =
        world.reply().into_iter().filter(|reply| matches!(reply, ToolReply::Refused { .. }));
    assert_eq!(refused.count(), 2, "every call is answered");
}

#[test]
fn without_a_plan_an_expired_call_is_denied_and_the_turn_goes_on() {
    let mut world = asking();
    let call = world.session.ask.as_ref().unwrap().call;
    world.now = world.now.plus_micros(ASK_MICROS);
    world.system(SystemCommand::ExpireAsk { call }).unwrap();
    assert!(matches!(
        next(&world.session),
        Next::CallModel { attempt: ModelAttempt { round: 2, .. }, .. }
    ));
}

#[test]
fn a_call_outside_the_envelope_parks_the_execution_until_a_person_allows_it() {
    let world = bare(vec![write("src/a.txt")]);
    let asks = PauseReason::AsksPermission { tool: "write_file".into() };
    assert_eq!(progress(&world), Progress::Paused(asks));
    let world = world.permitted(Permit::Once);
    assert_eq!(progress(&world), Progress::Running);
    assert_eq!(world.calls_start().session.open.len(), 1);
}

#[test]
fn while_a_call_asks_the_execution_cannot_be_resumed_around_it() {
    let mut world = bare(vec![write("a.txt")]);
    let command = world.resume_command();
    assert_eq!(world.person(command).unwrap_err().kind(), "permission_pending");
    let skip = PersonCommand::Decide(Decision::SkipStep { step: 1 });
    assert_eq!(world.person(skip).unwrap_err().kind(), "permission_pending");
}

#[test]
fn allowed_until_the_plan_ends_it_covers_the_shown_directory_and_no_other() {
    let world = bare(vec![write("src/a.txt")]).permitted(Permit::UntilPlanEnds).calls_start();
    let world = world.calls_give(&wrote("src/a.txt"));
    let world = world.answers("", vec![write("src/b.txt")]).calls_start();
    assert_eq!(world.session.open.len(), 1, "the same directory");
    let world = world.calls_give(&wrote("src/b.txt"));
    for other in ["docs/a.txt", "src/../a.txt", "srcs/a.txt", "/src/a.txt"] {
        let world = world.clone().answers("", vec![write(other)]).calls_start();
        assert_eq!(world.session.open.len(), 0, "{other}");
    }
    let edited = world.answers("", vec![Asks("edit_file", write("src/a.txt").1, write("x").2)]);
    assert_eq!(edited.calls_start().session.open.len(), 0, "another tool");
}

#[test]
fn a_grant_ends_with_the_plan() {
    let world = bare(vec![write("src/a.txt")]).permitted(Permit::UntilPlanEnds).calls_start();
    let world = world.calls_give(&wrote("src/a.txt")).answers("", vec![report("done")]);
    let world = world.plan_tools_run().answers("done", vec![]);
    let world =
        world.says("more").turn_starts().answers("", vec![write("src/b.txt")]).calls_start();
    assert!(world.session.ask.is_some());
}

#[test]
fn without_a_plan_or_an_aim_nothing_lasting_can_be_allowed() {
    assert_eq!(asking().permit(Permit::UntilPlanEnds).unwrap_err().kind(), "no_plan_to_grant_to");
    assert_eq!(bare(vec![mail()]).permit(Permit::UntilPlanEnds).unwrap_err().kind(), "no_pattern");
}

#[test]
fn instead_of_allowing_a_person_has_the_plan_revised() {
    let world = bare(vec![write("a.txt"), write("b.txt")]);
    let world = world.permitted(Permit::Replan { text: "only read".into() });
    assert_eq!((world.status().as_str(), world.session.turn.is_none()), ("executing_paused", true));
    let world = new_content(world.turn_starts());
    assert_eq!((world.status().as_str(), world.plan().predecessor.is_some()), ("ready", true));
}

#[test]
fn a_stop_withdraws_the_question() {
    for command in [PersonCommand::Stop, PersonCommand::PausePlan, PersonCommand::Reset] {
        let world = bare(vec![write("a.txt")]).does(command);
        assert_eq!((world.session.ask.clone(), world.session.turn.is_none()), (None, true));
    }
    assert_eq!(asking().does(PersonCommand::Stop).session.ask, None);
}

#[test]
fn a_call_that_asks_is_one_state_of_a_call() {
    let world = asking();
    assert_eq!(world.session.turn.as_ref().unwrap().calls()[0].state, CallState::Asking(1));
    let world = world.permitted(Permit::Once);
    assert_eq!(world.session.turn.as_ref().unwrap().calls()[0].state, CallState::Pending(1));
}
