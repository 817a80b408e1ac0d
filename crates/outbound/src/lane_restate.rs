//! Lanes on Restate: one virtual object per session, on whichever node gets the call.
//!
//! Restate gives exclusivity, failover, retries and delayed wake-ups, and only the session's identity
//! passes through it. The truth stays in the journal: a handler journals nothing there, does what is due
//! now, and ends. A wake-up that is lost is found by the sweep over overdue rows.

#![deny(clippy::disallowed_methods)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    ports::{
        Clock,
        health::Part,
        signal::{Lane, OtherNodes},
    },
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

mod admin;
mod engine_state;
mod object;
mod peer;
mod serve;
mod snapshots;
mod sweep;
mod wake;

pub use admin::{Deployment, RestateAdmin};
use engine_state::EngineState;
use object::UnderWay;
use peer::Peer;
pub use peer::RestateError;
pub use snapshots::Snapshots;
pub use sweep::RESERVED_MICROS;
use wake::Wake;

/// What the virtual object is called: `object` says the same to the engine.
const OBJECT: &str = "Lane";
/// Timers further away than this are left to the sweep: most of them are deadlines that never pass.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// The waking end.
pub struct RestateLane {
    /// What is under way here, though its call may be gone.
    running: Mutex<HashMap<SessionKey, UnderWay>>,
    wakes: mpsc::UnboundedSender<Wake>,
    engine_state: Arc<EngineState>,
    others: Arc<dyn OtherNodes>,
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
    others: Arc<dyn OtherNodes>,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<RestateLane>, RestateWorker), RestateError> {
    let ingress = Peer::new(&settings.ingress)?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let engine_state = Arc::<EngineState>::default();
    tokio::spawn(wake::send_all(ingress.clone(), receiver, engine_state.clone()));
    let running = Mutex::default();
    let lane = Arc::new(RestateLane { running, wakes: sender, engine_state, others, clock });
    Ok((lane.clone(), RestateWorker { lane, ingress, settings }))
}

/// Fails if the engine at this ingress is not there, or does not know where the nodes are.
pub async fn check_ingress(address: &str) -> Result<(), RestateError> {
    engine_state::look(&Peer::new(address)?).await
}

impl Lane for RestateLane {
    fn wake(&self, identity: &SessionKey, version: Seq, due: Due) {
        if !is_own(identity) {
            self.send(identity, version, due);
        }
    }

    fn parts(&self) -> Vec<Part> {
        self.engine_state.parts()
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

    /// For how long the effect has been under way that this node has begun for a session; nothing, if there is none.
    #[must_use]
    pub fn drives(&self, identity: &SessionKey) -> Option<Duration> {
        self.running().get(identity).map(|under_way| under_way.since.elapsed())
    }

    fn running(&self) -> MutexGuard<'_, HashMap<SessionKey, UnderWay>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
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
