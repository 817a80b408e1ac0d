//! Decides one command under its session's lock, then tells the lane and the watchers: the only caller of `decide`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::{
    command::{
        AutoCommand, Decision, Issued, LifeCommand, PersonCommand, SessionCommand, SystemCommand,
    },
    id::CommandId,
    identity::{Root, SessionKey, Transport},
    next::{Due, next, waiting},
    policy::Policy,
    refusal::Refusal,
    session::decide,
};
use tokio::time::sleep;

use crate::{
    failpoint,
    metrics::{self, Happened},
    ports::{
        Clock, Ports,
        journal::{Answer, Append, Journal, JournalError, Undecided},
        signal::{Broadcast, Lane, Signal},
    },
};

/// How often the result of an effect is offered to the journal before the lane backs off.
const RECORD_ATTEMPTS_MAX: u32 = 8;

/// Decides one command under the session's lock.
pub async fn dispatch(
    journal: &dyn Journal,
    identity: &SessionKey,
    issued: Issued<SessionCommand>,
) -> Result<Answer, JournalError> {
    Ok(decided(journal, identity, issued).await?.answer)
}

/// A command that was decided.
pub(crate) struct Decided {
    /// The answer.
    pub(crate) answer: Answer,
    /// What is due since, and what is to be counted; nothing if the answer was there before.
    pub(crate) since: Option<(Due, Happened)>,
}

/// The same, with what is due since. The only caller of `decide`.
pub(crate) async fn decided(
    journal: &dyn Journal,
    identity: &SessionKey,
    issued: Issued<SessionCommand>,
) -> Result<Decided, JournalError> {
    failpoint::hit("dispatch.before_append");
    let (id, at) = (issued.id, issued.at);
    let last = Arc::new(Mutex::new(None));
    let decided_here = last.clone();
    let decide = move |session: &_| {
        let events = decide(session, &issued)?;
        let after = session.fold(&events)?;
        let due = next(&after).due();
        *decided_here.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((due, Happened::of(session, &events)));
        Ok(Append { due, waiting: waiting(&after), events, after })
    };
    let answer = journal.append(identity, id, at, Box::new(decide)).await;
    failpoint::hit("dispatch.after_append");
    let since = last.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(Decided { answer: answer?, since })
}

/// Where a command came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The chat.
    pub(crate) transport: Option<Transport>,
    /// The project of a foreign agent.
    pub(crate) project: Option<Root>,
}

/// Decides commands and tells of them: what every change of a session goes through.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    journal: Arc<dyn Journal>,
    lane: Arc<dyn Lane>,
    broadcast: Arc<dyn Broadcast>,
    clock: Arc<dyn Clock>,
    policy: Arc<Policy>,
    session_label: bool,
}

impl Dispatcher {
    pub(crate) fn new(ports: &Ports) -> Self {
        Self {
            journal: ports.journal.clone(),
            lane: ports.lane.clone(),
            broadcast: ports.broadcast.clone(),
            clock: ports.clock.clone(),
            policy: ports.policy.clone(),
            session_label: ports.session_label,
        }
    }

    /// The operator's rules.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides a command, then tells the lane and the watchers, whether or not the caller waits for it: what a
    /// disconnected client asked for is either not done, or done and told.
    pub(crate) async fn dispatch_detached(
        &self,
        from: Origin,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        let (dispatcher, identity) = (self.clone(), identity.clone());
        let dispatching =
            tokio::spawn(async move { dispatcher.dispatch(&identity, id, command, from).await });
        match dispatching.await {
            Ok(answer) => answer,
            Err(broke) => Err(JournalError::Engine(Box::new(broke))),
        }
    }

    /// Decides a command, then tells the lane and the watchers. Nothing leaves before it is durable. Not safe
    /// against a caller that goes away: a lane calls it from a task of its own, everyone else goes through
    /// [`Dispatcher::dispatch_detached`].
    pub(crate) async fn dispatch(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
        from: Origin,
    ) -> Result<Answer, JournalError> {
        let log_event = log_event_name(&command);
        let Origin { transport, project } = from;
        let issued = Issued::new(id, self.clock.now(), command);
        let issued = issued.under(self.policy.clone()).of_project(project);
        let Decided { answer, since } = decided(&*self.journal, identity, issued).await?;
        if let (Answer::Refused(refusal), Some(command)) = (&answer, log_event) {
            let kind = refusal.kind();
            tracing::warn!(session_identity = %identity, command, kind, event = "command_refused");
        }
        if let Answer::Accepted { before, version } = answer
            && before < version
        {
            if let Some(event) = log_event {
                metrics::line(identity, None, transport.as_ref(), event);
            }
            failpoint::hit("dispatch.before_wake");
            let due = match since {
                Some((due, happened)) => {
                    happened.record(identity, self.session_label);
                    due
                }
                None => next(&*self.journal.session(identity).await?).due(),
            };
            self.broadcast.publish(identity, Signal::Moved(version));
            match due {
                Due::Never => {}
                due @ (Due::Now | Due::At(_)) => self.lane.wake(identity, version, due),
            }
        }
        Ok(answer)
    }

    /// The answer to a command that could not even be formed: the one that its id was given before, else this
    /// refusal.
    pub(crate) async fn refuse(
        &self,
        identity: &SessionKey,
        id: CommandId,
        refusal: Refusal,
    ) -> Result<Answer, JournalError> {
        let refuse = move |_: &_| Err(Undecided::Refused(refusal.clone()));
        self.journal.append(identity, id, self.clock.now(), Box::new(refuse)).await
    }

    pub(crate) async fn report(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let answer =
            self.dispatch(identity, id, SessionCommand::System(command), Origin::default()).await?;
        if let Answer::Refused(refusal) = &answer {
            tracing::debug!(session_identity = %identity, %refusal, event = "report_refused");
        }
        Ok(answer)
    }

    /// Stores the result of an effect, and tries again while the journal fails.
    pub(crate) async fn record(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let mut attempt = 1;
        loop {
            match self.report(identity, id, command.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt >= RECORD_ATTEMPTS_MAX => return Err(error),
                Err(error) => {
                    tracing::warn!(session_identity = %identity, %error, attempt, event = "result_not_stored");
                    sleep(Duration::from_millis(50 << attempt)).await;
                    attempt += 1;
                }
            }
        }
    }
}

/// What the log says of a command; reports of the runtime and plain words are not logged.
fn log_event_name(command: &SessionCommand) -> Option<&'static str> {
    let SessionCommand::Person(_, command) = command else { return None };
    match command {
        PersonCommand::Say { .. }
        | PersonCommand::RecordShown { .. }
        | PersonCommand::MarkSeen { .. } => None,
        PersonCommand::StartPlan { .. } => Some("plan_mode_enabled"),
        PersonCommand::EndPlan(_) => Some("plan_mode_disabled"),
        PersonCommand::Reset => Some("session_reset"),
        PersonCommand::Compact => Some("compaction_asked"),
        PersonCommand::EditPlan { .. } => Some("plan_edited"),
        PersonCommand::Auto(command) => Some(match command {
            AutoCommand::AddGoal { .. } => "goal_added",
            AutoCommand::EndGoal { .. } => "goal_ended",
            AutoCommand::AddTask { .. } => "task_added",
            AutoCommand::EndTask { .. } => "task_ended",
            AutoCommand::On { .. } => "auto_on",
            AutoCommand::Off { .. } => "auto_off",
            AutoCommand::Resume { .. } => "auto_resumed",
            AutoCommand::AddSchedule { .. } => "schedule_added",
            AutoCommand::EndSchedule { .. } => "schedule_ended",
        }),
        PersonCommand::Memory(_) => Some("memory_changed"),
        PersonCommand::Notebook { .. } => Some("notebook_switched"),
        PersonCommand::Life(command) => Some(match command {
            LifeCommand::Open { .. } => "session_opened",
            LifeCommand::Rename { .. } => "session_renamed",
            LifeCommand::Archive => "session_archived",
            LifeCommand::Restore => "session_restored",
            LifeCommand::Delete => "session_deleted",
        }),
        PersonCommand::Stop => Some("turn_stopped"),
        PersonCommand::PausePlan => Some("execution_paused"),
        PersonCommand::Decide(decision) => match decision {
            Decision::Approve(_) => Some("plan_approved"),
            Decision::RequestChanges { .. } => Some("changes_requested"),
            Decision::Reject { .. } => Some("plan_rejected"),
            Decision::Resume => Some("execution_resumed"),
            Decision::SkipStep { .. } => Some("step_skipped"),
            Decision::Permit { .. } => Some("permission_decided"),
            Decision::SettleDoubt { .. } => Some("doubt_settled"),
        },
    }
}
