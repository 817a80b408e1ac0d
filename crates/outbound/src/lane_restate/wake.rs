//! Wake-ups on their way to the engine.

use std::{sync::Arc, time::Duration};

use planwright_domain::identity::SessionKey;
use tokio::sync::{Semaphore, mpsc};

use super::{OBJECT, engine_state::EngineState, peer::Peer};

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
    engine_state: Arc<EngineState>,
) {
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    while let Some(wake) = wakes.recv().await {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (ingress, engine_state) = (ingress.clone(), engine_state.clone());
        tokio::spawn(async move {
            let sent = send(&ingress, &wake).await;
            drop(place);
            engine_state.note(sent.as_ref().copied());
        });
    }
}

async fn send(ingress: &Peer, wake: &Wake) -> Result<(), super::RestateError> {
    let key = escaped(&wake.identity.to_string());
    let delay = match wake.delay.as_millis() {
        0 => String::new(),
        millis => format!("?delay={millis}ms"),
    };
    let request = ingress
        .post(&format!("/{OBJECT}/{key}/advance/send{delay}"))
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
