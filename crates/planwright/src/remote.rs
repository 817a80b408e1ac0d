//! A server that owns the installation, as a terminal talks to it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, stream::BoxStream};
use planwright_domain::{
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, ConversationKey, SessionIdentity},
    time::Time,
};
use planwright_runtime::{
    inbound::Reply,
    ports::{
        journal::{Recorded, SessionRow},
        signal::{Preview, Signal, Subscription},
    },
    requests::{RequestRow, RequestView},
    routing::new_key,
    view::StatusView,
};
use planwright_surfaces::http::{
    dto::SessionRowDto,
    envelope::Envelope,
    sessions::{KeptOutput, Pointer},
    tokens::TokenGiven,
    who::SURFACE,
};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    backend::{Backend, Reach},
    installation::surface,
};

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// Where a running server is. It lies in the data directory while the server runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerFile {
    /// Its address, as a client writes it.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Whether it is a node of a cluster, which keeps the passphrase elsewhere.
    #[serde(default)]
    pub is_node: bool,
}

impl ServerFile {
    /// Where it lies.
    #[must_use]
    pub fn path(data: &Path) -> PathBuf {
        data.join("server.json")
    }

    /// The server of this data directory, if one says that it runs.
    #[must_use]
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(Self::path(data)).ok()?).ok()
    }
}

/// A server, as a terminal talks to it.
pub struct Remote {
    client: Client,
    url: String,
    data: PathBuf,
    token: String,
    decider: Option<String>,
    identity: SessionIdentity,
    surface: String,
    is_node: bool,
}

impl Remote {
    /// Connects to the server that owns this data directory.
    pub async fn connect(
        data: &Path,
        server: &ServerFile,
        session: Option<&str>,
    ) -> anyhow::Result<Self> {
        let token =
            fs::read_to_string(data.join("token")).context("the server's token cannot be read")?;
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
        let mut remote = Self {
            client,
            url: server.url.clone(),
            data: data.to_owned(),
            token: token.trim().to_owned(),
            decider: None,
            identity: SessionIdentity::new(ChannelType::Cli, new_key()?),
            surface: surface(),
            is_node: server.is_node,
        };
        match session {
            Some(named) => remote.activate(ConversationKey::legacy(named)?).await?,
            None => remote.choose().await?,
        }
        Ok(remote)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = self.decider.as_ref().unwrap_or(&self.token);
        self.client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(token)
            .header(SURFACE, &self.surface)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = request.timeout(REQUEST_MAX).send().await.map_err(|error| {
            anyhow::anyhow!(
                "the server at {} does not answer ({}); start it again with: planwright up",
                self.url,
                error.without_url()
            )
        })?;
        let status = response.status();
        let text = response.text().await?;
        if status.is_success() {
            return Ok(serde_json::from_str(&text).unwrap_or_default());
        }
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let words = problem["detail"].as_str().unwrap_or("no reason given").to_owned();
        if status == StatusCode::UNAUTHORIZED {
            bail!("{words}")
        } else {
            bail!("{words} ({status})")
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        Ok(serde_json::from_value(self.send(self.request(Method::GET, path)).await?)?)
    }

    fn session_path(&self, rest: &str) -> String {
        // The text form is already safe in a path, except for its escapes.
        format!("/api/sessions/{}{rest}", self.identity.to_string().replace('%', "%25"))
    }

    fn remembered(&self) -> BTreeMap<String, (String, i64)> {
        let text = fs::read_to_string(self.data.join("terminals")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

#[async_trait]
impl Backend for Remote {
    fn identity(&self) -> &SessionIdentity {
        &self.identity
    }

    fn described(&self) -> String {
        format!("server at {}", self.url)
    }

    async fn hear(&self, id: CommandId, line: &str) -> anyhow::Result<Reply> {
        let request = self.request(Method::POST, &self.session_path("/lines"));
        let request =
            request.header("idempotency-key", id.to_string()).json(&json!({"line": line}));
        Ok(serde_json::from_value(self.send(request).await?)?)
    }

    async fn shown(&self, digest: Digest) -> anyhow::Result<()> {
        let request = self.request(Method::POST, &self.session_path("/plan/shown"));
        self.send(request.header("if-match", format!("\"{digest}\""))).await.map(drop)
    }

    async fn status(&self) -> anyhow::Result<StatusView> {
        self.get(&self.session_path("/status")).await
    }

    async fn events(&self, after: Seq) -> anyhow::Result<Vec<Recorded>> {
        let envelopes: Vec<Envelope> =
            self.get(&self.session_path(&format!("/events?after={after}"))).await?;
        envelopes.into_iter().map(recorded).collect()
    }

    async fn output(&self, digest: Digest) -> anyhow::Result<Option<String>> {
        let kept: KeptOutput = self.get(&self.session_path(&format!("/outputs/{digest}"))).await?;
        Ok(Some(kept.text))
    }

    async fn requests(&self) -> anyhow::Result<Vec<RequestRow>> {
        self.get(&self.session_path("/requests")).await
    }

    async fn request_at(&self, seq: Seq) -> anyhow::Result<Option<RequestView>> {
        self.get(&self.session_path(&format!("/requests/{seq}"))).await.map(Some)
    }

    async fn listen(&self) -> anyhow::Result<Box<dyn Subscription>> {
        let response = self.request(Method::GET, &self.session_path("/stream")).send().await?;
        let stream = response.bytes_stream().eventsource();
        let signals =
            stream.filter_map(|event| async move { event.ok().map(|event| signal(&event.data)) });
        Ok(Box::new(Ear(signals.boxed())))
    }

    fn has_passphrase(&self) -> bool {
        self.is_node || self.data.join("passphrase").exists()
    }

    fn is_unlocked(&mut self) -> bool {
        let now = jiff::Timestamp::now().as_microsecond();
        if let Some((token, until)) = self.remembered().get(&self.surface)
            && *until > now
        {
            self.decider = Some(token.clone());
        }
        self.decider.is_some()
    }

    async fn unlock(&mut self, passphrase: &str) -> anyhow::Result<()> {
        let request = self.client.post(format!("{}/api/tokens", self.url));
        let given = self
            .send(request.json(&json!({"name": self.surface, "passphrase": passphrase})))
            .await?;
        let given: TokenGiven = serde_json::from_value(given)?;
        let until: jiff::Timestamp = given.expires.as_deref().unwrap_or_default().parse()?;
        let mut remembered = self.remembered();
        remembered.retain(|_, (_, until)| *until > jiff::Timestamp::now().as_microsecond());
        remembered.insert(self.surface.clone(), (given.token.clone(), until.as_microsecond()));
        let path = self.data.join("terminals");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(serde_json::to_string(&remembered)?.as_bytes())?;
        self.decider = Some(given.token);
        Ok(())
    }

    fn work(&mut self, _: Reach) {}

    async fn rest(&mut self) {}

    async fn sessions(&self, limit: usize) -> anyhow::Result<Vec<SessionRow>> {
        let rows: Vec<SessionRowDto> = self.get("/api/sessions").await?;
        let row = |row: SessionRowDto| {
            let waiting = row.waiting.and_then(|name| serde_json::from_value(name.into()).ok());
            let updated = row
                .updated
                .parse::<jiff::Timestamp>()
                .map_or(Time(0), |time| Time(time.as_microsecond()));
            let identity = SessionIdentity::parse(&row.session_id)?;
            anyhow::Ok(SessionRow {
                identity,
                version: Seq(row.version),
                updated,
                waiting,
                parked: row.parked,
                owner: None,
                title: row.title,
                archived: row.archived,
            })
        };
        rows.into_iter().take(limit).map(row).collect()
    }

    async fn choose(&mut self) -> anyhow::Result<()> {
        let pointer: Pointer = self.get("/api/pointers/terminal").await?;
        let key = pointer.key.context("the server named no conversation")?;
        self.identity = SessionIdentity::new(ChannelType::Cli, ConversationKey::legacy(&key)?);
        Ok(())
    }

    async fn activate(&mut self, key: ConversationKey) -> anyhow::Result<()> {
        let request = self.request(Method::PUT, "/api/pointers/terminal");
        self.send(request.json(&Pointer { key: Some(key.as_str().to_owned()) })).await?;
        self.identity = SessionIdentity::new(ChannelType::Cli, key);
        Ok(())
    }

    async fn import_memory(&self, _: &Path) -> anyhow::Result<usize> {
        bail!("a server owns this installation; stop it, then import")
    }

    async fn retry(&self) -> anyhow::Result<()> {
        bail!("a parked session of a server is taken up again by saying something in it")
    }
}

struct Ear(BoxStream<'static, Signal>);

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Option<Signal> {
        match self.0.next().await {
            Some(signal) => Some(signal),
            None => {
                // The server is gone or the connection broke: what is recorded is read again, slowly.
                tokio::time::sleep(Duration::from_millis(500)).await;
                Some(Signal::Missed)
            }
        }
    }
}

fn signal(data: &str) -> Signal {
    let Ok(envelope) = serde_json::from_str::<Envelope>(data) else { return Signal::Missed };
    match (envelope.seq, envelope.kind.as_str()) {
        (Some(seq), _) => Signal::Moved(Seq(seq)),
        (None, "preview") => {
            serde_json::from_value::<PreviewData>(envelope.data).map_or(Signal::Missed, |data| {
                let PreviewData { turn, round, attempt, offset, text } = data;
                Signal::Preview(Preview { turn: turn.into(), round, attempt, offset, text })
            })
        }
        (None, _) => Signal::Missed,
    }
}

#[derive(Deserialize)]
struct PreviewData {
    turn: uuid::Uuid,
    round: u32,
    attempt: u32,
    offset: usize,
    text: String,
}

fn recorded(envelope: Envelope) -> anyhow::Result<Recorded> {
    let time = envelope.time.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    let at = time.map_or(Time(0), |time| Time(time.as_microsecond()));
    let event = serde_json::from_value(envelope.data)
        .context("the server speaks of an event that this version does not know")?;
    Ok(Recorded { seq: Seq(envelope.seq.unwrap_or(0)), at, event })
}
