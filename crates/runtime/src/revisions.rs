//! Reads a revision of a plan from the journal, and holds it against its digest.

use planwright_domain::{
    digest::Digest,
    id::Seq,
    identity::SessionKey,
    plan::{Plan, Revision, event::PlanEvent},
    session::{CorruptJournal, SessionEvent},
};

use crate::ports::journal::{Journal, JournalError};

/// The revision of this number, read at its place in the stream and held against its digest.
pub(crate) async fn of_plan(
    journal: &dyn Journal,
    identity: &SessionKey,
    plan: &Plan,
    number: u32,
) -> Result<Option<(Revision, Digest)>, JournalError> {
    let Some(seq) = plan.revision_seq(number) else { return Ok(None) };
    revision_at(journal, identity, seq).await.map(Some)
}

/// The revision at this place in the stream, held against its digest.
pub(crate) async fn revision_at(
    journal: &dyn Journal,
    identity: &SessionKey,
    seq: Seq,
) -> Result<(Revision, Digest), JournalError> {
    let found = journal.events(identity, Seq(seq.0 - 1), 1).await?.into_iter().next();
    match found.map(|recorded| recorded.event) {
        Some(SessionEvent::Plan(PlanEvent::RevisionAdded { revision, digest, .. }))
            if revision.digest(identity) == digest =>
        {
            Ok((*revision, digest))
        }
        _ => Err(CorruptJournal::new(seq, "a revision that does not match its digest").into()),
    }
}
