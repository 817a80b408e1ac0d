//! The runtime: the ports, wired, and what both directions share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use planwright_domain::{
    actor::PersonId,
    autonomy::budget::Budget,
    command::{Asked, AutoCommand, Decision, LifeCommand, PersonCommand, SessionCommand, Terms},
    digest::Digest,
    id::{CommandId, Incarnation, OwnerId},
    identity::{Root, SessionKey, Transport},
    next::{Due, next},
    notebook::NotebookTool,
    plan::Reads,
    policy::Policy,
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
        Clock,
        journal::{Answer, Journal, JournalError},
        memory::Memory,
        model::{Model, Profiles, Roles},
        notebook::Notebooks,
        signal::{Broadcast, Lane, Signal},
        toolbox::{Toolbox, schemas},
    },
};

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the model is told about itself.
    pub system_prompt: String,
    /// How long one model call may take.
    pub model_deadline_ms: i64,
    /// How long one tool call may take.
    pub tool_deadline_ms: i64,
    /// How long after its recorded start an effect may still begin.
    pub start_by_ms: i64,
    /// Tokens that every request leaves free for the answer.
    pub answer_tokens: usize,
    /// What `collect` does with calls that only read.
    pub collect_reads: Reads,
    /// How long a call waits for a person's permission before it is denied.
    pub permission_ms: i64,
    /// What a run may use, where nothing else is said.
    pub budget: Budget,
    /// How long after its time a slot of a schedule is tried again.
    pub slot_window_ms: i64,
    /// What is remembered; nothing, if not set.
    pub memory: Option<MemorySettings>,
    /// The notebook.
    pub notebook: NotebookSettings,
}

/// What an operator may set of the notebook.
#[derive(Debug, Clone, Copy)]
pub struct NotebookSettings {
    /// Whether it is on where nobody said otherwise.
    pub enabled: bool,
    /// One in this many findings is noted, and every error; nothing, if zero.
    pub note_every: u64,
}

/// What an operator may set of what is remembered.
#[derive(Debug, Clone, Copy)]
pub struct MemorySettings {
    /// How many tokens of what is remembered a turn is told at its beginning.
    pub budget_tokens: usize,
}

/// What a run may use, unless the operator or the person says otherwise.
const BUDGET: Budget = Budget {
    micros: Some(8 * 3_600_000_000),
    model_calls: Some(200),
    tool_calls: Some(400),
    tokens: Some(2_000_000),
    cost_micros: Some(1_000_000),
};

impl Default for Settings {
    fn default() -> Self {
        Self {
            system_prompt:
                "You are a careful assistant working for one person. Use the tools you are given; \
                            say plainly what you did and what you could not do."
                    .into(),
            model_deadline_ms: 10 * 60_000,
            tool_deadline_ms: 60_000,
            start_by_ms: 30_000,
            answer_tokens: 4_096,
            collect_reads: Reads::Record,
            permission_ms: 24 * 3_600_000,
            budget: BUDGET,
            slot_window_ms: 3_600_000,
            memory: Some(MemorySettings { budget_tokens: 800 }),
            notebook: NotebookSettings { enabled: false, note_every: 2 },
        }
    }
}

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

/// The ports that a runtime is made of.
#[derive(Clone)]
pub struct Ports {
    /// The only truth.
    pub journal: Arc<dyn Journal>,
    /// Who makes sure that someone acts.
    pub lane: Arc<dyn Lane>,
    /// Who tells the watchers.
    pub broadcast: Arc<dyn Broadcast>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// Which models do what, beside it.
    pub roles: Roles,
    /// The agent profiles.
    pub profiles: Profiles,
    /// The tools.
    pub toolbox: Arc<dyn Toolbox>,
    /// What is remembered.
    pub memory: Arc<dyn Memory>,
    /// The pages of notebooks.
    pub notebook: Arc<dyn Notebooks>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Who may decide, and when.
    pub policy: Arc<Policy>,
    /// Whether figures say which session they are of.
    pub session_label: bool,
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
        let told = told(&command);
        let Origin { transport, project } = from;
        let asked = Asked::new(id, self.clock.now(), command);
        let asked = asked.under(self.policy.clone()).of_project(project);
        let Decided { answer, since } = decided(&*self.journal, identity, asked).await?;
        if let (Answer::Refused(refusal), Some(asked)) = (&answer, told) {
            let kind = refusal.kind();
            tracing::warn!(session_identity = %identity, asked, kind, event = "command_refused");
        }
        if let Answer::Accepted { before, version } = answer
            && before < version
        {
            if let Some(event) = told {
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
fn told(command: &SessionCommand) -> Option<&'static str> {
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

/// A command id that the same report always gets, so that recording it twice has one effect.
pub(crate) fn report_id(of: Uuid, what: &str, round: u32, attempt: u32) -> CommandId {
    Uuid::new_v5(&of, format!("{what}:{round}:{attempt}").as_bytes()).into()
}

/// A command id that nobody had before.
#[must_use]
pub fn fresh_id() -> CommandId {
    Uuid::now_v7().into()
}
