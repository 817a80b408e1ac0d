//! Folded sessions and their latest events kept warm, as they are committed.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use planwright_domain::{id::Seq, identity::SessionKey, session::Session};
use planwright_runtime::ports::journal::Recorded;

/// How many sessions are kept warm.
const WARM_MAX: usize = 1_024;
/// How many of a session's latest events are kept warm.
const TAIL_MAX: usize = 24;

/// Folded sessions and their latest events, as they are committed.
#[derive(Debug, Default)]
pub(crate) struct Warm {
    sessions: HashMap<SessionKey, Kept>,
    clock: u64,
    /// How often sessions were dropped for want of room.
    evictions: Evictions,
}

/// The state of the cache before something was read elsewhere, to be shown when that is put in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evictions(u64);

#[derive(Debug)]
struct Kept {
    session: Arc<Session>,
    tail: VecDeque<Recorded>,
    used: u64,
}

impl Warm {
    pub(crate) fn get(&mut self, identity: &SessionKey) -> Option<Arc<Session>> {
        self.clock += 1;
        let kept = self.sessions.get_mut(identity)?;
        kept.used = self.clock;
        Some(kept.session.clone())
    }

    pub(crate) fn evictions(&self) -> Evictions {
        self.evictions
    }

    /// A session as a reader found it. If something was dropped since the reader began, that may have been a newer
    /// version of the same session, and this one is not kept.
    pub(crate) fn put_read(&mut self, session: Arc<Session>, since: Evictions) {
        if self.evictions == since {
            self.put(session, Vec::new());
        }
    }

    /// The events after this place, if all of them are warm.
    pub(crate) fn events(
        &self,
        identity: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Option<Vec<Recorded>> {
        let kept = self.sessions.get(identity)?;
        let first =
            kept.tail.front().map_or(kept.session.version.following(), |recorded| recorded.seq);
        if after.following() < first {
            return None;
        }
        let rest = kept.tail.iter().filter(|recorded| recorded.seq > after);
        Some(rest.take(limit).cloned().collect())
    }

    /// A session as it was just committed or read, with the events that made it so. What is older
    /// than what is warm is dropped: several may read at once.
    pub(crate) fn put(&mut self, session: Arc<Session>, news: Vec<Recorded>) {
        self.clock += 1;
        let used = self.clock;
        if self.sessions.len() >= WARM_MAX && !self.sessions.contains_key(&session.key()) {
            self.drop_coldest_half();
        }
        let identity = session.key();
        let kept = self.sessions.entry(identity).or_insert_with(|| Kept {
            session: session.clone(),
            tail: VecDeque::new(),
            used,
        });
        if kept.session.version > session.version {
            return;
        }
        let follows = |first: &Recorded| {
            kept.tail.back().is_none_or(|last| last.seq.following() == first.seq)
        };
        if !news.first().is_some_and(follows) && kept.session.version < session.version {
            kept.tail.clear();
        }
        kept.tail.extend(news);
        let surplus = kept.tail.len().saturating_sub(TAIL_MAX);
        kept.tail.drain(..surplus);
        kept.session = session;
        kept.used = used;
    }

    /// Keeps nothing of a session that was erased, and nothing that somebody read of it before.
    pub(crate) fn forget(&mut self, identity: &SessionKey) {
        self.sessions.remove(identity);
        self.evictions.0 += 1;
    }

    fn drop_coldest_half(&mut self) {
        let mut used: Vec<_> = self.sessions.values().map(|kept| kept.used).collect();
        used.sort_unstable();
        let median = used.get(used.len() / 2).copied().unwrap_or(0);
        self.sessions.retain(|_, kept| kept.used > median);
        self.evictions.0 += 1;
    }
}
