//! What was observed of a plan's work, and what was claimed of it, in words.

use crate::model::{
    effect::Touched,
    plan::{
        event::Account,
        observation::{Basis, Observation, StepTitle},
    },
};

impl Observation {
    /// What ended the plan, and by whose account, in a sentence.
    #[must_use]
    pub fn claim(&self, account: &Account) -> String {
        match (self.basis, account) {
            (Some(Basis::Declared), Account::Person { by, note: None }) => {
                format!("declared done by {}", by.id.0)
            }
            (Some(Basis::Declared), Account::Person { by, note: Some(note) }) => {
                format!("declared done by {}: {note}", by.id.0)
            }
            (Some(Basis::Observed), Account::Steps { done, skipped: 0 }) => {
                format!("all {done} recorded steps ran")
            }
            (Some(Basis::Observed), Account::Steps { done, skipped }) => {
                format!("{done} recorded steps ran, {skipped} were skipped")
            }
            (Some(Basis::Claimed), Account::Steps { done, skipped: 0 }) => {
                format!("each of the {done} steps was reported done")
            }
            (Some(Basis::Claimed), Account::Steps { done, skipped }) => {
                format!("{done} steps were reported done, {skipped} were skipped")
            }
            (Some(_) | None, account) => account.in_words(),
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
