//! How the engine is, as the latest request to it found it.

use std::sync::{Mutex, PoisonError};

use planwright_runtime::ports::health::Part;
use reqwest::StatusCode;
use serde::Deserialize;

use super::{
    OBJECT,
    peer::{Peer, RestateError},
};

/// How it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// It takes wake-ups and knows where the nodes are.
    #[default]
    Well,
    /// It cannot be reached.
    Gone,
    /// It answers with errors.
    Fails,
    /// It does not know where the nodes are.
    Unregistered,
}

/// How the engine is, for all who ask it for something.
#[derive(Debug, Default)]
pub(super) struct EngineState(Mutex<State>);

impl EngineState {
    /// A request to it ended so. Said in the log when that changes.
    pub(super) fn note(&self, found: Result<(), &RestateError>) {
        let now = match found {
            Ok(()) => State::Well,
            Err(RestateError { status: Some(StatusCode::NOT_FOUND), .. }) => State::Unregistered,
            Err(RestateError { status: Some(_), .. }) => State::Fails,
            Err(RestateError { status: None, .. }) => State::Gone,
        };
        let before =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), now);
        let error = found.err().map(ToString::to_string).unwrap_or_default();
        match now {
            State::Well if before != now => tracing::info!(event = "engine_back"),
            State::Well => {}
            _ if before == now => tracing::debug!(error, event = "engine_still_failing"),
            State::Unregistered => tracing::error!(error, event = "engine_unregistered"),
            State::Gone | State::Fails => tracing::error!(error, event = "engine_gone"),
        }
    }

    fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether wake-ups get through.
    pub(super) fn is_well(&self) -> bool {
        self.state() == State::Well
    }

    /// The engine, and the registration where that is known.
    pub(super) fn parts(&self) -> Vec<Part> {
        let kept = |why: &str| {
            Some(format!("what you send is kept, and nothing runs: the engine (Restate) {why}"))
        };
        match self.state() {
            State::Well => vec![Part::new("engine", None), Part::new("registration", None)],
            State::Gone => vec![Part::new("engine", kept("cannot be reached"))],
            State::Fails => vec![Part::new(
                "engine",
                kept("answers with errors; the log says which (engine_gone)"),
            )],
            State::Unregistered => {
                let words =
                    "does not know where the nodes are; run: planwright cluster register URL";
                vec![Part::new("engine", None), Part::new("registration", kept(words))]
            }
        }
    }
}

/// Asks the ingress whether it is there and knows where the nodes are.
pub(super) async fn look(ingress: &Peer) -> Result<(), RestateError> {
    #[derive(Deserialize)]
    struct Health {
        services: Vec<String>,
    }
    let health: Health = ingress.read(ingress.get("/restate/health")).await?;
    if health.services.iter().any(|service| service == OBJECT) {
        return Ok(());
    }
    let what = "does not know where the nodes are".into();
    let address = ingress.address.clone();
    Err(RestateError { address, what, status: Some(StatusCode::NOT_FOUND) })
}
