//! Items that were found for a question, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::memory::{Item, ScopeKind};

/// What one scope gave to a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// Items that hold some of the words.
    pub items: Vec<Item>,
    /// How many items the scope has.
    pub count: u64,
    /// How many words they have together.
    pub words: u64,
    /// How many items have a word, at least: of words that were counted in the whole scope.
    pub frequency: BTreeMap<String, u64>,
}

/// Why something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// What it has in common with the question, as it spells it.
    pub matched: Vec<String>,
    /// How well the words fit, in thousandths.
    pub fits: i64,
    /// How sure it is, in percent.
    pub sure: u8,
    /// How new it is, in thousandths.
    pub fresh: i64,
    /// The score, in thousandths.
    pub score: i64,
}

/// An item, and why it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranked {
    /// The item.
    pub item: Item,
    /// Why.
    pub why: Why,
}

/// What was found for a question, nearest scope first, and what was kept out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recalled {
    /// What is told.
    pub items: Vec<Ranked>,
    /// How many items of other scopes an engine gave; they are dropped. Always nothing.
    pub blocked: u64,
}

impl Recalled {
    /// How many of them are of this kind of scope.
    #[must_use]
    pub fn of(&self, kind: ScopeKind) -> usize {
        self.items.iter().filter(|ranked| ranked.item.scope.kind() == kind).count()
    }
}
