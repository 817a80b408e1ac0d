//! Telling watchers in the same process.

use planwright_domain::identity::SessionIdentity;
use planwright_runtime::ports::signal::{Broadcast, Hints, Signal, Subscription};

use crate::ears::Ears;

/// Ears in the same process, by session.
#[derive(Debug, Default, Clone)]
pub struct InProcessBroadcast {
    ears: Ears,
}

impl Broadcast for InProcessBroadcast {
    fn publish(&self, identity: &SessionIdentity, signal: Signal) {
        self.ears.tell(identity, signal);
    }

    fn subscribe(&self, identity: &SessionIdentity) -> Box<dyn Subscription> {
        self.ears.listen(identity).0
    }

    fn hints(&self) -> Box<dyn Hints> {
        self.ears.hear_hints()
    }
}
