//! A server that owns the installation, as a terminal talks to it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use futures_util::{StreamExt as _, stream::BoxStream};
use planwright_domain::{
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, ConversationKey, Root, SessionIdentity},
    time::Time,
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    commands::reply::Reply,
    commands::routing::key_of,
    ports::{
        journal::Recorded,
        signal::{Preview, Signal, Subscription},
    },
    queries::model_request_log::{RequestRow, RequestView},
    queries::view::StatusView,
};
use planwright_surfaces::http::{
    auth::{SURFACE, tokens::TokenGiven},
    dto::SessionRowDto,
    sessions::{KeptOutput, pointers::Pointer},
    streams::envelope::Envelope,
};
use reqwest::{Client, Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};
use sse_stream::SseByteStream;

use crate::{
    backend::{Backend, ListedSession, PeopleAct, PeopleAnswer, Reach},
    server::{Server, ServerKind},
    session::NamedSession,
    surface::surface,
};

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How many sessions are asked for at once.
const SESSIONS_PAGE: usize = 500;

/// A server, as a terminal talks to it.
pub struct Remote {
    client: Client,
    server: Server,
    data: PathBuf,
    token: String,
    /// The token that decides, while it is good.
    decider: Mutex<Option<String>>,
    identity: SessionIdentity,
    surface: String,
    /// Whose token it is: who decides here is the same person.
    person: String,
    has_passphrase: bool,
    notice: Option<String>,
}

impl Remote {
    /// Connects to this server. What the terminal remembers is kept in the data directory.
    pub async fn connect(
        data: &Path,
        server: Server,
        token: String,
        session: Option<&str>,
    ) -> anyhow::Result<Self> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
        server.check(&client, data).await?;
        let mut remote = Self {
            client,
            server,
            data: data.to_owned(),
            token,
            decider: Mutex::default(),
            identity: SessionIdentity::new(ChannelType::Cli, key_of(fresh_id())?),
            surface: surface(),
            person: String::new(),
            has_passphrase: false,
            notice: None,
        };
        let me: Value = remote.get("/api/me").await?;
        remote.person = me["person"].as_str().unwrap_or_default().to_owned();
        remote.has_passphrase = me["passphraseChosen"].as_bool().unwrap_or(true);
        remote.notice = me["notice"].as_str().map(str::to_owned);
        match session.map(NamedSession::parse).transpose()? {
            Some(NamedSession::OfThisTerminal(key)) => remote.activate(key).await?,
            Some(NamedSession::Elsewhere(identity)) => {
                remote.identity = identity;
                let _: Value = remote.get(&remote.session_path("/status")).await?;
            }
            None => remote.choose().await?,
        }
        Ok(remote)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = self.decider().unwrap_or_else(|| self.token.clone());
        self.client
            .request(method, format!("{}{path}", self.server.url))
            .bearer_auth(token)
            .header(SURFACE, &self.surface)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        Ok(self.send_with_headers(request).await?.1)
    }

    /// The same, with what the headers of the answer say.
    async fn send_with_headers(
        &self,
        request: RequestBuilder,
    ) -> anyhow::Result<(HeaderMap, Value)> {
        let response = request.timeout(REQUEST_MAX).send().await.map_err(|error| {
            anyhow::anyhow!(
                "the server at {} does not answer ({}); {}",
                self.server.url,
                innermost(&error),
                self.server.advice()
            )
        })?;
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await?;
        if status.is_success() {
            return Ok((headers, serde_json::from_str(&text).unwrap_or_default()));
        }
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let words = problem["detail"].as_str().unwrap_or("no reason given").to_owned();
        if status == StatusCode::UNAUTHORIZED && self.decider().is_some() {
            // It ended with its account or its passphrase: the next decision asks for one.
            self.forget_decider()?;
        }
        if status == StatusCode::UNAUTHORIZED && self.server.kind == ServerKind::Named {
            bail!("{words}; for another server set PLANWRIGHT_TOKEN to one of its tokens")
        } else if status == StatusCode::UNAUTHORIZED {
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

    /// This person's terminal at this server: a token that decides is never shown to another server, nor used by another person.
    fn remembered_as(&self) -> String {
        format!("{} {} {}", self.server.url, self.person, self.surface)
    }

    fn decider(&self) -> Option<String> {
        self.decider.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn forget_decider(&self) -> anyhow::Result<()> {
        *self.decider.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut remembered = self.remembered();
        match remembered.remove(&self.remembered_as()) {
            Some(_) => self.remember(&remembered),
            None => Ok(()),
        }
    }

    fn remember(&self, remembered: &BTreeMap<String, (String, i64)>) -> anyhow::Result<()> {
        // A client of a server elsewhere may have no data directory yet.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.data)?;
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(self.data.join("terminals"))?;
        Ok(file.write_all(serde_json::to_string(remembered)?.as_bytes())?)
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
        format!("server at {}", self.server.url)
    }

    async fn handle_line(&self, id: CommandId, line: &str) -> anyhow::Result<Reply> {
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
        let stream = SseByteStream::new(response.bytes_stream());
        let signals =
            stream.filter_map(|event| async move { event.ok()?.data.map(|data| signal(&data)) });
        Ok(Box::new(LocalSubscription(signals.boxed())))
    }

    fn has_passphrase(&self) -> bool {
        self.has_passphrase
    }

    fn is_unlocked(&mut self) -> bool {
        let now = jiff::Timestamp::now().as_microsecond();
        let remembered = self.remembered().remove(&self.remembered_as());
        let decider = remembered.filter(|(_, until)| *until > now).map(|(token, _)| token);
        *self.decider.lock().unwrap_or_else(PoisonError::into_inner) = decider;
        self.decider().is_some()
    }

    async fn unlock(&mut self, passphrase: &str) -> anyhow::Result<()> {
        if !self.has_passphrase {
            let choice = json!({"passphrase": passphrase, "token": self.token});
            let request = self.client.post(format!("{}/api/passphrase", self.server.url));
            self.send(request.json(&choice)).await?;
            self.has_passphrase = true;
        }
        // Who has a token of this server is not held up by others who try passphrases.
        let request = self.client.post(format!("{}/api/tokens", self.server.url));
        let request = request.bearer_auth(&self.token);
        let given = self
            .send(request.json(
                &json!({"name": self.surface, "passphrase": passphrase, "person": self.person}),
            ))
            .await?;
        let given: TokenGiven = serde_json::from_value(given)?;
        let until: jiff::Timestamp = given.expires.as_deref().unwrap_or_default().parse()?;
        let mut remembered = self.remembered();
        remembered.retain(|_, (_, until)| *until > jiff::Timestamp::now().as_microsecond());
        remembered.insert(self.remembered_as(), (given.token.clone(), until.as_microsecond()));
        self.remember(&remembered)?;
        *self.decider.lock().unwrap_or_else(PoisonError::into_inner) = Some(given.token);
        Ok(())
    }

    fn person(&self) -> &str {
        &self.person
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }

    async fn change_passphrase(&mut self, old: &str, new: &str) -> anyhow::Result<()> {
        // With the token, which does not end with the passphrase.
        self.forget_decider()?;
        let request = self.request(Method::PUT, "/api/passphrase");
        self.send(request.json(&json!({"old": old, "passphrase": new}))).await.map(drop)
    }

    async fn people(&mut self, act: PeopleAct) -> anyhow::Result<PeopleAnswer> {
        let of = |name: &str| {
            let mut path =
                reqwest::Url::parse("http://x/api/people").map_err(anyhow::Error::from)?;
            path.path_segments_mut().map_err(|()| anyhow::anyhow!("a path"))?.push(name);
            anyhow::Ok(path.path().to_owned())
        };
        Ok(match act {
            PeopleAct::List => PeopleAnswer::People(self.get("/api/people").await?),
            PeopleAct::Add(name, roles) => {
                let request = self.request(Method::POST, "/api/people");
                let given = self.send(request.json(&json!({"name": name, "roles": roles}))).await?;
                PeopleAnswer::Link(serde_json::from_value(given)?)
            }
            PeopleAct::Invite(name) => {
                let path = format!("{}/invitation", of(&name)?);
                let given = self.send(self.request(Method::POST, &path)).await?;
                PeopleAnswer::Link(serde_json::from_value(given)?)
            }
            PeopleAct::SetRoles(name, roles) => {
                let request = self.request(Method::PATCH, &of(&name)?);
                self.send(request.json(&json!({"roles": roles}))).await?;
                PeopleAnswer::Done
            }
            PeopleAct::Remove(name) => {
                self.send(self.request(Method::DELETE, &of(&name)?)).await?;
                PeopleAnswer::Done
            }
        })
    }

    fn work(&mut self, _: Reach) {}

    async fn rest(&mut self) {}

    async fn sessions(&self, limit: usize) -> anyhow::Result<Vec<ListedSession>> {
        let (size, mut rows) = (limit.clamp(1, SESSIONS_PAGE), Vec::<SessionRowDto>::new());
        let mut after = String::new();
        while rows.len() < limit {
            let path = format!("/api/sessions?limit={size}{after}");
            let (headers, page) = self.send_with_headers(self.request(Method::GET, &path)).await?;
            rows.extend(serde_json::from_value::<Vec<SessionRowDto>>(page)?);
            let next = headers.get("x-next-page").and_then(|next| next.to_str().ok());
            let next = next.map(|next| format!("&after={next}"));
            let Some(next) = next else { break };
            after = next;
        }
        let row = |row: SessionRowDto| {
            let waiting = row.waiting.and_then(|name| serde_json::from_value(name.into()).ok());
            anyhow::Ok(ListedSession {
                identity: SessionIdentity::parse(&row.session_id)?,
                title: row.title,
                version: Seq(row.version),
                waiting,
                parked: row.parked,
                archived: row.archived,
                running: row.running,
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

    async fn begin_in(&mut self, root: Root) -> anyhow::Result<()> {
        let (before, key) = (self.identity.clone(), key_of(fresh_id())?);
        self.identity = SessionIdentity::new(ChannelType::Cli, key.clone());
        let request = self.request(Method::PATCH, &self.session_path(""));
        if let Err(refused) = self.send(request.json(&json!({"root": root}))).await {
            self.identity = before;
            return Err(refused);
        }
        self.activate(key).await
    }

    async fn import_memory(&self, _: &Path) -> anyhow::Result<usize> {
        bail!("a server owns this installation; stop it, then import")
    }

    async fn retry(&self) -> anyhow::Result<()> {
        bail!("a parked session of a server is taken up again by saying something in it")
    }
}

/// The cause in the system's words, without what the layers above it said.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

struct LocalSubscription(BoxStream<'static, Signal>);

#[async_trait]
impl Subscription for LocalSubscription {
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
    let seq = Seq(envelope.seq.unwrap_or(0));
    let kind = envelope.kind.clone();
    let event = envelope.event().with_context(|| {
        format!("event {seq} of the server ({kind}) cannot be read by this version; update it")
    })?;
    Ok(Recorded { seq, at, event })
}
