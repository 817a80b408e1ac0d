//! The log of model requests of a session.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use planwright_domain::{id::Seq, refusal::Refusal};
use planwright_runtime::queries::model_request_log::{RequestRow, RequestView};
use utoipa::IntoParams;

use crate::http::{
    app::App,
    auth::Caller,
    params::InPath,
    problem::{Problem, Problems},
    sessions::access::seen,
};

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
