//! What a page needs besides the cookie: its key, which its origin keeps, and a ticket for each stream.
//!
//! A cookie goes to every port of a host. Whoever serves another port there, and so reads the cookie, has neither.

use axum::{
    extract::Query,
    http::{HeaderMap, StatusCode, Uri},
};
use planwright_domain::digest::Digest;
use planwright_runtime::commands::grants::Bearer;
use serde::Deserialize;

use crate::http::{app::App, problem::Problem};

/// The header in which a page sends its key.
pub const PAGE_KEY: &str = "planwright-page-key";
/// The paths that a ticket opens, by how they end.
const STREAMS: [&str; 3] = ["/api/ws", "/api/hints", "/stream"];

#[derive(Deserialize)]
struct TicketQuery {
    ticket: Option<String>,
}

/// Whether whoever sent this cookie has its page's key as well, or a ticket for the stream that they ask for.
pub(super) async fn check(
    app: &App,
    bearer: &Bearer,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Problem> {
    let digest = |secret: &str| Digest::of(secret.trim().as_bytes());
    let sent = headers.get(PAGE_KEY).and_then(|value| value.to_str().ok()).map(digest);
    if sent.is_some() && sent == bearer.page_key {
        return Ok(());
    }
    let is_stream = STREAMS.iter().any(|end| uri.path().ends_with(end));
    let query = Query::<TicketQuery>::try_from_uri(uri).ok();
    if let Some(ticket) = query.and_then(|Query(query)| query.ticket).filter(|_| is_stream)
        && app.access.take_ticket(digest(&ticket), app.queries.now()).await? == Some(bearer.id)
    {
        return Ok(());
    }
    let words =
        "the cookie alone opens nothing; log in at the dashboard of this server, on this page";
    Err(Problem::new(StatusCode::UNAUTHORIZED, "no_page_key", words))
}
