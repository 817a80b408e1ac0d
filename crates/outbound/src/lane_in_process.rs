//! Lanes in the same process: one at a time per session, any number of sessions at once.
//!
//! A wake-up may be lost; the row in the journal cannot. So the worker starts with every row that
//! is due at any time, and looks again now and then for rows that nobody acts on.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::stopping::told;
use futures_util::FutureExt as _;
use planwright_domain::{id::Seq, identity::SessionIdentity, next::Due, time::Time};
use planwright_runtime::{
    failpoint,
    ports::{
        journal::{BackedOff, JournalError},
        signal::Lane,
    },
    runtime::Runtime,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// How many wake-ups may wait to be heard; what is lost the sweep finds.
const WAKES_MAX: usize = 4_096;
/// How many sessions are acted on at once.
const AT_ONCE_MAX: usize = 256;
/// How often the journal is asked for rows that nobody acts on.
const SWEEP: Duration = Duration::from_secs(5);
/// How many rows one sweep takes.
const SWEEP_ROWS: usize = 4_096;

/// The waking end.
#[derive(Debug)]
pub struct InProcessLane {
    wakes: mpsc::Sender<(SessionIdentity, Due)>,
}

/// The working end.
#[derive(Debug)]
pub struct LaneWorker {
    wakes: mpsc::Receiver<(SessionIdentity, Due)>,
}

/// A lane: its waking end and its working end.
#[must_use]
pub fn in_process() -> (Arc<InProcessLane>, LaneWorker) {
    let (sender, receiver) = mpsc::channel(WAKES_MAX);
    (Arc::new(InProcessLane { wakes: sender }), LaneWorker { wakes: receiver })
}

impl Lane for InProcessLane {
    fn wake(&self, identity: &SessionIdentity, _version: Seq, due: Due) {
        let _ = self.wakes.try_send((identity.clone(), due));
    }
}

impl LaneWorker {
    /// Acts on what is due until told to stop; then what has started is let to end.
    pub async fn run(
        mut self,
        runtime: Arc<Runtime>,
        scope: Scope,
        mut stopping: watch::Receiver<bool>,
    ) {
        let mut state = Working::new(runtime, scope);
        state.sweep(Sweep::Everything).await;
        let mut next_sweep = Instant::now() + SWEEP;
        loop {
            state.start_due();
            let alarm = state.alarm().map_or(next_sweep, |alarm| alarm.min(next_sweep));
            tokio::select! {
                wake = self.wakes.recv() => match wake {
                    Some((identity, due)) => state.wake(identity, due),
                    None => break,
                },
                Some(done) = state.running.join_next(), if !state.running.is_empty() => {
                    if let Ok((identity, acted)) = done {
                        state.done(identity, acted).await;
                    }
                }
                () = sleep_until(alarm) => {}
                () = told(&mut stopping) => break,
            }
            if Instant::now() >= next_sweep {
                state.sweep(Sweep::Overdue).await;
                next_sweep = Instant::now() + SWEEP;
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
    Only(SessionIdentity),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Everything,
    Overdue,
}

struct Working {
    scope: Scope,
    /// Set when nothing new may start.
    ending: Arc<AtomicBool>,
    runtime: Arc<Runtime>,
    running: JoinSet<(SessionIdentity, Acted)>,
    busy: HashSet<SessionIdentity>,
    /// Woken while busy, or while too many were.
    ready: BTreeSet<SessionIdentity>,
    alarms: HashMap<SessionIdentity, Time>,
    /// Acting on them failed last time.
    failed: HashSet<SessionIdentity>,
}

impl Working {
    fn new(runtime: Arc<Runtime>, scope: Scope) -> Self {
        Self {
            scope,
            ending: Arc::default(),
            runtime,
            running: JoinSet::new(),
            busy: HashSet::new(),
            ready: BTreeSet::new(),
            alarms: HashMap::new(),
            failed: HashSet::new(),
        }
    }

    fn wake(&mut self, identity: SessionIdentity, due: Due) {
        if matches!(&self.scope, Scope::Only(only) if *only != identity) {
            return;
        }
        match due {
            Due::Never => {}
            Due::Now => {
                self.ready.insert(identity);
            }
            Due::At(time) => {
                let alarm = self.alarms.entry(identity).or_insert(time);
                *alarm = time.min(*alarm);
            }
        }
    }

    async fn done(&mut self, identity: SessionIdentity, acted: Acted) {
        self.busy.remove(&identity);
        let due = match acted {
            Acted::Badly(due) => {
                self.failed.insert(identity.clone());
                due
            }
            Acted::Well(due) => {
                if self.failed.remove(&identity)
                    && let Err(error) = self
                        .runtime
                        .ports
                        .journal
                        .unpark(&identity, self.runtime.ports.clock.now())
                        .await
                {
                    tracing::error!(session_identity = %identity, %error, event = "unpark_failed");
                }
                due
            }
        };
        self.wake(identity, due);
    }

    /// When the first alarm rings.
    fn alarm(&self) -> Option<Instant> {
        let first = self.alarms.values().min()?;
        let wait = first.0.saturating_sub(self.runtime.ports.clock.now().0).max(0);
        Some(Instant::now() + Duration::from_micros(wait.cast_unsigned()))
    }

    fn start_due(&mut self) {
        let now = self.runtime.ports.clock.now();
        let rung: Vec<_> = self
            .alarms
            .iter()
            .filter(|(_, time)| **time <= now)
            .map(|(identity, _)| identity.clone())
            .collect();
        for identity in rung {
            self.alarms.remove(&identity);
            self.ready.insert(identity);
        }
        let free = AT_ONCE_MAX.saturating_sub(self.busy.len());
        let startable: Vec<_> = self
            .ready
            .iter()
            .filter(|identity| !self.busy.contains(*identity))
            .take(free)
            .cloned()
            .collect();
        for identity in startable {
            self.ready.remove(&identity);
            self.busy.insert(identity.clone());
            self.running.spawn(work(self.runtime.clone(), identity, self.ending.clone()));
        }
    }

    async fn sweep(&mut self, sweep: Sweep) {
        let by = match sweep {
            Sweep::Everything => None,
            Sweep::Overdue => Some(self.runtime.ports.clock.now()),
        };
        match self.runtime.ports.journal.due(by, SWEEP_ROWS).await {
            Err(error) => tracing::error!(%error, event = "sweep_failed"),
            Ok(rows) => {
                for row in rows {
                    self.wake(row.identity, Due::Now);
                }
            }
        }
    }
}

/// What came of acting on a session.
enum Acted {
    /// It is due then.
    Well(Due),
    /// It failed, and is due then.
    Badly(Due),
}

/// Acts on one session until nothing is due now.
async fn work(
    runtime: Arc<Runtime>,
    identity: SessionIdentity,
    ending: Arc<AtomicBool>,
) -> (SessionIdentity, Acted) {
    loop {
        failpoint::hit("lane.before_advance");
        let advancing = AssertUnwindSafe(runtime.advance(&identity)).catch_unwind().await;
        let outcome =
            advancing.map_err(|_| JournalError::Engine("acting on the session panicked".into()));
        failpoint::hit("lane.after_advance");
        match outcome.and_then(|advanced| advanced).map(|advanced| advanced.due) {
            Ok(Due::Now) if ending.load(Ordering::SeqCst) => {
                return (identity, Acted::Well(Due::Now));
            }
            Ok(Due::Now) => {}
            Ok(due @ (Due::Never | Due::At(_))) => return (identity, Acted::Well(due)),
            Err(error) => {
                tracing::error!(session_identity = %identity, %error, event = "advance_failed");
                let now = runtime.ports.clock.now();
                let due = match runtime
                    .ports
                    .journal
                    .back_off(&identity, now, &error.to_string())
                    .await
                {
                    Ok(BackedOff::Until(time)) => Due::At(time),
                    Ok(BackedOff::Parked) | Err(_) => Due::Never,
                };
                return (identity, Acted::Badly(due));
            }
        }
    }
}
