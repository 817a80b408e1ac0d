//! Whether an engine of several servers keeps snapshots: without them no server ever trims the log, and whoever takes over a part
//! of it reads all that ever happened there.

use super::peer::{Peer, RestateError};

/// How old the oldest snapshot of a part is, in seconds, and how many records were committed, as each server counts since its start.
const AGE: &str = "restate_partition_snapshot_age_seconds{";
const OLDEST: &str = "quantile=\"1.0\"";
const RECORDS: &str = "restate_bifrost_sequencer_committed_records_total";

/// What one server of the engine tells of its snapshots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshots {
    /// How old the oldest is, in seconds; nothing, if none was taken yet.
    pub age_seconds: Option<f64>,
    /// How many records it committed since it started.
    pub records: u64,
}

impl Snapshots {
    /// What the server at this address, the one that its other servers call, tells.
    pub async fn of(address: &str) -> Result<Self, RestateError> {
        let peer = Peer::new(address)?;
        let answer = peer.ask(peer.get("/metrics")).await?;
        Ok(read(&answer.text().await.unwrap_or_default()))
    }
}

fn read(figures: &str) -> Snapshots {
    let figure = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    let age = figures.lines().find(|line| line.starts_with(AGE) && line.contains(OLDEST));
    let records = figures.lines().filter(|line| line.starts_with(RECORDS)).filter_map(figure);
    Snapshots {
        age_seconds: age.and_then(figure).filter(|age| age.is_finite()),
        records: records.sum::<f64>() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_took_no_snapshot_has_none() {
        let figures = "\
# TYPE restate_partition_snapshot_age_seconds gauge
restate_partition_snapshot_age_seconds{node_name=\"a\",quantile=\"0.5\"} 3
restate_partition_snapshot_age_seconds{node_name=\"a\",quantile=\"1.0\"} NaN
restate_bifrost_sequencer_committed_records_total{provider=\"local\"} 3
restate_bifrost_sequencer_committed_records_total{provider=\"replicated\"} 40
";
        assert_eq!(read(figures), Snapshots { age_seconds: None, records: 43 });
        let taken = Snapshots { age_seconds: Some(7.5), records: 43 };
        assert_eq!(read(&figures.replace("NaN", "7.5")), taken);
        assert_eq!(read(""), Snapshots { age_seconds: None, records: 0 });
    }
}
