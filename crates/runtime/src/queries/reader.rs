//! A plan's revision for one reader: its blocks, and which of them this person has seen.

use planwright_domain::{
    actor::Person,
    identity::SessionKey,
    plan::block::{Block, blocks},
};

use crate::{ports::journal::JournalError, queries::Queries, queries::view::RevisionView};

/// A revision, in full, and how much of it a person has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderView {
    /// The revision.
    pub revision: RevisionView,
    /// Its blocks, in order.
    pub blocks: Vec<BlockView>,
    /// Whether it was shown to them in full where they stand, so that they can approve it there.
    pub shown: bool,
}

/// A block, and whether a person has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockView {
    /// The block.
    pub block: Block,
    /// Whether they have seen it, in this revision or an earlier one, on any surface.
    pub seen: bool,
}

impl Queries {
    /// A revision as [`Queries::revision`] finds it, as this person reads it.
    pub async fn revision_for(
        &self,
        identity: &SessionKey,
        person: &Person,
        number: Option<u32>,
    ) -> Result<Option<ReaderView>, JournalError> {
        let Some(revision) = self.revision(identity, number).await? else { return Ok(None) };
        let session = self.session(identity).await?;
        let plan = session.plan().filter(|plan| plan.id == revision.revision.plan);
        let view = |block: Block| BlockView {
            block,
            seen: plan.is_some_and(|plan| plan.has_seen(&person.id, block.id)),
        };
        let blocks = blocks(&revision.revision.markdown).into_iter().map(view).collect();
        let shown = plan.is_some_and(|plan| plan.shown_to(person) == Some(revision.digest));
        Ok(Some(ReaderView { revision, blocks, shown }))
    }
}
