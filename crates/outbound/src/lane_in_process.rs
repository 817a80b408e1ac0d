//! Lanes in the same process: one at a time per session, any number of sessions at once.
//!
//! A wake-up may be lost; the row in the journal cannot. So the worker starts with every row that is due at any time, and looks
//! again now and then for rows that nobody acts on or that are due soon. Where more is due than can be acted on at once,
//! owners take turns.

#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    advancing::{ADVANCING, is_own},
    shutdown::requested,
};
use futures_util::FutureExt as _;
use planwright_domain::{id::OwnerId, id::Seq, identity::SessionKey, next::Due, time::Time};
use planwright_runtime::{
    engine::Engine,
    failpoint,
    ports::{
        journal::{BackedOff, DueRow},
        signal::Lane,
    },
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

mod alarms;
mod ready;

use alarms::Alarms;
use ready::Ready;

/// How many wake-ups may wait to be heard; what is lost the sweep finds.
const WAKES_MAX: usize = 4_096;
/// How many sessions are acted on at once, most of which wait for a model: each takes some memory and a connection.
const AT_ONCE_MAX: usize = 8_192;
/// How many of these are kept for owners on none of whose sessions is acted.
const KEPT_FREE: usize = 512;
/// How often the journal is asked for rows that nobody acts on.
const SWEEP: Duration = Duration::from_secs(5);
/// How far ahead a sweep looks: more than to the next one.
const AHEAD_MICROS: i64 = 12_000_000;
/// How many alarms are kept that ring later than that: the others are in the journal alone, until a sweep finds them.
const ALARMS_MAX: usize = 65_536;
/// How many rows one sweep takes; the first takes all that may be kept, as nobody else knows of what is under way.
const SWEEP_ROWS: usize = 4_096;
/// How soon the next sweep follows one that was full.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);

/// The waking end.
#[derive(Debug)]
pub struct InProcessLane {
    wakes: mpsc::Sender<(SessionKey, Due)>,
}

/// The working end.
#[derive(Debug)]
pub struct LaneWorker {
    wakes: mpsc::Receiver<(SessionKey, Due)>,
}

/// A lane: its waking end and its working end.
#[must_use]
pub fn in_process() -> (Arc<InProcessLane>, LaneWorker) {
    let (sender, receiver) = mpsc::channel(WAKES_MAX);
    (Arc::new(InProcessLane { wakes: sender }), LaneWorker { wakes: receiver })
}

impl Lane for InProcessLane {
    fn wake(&self, identity: &SessionKey, _version: Seq, due: Due) {
        if !is_own(identity) {
            let _ = self.wakes.try_send((identity.clone(), due));
        }
    }
}

impl LaneWorker {
    /// Acts on what is due until told to stop; then what has started is let to end.
    pub async fn run(
        mut self,
        engine: Arc<Engine>,
        scope: Scope,
        mut stopping: watch::Receiver<bool>,
    ) {
        let mut state = Working::new(engine, scope);
        let mut next_sweep = Instant::now() + state.sweep(Sweep::First).await;
        loop {
            state.start_due();
            let alarm = state.alarm().map_or(next_sweep, |alarm| alarm.min(next_sweep));
            tokio::select! {
                wake = self.wakes.recv() => match wake {
                    Some((identity, due)) => state.wake(identity, due),
                    None => break,
                },
                Some(done) = state.running.join_next(), if !state.running.is_empty() => {
                    if let Ok((identity, due)) = done {
                        state.done(identity, due);
                    }
                }
                () = sleep_until(alarm) => {}
                () = requested(&mut stopping) => break,
            }
            if Instant::now() >= next_sweep {
                next_sweep = Instant::now() + state.sweep(Sweep::Soon).await;
            }
        }
        state.ending.store(true, Ordering::SeqCst);
        while state.running.join_next().await.is_some() {}
    }
}

/// Which sessions a worker acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Everything,
    /// This one alone.
    Only(SessionKey),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// For all of it, and for what a process that is gone may have left before its time has come.
    First,
    /// For what is due, or will be before the next sweep.
    Soon,
}

struct Working {
    scope: Scope,
    /// Set when nothing new may start.
    ending: Arc<AtomicBool>,
    engine: Arc<Engine>,
    running: JoinSet<(SessionKey, Due)>,
    /// On which sessions is acted.
    busy: HashSet<SessionKey>,
    /// How many of them each owner has.
    places: BTreeMap<OwnerId, usize>,
    /// Woken while busy.
    again: HashSet<SessionKey>,
    ready: Ready,
    alarms: Alarms,
}

impl Working {
    fn new(engine: Arc<Engine>, scope: Scope) -> Self {
        Self {
            scope,
            ending: Arc::default(),
            engine,
            running: JoinSet::new(),
            busy: HashSet::new(),
            places: BTreeMap::new(),
            again: HashSet::new(),
            ready: Ready::default(),
            alarms: Alarms::default(),
        }
    }

    fn wake(&mut self, identity: SessionKey, due: Due) {
        if matches!(&self.scope, Scope::Only(only) if *only != identity) {
            return;
        }
        match due {
            Due::Never => {}
            Due::Now if self.busy.contains(&identity) => {
                self.again.insert(identity);
            }
            Due::Now => self.ready.push(identity),
            Due::At(time) if self.alarms.len() >= ALARMS_MAX && self.is_far(time) => {}
            // Who wakes it may have looked before another did: an alarm that rings too early does no harm.
            Due::At(time) => self.alarms.set_sooner(identity, time),
        }
    }

    /// Whether a sweep will find it in time.
    fn is_far(&self, time: Time) -> bool {
        time > self.engine.now().plus_micros(AHEAD_MICROS)
    }

    /// Gives the place of this session back.
    fn free(&mut self, identity: &SessionKey) {
        self.busy.remove(identity);
        if let Some(count) = self.places.get_mut(&identity.owner) {
            *count -= 1;
            if *count == 0 {
                self.places.remove(&identity.owner);
            }
        }
    }

    fn done(&mut self, identity: SessionKey, due: Due) {
        self.free(&identity);
        if self.again.remove(&identity) {
            self.ready.push(identity.clone());
        }
        self.wake(identity, due);
    }

    /// When the first alarm rings.
    fn alarm(&self) -> Option<Instant> {
        let first = self.alarms.first()?;
        let wait = first.0.saturating_sub(self.engine.now().0).max(0);
        Some(Instant::now() + Duration::from_micros(wait.cast_unsigned()))
    }

    fn start_due(&mut self) {
        let now = self.engine.now();
        while let Some(identity) = self.alarms.ring(now) {
            self.wake(identity, Due::Now);
        }
        while let Some(free) = AT_ONCE_MAX.checked_sub(self.busy.len() + 1) {
            let places = &self.places;
            let may_start = |owner: &OwnerId| free >= KEPT_FREE || !places.contains_key(owner);
            let Some(identity) = self.ready.pop(may_start) else { break };
            self.alarms.remove(&identity);
            *self.places.entry(identity.owner).or_default() += 1;
            self.busy.insert(identity.clone());
            let work = work(self.engine.clone(), identity.clone(), self.ending.clone());
            self.running.spawn(ADVANCING.scope(identity, work));
        }
    }

    /// Looks for rows that nobody acts on; how long it is to the next look.
    async fn sweep(&mut self, sweep: Sweep) -> Duration {
        let now = self.engine.now();
        let (by, act_by, limit) = match sweep {
            Sweep::First => {
                (None, now.plus_micros(self.engine.longest_effect_micros()), ALARMS_MAX)
            }
            Sweep::Soon => (Some(now.plus_micros(AHEAD_MICROS)), now, SWEEP_ROWS),
        };
        match self.engine.due(by, limit).await {
            Err(error) => {
                tracing::error!(%error, event = "sweep_failed");
                SWEEP
            }
            Ok(rows) => {
                let is_full = rows.len() == limit;
                for row in rows {
                    let due = due_of(&row, act_by);
                    if due == Due::Now || !self.busy.contains(&row.session) {
                        self.wake(row.session, due);
                    }
                }
                if is_full { SWEEP_AGAIN } else { SWEEP }
            }
        }
    }
}

/// When to act on a row that a sweep found. At the first sweep, what is due before the longest effect would end may be the
/// deadline of one whose process is gone, and is looked at now; what is due later is a timer, and waits for its time.
fn due_of(row: &DueRow, act_by: Time) -> Due {
    match row.at {
        Some(time) if time > act_by => Due::At(time),
        Some(_) | None => Due::Now,
    }
}

/// Acts on one session until nothing is due now, and gives when it is due.
async fn work(
    engine: Arc<Engine>,
    identity: SessionKey,
    ending: Arc<AtomicBool>,
) -> (SessionKey, Due) {
    loop {
        failpoint::hit("lane.before_advance");
        let advancing = AssertUnwindSafe(engine.advance(&identity)).catch_unwind().await;
        failpoint::hit("lane.after_advance");
        let outcome = match advancing {
            Err(_) => Err("acting on the session panicked".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            // An attempt that was lost is a failure too: it is tried again a limited number of times.
            Ok(Ok(advanced)) => advanced.lost.map_or(Ok(advanced.due), Err),
        };
        match outcome {
            Ok(Due::Now) if ending.load(Ordering::SeqCst) => return (identity, Due::Now),
            Ok(Due::Now) => {}
            Ok(due @ (Due::Never | Due::At(_))) => return (identity, due),
            Err(why) => {
                tracing::error!(session_identity = %identity, why, event = "advance_failed");
                let due = match engine.back_off(&identity, &why).await {
                    Ok(BackedOff::Until(time)) => Due::At(time),
                    Ok(BackedOff::Parked) | Err(_) => Due::Never,
                };
                return (identity, due);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_due_next_month_is_not_acted_on_at_the_start() {
        let row = |at| DueRow {
            session: SessionKey::parse("00000000000000000000000000000001.cli:talk-0001").unwrap(),
            version: Seq(1),
            at,
        };
        let (soon, next_month) = (Time(600_000_000), Time(2_592_000_000_000));
        assert_eq!(due_of(&row(None), soon), Due::Now);
        assert_eq!(due_of(&row(Some(soon)), soon), Due::Now);
        assert_eq!(due_of(&row(Some(next_month)), soon), Due::At(next_month));
    }
}
