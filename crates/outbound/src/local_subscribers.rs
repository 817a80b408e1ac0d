//! The subscribers in this process, by session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use planwright_domain::{id::OwnerId, identity::SessionKey};
use planwright_runtime::ports::signal::{Hint, Hints, ListChange, Signal, Subscription};
use tokio::sync::broadcast;

/// How many signals a slow subscriber may lag behind before it is told that it missed some.
const LAG_MAX: usize = 256;

/// Subscribers in this process: to sessions, and to what changes in the lists of an owner, or of everyone.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalSubscribers {
    forgets: Forgets,
    subscribers: Arc<Mutex<HashMap<SessionKey, broadcast::Sender<Signal>>>>,
    keep_lists: Arc<Mutex<HashMap<Option<OwnerId>, broadcast::Sender<Hint>>>>,
}

/// When that to which nobody listens any more is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Forgets {
    /// As soon as that is noticed.
    #[default]
    AtOnce,
    /// When somebody asks whether anyone listens: who hears other nodes for them ends then, and not before.
    #[cfg(feature = "cluster")]
    WhenAsked,
}

impl LocalSubscribers {
    /// Subscribers for whom somebody hears what other nodes tell.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_a_node() -> Self {
        Self { forgets: Forgets::WhenAsked, ..Self::default() }
    }

    /// Tells everyone here who listens; whether anyone does.
    pub(crate) fn tell(&self, identity: &SessionKey, signal: Signal) -> bool {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = subscribers.get(identity) else { return false };
        let heard = sender.send(signal).is_ok();
        if !heard && self.forgets == Forgets::AtOnce {
            subscribers.remove(identity);
        }
        heard
    }

    /// Tells everyone here who keeps lists with this session.
    pub(crate) fn hint(&self, change: ListChange) {
        let owner = change.row.session.owner;
        let hint = Hint::Changed(Box::new(change));
        self.hint_to(None, &hint);
        self.hint_to(Some(owner), &hint);
    }

    /// Tells those here who keep the lists of this owner, or of everyone.
    pub(crate) fn hint_to(&self, owner: Option<OwnerId>, hint: &Hint) {
        let mut keep_lists = self.keep_lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = keep_lists.get(&owner)
            && sender.send(hint.clone()).is_err()
            && self.forgets == Forgets::AtOnce
        {
            keep_lists.remove(&owner);
        }
    }

    /// A new subscription to what changes in the lists of this owner, or of everyone; and whether it is the first one.
    pub(crate) fn subscribe_to_hints(&self, owner: Option<OwnerId>) -> (Box<dyn Hints>, bool) {
        let mut keep_lists = self.keep_lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !keep_lists.contains_key(&owner);
        let sender = keep_lists.entry(owner).or_insert_with(|| broadcast::channel(LAG_MAX).0);
        (Box::new(HintSubscription(sender.subscribe())), is_first)
    }

    /// Whether nobody keeps these lists any more; then they are forgotten.
    #[cfg(feature = "cluster")]
    pub(crate) fn are_lists_deserted(&self, owner: Option<OwnerId>) -> bool {
        let mut keep_lists = self.keep_lists.lock().unwrap_or_else(PoisonError::into_inner);
        let deserted = keep_lists.get(&owner).is_none_or(|sender| sender.receiver_count() == 0);
        if deserted {
            keep_lists.remove(&owner);
        }
        deserted
    }

    /// Whether nobody listens any more; then the session is forgotten.
    #[cfg(feature = "cluster")]
    pub(crate) fn is_deserted(&self, identity: &SessionKey) -> bool {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let deserted = subscribers.get(identity).is_none_or(|sender| sender.receiver_count() == 0);
        if deserted {
            subscribers.remove(identity);
        }
        deserted
    }

    /// A new subscription, and whether it is the first one for its session.
    pub(crate) fn listen(&self, identity: &SessionKey) -> (Box<dyn Subscription>, bool) {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !subscribers.contains_key(identity);
        let sender =
            subscribers.entry(identity.clone()).or_insert_with(|| broadcast::channel(LAG_MAX).0);
        (Box::new(LocalSubscription(sender.subscribe())), is_first)
    }
}

struct HintSubscription(broadcast::Receiver<Hint>);

#[async_trait]
impl Hints for HintSubscription {
    async fn next(&mut self) -> Option<Hint> {
        match self.0.recv().await {
            Ok(hint) => Some(hint),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Hint::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

struct LocalSubscription(broadcast::Receiver<Signal>);

#[async_trait]
impl Subscription for LocalSubscription {
    async fn next(&mut self) -> Option<Signal> {
        match self.0.recv().await {
            Ok(signal) => Some(signal),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Signal::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
