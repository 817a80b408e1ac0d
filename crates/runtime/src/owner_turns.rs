//! A queue in which owners take turns, and what one owner has waiting is served in the order in which it came. So no number of
//! things of one owner keeps another's waiting.

use std::collections::{BTreeMap, VecDeque};

use planwright_domain::id::OwnerId;

/// What waits, by owner.
#[derive(Debug)]
pub struct OwnerTurns<T> {
    /// Never empty for an owner who is in `turns`, and nobody else is in here.
    queues: BTreeMap<OwnerId, VecDeque<T>>,
    turns: VecDeque<OwnerId>,
}

impl<T> Default for OwnerTurns<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<T> OwnerTurns<T> {
    /// Puts something behind what its owner has waiting.
    pub fn push(&mut self, owner: OwnerId, one: T) {
        let queue = self.queues.entry(owner).or_default();
        if queue.is_empty() {
            self.turns.push_back(owner);
        }
        queue.push_back(one);
    }

    /// What has waited longest of the next owner who may be served.
    pub fn pop(&mut self, may_be_served: impl Fn(&OwnerId) -> bool) -> Option<(OwnerId, T)> {
        let at = self.turns.iter().position(may_be_served)?;
        let owner = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&owner)?;
        let one = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        Some((owner, one))
    }

    /// Whether something of this owner waits.
    #[must_use]
    pub fn waits(&self, owner: &OwnerId) -> bool {
        self.queues.contains_key(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: OwnerId = OwnerId(uuid::Uuid::from_u128(1));
    const BEA: OwnerId = OwnerId(uuid::Uuid::from_u128(2));

    #[test]
    fn ten_thousand_things_of_one_owner_do_not_keep_another_owner_waiting() {
        let mut turns = OwnerTurns::default();
        for number in 0..10_000 {
            turns.push(ADA, number);
        }
        turns.push(BEA, 0);
        let served: Vec<_> = std::iter::from_fn(|| turns.pop(|_| true)).take(4).collect();
        assert_eq!(served, [(ADA, 0), (BEA, 0), (ADA, 1), (ADA, 2)]);
        assert_eq!((turns.waits(&ADA), turns.waits(&BEA)), (true, false));
    }

    #[test]
    fn an_owner_who_may_not_be_served_keeps_the_place_in_line() {
        let mut turns = OwnerTurns::default();
        turns.push(ADA, 1);
        turns.push(BEA, 2);
        let not_ada = |who: &OwnerId| *who != ADA;
        assert_eq!(turns.pop(not_ada), Some((BEA, 2)));
        assert_eq!(turns.pop(not_ada), None);
        assert_eq!(turns.pop(|_| true), Some((ADA, 1)));
        assert_eq!(turns.pop(|_| true), None);
    }
}
