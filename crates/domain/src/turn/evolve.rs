//! What a turn's event means. Never judges: that was `decide`'s job, once.

use crate::{
    effect::Touched,
    id::{CallId, PlanId, Seq},
    plan::{self, PlanWork},
    session::{CorruptJournal, Session},
    turn::{Arrival, Call, CallKind, CallState, Doubt, OpenCall, Step, Turn, TurnEvent},
};

/// How much of a call's arguments is kept for display.
const ARGUMENTS_SHOWN_CHARS: usize = 200;

/// Applies a fact that stands at this place in the stream.
pub(crate) fn evolve(
    session: &mut Session,
    seq: Seq,
    event: &TurnEvent,
) -> Result<(), CorruptJournal> {
    match event {
        TurnEvent::TurnStarted { turn, queued } => {
            let at = session.queue.iter().position(|waiting| waiting.seq == *queued);
            let at = at.ok_or_else(|| CorruptJournal::new(seq, "a turn without a queued cause"))?;
            let cause = session.queue.remove(at);
            let step = Step::ModelDue { attempt: 1, not_before: None };
            session.turn =
                Some(Turn { id: *turn, cause, started: seq, round: 1, step, planned: None });
        }
        TurnEvent::ModelCallStarted { attempt, bracket, entered, .. } => {
            session.queue.retain(|waiting| !entered.contains(&waiting.seq));
            open(session, seq)?.step = Step::ModelOpen { attempt: *attempt, bracket: *bracket };
        }
        TurnEvent::ModelAnswered { answer, arrival, .. } => {
            session.usage = session.usage.plus(answer.usage);
            if *arrival == Arrival::InTime {
                let pending = |requested: &crate::turn::RequestedCall| Call {
                    requested: requested.clone(),
                    state: CallState::Pending(1),
                };
                let turn = open(session, seq)?;
                turn.step = Step::Calls(answer.calls.iter().map(pending).collect());
            }
        }
        TurnEvent::ModelCallFailed { attempt, retry_at, .. } => {
            let step = Step::ModelDue { attempt: attempt + 1, not_before: *retry_at };
            open(session, seq)?.step = step;
        }
        TurnEvent::ModelCallOrphaned { attempt, .. } => {
            open(session, seq)?.step = Step::ModelDue { attempt: attempt + 1, not_before: None };
        }
        TurnEvent::CallStarted { call, attempt, bracket, plan } => {
            let turn = open(session, seq)?;
            let id = turn.id;
            let asked = find(turn, *call)
                .ok_or_else(|| CorruptJournal::new(seq, "an unknown call started"))?;
            asked.state = CallState::Open(*attempt);
            let CallKind::Tool(facts) = &asked.requested.kind else {
                return Err(CorruptJournal::new(seq, "a call started that is no tool's"));
            };
            let started = OpenCall {
                turn: id,
                tool: asked.requested.tool.clone(),
                arguments: asked.requested.arguments.chars().take(ARGUMENTS_SHOWN_CHARS).collect(),
                attempt: *attempt,
                bracket: *bracket,
                facts: facts.clone(),
                plan: *plan,
            };
            session.open.insert(*call, started);
        }
        TurnEvent::CallFinished { call, attempt, result } => {
            let open = session.open.remove(call);
            let doubt = session.doubts.remove(call);
            let plan = open.and_then(|open| open.plan).or(doubt.and_then(|doubt| doubt.plan));
            touch(session, plan, &result.touched);
            close(session, *call, |state| state == CallState::Open(*attempt));
        }
        TurnEvent::CallAnswered { call, .. } => close(session, *call, |_| true),
        TurnEvent::CallOrphaned { call, attempt } => {
            session.open.remove(call);
            if let Some(call) = session.turn.as_mut().and_then(|turn| find(turn, *call))
                && call.state == CallState::Open(*attempt)
            {
                call.state = CallState::Pending(attempt + 1);
            }
        }
        TurnEvent::CallInDoubt { call, attempt } => {
            let missing = || CorruptJournal::new(seq, "a call in doubt that never started");
            let open = session.open.remove(call).ok_or_else(missing)?;
            let doubt = Doubt {
                tool: open.tool,
                arguments: open.arguments,
                attempt: *attempt,
                deadline: open.bracket.deadline,
                plan: open.plan,
            };
            session.doubts.insert(*call, doubt);
            close(session, *call, |_| true);
        }
        TurnEvent::DoubtSettled { call, .. } => {
            session.doubts.remove(call);
        }
        TurnEvent::TurnFinished { .. } => session.turn = None,
    }
    Ok(())
}

fn open(session: &mut Session, seq: Seq) -> Result<&mut Turn, CorruptJournal> {
    session.turn.as_mut().ok_or_else(|| CorruptJournal::new(seq, "a turn's event without a turn"))
}

fn find(turn: &mut Turn, id: CallId) -> Option<&mut Call> {
    match &mut turn.step {
        Step::Calls(calls) => calls.iter_mut().find(|call| call.requested.id == id),
        Step::ModelDue { .. } | Step::ModelOpen { .. } => None,
    }
}

/// Gives a call its answer; when all have theirs, the model is due.
fn close(session: &mut Session, id: CallId, fits: impl Fn(CallState) -> bool) {
    let Some(turn) = &mut session.turn else { return };
    if let Some(call) = find(turn, id)
        && fits(call.state)
    {
        call.state = CallState::Answered;
        call.requested.arguments = String::new();
    }
    if let Step::Calls(calls) = &turn.step
        && calls.iter().all(|call| call.state == CallState::Answered)
    {
        turn.round += 1;
        turn.step = Step::ModelDue { attempt: 1, not_before: None };
    }
}

fn touch(session: &mut Session, plan: Option<PlanId>, touched: &[Touched]) {
    if let PlanWork::Active(active) = &mut session.work
        && plan == Some(active.id)
    {
        plan::evolve::touch(active, touched);
    }
}
