//! Foreign agents over HTTP: a place for each window, and the MCP server behind the token of that place.
//!
//! A place is a session, and has one token at a time. Whoever takes a place gets a new one, and the old one ends: so
//! two windows never work on one plan, whatever either believes.

use std::sync::Arc;

use axum::{
    Json,
    body::Body as HttpBody,
    extract::{Request, State},
    http::StatusCode,
    response::{Response, sse::Event},
};
use futures_util::stream;
use planwright_domain::{
    actor::Standing,
    id::GrantId,
    identity::{ChannelType, ConversationKey, Root, SessionKey},
    plan::Strategy,
    refusal::Refusal,
    time::Time,
    tools::ToolSpec,
};
use planwright_runtime::{
    commands::{
        agents::{Held, Seat, reattached},
        grants::{Given, Wanted},
    },
    ports::{access::AgentGrant, signal::Subscription},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) mod presence;

use crate::http::{
    agents::presence::Presence,
    app::{App, BODY_BYTES_MAX},
    auth::{AgentCaller, Caller},
    body::{Body, check_depth},
    problem::{Problem, Problems, unread_body},
    streams::sse::sse,
};
use crate::mcp::Planner;

/// The longest name of a project's root.
const ROOT_BYTES_MAX: usize = 4_096;
/// How long the token of a place is kept in which nothing is left to do.
const IDLE_MICROS: i64 = 3_600 * 1_000_000;

/// A wish for a place.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PlaceWish {
    /// The project that the agent works in: the path of its root.
    #[schema(max_length = 4096)]
    pub root: String,
    /// The session, by its key; without it, the only one of this project with unfinished work and nobody there, else a
    /// new one.
    #[serde(default)]
    #[schema(pattern = "^[a-zA-Z0-9_-]{8,64}$")]
    pub key: Option<String>,
    /// The plan work with which a new session begins: document or build. It is the person who says so.
    #[serde(default)]
    pub plan: Option<String>,
    /// Whether it may only look.
    #[serde(default)]
    pub read_only: bool,
    /// Whether every tool is told of, whatever the state, for clients that never look again.
    #[serde(default)]
    pub always: bool,
    /// What the agent is called in lists.
    #[serde(default)]
    #[schema(max_length = 80)]
    pub agent: Option<String>,
}

/// A place.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The session, as channel:key.
    pub session_id: String,
    /// The token of this place; it opens `/mcp` and nothing else, and it never decides.
    pub token: String,
    /// Its name in lists.
    pub id: Uuid,
    /// Whether work that was left unfinished is taken up.
    pub taken_up: bool,
    /// Where people find it.
    pub url: String,
}

/// Gives a foreign agent a place: a session of its own, with a token of its own.
#[utoipa::path(post, path = "/api/agents", request_body = PlaceWish, responses((status = 201, body = Place), Problems))]
pub(crate) async fn take_place(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(wish): Body<PlaceWish>,
) -> Result<(StatusCode, Json<Place>), Problem> {
    if wish.root.is_empty() || wish.root.len() > ROOT_BYTES_MAX {
        let words = "say which project it works in: the path of its root";
        return Err(unprocessable("bad_root", words));
    }
    let plan = strategy(wish.plan.as_deref())?;
    let _one_at_a_time = app.agents.giving.lock().await;
    let now = app.queries.now();
    let held = held_places(&app, &caller, now).await?;
    let named = wish.key.as_deref().map(ConversationKey::new).transpose();
    let named = named.map_err(|error| unprocessable("bad_key", &error.to_string()))?;
    let found = match named {
        Some(key) => Some(caller.own_session(ChannelType::Mcp, key)),
        None if app.settings.agent_grace.is_none() => None,
        None => reattached(held.iter().map(|(_, held)| held), &wish.root).cloned(),
    };
    if let Some(session) = &found {
        check_free(&app, &held, session, &wish.root).await?;
    }
    let mut taken_up = false;
    for (grant, held) in &held {
        if Some(&held.session) == found.as_ref() {
            taken_up |= held.is_unfinished;
            app.accounts.end_place(*grant, caller.person.id.clone()).await?;
        }
    }
    let session = match found {
        Some(identity) => identity,
        None => {
            let words = "no new key could be made";
            let key = app
                .commands
                .new_key()
                .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no_key", words))?;
            caller.own_session(ChannelType::Mcp, key)
        }
    };
    let name = wish.agent.unwrap_or_else(|| "an agent".into());
    let agent = AgentGrant {
        session: session.clone(),
        root: wish.root,
        plan,
        read_only: wish.read_only,
        always: wish.always,
    };
    let person = caller.person.id.clone();
    let wanted = Wanted {
        agent: Some(agent),
        ..Wanted::new(&name, person, Standing::Speaks, ChannelType::Mcp)
    };
    let Given { id, secret: token } = app.accounts.give(wanted).await?;
    app.agents.seat(id);
    let url = app.settings.url.clone();
    let place = Place { session_id: caller.name_of(&session), token, id: id.0, taken_up, url };
    Ok((StatusCode::CREATED, Json(place)))
}

fn unprocessable(kind: &str, words: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, kind, words)
}

/// The plan work with which a session begins, as its person chose.
fn strategy(named: Option<&str>) -> Result<Option<Strategy>, Problem> {
    match named {
        None => Ok(None),
        Some("document") => Ok(Some(Strategy::Document)),
        Some("build") => Ok(Some(Strategy::Build)),
        Some("collect") => {
            Err(unprocessable("nothing_to_collect", &Refusal::NothingToCollect.to_string()))
        }
        Some(_) => Err(unprocessable("bad_strategy", "plan work is document or build")),
    }
}

/// The places that this person's agents hold, by token. One that is idle and has nothing left to do is taken back.
async fn held_places(
    app: &App,
    caller: &Caller,
    now: Time,
) -> Result<Vec<(GrantId, Held)>, Problem> {
    let mut held = Vec::new();
    for grant in app.accounts.bearers().await? {
        let Some(agent) = grant.agent.clone().filter(|_| grant.person == caller.person.id) else {
            continue;
        };
        let session = app.queries.session(&agent.session).await?;
        let is_there = app.agents.is_there(grant.id);
        let held_here = Held::new(&session, &agent, is_there);
        if !is_there && !held_here.is_unfinished && grant.created.plus_micros(IDLE_MICROS) < now {
            app.accounts.end_place(grant.id, grant.person).await?;
        } else {
            held.push((grant.id, held_here));
        }
    }
    Ok(held)
}

/// Refuses a place in a session that another window works in, or that works in another directory.
async fn check_free(
    app: &App,
    held: &[(GrantId, Held)],
    session: &SessionKey,
    root: &str,
) -> Result<(), Problem> {
    if held.iter().any(|(_, held)| held.session == *session && held.is_there) {
        let words = format!(
            "another window works in {}; close it, or choose another key",
            session.identity
        );
        return Err(Problem::new(StatusCode::CONFLICT, "place_taken", words));
    }
    if let Some(other) = &app.queries.session(session).await?.root
        && other.0 != root
    {
        let words = format!(
            "{} works in {}, and plans are approved for that directory; choose another key for {root}",
            session.identity, other.0
        );
        return Err(Problem::new(StatusCode::CONFLICT, "other_project", words));
    }
    Ok(())
}

/// The seat of whoever asks with the token of a place.
fn seat(caller: &Caller, agent: &AgentGrant) -> Seat {
    Seat {
        identity: agent.session.clone(),
        person: caller.person.clone(),
        agent: caller.name.clone(),
        project: Some(Root(agent.root.clone())),
        plan: agent.plan,
        is_reader: agent.read_only,
        always: agent.always,
    }
}

/// The MCP server, over streamable HTTP: the session is the token's.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    AgentCaller { caller, place }: AgentCaller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| unread_body(&error, BODY_BYTES_MAX))?;
    check_depth(&bytes)?;
    let request = Request::from_parts(parts, HttpBody::from(bytes));
    let planner = Planner::new(
        app.commands.clone(),
        app.queries.clone(),
        seat(&caller, &place),
        caller.grant,
        app.settings.url.clone(),
    );
    // Host and Origin were looked at before anything else, by lists that the operator wrote.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(BODY_BYTES_MAX);
    let manager = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(planner.clone()), manager, config);
    Ok(service.handle(request).await.map(HttpBody::new))
}

/// While this stream is open, its agent is there. It says when the tools are others.
pub(crate) async fn live(
    State(app): State<Arc<App>>,
    AgentCaller { caller, place }: AgentCaller,
) -> Result<Response, Problem> {
    let seat = seat(&caller, &place);
    let presence = app.agents.comes(caller.grant);
    let subscription = app.queries.subscribe(&seat.identity);
    let tools = app.commands.agent_tools(&seat).await?;
    let watch = Watch { app: app.clone(), seat, presence, subscription, tools, greeted: false };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    });
    sse(&app, &caller, events)
}

struct Watch {
    app: Arc<App>,
    seat: Seat,
    #[expect(dead_code, reason = "it is held while the stream is open")]
    presence: Presence,
    subscription: Box<dyn Subscription>,
    tools: Vec<Arc<ToolSpec>>,
    greeted: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        if !self.greeted {
            self.greeted = true;
            return Some(Event::default().event("here").data("{}"));
        }
        loop {
            self.subscription.next().await?;
            let now = self.app.commands.agent_tools(&self.seat).await.ok()?;
            if now != self.tools {
                self.tools = now;
                return Some(Event::default().event("tools").data("{}"));
            }
        }
    }
}
