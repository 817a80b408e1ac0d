//! Attempts: each time that an effect is tried.
//!
//! Must always hold: an attempt is opened by a committed start, before the effect, and closed by exactly one of four outcomes:
//! finished, failed, abandoned (known not to have begun) or orphaned (nobody knows what came of it).

use crate::model::id::{CallId, TurnId};

/// One attempt at a request to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelAttempt {
    /// The turn.
    pub turn: TurnId,
    /// The number of the request within its turn, from 1.
    pub round: u32,
    /// The number of the attempt within its round, from 1.
    pub number: u32,
}

impl ModelAttempt {
    /// The first one of a turn.
    #[must_use]
    pub fn first(turn: TurnId) -> Self {
        Self { turn, round: 1, number: 1 }
    }
}

/// One attempt at a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallAttempt {
    /// The call.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub number: u32,
}
