//! Stored values that stand by themselves: in a body, in a line of an archive, in a column of an answer.

use planwright_domain::{
    installation::InstallationEvent, memory::Item, owner::OwnerEvent, refusal::Refusal,
    session::SessionEvent,
};
use serde::{Deserialize, Serialize};

use crate::{mapping::Form, stored};

macro_rules! stored_values {
    ($($(#[$meta:meta])* $name:ident = $module:ident, $domain:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(stored::$module::$domain);

        impl From<&$domain> for $name {
            fn from(domain: &$domain) -> Self {
                Self(Form::of(domain))
            }
        }

        impl From<$name> for $domain {
            fn from(stored: $name) -> Self {
                stored.0.domain()
            }
        }
    )+};
}

stored_values! {
    /// An event of a session, as it is stored.
    StoredSessionEvent = session, SessionEvent;
    /// An event of an owner, as it is stored.
    StoredOwnerEvent = owner, OwnerEvent;
    /// An event of the installation, as it is stored.
    StoredInstallationEvent = installation, InstallationEvent;
    /// An item of memory, as it is stored.
    StoredItem = memory, Item;
    /// A refusal, as it is stored.
    StoredRefusal = refusal, Refusal;
}
