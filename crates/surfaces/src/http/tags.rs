//! What was read before is not sent again: an `ETag` for every answer of the API that is read.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use planwright_domain::digest::Digest;

/// The largest answer that gets a tag.
const TAGGED_MAX: u64 = 4 * 1024 * 1024;

/// Puts a tag on what is read, and answers 304 where the caller has it.
pub(crate) async fn tag(request: Request, next: Next) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let reads = request.method() == Method::GET && request.uri().path().starts_with("/api/");
    let response = next.run(request).await;
    let is_json =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let length = http_body::Body::size_hint(response.body()).exact();
    let small = length.is_some_and(|length| length <= TAGGED_MAX);
    // A tag of its own names what a decision is about, and not every byte: a revision also says what its reader has seen.
    let has_own = response.headers().contains_key(header::ETAG);
    if !(reads && is_json && small && response.status() == StatusCode::OK) || has_own {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::try_from(TAGGED_MAX).unwrap_or(usize::MAX)).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", Digest::of(&bytes))) {
        parts.headers.insert(header::ETAG, tag.clone());
        if known.is_some_and(|known| known == tag) {
            parts.status = StatusCode::NOT_MODIFIED;
            parts.headers.remove(header::CONTENT_LENGTH);
            return Response::from_parts(parts, Body::empty());
        }
    }
    Response::from_parts(parts, Body::from(bytes))
}
