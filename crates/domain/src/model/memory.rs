//! What is remembered, in which scope, and who may see it.
//!
//! A scope always carries its session, and a chain of scopes is only made from a session and whose work is
//! done in it: there is no query by a bare text. Scores are computed from the items of one scope alone, so
//! that what others remember does not move what is found here.
//!
//! Must always hold:
//! - `strict-scope`: nothing of another session is found, listed, changed or forgotten.
//! - `task-private`: a task alone never sees what another task keeps.
//! - `goal-shared-within-session`: tasks of one goal see what the goal keeps, in their own session.
//! - `promotion-only-global`: only a person's promotion, which names the text, reaches `global`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::PersonId,
    autonomy::AutoExecutionContext,
    digest::{Digest, Encoder},
    id::{GoalId, MemoryId, OwnerId, TaskId, TurnId},
    identity::SessionIdentity,
    time::Time,
};

pub mod rank;
pub(crate) mod words;

pub(crate) use words::spelled;
pub use words::{Question, words};

/// Where something is remembered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everywhere, for one owner.
    Global,
    /// In one session.
    Session(SessionIdentity),
    /// For one goal of one session.
    Goal(SessionIdentity, GoalId),
    /// For one task of one session.
    Task(SessionIdentity, TaskId),
}

impl Scope {
    /// The session it belongs to; none for what is remembered everywhere.
    #[must_use]
    pub fn session(&self) -> Option<&SessionIdentity> {
        match self {
            Self::Global => None,
            Self::Session(session) | Self::Goal(session, _) | Self::Task(session, _) => {
                Some(session)
            }
        }
    }

    /// What kind of scope it is.
    #[must_use]
    pub fn kind(&self) -> ScopeKind {
        match self {
            Self::Global => ScopeKind::Global,
            Self::Session(_) => ScopeKind::Session,
            Self::Goal(..) => ScopeKind::Goal,
            Self::Task(..) => ScopeKind::Task,
        }
    }
}

impl fmt::Display for Scope {
    /// The published text. It names, and is never looked anything up by.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => write!(formatter, "global"),
            Self::Session(session) => write!(formatter, "session:{session}"),
            Self::Goal(session, goal) => write!(formatter, "goal:{session}:{goal}"),
            Self::Task(_, task) => write!(formatter, "task:{task}"),
        }
    }
}

/// What kind of scope something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScopeKind {
    /// Everywhere, for one owner.
    Global,
    /// In one session.
    Session,
    /// For one goal.
    Goal,
    /// For one task.
    Task,
}

impl ScopeKind {
    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Session => "session",
            Self::Goal => "goal",
            Self::Task => "task",
        }
    }
}

/// The scopes that someone may see, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    owner: OwnerId,
    session: SessionIdentity,
    scopes: Vec<Scope>,
}

impl Chain {
    /// What is seen in a session of this owner: by a run of a goal, by a run of one task, or in a person's turn.
    /// A context of another session adds nothing.
    #[must_use]
    pub fn of(
        owner: OwnerId,
        session: &SessionIdentity,
        context: Option<&AutoExecutionContext>,
    ) -> Self {
        let mut scopes = Vec::new();
        if let Some(context) = context.filter(|context| context.session == *session) {
            scopes.push(Scope::Task(session.clone(), context.task_id));
            scopes.extend(context.goal_id.map(|goal| Scope::Goal(session.clone(), goal)));
        }
        scopes.push(Scope::Session(session.clone()));
        scopes.push(Scope::Global);
        Self { owner, session: session.clone(), scopes }
    }

    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// The session that is looked from.
    #[must_use]
    pub fn session(&self) -> &SessionIdentity {
        &self.session
    }

    /// The scopes, nearest first.
    #[must_use]
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Whether this may be seen.
    #[must_use]
    pub fn admits(&self, item: &Item) -> bool {
        self.scopes.contains(&item.scope)
    }

    /// The scope of this kind in the chain.
    #[must_use]
    pub fn named(&self, kind: ScopeKind) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.kind() == kind)
    }
}

/// What kind of thing is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// Something that is so.
    #[default]
    Fact,
    /// What a person likes.
    Preference,
    /// What was decided.
    Decision,
    /// What must be kept to.
    Constraint,
    /// A detail of the work.
    Detail,
}

impl ItemKind {
    /// The scope in which it is kept unless another one is named: details with the task, what a goal shares
    /// with the goal, the rest with the session.
    #[must_use]
    pub fn home(self) -> ScopeKind {
        match self {
            Self::Detail => ScopeKind::Task,
            Self::Decision | Self::Constraint => ScopeKind::Goal,
            Self::Fact | Self::Preference => ScopeKind::Session,
        }
    }
}

/// Where something that is remembered came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// The model saved it.
    Model {
        /// In this turn.
        turn: TurnId,
    },
    /// A person wrote it.
    Person {
        /// Who.
        by: PersonId,
    },
    /// A person promoted it.
    Promoted {
        /// Who.
        by: PersonId,
        /// From this session.
        from: SessionIdentity,
        /// As it was called there.
        item: MemoryId,
    },
    /// It was brought in from before there were scopes.
    Legacy,
}

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// Its id.
    pub id: MemoryId,
    /// What kind of thing.
    pub kind: ItemKind,
    /// Where it is remembered.
    pub scope: Scope,
    /// In words.
    pub text: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// How sure it is, in percent.
    pub confidence: u8,
    /// Since when.
    pub at: Time,
}

impl Item {
    /// The digest of what it says: two that say the same have the same.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest(&self.text)
    }

    /// The words that it is found by.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        words(&self.text)
    }
}

/// The digest of what a text says, whatever the space between its words.
#[must_use]
pub fn digest(text: &str) -> Digest {
    let plain: Vec<_> = text.split_whitespace().collect();
    Encoder::of("memory", 1).field("text", &plain.join(" ").to_lowercase()).digest()
}

/// What happened to what is remembered in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryEvent {
    /// Something is remembered.
    Saved {
        /// What.
        item: Box<Item>,
    },
    /// Something is remembered in other words.
    Changed {
        /// What.
        id: MemoryId,
        /// The words.
        text: String,
        /// Who.
        by: PersonId,
    },
    /// Something is forgotten.
    Forgotten {
        /// What.
        id: MemoryId,
    },
}

impl MemoryEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Saved { .. } => "memory_saved",
            Self::Changed { .. } => "memory_changed",
            Self::Forgotten { .. } => "memory_forgotten",
        }
    }
}

/// What a person asks of what is remembered in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryCommand {
    /// Remember this.
    Save {
        /// The id it will have.
        id: MemoryId,
        /// What kind of thing.
        kind: ItemKind,
        /// In words.
        text: String,
    },
    /// Say it in other words.
    Change {
        /// What.
        id: MemoryId,
        /// The words.
        text: String,
    },
    /// Forget it.
    Forget {
        /// What.
        id: MemoryId,
    },
}
