//! Metrics and log lines of recorded events, under their published names.

use planwright_domain::{
    autonomy::{AutoExecutionContext, event::AutoEvent},
    identity::{SessionKey, Transport},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::event::TurnEvent,
};

/// What is to be counted and logged of a decision that was stored.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    enabled: u64,
    runs: Vec<(AutoExecutionContext, &'static str, Option<&'static str>)>,
}

impl Happened {
    /// What of these events is counted or logged.
    pub(crate) fn of(before: &Session, events: &[SessionEvent]) -> Self {
        let mut happened = Self::default();
        let context_of = |run| before.auto.runs.get(run).map(|run| run.context.clone());
        for event in events {
            let kind = event.kind();
            let of_run = match event {
                SessionEvent::Plan(PlanEvent::PlanStarted { predecessor: None, .. }) => {
                    happened.enabled += 1;
                    None
                }
                SessionEvent::Auto(
                    AutoEvent::RunStarted { context, .. } | AutoEvent::Ticked { context, .. },
                ) => Some((context.clone(), None)),
                SessionEvent::Auto(AutoEvent::RunEnded { context, end }) => {
                    Some((context.clone(), Some(end.name())))
                }
                SessionEvent::Auto(
                    AutoEvent::RunPaused { run, .. }
                    | AutoEvent::RunResumed { run, .. }
                    | AutoEvent::RunMoved { run, .. }
                    | AutoEvent::RunPinned { run, .. }
                    | AutoEvent::RunWarned { run, .. },
                ) => context_of(run).map(|context| (context, None)),
                SessionEvent::Turn(TurnEvent::TurnStarted { context: Some(context), .. }) => {
                    Some((context.clone(), None))
                }
                SessionEvent::Turn(
                    TurnEvent::ModelCallStarted { .. }
                    | TurnEvent::CallStarted { .. }
                    | TurnEvent::TurnFinished { .. },
                ) => {
                    let turn = before.turn.as_ref();
                    turn.and_then(|turn| before.auto.context(turn)).map(|of| (of.clone(), None))
                }
                SessionEvent::Plan(_)
                | SessionEvent::Turn(_)
                | SessionEvent::Auto(_)
                | SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::Logged { .. } => None,
            };
            happened.runs.extend(of_run.map(|(context, end)| (context, kind, end)));
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
        for (context, kind, end) in &self.runs {
            let run_kind = context.kind.name();
            if *kind == "run_started" {
                metrics::counter!("auto.run.started.count", "runKind" => run_kind, "channel" => channel)
                    .increment(1);
            }
            if let Some(status) = end {
                metrics::counter!("auto.run.completed.count", "runKind" => run_kind, "status" => *status)
                    .increment(1);
            }
            line(identity, Some(context), None, kind);
        }
    }
}

/// One line of the log, with all the fields that every line has.
pub(crate) fn line(
    identity: &SessionKey,
    context: Option<&AutoExecutionContext>,
    transport: Option<&Transport>,
    event: &str,
) {
    let or_empty = |id: Option<String>| id.unwrap_or_default();
    tracing::info!(
        session_identity = %identity,
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
