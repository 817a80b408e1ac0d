//! Turns that wait until others of their owner end.
//!
//! What waits is due in the journal: this only wakes it early, and on the node on which the other turn ended.

use std::collections::{HashMap, VecDeque};

use planwright_domain::{
    id::{OwnerId, Seq},
    identity::SessionKey,
};

/// Sessions that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct Held(HashMap<OwnerId, VecDeque<(SessionKey, Seq)>>);

impl Held {
    /// Adds a session; how many of its owner wait then.
    pub(super) fn add(&mut self, identity: &SessionKey, version: Seq) -> usize {
        let waiting = self.0.entry(identity.owner).or_default();
        if !waiting.iter().any(|(held, _)| held == identity) {
            waiting.push_back((identity.clone(), version));
        }
        waiting.len()
    }

    pub(super) fn has(&self, identity: &SessionKey) -> bool {
        let waiting = self.0.get(&identity.owner);
        waiting.is_some_and(|waiting| waiting.iter().any(|(held, _)| held == identity))
    }

    pub(super) fn next(&mut self, owner: OwnerId) -> Option<(SessionKey, Seq)> {
        let waiting = self.0.get_mut(&owner)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.0.remove(&owner);
        }
        first
    }

    pub(super) fn remove(&mut self, identity: &SessionKey) {
        if let Some(waiting) = self.0.get_mut(&identity.owner) {
            waiting.retain(|(held, _)| held != identity);
        }
    }
}
