//! The attempts that this process works on: model calls and tool calls whose start is committed.
//!
//! Must always hold: whoever opens a bracket holds an [`Open`] until the outcome is recorded. An attempt of this
//! process that nobody holds is over, whatever ended it: an error, a panic, a caller that went away.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use planwright_domain::id::{CallId, TurnId};

/// One try of one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Attempt {
    /// A request to a model.
    Model { turn: TurnId, round: u32, number: u32 },
    /// A tool call.
    Call { call: CallId, number: u32 },
}

/// The attempts under way in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts(Arc<Mutex<HashSet<Attempt>>>);

/// Attempts that are under way for as long as this is held.
#[derive(Debug)]
pub(crate) struct Open {
    all: Attempts,
    held: Vec<Attempt>,
}

impl Attempts {
    /// Begins to work on these. Called before their start is committed, so that nobody takes them for orphans.
    pub(crate) fn open(&self, held: Vec<Attempt>) -> Open {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&held);
        Open { all: self.clone(), held }
    }

    /// Begins to work on this, unless somebody here does.
    pub(crate) fn claim(&self, attempt: Attempt) -> Option<Open> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt);
        is_new.then(|| Open { all: self.clone(), held: vec![attempt] })
    }

    /// Whether somebody here works on it.
    pub(crate) fn is_open(&self, attempt: Attempt) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&attempt)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in &self.held {
            all.remove(attempt);
        }
    }
}
