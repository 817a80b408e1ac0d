//! The notebook of a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::HeaderMap,
};
use planwright_domain::command::PersonCommand;
use planwright_runtime::queries::notebook::NotebookView;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    app::App,
    auth::Caller,
    body::Body,
    dto::Accepted,
    params::{InPath, Once},
    problem::{Problem, Problems, bad_query},
    sessions::access::{ask, seen},
};

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

/// Whether a session keeps a notebook.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookSwitch {
    /// Whether it does.
    pub on: bool,
}

/// Switches the notebook of a session on or off.
#[utoipa::path(put, path = "/api/sessions/{id}/notebook", params(InPath, Once), request_body = NotebookSwitch, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn switch_notebook(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(switch): Body<NotebookSwitch>,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::Notebook { on: switch.on }).await
}
