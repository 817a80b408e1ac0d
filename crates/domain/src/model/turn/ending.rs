//! What is recorded when a turn ends before its time: an answer for every call that has none, and what leaves the queue.

use crate::model::{
    actor::Person,
    id::{CallId, PlanId},
    refusal::Refusal,
    session::{Session, SessionEvent},
    turn::{
        Call, CallState, Queued, ToolReply, Turn,
        event::{TurnEnd, TurnEvent},
    },
};

/// Ends the open turn by a person's word: every call gets its answer, what runs is left to end.
pub(crate) fn stopped(session: &Session, by: &Person) -> Vec<SessionEvent> {
    let Some(turn) = &session.turn else { return Vec::new() };
    let mut events = unrun(turn, "stopped", "not run: a person stopped the turn");
    events.push(event(TurnEvent::TurnFinished {
        turn: turn.id,
        end: TurnEnd::Stopped { by: by.clone() },
    }));
    events
}

/// An answer for every call of the turn that has none.
pub(crate) fn unrun(turn: &Turn, kind: &str, words: &str) -> Vec<SessionEvent> {
    let reply = |call: &Call| match call.state {
        CallState::Pending(_) | CallState::Asking(_) => {
            Some(ToolReply::Refused { kind: kind.into(), words: words.into() })
        }
        CallState::Open(_) => Some(ToolReply::LeftRunning),
        CallState::Answered => None,
    };
    let answer = |call: &Call| Some((call.requested.id, reply(call)?));
    let unanswered = turn.calls().iter().filter_map(answer);
    unanswered.map(|(call, reply)| event(TurnEvent::CallAnswered { call, reply })).collect()
}

pub(crate) fn answers(answer: &SessionEvent, call: CallId) -> bool {
    matches!(answer, SessionEvent::Turn(TurnEvent::CallAnswered { call: answered, .. }) if *answered == call)
}

/// What waits for a plan that has ended or paused leaves the queue.
pub(crate) fn withdrawn(session: &Session, plan: PlanId) -> impl Iterator<Item = SessionEvent> {
    let about = move |waiting: &&Queued| waiting.cause.plan() == Some(plan);
    session.queue.iter().filter(about).map(|waiting| SessionEvent::CauseWithdrawn {
        queued: waiting.seq,
        why: "the plan was ended, paused or replaced before its turn came".into(),
    })
}

pub(crate) fn event(event: TurnEvent) -> SessionEvent {
    SessionEvent::Turn(event)
}

pub(crate) fn moved_on(what: &str) -> Refusal {
    Refusal::MovedOn { what: what.into() }
}
