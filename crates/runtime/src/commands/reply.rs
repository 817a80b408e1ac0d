//! A line that a person typed, and what it comes to.

use planwright_domain::{
    actor::Person,
    id::{CommandId, Seq},
    identity::{SessionKey, Transport},
    next::Waiting,
    refusal::Refusal,
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::{
    ports::journal::SessionRow,
    queries::{
        autonomy::WorkView,
        comments::CommentRow,
        memory::MemoryView,
        notebook::NotebookView,
        view::{DiffView, PlanRow, RevisionView, StatusView},
    },
};

/// A line, by whom, where, and under which id: the same id twice has one effect.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// In this session.
    pub identity: SessionKey,
    /// From this chat; none where there is none to move.
    pub transport: Option<Transport>,
    /// By this person.
    pub person: Person,
    /// Under this id.
    pub id: CommandId,
    /// What they typed.
    pub line: String,
}

impl Spoken {
    /// The session, as the person names it.
    pub(super) fn session_name(&self) -> String {
        self.identity.name_for(self.person.owner)
    }
}

/// How many sessions are listed in a chat.
pub(crate) const LISTED_MAX: usize = 50;

/// A session in a list that a person reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// Which session, as its owner names it.
    pub session: String,
    /// What people call it.
    pub title: String,
    /// How many events it has.
    pub version: Seq,
    /// When something last happened.
    pub updated: Time,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// Whether it was put away.
    pub archived: bool,
}

impl From<SessionRow> for SessionLine {
    fn from(row: SessionRow) -> Self {
        let SessionRow { session, title, version, updated, waiting, archived, .. } = row;
        Self { session: session.identity.to_string(), title, version, updated, waiting, archived }
    }
}

/// What a line comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It happened, and is durable.
    Accepted {
        /// In this session, as the person names it.
        session: String,
        /// The version of the session after it.
        version: Seq,
        /// In words.
        words: String,
    },
    /// The chat talks to another conversation now.
    Moved {
        /// To this one, as the person names it.
        session: String,
        /// In words.
        words: String,
    },
    /// The conversations of this person.
    Sessions(Vec<SessionLine>),
    /// Goals, tasks, runs and schedules.
    Work(Box<WorkView>),
    /// What is remembered.
    Memory(Box<MemoryView>),
    /// The notebook.
    Notebook(Box<NotebookView>),
    /// It did not, and why.
    Refused(Refusal),
    /// It could not be read.
    Unreadable(String),
    /// Where the session stands.
    Status(Box<StatusView>),
    /// A revision. The surface records that it was shown, once it was, in full.
    Revision(Box<RevisionView>),
    /// What changed.
    Diff(DiffView),
    /// The plans of the session.
    Plans(Vec<PlanRow>),
    /// The comments on the plan, and what became of each.
    Comments(Vec<CommentRow>),
    /// There is nothing of the kind.
    Nothing(String),
    /// The commands there are.
    Help,
}
