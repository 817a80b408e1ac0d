//! What a plan event means. Never judges: that was `decide`'s job, once.

use std::collections::BTreeMap;

use crate::{
    command::Start,
    effect::Touched,
    id::Seq,
    limits,
    plan::{Plan, PlanEvent, PlanStatus, PlanWork, Progress, Review, RevisionHead},
    session::CorruptJournal,
};

/// Applies a fact that stands at this place in the stream.
pub(crate) fn evolve(
    work: PlanWork,
    seq: Seq,
    event: &PlanEvent,
) -> Result<PlanWork, CorruptJournal> {
    let plan = match event {
        PlanEvent::PlanStarted { plan, strategy, predecessor } => {
            if let PlanWork::Active(other) = work {
                return Err(CorruptJournal::new(
                    seq,
                    format!("plan {plan} started beside {}", other.id),
                ));
            }
            Plan {
                id: *plan,
                strategy: *strategy,
                status: PlanStatus::Collecting,
                current: None,
                revisions: Vec::new(),
                predecessor: *predecessor,
                approved_seq: None,
                shown: BTreeMap::new(),
                touched: Vec::new(),
                touched_more: 0,
                executions: 0,
            }
        }
        PlanEvent::RevisionAdded { revision, digest } => {
            let head = RevisionHead {
                number: revision.number,
                digest: *digest,
                title: revision.title.clone(),
                review: Review::Open,
            };
            let mut plan = active(work, seq)?;
            plan.revisions.push(seq);
            Plan { status: PlanStatus::Ready, current: Some(head), ..plan }
        }
        PlanEvent::RevisionShown { digest, to } => {
            let mut plan = active(work, seq)?;
            let rows: usize = plan.shown.values().map(BTreeMap::len).sum();
            if rows >= limits::SHOWN_MAX {
                plan.shown.clear();
            }
            plan.shown.entry(to.id.clone()).or_default().insert(to.surface.clone(), *digest);
            plan
        }
        PlanEvent::ChangesRequested { .. } => {
            let mut plan = active(work, seq)?;
            if let Some(head) = &mut plan.current {
                head.review = Review::Withdrawn;
            }
            plan
        }
        PlanEvent::PlanApproved { approval, digest, start: Start::AtOnce | Start::Hold } => {
            if approval.digest() != *digest {
                return Err(CorruptJournal::new(
                    seq,
                    "an approval record that does not match its digest",
                ));
            }
            let status = PlanStatus::Approved(approval.clone());
            Plan { status, approved_seq: Some(seq), ..active(work, seq)? }
        }
        PlanEvent::ExecutionStarted { number, .. } => {
            let plan = active(work, seq)?;
            let status = executing(&plan, seq, Progress::Running)?;
            Plan { status, executions: *number, ..plan }
        }
        PlanEvent::ExecutionPaused { reason } => {
            let plan = active(work, seq)?;
            let status = executing(&plan, seq, Progress::Paused(reason.clone()))?;
            Plan { status, ..plan }
        }
        PlanEvent::PlanFailed { .. } => {
            let plan = active(work, seq)?;
            let status = PlanStatus::Failed(approval(&plan, seq)?);
            Plan { status, ..plan }
        }
        PlanEvent::PlanEnded { .. } => {
            active(work, seq)?;
            return Ok(PlanWork::Inactive);
        }
    };
    Ok(PlanWork::Active(Box::new(plan)))
}

/// Adds what a call did to the world to the plan's list.
pub(crate) fn touch(plan: &mut Plan, touched: &[Touched]) {
    for thing in touched {
        if plan.touched.len() < limits::TOUCHED_MAX {
            plan.touched.push(thing.clone());
        } else {
            plan.touched_more += 1;
        }
    }
}

fn active(work: PlanWork, seq: Seq) -> Result<Plan, CorruptJournal> {
    match work {
        PlanWork::Active(plan) => Ok(*plan),
        PlanWork::Inactive => Err(CorruptJournal::new(seq, "a plan event without plan work")),
    }
}

fn approval(plan: &Plan, seq: Seq) -> Result<crate::plan::Approval, CorruptJournal> {
    let missing = || CorruptJournal::new(seq, "an execution without an approval");
    plan.status.approval().cloned().ok_or_else(missing)
}

fn executing(plan: &Plan, seq: Seq, progress: Progress) -> Result<PlanStatus, CorruptJournal> {
    Ok(PlanStatus::Executing(approval(plan, seq)?, progress))
}
