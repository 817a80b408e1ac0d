//! The recorder of metrics, and its upkeep.

use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// The upper bounds of the buckets into which durations of requests are counted, in seconds.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// How often recorded durations are counted into their buckets. Until then each takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// The recorder, with its buckets.
pub fn builder() -> Result<PrometheusBuilder, BuildError> {
    let requests = Matcher::Full("http.requests.seconds".into());
    PrometheusBuilder::new().set_buckets_for_metric(requests, &SECONDS)
}

/// Installs the recorder of this process, and keeps it up for as long as the runtime runs; nothing, if it has one.
#[must_use]
pub fn install() -> Option<PrometheusHandle> {
    let handle = builder().and_then(PrometheusBuilder::install_recorder).ok()?;
    tokio::spawn(keep_up(handle.clone(), UPKEEP));
    Some(handle)
}

/// Counts what was recorded into its buckets, again and again.
pub async fn keep_up(handle: PrometheusHandle, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        handle.run_upkeep();
    }
}
