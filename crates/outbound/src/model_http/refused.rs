//! Who can mend a refusal of a model's server, and how long it asks us to wait.

use planwright_domain::turn::{FailureKind, ModelFailure};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::HttpSettings;

/// How much of an error's body is shown.
const ERROR_CHARS_MAX: usize = 300;

/// Words by which servers say that a request is larger than the window.
const TOO_LARGE: [&str; 9] = [
    "context_length",
    "maximum context",
    "context window",
    "prompt is too long",
    "input token count",
    "too many tokens",
    "exceeds the maximum number of tokens",
    "request_too_large",
    "exceed_context_size",
];
/// Words by which servers say that time does not help: someone has to pay, or to be let in.
const UNPAID: [&str; 4] =
    ["insufficient_quota", "billing", "credit balance is too low", "exceeded your current quota"];
/// Words by which servers say that they withhold an answer.
const WITHHELD: [&str; 4] =
    ["content_filter", "content_policy", "safety system", "prohibited_content"];
/// Words by which a failure inside a stream says that it will pass.
const PASSING: [&str; 12] = [
    "server_error",
    "api_error",
    "overloaded",
    "rate_limit",
    "timeout",
    "unavailable",
    "internal",
    "429",
    "500",
    "502",
    "503",
    "529",
];

/// Who can mend a refusal of the server.
pub(super) fn refused(settings: &HttpSettings, status: StatusCode, text: &str) -> ModelFailure {
    let told = serde_json::from_str::<Value>(text).ok();
    // Google wraps some of its errors in a list.
    let told = told.map(|told| told.get(0).cloned().unwrap_or(told));
    let words = told.as_ref().and_then(words).unwrap_or_else(|| text.trim().to_owned());
    let words: String = words.chars().take(ERROR_CHARS_MAX).collect();
    let lower = text.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    let model = &settings.model;
    let (kind, what) = match status.as_u16() {
        _ if says(&UNPAID) => (
            FailureKind::Permanent,
            format!("{model} is not paid for ({status}); an operator has to look at the account"),
        ),
        400 | 413 | 422 | 500 if says(&TOO_LARGE) => {
            (FailureKind::TooLarge, format!("{model} takes less than that at once ({status})"))
        }
        413 => (FailureKind::TooLarge, format!("{model} takes less than that at once ({status})")),
        400 | 403 | 422 if says(&WITHHELD) => {
            (FailureKind::Withheld, format!("{model} withholds its answer ({status})"))
        }
        401 => (
            FailureKind::Permanent,
            format!("{model} refuses the key ({status}); an operator has to set another"),
        ),
        400 if lower.contains("api key") => (
            FailureKind::Permanent,
            format!("{model} refuses the key ({status}); an operator has to set another"),
        ),
        403 => {
            (FailureKind::Permanent, format!("{model} may not be used with this key ({status})"))
        }
        404 => (
            FailureKind::Permanent,
            format!(
                "there is no {model} at {} ({status}); planwright models lists what is set",
                settings.base_url
            ),
        ),
        300..=399 => (
            FailureKind::Permanent,
            format!(
                "{} answers with a redirect ({status}), which is not followed; set the address itself",
                settings.base_url
            ),
        ),
        408 | 409 | 425 | 429 | 500..=599 => {
            (FailureKind::Transient, format!("{model} is busy or out of order ({status})"))
        }
        _ => (FailureKind::Permanent, format!("{model} refuses the request ({status})")),
    };
    let message = if words.is_empty() { what } else { format!("{what}: {words}") };
    ModelFailure { kind, message, retry_after_micros: told.as_ref().and_then(retry_delay) }
}

/// Who can mend a failure that a server told of inside its stream.
pub(super) fn in_stream(kind: &str, words: &str) -> ModelFailure {
    let signs = format!("{kind} {words}").to_lowercase();
    let says = |list: &[&str]| list.iter().any(|sign| signs.contains(sign));
    let kind = if says(&TOO_LARGE) {
        FailureKind::TooLarge
    } else if says(&UNPAID) {
        FailureKind::Permanent
    } else if says(&WITHHELD) {
        FailureKind::Withheld
    } else if says(&PASSING) {
        FailureKind::Transient
    } else {
        FailureKind::Permanent
    };
    let words = if words.is_empty() { "no reason given" } else { words };
    ModelFailure::new(kind, format!("the model's server broke off: {words}"))
}

/// The provider withholds an answer.
pub(super) fn withheld(why: &str) -> ModelFailure {
    let words = format!("the provider withholds the answer to this ({why}); say it in other words");
    ModelFailure::new(FailureKind::Withheld, words)
}

fn words(told: &Value) -> Option<String> {
    let error = told.get("error")?;
    let words = error.get("message").and_then(Value::as_str).or_else(|| error.as_str())?;
    Some(words.to_owned())
}

/// Google says in the body how long to wait: `"retryDelay": "23s"`.
fn retry_delay(told: &Value) -> Option<i64> {
    let details = told.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    micros(delay.trim_end_matches('s').parse::<f64>().ok()? * 1e3)
}

/// How long the server asks us to wait.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<i64> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let milliseconds =
        number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1e3))?;
    micros(milliseconds)
}

fn micros(milliseconds: f64) -> Option<i64> {
    milliseconds.is_finite().then(|| (milliseconds.max(0.0) * 1e3) as i64)
}

/// The innermost cause of a connection that was not made, in the system's words.
pub(super) fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it was silent for too long".into();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let words = innermost.to_string();
    words.split_once(" (os error").map_or(words.clone(), |(words, _)| words.to_owned())
}

/// An error with all its causes; addresses may hold secrets and are left out.
pub(super) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it was silent for too long".into();
    }
    let mut words = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push(cause.to_string());
        source = cause.source();
    }
    if words.is_empty() { "no connection".into() } else { words.join(": ") }
}
