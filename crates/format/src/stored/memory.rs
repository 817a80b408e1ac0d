//! Events of what is remembered.

use planwright_domain::{
    actor::PersonId,
    id::{GoalId, MemoryId, TaskId, TurnId},
    identity::SessionIdentity,
    time::Time,
};

stored! {
    enum ItemKind = memory::ItemKind { Fact, Preference, Decision, Constraint, Detail }

    enum Provenance = memory::Provenance {
        Model { turn: TurnId },
        Person { by: PersonId },
        Promoted { by: PersonId, from: SessionIdentity, item: MemoryId },
        Legacy,
    }

    enum Scope = memory::Scope {
        Global,
        Session(of: SessionIdentity),
        Goal(first: SessionIdentity, second: GoalId),
        Task(first: SessionIdentity, second: TaskId),
    }

    struct Item = memory::Item {
        id: MemoryId, kind: ItemKind, scope: Scope, text: String, provenance: Provenance,
        confidence: u8, at: Time
    }

    enum MemoryEvent = memory::MemoryEvent {
        Saved { item: Box<Item> },
        Changed { id: MemoryId, text: String, by: PersonId },
        Forgotten { id: MemoryId },
    }

    struct Why = memory::rank::Why {
        matched: Vec<String>, fits: i64, sure: u8, fresh: i64, score: i64
    }

    struct Ranked = memory::rank::Ranked { item: Item, why: Why }
}
