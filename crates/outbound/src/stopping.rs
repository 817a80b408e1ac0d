//! How whoever works is told to stop.

use tokio::sync::watch;

/// Ends when the worker is told to stop, or nobody is left to tell it.
pub(crate) async fn told(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
