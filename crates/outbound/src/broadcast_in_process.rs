//! Telling watchers in the same process.

use planwright_domain::{id::OwnerId, identity::SessionKey};
use planwright_runtime::ports::signal::{Broadcast, Hints, ListChange, Signal, Subscription};

use crate::local_subscribers::LocalSubscribers;

/// LocalSubscribers in the same process, by session.
#[derive(Debug, Default, Clone)]
pub struct InProcessBroadcast {
    subscribers: LocalSubscribers,
}

impl Broadcast for InProcessBroadcast {
    fn publish(&self, identity: &SessionKey, signal: Signal) {
        self.subscribers.tell(identity, signal);
    }

    fn subscribe(&self, identity: &SessionKey) -> Box<dyn Subscription> {
        self.subscribers.listen(identity).0
    }

    fn hint(&self, change: ListChange) {
        self.subscribers.hint(change);
    }

    fn hints(&self, owner: Option<OwnerId>) -> Box<dyn Hints> {
        self.subscribers.subscribe_to_hints(owner).0
    }
}
