//! The runtime: the ports, wired, and what both directions share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use planwright_domain::{
    actor::PersonId,
    command::{Asked, AutoCommand, Decision, LifeCommand, PersonCommand, SessionCommand, Terms},
    digest::Digest,
    id::{CommandId, Incarnation, OwnerId},
    identity::{Root, SessionKey, Transport},
    next::{Due, next},
    notebook::NotebookTool,
    session::Session,
    time::Time,
};
use uuid::Uuid;

use crate::{
    commands::dispatch::{Decided, decided},
    engine::attempt::{Attempt, Attempts},
    engine::conversation::Histories,
    failpoint, metrics,
    ports::{
        Ports,
        journal::{Answer, JournalError},
        signal::Signal,
        toolbox::schemas,
    },
    settings::Settings,
};

/// The ports, wired, and what one life of one process adds to them.
pub struct Runtime {
    /// What it reaches the outside through.
    pub ports: Ports,
    /// This life of this process.
    pub incarnation: Incarnation,
    /// What the operator set.
    pub settings: Settings,
    /// Conversations as the model is given them, kept warm.
    pub(crate) histories: Mutex<Histories>,
    /// What this process works on.
    pub(crate) attempts: Attempts,
    /// Which owner each person is, as far as it was looked up: that never changes.
    pub(crate) owners: Mutex<BTreeMap<PersonId, OwnerId>>,
}

/// Where a command came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The chat.
    pub(crate) transport: Option<Transport>,
    /// The project of a foreign agent.
    pub(crate) project: Option<Root>,
}

impl Runtime {
    /// A new life of this process.
    #[must_use]
    pub fn new(ports: Ports, settings: Settings) -> Self {
        let incarnation = Incarnation(Uuid::now_v7());
        Self {
            ports,
            incarnation,
            settings,
            histories: Mutex::default(),
            attempts: Attempts::default(),
            owners: Mutex::default(),
        }
    }

    /// The attempts that were dropped open since this was last asked: there are none, unless a task was cut off.
    #[must_use]
    pub fn take_dropped_attempts(&self) -> Vec<Attempt> {
        self.attempts.take_dropped()
    }

    /// Decides a command, then tells the lane and the watchers, whether or not the caller waits for it: what a
    /// disconnected client asked for is either not done, or done and told.
    pub async fn dispatch(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        self.dispatch_from(Origin::default(), identity, id, command).await
    }

    /// The same, for what came from this chat or this agent.
    pub(crate) async fn dispatch_from(
        &self,
        from: Origin,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        let (ports, identity) = (self.ports.clone(), identity.clone());
        let dispatching =
            tokio::spawn(async move { ports.dispatch(&identity, id, command, from).await });
        match dispatching.await {
            Ok(answer) => answer,
            Err(broke) => Err(JournalError::Engine(Box::new(broke))),
        }
    }

    /// Tools and profiles as they stand now.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let profiles = self.ports.profiles.iter();
        Terms {
            schemas: self.schemas(),
            // An amount can be leased only if every model that may be asked has a price.
            priced: self.ports.model.price().is_some()
                && self.ports.roles.all().all(|model| model.price().is_some())
                && profiles.clone().all(|(_, profile)| profile.model.price().is_some()),
            profiles: profiles
                .map(|(name, profile)| (name.clone(), profile.facts.digest))
                .collect(),
        }
    }

    /// The schemas of all tools that can be leased, by name.
    fn schemas(&self) -> BTreeMap<String, Digest> {
        let export = NotebookTool::Export;
        let mut schemas = schemas(&*self.ports.toolbox);
        schemas.insert(export.name().into(), export.facts().schema);
        schemas
    }

    /// The session as it stands.
    pub async fn session(&self, identity: &SessionKey) -> Result<Arc<Session>, JournalError> {
        self.ports.journal.session(identity).await
    }

    /// The same for a list, in which one session that cannot be read does not hide the others: why it cannot.
    pub async fn readable_session(
        &self,
        identity: &SessionKey,
    ) -> Result<Result<Arc<Session>, String>, JournalError> {
        match self.session(identity).await {
            Ok(session) => Ok(Ok(session)),
            Err(error) => unreadable(identity, error).map(Err),
        }
    }

    /// What does not get through at the moment, in sentences for people.
    #[must_use]
    pub fn trouble(&self) -> Vec<String> {
        [self.ports.lane.trouble(), self.ports.broadcast.trouble()].into_iter().flatten().collect()
    }

    pub(crate) fn in_ms(&self, milliseconds: i64) -> Time {
        self.ports.clock.now().plus_micros(milliseconds * 1_000)
    }
}

/// Why this session alone cannot be read; any other failure of the journal is one of all sessions.
pub(crate) fn unreadable(
    identity: &SessionKey,
    error: JournalError,
) -> Result<String, JournalError> {
    match error {
        JournalError::Format(_) | JournalError::Corrupt(_) => {
            tracing::warn!(session = %identity, %error, event = "session_unreadable");
            Ok(error.to_string())
        }
        JournalError::NewerSchema { .. }
        | JournalError::DevelopmentData
        | JournalError::Engine(_)
        | JournalError::Closed => Err(error),
    }
}

impl Ports {
    /// Decides a command, then tells the lane and the watchers. Nothing leaves before it is durable. Not safe
    /// against a caller that goes away: a lane calls it from a task of its own, everyone else goes through
    /// [`Runtime::dispatch`].
    pub(crate) async fn dispatch(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
        from: Origin,
    ) -> Result<Answer, JournalError> {
        let log_event = log_event_name(&command);
        let Origin { transport, project } = from;
        let asked = Asked::new(id, self.clock.now(), command);
        let asked = asked.under(self.policy.clone()).of_project(project);
        let Decided { answer, since } = decided(&*self.journal, identity, asked).await?;
        if let (Answer::Refused(refusal), Some(asked)) = (&answer, log_event) {
            let kind = refusal.kind();
            tracing::warn!(session_identity = %identity, asked, kind, event = "command_refused");
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
