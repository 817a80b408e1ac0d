//! Sessions that are due and wait for a place: owners take turns, and the sessions of one owner are
//! served in the order in which they came. So no number of sessions of one owner keeps another's waiting.

use std::collections::{BTreeMap, HashSet, VecDeque};

use planwright_domain::{id::OwnerId, identity::SessionKey};

/// Sessions that wait for a place. A session waits once, however often it is woken.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Never empty for an owner who is in `turns`, and nobody else is in here.
    queues: BTreeMap<OwnerId, VecDeque<SessionKey>>,
    turns: VecDeque<OwnerId>,
    waiting: HashSet<SessionKey>,
}

impl Ready {
    pub(super) fn push(&mut self, identity: SessionKey) {
        if !self.waiting.insert(identity.clone()) {
            return;
        }
        let queue = self.queues.entry(identity.owner).or_default();
        if queue.is_empty() {
            self.turns.push_back(identity.owner);
        }
        queue.push_back(identity);
    }

    /// The longest waiting session of the next owner who may have a place.
    pub(super) fn pop(&mut self, may_start: impl Fn(&OwnerId) -> bool) -> Option<SessionKey> {
        let at = self.turns.iter().position(may_start)?;
        let owner = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&owner)?;
        let identity = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        self.waiting.remove(&identity);
        Some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: OwnerId = OwnerId(uuid::Uuid::from_u128(1));
    const BEA: OwnerId = OwnerId(uuid::Uuid::from_u128(2));

    fn session(owner: OwnerId, key: &str) -> SessionKey {
        SessionKey::named(&format!("cli:{key}"), owner).unwrap()
    }

    fn popped(ready: &mut Ready) -> Option<SessionKey> {
        ready.pop(|_| true)
    }

    #[test]
    fn sessions_of_one_owner_start_in_the_order_in_which_they_were_woken() {
        let mut ready = Ready::default();
        for key in ["zulu-0001", "alpha-0001", "mike-0001", "zulu-0001"] {
            ready.push(session(ADA, key));
        }
        let started: Vec<_> = std::iter::from_fn(|| popped(&mut ready)).collect();
        assert_eq!(started, ["zulu-0001", "alpha-0001", "mike-0001"].map(|key| session(ADA, key)));
    }

    #[test]
    fn ten_thousand_sessions_of_one_owner_do_not_keep_another_owner_waiting() {
        let mut ready = Ready::default();
        for number in 0..10_000 {
            ready.push(session(ADA, &format!("alpha-{number:05}")));
        }
        ready.push(session(BEA, "zulu-0001"));
        assert_eq!(popped(&mut ready), Some(session(ADA, "alpha-00000")));
        assert_eq!(popped(&mut ready), Some(session(BEA, "zulu-0001")));
        assert_eq!(popped(&mut ready), Some(session(ADA, "alpha-00001")));
    }

    #[test]
    fn an_owner_who_may_not_start_more_keeps_the_place_in_line() {
        let mut ready = Ready::default();
        ready.push(session(ADA, "alpha-0001"));
        ready.push(session(BEA, "zulu-0001"));
        let not_ada = |who: &OwnerId| *who != ADA;
        assert_eq!(ready.pop(not_ada), Some(session(BEA, "zulu-0001")));
        assert_eq!(ready.pop(not_ada), None);
        assert_eq!(popped(&mut ready), Some(session(ADA, "alpha-0001")));
        assert_eq!(popped(&mut ready), None);
    }
}
