//! The session and everything that can happen in it: data, without the rules that decide and fold it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{Person, PersonId},
    autonomy::{Autonomy, event::AutoEvent},
    digest::{Digest, Encoder},
    effect::Touched,
    id::{CallId, OwnerId, PlanId, Seq},
    identity::{ChannelType, Root, SessionIdentity, SessionKey},
    memory::MemoryEvent,
    notebook::{Notebook, NotebookEvent},
    plan::{
        Ended, Plan, PlanWork,
        event::{Account, PlanEvent},
        observation::Observation,
    },
    quota::Limit,
    time::Time,
    turn::{
        Doubt, Measure, OpenCall, Queued, ToolReply, Turn, Usage,
        ask::Ask,
        event::{TurnEnd, TurnEvent},
    },
};

pub mod life;

use life::{Deletion, Life, LifeEvent};

/// One session, folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Whose it is.
    pub owner: OwnerId,
    /// Which of theirs.
    pub identity: SessionIdentity,
    /// How many events it has.
    pub version: Seq,
    /// The directory that its file tools and its envelope's paths are relative to; none where the operator names no roots.
    pub root: Option<Root>,
    /// What people call it.
    pub title: String,
    /// Whether it is there.
    pub life: Life,
    /// Who deleted it, and when.
    pub deletion: Option<Deletion>,
    /// Its goals, tasks, runs and schedules.
    pub auto: Autonomy,
    /// Its plan work.
    pub work: PlanWork,
    /// The plan that ended last, for those who come late.
    pub last_ended: Option<EndedPlan>,
    /// The open turn.
    pub turn: Option<Turn>,
    /// The causes that wait, in commit order.
    pub queue: Vec<Queued>,
    /// The effects that have started and not ended.
    pub open: BTreeMap<CallId, OpenCall>,
    /// The calls whose outcome nobody knows.
    pub doubts: BTreeMap<CallId, Doubt>,
    /// The call that waits for a person's permission.
    pub ask: Option<Ask>,
    /// What it knows of its notebook.
    pub notebook: Notebook,
    /// How the models that answered here count.
    pub measures: BTreeMap<String, Measure>,
    /// What the model cost, all in all.
    pub usage: Usage,
    /// The limits of the owner of which this session was told, and until when they hold.
    pub warned: BTreeMap<Limit, Option<Time>>,
    /// Where a foreign agent last looked at the plan.
    pub agent_looked: Seq,
    /// Where the view that the model is given begins.
    pub view_from: Seq,
    /// The tools whose output the model was given since then: pages, files, what other programs say. All of it is from outside.
    pub outside: BTreeSet<String>,
    /// The head of the decision log.
    pub log: Digest,
}

/// A plan that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedPlan {
    /// Which plan.
    pub plan: PlanId,
    /// Its last title.
    pub title: String,
    /// How it ended.
    pub ended: Ended,
    /// Whose word that is.
    pub account: Account,
    /// What its executions did to the world.
    pub touched: Vec<Touched>,
    /// How many more touched things there were than are listed.
    pub touched_more: u64,
    /// What was observed of its work, whatever anybody says.
    #[serde(default)]
    pub observation: Observation,
    /// Where in the stream its last revision stands.
    pub revision: Option<Seq>,
}

/// Everything that can happen in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// To its plan.
    Plan(PlanEvent),
    /// In its turns.
    Turn(TurnEvent),
    /// To its goals, tasks, runs and schedules.
    Auto(AutoEvent),
    /// To what is remembered in it.
    Memory(MemoryEvent),
    /// To its notebook.
    Notebook(NotebookEvent),
    /// To the session itself.
    Life(LifeEvent),
    /// A person said something; it waits for a turn.
    MessageQueued {
        /// The words.
        text: String,
        /// Who.
        by: Person,
    },
    /// A cause left the queue without a turn.
    CauseWithdrawn {
        /// The cause.
        queued: Seq,
        /// Why, in words that the person reads.
        why: String,
    },
    /// A person asked that what was said before be summed up; it waits for a turn.
    CompactionAsked {
        /// Who.
        by: Person,
    },
    /// A foreign agent called a tool, and was answered.
    AgentCalled {
        /// The call.
        call: CallId,
        /// Whose agent it is.
        of: PersonId,
        /// Who called, as it names itself.
        agent: String,
        /// The tool.
        tool: String,
        /// The arguments, cut for display.
        arguments: String,
        /// What it was told.
        reply: ToolReply,
    },
    /// A new view begins: the model is given nothing older.
    ViewReset {
        /// Who asked.
        by: Person,
    },
    /// The decision log stands so; what was decided before cannot be another.
    Logged {
        /// The head of its chain.
        head: Digest,
    },
}

/// The journal holds what cannot have happened. Only a developer can mend this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal is corrupt at event {seq}: {what}")]
pub struct CorruptJournal {
    /// Where.
    pub seq: Seq,
    /// What is wrong.
    pub what: String,
}

impl CorruptJournal {
    /// At this event, this is wrong.
    pub fn new(seq: Seq, what: impl Into<String>) -> Self {
        Self { seq, what: what.into() }
    }
}

impl Session {
    /// A session in which nothing has happened.
    #[must_use]
    pub fn new(key: SessionKey) -> Self {
        let log = log_beginning(&key);
        let SessionKey { owner, identity } = key;
        Self {
            owner,
            identity,
            log,
            version: Seq(0),
            root: None,
            title: String::new(),
            life: Life::Open,
            deletion: None,
            auto: Autonomy::default(),
            work: PlanWork::Inactive,
            last_ended: None,
            turn: None,
            queue: Vec::new(),
            open: BTreeMap::new(),
            doubts: BTreeMap::new(),
            ask: None,
            notebook: Notebook::default(),
            measures: BTreeMap::new(),
            usage: Usage::default(),
            warned: BTreeMap::new(),
            agent_looked: Seq(0),
            view_from: Seq(0),
            outside: BTreeSet::new(),
        }
    }

    /// A session of which nothing is left: its key is not used again.
    #[must_use]
    pub fn erased(key: SessionKey) -> Self {
        Self { life: Life::Deleted, ..Self::new(key) }
    }

    /// The session in the store.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.owner, self.identity.clone())
    }

    /// Whether nothing has happened in it but that it began.
    #[must_use]
    pub(crate) fn is_new(&self) -> bool {
        self.version.0 == u64::from(self.root.is_some())
    }

    /// The plan it is working on.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        match &self.work {
            PlanWork::Active(plan) => Some(plan),
            PlanWork::Inactive => None,
        }
    }
}

impl SessionEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(event) => match event {
                PlanEvent::PlanStarted { .. } => "plan_started",
                PlanEvent::DraftChanged { .. } => "draft_changed",
                PlanEvent::RevisionAdded { .. } => "revision_added",
                PlanEvent::RevisionShown { .. } => "revision_shown",
                PlanEvent::BlocksSeen { .. } => "blocks_seen",
                PlanEvent::Discussed { .. } => "discussed",
                PlanEvent::DecisionReminded { .. } => "decision_reminded",
                PlanEvent::DecisionExpired { .. } => "decision_expired",
                PlanEvent::ChangesRequested { .. } => "changes_requested",
                PlanEvent::PlanApproved { .. } => "plan_approved",
                PlanEvent::ExecutionStarted { .. } => "execution_started",
                PlanEvent::StepQueued { .. } => "step_queued",
                PlanEvent::StepBegun { .. } => "step_begun",
                PlanEvent::StepEnded { .. } => "step_ended",
                PlanEvent::ExecutionPaused { .. } => "execution_paused",
                PlanEvent::PlanFailed { .. } => "plan_failed",
                PlanEvent::PlanEnded { .. } => "plan_ended",
            },
            Self::Turn(event) => match event {
                TurnEvent::TurnStarted { .. } => "turn_started",
                TurnEvent::TurnPaused { .. } => "turn_paused",
                TurnEvent::TurnResumed { .. } => "turn_resumed",
                TurnEvent::LimitWarned { .. } => "limit_warned",
                TurnEvent::ModelCallStarted { .. } => "model_call_started",
                TurnEvent::ModelAnswered { .. } => "model_answered",
                TurnEvent::ModelCallFailed { .. } => "model_call_failed",
                TurnEvent::ModelCallAbandoned { .. } => "model_call_abandoned",
                TurnEvent::ModelCallOrphaned { .. } => "model_call_orphaned",
                TurnEvent::ViewCompacted { .. } => "view_compacted",
                TurnEvent::CallStarted { .. } => "call_started",
                TurnEvent::PermissionAsked { .. } => "permission_asked",
                TurnEvent::PermissionDecided { .. } => "permission_decided",
                TurnEvent::CallFinished { .. } => "call_finished",
                TurnEvent::CallAnswered { .. } => "call_answered",
                TurnEvent::CallAbandoned { .. } => "call_abandoned",
                TurnEvent::CallOrphaned { .. } => "call_orphaned",
                TurnEvent::CallInDoubt { .. } => "call_in_doubt",
                TurnEvent::DoubtSettled { .. } => "doubt_settled",
                TurnEvent::TurnFinished { end: TurnEnd::Failed { .. }, .. } => "turn_failed",
                TurnEvent::TurnFinished { .. } => "turn_finished",
            },
            Self::Auto(event) => event.kind(),
            Self::Memory(event) => event.kind(),
            Self::Notebook(event) => event.kind(),
            Self::Life(event) => match event {
                LifeEvent::Opened { .. } => "session_opened",
                LifeEvent::Renamed { .. } => "session_renamed",
                LifeEvent::Archived { .. } => "session_archived",
                LifeEvent::Restored { .. } => "session_restored",
                LifeEvent::Deleted { .. } => "session_deleted",
            },
            Self::MessageQueued { .. } => "message_queued",
            Self::CauseWithdrawn { .. } => "cause_withdrawn",
            Self::AgentCalled { .. } => "agent_called",
            Self::ViewReset { .. } => "view_reset",
            Self::CompactionAsked { .. } => "compaction_asked",
            Self::Logged { .. } => "logged",
        }
    }
}

/// The head of a chain in which nothing was decided yet.
#[must_use]
pub fn log_beginning(session: &SessionKey) -> Digest {
    Encoder::of("log", 1).field("session", &session.to_string()).digest()
}

/// Whether a foreign agent works in this session.
#[must_use]
pub fn is_foreign(session: &Session) -> bool {
    session.identity.channel == ChannelType::Mcp
}
