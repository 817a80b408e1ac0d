//! Limits on what is written into a plan, and step numbers as they are named in a refusal.

use crate::model::plan::{refusal::PlanRefusal, step::StepHead};

pub(crate) fn numbers<'a>(steps: impl Iterator<Item = &'a StepHead>) -> String {
    let numbers: Vec<_> = steps.map(|step| step.number.to_string()).collect();
    if numbers.is_empty() { "none".into() } else { numbers.join(", ") }
}

pub(crate) fn bounded(what: &str, text: &str, limit: usize) -> Result<(), PlanRefusal> {
    let size = text.len();
    if size <= limit {
        Ok(())
    } else {
        Err(PlanRefusal::TooLong { what: what.into(), size, limit })
    }
}
