//! Wake-ups on their way to the engine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use planwright_domain::identity::SessionKey;
use tokio::sync::{Semaphore, mpsc};

use super::peer::Peer;

/// How many wake-ups are on their way at once.
const AT_ONCE_MAX: usize = 64;

/// One wake-up.
#[derive(Debug)]
pub(super) struct Wake {
    pub(super) identity: SessionKey,
    pub(super) delay: Duration,
    /// Wake-ups with one key are one.
    pub(super) key: String,
    /// The sweep that found it, for as long as it is on its way.
    pub(super) _sweep: Option<mpsc::Sender<()>>,
}

/// Sends wake-ups until nobody can wake any more. What does not get through the sweep finds.
pub(super) async fn send_all(
    ingress: Peer,
    mut wakes: mpsc::UnboundedReceiver<Wake>,
    is_failing: Arc<AtomicBool>,
) {
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    while let Some(wake) = wakes.recv().await {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (ingress, is_failing) = (ingress.clone(), is_failing.clone());
        tokio::spawn(async move {
            let sent = send(&ingress, &wake).await;
            drop(place);
            note(&is_failing, sent.map_err(|error| error.to_string()).err());
        });
    }
}

/// Remembers whether the engine takes wake-ups, and says so when that changes.
pub(super) fn note(is_failing: &AtomicBool, error: Option<String>) {
    let before = is_failing.swap(error.is_some(), Ordering::SeqCst);
    match error {
        Some(error) if !before => tracing::error!(error, event = "engine_gone"),
        Some(error) => tracing::debug!(error, event = "engine_gone"),
        None if before => tracing::info!(event = "engine_back"),
        None => {}
    }
}

async fn send(ingress: &Peer, wake: &Wake) -> Result<(), super::RestateError> {
    let key = escaped(&wake.identity.to_string());
    let delay = match wake.delay.as_millis() {
        0 => String::new(),
        millis => format!("?delay={millis}ms"),
    };
    let request = ingress
        .post(&format!("/Lane/{key}/advance/send{delay}"))
        .header("idempotency-key", escaped(&wake.key));
    ingress.ask(request).await.map(drop)
}

/// Bytes that mean something in a path or a header, escaped.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if plain(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
        escaped
    })
}
