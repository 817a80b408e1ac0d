//! Models behind HTTP, streaming, in the formats that providers speak.
//!
//! Our own wire code: in a probe of the shapes that real servers send, client libraries lost, merged or doubled
//! parallel tool calls. Each format has a file that writes a request and puts an answer together, free of any network;
//! here is what they share: sending, reading the stream, and who can mend a refusal.

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use planwright_domain::turn::{FailureKind, Kept, ModelFailure};
use planwright_runtime::ports::model::{
    KeptBy, Model, ModelAnswer, ModelRequest, OnPreview, Price, SOFT_TOKENS,
};
use reqwest::{Client, RequestBuilder, Response, header::CONTENT_TYPE};
use serde_json::Value;
use sse_stream::SseByteStream;

mod anthropic;
pub mod chat;
mod gemini;
mod names;
mod ollama;
mod refused;
mod responses;

use refused::{cause, causes, refused, retry_after};

use crate::egress::Guarded;
pub use crate::egress::check_public;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stream may be silent, unless something else is set.
const SILENCE_MAX: Duration = Duration::from_secs(180);
/// The longest answer that is taken in.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The format that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Wire {
    /// Chat Completions, as OpenAI and many others speak it.
    #[default]
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own, which knows how much context is wanted.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The name, as it is set.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// The format that the server at this address is known to speak.
    #[must_use]
    pub fn of(url: &str) -> Self {
        let host = host(url);
        if host.ends_with("anthropic.com") {
            Self::Anthropic
        } else if host == "generativelanguage.googleapis.com" && !url.contains("/openai") {
            Self::Gemini
        } else {
            Self::Chat
        }
    }

    /// Where its maker's server is.
    #[must_use]
    pub fn home(self) -> &'static str {
        match self {
            Self::Chat => "http://127.0.0.1:11434/v1",
            Self::Responses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
}

impl Effort {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    fn tokens(self) -> u32 {
        match self {
            Self::Low => 1_024,
            Self::Medium => 4_096,
            Self::High => 12_288,
        }
    }
}

/// Where a model is, what it is called, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The format.
    pub wire: Wire,
    /// The address up to and without the path of the call.
    pub base_url: String,
    /// The name of the model.
    pub model: String,
    /// The key, if the server wants one.
    pub api_key: Option<String>,
    /// How many tokens one request may hold.
    pub window_tokens: usize,
    /// From how many tokens on what was said is summed up, though more would fit.
    pub soft_tokens: usize,
    /// How many tokens an answer may have.
    pub answer_tokens: u32,
    /// How much it thinks; as its maker set it, if not said.
    pub effort: Option<Effort>,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    /// How long its stream may be silent.
    pub silence: Duration,
    /// Whether its name may lead to public addresses only.
    pub is_public: bool,
}

impl HttpSettings {
    /// A model of this name at this address, with what is usual for the rest.
    #[must_use]
    pub fn new(wire: Wire, base_url: &str, model: &str) -> Self {
        Self {
            wire,
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            window_tokens: 128_000,
            soft_tokens: SOFT_TOKENS,
            answer_tokens: 8_192,
            effort: None,
            price: None,
            silence: SILENCE_MAX,
            is_public: false,
        }
    }

    /// How it is spoken to, and its name.
    fn id(&self) -> String {
        format!("{}:{}", self.wire.name(), self.model)
    }

    /// Whether it is at OpenAI's own server.
    fn is_openai(&self) -> bool {
        host(&self.base_url) == "api.openai.com"
    }
}

/// The host of an address, without its port.
fn host(url: &str) -> &str {
    let place = url.split("://").nth(1).unwrap_or(url).split('/').next().unwrap_or_default();
    place.split(':').next().unwrap_or_default()
}

/// An answer in the making.
trait Assemble: Send {
    /// Takes one piece; gives back the text in it, if any.
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure>;

    /// Whether nothing more is expected.
    fn is_whole(&self) -> bool;

    /// The answer, if the stream ended as it should.
    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure>;
}

/// A model behind HTTP.
pub struct HttpModel {
    client: Client,
    settings: HttpSettings,
}

impl HttpModel {
    /// A model at this address.
    pub fn new(settings: HttpSettings) -> Result<Self, ModelFailure> {
        let mut client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(settings.silence)
            .redirect(reqwest::redirect::Policy::none());
        if settings.is_public {
            // A proxy would look the name up itself.
            client = client.no_proxy().dns_resolver(Arc::new(Guarded::default()));
        }
        let client = client
            .build()
            .map_err(|error| ModelFailure::new(FailureKind::Permanent, error.to_string()))?;
        Ok(Self { client, settings })
    }

    /// The request as it is sent.
    #[must_use]
    pub fn body(&self, request: &ModelRequest) -> Value {
        match self.settings.wire {
            Wire::Chat => chat::body(&self.settings, request),
            Wire::Responses => responses::body(&self.settings, request),
            Wire::Anthropic => anthropic::body(&self.settings, request),
            Wire::Gemini => gemini::body(&self.settings, request),
            Wire::Ollama => ollama::body(&self.settings, request),
        }
    }

    fn sending(&self, request: &ModelRequest) -> RequestBuilder {
        let HttpSettings { wire, base_url, model, api_key, .. } = &self.settings;
        let base = base_url.trim_end_matches('/');
        let path = match wire {
            Wire::Chat => "/chat/completions".into(),
            Wire::Responses => "/responses".into(),
            Wire::Anthropic => "/v1/messages".into(),
            Wire::Gemini => format!("/models/{model}:streamGenerateContent?alt=sse"),
            Wire::Ollama => "/api/chat".into(),
        };
        let mut sending = self.client.post(format!("{base}{path}")).json(&self.body(request));
        if *wire == Wire::Anthropic {
            sending = sending.header("anthropic-version", "2023-06-01");
        }
        match (wire, api_key) {
            (_, None) => sending,
            (Wire::Anthropic, Some(key)) => sending.header("x-api-key", key),
            (Wire::Gemini, Some(key)) => sending.header("x-goog-api-key", key),
            (Wire::Chat | Wire::Responses | Wire::Ollama, Some(key)) => sending.bearer_auth(key),
        }
    }

    async fn send(&self, request: &ModelRequest) -> Result<Response, ModelFailure> {
        let HttpSettings { base_url, wire, .. } = &self.settings;
        let unreachable = |error: reqwest::Error| {
            let kind =
                if error.is_builder() { FailureKind::Permanent } else { FailureKind::Transient };
            ModelFailure::new(kind, format!("{base_url} {UNREACHABLE} ({})", cause(&error)))
        };
        let response = self.sending(request).send().await.map_err(unreachable)?;
        let (status, wait) = (response.status(), retry_after(response.headers()));
        if !status.is_success() {
            let text = response.text().await.unwrap_or_default();
            let failure = refused(&self.settings, status, &text);
            return Err(ModelFailure {
                retry_after_micros: wait.or(failure.retry_after_micros),
                ..failure
            });
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or("something without a type").to_lowercase();
        let expected = match wire {
            Wire::Ollama => ["application/x-ndjson", "application/json"],
            Wire::Chat | Wire::Responses | Wire::Anthropic | Wire::Gemini => {
                ["text/event-stream", "application/octet-stream"]
            }
        };
        if expected.iter().any(|expected| kind.starts_with(expected)) {
            return Ok(response);
        }
        let words = format!(
            "{base_url} answered with {kind} instead of a stream; is that the address of a model?"
        );
        Err(ModelFailure::new(FailureKind::Malformed, words))
    }

    fn assembly(&self) -> Box<dyn Assemble> {
        match self.settings.wire {
            Wire::Chat => Box::<chat::Assembly>::default(),
            Wire::Responses => Box::<responses::Assembly>::default(),
            Wire::Anthropic => Box::<anthropic::Assembly>::default(),
            Wire::Gemini => Box::<gemini::Assembly>::default(),
            Wire::Ollama => Box::<ollama::Assembly>::default(),
        }
    }
}

#[async_trait]
impl Model for HttpModel {
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let response = self.send(request).await?;
        let mut assembly = self.assembly();
        let mut bytes = 0;
        let mut take = |assembly: &mut Box<dyn Assemble>, data: &str| {
            bytes += data.len();
            if bytes > ANSWER_BYTES_MAX {
                let words = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(ModelFailure::new(FailureKind::Malformed, words));
            }
            if let Some(text) = assembly.take(data)? {
                preview(&text);
            }
            Ok(())
        };
        if self.settings.wire == Wire::Ollama {
            let mut pieces = response.bytes_stream();
            let mut held = Vec::new();
            while !assembly.is_whole() {
                let Some(piece) = pieces.next().await else { break };
                held.extend_from_slice(&piece.map_err(|error| broke_off(&error))?);
                if held.len() > ANSWER_BYTES_MAX {
                    return Err(ModelFailure::new(FailureKind::Malformed, "a line without an end"));
                }
                while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = held.drain(..=end).collect();
                    take(&mut assembly, String::from_utf8_lossy(&line).trim())?;
                }
            }
            return assembly.finish().map(named);
        }
        let mut events = pin!(SseByteStream::new(response.bytes_stream()));
        while !assembly.is_whole() {
            let Some(event) = events.next().await else { break };
            let event = event.map_err(|error| not_read(&error))?;
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                take(&mut assembly, &data)?;
            }
        }
        assembly.finish().map(named)
    }

    fn price(&self) -> Option<Price> {
        self.settings.price
    }

    fn window_tokens(&self) -> usize {
        self.settings.window_tokens
    }

    fn soft_tokens(&self) -> usize {
        self.settings.soft_tokens
    }

    fn name(&self) -> String {
        self.settings.model.clone()
    }

    fn id(&self) -> String {
        self.settings.id()
    }
}

/// Gives a name to every call that came without one. No two calls of a conversation may share theirs.
fn named(mut answer: ModelAnswer) -> ModelAnswer {
    for call in answer.calls.iter_mut().filter(|call| call.wire_id.is_empty()) {
        call.wire_id = format!("call_{}", &uuid::Uuid::new_v4().simple().to_string()[..16]);
    }
    answer
}

/// What the failure of a model says whose server nobody reached.
const UNREACHABLE: &str = "cannot be reached";

/// Whether nobody reached the model's server: nothing was asked, and a person can start it.
#[must_use]
pub fn is_unreachable(failure: &ModelFailure) -> bool {
    failure.kind == FailureKind::Transient && failure.message.contains(UNREACHABLE)
}

fn broke_off(error: &reqwest::Error) -> ModelFailure {
    let words = format!("the stream broke off: {}", causes(error));
    ModelFailure::new(FailureKind::Transient, words)
}

/// Why the stream could not be read on: the connection broke, or it is no such stream.
fn not_read(error: &sse_stream::Error) -> ModelFailure {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    match cause {
        Some(cause) => broke_off(cause),
        None => malformed("the stream is not what it should be"),
    }
}

/// A failure whose answer was of no use.
fn malformed(words: impl Into<String>) -> ModelFailure {
    ModelFailure::new(FailureKind::Malformed, words)
}

/// What was kept of an answer that this model gave; nothing of what another one gave.
fn own<'a>(kept: &'a Option<Arc<KeptBy>>, by: &str) -> &'a [Kept] {
    kept.as_ref().filter(|kept| kept.by == by).map(|kept| kept.items.as_slice()).unwrap_or_default()
}

/// Of these, the items that stood here, as they were.
fn back(kept: &[Kept], at: usize) -> impl Iterator<Item = Value> {
    let here = kept.iter().filter(move |kept| kept.at as usize == at);
    here.filter_map(|kept| serde_json::from_str(&kept.item).ok())
}

/// A piece of the stream, read.
fn piece<T: serde::de::DeserializeOwned>(data: &str) -> Result<T, ModelFailure> {
    serde_json::from_str(data)
        .map_err(|error| malformed(format!("a piece of the answer cannot be read: {error}")))
}

/// Arguments as an object. A server may refuse a history in which they are none.
fn object(arguments: &str) -> Value {
    let read = serde_json::from_str::<Value>(arguments).ok();
    read.filter(Value::is_object).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// The answer broke off at the limit of its length.
const CUT_OFF: &str = "\n[cut off at the model's length limit]";
/// The same, inside a call.
const CUT_OFF_IN_CALL: &str =
    "the answer was cut off at the model's length limit inside a tool call";
/// There was no stop reason.
const NO_STOP: &str = "the answer broke off without a stop reason";

/// Where something stands among words and calls: before the words, or before the next call.
fn place(text: &str, calls: usize) -> u32 {
    if text.is_empty() && calls == 0 { 0 } else { u32::try_from(calls + 1).unwrap_or(u32::MAX) }
}
