//! The sweep: whatever was lost on the way, the row says that it is due.

use std::{sync::Arc, time::Duration};

use planwright_runtime::engine::Engine;
use tokio::sync::watch;

use crate::shutdown::requested;

use super::{RestateLane, peer::Peer, wake::Wake, wake::note};

/// How often the journal is asked for rows that nobody acted on.
const SWEEP: Duration = Duration::from_secs(1);
/// How long a row may be due before the sweep takes it up.
const GRACE_MICROS: i64 = 1_000_000;
/// Wake-ups of one row within this time are one, whichever node sends them.
const SLOT_MICROS: i64 = 2_000_000;
/// How many rows one sweep takes.
const ROWS: usize = 1_024;

pub(super) async fn sweep(
    engine: Arc<Engine>,
    lane: Arc<RestateLane>,
    ingress: Peer,
    mut stopping: watch::Receiver<bool>,
) {
    let mut last = Arc::new(());
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = requested(&mut stopping) => return,
        }
        let health = ingress.ask(ingress.get("/restate/health")).await;
        note(&lane.is_failing, health.map_err(|error| error.to_string()).err());
        // What the last sweep found is still on its way: to find it again would only make the way longer.
        if Arc::strong_count(&last) > 1 {
            continue;
        }
        last = Arc::new(());
        let now = engine.now();
        let overdue = now.plus_micros(-GRACE_MICROS);
        match engine.due(Some(overdue), ROWS).await {
            Err(error) => tracing::error!(%error, event = "sweep_failed"),
            Ok(rows) => {
                for row in rows {
                    let (slot, version) = (now.0 / SLOT_MICROS, row.version);
                    let key = format!("{}@{version}~{slot}", row.session);
                    let (identity, _sweep) = (row.session, Some(last.clone()));
                    let wake = Wake { identity, delay: Duration::ZERO, key, _sweep };
                    let _ = lane.wakes.send(wake);
                }
            }
        }
    }
}
