//! Which foreign agents are there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::id::GrantId;
use tokio::time::Instant;

/// Who is there.
pub(crate) struct Agents {
    live: Mutex<HashMap<GrantId, usize>>,
    seated: Mutex<HashMap<GrantId, Instant>>,
    since: Instant,
    /// How long it counts as there, though it was not heard of; none where it may be elsewhere.
    grace: Option<Duration>,
    /// Places are given out one at a time.
    pub(super) giving: tokio::sync::Mutex<()>,
}

impl Agents {
    pub(crate) fn new(grace: Option<Duration>) -> Self {
        Self {
            live: Mutex::default(),
            seated: Mutex::default(),
            since: Instant::now(),
            grace,
            giving: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn is_there(&self, grant: GrantId) -> bool {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.get(&grant).is_some_and(|many| *many > 0) {
            return true;
        }
        let Some(grace) = self.grace else { return false };
        match self.seated.lock().unwrap_or_else(PoisonError::into_inner).get(&grant) {
            // It was there and has gone, or has not come yet.
            Some(since) => since.elapsed() < grace,
            None => self.since.elapsed() < grace,
        }
    }

    /// It is heard of from now on, until what is given back is dropped.
    pub(super) fn comes(self: &Arc<Self>, grant: GrantId) -> Presence {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner).entry(grant).or_default() += 1;
        Presence { agents: self.clone(), grant }
    }

    pub(super) fn seat(&self, grant: GrantId) {
        let mut seated = self.seated.lock().unwrap_or_else(PoisonError::into_inner);
        seated.insert(grant, Instant::now());
    }

    /// It has gone: its place is free at once.
    fn leaves(&self, grant: GrantId) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(many) = live.get_mut(&grant) {
            *many = many.saturating_sub(1);
            if *many == 0 {
                live.remove(&grant);
                let grace = self.grace.unwrap_or_default();
                let gone = Instant::now().checked_sub(grace).unwrap_or_else(Instant::now);
                let mut seated = self.seated.lock().unwrap_or_else(PoisonError::into_inner);
                seated.insert(grant, gone);
            }
        }
    }
}

/// That an agent is there.
pub(super) struct Presence {
    agents: Arc<Agents>,
    grant: GrantId,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.agents.leaves(self.grant);
    }
}
