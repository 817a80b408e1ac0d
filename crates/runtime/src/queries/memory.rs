//! What is remembered, as a person looks at it.

use planwright_domain::{
    actor::Person,
    id::MemoryId,
    identity::SessionKey,
    memory::{
        Chain, Item, Scope,
        rank::{Ranked, Why},
    },
    session::Session,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ports::journal::JournalError, queries::Queries};

/// How many items are listed.
const LISTED_MAX: usize = 200;

/// What is remembered, as a person looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryView {
    /// The scopes that were looked at, nearest first, with how many items of each are shown.
    pub chain: Vec<(String, usize)>,
    /// The items, with why each was found where words were asked for.
    pub items: Vec<Ranked>,
    /// How many items of other sessions an engine gave: dropped, counted, never shown.
    pub blocked: u64,
}

impl Queries {
    /// What a person sees of what is remembered: everything of the session, or what fits these words.
    pub async fn memory(
        &self,
        identity: &SessionKey,
        text: &str,
    ) -> Result<MemoryView, JournalError> {
        let session = self.session(identity).await?;
        let chain = Chain::in_session(&session, None);
        if text.trim().is_empty() {
            let items = self.memories.memory.everything(&chain, LISTED_MAX).await?;
            let ranked = items.into_iter().map(|item| Ranked { why: listed(&item), item });
            let items: Vec<_> = ranked.collect();
            return Ok(view(&chain, items, 0));
        }
        let recalled = self.memories.recall(&session, None, text, usize::MAX / 8).await?;
        Ok(view(&chain, recalled.items, recalled.blocked))
    }

    /// How many items this person's other sessions remember: counted for them, never shown, never looked at by a turn.
    pub async fn elsewhere(
        &self,
        person: &Person,
        identity: &SessionKey,
    ) -> Result<u64, JournalError> {
        let session = self.session(identity).await?;
        if session.owner != person.owner {
            return Ok(0);
        }
        self.memories.memory.elsewhere(&Chain::in_session(&session, None)).await
    }

    /// The item of this id that work in a session may see.
    pub(crate) async fn remembered_item(
        &self,
        session: &Session,
        id: MemoryId,
    ) -> Result<Option<Item>, JournalError> {
        self.memories.memory.item(&Chain::in_session(session, None), id).await
    }

    /// The one item of a session, or of what is known everywhere, whose id this is, or how it ends.
    pub async fn remembered(
        &self,
        identity: &SessionKey,
        id: &str,
    ) -> Result<Option<Item>, JournalError> {
        let session = self.session(identity).await?;
        if let Ok(whole) = id.parse::<Uuid>() {
            return self.remembered_item(&session, whole.into()).await;
        }
        if id.len() < 4 {
            return Ok(None);
        }
        // People name the end of an id: the beginning of those that were made together is the same.
        let found = self.memory(identity, "").await?.items.into_iter();
        let mut found = found.filter(|ranked| ranked.item.id.to_string().ends_with(id));
        Ok(match (found.next(), found.next()) {
            (Some(one), None) => Some(one.item),
            (_, _) => None,
        })
    }
}

fn view(chain: &Chain, items: Vec<Ranked>, blocked: u64) -> MemoryView {
    let of =
        |scope: &Scope| items.iter().filter(|ranked: &&Ranked| ranked.item.scope == *scope).count();
    let scopes = chain.scopes().iter().map(|scope| (scope.to_string(), of(scope))).collect();
    MemoryView { chain: scopes, items, blocked }
}

/// Why an item is listed that nobody asked for by words.
fn listed(item: &Item) -> Why {
    let sure = item.confidence;
    let matched = Vec::new();
    Why { matched, fits: 0, sure, fresh: 0, score: 0 }
}
