//! Folded sessions kept warm, as they are committed.

use std::{collections::HashMap, sync::Arc};

use planwright_domain::{identity::SessionIdentity, session::Session};

/// How many sessions are kept warm.
const WARM_MAX: usize = 1_024;

/// Folded sessions, as they are committed.
#[derive(Debug, Default)]
pub(super) struct Warm {
    sessions: HashMap<SessionIdentity, (Arc<Session>, u64)>,
    clock: u64,
}

impl Warm {
    pub(super) fn get(&mut self, identity: &SessionIdentity) -> Option<Arc<Session>> {
        self.clock += 1;
        let (session, used) = self.sessions.get_mut(identity)?;
        *used = self.clock;
        Some(session.clone())
    }

    pub(super) fn put(&mut self, session: Arc<Session>) {
        self.clock += 1;
        if self.sessions.len() >= WARM_MAX && !self.sessions.contains_key(&session.identity) {
            self.drop_coldest_half();
        }
        self.sessions.insert(session.identity.clone(), (session, self.clock));
    }

    fn drop_coldest_half(&mut self) {
        let mut used: Vec<_> = self.sessions.values().map(|(_, used)| *used).collect();
        used.sort_unstable();
        let median = used.get(used.len() / 2).copied().unwrap_or(0);
        self.sessions.retain(|_, (_, used)| *used > median);
    }
}
