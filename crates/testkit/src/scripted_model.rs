//! A model as a real HTTP server: it speaks the OpenAI-compatible wire format, streaming, and is
//! as strict as the real ones about what it is sent. What it says is scripted.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
    serve::ListenerExt as _,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub mod by_script;
pub(crate) mod strict;
mod wire;
pub mod worker;

pub use wire::Shape;

/// How many requests a server keeps: a proof asks thousands of times, each time with all that was said.
const KEPT_MAX: usize = 256;
/// How many of the latest it keeps besides.
const LATEST_MAX: usize = 16;

/// What the model says to one request.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    /// Its words.
    pub text: String,
    /// The calls it asks for: tool and arguments.
    pub calls: Vec<(String, String)>,
    /// How the server sends it.
    pub shape: Shape,
    /// How long it thinks first.
    pub thinks: Duration,
    /// How long it pauses between two pieces.
    pub pace: Duration,
    /// How many tokens it says it read; a hundred, if nothing is said.
    pub read: Option<usize>,
    /// What it waits for until it is true, once it has thought.
    pub held_until: Option<watch::Receiver<bool>>,
}

impl ScriptedReply {
    /// Words alone.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// One call.
    #[must_use]
    pub fn call(tool: &str, arguments: &Value) -> Self {
        Self { calls: vec![(tool.into(), arguments.to_string())], ..Self::default() }
    }

    /// The same with one more call.
    #[must_use]
    pub fn and(mut self, tool: &str, arguments: &Value) -> Self {
        self.calls.push((tool.into(), arguments.to_string()));
        self
    }

    /// The same, sent in another shape.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

/// What a model says to what it was told.
pub type Conduct = Arc<dyn Fn(&SeenRequest) -> ScriptedReply + Send + Sync>;

/// What a model was told, in the parts that a script looks at.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// The whole request.
    pub body: Value,
    /// What was last said from outside.
    pub last_message: String,
    /// What stands after it, where it opened a turn: how the plan stands, and what is remembered.
    pub turn_note: String,
    /// How often the model has answered since.
    pub rounds: usize,
    /// The names of the tools it may call.
    pub tools: Vec<String>,
    /// How many requests the server had before this one.
    pub earlier: usize,
}

/// A running server.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    request_count: Arc<AtomicUsize>,
    thinking: Arc<AtomicUsize>,
    keys: Arc<Mutex<BTreeSet<String>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    conduct: Conduct,
    requests: Arc<Mutex<Vec<Value>>>,
    latest: Arc<Mutex<VecDeque<Value>>>,
    request_count: Arc<AtomicUsize>,
    thinking: Arc<AtomicUsize>,
    keys: Arc<Mutex<BTreeSet<String>>>,
    key: Option<String>,
}

impl Shared {
    fn note_key(&self, given: Option<&str>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.extend(given.map(str::to_owned));
    }
}

impl ScriptedModel {
    /// A server on a free port of loopback.
    pub async fn start(conduct: Conduct) -> std::io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), None, conduct).await
    }

    /// A server at this address, which may want a key.
    pub async fn start_at(
        address: SocketAddr,
        key: Option<String>,
        conduct: Conduct,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (request_count, thinking) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let keys = Arc::<Mutex<_>>::default();
        let shared = Shared {
            keys: keys.clone(),
            conduct,
            requests: requests.clone(),
            latest: Arc::default(),
            request_count: request_count.clone(),
            thinking: thinking.clone(),
            key,
        };
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .route("/requests", get(sent))
            .with_state(shared);
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, requests, request_count, thinking, keys, serving })
    }

    /// A server that says these things, one after the other, and then nothing but "the script has ended".
    pub async fn saying(said: Vec<ScriptedReply>) -> std::io::Result<Self> {
        Self::start(Arc::new(move |seen: &SeenRequest| {
            said.get(seen.earlier)
                .cloned()
                .unwrap_or_else(|| ScriptedReply::text("the script has ended"))
        }))
        .await
    }

    /// Its address, up to and without `/chat/completions`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it thinks about whose callers are still there.
    #[must_use]
    pub fn thinking(&self) -> usize {
        self.thinking.load(Ordering::SeqCst)
    }

    /// How many requests it was sent so far.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::SeqCst)
    }

    /// The keys that it was sent.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<String> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it was sent first: as many requests as it keeps.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The models that a server of models lists.
async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))
}

/// What it was sent last, for those who look from another process.
async fn sent(State(shared): State<Shared>) -> String {
    let latest = shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
    Value::Array(latest.iter().cloned().collect()).to_string()
}

async fn complete(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    shared.note_key(given);
    if let Some(key) = &shared.key
        && given != Some(&format!("Bearer {key}"))
    {
        return refusal(
            StatusCode::UNAUTHORIZED,
            "Incorrect API key provided",
            "invalid_request_error",
        );
    }
    let seen = match serde_json::from_slice::<Value>(&body)
        .map_err(|error| error.to_string())
        .and_then(|body| {
            strict::check(&body)?;
            Ok(body)
        }) {
        Ok(body) => body,
        Err(words) => return refusal(StatusCode::BAD_REQUEST, &words, "invalid_request_error"),
    };
    let earlier = {
        let mut requests = shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() < KEPT_MAX {
            requests.push(seen.clone());
        }
        let mut latest = shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.push_back(seen.clone());
        let surplus = latest.len().saturating_sub(LATEST_MAX);
        latest.drain(..surplus);
        shared.request_count.fetch_add(1, Ordering::SeqCst)
    };
    let said = (shared.conduct)(&read(seen, earlier));
    let thought = Thought::begin(&shared.thinking);
    tokio::time::sleep(said.thinks).await;
    if let Some(mut held_until) = said.held_until.clone() {
        let _ = held_until.wait_for(|may_go_on| *may_go_on).await;
    }
    drop(thought);
    let pace = said.pace;
    match said.shape {
        Shape::TooManyRequests => {
            let mut response =
                refusal(StatusCode::TOO_MANY_REQUESTS, "Rate limit reached", "rate_limit_error");
            response.headers_mut().insert("retry-after-ms", header::HeaderValue::from_static("20"));
            response
        }
        Shape::ServerError => {
            refusal(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "server_error")
        }
        Shape::TooLong => refusal(
            StatusCode::BAD_REQUEST,
            "This model's maximum context length is 8 tokens (context_length_exceeded)",
            "invalid_request_error",
        ),
        _ => {
            let pieces = wire::pieces(&said)
                .into_iter()
                .map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
            let paced = stream::unfold(pieces, move |mut pieces| async move {
                let piece = pieces.next()?;
                tokio::task::yield_now().await;
                tokio::time::sleep(pace).await;
                Some((piece, pieces))
            });
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(paced))
                .into_response()
        }
    }
}

/// A request that is thought about, until it is answered or its caller is gone.
struct Thought(Arc<AtomicUsize>);

impl Thought {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Thought {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refusal(status: StatusCode, words: &str, kind: &str) -> Response {
    let body = json!({"error": {"message": words, "type": kind, "code": null}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn read(body: Value, earlier: usize) -> SeenRequest {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rposition(|message| message["role"] == "user");
    let (last_message, turn_note) =
        noted(last.and_then(|at| messages[at]["content"].as_str()).unwrap_or_default());
    let since = last.map_or(&messages[..], |at| &messages[at..]);
    let rounds = since.iter().filter(|message| message["role"] == "assistant").count();
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned))
        .collect();
    let (last_message, turn_note) = (last_message.to_owned(), turn_note.to_owned());
    SeenRequest { body, last_message, turn_note, rounds, tools, earlier }
}

/// The words that opened a turn, and the note after them.
#[must_use]
pub fn noted(text: &str) -> (&str, &str) {
    let notes = ["\n\n[The plan is ", "\n\n[You remember:\n"];
    let at = notes.iter().filter_map(|begins| text.rfind(begins)).min();
    text.split_at(at.unwrap_or(text.len()))
}
