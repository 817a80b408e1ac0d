//! Server-sent events, for as long as their caller may hear them.

use std::{convert::Infallible, sync::Arc};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt as _};

use crate::http::{
    app::App,
    auth::{Caller, grant_ends},
    problem::Problem,
};

/// A stream that ends with its caller's grant, and is one of those that the caller may have open.
pub(crate) fn sse(
    app: &Arc<App>,
    caller: &Caller,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Result<Response, Problem> {
    let place = app.limits.stream(&caller.person.id)?;
    let ended = grant_ends(app.clone(), caller.secret, caller.person.standing);
    let events = events.take_until(ended).map(move |event| {
        let _ = &place;
        Ok::<_, Infallible>(event)
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}
