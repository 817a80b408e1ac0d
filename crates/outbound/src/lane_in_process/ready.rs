//! Sessions that are due and wait for a place: owners take turns.

use std::collections::HashSet;

use planwright_domain::{id::OwnerId, identity::SessionKey};
use planwright_runtime::owner_turns::OwnerTurns;

/// Sessions that wait for a place. A session waits once, however often it is woken.
#[derive(Debug, Default)]
pub(super) struct Ready {
    turns: OwnerTurns<SessionKey>,
    waiting: HashSet<SessionKey>,
}

impl Ready {
    pub(super) fn push(&mut self, identity: SessionKey) {
        if self.waiting.insert(identity.clone()) {
            self.turns.push(identity.owner, identity);
        }
    }

    /// The longest waiting session of the next owner who may have a place.
    pub(super) fn pop(&mut self, may_start: impl Fn(&OwnerId) -> bool) -> Option<SessionKey> {
        let (_, identity) = self.turns.pop(may_start)?;
        self.waiting.remove(&identity);
        Some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_owner_start_once_each_in_the_order_in_which_they_were_woken() {
        let session = |key: &str| {
            let owner = OwnerId(uuid::Uuid::from_u128(1));
            SessionKey::named(&format!("cli:{key}"), owner).unwrap()
        };
        let mut ready = Ready::default();
        for key in ["zulu-0001", "alpha-0001", "mike-0001", "zulu-0001"] {
            ready.push(session(key));
        }
        let started: Vec<_> = std::iter::from_fn(|| ready.pop(|_| true)).collect();
        assert_eq!(started, ["zulu-0001", "alpha-0001", "mike-0001"].map(session));
    }
}
