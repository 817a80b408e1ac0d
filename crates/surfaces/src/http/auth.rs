//! Authentication: a bearer token or a cookie, looked up by the digest of its secret.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, StatusCode, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use planwright_domain::{
    actor::{Person, PersonId, Standing, Surface},
    digest::Digest,
    id::{CommandId, GrantId},
    identity::{ChannelType, ConversationKey, SessionIdentity, SessionKey, Transport},
};
use planwright_runtime::{commands::grants::Bearer, ports::access::AgentGrant};
use uuid::Uuid;

pub mod guard;
pub(crate) mod idempotency;
pub(crate) mod limits;
pub mod page;
pub mod people;
pub mod tokens;

use crate::http::{
    app::{App, BODY_BYTES_MAX},
    connections::{ConnectionHold, PeerConnection, hold_while_sent},
    problem::{Problem, unread_body},
};

/// The cookie that a browser gets at login.
pub(crate) const COOKIE: &str = "planwright";
/// The header by which a caller names the place that they ask from. It is a label: the kind of surface is that of the grant.
pub const SURFACE: &str = "planwright-surface";
/// The longest name of a surface.
const SURFACE_BYTES_MAX: usize = 120;
/// How many cookies of our name are looked at.
const COOKIES_MAX: usize = 8;
/// How often a stream looks whether its grant still lasts.
const GRANT_CHECK: Duration = Duration::from_millis(400);
/// The longest name of a chat.
const CHAT_BYTES_MAX: usize = 120;
/// The header that names a request, so that it has its effect once however often it is sent.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest `Idempotency-Key`.
const KEY_BYTES_MAX: usize = 200;

/// Someone who is known.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who, where, and what they may do from there.
    pub person: Person,
    /// The channel of sessions that they name by a bare key.
    pub channel: ChannelType,
    /// The grant by which they are known.
    pub grant: GrantId,
    /// The digest of the secret under which the grant is kept.
    pub secret: Digest,
    /// What they ask for, as method and path.
    pub asks: String,
    /// Whether they are a terminal that names itself.
    pub is_terminal: bool,
    /// What the bearer of the token is called.
    pub name: String,
    /// The place of a foreign agent, if the token is one's.
    pub agent: Option<AgentGrant>,
}

impl Caller {
    /// A session as the caller names it: `channel:key` or a bare key of their channel for their own, `owner.channel:key` for
    /// one of somebody else.
    pub fn session(&self, named: &str) -> Result<SessionKey, Problem> {
        let refused = |words: String| Problem::new(StatusCode::NOT_FOUND, "no_such_session", words);
        if named.contains(':') {
            return SessionKey::named(named, self.person.owner)
                .map_err(|error| refused(error.to_string()));
        }
        let key = ConversationKey::new(named).map_err(|error| refused(error.to_string()))?;
        Ok(self.own_session(self.channel, key))
    }

    /// The caller's session of this channel and key.
    #[must_use]
    pub fn own_session(&self, channel: ChannelType, key: ConversationKey) -> SessionKey {
        SessionKey::new(self.person.owner, SessionIdentity::new(channel, key))
    }

    /// The name of a session for the caller: [`Caller::session`] reads it.
    #[must_use]
    pub fn name_of(&self, session: &SessionKey) -> String {
        session.name_for(self.person.owner)
    }

    /// A chat of the caller, by its name: one of their channel, or the terminals of the installation.
    pub fn chat(&self, named: &str) -> Result<Transport, Problem> {
        if named == TERMINAL {
            return Ok(terminal_chat());
        }
        let fits = (1..=CHAT_BYTES_MAX).contains(&named.len());
        let words = format!("a chat has a name of 1 to {CHAT_BYTES_MAX} bytes");
        let refused = || Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_chat", words);
        fits.then(|| Transport::new(self.channel, named)).ok_or_else(refused)
    }

    /// The chat that the caller is: a terminal that names itself, or whoever holds this token.
    #[must_use]
    pub fn own_chat(&self) -> Transport {
        if self.is_terminal {
            terminal_chat()
        } else {
            Transport::new(self.channel, &self.grant.to_string())
        }
    }

    /// The id of a command: the same `Idempotency-Key` from the same caller at the same path names the
    /// same command.
    pub fn command_id(&self, app: &App, headers: &HeaderMap) -> Result<CommandId, Problem> {
        let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
            return Ok(app.commands.new_id().into());
        };
        let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX);
        let words = format!("an Idempotency-Key has 1 to {KEY_BYTES_MAX} plain characters");
        let key = key.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "bad_header", words))?;
        Ok(command_id(self.grant, &self.asks, key).into())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unknown)
    }
}

/// A foreign agent that asks with the token of its place.
pub struct AgentCaller {
    /// Who asks.
    pub caller: Caller,
    /// Its place.
    pub place: AgentGrant,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let place = caller.agent.clone().ok_or_else(no_place)?;
        Ok(Self { caller, place })
    }
}

fn no_place() -> Problem {
    let words =
        "this needs the token of an agent's place; planwright mcp takes one, or POST /api/agents";
    Problem::new(StatusCode::FORBIDDEN, "no_place", words)
}

/// Looks up who asks, before the body is read. The token of an agent's place opens nothing here.
pub(crate) async fn authenticate(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let admit = |caller: &Caller| match &caller.agent {
        None => Ok(()),
        Some(_) => {
            let words = "the token of an agent's place opens /mcp and nothing else; a person decides in the dashboard";
            Err(Problem::new(StatusCode::FORBIDDEN, "agents_use_mcp", words))
        }
    };
    known(&app, request, next, admit).await
}

/// The same, for what foreign agents reach: only with the token of a place, which no page has.
pub(crate) async fn authenticate_agent(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let admit = |caller: &Caller| match &caller.agent {
        Some(_) if caller.channel == ChannelType::Api => Ok(()),
        Some(_) | None => Err(no_place()),
    };
    known(&app, request, next, admit).await
}

async fn known(
    app: &App,
    request: Request,
    next: Next,
    admit: impl Fn(&Caller) -> Result<(), Problem>,
) -> Response {
    let asks = format!("{} {}", request.method(), request.uri().path());
    let caller = identify(app, request.headers(), request.uri(), asks.clone()).await;
    let caller = caller.and_then(|caller| admit(&caller).map(|()| caller));
    match caller {
        Ok(caller) => {
            if let Err(problem) = app.limits.asks(caller.grant) {
                return problem.into_response();
            }
            let key = request.headers().get(IDEMPOTENCY_KEY);
            let key = key.map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
            let key = key.map(|key| command_id(caller.grant, &asks, &key));
            // The connection is held once the whole request is there: who sends slowly keeps nothing.
            let (parts, body) = request.into_parts();
            let body = match to_bytes(body, BODY_BYTES_MAX).await {
                Ok(body) => body,
                Err(error) => return unread_body(&error, BODY_BYTES_MAX).into_response(),
            };
            if let Some(key) = key
                && let Err(problem) = app.keys.check(key, &body)
            {
                return problem.into_response();
            }
            let mut request = Request::from_parts(parts, Body::from(body));
            let hold = request.extensions().get::<PeerConnection>().map(PeerConnection::hold);
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            if let (Some(key), 400 | 413 | 415 | 422 | 428 | 429) =
                (key, response.status().as_u16())
            {
                app.keys.forget(key);
            }
            match hold {
                Some(hold) => hold_while_sent(response, hold),
                None => response,
            }
        }
        Err(problem) => {
            tracing::warn!(kind = problem.kind, asks, event = "caller_refused");
            problem.into_response()
        }
    }
}

async fn identify(
    app: &App,
    headers: &HeaderMap,
    uri: &Uri,
    asks: String,
) -> Result<Caller, Problem> {
    let (secrets, channel) = secrets(headers);
    let (mut found, mut has_ended) = (None, false);
    for secret in secrets {
        let secret = Digest::of(secret.trim().as_bytes());
        // The cookie's secret is no token, whoever came to know it, and a token is no cookie.
        let fits = |bearer: &Bearer| (channel == ChannelType::Web) == bearer.page_key.is_some();
        if let Some(bearer) = app.accounts.bearer(secret).await?.filter(fits) {
            found = Some((secret, bearer));
            break;
        }
        let details = app.access.find(secret).await?;
        has_ended |= details
            .is_some_and(|details| (channel == ChannelType::Web) == details.page_key.is_some());
    }
    let (secret, bearer) = found.ok_or_else(|| if has_ended { ended() } else { unknown() })?;
    if channel == ChannelType::Web {
        page::check(app, &bearer, headers, uri).await?;
    }
    let named = headers.get(SURFACE).and_then(|value| value.to_str().ok());
    let named = named.filter(|name| channel == ChannelType::Api && name.len() <= SURFACE_BYTES_MAX);
    let is_terminal = named.is_some();
    let surface = surface(&bearer, named);
    let Bearer { id, name, agent, person, standing, authenticated, .. } = bearer;
    let person = app.commands.person(&person, surface, standing, authenticated).await?;
    Ok(Caller { person, channel, grant: id, secret, asks, is_terminal, name, agent })
}

/// The secrets that came with a request, and how: a bearer token, or cookies.
fn secrets(headers: &HeaderMap) -> (Vec<&str>, ChannelType) {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    match bearer {
        Some(secret) => (vec![secret], ChannelType::Api),
        None => (cookies(headers), ChannelType::Web),
    }
}

/// Where a bearer stands: the kind of surface that their grant was given to, and what they call the place.
fn surface(bearer: &Bearer, named: Option<&str>) -> Surface {
    let kind = bearer.surface.name();
    let label = named.map(|named| named.strip_prefix(kind).unwrap_or(named).trim());
    match label.filter(|label| !label.is_empty()) {
        Some(label) => Surface(format!("{kind} {label}")),
        None => Surface(format!("{kind} {}", bearer.id)),
    }
}

/// Ends when the caller's grant does: taken back, logged out, or over. A stream ends with it. It ends also when the caller may
/// do something else than when it began, as that may be what it shows: whoever asks for it again gets what they may see now.
pub(crate) async fn grant_ends(app: Arc<App>, secret: Digest, standing: Standing) {
    loop {
        tokio::time::sleep(GRANT_CHECK).await;
        match app.accounts.bearer(secret).await {
            Ok(Some(bearer)) if bearer.standing == standing => {}
            Ok(_) => return,
            // What cannot be looked up now is looked up again; nothing can be read then either.
            Err(_) => {}
        }
    }
}

/// Where somebody tries to log in from, and what they bring.
pub(crate) struct Tries {
    from: IpAddr,
    /// Whose token or login they have.
    known: Option<PersonId>,
    connection: Option<PeerConnection>,
}

impl FromRequestParts<Arc<App>> for Tries {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let peer = PeerConnection::peer_of(&parts.extensions);
        let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back();
        let forwarded = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        let from = match forwarded.and_then(|last| last.trim().parse::<IpAddr>().ok()) {
            Some(address) if app.settings.is_proxy(peer) => address.to_canonical(),
            Some(_) | None => peer,
        };
        let (secrets, _) = secrets(&parts.headers);
        let mut known = None;
        for secret in secrets {
            let bearer = app.accounts.bearer(Digest::of(secret.trim().as_bytes())).await?;
            let bearer = bearer.filter(|bearer| bearer.agent.is_none());
            known = known.or(bearer.map(|bearer| bearer.person));
        }
        let connection = parts.extensions.get::<PeerConnection>().cloned();
        Ok(Self { from, known, connection })
    }
}

impl Tries {
    /// Whether they may try now. If so, they are not cut off before they have an answer.
    pub(crate) fn may_try(
        &self,
        app: &App,
        account: Option<&PersonId>,
    ) -> Result<Option<ConnectionHold>, Problem> {
        app.limits.login(self.from, self.known.as_ref(), account)?;
        Ok(self.connection.as_ref().map(PeerConnection::hold))
    }
}

/// The grant of a token that has not ended. The token of an agent's place is none, nor is the secret of a browser's cookie:
/// every port of the host is sent that one. Only wrong ones count as tries: nobody finds a right one by trying.
pub(crate) async fn granted(app: &App, tries: &Tries, token: &str) -> Result<Bearer, Problem> {
    let bearer = app.accounts.bearer(Digest::of(token.trim().as_bytes())).await?;
    let fits = |bearer: &Bearer| bearer.agent.is_none() && bearer.page_key.is_none();
    if let Some(bearer) = bearer.filter(fits) {
        app.limits.asks(bearer.id)?;
        return Ok(bearer);
    }
    tries.may_try(app, None)?;
    let words = "this token is not one that was given out, or it has ended; look into the file named token in the data directory";
    Err(Problem::new(StatusCode::UNAUTHORIZED, "wrong_token", words))
}

/// The secrets in cookies of our name, at most a few: another port of this host may have set one as well.
pub(crate) fn cookies(headers: &HeaderMap) -> Vec<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, secret)| secret).take(COOKIES_MAX).collect()
}

fn ended() -> Problem {
    let words = "this token has ended, with its time, its account or its passphrase; log in again";
    Problem::new(StatusCode::UNAUTHORIZED, "expired", words)
}

fn unknown() -> Problem {
    let words = "say who you are: send the token as Authorization: Bearer, or log in with the passphrase at /api/login";
    Problem::new(StatusCode::UNAUTHORIZED, "unknown_caller", words)
}

/// The id of the command that this caller asks for here under this key.
#[must_use]
pub fn command_id(grant: GrantId, asks: &str, key: &str) -> Uuid {
    Uuid::new_v5(&grant.0, format!("{asks}\n{key}").as_bytes())
}

/// Whether a standing lets its bearer decide.
pub(crate) fn decides(standing: Standing) -> bool {
    standing == Standing::Decides
}

/// The chat that every terminal of an installation shares.
#[must_use]
pub fn terminal_chat() -> Transport {
    Transport::new(ChannelType::Cli, TERMINAL)
}

/// The name of the chat that every terminal of an installation shares.
pub(crate) const TERMINAL: &str = "terminal";
