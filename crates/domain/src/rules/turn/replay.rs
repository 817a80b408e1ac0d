//! The recorded calls of a plan, as they come out.

use crate::{
    model::{
        id::TurnId,
        plan::{
            Ended, Plan,
            event::PlanEvent,
            step::{OnFailure, StepEnd},
        },
        session::{Session, SessionEvent},
        turn::{
            Call, CallResult, CallState, CallStatus, Turn, Work,
            ending::{answers, event, unrun},
            event::{TurnEnd, TurnEvent},
        },
    },
    rules::plan,
};

/// A recorded call came out: the next one is due, or the execution has ended.
pub(crate) fn step_ended(
    session: &Session,
    turn: Option<TurnId>,
    step: u32,
    result: &CallResult,
) -> Vec<SessionEvent> {
    let failed = |why: &str| format!("step {step} failed: {why}");
    let (end, why) = match result.status {
        CallStatus::Done => (StepEnd::Done, None),
        CallStatus::Failed => {
            let why = shown(&result.output);
            (StepEnd::Failed { why: why.clone() }, Some(failed(&why)))
        }
    };
    let mut events = vec![SessionEvent::Plan(plan::decide::step_ended(step, end))];
    let replays = |open: &&Turn| Some(open.id) == turn && open.work == Work::Replays;
    let (Some(turn), Some(plan)) = (session.turn.as_ref().filter(replays), session.plan()) else {
        return events;
    };
    let on_failure = plan.status.approval().map(|approval| approval.on_failure);
    let is_left = |call: &&Call| call.step != Some(step) && call.state != CallState::Answered;
    let left = turn.calls().iter().any(|call| is_left(&call));
    let failures = failures(plan, turn, step, why.as_deref());
    let ends = match (&why, on_failure) {
        (Some(_), Some(OnFailure::Stop) | None) => true,
        (Some(_), Some(OnFailure::Continue)) | (None, _) => !left,
    };
    if !ends {
        return events;
    }
    let rest = unrun(turn, "step_failed", "not run: an earlier step failed");
    let own = turn.calls().iter().find(|call| call.step == Some(step));
    let own = own.map(|call| call.requested.id);
    events.extend(rest.into_iter().filter(|rest| own.is_none_or(|own| !answers(rest, own))));
    let end = TurnEnd::Planned { plan: plan.id };
    events.push(event(TurnEvent::TurnFinished { turn: turn.id, end }));
    // The card lists what this call did to the world, too.
    let mut after = plan.clone();
    after.outcomes.insert(step, StepEnd::Done);
    plan::evolve::call_ended(&mut after, Some(step), result);
    events.push(SessionEvent::Plan(if failures.is_empty() {
        plan::decide::ending_of(&after, Ended::Completed, plan::decide::steps_word(&after))
    } else {
        PlanEvent::PlanFailed { summary: failures.join("; ") }
    }));
    events
}

/// What failed in this execution, in words.
fn failures(plan: &Plan, turn: &Turn, step: u32, why: Option<&str>) -> Vec<String> {
    let of_turn = |number: &u32| turn.calls().iter().any(|call| call.step == Some(*number));
    let earlier = plan.outcomes.iter().filter(|(number, _)| **number != step && of_turn(number));
    let earlier = earlier.filter_map(|(number, end)| match end {
        StepEnd::Failed { why } => Some(format!("step {number} failed: {why}")),
        StepEnd::Done
        | StepEnd::Reported { .. }
        | StepEnd::Skipped { .. }
        | StepEnd::Carried { .. } => None,
    });
    earlier.chain(why.map(str::to_owned)).collect()
}

/// The beginning of an output, for a line of words.
fn shown(output: &str) -> String {
    const SHOWN_CHARS: usize = 300;
    output.chars().take(SHOWN_CHARS).collect()
}
