//! Sessions and what is said in them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderName, StatusCode},
};
use planwright_domain::{
    command::{LifeCommand, PersonCommand},
    digest::Digest,
    id::Seq,
    identity::{ConversationKey, Root},
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::journal::{SessionPage, SessionQuery},
    reply_text::text_of,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

pub(crate) mod access;
pub mod pointers;

use crate::http::{
    app::App,
    auth::Caller,
    body::Body,
    dto::{Accepted, SessionDto, SessionRowDto},
    pages::{ROWS, ROWS_MAX, next_page, page_asked},
    params::{InPath, Once},
    problem::bad_query,
    problem::{Problem, Problems},
    sessions::access::{ask, handle_line, seen},
    streams::envelope::Envelope,
};

/// The longest text that is searched for.
const SEARCH_BYTES_MAX: usize = 200;

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
    /// Those after this place: `x-next-page` of the page before.
    pub after: Option<String>,
    /// Only those with these words, the last of them by its beginning, all in their title and key, in one message or answer, or
    /// in a revision of a plan; a second after it was said.
    #[param(max_length = 200)]
    pub search: Option<String>,
}

/// A page of a list, with what its headers say.
type Listed = (HeaderMap, Json<Vec<SessionRowDto>>);

/// The caller's sessions, newest first, a page at a time. `x-total-count` says how many there are on all pages, up to 1,000;
/// `x-next-page` says where the next page begins, if there is one.
#[utoipa::path(get, path = "/api/sessions", params(Rows), responses((status = 200, body = [SessionRowDto], headers(("x-total-count" = u64, description = "how many sessions there are on all pages; 1000 for as many or more"), ("x-next-page" = Option<String>, description = "what `after` of the next page is; none on the last"))), Problems))]
pub(crate) async fn list_sessions(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Rows>, axum::extract::rejection::QueryRejection>,
) -> Result<Listed, Problem> {
    let Query(wanted) = query.map_err(bad_query)?;
    let (limit, after) = page_asked(wanted.limit.unwrap_or(ROWS), wanted.after.as_deref())?;
    let text = wanted.search.unwrap_or_default().trim().to_owned();
    if text.len() > SEARCH_BYTES_MAX {
        let words = format!("search is at most {SEARCH_BYTES_MAX} bytes");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", words));
    }
    let owner = Some(caller.person.owner);
    let query = SessionQuery { owner, waiting: false, text, after, limit };
    let page = app.queries.session_page(&query).await?;
    Ok(listed(&caller, page))
}

fn listed(caller: &Caller, page: SessionPage) -> Listed {
    let mut headers = next_page(page.next);
    headers.insert(TOTAL, page.total.into());
    let rows = page.rows.into_iter().map(|row| SessionRowDto::of(caller, row)).collect();
    (headers, Json(rows))
}

/// The header that says how many rows there are on all pages of a list.
const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

/// Which of the sessions that wait.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitingRows {
    /// At most so many; 500, if it is not said.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Those after this place: `x-next-page` of the page before.
    pub after: Option<String>,
}

/// The sessions that wait for a person, newest first: the caller's own, and everyone's if the caller may decide. The
/// headers are those of `/api/sessions`.
#[utoipa::path(get, path = "/api/approvals", params(WaitingRows), responses((status = 200, description = "A page of the sessions that wait", body = [SessionRowDto], headers(("x-total-count" = u64, description = "how many wait on all pages; 1000 for as many or more"), ("x-next-page" = Option<String>, description = "what `after` of the next page is; none on the last"))), Problems))]
pub(crate) async fn list_approvals(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<WaitingRows>, axum::extract::rejection::QueryRejection>,
) -> Result<Listed, Problem> {
    let Query(wanted) = query.map_err(bad_query)?;
    let (limit, after) = page_asked(wanted.limit.unwrap_or(ROWS_MAX), wanted.after.as_deref())?;
    let page = app.queries.approvals(&caller.person, after, limit).await?;
    Ok(listed(&caller, page))
}

/// Names a new session of the caller's channel. It exists once something is said in it.
#[utoipa::path(post, path = "/api/sessions", request_body = Option<NewSession>, responses((status = 201, body = SessionDto), Problems))]
pub(crate) async fn create_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(wish): Body<NewSession>,
) -> Result<(StatusCode, Json<SessionDto>), Problem> {
    let key = wish.key.map_or_else(|| app.commands.new_key(), |key| ConversationKey::new(&key));
    let key = key.map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", error.to_string())
    })?;
    let identity = caller.own_session(caller.channel, key);
    let view = app.queries.status(&identity).await?;
    Ok((StatusCode::CREATED, Json(SessionDto::of(caller.name_of(&identity), view))))
}

/// Where a session stands.
#[utoipa::path(get, path = "/api/sessions/{id}", params(InPath), responses((status = 200, body = SessionDto), Problems))]
pub(crate) async fn get_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let view = app.queries.status(&identity).await?;
    Ok(Json(SessionDto::of(caller.name_of(&identity), view)))
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
    Ok(Json(handle_line(&app, &caller, &headers, identity, transport, line.line).await?))
}

/// What a line came to, in words.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineAnswer {
    /// The words, as a terminal shows them; empty for a message, which a turn answers.
    pub text: String,
    /// The session that the caller talks in from here on, if the line moved them to another.
    pub moved_to: Option<String>,
}

/// Does what a line says, and answers in the words that a terminal shows. What is refused is a problem.
#[utoipa::path(post, path = "/api/sessions/{id}/lines/text", params(InPath, Once), request_body = NewLine, responses((status = 200, body = LineAnswer), Problems))]
pub(crate) async fn say_line_in_words(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(line): Body<NewLine>,
) -> Result<Json<LineAnswer>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let (id, person) = (caller.command_id(&app, &headers)?, caller.person.clone());
    let transport = Some(caller.own_chat());
    let reply = app
        .commands
        .handle_line(Spoken { identity, transport, person, id, line: line.line })
        .await?;
    let moved_to = match &reply {
        Reply::Refused(refusal) => return Err(refusal.clone().into()),
        Reply::Unreadable(words) => {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unreadable", words));
        }
        Reply::Moved { session, .. } => Some(session.clone()),
        Reply::Accepted { .. }
        | Reply::Sessions(_)
        | Reply::Work(_)
        | Reply::Memory(_)
        | Reply::Notebook(_)
        | Reply::Status(_)
        | Reply::Revision(_)
        | Reply::Diff(_)
        | Reply::Plans(_)
        | Reply::Comments(_)
        | Reply::Nothing(_)
        | Reply::Help => None,
    };
    Ok(Json(LineAnswer { text: text_of(&reply).plain(), moved_to }))
}

/// What a session is called, whether it was put away, and where it works.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// The title.
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// Whether it is put away.
    pub archived: Option<bool>,
    /// The directory that it works in, one of `roots` of `/api/me`: only for a session that has not begun.
    #[schema(min_length = 1)]
    pub root: Option<String>,
}

/// Names a session, puts it away, brings it back, or begins it in a directory.
#[utoipa::path(patch, path = "/api/sessions/{id}", params(InPath, Once), request_body = SessionChange, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn change_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(change): Body<SessionChange>,
) -> Result<Json<Accepted>, Problem> {
    let command = match (change.title, change.archived, change.root) {
        (Some(title), None, None) => LifeCommand::Rename { title },
        (None, Some(true), None) => LifeCommand::Archive,
        (None, Some(false), None) => LifeCommand::Restore,
        (None, None, Some(root)) => LifeCommand::Open { root: Root(root) },
        (_, _, _) => {
            let words = "change one thing at a time: title, archived, or root";
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
    let events = app.queries.events(&identity, Seq(page.after.min(i64::MAX as u64)), limit).await?;
    let name = caller.name_of(&identity);
    Ok(Json(events.iter().map(|recorded| Envelope::of(&name, recorded)).collect()))
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
    let text = app.queries.output(&identity, digest).await?.ok_or_else(|| {
        let words = format!("{id} keeps no output {digest}; short outputs stand in its events");
        Problem::new(StatusCode::NOT_FOUND, "no_output", words)
    })?;
    Ok(Json(KeptOutput { text }))
}

/// Where a session stands, in the form that a terminal draws.
#[utoipa::path(get, path = "/api/sessions/{id}/status", params(InPath), responses((status = 200, body = Object), Problems))]
pub(crate) async fn get_status(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let view = app.queries.status(&seen(&app, &caller, &id).await?).await?;
    Ok(Json(serde_json::to_value(view).unwrap_or_default()))
}
