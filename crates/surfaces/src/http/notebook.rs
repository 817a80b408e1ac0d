//! The notebook of a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
};
use planwright_runtime::queries::notebook::NotebookView;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::{
    app::App,
    auth::Caller,
    params::InPath,
    problem::{Problem, Problems, bad_query},
    sessions::access::seen,
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
