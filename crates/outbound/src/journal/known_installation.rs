//! What belongs to the installation, as it was last read or written here: every request asks for it.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use planwright_domain::installation::Installation;

/// The installation as it was last read or written here.
#[derive(Debug, Default)]
pub(crate) struct KnownInstallation {
    latest: RwLock<(Option<Instant>, Arc<Installation>)>,
}

impl KnownInstallation {
    /// The latest, if it was looked at within this time; at any time, if none is named.
    pub(crate) fn trusted(&self, within: Option<Duration>) -> Option<Arc<Installation>> {
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        let seen = latest.0?;
        within.is_none_or(|within| seen.elapsed() < within).then(|| latest.1.clone())
    }

    /// The latest, however old.
    #[cfg(feature = "cluster")]
    pub(crate) fn latest(&self) -> Arc<Installation> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Keeps what was read or written now, unless a later one is known; the latest.
    pub(crate) fn keep(&self, installation: Installation) -> Arc<Installation> {
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        if installation.version >= latest.1.version {
            *latest = (Some(Instant::now()), Arc::new(installation));
        }
        latest.1.clone()
    }
}
