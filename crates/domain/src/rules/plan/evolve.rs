//! What a plan event means. Never judges: that was `decide`'s job, once.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{
        actor::{Person, PersonId},
        command::Start,
        digest::Digest,
        id::Seq,
        limits,
        plan::{
            Begun, Plan, PlanStatus, PlanWork, Progress, Review, Revision, RevisionHead, Seen,
            Strategy,
            block::BlockSet,
            draft::Draft,
            event::{DraftChange, PlanEvent},
            review::Comment,
            step::{PlanStep, StepHead},
        },
        session::CorruptJournal,
        turn::{CallResult, CallStatus},
    },
    rules::plan::{comments, document_steps, rendering},
};

/// Applies a fact that stands at this place in the stream.
#[expect(clippy::too_many_lines, reason = "one arm for each event of a plan")]
pub(crate) fn evolve(
    work: PlanWork,
    seq: Seq,
    event: &PlanEvent,
) -> Result<PlanWork, CorruptJournal> {
    let plan = match event {
        PlanEvent::PlanStarted { plan, strategy, predecessor, reads, carried, claimed, .. } => {
            if let PlanWork::Active(other) = work {
                return Err(CorruptJournal::new(
                    seq,
                    format!("plan {plan} started beside {}", other.id),
                ));
            }
            let (carried, claimed) = (carried.clone(), claimed.clone());
            let (predecessor, reads) = (*predecessor, *reads);
            Plan { predecessor, reads, carried, claimed, ..Plan::new(*plan, *strategy) }
        }
        PlanEvent::DraftChanged { change } => {
            let mut plan = active(work, seq)?;
            draft(&mut plan, change);
            plan
        }
        PlanEvent::RevisionAdded { revision, digest, waits, replies, .. } => {
            let head = head_of(revision, *digest);
            let mut plan = active(work, seq)?;
            plan.revisions.push(seq);
            // Somebody may open again what was settled and not answered.
            let answered: BTreeSet<_> = replies.iter().map(|reply| reply.comment).collect();
            let is_left =
                |number: &u32| plan.resolved.contains(number) && !answered.contains(number);
            plan.comments_open.retain(is_left);
            plan.waits = *waits;
            plan.numbered = head.steps.iter().map(|step: &StepHead| step.number).max().unwrap_or(0);
            let brief = revision.brief.clone();
            let basis = brief.map(|brief| Draft { brief, steps: revision.steps.clone() });
            Plan { status: PlanStatus::Ready, current: Some(head), draft: None, basis, ..plan }
        }
        PlanEvent::RevisionShown { digest, to } => {
            let mut plan = active(work, seq)?;
            show(&mut plan, *digest, to);
            plan
        }
        PlanEvent::BlocksSeen { blocks, by, .. } => {
            let mut plan = active(work, seq)?;
            rendering::remember(&mut plan, &by.id, blocks);
            plan
        }
        PlanEvent::Discussed { said, by } => {
            let mut plan = active(work, seq)?;
            comments::enter(&mut plan, said, &by.id);
            plan
        }
        PlanEvent::ChangesRequested { comments, by, .. } => {
            let mut plan = active(work, seq)?;
            request_changes(&mut plan, comments, &by.id);
            plan
        }
        PlanEvent::DecisionReminded { next, .. } => {
            let mut plan = active(work, seq)?;
            if let Some(waits) = &mut plan.waits {
                waits.remind_at = Some(*next);
            }
            plan
        }
        PlanEvent::DecisionExpired { .. } => {
            let mut plan = active(work, seq)?;
            plan.waits = None;
            if let Some(head) = &mut plan.current {
                head.review = Review::Expired;
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
            let status = PlanStatus::Approved((**approval).clone());
            let (approved_seq, blocks_seen) = (Some(seq), BTreeMap::new());
            let plan = active(work, seq)?;
            Plan { status, approved_seq, blocks_seen, draft: None, waits: None, ..plan }
        }
        PlanEvent::ExecutionStarted { number, .. } => {
            let plan = active(work, seq)?;
            let status = executing(&plan, seq, Progress::Running)?;
            Plan { status, executions: *number, spent_micros: 0, ..plan }
        }
        PlanEvent::StepQueued { .. } => active(work, seq)?,
        PlanEvent::StepBegun { step, title, by } => {
            let begun = Begun { step: *step, title: title.clone(), by: by.clone() };
            Plan { begun: Some(begun), ..active(work, seq)? }
        }
        PlanEvent::StepEnded { step, end, .. } => {
            let mut plan = active(work, seq)?;
            plan.outcomes.insert(*step, end.clone());
            plan.begun = plan.begun.filter(|begun| begun.step != *step);
            plan
        }
        PlanEvent::ExecutionPaused { reason } => {
            let plan = active(work, seq)?;
            let status = executing(&plan, seq, Progress::Paused(reason.clone()))?;
            let grants = if reason.withdraws() { Vec::new() } else { plan.grants };
            Plan { status, grants, ..plan }
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

/// What the folded plan keeps of a revision; its text stays in the journal.
fn head_of(revision: &Revision, digest: Digest) -> RevisionHead {
    let written = match revision.strategy {
        Strategy::Document => {
            let mut steps = document_steps::steps(&revision.markdown);
            steps.truncate(limits::STEPS_MAX);
            steps
        }
        Strategy::Collect | Strategy::Build => Vec::new(),
    };
    RevisionHead {
        number: revision.number,
        digest,
        title: revision.title.clone(),
        review: Review::Open,
        steps: revision.steps.iter().map(PlanStep::head).collect(),
        written,
        envelope: revision.envelope.clone(),
        lines: u32::try_from(revision.markdown.lines().count()).unwrap_or(u32::MAX),
        blocks: BlockSet::of(&revision.markdown),
        outside: BTreeSet::new(),
    }
}

/// A surface showed the whole revision to this person.
fn show(plan: &mut Plan, digest: Digest, to: &Person) {
    let rows: usize = plan.shown.values().map(BTreeMap::len).sum();
    if rows >= limits::SHOWN_MAX {
        plan.shown.clear();
    }
    plan.shown.entry(to.id.clone()).or_default().insert(to.surface.clone(), digest);
    see(plan, &to.id);
    let blocks = plan.current.as_ref().map(|head| head.blocks.clone());
    rendering::remember(plan, &to.id, &blocks.unwrap_or_default());
}

fn request_changes(plan: &mut Plan, comments: &[Comment], by: &PersonId) {
    let numbers = comments.iter().map(|comment| comment.number).filter(|number| *number > 0);
    plan.comments_open.extend(numbers);
    plan.commented = plan.comments_open.last().copied().unwrap_or(0).max(plan.commented);
    let resolved = &plan.resolved;
    plan.posted.retain(|_, posted| resolved.contains(&posted.comment.thread()));
    see(plan, by);
    plan.waits = None;
    if let Some(head) = &mut plan.current {
        head.review = Review::Withdrawn;
    }
}

/// A call of the running execution waits for a person, or waits no more.
pub(crate) fn set_progress(plan: &mut Plan, progress: Progress) {
    if let PlanStatus::Executing(_, now) = &mut plan.status {
        *now = progress;
    }
}

/// A person has seen or decided on the current revision.
fn see(plan: &mut Plan, person: &PersonId) {
    let Some(last) = plan.current.as_ref().map(|head| head.number) else { return };
    if plan.seen.len() >= limits::SHOWN_MAX {
        plan.seen.clear();
    }
    let seen = plan.seen.entry(person.clone()).or_insert(Seen { last, before: None });
    if seen.last != last {
        *seen = Seen { last, before: Some(seen.last) };
    }
}

/// Changes the draft, which begins as a copy of what the current revision was made of.
fn draft(plan: &mut Plan, change: &DraftChange) {
    let draft = plan.draft.get_or_insert_with(|| plan.basis.clone().unwrap_or_default());
    match change {
        DraftChange::GoalSet { goal, title } => {
            draft.brief.goal = Some(goal.clone());
            draft.brief.title.clone_from(title);
        }
        DraftChange::MetadataSet { brief } => {
            draft.brief.clone_from(brief);
        }
        DraftChange::StepAdded { step } => {
            if plan.strategy == Strategy::Build {
                plan.numbered = plan.numbered.max(step.number);
            }
            draft.steps.push(step.clone());
        }
        DraftChange::StepUpdated { step } => {
            let old = draft.steps.iter_mut().find(|old| old.number == step.number);
            old.into_iter().for_each(|old| *old = step.clone());
        }
        DraftChange::StepRemoved { step } => draft.steps.retain(|old| old.number != *step),
    }
}

/// A call of an execution ended: counts it, for its step if it has one, and lists what it did to the world.
pub(crate) fn call_ended(plan: &mut Plan, step: Option<u32>, result: &CallResult) {
    match result.status {
        CallStatus::Done => plan.calls_done += 1,
        CallStatus::Failed => plan.calls_failed += 1,
    }
    plan.steps_with_calls.extend(step);
    for thing in &result.touched {
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

fn approval(
    plan: &Plan,
    seq: Seq,
) -> Result<crate::model::plan::approval::Approval, CorruptJournal> {
    let missing = || CorruptJournal::new(seq, "an execution without an approval");
    plan.status.approval().cloned().ok_or_else(missing)
}

fn executing(plan: &Plan, seq: Seq, progress: Progress) -> Result<PlanStatus, CorruptJournal> {
    Ok(PlanStatus::Executing(approval(plan, seq)?, progress))
}
