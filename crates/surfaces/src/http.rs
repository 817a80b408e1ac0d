//! The API: small, strict, described by its own handlers.
//!
//! A request passes, in this order: Host and Origin ([`auth::guard`]), who is there ([`auth`]), how often
//! they ask, and only then is its body read. What is wrong is told as `application/problem+json`.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{any, get, post},
};
use tokio::net::TcpListener;
use utoipa_axum::{router::OpenApiRouter, routes};

pub mod activity;
pub mod agents;
pub mod app;
pub mod auth;
pub mod autonomy;
pub mod body;
pub mod connections;
pub mod dashboard;
pub mod description;
pub mod dto;
pub mod health;
pub mod memory;
pub mod model;
pub mod model_requests;
pub mod notebook;
pub mod openai;
mod pages;
pub mod params;
pub mod plans;
pub mod problem;
pub mod session_event;
pub mod sessions;
pub mod streams;
mod tags;
mod time;

pub use app::{App, BODY_BYTES_MAX, HttpSettings};
use auth::{
    guard::{self, Guard},
    people, tokens,
};
use sessions::pointers;

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
    let (router, described) = open.merge(guarded).split_for_parts();
    let router = router.merge(known).merge(places);
    let guard = Guard::new(&app.settings);
    // The first is the outermost. One layer of several is boxed once a request, and not once for each.
    let around = (
        Extension(health::Description(Arc::new(description::openapi(described)))),
        middleware::from_fn(health::count),
        middleware::from_fn(dashboard::protect),
        middleware::from_fn(tags::tag),
        middleware::from_fn_with_state(app.leaving.clone(), connections::send_on_when_leaving),
        middleware::from_fn_with_state(Arc::new(guard), guard::check),
        middleware::from_fn(connections::limit_body_time),
        DefaultBodyLimit::max(BODY_BYTES_MAX),
    );
    router
        .fallback(dashboard::serve)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(around)
        .with_state(app)
}

/// Serves the API at this listener until `stopped` ends, then lets open requests end.
pub async fn serve(listener: TcpListener, app: Arc<App>, stopped: impl Future<Output = ()>) {
    let connections = app.connections.clone();
    connections::serve(listener, router(app), connections, stopped).await;
}

/// The description of the API, from the handlers themselves, as OpenAPI 3.1.
#[must_use]
pub fn openapi() -> serde_json::Value {
    description::openapi(open_routes().merge(guarded_routes()).split_for_parts().1)
}

fn open_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::prove))
        .routes(routes!(tokens::login))
        .routes(routes!(people::choose_passphrase))
        .routes(routes!(tokens::give_token))
}

fn guarded_routes() -> OpenApiRouter<Arc<App>> {
    installation_routes().merge(session_routes()).merge(plan_routes())
}

fn installation_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(health::metrics))
        .routes(routes!(health::description))
        .routes(routes!(tokens::list_tokens))
        .routes(routes!(tokens::revoke_token))
        .routes(routes!(tokens::logout))
        .routes(routes!(tokens::give_ticket))
        .routes(routes!(tokens::who_am_i))
        .routes(routes!(people::change_passphrase))
        .routes(routes!(people::authenticate_again))
        .routes(routes!(people::list_people, people::add_person))
        .routes(routes!(people::change_person, people::remove_person))
        .routes(routes!(people::invite_person))
        .routes(routes!(model::get_model, model::choose_model))
        .routes(routes!(model::try_model))
        .routes(routes!(model::found_models))
        .routes(routes!(agents::take_place))
        .routes(routes!(activity::stream_hints))
        .routes(routes!(activity::list_decisions))
        .routes(routes!(activity::get_usage))
        .routes(routes!(activity::raise_limit))
        .routes(routes!(activity::get_timeline))
        .routes(routes!(activity::list_slots))
}

fn session_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(sessions::list_sessions, sessions::create_session))
        .routes(routes!(sessions::list_approvals))
        .routes(routes!(sessions::get_session, sessions::change_session, sessions::delete_session))
        .routes(routes!(sessions::get_status))
        .routes(routes!(pointers::get_pointer, pointers::move_pointer, pointers::drop_pointer))
        .routes(routes!(pointers::say_in_chat))
        .routes(routes!(autonomy::get_work))
        .routes(routes!(autonomy::add_goal))
        .routes(routes!(autonomy::end_goal))
        .routes(routes!(autonomy::add_task))
        .routes(routes!(autonomy::end_task))
        .routes(routes!(autonomy::start_run, autonomy::stop_runs))
        .routes(routes!(autonomy::resume_runs))
        .routes(routes!(autonomy::stop_run))
        .routes(routes!(autonomy::resume_run))
        .routes(routes!(autonomy::add_schedule))
        .routes(routes!(autonomy::end_schedule))
        .routes(routes!(memory::get_memory))
        .routes(routes!(notebook::get_notebook, notebook::switch_notebook))
        .routes(routes!(model_requests::get_requests))
        .routes(routes!(model_requests::get_request))
        .routes(routes!(memory::promote_memory))
        .routes(routes!(memory::forget_memory, memory::change_memory))
        .routes(routes!(sessions::send_message))
        .routes(routes!(sessions::say_line))
        .routes(routes!(sessions::say_line_in_words))
        .routes(routes!(sessions::stop))
        .routes(routes!(sessions::reset))
        .routes(routes!(sessions::list_events))
        .routes(routes!(sessions::get_output))
        .routes(routes!(streams::stream_events))
        .routes(routes!(streams::open_socket))
}

fn plan_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::default()
        .routes(routes!(plans::get_plan, plans::start_plan, plans::end_plan))
        .routes(routes!(plans::list_plans))
        .routes(routes!(plans::get_revision))
        .routes(routes!(plans::get_receipt))
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
        .routes(routes!(plans::list_comments, plans::post_comment))
        .routes(routes!(plans::reply_to_comment))
        .routes(routes!(plans::change_comment))
        .routes(routes!(plans::edit_plan))
        .routes(routes!(plans::plan_state))
        .routes(routes!(plans::enable_plan))
        .routes(routes!(plans::disable_plan))
}
