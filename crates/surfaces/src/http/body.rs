//! Bodies: JSON, no deeper than it should be, with no field that we do not know.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use planwright_domain::digest::Digest;
use serde::de::DeserializeOwned;

use crate::http::{app::App, problem::Problem};

/// How deep a body may nest.
const DEPTH_MAX: usize = 32;

/// A body that was read.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, app)
            .await
            .map_err(|error| Problem::new(error.status(), "unreadable_body", error.body_text()))?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        check_depth(bytes)?;
        serde_json::from_slice(bytes).map(Self).map_err(|error| {
            let status = if error.is_data() {
                StatusCode::UNPROCESSABLE_ENTITY
            } else {
                StatusCode::BAD_REQUEST
            };
            Problem::new(status, "bad_body", format!("the body does not fit: {error}"))
        })
    }
}

/// Refuses JSON that nests too deep.
pub(crate) fn check_depth(bytes: &[u8]) -> Result<(), Problem> {
    if depth(bytes) <= DEPTH_MAX {
        return Ok(());
    }
    let words = format!("the body nests deeper than {DEPTH_MAX}");
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too_deep", words))
}

/// How deep JSON nests, without reading it any further.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The digest that `If-Match` names: what the person read.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Digest, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        let words = "name what you read: send If-Match with the revision's digest in double quotes";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "no_if_match", words));
    };
    let text =
        value.to_str().ok().and_then(|text| text.trim().strip_prefix('"')?.strip_suffix('"'));
    text.and_then(Digest::parse).ok_or_else(|| {
        let words = "If-Match must be one digest of 64 hexadecimal digits in double quotes";
        Problem::new(StatusCode::BAD_REQUEST, "bad_header", words)
    })
}
