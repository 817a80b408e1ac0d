//! The notebook: a session's planning files, what their tools mean, and when the pages give way to the plan.
//!
//! Three pages and an archive, apart from the files that people work on. The rules are here; where the
//! pages lie is the business of a port.
//!
//! Must always hold:
//! - `notebook-private`: no tool but the notebook's reaches a page, and a page is reached by the name of
//!   its session and no other.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{Person, PersonId},
    effect::Bracket,
    id::CallId,
    time::Time,
};

/// A page of the notebook.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Page {
    /// What is to be done, in phases.
    #[default]
    TaskPlan,
    /// What was found out.
    Findings,
    /// What was done, and what went wrong.
    Progress,
}

impl Page {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TaskPlan, Self::Findings, Self::Progress];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskPlan => "task_plan",
            Self::Findings => "findings",
            Self::Progress => "progress",
        }
    }

    /// The page of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.name() == name)
    }

    /// The name of its file.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::TaskPlan => "task_plan.md",
            Self::Findings => "findings.md",
            Self::Progress => "progress.md",
        }
    }
}

/// What a session knows of its notebook. The pages themselves are kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notebook {
    /// Whether a person turned it on or off; as the operator set it, if nobody did.
    pub switched: Option<bool>,
    /// How many calls that read have ended well.
    pub reads: u64,
    /// Calls of a foreign agent that have started and not ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_calls: Vec<OpenAgentCall>,
    /// The removal of the pages of a deleted session, until it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
    /// The number of the last attempt at it; 0 before the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removal_attempt: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Notebook {
    /// Whether it is on, where the operator set this for those who said nothing.
    #[must_use]
    pub fn is_on(&self, set: bool) -> bool {
        self.switched.unwrap_or(set)
    }

    /// A foreign agent's call that has started and not ended.
    #[must_use]
    pub fn open_agent_call(&self, call: CallId) -> Option<&OpenAgentCall> {
        self.agent_calls.iter().find(|open| open.call == call)
    }
}

/// A call of a notebook tool by a foreign agent that has started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenAgentCall {
    /// The call.
    pub call: CallId,
    /// By whom, and what.
    pub made: AgentNotebookCall,
}

/// A call of a notebook tool by a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentNotebookCall {
    /// Whose agent it is.
    pub of: PersonId,
    /// Who calls, as it names itself.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The arguments, cut for display.
    pub arguments: String,
}

/// The removal of the pages of a deleted session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Removal {
    /// How many attempts in a row did not finish it.
    pub failures: u32,
    /// It is tried again at this time.
    pub not_before: Option<Time>,
    /// The bracket of the last attempt, while it is under way.
    pub open: Option<Bracket>,
    /// Whether a page may have been written since that attempt began: then it is made once more.
    pub again: bool,
}

impl Removal {
    /// The removal when a page may just have been written: one that is under way may have missed it.
    pub(crate) fn wanted(before: Option<Self>) -> Self {
        match before {
            Some(removal) if removal.open.is_some() => Self { again: true, ..removal },
            Some(_) | None => Self::default(),
        }
    }

    /// When it is tried again after one failure more: after seconds at first, and at last once an hour, for good.
    pub(crate) fn retry_at(self, at: Time) -> Time {
        at.plus_micros((1_000_000_i64 << self.failures.min(12)).min(3_600_000_000))
    }
}

/// What happened to the notebook, where it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotebookEvent {
    /// A person turned it on or off.
    Switched {
        /// Whether it is on.
        on: bool,
        /// Who.
        by: Person,
    },
    /// What came of a call is to be noted on a page.
    NoteDue {
        /// The call.
        call: CallId,
        /// The page.
        page: Page,
    },
    /// A foreign agent's call is about to be made.
    AgentCallStarted {
        /// The call.
        call: CallId,
        /// By whom, and what.
        made: AgentNotebookCall,
    },
    /// The pages of a deleted session are about to be removed.
    RemovalStarted {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
    },
    /// The pages of a deleted session are removed.
    PagesRemoved {
        /// How many this attempt removed.
        pages: u32,
    },
    /// The pages of a deleted session could not be removed.
    RemovalFailed {
        /// Why not.
        why: String,
        /// When it is tried again.
        retry_at: Time,
    },
    /// Nobody works on the removal of the pages any more.
    RemovalOrphaned {
        /// The number of the attempt.
        attempt: u32,
        /// When it is tried again.
        retry_at: Time,
    },
}

impl NotebookEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Switched { .. } => "notebook_switched",
            Self::NoteDue { .. } => "note_due",
            Self::AgentCallStarted { .. } => "agent_call_started",
            Self::RemovalStarted { .. } => "removal_started",
            Self::PagesRemoved { .. } => "pages_removed",
            Self::RemovalFailed { .. } => "removal_failed",
            Self::RemovalOrphaned { .. } => "removal_orphaned",
        }
    }
}
