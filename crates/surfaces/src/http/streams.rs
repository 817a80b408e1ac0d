//! Live streams: WebSocket and server-sent events, from any place in a session's stream.
//!
//! Nothing is queued without bound: a connection reads the journal from its own cursor, as fast as
//! its client takes it. A client that is slow falls behind, misses previews, and catches up by
//! reading; it delays nobody.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{
        Path, Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection},
    },
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream};
use planwright_domain::{id::Seq, identity::SessionIdentity};
use planwright_runtime::{
    ports::{Signal, Subscription},
    runtime::Runtime,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    App,
    envelope::Envelope,
    params::InPath,
    problem::{Problem, Problems},
    sessions::bad_query,
    who::Caller,
};

/// How many events are read at once.
const PAGE: usize = 64;
/// The largest frame that a client may send.
const FRAME_BYTES_MAX: usize = 256 * 1024;
/// How long a client may take for one frame before it is cut off.
const SLOW_MAX: Duration = Duration::from_secs(20);

/// From where.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct From {
    /// Events after this place; without it, from now on.
    pub after: Option<u64>,
}

/// Which session, and from where.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct Socket {
    /// `channel:key`, or a key of the caller's own channel.
    pub session_id: String,
    /// Events after this place; without it, from now on.
    pub after: Option<u64>,
}

/// Events as they happen, as server-sent events. `Last-Event-ID` resumes.
#[utoipa::path(get, path = "/api/sessions/{id}/stream", params(InPath, ("Last-Event-ID" = Option<String>, Header, description = "The place of the last event that was seen"), From), responses((status = 200, content_type = "text/event-stream", body = Envelope), Problems))]
pub(crate) async fn stream_events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    query: Result<Query<From>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let identity = caller.session(&id)?;
    let Query(from) = query.map_err(bad_query)?;
    let last =
        headers.get("last-event-id").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let cursor = Cursor::new(&app.runtime, identity, last.or(from.after)).await?;
    let events = envelopes(cursor);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// Events as they happen, over a WebSocket.
#[utoipa::path(get, path = "/api/ws", params(Socket), responses((status = 101, description = "A WebSocket; every frame is one envelope"), Problems))]
pub(crate) async fn open_socket(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Socket>, axum::extract::rejection::QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(socket) = query.map_err(bad_query)?;
    let identity = caller.session(&socket.session_id)?;
    let upgrade = upgrade.map_err(|_| {
        Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "not_a_websocket",
            "this path is a WebSocket; use /stream for server-sent events",
        )
    })?;
    let cursor = Cursor::new(&app.runtime, identity, socket.after).await?;
    Ok(upgrade
        .max_message_size(FRAME_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .on_upgrade(move |socket| serve(socket, cursor)))
}

/// A place in a session's stream that moves on.
struct Cursor {
    runtime: Arc<Runtime>,
    identity: SessionIdentity,
    seen: Seq,
    ear: Box<dyn Subscription>,
    page: std::vec::IntoIter<Envelope>,
}

impl Cursor {
    async fn new(
        runtime: &Arc<Runtime>,
        identity: SessionIdentity,
        after: Option<u64>,
    ) -> Result<Self, Problem> {
        let ear = runtime.ports.broadcast.subscribe(&identity);
        let seen = match after {
            Some(after) => Seq(after),
            None => runtime.session(&identity).await?.version,
        };
        Ok(Self { runtime: runtime.clone(), identity, seen, ear, page: Vec::new().into_iter() })
    }

    /// The next thing to tell: what is recorded first, previews while there is nothing else.
    async fn next(&mut self) -> Option<Envelope> {
        loop {
            if let Some(envelope) = self.page.next() {
                return Some(envelope);
            }
            let events =
                self.runtime.ports.journal.events(&self.identity, self.seen, PAGE).await.ok()?;
            if let Some(last) = events.last() {
                self.seen = last.seq;
                let page: Vec<_> =
                    events.iter().map(|recorded| Envelope::of(&self.identity, recorded)).collect();
                self.page = page.into_iter();
                continue;
            }
            if let Signal::Preview(preview) = self.ear.next().await? {
                return Some(Envelope::preview(&self.identity, &preview));
            }
        }
    }
}

fn envelopes(cursor: Cursor) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(cursor, |mut cursor| async move {
        let envelope = cursor.next().await?;
        let event = Event::default()
            .event(&envelope.kind)
            .data(serde_json::to_string(&envelope).unwrap_or_default());
        let event = envelope.seq.map_or(event.clone(), |seq| event.id(seq.to_string()));
        Some((Ok(event), cursor))
    })
}

async fn serve(mut socket: WebSocket, mut cursor: Cursor) {
    metrics::gauge!("streams.open").increment(1.0);
    loop {
        tokio::select! {
            envelope = cursor.next() => {
                let Some(envelope) = envelope else { break };
                let text = serde_json::to_string(&envelope).unwrap_or_default();
                let sent = tokio::time::timeout(SLOW_MAX, socket.send(Message::text(text))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    break;
                }
            }
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
            },
        }
    }
    metrics::gauge!("streams.open").decrement(1.0);
}
