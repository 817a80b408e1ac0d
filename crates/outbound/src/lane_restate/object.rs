//! The virtual object: one call acts for one session, effect after effect, for as long as something is due now.
//!
//! Must always hold: a call that the engine no longer waits for ends after the effect that it has begun. Another call may then
//! be under way for the session, on another node, and two must not drive it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use planwright_domain::{
    id::{Incarnation, Seq},
    identity::SessionKey,
    next::Due,
};
use planwright_runtime::{
    engine::Engine,
    engine::advance::{Advanced, Driver},
    failpoint,
    ports::journal::{BackedOff, JournalError},
};
use restate_sdk::prelude::{Endpoint, HandlerError, ObjectContext, TerminalError};
use tokio::{sync::watch, time::Instant};

use super::{RestateLane, peer::RestateError};
use crate::advancing::ADVANCING;

type Running = Shared<BoxFuture<'static, Result<Left, String>>>;

/// An effect that is under way.
pub(super) struct UnderWay {
    pub(super) since: Instant,
    effect: Running,
}

/// How long one call goes on with what is due next: a session stays where its conversation is known. With the longest effect
/// it is shorter than the inactivity timeout.
const STAYS: Duration = Duration::from_secs(5 * 60);

/// How long whoever was called waits before it asks again whether the node still acts that began what is open.
const ASKS_AGAIN: Duration = Duration::from_secs(1);

/// What is left to do when an effect was done.
#[derive(Debug, Clone, Copy)]
struct Left {
    version: Seq,
    due: Due,
    /// Whether another driver began what is under way.
    begun_by_another: bool,
}

/// What the engine calls.
pub(super) struct Lane {
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    stopping: watch::Receiver<bool>,
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
        self.drive(identity).await.map_err(|words| HandlerError::from(std::io::Error::other(words)))
    }
}

impl Lane {
    /// Ends with the call: it is dropped when the engine gives the call up.
    async fn drive(&self, identity: SessionKey) -> Result<(), String> {
        let life = self.engine.new_life();
        let begun = Instant::now();
        let (mut driver, mut has_acted) = (Driver::GoesOn(life), false);
        loop {
            let Left { version, due, begun_by_another } =
                self.act(identity.clone(), driver).await?;
            let stays = begun.elapsed() < STAYS && !*self.stopping.borrow();
            if begun_by_another && !has_acted && stays {
                driver = self.succeed(&identity, life).await;
                continue;
            }
            if begun_by_another {
                // If the engine gave that driver up, this was the last call for the session. If not, the wake-up waits behind it.
                self.lane.send_once_more(&identity, life);
                return Ok(());
            }
            if due != Due::Now || !stays {
                self.lane.send(&identity, version, due);
                return Ok(());
            }
            (driver, has_acted) = (Driver::GoesOn(life), true);
        }
    }

    /// The engine called this node for a session in which another driver has begun something. A connection that was slow to
    /// answer is enough for that, and then the other is alive and ends what it began: it is waited for. Otherwise it is nobody's.
    async fn succeed(&self, identity: &SessionKey, life: Incarnation) -> Driver {
        if !self.lane.others.act_for(identity).await {
            return Driver::TakesOver(life);
        }
        tracing::info!(session_identity = %identity, event = "another_node_acts");
        tokio::time::sleep(ASKS_AGAIN).await;
        Driver::GoesOn(life)
    }

    /// The effect outlives the call that asked for it: a connection that breaks must not cut it off.
    /// A call that comes again here waits for it; on another node it finds it open, and asks whether somebody is at it.
    async fn act(&self, identity: SessionKey, driver: Driver) -> Result<Left, String> {
        let engine = self.engine.clone();
        let (lane, key) = (self.lane.clone(), identity.clone());
        let effect = async move {
            let outcome = ADVANCING.scope(key.clone(), one_effect(&engine, &key, driver)).await;
            lane.running().remove(&key);
            outcome
        };
        let effect = effect.boxed().shared();
        while let Err(under_way) = self.begin(&identity, &effect) {
            let _ = under_way.await;
        }
        tokio::spawn(effect.clone());
        effect.await
    }

    /// Notes what begins; if something is under way, that.
    fn begin(&self, identity: &SessionKey, effect: &Running) -> Result<(), Running> {
        let mut running = self.lane.running();
        match running.get(identity) {
            Some(under_way) => Err(under_way.effect.clone()),
            None => {
                let under_way = UnderWay { since: Instant::now(), effect: effect.clone() };
                running.insert(identity.clone(), under_way);
                Ok(())
            }
        }
    }
}

/// Advances until one effect was done or nothing is due; what is left then.
async fn one_effect(
    engine: &Engine,
    identity: &SessionKey,
    mut driver: Driver,
) -> Result<Left, String> {
    loop {
        failpoint::hit("lane.before_advance");
        let advancing = AssertUnwindSafe(engine.advance_as(identity, driver)).catch_unwind().await;
        let outcome =
            advancing.map_err(|_| JournalError::Engine("acting on the session panicked".into()));
        failpoint::hit("lane.after_advance");
        match outcome.and_then(|advanced| advanced) {
            // An attempt that was lost is a failure too: it is tried again a limited number of times.
            Ok(Advanced { lost: Some(why), .. }) => return back_off(engine, identity, &why).await,
            Ok(advanced) if advanced.due == Due::Now && !advanced.acted => {}
            Ok(Advanced { version, due, begun_by_another, .. }) => {
                return Ok(Left { version, due, begun_by_another });
            }
            // An event that this version does not know is a failure like any other: another node, to which the next
            // wake-up may go, may know it; and a row that stays due would keep the sweep from all others.
            Err(error) => return back_off(engine, identity, &error.to_string()).await,
        }
        driver = Driver::GoesOn(driver.life());
    }
}

/// Acting on the session failed: it is tried again later, or parked.
async fn back_off(engine: &Engine, identity: &SessionKey, why: &str) -> Result<Left, String> {
    tracing::error!(session_identity = %identity, why, event = "advance_failed");
    let due = match engine.back_off(identity, why).await {
        Ok(BackedOff::Until(time)) => Due::At(time),
        Ok(BackedOff::Parked) => Due::Never,
        Err(error) => return Err(error.to_string()),
    };
    Ok(Left { version: Seq(0), due, begun_by_another: false })
}

pub(super) fn endpoint(
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    stopping: watch::Receiver<bool>,
    identity_key: Option<&str>,
) -> Result<Endpoint, RestateError> {
    let object = Lane { engine, lane, stopping };
    let mut builder = Endpoint::builder().bind(object);
    if let Some(key) = identity_key {
        builder = builder.identity_key(key).map_err(|error| RestateError {
            address: "here".into(),
            what: format!("cannot be trusted by this key: {error}"),
            status: None,
        })?;
    }
    Ok(builder.build())
}
