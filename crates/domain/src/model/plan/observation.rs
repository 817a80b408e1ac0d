//! What was observed of a plan's work, apart from what anybody says of it.
//!
//! A model that reports a plan as done makes a claim. What the journal recorded are facts: which calls of its
//! executions ran, and for which of its steps. `rules::plan::observe` derives the second, and every surface shows both.

use serde::{Deserialize, Serialize};

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
