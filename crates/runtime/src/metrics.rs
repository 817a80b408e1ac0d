//! Metrics and log lines of recorded events, under their published names.

use planwright_domain::{
    autonomy::{AutoExecutionContext, event::AutoEvent},
    id::{CallId, TurnId},
    identity::{SessionKey, Transport},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::{
        ModelFailure,
        event::{TurnEnd, TurnEvent},
    },
};

/// What is to be counted and logged of a decision that was stored.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    enabled: u64,
    lines: Vec<Line>,
    ended: Vec<(AutoExecutionContext, &'static str)>,
}

/// One line of the log.
#[derive(Debug)]
struct Line {
    kind: &'static str,
    context: Option<AutoExecutionContext>,
    of: OfTurn,
}

/// What a line says of a turn, or of a call in it.
#[derive(Debug, Default)]
pub(crate) struct OfTurn {
    turn: Option<TurnId>,
    call: Option<CallId>,
    /// How it ended.
    outcome: Option<String>,
}

impl OfTurn {
    /// What is logged of this event: the start, the end and the failure of turns and of calls.
    fn of(event: &TurnEvent) -> Option<Self> {
        let turn = |turn: &TurnId| Self { turn: Some(*turn), ..Self::default() };
        let call = |call: &CallId| Self { call: Some(*call), ..Self::default() };
        let ended = |of: Self, outcome: String| Self { outcome: Some(outcome), ..of };
        Some(match event {
            TurnEvent::TurnStarted { turn: id, .. }
            | TurnEvent::TurnResumed { turn: id }
            | TurnEvent::ModelCallStarted { turn: id, .. }
            | TurnEvent::ModelAnswered { turn: id, .. }
            | TurnEvent::ViewCompacted { turn: id, .. }
            | TurnEvent::ModelCallAbandoned { turn: id, .. }
            | TurnEvent::ModelCallOrphaned { turn: id, .. } => turn(id),
            TurnEvent::TurnPaused { turn: id, reached, .. } => {
                ended(turn(id), format!("{:?}", reached.limit))
            }
            TurnEvent::ModelCallFailed { turn: id, failure, .. } => {
                ended(turn(id), format!("{:?}", failure.kind))
            }
            TurnEvent::TurnFinished { turn: id, end } => {
                let failed = |failure: &ModelFailure| format!("failed: {:?}", failure.kind);
                let outcome = match end {
                    TurnEnd::Answered => "answered".into(),
                    TurnEnd::Planned { .. } => "planned".into(),
                    TurnEnd::Failed { failure } => failed(failure),
                    TurnEnd::Stopped { .. } => "stopped".into(),
                    TurnEnd::Compacted { .. } => "compacted".into(),
                    TurnEnd::Yielded => "yielded".into(),
                    TurnEnd::InDoubt { .. } => "in doubt".into(),
                };
                ended(turn(id), outcome)
            }
            TurnEvent::CallStarted { call: id, .. }
            | TurnEvent::CallAbandoned { call: id, .. }
            | TurnEvent::CallOrphaned { call: id, .. }
            | TurnEvent::CallInDoubt { call: id, .. } => call(id),
            TurnEvent::CallFinished { call: id, result, .. } => {
                ended(call(id), format!("{:?}", result.status))
            }
            TurnEvent::LimitWarned { .. }
            | TurnEvent::PermissionAsked { .. }
            | TurnEvent::PermissionDecided { .. }
            | TurnEvent::CallAnswered { .. }
            | TurnEvent::DoubtSettled { .. } => return None,
        })
    }
}

impl Happened {
    /// What of these events is counted or logged.
    pub(crate) fn of(before: &Session, events: &[SessionEvent]) -> Self {
        let mut happened = Self::default();
        let context_of = |run| before.auto.runs.get(run).map(|run| run.context.clone());
        let of_turn = || {
            let turn = before.turn.as_ref();
            turn.and_then(|turn| before.auto.context(turn)).cloned()
        };
        for event in events {
            let mut log = |context: Option<AutoExecutionContext>, of: OfTurn| {
                happened.lines.push(Line { kind: event.kind(), context, of });
            };
            match event {
                SessionEvent::Plan(PlanEvent::PlanStarted { predecessor: None, .. }) => {
                    happened.enabled += 1;
                }
                SessionEvent::Auto(
                    AutoEvent::RunStarted { context, .. } | AutoEvent::Ticked { context, .. },
                ) => log(Some(context.clone()), OfTurn::default()),
                SessionEvent::Auto(AutoEvent::RunEnded { context, end }) => {
                    log(Some(context.clone()), OfTurn::default());
                    happened.ended.push((context.clone(), end.name()));
                }
                SessionEvent::Auto(
                    AutoEvent::RunPaused { run, .. }
                    | AutoEvent::RunResumed { run, .. }
                    | AutoEvent::RunMoved { run, .. }
                    | AutoEvent::RunPinned { run, .. }
                    | AutoEvent::RunWarned { run, .. },
                ) => {
                    if let Some(context) = context_of(run) {
                        log(Some(context), OfTurn::default());
                    }
                }
                SessionEvent::Turn(turn_event) => {
                    let Some(of) = OfTurn::of(turn_event) else { continue };
                    let context = if let TurnEvent::TurnStarted { context, .. } = turn_event {
                        context.clone()
                    } else {
                        of_turn()
                    };
                    log(context, of);
                }
                SessionEvent::Plan(_)
                | SessionEvent::Auto(_)
                | SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::Logged { .. } => {}
            }
        }
        happened
    }

    /// Counts and logs it, once it is stored.
    pub(crate) fn record(&self, identity: &SessionKey, session_label: bool) {
        let channel = identity.identity.channel.name();
        if self.enabled > 0 && session_label {
            let session = identity.to_string();
            metrics::counter!("plan.mode.enabled.count", "channel" => channel, "session" => session)
                .increment(self.enabled);
        } else if self.enabled > 0 {
            metrics::counter!("plan.mode.enabled.count", "channel" => channel)
                .increment(self.enabled);
        }
        for Line { kind, context, of } in &self.lines {
            if let Some(context) = context.as_ref().filter(|_| *kind == "run_started") {
                let run_kind = context.kind.name();
                metrics::counter!("auto.run.started.count", "runKind" => run_kind, "channel" => channel)
                    .increment(1);
            }
            line(identity, context.as_ref(), None, of, kind);
        }
        for (context, status) in &self.ended {
            let run_kind = context.kind.name();
            metrics::counter!("auto.run.completed.count", "runKind" => run_kind, "status" => *status)
                .increment(1);
        }
    }
}

/// One line of the log, with all the fields that every line has.
pub(crate) fn line(
    identity: &SessionKey,
    context: Option<&AutoExecutionContext>,
    transport: Option<&Transport>,
    of: &OfTurn,
    event: &str,
) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let or_empty = |id: Option<String>| id.unwrap_or_default();
    tracing::info!(
        session_identity = %identity,
        turn_id = or_empty(of.turn.map(|turn| turn.to_string())),
        call_id = or_empty(of.call.map(|call| call.to_string())),
        outcome = of.outcome.as_deref().unwrap_or_default(),
        run_id = or_empty(context.map(|context| context.run_id.to_string())),
        goal_id = or_empty(context.and_then(|context| context.goal_id).map(|goal| goal.to_string())),
        task_id = or_empty(context.map(|context| context.task_id.to_string())),
        run_kind = context.map_or("", |context| context.kind.name()),
        transport_chat_hash = or_empty(transport.map(transport_hash)),
        event
    );
}

/// A chat in a log: its digest, so that the log holds no address.
#[must_use]
pub(crate) fn transport_hash(transport: &Transport) -> String {
    let text = format!("{}:{}", transport.channel.name(), transport.chat.0);
    planwright_domain::digest::Digest::of(text.as_bytes()).short()
}
