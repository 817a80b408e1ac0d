//! The attempts that this process works on: effects whose start is committed and whose outcome is not recorded yet.
//!
//! Must always hold: whoever starts an attempt holds an [`OpenAttempt`] until it is closed, and closes it on every path.
//! One that is dropped open (a panic, a task that was cut off) is noticed: it is logged, and fails a test. What it left behind
//! in the journal is an orphan.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use planwright_domain::{
    attempt::{CallAttempt, ModelAttempt},
    id::CallId,
    identity::SessionKey,
};

/// One attempt at one effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attempt {
    /// A request to a model.
    Model(ModelAttempt),
    /// A tool call.
    Call(CallAttempt),
    /// A foreign agent's call of the notebook; it is repeated by its agent.
    AgentCall(CallId),
    /// The removal of the pages of a deleted session.
    Removal(SessionKey, u32),
}

/// How an attempt ends in the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The effect came to its end, and what came of it is recorded.
    Finished,
    /// The effect failed, and that is recorded.
    Failed,
    /// It is known not to have begun, and that is recorded.
    Abandoned,
    /// Nobody knows what came of it, and that is recorded.
    Orphaned,
    /// It was not started: somebody else did, or it is no longer due.
    NotStarted,
    /// Another command ended what it belonged to.
    Overtaken,
    /// The journal could not be written. Whoever looks next finds an orphan.
    NotRecorded,
}

/// How many attempts that were dropped open are kept for whoever asks.
const DROPPED_MAX: usize = 64;

#[derive(Debug, Default)]
struct Known {
    /// How many here work on each: two deliveries may try to start the same one.
    open: HashMap<Attempt, u32>,
    dropped: Vec<Attempt>,
}

/// The attempts under way in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts(Arc<Mutex<Known>>);

/// An attempt that is under way for as long as this is held.
#[derive(Debug)]
#[must_use = "an attempt is closed with its outcome"]
pub(crate) struct OpenAttempt {
    all: Attempts,
    /// None once it is closed.
    attempt: Option<Attempt>,
}

impl Known {
    fn leave(&mut self, attempt: &Attempt) {
        if let Some(holders) = self.open.get_mut(attempt) {
            *holders -= 1;
            if *holders == 0 {
                self.open.remove(attempt);
            }
        }
    }
}

impl Attempts {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to work on this. Called before its start is committed, so that nobody takes it for an orphan.
    pub(crate) fn open(&self, attempt: Attempt) -> OpenAttempt {
        *self.known().open.entry(attempt.clone()).or_default() += 1;
        OpenAttempt { all: self.clone(), attempt: Some(attempt) }
    }

    /// Begins to work on this, unless somebody here does.
    pub(crate) fn claim(&self, attempt: Attempt) -> Option<OpenAttempt> {
        let mut known = self.known();
        if known.open.contains_key(&attempt) {
            return None;
        }
        known.open.insert(attempt.clone(), 1);
        Some(OpenAttempt { all: self.clone(), attempt: Some(attempt) })
    }

    /// Whether somebody here works on it.
    pub(crate) fn is_open(&self, attempt: &Attempt) -> bool {
        self.known().open.contains_key(attempt)
    }

    /// The attempts that were dropped open since this was last asked.
    pub(crate) fn take_dropped(&self) -> Vec<Attempt> {
        mem::take(&mut self.known().dropped)
    }
}

impl OpenAttempt {
    /// Ends it.
    pub(crate) fn close(mut self, outcome: Outcome) {
        if let Some(attempt) = self.attempt.take() {
            self.all.known().leave(&attempt);
            tracing::trace!(?attempt, ?outcome, event = "attempt_closed");
        }
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        tracing::warn!(?attempt, event = "attempt_dropped_open");
        let mut known = self.all.known();
        known.leave(&attempt);
        known.dropped.push(attempt);
        let surplus = known.dropped.len().saturating_sub(DROPPED_MAX);
        known.dropped.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use planwright_domain::id::CallId;
    use uuid::Uuid;

    use super::{Attempt, Attempts, Outcome};

    #[test]
    fn an_attempt_that_is_dropped_open_is_noticed_and_no_longer_under_way() {
        let attempts = Attempts::default();
        let attempt = Attempt::AgentCall(CallId::from(Uuid::from_u128(1)));
        let open = attempts.open(attempt.clone());
        assert!(attempts.claim(attempt.clone()).is_none(), "somebody works on it");
        attempts.open(attempt.clone()).close(Outcome::NotStarted);
        assert!(attempts.is_open(&attempt), "whoever came too late closes what is theirs alone");
        open.close(Outcome::Finished);
        assert_eq!(attempts.take_dropped(), []);
        drop(attempts.open(attempt.clone()));
        assert!(!attempts.is_open(&attempt));
        assert_eq!(attempts.take_dropped(), [attempt]);
        assert_eq!(attempts.take_dropped(), []);
    }
}
