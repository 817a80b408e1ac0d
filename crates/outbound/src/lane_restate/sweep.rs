//! The sweep: whatever was lost on the way, the row says that it is due.

use std::{sync::Arc, time::Duration};

use planwright_runtime::engine::Engine;
use tokio::sync::{mpsc, watch};

use crate::shutdown::requested;

use super::{RestateLane, engine_state::look, peer::Peer, wake::Wake};

/// How often the journal is asked for rows that nobody acted on.
const SWEEP: Duration = Duration::from_secs(1);
/// How soon it is asked again after it gave some: more may be due than are reserved at once.
const SWEEP_AGAIN: Duration = Duration::from_millis(50);
/// How long a row may be due before the sweep takes it up.
const GRACE_MICROS: i64 = 1_000_000;
/// Wake-ups of one row within this time are one; a later one is another, in case nothing came of it.
const SLOT_MICROS: i64 = 2_000_000;
/// How many rows a node takes up at a time: few, so that all nodes get their share of many.
const ROWS: usize = 32;
/// For how long a row is reserved for the node that took it up; then another may.
pub const RESERVED_MICROS: i64 = 6_000_000;

pub(super) async fn sweep(
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    ingress: Peer,
    mut stopping: watch::Receiver<bool>,
) {
    let mut pause = SWEEP;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = requested(&mut stopping) => return,
        }
        lane.engine_state.note(look(&ingress).await.as_ref().copied());
        // What this node cannot send on is for the others to take up.
        let goes_on = || lane.engine_state.is_well() && !*stopping.borrow();
        let took = if goes_on() { take_up(&engine, &lane).await } else { 0 };
        pause = if took > 0 { SWEEP_AGAIN } else { SWEEP };
    }
}

/// Takes up some rows and sends them on; how many they were.
async fn take_up(engine: &Engine, lane: &RestateLane) -> usize {
    let now = engine.now();
    let overdue = now.plus_micros(-GRACE_MICROS);
    let rows = match engine.take_due(overdue, RESERVED_MICROS, ROWS).await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::error!(%error, event = "sweep_failed");
            return 0;
        }
    };
    let count = rows.len();
    let (on_its_way, mut arrived) = mpsc::channel::<()>(1);
    for row in rows {
        let (slot, version) = (now.0 / SLOT_MICROS, row.version);
        let key = format!("{}@{version}~{slot}", row.session);
        let (identity, _sweep) = (row.session, Some(on_its_way.clone()));
        let wake = Wake { identity, delay: Duration::ZERO, key, _sweep };
        let _ = lane.wakes.send(wake);
    }
    // No more are taken up before these are sent.
    drop(on_its_way);
    arrived.recv().await;
    count
}
