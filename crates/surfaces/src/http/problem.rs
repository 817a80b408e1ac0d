//! What is wrong, as `application/problem+json`: what is the case, and what to do next.

use std::{error::Error, io, iter::successors};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use planwright_domain::{plan::refusal::PlanRefusal, refusal::Refusal};
use planwright_runtime::ports::{access::AccessError, journal::JournalError};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// What is wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of problem, for programs.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem, for people.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What is the case, and what to do next.
    pub detail: String,
    /// The digest that is current, where a decision was stale.
    #[serde(rename = "currentDigest", skip_serializing_if = "Option::is_none")]
    pub current_digest: Option<String>,
    /// After how many seconds to ask again.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

/// The answers that every path may give besides its own.
#[derive(Debug, IntoResponses)]
pub enum Problems {
    /// It is not granted, and why.
    #[response(status = "4XX", content_type = "application/problem+json")]
    Refused(#[to_schema] Problem),
    /// It cannot be answered now.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

impl Problem {
    /// A problem of this kind, in these words.
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:planwright:{kind}"),
            title: status.canonical_reason().unwrap_or("problem").into(),
            status: status.as_u16(),
            detail: detail.into(),
            current_digest: None,
            retry_after: None,
        }
    }

    /// The same, for a caller who may ask again after so many seconds.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

/// Why a body could not be read: it is larger than it may be, came too slowly, or broke off.
pub(crate) fn unread_body(error: &axum::Error, bytes_max: usize) -> Problem {
    let causes: Vec<&dyn Error> = successors(error.source(), |&error| error.source()).collect();
    if causes.iter().any(|cause| cause.is::<http_body_util::LengthLimitError>()) {
        let words = format!("the body is larger than {bytes_max} bytes");
        return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words);
    }
    let is_late = |cause: &io::Error| cause.kind() == io::ErrorKind::TimedOut;
    if causes.iter().filter_map(|cause| cause.downcast_ref()).any(is_late) {
        let words = "the body came too slowly; send it again";
        return Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", words);
    }
    Problem::new(StatusCode::BAD_REQUEST, "broken_body", "the body broke off; send it again")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        match status {
            StatusCode::UNAUTHORIZED => {
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let seconds = HeaderValue::from(self.retry_after.unwrap_or(1));
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
            }
            _ => {}
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Plan(refusal) => status_of(refusal),
            Refusal::EmptyMessage | Refusal::MessageTooLong { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Refusal::QueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refusal::NoSuchAsk => StatusCode::PRECONDITION_FAILED,
            Refusal::NoPattern => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::AskExpired | Refusal::NoPlanToGrantTo => StatusCode::CONFLICT,
            Refusal::LegacyKeyIsNotNew { .. }
            | Refusal::NoSuchDoubt { .. }
            | Refusal::NotThere { .. } => StatusCode::NOT_FOUND,
            Refusal::RootNotAllowed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::RootStands { .. } => StatusCode::CONFLICT,
            Refusal::SessionDeleted { .. } => StatusCode::GONE,
            Refusal::NotYours { .. } => StatusCode::FORBIDDEN,
            Refusal::OtherText => StatusCode::PRECONDITION_FAILED,
            Refusal::LimitReached(_) => StatusCode::TOO_MANY_REQUESTS,
            Refusal::NothingToRaise => StatusCode::CONFLICT,
            Refusal::NotHandedOver { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::BadRhythm { .. } | Refusal::TooOften => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::RunsGoOn { .. }
            | Refusal::NoRuns
            | Refusal::NoOpenTask
            | Refusal::AlreadyRuns { .. }
            | Refusal::RunGoesOn { .. }
            | Refusal::RunWaitsForPlan { .. }
            | Refusal::RunWaitsForDoubt { .. }
            | Refusal::TooMany { .. }
            | Refusal::AgentElsewhere { .. }
            | Refusal::NothingToCollect
            | Refusal::NotAnAgents { .. }
            | Refusal::AlreadyGlobal => StatusCode::CONFLICT,
            Refusal::NothingRunning
            | Refusal::NothingToCompact
            | Refusal::DoubtTooFresh
            | Refusal::MovedOn { .. } => StatusCode::CONFLICT,
        };
        let current = if let Refusal::Plan(PlanRefusal::StaleDecision { current, .. }) = &refusal {
            Some(current.to_string())
        } else {
            None
        };
        Self { current_digest: current, ..Self::new(status, refusal.kind(), refusal.to_string()) }
    }
}

fn status_of(refusal: &PlanRefusal) -> StatusCode {
    match refusal {
        PlanRefusal::StaleDecision { .. } => StatusCode::PRECONDITION_FAILED,
        PlanRefusal::MayNotDecide
        | PlanRefusal::NotAnApprover { .. }
        | PlanRefusal::AskAgain { .. }
        | PlanRefusal::ToolUnavailable { .. }
        | PlanRefusal::TurnOlderThanApproval => StatusCode::FORBIDDEN,
        PlanRefusal::TooLong { .. }
        | PlanRefusal::NoComments
        | PlanRefusal::EmptyPlan
        | PlanRefusal::BadArguments { .. }
        | PlanRefusal::EmptyText { .. }
        | PlanRefusal::NoSuchLine { .. }
        | PlanRefusal::NoSuchBlock { .. }
        | PlanRefusal::NotADocument { .. }
        | PlanRefusal::BadEnvelope { .. }
        | PlanRefusal::ToolUnknown { .. }
        | PlanRefusal::PriceUnknown
        | PlanRefusal::ProfileUnknown { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        PlanRefusal::WorkInactive
        | PlanRefusal::WorkAlreadyActive
        | PlanRefusal::NothingToDecide { .. }
        | PlanRefusal::NotShown { .. }
        | PlanRefusal::NoSuchRevision { .. }
        | PlanRefusal::ShownInBlocks
        | PlanRefusal::RevisionWithdrawn { .. }
        | PlanRefusal::RevisionExpired { .. }
        | PlanRefusal::AlreadyDecided { .. }
        | PlanRefusal::NothingToResume { .. }
        | PlanRefusal::DoubtsOpen { .. }
        | PlanRefusal::NothingToStop { .. }
        | PlanRefusal::Gaps { .. }
        | PlanRefusal::GoalIsSet { .. }
        | PlanRefusal::NothingNew { .. }
        | PlanRefusal::PermissionPending
        | PlanRefusal::CommentsUnanswered { .. }
        | PlanRefusal::NoSuchComment { .. }
        | PlanRefusal::CommentNotYours { .. }
        | PlanRefusal::NotThisStep { .. }
        | PlanRefusal::CannotSkip { .. }
        | PlanRefusal::StepUnderWay { .. }
        | PlanRefusal::NoSuchStep { .. }
        | PlanRefusal::ShownNotCurrent { .. } => StatusCode::CONFLICT,
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        tracing::error!(%error, event = "journal_failed");
        if error.is_newer() {
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, "newer", error.to_string());
        }
        if error.is_corrupt() {
            return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "corrupt", error.to_string());
        }
        if let JournalError::Format(_) = error {
            let detail = format!("nothing was stored: {error}");
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_stored", detail);
        }
        let detail = "the journal cannot answer now, so it is not known whether this was taken; ask again with the same Idempotency-Key, and it is taken once";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal_failed", detail)
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let status = match &error {
            AccessError::Refused(_) => StatusCode::CONFLICT,
            AccessError::Unreachable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, "access", error.to_string())
    }
}

pub(crate) async fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no_such_path",
        "there is nothing here; /api/openapi.json lists what there is",
    )
}

pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        "this path does not take this method; /api/openapi.json lists what it takes",
    )
}

pub(crate) fn bad_query(error: axum::extract::rejection::QueryRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_query", error.body_text())
}
