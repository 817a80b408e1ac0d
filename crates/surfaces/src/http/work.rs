//! Goals, tasks, runs, schedules and what is remembered in a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
};
use planwright_domain::{
    id::{MemoryId, Seq},
    refusal::Refusal,
};
use planwright_runtime::{
    ports::journal::Answer,
    queries::autonomy::WorkView,
    queries::memory::MemoryView,
    queries::model_request_log::{RequestRow, RequestView},
    queries::notebook::NotebookView,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    access::seen,
    app::App,
    auth::Caller,
    body::Body,
    dto::Accepted,
    params::{InChat, InPath, Once},
    problem::bad_query,
    problem::{Problem, Problems},
};

/// Goals, tasks, runs and schedules of a session.
#[utoipa::path(get, path = "/api/sessions/{id}/work", params(InPath), responses((status = 200, body = Object, description = "goals, tasks, runs and schedules, each with its number"), Problems))]
pub(crate) async fn get_work(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WorkView>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let session = app.queries.session(&identity).await?;
    Ok(Json(WorkView::of(&session, app.queries.now())))
}

/// What to look for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Question {
    /// Words; without them, everything of the session and what is known everywhere.
    pub query: Option<String>,
}

/// What is remembered, and how much there is that was not looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Remembered {
    #[serde(flatten)]
    view: MemoryView,
    /// How many items the caller's other sessions remember.
    elsewhere: u64,
}

/// What is remembered in a session and everywhere, with why each item was found. Nothing of other sessions.
#[utoipa::path(get, path = "/api/sessions/{id}/memory", params(InPath, Question), responses((status = 200, body = Object, description = "the chain of scopes, the items with their traces, and how many foreign ones were blocked"), Problems))]
pub(crate) async fn get_memory(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<Question>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Remembered>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let Query(question) = query.map_err(bad_query)?;
    let text = question.query.unwrap_or_default();
    let view = app.queries.memory(&identity, &text).await?;
    let elsewhere = app.queries.elsewhere(&caller.person, &identity).await?;
    Ok(Json(Remembered { view, elsewhere }))
}

/// Which request.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ByNumber {
    /// Its number in the log.
    pub number: u64,
}

/// The requests that were made to models: what was sent, what it cost, what was left out and why.
#[utoipa::path(get, path = "/api/sessions/{id}/requests", params(InPath), responses((status = 200, body = [Object], description = "the requests, the oldest first"), Problems))]
pub(crate) async fn get_requests(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<RequestRow>>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    Ok(Json(app.queries.requests(&identity).await?))
}

/// One request, read again from the facts: all that was sent, and whether it is that byte for byte.
#[utoipa::path(get, path = "/api/sessions/{id}/requests/{number}", params(InPath, ByNumber), responses((status = 200, body = Object, description = "the request"), Problems))]
pub(crate) async fn get_request(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, number)): Path<(String, String)>,
) -> Result<Json<RequestView>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let missing = || Problem::from(Refusal::NotThere { what: "request".into() });
    let number = number.parse().map_err(|_| missing())?;
    let view = app.queries.request_at(&identity, Seq(number)).await?;
    Ok(Json(view.ok_or_else(missing)?))
}

/// A page of the archive.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ByPage {
    /// Its name, as `plan-20261115-2145`; without it, the current pages.
    pub page: Option<String>,
}

/// The notebook of a session: its planning files, and the names of those that were archived.
#[utoipa::path(get, path = "/api/sessions/{id}/notebook", params(InPath, ByPage), responses((status = 200, body = Object, description = "whether it is on, its pages, and the archive"), Problems))]
pub(crate) async fn get_notebook(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<ByPage>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<NotebookView>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let Query(ByPage { page }) = query.map_err(bad_query)?;
    Ok(Json(app.queries.notebook(&identity, page.as_deref()).await?))
}

/// Which item.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ByItem {
    /// Its id.
    pub item: Uuid,
}

/// What the person read before they made it known everywhere.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// The text, as it was shown. Another one is refused.
    #[schema(min_length = 1, max_length = 4096)]
    pub text: String,
}

/// What became known everywhere.
#[derive(Debug, Serialize, ToSchema)]
pub struct Promoted {
    /// The id it has there.
    pub item: Uuid,
}

/// Makes something known everywhere, for its owner. Only a person does this, and names the text.
#[utoipa::path(post, path = "/api/sessions/{id}/memory/{item}/promote", params(InPath, ByItem), request_body = Promotion, responses((status = 200, body = Promoted), Problems))]
pub(crate) async fn promote_memory(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    Body(promotion): Body<Promotion>,
) -> Result<Json<Promoted>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let (item, text) = (item_id(&item)?, promotion.text);
    match app.commands.promote(&caller.person, &identity, item, &text).await? {
        Ok(promoted) => Ok(Json(Promoted { item: promoted.0 })),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Forgets something of a session, or something that is known everywhere.
#[utoipa::path(delete, path = "/api/sessions/{id}/memory/{item}", params(InPath, ByItem, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn forget_memory(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let item = item_id(&item)?;
    let found = app.queries.remembered(&identity, &item.to_string()).await?;
    let missing = || Problem::from(Refusal::NotThere { what: "memory".into() });
    let found = found.ok_or_else(missing)?;
    let command = caller.command_id(&app, &headers)?;
    match app.commands.forget(&caller.person, &identity, command, &found).await? {
        Answer::Accepted { version, .. } => {
            Ok(Json(Accepted { session_id: caller.name_of(&identity), version: version.0 }))
        }
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}

fn item_id(text: &str) -> Result<MemoryId, Problem> {
    let missing = || Problem::from(Refusal::NotThere { what: "memory".into() });
    text.parse::<Uuid>().map(MemoryId).map_err(|_| missing())
}

/// Does what a line says, in the conversation that this chat talks to now. The reply names it.
#[utoipa::path(post, path = "/api/chats/{chat}/lines", params(InChat, Once), request_body = super::sessions::NewLine, responses((status = 200, body = Object, description = "What the line came to, with the session that it went to; a refusal is one of them"), Problems))]
pub(crate) async fn say_in_chat(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
    headers: HeaderMap,
    Body(line): Body<super::sessions::NewLine>,
) -> Result<Json<Value>, Problem> {
    let transport = caller.chat(&chat)?;
    let identity = app.commands.resolve(caller.person.owner, &transport).await?;
    let reply =
        super::access::handle_line(&app, &caller, &headers, identity.clone(), transport, line.line);
    let reply = reply.await?;
    Ok(Json(serde_json::json!({"sessionId": caller.name_of(&identity), "reply": reply})))
}

/// The chat talks to nothing any more: only this route goes, runs go on.
#[utoipa::path(delete, path = "/api/pointers/{chat}", params(InChat), responses((status = 204), Problems))]
pub(crate) async fn drop_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
) -> Result<StatusCode, Problem> {
    let transport = caller.chat(&chat)?;
    let unbind = planwright_domain::owner::OwnerCommand::Unbind { transport };
    app.commands.own(caller.person.owner, unbind).await??;
    Ok(StatusCode::NO_CONTENT)
}
