//! The API: small, strict, described by its own handlers.
//!
//! A request passes, in this order: Host and Origin ([`guard`]), who is there ([`who`]), how often
//! they ask, and only then is its body read. What is wrong is told as `application/problem+json`.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{any, get, post},
    serve::ListenerExt as _,
};
use planwright_runtime::{
    ports::{access::Access, connection::Connection},
    runtime::Runtime,
};
use tokio::net::TcpListener;
use utoipa_axum::{router::OpenApiRouter, routes};

pub mod activity;
pub mod agents;
pub mod auth;
pub mod body;
pub mod dashboard;
pub mod description;
pub mod dto;
pub mod envelope;
pub mod guard;
pub mod health;
pub mod model;
pub mod openai;
pub mod params;
pub mod plans;
pub mod problem;
pub mod session_event;
pub mod sessions;
pub mod streams;
mod tags;
pub mod tokens;
pub mod work;

use auth::Limits;
use guard::Guard;

/// The largest body of a request.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What an operator may set of the API.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The values of `Host` that are served, each with its port.
    pub hosts: Vec<String>,
    /// The values of `Origin` that may call.
    pub origins: Vec<String>,
    /// How many requests a caller may make in a second.
    pub requests_per_second: u32,
    /// How many logins may be tried in a minute, by everyone together.
    pub logins_per_minute: u32,
    /// Whether cookies are only sent over TLS.
    pub secure_cookies: bool,
    /// Where people find the dashboard.
    pub url: String,
    /// How long after a start, or after it took its place, a foreign agent counts as there, though it was not heard
    /// of: those who were there before a restart come back within this time. None where an agent may be at another
    /// server: then nobody takes up a session without naming it.
    pub agent_grace: Option<Duration>,
}

impl HttpSettings {
    /// The settings for a server at this port of loopback.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        let hosts: Vec<_> = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .map(|host| format!("{host}:{port}"))
            .collect();
        let origins = hosts.iter().map(|host| format!("http://{host}")).collect();
        Self {
            hosts,
            origins,
            requests_per_second: 1_000,
            logins_per_minute: 10,
            secure_cookies: false,
            url: format!("http://127.0.0.1:{port}"),
            agent_grace: Some(Duration::from_secs(20)),
        }
    }
}

/// What every handler can reach.
pub struct App {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// Who may do what.
    pub access: Arc<dyn Access>,
    /// What the operator set.
    pub settings: HttpSettings,
    /// How often each caller has asked.
    pub(crate) limits: Limits,
    /// Which foreign agents are there.
    pub(crate) agents: agents::Agents,
    /// The latest events, written out once for everyone who listens.
    pub(crate) frames: streams::Frames,
    /// Which model is asked, where that can be changed.
    pub(crate) connection: Option<Arc<dyn Connection>>,
    /// The figures, if they are recorded.
    pub(crate) figures: Option<metrics_exporter_prometheus::PrometheusHandle>,
}

impl App {
    /// The API over this runtime.
    #[must_use]
    pub fn new(runtime: Arc<Runtime>, access: Arc<dyn Access>, settings: HttpSettings) -> Self {
        let limits = Limits::new(&settings);
        let agents = agents::Agents::new(settings.agent_grace);
        Self {
            runtime,
            access,
            settings,
            limits,
            agents,
            frames: streams::Frames::default(),
            connection: None,
            figures: None,
        }
    }

    /// The same, where the model that is asked can be changed.
    #[must_use]
    pub fn with_connection(self, connection: Arc<dyn Connection>) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// The same, with figures to show at `/metrics`.
    #[must_use]
    pub fn with_figures(self, figures: metrics_exporter_prometheus::PrometheusHandle) -> Self {
        Self { figures: Some(figures), ..self }
    }
}

/// The API as axum serves it.
pub fn router(app: Arc<App>) -> Router {
    let (open, guarded) = (open_routes(), guarded_routes());
    let guarded = guarded.layer(middleware::from_fn_with_state(app.clone(), auth::authenticate));
    let known = Router::new()
        .route("/v1/models", get(openai::models))
        .route("/v1/chat/completions", post(openai::complete))
        .route("/v1/responses", post(openai::respond))
        .layer(middleware::from_fn_with_state(app.clone(), auth::authenticate));
    // What a foreign agent reaches with the token of its place, and nothing else.
    let places = Router::new()
        .route("/mcp", any(agents::serve))
        .route("/mcp/live", get(agents::live))
        .layer(middleware::from_fn_with_state(app.clone(), auth::authenticate_agent));
    let (router, _) = open.merge(guarded).split_for_parts();
    let router = router.merge(known).merge(places);
    let guard = Guard::new(&app.settings);
    router
        .fallback(dashboard::serve)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
        .layer(middleware::from_fn(tags::tag))
        .layer(middleware::from_fn(dashboard::protect))
        .layer(middleware::from_fn(health::count))
        .with_state(app)
}

/// Serves the API at this listener until `stopped` ends, then lets open requests end.
///
/// Small answers leave at once: without `TCP_NODELAY` each would wait some 40 ms for a full packet.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::warn!(%error, event = "no_nodelay");
        }
    });
    axum::serve(listener, router(app)).with_graceful_shutdown(stopped).await
}

pub(crate) fn open_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(tokens::login))
        .routes(routes!(tokens::choose_passphrase))
        .routes(routes!(tokens::give_token))
}

pub(crate) fn guarded_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(health::metrics))
        .routes(routes!(health::description))
        .routes(routes!(tokens::list_tokens))
        .routes(routes!(tokens::revoke_token))
        .routes(routes!(tokens::logout))
        .routes(routes!(tokens::who_am_i))
        .routes(routes!(model::get_model, model::choose_model))
        .routes(routes!(model::try_model))
        .routes(routes!(model::found_models))
        .routes(routes!(agents::take_place))
        .routes(routes!(activity::stream_hints))
        .routes(routes!(activity::list_decisions))
        .routes(routes!(activity::get_spend))
        .routes(routes!(activity::get_timeline))
        .routes(routes!(activity::list_slots))
        .routes(routes!(sessions::list_sessions, sessions::create_session))
        .routes(routes!(sessions::list_approvals))
        .routes(routes!(sessions::get_session, sessions::change_session, sessions::delete_session))
        .routes(routes!(sessions::get_status))
        .routes(routes!(sessions::get_pointer, sessions::move_pointer, work::drop_pointer))
        .routes(routes!(work::say_in_chat))
        .routes(routes!(work::get_work))
        .routes(routes!(work::get_memory))
        .routes(routes!(work::get_notebook))
        .routes(routes!(work::get_requests))
        .routes(routes!(work::get_request))
        .routes(routes!(work::promote_memory))
        .routes(routes!(work::forget_memory))
        .routes(routes!(sessions::send_message))
        .routes(routes!(sessions::say_line))
        .routes(routes!(sessions::say_line_in_words))
        .routes(routes!(sessions::stop))
        .routes(routes!(sessions::reset))
        .routes(routes!(sessions::list_events))
        .routes(routes!(sessions::get_output))
        .routes(routes!(streams::stream_events))
        .routes(routes!(streams::open_socket))
        .routes(routes!(plans::get_plan, plans::start_plan, plans::end_plan))
        .routes(routes!(plans::list_plans))
        .routes(routes!(plans::get_revision))
        .routes(routes!(plans::get_diff))
        .routes(routes!(plans::record_shown))
        .routes(routes!(plans::mark_seen))
        .routes(routes!(plans::approve))
        .routes(routes!(plans::request_changes))
        .routes(routes!(plans::reject))
        .routes(routes!(plans::finish_plan))
        .routes(routes!(plans::pause_plan))
        .routes(routes!(plans::resume_plan))
        .routes(routes!(plans::settle_doubt))
        .routes(routes!(plans::skip_step))
        .routes(routes!(plans::permit_call))
        .routes(routes!(plans::list_comments))
        .routes(routes!(plans::edit_plan))
        .routes(routes!(plans::plan_state))
        .routes(routes!(plans::enable_plan))
        .routes(routes!(plans::disable_plan))
}
