//! Telling watchers in the same process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use planwright_domain::identity::SessionIdentity;
use planwright_runtime::ports::{Broadcast, Signal, Subscription};
use tokio::sync::broadcast;

/// How many signals a slow ear may lag behind before it is told that it missed some.
const LAG_MAX: usize = 256;

/// Ears in the same process, by session.
#[derive(Debug, Default, Clone)]
pub struct InProcessBroadcast {
    ears: Arc<Mutex<HashMap<SessionIdentity, broadcast::Sender<Signal>>>>,
}

impl Broadcast for InProcessBroadcast {
    fn publish(&self, identity: &SessionIdentity, signal: Signal) {
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = ears.get(identity)
            && sender.send(signal).is_err()
        {
            ears.remove(identity);
        }
    }

    fn subscribe(&self, identity: &SessionIdentity) -> Box<dyn Subscription> {
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = ears.entry(identity.clone()).or_insert_with(|| broadcast::channel(LAG_MAX).0);
        Box::new(Ear(sender.subscribe()))
    }
}

struct Ear(broadcast::Receiver<Signal>);

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Option<Signal> {
        match self.0.recv().await {
            Ok(signal) => Some(signal),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Signal::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
