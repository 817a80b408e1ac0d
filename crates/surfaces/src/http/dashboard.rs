//! The dashboard: files that the build took into the program, compressed already, named by their contents.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Redirect, Response},
};

use crate::http::{app::App, problem};

/// Every file by its path; beside some of them the same one compressed, as `.br` or `.gz`.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

/// What a browser may do on our pages: nothing that does not come from here.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/// The page in which diagrams are drawn. It belongs to no site, asks nobody, and stands in our pages only.
const DIAGRAMS: &str = "/diagram.html";
const DIAGRAMS_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; \
                               base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Told where a build without Node is asked for the dashboard.
const ABSENT: &str = "<!doctype html><meta charset=utf-8><title>Planwright</title><p>This program was built without the dashboard. \
                      Run <code>npm ci --prefix web --ignore-scripts && npm run --prefix web build</code>, then build it again. The API works.";

/// What belongs to programs, and is no page.
const PROGRAMS: [&str; 6] = ["/api", "/v1", "/mcp", "/metrics", "/health", "/ready"];

/// Whether this path is drawn by the dashboard's page.
pub(crate) fn is_page(path: &str) -> bool {
    let is_in = |part: &&str| {
        path.strip_prefix(*part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !PROGRAMS.iter().any(is_in) && !is_file(path)
}

/// Whether this path is a file. The name of another owner's session has a point in it.
fn is_file(path: &str) -> bool {
    path.starts_with("/assets/") || (path.contains('.') && !path.starts_with("/s/"))
}

/// Whether this path is a script that draws diagrams. The page that runs it belongs to no site, and so asks for it as another
/// site would; it is the same for everyone.
pub(crate) fn is_for_diagrams(path: &str) -> bool {
    path.starts_with("/assets/diagram-")
}

/// A file of the dashboard, or the page that draws every other path of it. Pages have one address: what is kept for them in a
/// browser belongs to it.
pub(crate) async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api/") || ![Method::GET, Method::HEAD].contains(request.method()) {
        return problem::not_found().await.into_response();
    }
    if is_page(path)
        && let Some(host) = request.headers().get(header::HOST).and_then(|host| host.to_str().ok())
        && app.settings.other_hosts.iter().any(|other| host.eq_ignore_ascii_case(other))
    {
        let rest = request.uri().path_and_query().map_or("/", |rest| rest.as_str());
        return Redirect::temporary(&format!("{}{rest}", app.settings.url)).into_response();
    }
    let is_file = is_file(path);
    let path = if is_file { path } else { "/index.html" };
    let Some(plain) = file(path) else {
        if is_file {
            return problem::not_found().await.into_response();
        }
        return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], ABSENT).into_response();
    };
    let (body, encoding) = packed(path, plain, request.headers());
    let mut response = (StatusCode::OK, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(path)));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    // What is named by its contents never changes; the page that names it always may.
    let keep = if path.starts_with("/assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    if path == DIAGRAMS {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(DIAGRAMS_POLICY));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    } else if is_for_diagrams(path) {
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    }
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// What every answer says to browsers, where it does not say otherwise itself.
pub(crate) async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn file(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}

/// The smallest form that the browser takes.
fn packed(
    path: &str,
    plain: &'static [u8],
    headers: &HeaderMap,
) -> (&'static [u8], Option<&'static str>) {
    let takes = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let takes = takes.unwrap_or_default();
    for (name, ending) in [("br", "br"), ("gzip", "gz")] {
        let taken = takes.split(',').any(|one| one.split(';').next().unwrap_or("").trim() == name);
        if let Some(bytes) = file(&format!("{path}.{ending}")).filter(|_| taken) {
            return (bytes, Some(name));
        }
    }
    (plain, None)
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "webmanifest" | "json" => "application/json",
        _ => "application/octet-stream",
    }
}
