//! The recorded calls of an approved plan, read again and held against what was approved.
//!
//! Must always hold:
//! - `approved-as-read`: what runs has the digest that a person approved; the record of the approval
//!   and the revision are both read from the journal and digested anew before a call is made.

use std::collections::BTreeMap;

use planwright_domain::{
    identity::SessionKey,
    plan::{event::PlanEvent, step::StepWork},
    session::{CorruptJournal, Session, SessionEvent},
    turn::Work,
};

use crate::ports::journal::{Journal, JournalError};

/// The arguments of the recorded calls that the open turn makes, by step.
pub(crate) async fn arguments(
    journal: &dyn Journal,
    identity: &SessionKey,
    session: &Session,
) -> Result<BTreeMap<u32, String>, JournalError> {
    let replays = session.turn.as_ref().is_some_and(|turn| turn.work == Work::Replays);
    if !replays {
        return Ok(BTreeMap::new());
    }
    let wrong = |what: &str| CorruptJournal::new(session.version, what);
    let plan = session.plan().ok_or_else(|| wrong("recorded calls without a plan"))?;
    let approval = plan.status.approval();
    let approval = approval.ok_or_else(|| wrong("recorded calls without an approval"))?;
    let at = |seq: Option<_>| seq.ok_or_else(|| wrong("an approval without its place"));
    let approved = event(journal, identity, at(plan.approved_seq)?).await?;
    match approved {
        Some(SessionEvent::Plan(PlanEvent::PlanApproved {
            approval: recorded, digest, ..
        })) if *recorded == *approval && recorded.digest() == digest => {}
        _ => return Err(wrong("an approval that is not the one that was recorded").into()),
    }
    let seq = at(plan.revision_seq(approval.revision))?;
    let revision = match event(journal, identity, seq).await? {
        Some(SessionEvent::Plan(PlanEvent::RevisionAdded { revision, digest, .. }))
            if revision.digest(identity) == digest && digest == approval.revision_digest =>
        {
            revision
        }
        _ => return Err(wrong("a revision that is not the one that was approved").into()),
    };
    let heads: Vec<_> = revision.steps.iter().map(|step| step.head()).collect();
    if heads != plan.steps() {
        return Err(wrong("steps that are not the ones that were approved").into());
    }
    let calls = revision.steps.into_iter().filter_map(|step| match step.work {
        StepWork::Call { arguments, .. } => Some((step.number, arguments)),
        StepWork::Task { .. } => None,
    });
    Ok(calls.collect())
}

async fn event(
    journal: &dyn Journal,
    identity: &SessionKey,
    seq: planwright_domain::id::Seq,
) -> Result<Option<SessionEvent>, JournalError> {
    let before = planwright_domain::id::Seq(seq.0.saturating_sub(1));
    let found = journal.events(identity, before, 1).await?.into_iter().next();
    Ok(found.filter(|recorded| recorded.seq == seq).map(|recorded| recorded.event))
}
