//! What was observed of a plan's work: derived from the plan, whatever anybody says of it.

use crate::model::plan::{
    Ended, Plan, Strategy,
    event::Account,
    observation::{Basis, Observation, StepTitle},
    step::{StepEnd, StepHead},
};

/// What was observed of this plan's work so far.
#[must_use]
pub fn observe(plan: &Plan) -> Observation {
    let missing = |number: u32, title: &str| StepTitle { number, title: title.to_owned() };
    let needs_none = |step: &StepHead| match plan.outcomes.get(&step.number) {
        Some(StepEnd::Skipped { .. }) => true,
        // Its call was observed in the plan that it was carried from, or nobody saw one there either.
        Some(StepEnd::Carried { .. }) => !plan.claimed.contains(&step.key),
        Some(StepEnd::Done | StepEnd::Reported { .. } | StepEnd::Failed { .. }) | None => false,
    };
    let steps_without_calls: Vec<_> = match plan.strategy {
        // The calls of a document's execution belong to the whole of it: nothing ties one to a step.
        Strategy::Document => {
            let written = plan.current.iter().flat_map(|head| &head.written);
            (1..).zip(written).map(|(number, title)| missing(number, title)).collect()
        }
        Strategy::Collect | Strategy::Build => plan
            .steps()
            .iter()
            .filter(|step| !plan.steps_with_calls.contains(&step.number) && !needs_none(step))
            .map(|step| missing(step.number, step.in_words()))
            .collect(),
    };
    let (calls_done, calls_failed) = (plan.calls_done, plan.calls_failed);
    Observation { calls_done, calls_failed, steps_without_calls, basis: None }
}

/// What was observed of the work of a plan that ends so, by this word.
#[must_use]
pub fn observe_end(plan: &Plan, ended: Ended, account: &Account) -> Observation {
    let observation = observe(plan);
    // Only recorded calls are the work itself; the work of other steps is what somebody reports.
    let has_all = plan.strategy == Strategy::Collect
        && observation.steps_without_calls.is_empty()
        && plan.unsettled().next().is_none();
    let basis = match (ended, account) {
        (Ended::Completed, Account::Person { .. }) => Some(Basis::Declared),
        (Ended::Completed, Account::Steps { .. }) if has_all => Some(Basis::Observed),
        (
            Ended::Completed,
            Account::Steps { .. }
            | Account::Model { .. }
            | Account::Agent { .. }
            | Account::Successor { .. },
        ) => Some(Basis::Claimed),
        (Ended::Rejected | Ended::Cancelled | Ended::Superseded, _) => None,
    };
    Observation { basis, ..observation }
}
