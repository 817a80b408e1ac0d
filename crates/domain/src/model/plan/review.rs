//! Review: comments with numbers, and a ledger in which each is addressed or declined.
//!
//! A comment that was made stays open until a newer revision answers it. The folded plan holds the
//! numbers of those that are open; the words stay in the journal.

use serde::{Deserialize, Serialize};

use crate::model::actor::Person;

/// A comment on a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comment {
    /// Its number in its plan, from 1; given when it is recorded.
    #[serde(default, skip_serializing_if = "is_unnumbered")]
    pub number: u32,
    /// The line of the Markdown it speaks of, from 1; none for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The step it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// What should change.
    pub text: String,
}

fn is_unnumbered(number: &u32) -> bool {
    *number == 0
}

impl Comment {
    /// A comment on the whole of a revision.
    #[must_use]
    pub fn on_the_whole(text: &str) -> Self {
        Self { number: 0, line: None, step: None, text: text.to_owned() }
    }

    /// A comment on one line.
    #[must_use]
    pub fn on_line(line: u32, text: &str) -> Self {
        Self { line: Some(line), ..Self::on_the_whole(text) }
    }

    /// A comment on one step.
    #[must_use]
    pub fn on_step(step: u32, text: &str) -> Self {
        Self { step: Some(step), ..Self::on_the_whole(text) }
    }

    /// What it speaks of, in words.
    #[must_use]
    pub fn place(&self) -> String {
        match (self.line, self.step) {
            (Some(line), _) => format!("line {line}"),
            (None, Some(step)) => format!("step {step}"),
            (None, None) => "the whole".into(),
        }
    }
}

/// What became of a comment in a newer revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reply {
    /// The comment, by number.
    pub comment: u32,
    /// Why it was declined; addressed, if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<String>,
}

/// Who wrote a revision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The model.
    #[default]
    Model,
    /// A person.
    Person(Person),
}
