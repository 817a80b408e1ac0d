//! The virtual object: one call, one effect.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use planwright_domain::{id::Seq, identity::SessionKey, next::Due};
use planwright_runtime::{
    engine::Engine,
    engine::advance::Advanced,
    failpoint,
    ports::journal::{BackedOff, JournalError},
};
use restate_sdk::prelude::{Endpoint, HandlerError, ObjectContext, TerminalError};

use super::{RestateLane, peer::RestateError};
use crate::advancing::ADVANCING;

type Running = Shared<BoxFuture<'static, Result<(), String>>>;

/// What the engine calls.
pub(super) struct Lane {
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    /// What is under way here, though its call may be gone.
    running: Arc<Mutex<HashMap<SessionKey, Running>>>,
}

// Longer than any effect, or the engine discards it and repeats it without end. Retries end, and the
// sweep begins anew: a call that waits for a retry would hold its session.
#[restate_sdk::object(
    name = "Lane",
    client_visibility = "pub(super)",
    inactivity_timeout = "30m",
    abort_timeout = "5m",
    idempotency_retention = "1m",
    journal_retention = "0s",
    invocation_retry_policy(
        initial_interval = "100ms",
        factor = 2.0,
        max_interval = "2s",
        max_attempts = 10,
        on_max_attempts = "kill"
    )
)]
impl Lane {
    /// Does what should happen now in the session that is the key.
    #[handler]
    async fn advance(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        let identity = SessionKey::parse(context.key())
            .map_err(|error| TerminalError::new(error.to_string()))?;
        self.go_on(identity).await.map_err(|words| HandlerError::from(std::io::Error::other(words)))
    }
}

impl Lane {
    /// The effect outlives the call that asked for it: a connection that breaks must not cut it off.
    /// A call that comes again here waits for it; on another node it finds it open, and nobody's.
    async fn go_on(&self, identity: SessionKey) -> Result<(), String> {
        let under_way =
            self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&identity).cloned();
        if let Some(under_way) = under_way {
            let _ = under_way.await;
        }
        let (engine, lane) = (self.engine.clone(), self.lane.clone());
        let (running, key) = (self.running.clone(), identity.clone());
        let under_way = async move {
            let outcome = ADVANCING.scope(key.clone(), one_effect(&engine, &lane, &key)).await;
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            outcome
        };
        let under_way = under_way.boxed().shared();
        self.note(identity, &under_way);
        tokio::spawn(under_way.clone());
        under_way.await
    }

    fn note(&self, identity: SessionKey, under_way: &Running) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(identity, under_way.clone());
    }
}

/// Advances until one effect was done or nothing is due, and says what comes then.
async fn one_effect(
    engine: &Engine,
    lane: &RestateLane,
    identity: &SessionKey,
) -> Result<(), String> {
    let life = engine.new_life();
    loop {
        failpoint::hit("lane.before_advance");
        let advancing = AssertUnwindSafe(engine.advance_as(identity, life)).catch_unwind().await;
        let outcome =
            advancing.map_err(|_| JournalError::Engine("acting on the session panicked".into()));
        failpoint::hit("lane.after_advance");
        match outcome.and_then(|advanced| advanced) {
            // An attempt that was lost is a failure too: it is tried again a limited number of times.
            Ok(Advanced { lost: Some(why), .. }) => {
                return back_off(engine, lane, identity, &why).await;
            }
            Ok(advanced) if advanced.due == Due::Now && !advanced.acted => {}
            Ok(advanced) => {
                lane.send(identity, advanced.version, advanced.due);
                return Ok(());
            }
            // An event that this version does not know is a failure like any other: another node, to which the next
            // wake-up may go, may know it; and a row that stays due would keep the sweep from all others.
            Err(error) => return back_off(engine, lane, identity, &error.to_string()).await,
        }
    }
}

/// Acting on the session failed: it is tried again later, or parked.
async fn back_off(
    engine: &Engine,
    lane: &RestateLane,
    identity: &SessionKey,
    why: &str,
) -> Result<(), String> {
    tracing::error!(session_identity = %identity, why, event = "advance_failed");
    match engine.back_off(identity, why).await {
        Ok(BackedOff::Until(time)) => {
            lane.send(identity, Seq(0), Due::At(time));
            Ok(())
        }
        Ok(BackedOff::Parked) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn endpoint(
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    identity_key: Option<&str>,
) -> Result<Endpoint, RestateError> {
    let object = Lane { engine, lane, running: Arc::default() };
    let mut builder = Endpoint::builder().bind(object);
    if let Some(key) = identity_key {
        builder = builder.identity_key(key).map_err(|error| RestateError {
            address: "here".into(),
            what: format!("cannot be trusted by this key: {error}"),
        })?;
    }
    Ok(builder.build())
}
