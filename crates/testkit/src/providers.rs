//! Servers that speak the providers' own formats, written from their public documentation and as strict as they are.
//!
//! What a server does next is scripted: an answer, or one of the failures that real servers have. A request that the real
//! one would refuse is refused here, in its own words and form.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_outbound::model_http::{HttpSettings, Wire};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

/// The key that every server wants.
pub const KEY: &str = "key-of-the-proof";
/// The model that every server has.
pub const MODEL: &str = "gemini-3-proof";
/// What a signature begins with that a server gave.
pub const SIGNED: &str = "signed-by-";

/// What a server does with one request.
#[derive(Debug, Clone)]
pub enum Play {
    /// It answers.
    Answers(Reply),
    /// It refuses, with this status.
    Refuses(Refuses),
    /// It closes the connection before it says anything.
    Closes,
    /// It says nothing, for ever.
    Hangs,
    /// It answers with a page for people.
    Page,
    /// It says to look elsewhere.
    Redirects,
}

/// Why a server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuses {
    /// The key is wrong.
    Key,
    /// The key may not do this.
    Forbidden,
    /// There is no such model.
    NoModel,
    /// Nobody paid.
    Unpaid,
    /// Too many requests; it says how many seconds to wait, or not.
    Busy(Option<u32>),
    /// It is out of order.
    Broken,
    /// It is overloaded.
    Overloaded,
    /// The request is larger than the window.
    TooLarge,
    /// The request is not what it takes.
    Invalid,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// Its calls: tool and arguments.
    pub calls: Vec<(String, String)>,
    /// Whether it thought first, and wants its thoughts back.
    pub thinks: bool,
    /// How it ends.
    pub ends: Ends,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// As it should.
    #[default]
    Well,
    /// Without a reason.
    WithoutReason,
    /// In the middle of a piece.
    Cut,
    /// In silence, in the middle of the stream.
    Silent,
    /// With an error in the stream.
    WithError,
    /// With a piece that is no JSON.
    Garbled,
    /// At the limit of its length.
    TooLong,
    /// Withheld.
    Withheld,
}

impl Reply {
    /// Words alone.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// One call.
    #[must_use]
    pub fn call(tool: &str, arguments: &str) -> Self {
        Self { calls: vec![(tool.into(), arguments.into())], ..Self::default() }
    }

    /// The same with one more call.
    #[must_use]
    pub fn and(mut self, tool: &str, arguments: &str) -> Self {
        self.calls.push((tool.into(), arguments.into()));
        self
    }

    /// The same, ending so.
    #[must_use]
    pub fn ending(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    /// The same, with thoughts that it wants back.
    #[must_use]
    pub fn thinking(self) -> Self {
        Self { thinks: true, ..self }
    }
}

/// A request that a server had.
#[derive(Debug, Clone)]
pub struct Had {
    /// Its path.
    pub path: String,
    /// Its headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Value,
    /// Why it was refused as no real server would take it, if it was.
    pub wrong: Option<String>,
}

impl Had {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A running server of one provider.
#[derive(Debug)]
pub struct Provider {
    wire: Wire,
    address: SocketAddr,
    plays: Arc<Mutex<Vec<Play>>>,
    had: Arc<Mutex<Vec<Had>>>,
    serving: JoinHandle<()>,
}

impl Provider {
    /// A server of this format on a free port of loopback. When the script has ended, it answers "fine".
    pub async fn start(wire: Wire, plays: Vec<Play>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let plays = Arc::new(Mutex::new(plays));
        let had = Arc::<Mutex<Vec<Had>>>::default();
        let (script, kept) = (plays.clone(), had.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let (script, kept) = (script.clone(), kept.clone());
                tokio::spawn(async move {
                    let _ = serve(wire, stream, &script, &kept).await;
                });
            }
        });
        Ok(Self { wire, address, plays, had, serving })
    }

    /// What it does from now on.
    pub fn plays(&self, plays: Vec<Play>) {
        *self.plays.lock().unwrap_or_else(PoisonError::into_inner) = plays;
    }

    /// The requests that it had.
    #[must_use]
    pub fn had(&self) -> Vec<Had> {
        self.had.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How it is reached.
    #[must_use]
    pub fn settings(&self) -> HttpSettings {
        let path = match self.wire {
            Wire::Chat | Wire::Responses => "/v1",
            Wire::Gemini => "/v1beta",
            Wire::Anthropic | Wire::Ollama => "",
        };
        HttpSettings {
            api_key: Some(KEY.into()),
            silence: Duration::from_millis(300),
            ..HttpSettings::new(self.wire, &format!("http://{}{path}", self.address), MODEL)
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves one connection: one request, one response, closed.
async fn serve(
    wire: Wire,
    mut stream: TcpStream,
    plays: &Mutex<Vec<Play>>,
    had: &Mutex<Vec<Had>>,
) -> std::io::Result<()> {
    let Some(mut request) = read(&mut stream).await? else { return Ok(()) };
    let play = {
        let mut plays = plays.lock().unwrap_or_else(PoisonError::into_inner);
        if plays.is_empty() { Play::Answers(Reply::text("fine")) } else { plays.remove(0) }
    };
    request.wrong = check(wire, &request).err();
    let wrong = request.wrong.clone();
    let number = {
        let mut had = had.lock().unwrap_or_else(PoisonError::into_inner);
        had.push(request);
        had.len()
    };
    if let Some(words) = wrong {
        let (status, body) = error(wire, 400, "invalid_request_error", &words);
        return respond(&mut stream, status, "application/json", &[], body.as_bytes()).await;
    }
    match play {
        Play::Closes => Ok(()),
        Play::Hangs => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok(())
        }
        Play::Page => {
            let page = b"<html><body>Welcome to nginx!</body></html>";
            respond(&mut stream, 200, "text/html", &[], page).await
        }
        Play::Redirects => {
            let to = [("location", "http://127.0.0.1:9/elsewhere".to_owned())];
            respond(&mut stream, 302, "text/plain", &to, b"").await
        }
        Play::Refuses(why) => {
            let (status, body, wait) = refusal(wire, why);
            let headers: Vec<_> = wait.into_iter().map(|wait| ("retry-after", wait)).collect();
            respond(&mut stream, status, "application/json", &headers, body.as_bytes()).await
        }
        Play::Answers(reply) => answer(wire, &mut stream, &reply, number).await,
    }
}

/// Sends an answer piece by piece, and ends it as the script says.
async fn answer(
    wire: Wire,
    stream: &mut TcpStream,
    reply: &Reply,
    number: usize,
) -> std::io::Result<()> {
    let kind = match wire {
        Wire::Ollama => "application/x-ndjson",
        Wire::Chat | Wire::Responses | Wire::Anthropic | Wire::Gemini => "text/event-stream",
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let pieces = match wire {
        Wire::Chat => chat::pieces(reply, number),
        Wire::Responses => responses::pieces(reply, number),
        Wire::Anthropic => anthropic::pieces(reply, number),
        Wire::Gemini => gemini::pieces(reply, number),
        Wire::Ollama => ollama::pieces(reply, number),
    };
    let half = pieces.len().div_ceil(2);
    for (at, piece) in pieces.iter().enumerate() {
        match reply.ends {
            Ends::Silent if at == half => {
                stream.flush().await?;
                tokio::time::sleep(Duration::from_secs(30)).await;
                return Ok(());
            }
            Ends::Cut if at == half => {
                return stream.write_all(&piece.as_bytes()[..piece.len() / 2]).await;
            }
            Ends::Garbled if at == half => {
                let garbled = if wire == Wire::Ollama { "{broken\n" } else { "data: {broken\n\n" };
                stream.write_all(garbled.as_bytes()).await?;
            }
            Ends::Well
            | Ends::WithoutReason
            | Ends::Cut
            | Ends::Silent
            | Ends::WithError
            | Ends::Garbled
            | Ends::TooLong
            | Ends::Withheld => {}
        }
        stream.write_all(piece.as_bytes()).await?;
        tokio::task::yield_now().await;
    }
    stream.flush().await?;
    stream.shutdown().await
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Had>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head_end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    let body = serde_json::from_slice(&bytes[head_end + 4..]).unwrap_or(Value::Null);
    Ok(Some(Had { path, headers, body, wrong: None }))
}

async fn respond(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    headers: &[(&str, String)],
    body: &[u8],
) -> std::io::Result<()> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}

fn check(wire: Wire, had: &Had) -> Result<(), String> {
    if had.header("content-type").is_none_or(|kind| !kind.starts_with("application/json")) {
        return Err("the content type must be application/json".into());
    }
    match wire {
        Wire::Chat => chat::check(had),
        Wire::Responses => responses::check(had),
        Wire::Anthropic => anthropic::check(had),
        Wire::Gemini => gemini::check(had),
        Wire::Ollama => ollama::check(had),
    }
}

/// An error in the form of its provider.
fn error(wire: Wire, status: u16, kind: &str, words: &str) -> (u16, String) {
    let body = match wire {
        Wire::Chat | Wire::Responses => {
            json!({"error": {"message": words, "type": kind, "param": null, "code": kind}})
        }
        Wire::Anthropic => {
            json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"})
        }
        Wire::Gemini => json!({"error": {"code": status, "message": words, "status": kind}}),
        Wire::Ollama => json!({"error": words}),
    };
    (status, body.to_string())
}

/// How each provider refuses, as its documentation says.
fn refusal(wire: Wire, why: Refuses) -> (u16, String, Option<String>) {
    let (status, kind, words) = match (why, wire) {
        (Refuses::Key, Wire::Gemini) => {
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        }
        (Refuses::Key, Wire::Anthropic) => (401, "authentication_error", "invalid x-api-key"),
        (Refuses::Key, _) => (401, "invalid_api_key", "Incorrect API key provided"),
        (Refuses::Forbidden, _) => {
            (403, "permission_error", "Your API key does not have permission to use this")
        }
        (Refuses::NoModel, Wire::Ollama) => (404, "not_found", "model 'x' not found"),
        (Refuses::NoModel, _) => (404, "not_found_error", "The model `x` does not exist"),
        (Refuses::Unpaid, Wire::Anthropic) => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API",
        ),
        (Refuses::Unpaid, Wire::Gemini) => {
            (403, "PERMISSION_DENIED", "This API method requires billing to be enabled")
        }
        (Refuses::Unpaid, _) => (
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details",
        ),
        (Refuses::Busy(_), Wire::Gemini) => {
            (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted")
        }
        (Refuses::Busy(_), _) => (429, "rate_limit_error", "Rate limit reached"),
        (Refuses::Broken, Wire::Gemini) => (500, "INTERNAL", "An internal error has occurred"),
        (Refuses::Broken, _) => (500, "api_error", "Internal server error"),
        (Refuses::Overloaded, Wire::Anthropic) => (529, "overloaded_error", "Overloaded"),
        (Refuses::Overloaded, Wire::Gemini) => {
            (503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
        }
        (Refuses::Overloaded, _) => (503, "server_error", "The server is overloaded"),
        (Refuses::TooLarge, Wire::Anthropic) => {
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        (Refuses::TooLarge, Wire::Gemini) => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (Refuses::TooLarge, Wire::Ollama) => {
            (400, "invalid", "the prompt is longer than the context window (exceed_context_size)")
        }
        (Refuses::TooLarge, _) => {
            (400, "context_length_exceeded", "This model's maximum context length is 128000 tokens")
        }
        (Refuses::Invalid, _) => (400, "invalid_request_error", "Invalid value for a field"),
    };
    let (status, mut body) = error(wire, status, kind, words);
    let wait = match why {
        Refuses::Busy(Some(seconds)) => Some(seconds),
        _ => None,
    };
    if let (Wire::Gemini, Some(seconds)) = (wire, wait) {
        // Google says it in the body, and nowhere else.
        let delay = format!("{seconds}s");
        body = json!([{"error": {"code": status, "message": words, "status": kind, "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]}}])
        .to_string();
        return (status, body, None);
    }
    (status, body, wait.map(|seconds| seconds.to_string()))
}

/// A piece of a stream of events, with its name where there is one.
fn event(name: Option<&str>, data: &Value) -> String {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {data}\n\n")
}

/// A text that must be there.
fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value.as_str().filter(|text| !text.is_empty()).ok_or(format!("{name}: Field required"))
}

/// Only these fields may be there.
fn only(value: &Value, known: &[&str], place: &str) -> Result<(), String> {
    let fields = value.as_object().ok_or(format!("{place} must be an object"))?;
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(format!("{place}.{field}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// The entries of a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether a name is made of letters, digits, `-` and `_`, and not too long.
fn is_name(name: &str, longest: usize) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    (1..=longest).contains(&name.len()) && name.chars().all(plain)
}

fn bearer(had: &Had) -> Result<(), String> {
    match had.header("authorization") {
        Some(value) if value == format!("Bearer {KEY}") => Ok(()),
        other => Err(format!("the key is {other:?}")),
    }
}
