//! Limits on what is written into a plan, and what several refusals name alike: step numbers, and the revision that is current.

use crate::model::{
    digest::Digest,
    plan::{RevisionHead, refusal::PlanRefusal, step::StepHead},
};

/// Something was asked of another revision than this one.
pub(crate) fn stale(seen: Option<Digest>, head: &RevisionHead) -> PlanRefusal {
    let (current, current_number) = (head.digest, head.number);
    PlanRefusal::StaleDecision { seen: seen.unwrap_or(current), current, current_number }
}

pub(crate) fn numbers<'a>(steps: impl Iterator<Item = &'a StepHead>) -> String {
    let numbers: Vec<_> = steps.map(|step| step.number.to_string()).collect();
    if numbers.is_empty() { "none".into() } else { numbers.join(", ") }
}

pub(crate) fn bounded(what: &str, text: &str, limit: usize) -> Result<(), PlanRefusal> {
    within(what, text.len(), limit)
}

pub(crate) fn within(what: &str, size: usize, limit: usize) -> Result<(), PlanRefusal> {
    if size <= limit {
        Ok(())
    } else {
        Err(PlanRefusal::TooLong { what: what.into(), size, limit })
    }
}
