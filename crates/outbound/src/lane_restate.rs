//! Lanes on Restate: one virtual object per session, on whichever node gets the call.
//!
//! Restate gives exclusivity, failover, retries and delayed wake-ups, and only the session's identity
//! passes through it. The truth stays in the journal: a handler journals nothing there, does what is due
//! now, and ends. A wake-up that is lost is found by the sweep over overdue rows.

#![deny(clippy::disallowed_methods)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::advancing::is_own;
use planwright_domain::{
    id::{Incarnation, Seq},
    identity::SessionKey,
    next::Due,
    time::Time,
};
use planwright_runtime::{
    engine::Engine,
    ports::{Clock, signal::Lane},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

mod admin;
mod object;
mod peer;
mod serve;
mod sweep;
mod wake;

pub use admin::{Deployment, RestateAdmin};
use peer::Peer;
pub use peer::RestateError;
pub use sweep::RESERVED_MICROS;
use wake::Wake;

/// Timers further away than this are left to the sweep: most of them are deadlines that never pass.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// The waking end.
pub struct RestateLane {
    wakes: mpsc::UnboundedSender<Wake>,
    is_failing: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

/// The working end.
pub struct RestateWorker {
    lane: Arc<RestateLane>,
    ingress: Peer,
    settings: RestateSettings,
}

/// What an operator sets.
#[derive(Debug, Clone)]
pub struct RestateSettings {
    /// Where wake-ups are sent: `http://host:port`, or `unix:/path/ingress.sock`.
    pub ingress: String,
    /// The server's public key; calls that it did not sign are refused.
    pub identity_key: Option<String>,
    /// How long what has started may take to end when the node ends.
    pub drain: Duration,
}

/// A lane: its waking end and its working end.
pub fn restate(
    settings: RestateSettings,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<RestateLane>, RestateWorker), RestateError> {
    let ingress = Peer::new(&settings.ingress)?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let is_failing = Arc::<AtomicBool>::default();
    tokio::spawn(wake::send_all(ingress.clone(), receiver, is_failing.clone()));
    let lane = Arc::new(RestateLane { wakes: sender, is_failing, clock });
    Ok((lane.clone(), RestateWorker { lane, ingress, settings }))
}

impl Lane for RestateLane {
    fn wake(&self, identity: &SessionKey, version: Seq, due: Due) {
        if !is_own(identity) {
            self.send(identity, version, due);
        }
    }

    fn trouble(&self) -> Option<String> {
        self.is_failing.load(Ordering::SeqCst).then(|| {
            "what you send is kept, and nothing runs: the engine (Restate) cannot be reached".into()
        })
    }
}

impl RestateLane {
    fn send(&self, identity: &SessionKey, version: Seq, due: Due) {
        let (delay, key) = match due {
            Due::Never => return,
            Due::Now => (Duration::ZERO, format!("{identity}@{version}")),
            Due::At(time) => (self.until(time), format!("{identity}@{version}+{}", time.0)),
        };
        if delay <= DELAY_MAX {
            let _ = self.wakes.send(Wake { identity: identity.clone(), delay, key, _sweep: None });
        }
    }

    /// Wakes a session though nothing is due in it: behind whatever drives it, or alone.
    fn send_once_more(&self, identity: &SessionKey, life: Incarnation) {
        let key = format!("{identity}!{}", life.0);
        let (identity, delay) = (identity.clone(), Duration::ZERO);
        let _ = self.wakes.send(Wake { identity, delay, key, _sweep: None });
    }

    /// How long it is until then.
    fn until(&self, time: Time) -> Duration {
        let wait = time.0.saturating_sub(self.clock.now().0);
        Duration::from_micros(u64::try_from(wait).unwrap_or_default())
    }
}

impl RestateWorker {
    /// Serves calls of the engine here, and sweeps, until told to stop; then what has started is let
    /// to end.
    pub async fn run(
        self,
        engine: Arc<Engine>,
        listener: TcpListener,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), RestateError> {
        let Self { lane, ingress, settings } = self;
        let key = settings.identity_key.as_deref();
        let endpoint = object::endpoint(engine.clone(), lane.clone(), stopping.clone(), key)?;
        let sweeping = tokio::spawn(sweep::sweep(engine, lane, ingress, stopping.clone()));
        serve::serve(endpoint, listener, settings.drain, stopping).await;
        sweeping.abort();
        Ok(())
    }
}
