//! Sessions and what is said in them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
};
use planwright_domain::{
    command::{LifeCommand, PersonCommand, SessionCommand},
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, ConversationKey, SessionIdentity, Transport},
    refusal::Refusal,
};
use planwright_runtime::{
    inbound::{Reply, Spoken},
    ports::journal::Answer,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    App,
    body::Body,
    dto::{Accepted, OwnSessionDto, SessionDto, SessionRowDto},
    envelope::Envelope,
    params::{InPath, Once},
    problem::{Problem, Problems},
    who::{Caller, decides},
    work::InChat,
};

/// How many rows one answer lists.
const ROWS_MAX: usize = 500;
/// How many rows one answer lists where nothing is said, and each is looked at.
const ROWS: usize = 100;
/// How far a list can be paged.
const OFFSET_MAX: usize = 100_000;

/// A new session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Its key: 8 to 64 letters, digits, - or _. Without one it gets one.
    #[schema(pattern = "^[a-zA-Z0-9_-]{8,64}$")]
    pub key: Option<String>,
}

/// A message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// The words.
    #[schema(min_length = 1, max_length = 262144)]
    pub text: String,
}

/// A line, as it is typed in a terminal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLine {
    /// A message, or a command that begins with `/`.
    pub line: String,
}

/// Which events.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// Those after this place.
    #[serde(default)]
    pub after: u64,
    /// At most so many.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
}

/// Which sessions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Rows {
    /// At most so many; 100, if it is not said.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Without so many of the newest.
    #[param(maximum = 100_000)]
    pub offset: Option<usize>,
}

/// The caller's sessions, newest first.
#[utoipa::path(get, path = "/api/sessions", params(Rows), responses((status = 200, body = [OwnSessionDto]), Problems))]
pub(crate) async fn list_sessions(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Rows>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<OwnSessionDto>>, Problem> {
    let Query(wanted) = query.map_err(bad_query)?;
    let (limit, offset) = (wanted.limit.unwrap_or(ROWS), wanted.offset.unwrap_or(0));
    if !(1..=ROWS_MAX).contains(&limit) || offset > OFFSET_MAX {
        let words = format!("limit is 1 to {ROWS_MAX}, offset at most {OFFSET_MAX}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", words));
    }
    let rows = app.runtime.sessions(&caller.person.id, limit + offset).await?;
    let mut listed = Vec::new();
    for row in rows.into_iter().skip(offset) {
        let session = app.runtime.session(&row.identity).await?;
        listed.push(OwnSessionDto::of(row, &session));
    }
    Ok(Json(listed))
}

/// The sessions that wait for a person, newest first: the caller's own, and everyone's if the caller may decide.
#[utoipa::path(get, path = "/api/approvals", responses((status = 200, body = [SessionRowDto]), Problems))]
pub(crate) async fn list_approvals(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<SessionRowDto>>, Problem> {
    let mut rows = app.runtime.ports.journal.waiting(ROWS_MAX).await?;
    let all = decides(caller.person.standing);
    rows.retain(|row| all || row.owner.as_ref() == Some(&caller.person.id));
    Ok(Json(rows.into_iter().map(SessionRowDto::from).collect()))
}

/// Names a new session of the caller's channel. It exists once something is said in it.
#[utoipa::path(post, path = "/api/sessions", request_body = Option<NewSession>, responses((status = 201, body = SessionDto), Problems))]
pub(crate) async fn create_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(wish): Body<NewSession>,
) -> Result<(StatusCode, Json<SessionDto>), Problem> {
    let key =
        wish.key.unwrap_or_else(|| format!("talk-{}", &Uuid::now_v7().simple().to_string()[20..]));
    let key = ConversationKey::new(&key).map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", error.to_string())
    })?;
    let identity = SessionIdentity::new(caller.channel, key);
    Ok((StatusCode::CREATED, Json(app.runtime.status(&identity).await?.into())))
}

/// Where a session stands.
#[utoipa::path(get, path = "/api/sessions/{id}", params(InPath), responses((status = 200, body = SessionDto), Problems))]
pub(crate) async fn get_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    Ok(Json(app.runtime.status(&identity).await?.into()))
}

/// Says something to the agent.
#[utoipa::path(post, path = "/api/sessions/{id}/messages", params(InPath, Once), request_body = NewMessage, responses((status = 202, body = Accepted), Problems))]
pub(crate) async fn send_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(message): Body<NewMessage>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let accepted =
        ask(&app, &caller, &id, &headers, PersonCommand::Say { text: message.text }).await?;
    Ok((StatusCode::ACCEPTED, accepted))
}

/// Does what a line says, as a terminal would: a message, or a command that begins with `/`.
#[utoipa::path(post, path = "/api/sessions/{id}/lines", params(InPath, Once), request_body = NewLine, responses((status = 200, body = Object, description = "What the line came to; a refusal is one of them"), Problems))]
pub(crate) async fn say_line(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(line): Body<NewLine>,
) -> Result<Json<Value>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let transport = caller.own_chat();
    Ok(Json(hear(&app, &caller, &headers, identity, transport, line.line).await?))
}

/// Does what a line says in this session, from this chat.
pub(crate) async fn hear(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    identity: SessionIdentity,
    transport: Transport,
    line: String,
) -> Result<Value, Problem> {
    let (id, person) = (caller.command_id(headers)?, caller.person.clone());
    let spoken = Spoken { identity, transport: Some(transport), person, id, line };
    let reply = app.runtime.hear(spoken).await?;
    // A terminal says a refusal in its own way; a page shows it like every other.
    if let (Reply::Refused(refusal), ChannelType::Web) = (&reply, caller.channel) {
        return Err(refusal.clone().into());
    }
    Ok(serde_json::to_value(reply).unwrap_or_default())
}

/// The session that the caller names, if they may see it.
pub(crate) async fn seen(
    app: &App,
    caller: &Caller,
    named: &str,
) -> Result<SessionIdentity, Problem> {
    let identity = caller.session(named)?;
    if !app.runtime.sees(&caller.person, &identity).await? {
        return Err(no_such_session(&identity));
    }
    Ok(identity)
}

fn no_such_session(identity: &SessionIdentity) -> Problem {
    let words = format!("you have no session {identity}; /api/sessions lists yours");
    Problem::new(StatusCode::NOT_FOUND, "no_such_session", words)
}

/// What a session is called, and whether it was put away.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// The title.
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// Whether it is put away.
    pub archived: Option<bool>,
}

/// Names a session, puts it away, or brings it back.
#[utoipa::path(patch, path = "/api/sessions/{id}", params(InPath, Once), request_body = SessionChange, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn change_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(change): Body<SessionChange>,
) -> Result<Json<Accepted>, Problem> {
    let command = match (change.title, change.archived) {
        (Some(title), None) => LifeCommand::Rename { title },
        (None, Some(true)) => LifeCommand::Archive,
        (None, Some(false)) => LifeCommand::Restore,
        (Some(_), Some(_)) | (None, None) => {
            let words = "change one thing at a time: title, or archived";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_change", words));
        }
    };
    ask(&app, &caller, &id, &headers, PersonCommand::Life(command)).await
}

/// Deletes a session: everything in it ends, what it remembers is forgotten, its key is never used again.
#[utoipa::path(delete, path = "/api/sessions/{id}", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn delete_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::Life(LifeCommand::Delete)).await
}

/// Ends what the agent is doing now.
#[utoipa::path(post, path = "/api/sessions/{id}/stop", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::Stop).await
}

/// Ends everything here and starts a new view.
#[utoipa::path(post, path = "/api/sessions/{id}/reset", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn reset(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::Reset).await
}

/// What happened, oldest first.
#[utoipa::path(get, path = "/api/sessions/{id}/events", params(InPath, Page), responses((status = 200, body = [Envelope]), Problems))]
pub(crate) async fn list_events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<Envelope>>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let Query(page) = query.map_err(bad_query)?;
    let limit = page.limit.unwrap_or(ROWS_MAX);
    if !(1..=ROWS_MAX).contains(&limit) {
        let words = format!("limit is 1 to {ROWS_MAX}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", words));
    }
    let events = app
        .runtime
        .ports
        .journal
        .events(&identity, Seq(page.after.min(i64::MAX as u64)), limit)
        .await?;
    Ok(Json(events.iter().map(|recorded| Envelope::of(&identity, recorded)).collect()))
}

/// An output that was too long to be shown, whole.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct KeptOutput {
    /// All of it.
    pub text: String,
}

/// Which output.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ByDigest {
    /// The digest of its bytes, as the shortened output names it.
    #[param(pattern = "^[0-9a-f]{64}$")]
    pub digest: String,
}

/// An output of a tool call that was too long to be shown, whole.
#[utoipa::path(get, path = "/api/sessions/{id}/outputs/{digest}", params(InPath, ByDigest), responses((status = 200, body = KeptOutput), Problems))]
pub(crate) async fn get_output(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, digest)): Path<(String, String)>,
) -> Result<Json<KeptOutput>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let digest = Digest::parse(&digest).ok_or_else(|| {
        let words = "a digest is 64 hexadecimal digits";
        Problem::new(StatusCode::BAD_REQUEST, "bad_digest", words)
    })?;
    let text = app.runtime.ports.output(&identity, digest).await?.ok_or_else(|| {
        let words =
            format!("{identity} keeps no output {digest}; short outputs stand in its events");
        Problem::new(StatusCode::NOT_FOUND, "no_output", words)
    })?;
    Ok(Json(KeptOutput { text }))
}

pub(crate) fn bad_query(error: axum::extract::rejection::QueryRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_query", error.body_text())
}

/// Asks for something to happen in a session, by a person.
pub(crate) async fn ask(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    command: PersonCommand,
) -> Result<Json<Accepted>, Problem> {
    let identity = caller.session(id)?;
    let command_id: CommandId = caller.command_id(headers)?;
    let command = SessionCommand::Person(caller.person.clone(), command);
    match app.runtime.dispatch(&identity, command_id, command).await? {
        Answer::Accepted { version, .. } => {
            Ok(Json(Accepted { session_id: identity.to_string(), version: version.0 }))
        }
        // Who may not see it is not told that it is there. The decision has looked already.
        Answer::Refused(Refusal::NotYours { .. }) if !decides(caller.person.standing) => {
            Err(no_such_session(&identity))
        }
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}

/// A chat, and the conversation that is active in it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    /// The key of the conversation.
    #[schema(min_length = 1, max_length = 256)]
    pub key: Option<String>,
}

/// The conversation that this chat of the caller talks to. One that is gone is repaired first.
#[utoipa::path(get, path = "/api/pointers/{chat}", params(InChat), responses((status = 200, body = Pointer), Problems))]
pub(crate) async fn get_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
) -> Result<Json<Pointer>, Problem> {
    let transport = caller.chat(&chat)?;
    let identity = app.runtime.resolve(&caller.person.id, &transport).await?;
    Ok(Json(Pointer { key: Some(identity.key.as_str().to_owned()) }))
}

/// Lets this chat of the caller talk to another conversation of theirs, or to a new one.
#[utoipa::path(put, path = "/api/pointers/{chat}", params(InChat), request_body = Pointer, responses((status = 204), Problems))]
pub(crate) async fn move_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
    Body(pointer): Body<Pointer>,
) -> Result<StatusCode, Problem> {
    let refused = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", words);
    let key = pointer.key.ok_or_else(|| refused("name the key of a conversation".into()))?;
    let key = ConversationKey::legacy(&key).map_err(|error| refused(error.to_string()))?;
    let transport = caller.chat(&chat)?;
    app.runtime.bind(&caller.person, &transport, &key).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// The chat that every terminal of an installation shares.
#[must_use]
pub fn terminal_chat() -> Transport {
    Transport::new(ChannelType::Cli, TERMINAL)
}

/// The name of the chat that every terminal of an installation shares.
pub(crate) const TERMINAL: &str = "terminal";

/// Where a session stands, in the form that a terminal draws.
#[utoipa::path(get, path = "/api/sessions/{id}/status", params(InPath), responses((status = 200, body = Object), Problems))]
pub(crate) async fn get_status(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let view = app.runtime.status(&seen(&app, &caller, &id).await?).await?;
    Ok(Json(serde_json::to_value(view).unwrap_or_default()))
}
