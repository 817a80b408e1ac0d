//! What was observed of a plan's work, apart from what anybody says of it.
//!
//! A model that reports a plan as done makes a claim. What the journal recorded are facts: which calls of its
//! executions ran, and for which of its steps. [`observe`] derives the second, and every surface shows both.

use serde::{Deserialize, Serialize};

use crate::{
    effect::Touched,
    plan::{
        Ended, Plan, Strategy,
        event::Word,
        step::{StepEnd, StepHead},
    },
};

/// What was observed of a plan's work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observation {
    /// How many calls of its executions ended well.
    #[serde(default)]
    pub calls_done: u32,
    /// How many failed.
    #[serde(default)]
    pub calls_failed: u32,
    /// The steps for which no call was reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_without_calls: Vec<StepTitle>,
    /// Who says that the plan is done, if it ended as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

/// A step by its number and its first words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTitle {
    /// Its number.
    pub number: u32,
    /// Its first words.
    pub title: String,
}

/// Who says that a plan is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The record: every approved call was run.
    Observed,
    /// A model or a foreign agent, by its report.
    Claimed,
    /// A person, by `/plan done`.
    Declared,
}

impl Basis {
    /// The name programs read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Claimed => "claimed",
            Self::Declared => "declared",
        }
    }

    /// What people read in place of "done".
    #[must_use]
    pub fn status(self) -> &'static str {
        match self {
            Self::Observed => "done",
            Self::Claimed => "reported done",
            Self::Declared => "declared done",
        }
    }
}

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
pub fn observe_end(plan: &Plan, ended: Ended, word: &Word) -> Observation {
    let observation = observe(plan);
    // Only recorded calls are the work itself; the work of other steps is what somebody reports.
    let has_all = plan.strategy == Strategy::Collect
        && observation.steps_without_calls.is_empty()
        && plan.unsettled().next().is_none();
    let basis = match (ended, word) {
        (Ended::Completed, Word::Person { .. }) => Some(Basis::Declared),
        (Ended::Completed, Word::Steps { .. }) if has_all => Some(Basis::Observed),
        (
            Ended::Completed,
            Word::Steps { .. } | Word::Model { .. } | Word::Agent { .. } | Word::Successor { .. },
        ) => Some(Basis::Claimed),
        (Ended::Rejected | Ended::Cancelled | Ended::Superseded, _) => None,
    };
    Observation { basis, ..observation }
}

impl Observation {
    /// What ended the plan, and by whose word, in a sentence.
    #[must_use]
    pub fn claim(&self, word: &Word) -> String {
        match (self.basis, word) {
            (Some(Basis::Declared), Word::Person { by, said: None }) => {
                format!("declared done by {}", by.id.0)
            }
            (Some(Basis::Declared), Word::Person { by, said: Some(said) }) => {
                format!("declared done by {}: {said}", by.id.0)
            }
            (Some(Basis::Observed), Word::Steps { done, skipped: 0 }) => {
                format!("all {done} recorded steps ran")
            }
            (Some(Basis::Observed), Word::Steps { done, skipped }) => {
                format!("{done} recorded steps ran, {skipped} were skipped")
            }
            (Some(Basis::Claimed), Word::Steps { done, skipped: 0 }) => {
                format!("each of the {done} steps was reported done")
            }
            (Some(Basis::Claimed), Word::Steps { done, skipped }) => {
                format!("{done} steps were reported done, {skipped} were skipped")
            }
            (Some(_) | None, word) => word.in_words(),
        }
    }

    /// What was observed, in words: the calls, and what they did.
    #[must_use]
    pub fn in_words(&self, touched: &[Touched], touched_more: u64) -> Vec<String> {
        let many = |count: u32| if count == 1 { "1 call".into() } else { format!("{count} calls") };
        let ran = match (self.calls_done, self.calls_failed) {
            (0, 0) => None,
            (done, 0) => Some(format!("{} ran", many(done))),
            (done, failed) => Some(format!("{} ran, {failed} failed", many(done + failed))),
        };
        let more = (touched_more > 0).then(|| format!("and {touched_more} more"));
        ran.into_iter().chain(touched.iter().map(Touched::in_words)).chain(more).collect()
    }

    /// The steps for which no call was reported, in words.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let words = |step: &StepTitle| format!("{}. {}", step.number, step.title);
        self.steps_without_calls.iter().map(words).collect()
    }
}
