//! Events of what is remembered.

use planwright_domain::{
    actor::PersonId,
    id::{GoalId, MemoryId, TaskId, TurnId},
    identity::SessionIdentity,
    memory as domain,
};
use planwright_format::mapping::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp::Timestamp;

published! {
    enum ItemKind = memory::ItemKind { Fact, Preference, Decision, Constraint, Detail }

    #[serde(tag = "kind")]
    enum Provenance = memory::Provenance {
        Model { turn: TurnId },
        Person { by "person": PersonId },
        Promoted { by "person": PersonId, from: SessionIdentity, item "memory": MemoryId },
        Legacy,
    }

    /// Something that is remembered.
    struct Item = memory::Item {
        id: MemoryId, kind: ItemKind, scope: Scope, text: String, provenance: Provenance,
        confidence "confidencePercent": u8, at: Timestamp
    }

    #[serde(tag = "type", content = "data")]
    enum MemoryEvent = memory::MemoryEvent {
        /// Something is remembered.
        #[serde(rename = "memory_saved")]
        Saved { item: Box<Item> },
        /// A person changed what is remembered.
        #[serde(rename = "memory_changed")]
        Changed { id "memory": MemoryId, text: String, by "person": PersonId },
        /// Something is not remembered any more.
        #[serde(rename = "memory_forgotten")]
        Forgotten { id "memory": MemoryId },
    }

    /// Why an item was found; parts of the score are in thousandths.
    struct Ranking = memory::rank::Why {
        matched "matchedWords": Vec<String>, fits "match": i64, sure "confidencePercent": u8,
        fresh "recency": i64, score: i64
    }

    struct Ranked = memory::rank::Ranked { item: Item, why "ranking": Ranking }
}

/// Where an item is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Scope {
    Global,
    Session { session: SessionIdentity },
    Goal { session: SessionIdentity, goal: GoalId },
    Task { session: SessionIdentity, task: TaskId },
}

impl Form for Scope {
    type Domain = domain::Scope;

    fn of(scope: &domain::Scope) -> Self {
        match scope {
            domain::Scope::Global => Self::Global,
            domain::Scope::Session(session) => Self::Session { session: session.clone() },
            domain::Scope::Goal(session, goal) => {
                Self::Goal { session: session.clone(), goal: *goal }
            }
            domain::Scope::Task(session, task) => {
                Self::Task { session: session.clone(), task: *task }
            }
        }
    }

    fn domain(self) -> domain::Scope {
        match self {
            Self::Global => domain::Scope::Global,
            Self::Session { session } => domain::Scope::Session(session),
            Self::Goal { session, goal } => domain::Scope::Goal(session, goal),
            Self::Task { session, task } => domain::Scope::Task(session, task),
        }
    }
}
