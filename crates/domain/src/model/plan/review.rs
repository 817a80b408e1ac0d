//! Review: comments with numbers, each the first of a thread, and a ledger in which each is answered, addressed or declined.
//!
//! A comment that was asked for stays open until a newer revision answers it. The folded plan holds the
//! numbers of those that are open; the words stay in the journal. What was posted and not yet asked for is
//! held whole: the next request takes it along.

use serde::{Deserialize, Serialize};

use crate::model::actor::{Person, PersonId};

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
    /// The last line, where it speaks of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u32>,
    /// The step it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The comment whose thread it goes on with; in a request for changes, its own number says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<u32>,
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
        let (line, last_line, step, reply_to) = (None, None, None, None);
        Self { number: 0, line, last_line, step, reply_to, text: text.to_owned() }
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
        match (self.line, self.last_line, self.step) {
            (Some(line), Some(last), _) if last > line => format!("lines {line} to {last}"),
            (Some(line), _, _) => format!("line {line}"),
            (None, _, Some(step)) => format!("step {step}"),
            (None, _, None) if self.reply_to.is_some() => "what was answered".into(),
            (None, _, None) => "the whole".into(),
        }
    }

    /// The number of the comment that its thread began with.
    #[must_use]
    pub fn thread(&self) -> u32 {
        self.reply_to.unwrap_or(self.number)
    }
}

/// A comment that everybody sees, and that the next request for changes takes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Posted {
    /// The comment.
    pub comment: Comment,
    /// The revision that it was made on, whose lines it names.
    pub revision: u32,
    /// Who made it.
    pub by: PersonId,
}

/// What a person says in the discussion of a revision, without asking for a newer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// A comment, or a reply to one.
    Comment {
        /// The comment; its number is given when it is recorded.
        comment: Comment,
    },
    /// Other words for a comment of their own that was not asked for yet.
    Edit {
        /// Its number.
        number: u32,
        /// The words.
        text: String,
    },
    /// That a thread is settled: it needs no answer any more.
    Resolve {
        /// The number of its first comment.
        number: u32,
    },
    /// That it is not.
    Reopen {
        /// The number of its first comment.
        number: u32,
    },
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
    /// What the comment asked to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
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
