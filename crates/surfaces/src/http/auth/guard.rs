//! Host and Origin, before anything else is looked at. The lists come from the operator, never from
//! the request.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use crate::http::{
    app::{BODY_BYTES_MAX, HttpSettings},
    dashboard,
    problem::Problem,
};

/// What may be asked for, and from where.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Guard {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        let lower =
            |values: &[String]| values.iter().map(|value| value.to_ascii_lowercase()).collect();
        Self { hosts: lower(&settings.hosts), origins: lower(&settings.origins) }
    }

    fn judge(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let forbidden = |kind, words: String| Err(Problem::new(StatusCode::FORBIDDEN, kind, words));
        let host = single(headers, header::HOST.as_str())?.unwrap_or_default().to_ascii_lowercase();
        if !self.hosts.contains(&host) {
            return forbidden(
                "foreign_host",
                format!(
                    "this server is not {host:?}; ask it by a name that its operator listed under hosts"
                ),
            );
        }
        let origin = single(headers, header::ORIGIN.as_str())?.map(str::to_ascii_lowercase);
        match &origin {
            _ if method == Method::GET && dashboard::is_for_diagrams(path) => {}
            Some(origin) if !self.origins.contains(origin) => {
                return forbidden(
                    "foreign_origin",
                    format!(
                        "pages of {origin:?} may not call this server; its operator lists those that may under origins"
                    ),
                );
            }
            Some(_) => {}
            None => {
                let site = single(headers, "sec-fetch-site")?.unwrap_or("none");
                let is_same = ["none", "same-origin"].contains(&site);
                if !is_same && !is_link(method, path, headers) {
                    return forbidden("cross_site", "another site may not call this server".into());
                }
            }
        }
        let length = single(headers, header::CONTENT_LENGTH.as_str())?;
        let length: Option<usize> = length.map(|length| length.parse().unwrap_or(usize::MAX));
        if length.is_some_and(|length| length > BODY_BYTES_MAX) {
            let words = format!("the body is larger than {BODY_BYTES_MAX} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words));
        }
        let has_body = length.is_some_and(|length| length > 0)
            || headers.contains_key(header::TRANSFER_ENCODING);
        let changes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
        let kind = single(headers, header::CONTENT_TYPE.as_str())?;
        let is_json = kind.is_some_and(|kind| {
            kind.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .eq_ignore_ascii_case("application/json")
        });
        if changes && (has_body || kind.is_some()) && !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "json_only",
                "send application/json",
            ));
        }
        Ok(())
    }
}

pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.judge(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let path = request.uri().path();
            tracing::warn!(kind = problem.kind, path, event = "request_refused");
            problem.into_response()
        }
    }
}

/// Whether someone followed a link of another site to a page of ours. They get the page, which is the same for everyone, and
/// it asks for what it shows by itself; a link decides nothing.
fn is_link(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let says = |name, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    let is_page = method == Method::GET && dashboard::is_page(path);
    is_page && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// A header that may stand once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let refused = || {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_header",
            format!("the header {name} must stand once, in plain text"),
        )
    };
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refused()),
        (Some(_), Some(_)) => Err(refused()),
    }
}
