//! Parameters that many paths share, described once.

use axum::{
    extract::{FromRequestParts, Path},
    http::{StatusCode, request::Parts},
};
use utoipa::IntoParams;

use crate::http::problem::Problem;

/// A session in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct InPath {
    /// `channel:key` or a key of the caller's channel for a session of their own, `owner.channel:key` for another's.
    pub id: String,
}

/// A session in the path, and the number of something in it.
pub struct Numbered {
    /// As [`InPath`] has it.
    pub id: String,
    /// Its number.
    pub number: u32,
}

impl<S: Send + Sync> FromRequestParts<S> for Numbered {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let refused = |words| Problem::new(StatusCode::BAD_REQUEST, "bad_path", words);
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((id, number)) = path.map_err(|error| refused(error.body_text()))?;
        match number.parse() {
            Ok(number) => Ok(Self { id, number }),
            Err(error) => {
                Err(refused(format!("{number:?} is no number that is given here: {error}")))
            }
        }
    }
}

/// A command that may be sent again.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct Once {
    /// The same key has one effect and one answer, for seven days.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 200)]
    pub idempotency_key: Option<String>,
}

/// A decision on what was read.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct AsRead {
    /// The digest of what was read, in double quotes.
    #[param(rename = "If-Match", pattern = "^\"[0-9a-f]{64}\"$")]
    pub if_match: String,
}

/// Which chat.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct InChat {
    /// The chat's own name in the caller's channel; `terminal` for the terminals of the installation.
    #[param(min_length = 1, max_length = 120)]
    pub chat: String,
}
