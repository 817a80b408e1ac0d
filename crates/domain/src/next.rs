//! What should happen now, from state alone.
//!
//! The only place that decides what runs, so recovery after a crash is simply asking it again.

use serde::{Deserialize, Serialize};

use crate::{
    model::{
        attempt::{CallAttempt, ModelAttempt},
        autonomy::schedule::Schedule,
        effect::{Bracket, Effect},
        id::{CallId, ScheduleId, Seq, TurnId},
        notebook::Removal,
        plan::{PlanStatus, Progress},
        session::{Session, life::Life},
        time::Time,
        tools::PlanTool,
        turn::{Call, CallKind, CallState, Cause, Queued, Step, Turn, Work},
    },
    rules::{notebook::tool::bound, tools::is_recorded},
};

/// After so long, a page that a foreign agent was writing when its session was deleted is written, or never will be.
const AGENT_WRITES_MICROS: i64 = 30 * 60 * 1_000_000;

/// What should happen now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the session is at rest.
    Nothing,
    /// A person should look.
    WaitForPerson(Waiting),
    /// Begin the turn for this cause.
    StartTurn(Seq),
    /// Ask the model.
    CallModel {
        /// The attempt.
        attempt: ModelAttempt,
        /// Not earlier than this.
        not_before: Option<Time>,
    },
    /// A limit of the owner is reached: the model is asked then, or when somebody raises it.
    AwaitLimit {
        /// The attempt.
        attempt: ModelAttempt,
        /// When it is looked at again.
        until: Time,
    },
    /// The model is being asked: wait, unless nobody works on it any more.
    AwaitModel {
        /// The attempt.
        attempt: ModelAttempt,
        /// The bracket.
        bracket: Bracket,
    },
    /// Answer this call of a plan tool, or record this call as a step.
    UsePlanTool {
        /// In this turn.
        turn: TurnId,
        /// The call.
        call: CallId,
    },
    /// A revision waits for a decision; then a person is reminded, or it expires.
    AwaitDecision {
        /// When.
        at: Time,
    },
    /// A schedule has its next slot then.
    AwaitSlot {
        /// The schedule.
        schedule: ScheduleId,
        /// When.
        at: Time,
    },
    /// This call waits for a person's permission, until then.
    AwaitPermission {
        /// The call.
        call: CallId,
        /// When it is denied by itself.
        until: Time,
    },
    /// Remove the pages of the notebook: the session was deleted.
    RemovePages {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// Not earlier than this.
        not_before: Option<Time>,
    },
    /// The pages are being removed: wait, unless nobody works on it any more.
    AwaitRemoval {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
    },
    /// Erase the session: it was deleted, and its pages are gone.
    Erase {
        /// Not earlier than this: an agent may be writing a page.
        not_before: Option<Time>,
    },
    /// Make these calls: reads of one answer together, the rest one by one, in order.
    RunCalls(Vec<CallAttempt>),
    /// These calls are being made: wait, unless nobody works on them any more.
    AwaitCalls(Vec<StartedCall>),
}

/// A call that is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedCall {
    /// The attempt.
    pub attempt: CallAttempt,
    /// The bracket.
    pub bracket: Bracket,
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A decision on the current revision.
    Decision,
    /// `/plan resume` for a plan that is held, paused or failed.
    Resume,
    /// A word on a call whose outcome is unknown.
    Doubt,
    /// Permission for a call.
    Permission,
    /// A word on a run that paused.
    Run,
    /// A higher limit of the owner, or the time at which it no longer holds.
    Limit,
}

/// When a session needs someone to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Not at all.
    Never,
    /// Now.
    Now,
    /// At this time.
    At(Time),
}

/// What should happen now.
#[must_use]
pub fn next(session: &Session) -> Next {
    let now = by_turn(session);
    match slot(session) {
        Some((schedule, at)) if now.is_rest() && is_before(at, now.due()) => {
            Next::AwaitSlot { schedule, at }
        }
        Some(_) | None => now,
    }
}

fn is_spoken_to(session: &Session) -> bool {
    session.queue.iter().any(|queued| queued.cause == Cause::Message)
}

/// The first slot of all schedules.
fn slot(session: &Session) -> Option<(ScheduleId, Time)> {
    if session.life == Life::Deleted {
        return None;
    }
    let begins = |(id, known): (&ScheduleId, &Schedule)| Some((*id, known.begins()?));
    let next = session.auto.schedules.iter().filter_map(begins);
    next.min_by_key(|(id, at)| (*at, *id))
}

fn is_before(at: Time, due: Due) -> bool {
    match due {
        Due::Never => true,
        Due::Now => false,
        Due::At(time) => at < time,
    }
}

fn by_turn(session: &Session) -> Next {
    let Some(turn) = &session.turn else { return between_turns(session) };
    match &turn.step {
        Step::ModelDue { attempt, not_before: Some(until) } if turn.paused.is_some() => {
            Next::AwaitLimit { attempt: turn.attempt(*attempt), until: *until }
        }
        Step::ModelDue { attempt, not_before } => Next::CallModel {
            attempt: turn.attempt(*attempt),
            // Someone who speaks to a turn that waits for a model wakes it.
            not_before: not_before
                .filter(|_| !(turn.asking.is_suspended() && is_spoken_to(session))),
        },
        Step::ModelOpen { attempt, bracket } => {
            Next::AwaitModel { attempt: turn.attempt(*attempt), bracket: *bracket }
        }
        Step::Calls(calls) if calls.iter().any(|call| matches!(call.state, CallState::Open(_))) => {
            started(session)
        }
        Step::Calls(calls) => match &session.ask {
            Some(ask) => Next::AwaitPermission { call: ask.call, until: ask.expires },
            None => due_calls(session, turn, calls),
        },
    }
}

/// Whether something is under way in this session: a turn is open, or someone must act.
#[must_use]
pub fn is_running(session: &Session) -> bool {
    session.turn.is_some() || !next(session).is_rest()
}

/// Whether a turn is under way that counts against its owner's limit: one that waits for a person, for a limit, or for a
/// server that is gone leaves room for another.
#[must_use]
pub fn takes_room(session: &Session) -> bool {
    session.ask.is_none()
        && session.turn.as_ref().is_some_and(|turn| {
            let waits = turn.asking.is_suspended() && matches!(turn.step, Step::ModelDue { .. });
            turn.paused.is_none() && !waits
        })
}

impl Next {
    /// Whether nothing is under way: the session is at rest, or only a person can move it.
    #[must_use]
    pub fn is_rest(&self) -> bool {
        match self {
            Self::Nothing
            | Self::WaitForPerson(_)
            | Self::AwaitDecision { .. }
            | Self::AwaitSlot { .. }
            | Self::AwaitLimit { .. }
            | Self::AwaitPermission { .. } => true,
            Self::StartTurn(_)
            | Self::CallModel { .. }
            | Self::AwaitModel { .. }
            | Self::UsePlanTool { .. }
            | Self::RemovePages { .. }
            | Self::AwaitRemoval { .. }
            | Self::Erase { .. }
            | Self::RunCalls(_)
            | Self::AwaitCalls(_) => false,
        }
    }

    /// When someone must act on it.
    #[must_use]
    pub fn due(&self) -> Due {
        match self {
            Self::Nothing | Self::WaitForPerson(_) => Due::Never,
            Self::StartTurn(_) | Self::UsePlanTool { .. } | Self::RunCalls(_) => Due::Now,
            Self::CallModel { not_before, .. }
            | Self::RemovePages { not_before, .. }
            | Self::Erase { not_before } => not_before.map_or(Due::Now, Due::At),
            Self::AwaitPermission { until, .. } | Self::AwaitLimit { until, .. } => Due::At(*until),
            Self::AwaitDecision { at } | Self::AwaitSlot { at, .. } => Due::At(*at),
            Self::AwaitModel { bracket, .. } | Self::AwaitRemoval { bracket, .. } => {
                Due::At(bracket.deadline)
            }
            Self::AwaitCalls(calls) => {
                let first = calls.iter().map(|call| call.bracket.deadline).min();
                first.map_or(Due::Now, Due::At)
            }
        }
    }
}

/// What the session waits for a person to do, whatever else is under way.
#[must_use]
pub fn waiting(session: &Session) -> Option<Waiting> {
    if !session.doubts.is_empty() {
        return Some(Waiting::Doubt);
    }
    if session.ask.is_some() {
        return Some(Waiting::Permission);
    }
    if session.turn.as_ref().is_some_and(|turn| turn.paused.is_some()) {
        return Some(Waiting::Limit);
    }
    let by_plan = session.plan().and_then(|plan| match &plan.status {
        PlanStatus::Ready if plan.awaits_decision() => Some(Waiting::Decision),
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_) => Some(Waiting::Resume),
        PlanStatus::Collecting
        | PlanStatus::Ready
        | PlanStatus::Executing(_, Progress::Running) => None,
    });
    by_plan.or_else(|| session.auto.asks().then_some(Waiting::Run))
}

fn between_turns(session: &Session) -> Next {
    match first(&session.queue) {
        _ if !session.open.is_empty() => started(session),
        Some(queued) => Next::StartTurn(queued.seq),
        None => match (session.notebook.removal, waiting(session), rings(session)) {
            (Some(removal), _, _) => by_removal(removal, session.notebook.removal_attempt),
            (None, _, _) if session.life == Life::Deleted => by_erasure(session),
            (None, Some(Waiting::Decision), Some(at)) => Next::AwaitDecision { at },
            (None, waits, _) => waits.map_or(Next::Nothing, Next::WaitForPerson),
        },
    }
}

/// When a person is reminded of the plan that waits, or it expires.
fn rings(session: &Session) -> Option<Time> {
    session.plan()?.waits?.next()
}

/// The cause whose turn it is: commit order, what a person began before what goes on by itself.
fn first(queue: &[Queued]) -> Option<&Queued> {
    let ticks = |queued: &&Queued| matches!(queued.cause, Cause::Tick { .. });
    queue.iter().find(|queued| !ticks(queued)).or_else(|| queue.first())
}

fn by_removal(removal: Removal, last: u32) -> Next {
    match removal.open {
        Some(bracket) => Next::AwaitRemoval { attempt: last, bracket },
        None => {
            Next::RemovePages { attempt: last.saturating_add(1), not_before: removal.not_before }
        }
    }
}

/// Of a session that was erased, nothing is left to do.
fn by_erasure(session: &Session) -> Next {
    let Some(deletion) = &session.deletion else { return Next::Nothing };
    let is_written = !session.notebook.agent_calls.is_empty();
    let not_before = is_written.then(|| deletion.at.plus_micros(AGENT_WRITES_MICROS));
    Next::Erase { not_before }
}

fn started(session: &Session) -> Next {
    let open = |(call, open): (&CallId, &crate::model::turn::OpenCall)| StartedCall {
        attempt: CallAttempt { call: *call, number: open.attempt },
        bracket: open.bracket,
    };
    Next::AwaitCalls(session.open.iter().map(open).collect())
}

fn due_calls(session: &Session, turn: &Turn, calls: &[Call]) -> Next {
    let pending = |call: &Call| match call.state {
        CallState::Pending(number) => Some(CallAttempt { call: call.requested.id, number }),
        CallState::Asking(_) | CallState::Open(_) | CallState::Answered => None,
    };
    let records =
        |call: &Call| session.plan().is_some_and(|plan| is_recorded(plan, &call.requested));
    let mut rest = calls.iter().filter(|call| pending(call).is_some()).peekable();
    let Some(front) = rest.peek() else { return Next::Nothing };
    // What is planned in the same answer is recorded first, wherever it stands in it.
    let drafts = |call: &&Call| records(call) || PlanTool::is_drafting(&call.requested.tool);
    let first = if PlanTool::is_finishing(&front.requested.tool) {
        calls.iter().filter(|call| pending(call).is_some()).find(drafts).unwrap_or(front)
    } else {
        front
    };
    let stands_in = session.plan().is_some() && bound(&first.requested).is_some();
    if first.requested.kind == CallKind::Plan || records(first) || stands_in {
        return Next::UsePlanTool { turn: turn.id, call: first.requested.id };
    }
    if front.requested.kind.effect() != Effect::Read || turn.work == Work::Replays {
        return Next::RunCalls(rest.next().and_then(pending).into_iter().collect());
    }
    Next::RunCalls(
        rest.take_while(|call| call.requested.kind.effect() == Effect::Read && !records(call))
            .filter_map(pending)
            .collect(),
    )
}
