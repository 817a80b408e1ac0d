//! How a model is asked again: which one, when, and how often.
//!
//! Failures are classed by who can mend them. What time may mend is tried again, soon and then ever more rarely; what
//! another model may mend goes to the next one; what only a person or an operator can mend is said at once. Nothing here
//! draws lots: the jitter comes from the turn's own id.

use serde::{Deserialize, Serialize};

use crate::model::time::Time;

/// Where a turn stands with the models that it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asking {
    /// The number of the fallback that was asked; 0 is the model that should answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub model: u32,
    /// How often that one has failed in this round.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// How often the turn was suspended in this round.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended: u32,
    /// When it first failed in this round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// How often a server said that the request is larger than its window; each time, half the room is used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub halved: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Asking {
    /// Whether it waits for long, so that a person's message wakes it.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspended > 0
    }
}
