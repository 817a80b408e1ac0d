//! The shutdown signal of workers.

use tokio::sync::watch;

/// Ends when shutdown is requested, or when nobody is left who could request it.
pub(crate) async fn requested(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|shutdown| *shutdown).await;
}
