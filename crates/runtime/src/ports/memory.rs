//! What is remembered, as it is looked up. Nothing is written here: the journal stores it with its events.

use async_trait::async_trait;
use planwright_domain::{
    id::MemoryId,
    memory::{Chain, Item, Question, rank::Candidates},
};

use super::journal::{Journal, JournalError};

/// A journal that also looks up what is remembered: one database holds both.
pub trait Store: Journal + Memory {}

impl<T: Journal + Memory> Store for T {}

/// Looks up what is remembered. There is no way to ask but through a chain of scopes.
#[async_trait]
pub trait Memory: Send + Sync {
    /// For each scope of the chain, the items that hold some of its words, at most so many, newest first. Of a scope that
    /// has more items than that, those with its [`rarest`](planwright_domain::memory::rank::rarest) words.
    async fn candidates(
        &self,
        chain: &Chain,
        question: &Question,
        limit: usize,
    ) -> Result<Vec<Candidates>, JournalError>;

    /// An item of the chain's session, whatever its goal or task, or one that is known everywhere.
    async fn item(&self, chain: &Chain, id: MemoryId) -> Result<Option<Item>, JournalError>;

    /// Everything that is remembered in the chain's session, its goals and its tasks, newest first, then what its
    /// owner knows everywhere.
    async fn everything(&self, chain: &Chain, limit: usize) -> Result<Vec<Item>, JournalError>;

    /// How many items the other sessions of the chain's owner remember. Their number, and nothing of them.
    async fn elsewhere(&self, chain: &Chain) -> Result<u64, JournalError>;
}
