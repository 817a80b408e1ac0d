//! A model behind the OpenAI-compatible chat protocol, streaming, at any address.
//!
//! Our own wire code: in a probe of the shapes that real servers send, client libraries lost,
//! merged or doubled parallel tool calls. [`assemble`] holds the rules, free of any network.

use std::time::Duration;

use async_trait::async_trait;
use eventsource_stream::{EventStreamError, Eventsource as _};
use futures_util::StreamExt as _;
use planwright_domain::{
    tools::ToolSpec,
    turn::{FailureKind, ModelFailure},
};
use planwright_runtime::ports::model::{
    Message, Model, ModelAnswer, ModelRequest, OnPreview, Price, WireCall,
};
use reqwest::{Client, Response, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

pub mod assemble;

use assemble::{Assembly, failure};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stream may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(180);
/// The longest answer that is taken in.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of an error's body is shown.
const ERROR_CHARS_MAX: usize = 300;

/// Where a model is, and what it is called.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// The address up to and without `/chat/completions`.
    pub base_url: String,
    /// The name of the model.
    pub model: String,
    /// The key, if the server wants one.
    pub api_key: Option<String>,
    /// How many tokens one request may hold.
    pub window_tokens: usize,
    /// What it costs, if that is known.
    pub price: Option<Price>,
}

/// A model behind the OpenAI-compatible chat protocol.
pub struct OpenAiModel {
    client: Client,
    settings: OpenAiSettings,
}

impl OpenAiModel {
    /// A model at this address.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelFailure> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| failure(FailureKind::Permanent, error.to_string()))?;
        Ok(Self { client, settings })
    }

    async fn send(&self, request: &ModelRequest) -> Result<Response, ModelFailure> {
        let url = format!("{}/chat/completions", self.settings.base_url.trim_end_matches('/'));
        let mut sending = self.client.post(url).json(&body(&self.settings.model, request));
        if let Some(key) = &self.settings.api_key {
            sending = sending.bearer_auth(key);
        }
        let unreachable = |error: reqwest::Error| {
            let kind =
                if error.is_builder() { FailureKind::Permanent } else { FailureKind::Transient };
            let message =
                format!("{} cannot be reached: {}", self.settings.base_url, causes(&error));
            failure(kind, message)
        };
        let response = sending.send().await.map_err(unreachable)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, wait) = (response.status(), retry_after(response.headers()));
        let text = response.text().await.unwrap_or_default();
        Err(ModelFailure { retry_after_micros: wait, ..refused(status, &text) })
    }
}

#[async_trait]
impl Model for OpenAiModel {
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let response = self.send(request).await?;
        let mut events = response.bytes_stream().eventsource();
        let mut assembly = Assembly::default();
        let mut bytes = 0;
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| match error {
                EventStreamError::Transport(error) => failure(
                    FailureKind::Transient,
                    format!("the stream broke off: {}", causes(&error)),
                ),
                EventStreamError::Utf8(_) | EventStreamError::Parser(_) => {
                    failure(FailureKind::Malformed, "the stream is not what it should be".into())
                }
            })?;
            bytes += event.data.len();
            if bytes > ANSWER_BYTES_MAX {
                return Err(failure(
                    FailureKind::Malformed,
                    format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"),
                ));
            }
            if event.data.trim() == "[DONE]" {
                break;
            }
            if let Some(text) = assembly.take(&event.data)? {
                preview(&text);
            }
        }
        assembly.finish()
    }

    fn price(&self) -> Option<Price> {
        self.settings.price
    }

    fn window_tokens(&self) -> usize {
        self.settings.window_tokens
    }

    fn name(&self) -> String {
        self.settings.model.clone()
    }
}

fn body(model: &str, request: &ModelRequest) -> Value {
    let system = json!({"role": "system", "content": request.system});
    let messages: Vec<_> =
        std::iter::once(system).chain(request.messages.iter().map(message)).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|spec| tool(spec)).collect();
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Tool { wire_id, text } => {
            json!({"role": "tool", "tool_call_id": wire_id, "content": text})
        }
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let content = if text.is_empty() { Value::Null } else { text.as_str().into() };
            json!({"role": "assistant", "content": content, "tool_calls": calls.iter().map(call).collect::<Vec<_>>()})
        }
    }
}

fn call(call: &WireCall) -> Value {
    // A server may refuse a history that holds arguments which are no JSON object.
    let is_object = serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).is_ok();
    let arguments = if is_object { call.arguments.as_str() } else { "{}" };
    json!({"id": call.wire_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}})
}

fn tool(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, effect: _ } = spec;
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
}

/// Who can mend a refusal of the server.
fn refused(status: StatusCode, text: &str) -> ModelFailure {
    let told = serde_json::from_str::<Value>(text).ok();
    let told =
        told.as_ref().and_then(|body| body.pointer("/error/message")).and_then(Value::as_str);
    let words: String = told.unwrap_or(text).chars().take(ERROR_CHARS_MAX).collect();
    let kind = match status.as_u16() {
        408 | 409 | 425 | 429 | 500..=599 => FailureKind::Transient,
        400 | 413 if text.contains("context_length") || text.contains("maximum context") => {
            FailureKind::TooLarge
        }
        _ => FailureKind::Permanent,
    };
    failure(kind, format!("the model's server answered {status}: {words}"))
}

fn retry_after(headers: &HeaderMap) -> Option<i64> {
    let number = |name: &str| {
        headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok().filter(|wait| wait.is_finite())
    };
    let milliseconds =
        number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1e3))?;
    Some((milliseconds.max(0.0) * 1e3) as i64)
}

/// An error with all its causes; addresses may hold secrets and are left out.
fn causes(error: &reqwest::Error) -> String {
    let mut words = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push(cause.to_string());
        source = cause.source();
    }
    if words.is_empty() { "no connection".into() } else { words.join(": ") }
}
