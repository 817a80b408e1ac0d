//! Places at the work: so many sessions are acted on at once, and owners take turns for them. Whoever waits for a model gives
//! the place to others meanwhile: that a call is open costs a place in memory, and none here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use planwright_domain::id::OwnerId;
use tokio::sync::oneshot;

use crate::owner_turns::OwnerTurns;

/// On how many sessions is acted at once.
const PLACES: usize = 288;
/// How many of these places are kept for owners who have none.
const KEPT_FREE: usize = 32;

/// The places of this process.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    taken: BTreeMap<OwnerId, usize>,
    waiting: OwnerTurns<oneshot::Sender<Place>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    owner: OwnerId,
    is_taken: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            free: PLACES,
            taken: BTreeMap::new(),
            waiting: OwnerTurns::default(),
        })))
    }
}

/// Whether an owner may have one of the places that are free.
fn may_take(free: usize, taken: &BTreeMap<OwnerId, usize>, owner: &OwnerId) -> bool {
    free > KEPT_FREE || free > 0 && !taken.contains_key(owner)
}

impl State {
    fn take(&mut self, owner: OwnerId) {
        self.free -= 1;
        *self.taken.entry(owner).or_default() += 1;
    }

    /// Who has waited longest of the next owner who may have a place.
    fn next(&mut self) -> Option<(OwnerId, oneshot::Sender<Place>)> {
        let (free, taken) = (self.free, &self.taken);
        self.waiting.pop(|owner| may_take(free, taken, owner))
    }
}

impl Places {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A place for a session of this owner, as soon as there is one.
    pub(crate) async fn take(&self, owner: OwnerId) -> Place {
        let waits = self.with(|state| {
            if !state.waiting.waits(&owner) && may_take(state.free, &state.taken, &owner) {
                state.take(owner);
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push(owner, sender);
            Some(receiver)
        });
        match waits {
            None => self.place(owner, true),
            // Nobody drops the sender but these places, which this keeps.
            Some(receiver) => receiver.await.unwrap_or_else(|_| self.place(owner, false)),
        }
    }

    fn place(&self, owner: OwnerId, is_taken: bool) -> Place {
        Place { places: self.clone(), owner, is_taken }
    }

    fn give_back(&self, owner: OwnerId) {
        // Given outside the lock: a place that nobody receives any more is dropped, and comes back here.
        let given = self.with(|state| {
            state.free += 1;
            if let Some(count) = state.taken.get_mut(&owner) {
                *count -= 1;
                if *count == 0 {
                    state.taken.remove(&owner);
                }
            }
            let (owner, waits) = state.next()?;
            state.take(owner);
            Some((self.place(owner, true), waits))
        });
        if let Some((place, waits)) = given {
            let _ = waits.send(place);
        }
    }
}

impl Place {
    /// Gives the place to others while this is waited for, and takes one again.
    pub(crate) async fn left_for<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        self.leave();
        let ended = waiting.await;
        *self = self.places.take(self.owner).await;
        ended
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.is_taken) {
            self.places.give_back(self.owner);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::BoxFuture};
    use uuid::Uuid;

    use super::*;

    const ADA: OwnerId = OwnerId(Uuid::from_u128(1));
    const BEA: OwnerId = OwnerId(Uuid::from_u128(2));

    /// The places that this owner takes until one must be waited for, and what waits.
    fn take_all(places: &Places, owner: OwnerId) -> (Vec<Place>, BoxFuture<'static, Place>) {
        let mut taken = Vec::new();
        loop {
            let places = places.clone();
            let mut next = async move { places.take(owner).await }.boxed();
            match (&mut next).now_or_never() {
                Some(place) => taken.push(place),
                None => return (taken, next),
            }
        }
    }

    #[test]
    fn one_owner_leaves_places_for_those_who_have_none() {
        let places = Places::default();
        let (of_ada, mut waits) = take_all(&places, ADA);
        assert_eq!(of_ada.len(), PLACES - KEPT_FREE);
        let (of_bea, _waits) = take_all(&places, BEA);
        assert_eq!(of_bea.len(), 1);
        drop(of_ada);
        assert!((&mut waits).now_or_never().is_some());
    }

    #[test]
    fn owners_take_turns_and_each_is_served_in_order() {
        let places = Places::default();
        let (mut of_ada, mut first) = take_all(&places, ADA);
        let (of_bea, mut of_bea_next) = take_all(&places, BEA);
        let mut second = {
            let places = places.clone();
            async move { places.take(ADA).await }.boxed()
        };
        assert!((&mut second).now_or_never().is_none());
        let mut served = Vec::new();
        for _ in 0..4 {
            of_ada.pop();
            for (name, waits) in
                [("first", &mut first), ("bea", &mut of_bea_next), ("second", &mut second)]
            {
                if !served.contains(&name)
                    && let Some(place) = waits.now_or_never()
                {
                    std::mem::forget(place);
                    served.push(name);
                }
            }
        }
        assert_eq!(served, ["first", "bea", "second"]);
        drop(of_bea);
    }

    #[test]
    fn whoever_waits_for_a_model_takes_no_place_and_one_that_is_dropped_comes_back() {
        let places = Places::default();
        let (mut of_ada, waits) = take_all(&places, ADA);
        drop(waits);
        let mut asks = of_ada.pop().expect("a place");
        let (answer, answered) = oneshot::channel::<()>();
        let mut asking = async move { asks.left_for(answered).await.map(|()| asks) }.boxed();
        assert!((&mut asking).now_or_never().is_none());
        let other = places.take(ADA).now_or_never().expect("the place of the one that waits");
        assert!(places.take(ADA).now_or_never().is_none());
        answer.send(()).expect("somebody waits");
        assert!((&mut asking).now_or_never().is_none(), "all places are taken");
        drop(other);
        assert!(asking.now_or_never().is_some());
        drop(of_ada);
        let state = places.with(|state| (state.free, state.taken.len(), state.waiting.waits(&ADA)));
        assert_eq!(state, (PLACES, 0, false));
    }
}
