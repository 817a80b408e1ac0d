//! What was shown to whom. Most surfaces write a revision out whole; a page in a browser reports the blocks that were
//! seen, and the revision was shown in full when none is left.

use std::collections::BTreeSet;

use crate::{
    model::{
        actor::{Person, PersonId},
        digest::Digest,
        limits,
        plan::{
            Plan, PlanStatus, PlanWork, RevisionHead,
            block::{BlockId, BlockSet},
            event::PlanEvent,
            refusal::PlanRefusal,
        },
    },
    rules::plan::decide::active,
};

/// A surface showed the current revision in full.
pub(crate) fn shown(
    work: &PlanWork,
    digest: Digest,
    to: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let plan = active(work)?;
    current(plan, digest)?;
    if to.surface.is_page() {
        return Err(PlanRefusal::ShownInBlocks);
    }
    Ok(in_full(plan, digest, to).into_iter().collect())
}

/// A person saw these blocks of the current revision. With the last of them it was shown in full.
pub(crate) fn seen(
    work: &PlanWork,
    digest: Digest,
    blocks: &[BlockId],
    by: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let plan = active(work)?;
    let head = current(plan, digest)?;
    let (size, limit) = (blocks.len(), limits::BLOCKS_MAX);
    if size > limit {
        return Err(PlanRefusal::TooLong { what: "the list of blocks".into(), size, limit });
    }
    if let Some(block) = blocks.iter().find(|block| !head.blocks.0.contains(block)) {
        return Err(PlanRefusal::NoSuchBlock { block: block.to_string(), number: head.number });
    }
    if plan.status != PlanStatus::Ready {
        return Ok(vec![]);
    }
    let is_new = |block: &&BlockId| !plan.has_seen(&by.id, **block);
    let new: BTreeSet<_> = blocks.iter().filter(is_new).copied().collect();
    let left = head.blocks.0.iter().filter(is_new).any(|block| !new.contains(block));
    let mut events = Vec::new();
    if !new.is_empty() {
        events.push(PlanEvent::BlocksSeen { digest, blocks: BlockSet(new), by: by.clone() });
    }
    if !left {
        events.extend(in_full(plan, digest, by));
    }
    Ok(events)
}

/// Who writes a revision has seen what they wrote: all of it, or on a page the blocks that were not there before. Text
/// that they had not seen may have moved into such a block, if a block that they had not seen is gone: then none counts.
pub(crate) fn written(plan: &Plan, digest: Digest, markdown: &str, by: &Person) -> Vec<PlanEvent> {
    let shown = PlanEvent::RevisionShown { digest, to: by.clone() };
    if !by.surface.is_page() {
        return vec![shown];
    }
    let base = plan.current.as_ref().map(|head| &head.blocks.0);
    let is_new = |block: &&BlockId| base.is_none_or(|base| !base.contains(block));
    let BlockSet(all) = BlockSet::of(markdown);
    let may_hide = |block: &BlockId| !all.contains(block) && !plan.has_seen(&by.id, *block);
    let hides = base.is_some_and(|base| base.iter().any(may_hide));
    let new: BTreeSet<_> = all.iter().filter(is_new).filter(|_| !hides).copied().collect();
    let is_seen = |block: &BlockId| new.contains(block) || plan.has_seen(&by.id, *block);
    let in_full = all.iter().all(is_seen).then_some(shown);
    let seen = PlanEvent::BlocksSeen { digest, blocks: BlockSet(new.clone()), by: by.clone() };
    (!new.is_empty()).then_some(seen).into_iter().chain(in_full).collect()
}

fn current(plan: &Plan, digest: Digest) -> Result<&RevisionHead, PlanRefusal> {
    let head = plan.current.as_ref().filter(|head| head.digest == digest);
    head.ok_or(PlanRefusal::ShownNotCurrent { seen: digest })
}

/// That it was shown in full there, unless that is known.
fn in_full(plan: &Plan, digest: Digest, to: &Person) -> Option<PlanEvent> {
    let event = PlanEvent::RevisionShown { digest, to: to.clone() };
    (plan.shown_to(to) != Some(digest)).then_some(event)
}

/// Remembers that a person has seen these blocks. Once a plan is approved nobody needs to know.
pub(crate) fn remember(plan: &mut Plan, person: &PersonId, blocks: &BlockSet) {
    if plan.status != PlanStatus::Ready {
        return;
    }
    plan.blocks_seen.entry(person.clone()).or_default().0.extend(&blocks.0);
    if count(plan) > limits::BLOCKS_SEEN_MAX {
        let current = plan.current.as_ref().map(|head| &head.blocks.0);
        let is_current = |block: &BlockId| current.is_some_and(|all| all.contains(block));
        plan.blocks_seen.values_mut().for_each(|seen| seen.0.retain(is_current));
    }
    if count(plan) > limits::BLOCKS_SEEN_MAX {
        plan.blocks_seen.retain(|reader, _| reader == person);
    }
}

fn count(plan: &Plan) -> usize {
    plan.blocks_seen.values().map(|seen| seen.0.len()).sum()
}
