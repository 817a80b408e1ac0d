//! Whether it is well, and in figures.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Query, Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use planwright_domain::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    app::App,
    problem::{Problem, Problems, bad_query},
};

/// That it is there.
#[derive(Debug, Serialize, ToSchema)]
pub struct Well {
    /// Always `well`.
    pub status: &'static str,
    /// The version of the program.
    pub version: &'static str,
}

/// How it is, and what it depends on.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready {
    /// `well`, or `degraded` while a part is in trouble. Work is taken either way.
    pub status: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// What it depends on: `journal` and `model`, and in a cluster `engine`, `registration` and `bus`. A part of which nothing
    /// is known now is left out.
    pub parts: Vec<PartHealth>,
    /// What does not work as it should, in sentences.
    pub degraded: Vec<String>,
}

/// How one part is.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartHealth {
    /// Which one.
    pub name: &'static str,
    /// What is wrong with it, in a sentence; null while it is well.
    pub trouble: Option<String>,
}

/// Whether the process is there.
#[utoipa::path(get, path = "/health", security(()), responses((status = 200, body = Well), Problems))]
pub(crate) async fn health() -> Json<Well> {
    Json(Well { status: "well", version: env!("CARGO_PKG_VERSION") })
}

/// Whether it can take work: the journal answers, and it was not told to stop. What else it depends on may be in trouble
/// meanwhile; a balancer that looks at the code alone does not take every node away for that.
#[utoipa::path(get, path = "/ready", security(()), responses((status = 200, body = Ready), Problems))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Ready>, Problem> {
    if *app.leaving.borrow() {
        let words = "this server was told to stop and soon takes nothing any more; ask another node, or again once it is started";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", words));
    }
    let parts = app.queries.parts().await?;
    let degraded: Vec<_> = parts.iter().filter_map(|part| part.trouble.clone()).collect();
    Ok(Json(Ready {
        status: if degraded.is_empty() { "well" } else { "degraded" },
        version: env!("CARGO_PKG_VERSION"),
        parts: parts
            .into_iter()
            .map(|part| PartHealth { name: part.name, trouble: part.trouble })
            .collect(),
        degraded,
    }))
}

/// What a server proves.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// What only a server with this token, at this address, answers to this challenge: 64 hexadecimal digits.
    pub proof: String,
}

/// A challenge.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Challenge {
    /// Something new, of 32 to 128 bytes.
    pub challenge: String,
}

/// What a server at this address whose data directory holds this token answers to a challenge. Whoever took its port after
/// its end cannot; nor whoever passes the challenge on, as their address is another.
#[must_use]
pub fn proof_of(token: Digest, url: &str, challenge: &str) -> Digest {
    Digest::of(format!("planwright proof 1\n{challenge}\n{url}\n{token}").as_bytes())
}

/// Proves that the server has the data directory that a client has: a client asks before it sends a token.
#[utoipa::path(get, path = "/api/proof", security(()), params(Challenge), responses((status = 200, body = Proof), Problems))]
pub(crate) async fn prove(
    State(app): State<Arc<App>>,
    query: Result<Query<Challenge>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Proof>, Problem> {
    let Query(Challenge { challenge }) = query.map_err(bad_query)?;
    if !(32..=128).contains(&challenge.len()) {
        let words = "a challenge has 32 to 128 bytes";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_challenge", words));
    }
    let (token, url) = app.proves.as_ref().ok_or_else(|| {
        let words = "this server has no data directory to prove";
        Problem::new(StatusCode::NOT_FOUND, "nothing_to_prove", words)
    })?;
    Ok(Json(Proof { proof: proof_of(*token, url, &challenge).to_string() }))
}

/// The figures, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", responses((status = 200, content_type = "text/plain", body = String), Problems))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    match app.queries.planning().await {
        Ok(many) => metrics::gauge!("plan.mode.active.sessions").set(many as f64),
        Err(error) => tracing::warn!(%error, event = "figures_not_read"),
    }
    match &app.figures {
        Some(figures) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], figures.render())
            .into_response(),
        None => Problem::new(StatusCode::NOT_FOUND, "no_figures", "this server records no figures")
            .into_response(),
    }
}

/// The description of this API.
#[utoipa::path(get, path = "/api/openapi.json", responses((status = 200, body = Object), Problems))]
pub(crate) async fn description(Extension(described): Extension<Description>) -> Json<Value> {
    Json((*described.0).clone())
}

/// The description of the API, made once.
#[derive(Clone)]
pub(crate) struct Description(pub(crate) Arc<Value>);

/// Counts requests and how they ended.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let begun = tokio::time::Instant::now();
    let response = next.run(request).await;
    let class = match response.status().as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    };
    metrics::counter!("http.requests.count", "status" => class).increment(1);
    metrics::histogram!("http.requests.seconds").record(begun.elapsed().as_secs_f64());
    response
}
