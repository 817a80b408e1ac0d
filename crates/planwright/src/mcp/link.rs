//! The way from the shim to the server: finds it, starts it, takes a place, and asks until it is answered.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use planwright_surfaces::http::agents::Place;
use reqwest::{Client, Response, StatusCode};
use rmcp::{ErrorData, model::ErrorCode};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep},
};

use crate::server::{Server, ServerFile, start_advice};

/// How long it is asked again before the agent is told that nobody answers.
const PATIENCE: Duration = Duration::from_secs(100);
/// How long one request may take: a call may wait for a person.
const REQUEST_MAX: Duration = Duration::from_secs(70);
/// How long a server that was started may take until it answers.
const START_MAX: Duration = Duration::from_secs(30);
/// How long after it went away a server is left to those who run it before it is started here.
const LEFT_ALONE: Duration = Duration::from_secs(3);
/// The version of MCP in which the server is asked.
const VERSION: &str = "2025-11-25";

/// What the shim was told about its place.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The project.
    pub root: String,
    /// The session, by its key.
    pub key: Option<String>,
    /// The plan work with which it begins.
    pub plan: Option<String>,
    /// Whether it may only look.
    pub read_only: bool,
    /// Whether every tool is told of, whatever the state.
    pub always: bool,
    /// Whether a server is started where none runs.
    pub starts: bool,
}

/// The way to the server.
pub struct Link {
    client: Client,
    data: PathBuf,
    /// The server that was named, and the token for it; none, where the data directory tells.
    named: Option<(Server, String)>,
    /// The words after the program that start a server like this one.
    up: Vec<String>,
    wish: Wish,
    place: Mutex<Option<Arc<Place>>>,
    moved: watch::Sender<u64>,
}

/// Why it was not answered.
enum Trouble {
    /// It may be answered if it is asked again.
    Later(String),
    /// It will not be.
    Never(ErrorData),
}

impl Link {
    /// The way to the server that is named, else to the one of this data directory.
    pub fn new(
        data: &Path,
        named: Option<(Server, String)>,
        up: Vec<String>,
        wish: Wish,
    ) -> anyhow::Result<Self> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
        let (place, moved) = (Mutex::default(), watch::Sender::default());
        Ok(Self { client, data: data.to_owned(), named, up, wish, place, moved })
    }

    /// Moves when the tools are others.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Takes a place for someone who speaks to the server without a shim.
    pub async fn take(self: &Arc<Self>) -> anyhow::Result<Arc<Place>> {
        self.place("an agent over HTTP").await.map_err(|trouble| match trouble {
            Trouble::Later(words) => anyhow::anyhow!("{words}"),
            Trouble::Never(error) => anyhow::anyhow!("{}", error.message),
        })
    }

    /// Asks one thing until it is answered.
    pub async fn ask(
        self: &Arc<Self>,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, ErrorData> {
        let until = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(50);
        loop {
            let words = match self.try_once(agent, method, &params).await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Never(error)) => return Err(error),
                Err(Trouble::Later(words)) => words,
            };
            if Instant::now() + pause > until {
                let words = format!(
                    "Planwright does not answer ({words}); see planwright status, then ask again"
                );
                return Err(ErrorData::internal_error(words, None));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn try_once(
        self: &Arc<Self>,
        agent: &str,
        method: &str,
        params: &Value,
    ) -> Result<Value, Trouble> {
        let place = self.place(agent).await?;
        let server = self.server().await.map_err(later)?;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let response = self
            .client
            .post(format!("{}/mcp", server.url))
            .bearer_auth(&place.token)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", VERSION)
            .timeout(REQUEST_MAX)
            .json(&request)
            .send()
            .await
            .map_err(|error| later(error.without_url()))?;
        let answer = readable(response).await?;
        match (answer.get("result"), answer.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => {
                Err(Trouble::Never(serde_json::from_value(error.clone()).unwrap_or_else(|_| {
                    ErrorData::internal_error("the server refused without words", None)
                })))
            }
            (None, None) => Err(Trouble::Later("the answer was cut off".into())),
        }
    }

    /// The place of this shim: taken once, and kept.
    async fn place(self: &Arc<Self>, agent: &str) -> Result<Arc<Place>, Trouble> {
        let mut kept = self.place.lock().await;
        if let Some(place) = &*kept {
            return Ok(place.clone());
        }
        let server = self.server().await.map_err(later)?;
        let token = match &self.named {
            Some((_, token)) => token.clone(),
            None => std::fs::read_to_string(self.data.join("token")).map_err(later)?,
        };
        let Wish { root, key, plan, read_only, always, .. } = &self.wish;
        let wish = json!({"root": root, "key": key, "plan": plan, "readOnly": read_only, "always": always, "agent": agent});
        let response = self
            .client
            .post(format!("{}/api/agents", server.url))
            .bearer_auth(token.trim())
            .timeout(REQUEST_MAX)
            .json(&wish)
            .send()
            .await
            .map_err(|error| later(error.without_url()))?;
        let place: Place = serde_json::from_value(readable(response).await?).map_err(later)?;
        let place = Arc::new(place);
        *kept = Some(place.clone());
        tokio::spawn(self.clone().stay(place.clone()));
        Ok(place)
    }

    /// Lets the server know that it is here, and hears when the tools are others.
    async fn stay(self: Arc<Self>, place: Arc<Place>) {
        let mut again = false;
        loop {
            if let Some(server) = self.known()
                && self.answers(&server).await
            {
                let request =
                    self.client.get(format!("{}/mcp/live", server.url)).bearer_auth(&place.token);
                if let Ok(response) = request.send().await {
                    if response.status() == StatusCode::UNAUTHORIZED {
                        return;
                    }
                    if again {
                        // What happened in between is not known.
                        self.moved.send_modify(|many| *many += 1);
                    }
                    let mut events = pin!(SseByteStream::new(response.bytes_stream()));
                    while let Some(Ok(event)) = events.next().await {
                        if event.event.as_deref() == Some("tools") {
                            self.moved.send_modify(|many| *many += 1);
                        }
                    }
                    again = true;
                }
            }
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// The server that is named, or that says that it runs in the data directory.
    fn known(&self) -> Option<Server> {
        let named = self.named.as_ref().map(|(server, _)| server.clone());
        named.or_else(|| ServerFile::running(&self.data).map(Server::from))
    }

    /// The server that runs, or the one that is started here.
    async fn server(&self) -> anyhow::Result<Server> {
        let until = Instant::now() + START_MAX;
        let started_at = Instant::now();
        let mut child: Option<Child> = None;
        loop {
            let known = self.known();
            if let Some(server) = &known
                && self.answers(server).await
            {
                return Ok(server.clone());
            }
            // One that was killed may be on its way back; the first start of all waits for nobody.
            let was_there = self.named.is_some() || ServerFile::path(&self.data).exists();
            let is_time = !was_there || started_at.elapsed() > LEFT_ALONE;
            let has_failed = match &mut child {
                Some(child) => matches!(child.try_wait(), Ok(Some(end)) if !end.success()),
                None => false,
            };
            if has_failed {
                // Another shim may have been quicker: then its server answers.
                sleep(Duration::from_millis(500)).await;
                match self.known() {
                    Some(server) if self.answers(&server).await => return Ok(server),
                    Some(_) | None => bail!("no server can be started: {}", self.last_words()),
                }
            }
            if self.wish.starts && self.named.is_none() && child.is_none() && is_time {
                child = Some(self.start()?);
            }
            if Instant::now() > until {
                match known {
                    Some(server) => bail!("{} does not answer; {}", server.url, server.advice()),
                    None => bail!("no server runs; {}", start_advice(&self.data)),
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The last line that the server which was started here said.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.data.join("up.log")).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_owned()
    }

    /// Whether it answers, and is who it says: only then it is sent a token.
    async fn answers(&self, server: &Server) -> bool {
        if let Err(error) = server.check(&self.client, &self.data).await {
            tracing::warn!(%error, event = "server_not_proven");
            return false;
        }
        let health = self.client.get(format!("{}/health", server.url));
        let answer = health.timeout(Duration::from_secs(5)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Starts a server that goes on when the agent ends: what waits for a person waits there.
    fn start(&self) -> anyhow::Result<Child> {
        use std::os::unix::{fs::DirBuilderExt as _, process::CommandExt as _};
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(&self.data)?;
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.data.join("up.log"))
            .context("the log of the server cannot be written")?;
        Command::new(std::env::current_exe()?)
            .args(&self.up)
            .current_dir(&self.data)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .context("no server can be started")
    }
}

fn later(error: impl std::fmt::Display) -> Trouble {
    Trouble::Later(error.to_string())
}

/// The JSON of an answer, or who can mend it.
async fn readable(response: Response) -> Result<Value, Trouble> {
    let status = response.status();
    let text = response.text().await.map_err(|error| later(error.without_url()))?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    if status.is_success() || value.get("error").is_some() {
        return Ok(value);
    }
    let words = value["detail"].as_str().unwrap_or("no reason given").to_owned();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(Trouble::Later(words));
    }
    let words = if status == StatusCode::UNAUTHORIZED {
        "another window took this session over, or its token was revoked; restart this MCP server to get a session of its own".into()
    } else {
        words
    };
    Err(Trouble::Never(ErrorData::new(ErrorCode::INVALID_REQUEST, words, None)))
}
