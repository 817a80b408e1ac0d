//! What is remembered in a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::HeaderMap,
};
use planwright_domain::{
    command::PersonCommand, id::MemoryId, memory::MemoryCommand, refusal::Refusal,
};
use planwright_runtime::{ports::journal::Answer, queries::memory::MemoryView};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::http::{
    app::App,
    auth::Caller,
    body::Body,
    dto::Accepted,
    params::{InPath, Once},
    problem::{Problem, Problems, bad_query},
    sessions::access::{ask, seen},
};

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

/// Other words for what is remembered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWords {
    /// The words.
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

/// Says something that is remembered in other words; what is known everywhere is promoted anew.
#[utoipa::path(patch, path = "/api/sessions/{id}/memory/{item}", params(InPath, ByItem, Once), request_body = NewWords, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn change_memory(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    headers: HeaderMap,
    Body(new): Body<NewWords>,
) -> Result<Json<Accepted>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let item = item_id(&item)?;
    let found = app.queries.remembered(&identity, &item.to_string()).await?;
    let own = found.filter(|item| item.scope.session().is_some());
    let item = own.ok_or_else(|| Problem::from(Refusal::NotThere { what: "memory".into() }))?;
    let change = MemoryCommand::Change { id: item.id, text: new.text };
    ask(&app, &caller, &id, &headers, PersonCommand::Memory(change)).await
}

fn item_id(text: &str) -> Result<MemoryId, Problem> {
    let missing = || Problem::from(Refusal::NotThere { what: "memory".into() });
    text.parse::<Uuid>().map(MemoryId).map_err(|_| missing())
}
