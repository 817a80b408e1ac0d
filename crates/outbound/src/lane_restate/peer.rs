//! The engine's own HTTP servers, over TCP or unix sockets.

use std::time::Duration;

use planwright_runtime::ports::causes::with_causes;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

/// How long the engine may take to take something in.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Why the engine cannot be used. The operator reads this.
#[derive(Debug, thiserror::Error)]
#[error("the engine (Restate) at {address} {what}")]
pub struct RestateError {
    pub(super) address: String,
    pub(super) what: String,
    /// What it answered with, if it answered.
    pub(super) status: Option<StatusCode>,
}

/// One of the engine's servers.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: String,
    base: String,
    client: Client,
}

impl Peer {
    pub(super) fn new(address: &str) -> Result<Self, RestateError> {
        let builder = Client::builder().no_proxy().timeout(ANSWER_MAX).connect_timeout(ANSWER_MAX);
        let (builder, base) = match address.strip_prefix("unix:") {
            Some(path) => (builder.unix_socket(path), "http://restate".to_owned()),
            None => (builder, address.trim_end_matches('/').to_owned()),
        };
        let client = builder.build().map_err(|error| RestateError {
            address: address.to_owned(),
            what: format!("cannot be used: {error}"),
            status: None,
        })?;
        Ok(Self { address: address.to_owned(), base, client })
    }

    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.base))
    }

    pub(super) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.base))
    }

    pub(super) fn delete(&self, path: &str) -> RequestBuilder {
        self.client.delete(format!("{}{path}", self.base))
    }

    /// Sends, and takes an answer that says no for a failure.
    pub(super) async fn ask(
        &self,
        request: RequestBuilder,
    ) -> Result<reqwest::Response, RestateError> {
        let failed = |what, status| RestateError { address: self.address.clone(), what, status };
        let answer = request
            .send()
            .await
            .map_err(|error| failed(format!("cannot be reached: {}", with_causes(&error)), None))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let words = answer.text().await.unwrap_or_default();
        Err(failed(format!("said {status}: {words}"), Some(status)))
    }

    /// The same, and reads what it answers.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, RestateError> {
        let answer = self.ask(request).await?;
        let status = Some(answer.status());
        answer.json().await.map_err(|error| RestateError {
            address: self.address.clone(),
            what: format!("said what cannot be read: {error}"),
            status,
        })
    }
}
