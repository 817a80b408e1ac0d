//! Goals, tasks, runs and schedules of a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use planwright_runtime::queries::autonomy::WorkView;

use crate::http::{
    app::App,
    auth::Caller,
    params::InPath,
    problem::{Problem, Problems},
    sessions::access::seen,
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
