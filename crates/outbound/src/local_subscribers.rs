//! The subscribers in this process, by session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use planwright_domain::identity::SessionKey;
use planwright_runtime::ports::signal::{Hint, Hints, Signal, Subscription};
use tokio::sync::broadcast;

/// How many signals a slow subscriber may lag behind before it is told that it missed some.
const LAG_MAX: usize = 256;

/// Subscribers in this process, by session; and those to changes of any session.
#[derive(Debug, Clone)]
pub(crate) struct LocalSubscribers {
    subscribers: Arc<Mutex<HashMap<SessionKey, broadcast::Sender<Signal>>>>,
    hints: broadcast::Sender<Hint>,
}

impl Default for LocalSubscribers {
    fn default() -> Self {
        Self { subscribers: Arc::default(), hints: broadcast::channel(LAG_MAX).0 }
    }
}

impl LocalSubscribers {
    /// Tells everyone here who listens; whether anyone does.
    pub(crate) fn tell(&self, identity: &SessionKey, signal: Signal) -> bool {
        if matches!(signal, Signal::Moved(_)) && self.hints.receiver_count() > 0 {
            self.hint(Hint::Moved(identity.clone()));
        }
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = subscribers.get(identity) else { return false };
        let heard = sender.send(signal).is_ok();
        if !heard {
            subscribers.remove(identity);
        }
        heard
    }

    /// Tells everyone here who keeps lists.
    pub(crate) fn hint(&self, hint: Hint) {
        let _ = self.hints.send(hint);
    }

    /// A new subscription to changes of any session.
    pub(crate) fn subscribe_to_hints(&self) -> Box<dyn Hints> {
        Box::new(HintEar(self.hints.subscribe()))
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

struct HintEar(broadcast::Receiver<Hint>);

#[async_trait]
impl Hints for HintEar {
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
