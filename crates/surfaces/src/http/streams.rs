//! Live streams: WebSocket and server-sent events, from any place in a session's stream.
//!
//! Nothing is queued without bound: a connection reads the journal from its own cursor, as fast as
//! its client takes it. A client that is slow falls behind, misses previews, and catches up by
//! reading; it delays nobody.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Bytes,
    extract::{
        Path, Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection},
    },
    http::{HeaderMap, StatusCode},
    response::{Response, sse::Event},
};
use futures_util::{Stream, stream};
use planwright_domain::{id::Seq, identity::SessionKey};
use planwright_runtime::ports::signal::{Signal, Subscription};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

pub mod envelope;
pub(crate) mod frames;
pub(crate) mod sse;

use crate::http::{
    app::App,
    auth::{Caller, grant_ends},
    connections::PeerConnection,
    params::InPath,
    problem::bad_query,
    problem::{Problem, Problems},
    sessions::access::seen,
    streams::envelope::Envelope,
    streams::frames::{Frame, PAGE, Read},
    streams::sse::sse,
};

/// The largest frame that a client may send.
const FRAME_BYTES_MAX: usize = 256 * 1024;
/// How much is read at once of what a client sends: next to nothing.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// How often a client is asked whether it is there. One that does not answer until the next time is forgotten.
const PING_EVERY: Duration = Duration::from_secs(45);
/// How long a client may take for one frame before it is cut off.
const SLOW_MAX: Duration = Duration::from_secs(20);

/// From where.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct From {
    /// Events after this place; without it, from now on.
    pub after: Option<u64>,
    /// A ticket of `/api/tickets`: a page cannot send its key here.
    pub ticket: Option<String>,
}

/// Which session, and from where.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct Socket {
    /// `channel:key` or a key of the caller's channel for a session of their own, `owner.channel:key` for another's.
    pub session_id: String,
    /// Events after this place; without it, from now on.
    pub after: Option<u64>,
    /// A ticket of `/api/tickets`: a page cannot send its key here.
    pub ticket: Option<String>,
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
    let identity = seen(&app, &caller, &id).await?;
    let Query(from) = query.map_err(bad_query)?;
    let last = last_event(&headers)?;
    let cursor = Cursor::new(&app, &caller, identity, last.or(from.after)).await?;
    sse(&app, &caller, envelopes(cursor))
}

/// The place of the event that a client saw last, as the stream or an envelope named it.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let place = value.to_str().ok().and_then(|text| text.trim().rsplit('/').next()?.parse().ok());
    place.map(Some).ok_or_else(|| {
        let words = "Last-Event-ID is the number of an event, or the id of its envelope";
        Problem::new(StatusCode::BAD_REQUEST, "bad_last_event_id", words)
    })
}

/// Events as they happen, over a WebSocket.
#[utoipa::path(get, path = "/api/ws", params(Socket), responses((status = 101, description = "A WebSocket; every frame is one envelope"), Problems))]
pub(crate) async fn open_socket(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Socket>, axum::extract::rejection::QueryRejection>,
    accepted: Option<Extension<PeerConnection>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(socket) = query.map_err(bad_query)?;
    let identity = seen(&app, &caller, &socket.session_id).await?;
    let upgrade = upgrade.map_err(|_| {
        Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "not_a_websocket",
            "this path is a WebSocket; use /stream for server-sent events",
        )
    })?;
    let place = app.limits.stream(&caller.person.id)?;
    let cursor = Cursor::new(&app, &caller, identity, socket.after).await?;
    let ended = grant_ends(app, caller.secret, caller.person.standing);
    // The connection's own task ends with the upgrade: it is kept, and counted, for as long as the socket is open.
    let hold = accepted.map(|Extension(accepted)| accepted.hold());
    Ok(upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(FRAME_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .on_upgrade(async move |socket| {
            let _held = (hold, place);
            serve(socket, cursor, ended).await;
        }))
}

/// A place in a session's stream that moves on.
struct Cursor {
    app: Arc<App>,
    read: Read,
    seen: Seq,
    /// The session has at least so many events; none if that must be looked up.
    known: Option<Seq>,
    subscription: Box<dyn Subscription>,
    page: VecDeque<Frame>,
}

impl Cursor {
    async fn new(
        app: &Arc<App>,
        caller: &Caller,
        identity: SessionKey,
        after: Option<u64>,
    ) -> Result<Self, Problem> {
        let subscription = app.queries.subscribe(&identity);
        let seen = match after {
            Some(after) => Seq(after),
            None => app.queries.session(&identity).await?.version,
        };
        let read = (identity.clone(), caller.name_of(&identity));
        Ok(Self { app: app.clone(), read, seen, known: None, subscription, page: VecDeque::new() })
    }

    /// The next thing to tell: what is recorded first, previews while there is nothing else.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.page.pop_front() {
                self.seen = frame.seq.unwrap_or(self.seen);
                return Some(frame);
            }
            if self.known.is_none_or(|known| known > self.seen) {
                self.page = self.read_page().await?;
                if self.page.is_empty() {
                    self.known = Some(self.seen);
                }
                continue;
            }
            match self.subscription.next().await? {
                Signal::Moved(version) => self.known = self.known.max(Some(version)),
                Signal::Missed => self.known = None,
                Signal::Preview(preview) => {
                    let text = serde_json::to_string(&Envelope::preview(&self.read.1, &preview))
                        .unwrap_or_default();
                    return Some(Frame { seq: None, kind: "preview".into(), text: text.into() });
                }
            }
        }
    }

    async fn read_page(&mut self) -> Option<VecDeque<Frame>> {
        let frames = self.app.frames.after(&self.read, self.seen);
        if !frames.is_empty() {
            return Some(frames);
        }
        let (session_identity, name) = &self.read;
        let events = self.app.queries.events(session_identity, self.seen, PAGE).await;
        let events = events
            .inspect_err(|error| {
                // The client comes again with the place that it has seen.
                tracing::warn!(%session_identity, after = self.seen.0, %error, event = "stream_ended");
            })
            .ok()?;
        let frames: VecDeque<_> = events.iter().map(|recorded| Frame::of(name, recorded)).collect();
        self.app.frames.put(&self.read, &frames);
        Some(frames)
    }
}

fn envelopes(cursor: Cursor) -> impl Stream<Item = Event> {
    stream::unfold(cursor, |mut cursor| async move {
        let frame = cursor.next().await?;
        let event = Event::default().event(frame.kind).data(frame.text.as_str());
        let event = match frame.seq {
            Some(seq) => event.id(seq.to_string()),
            None => event,
        };
        Some((event, cursor))
    })
}

async fn serve(mut socket: WebSocket, mut cursor: Cursor, ended: impl Future<Output = ()>) {
    metrics::gauge!("streams.open").increment(1.0);
    tokio::pin!(ended);
    let mut pings = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    let mut was_heard = true;
    loop {
        tokio::select! {
            () = &mut ended => break,
            // A client that went away without a word is forgotten.
            _ = pings.tick() => {
                if !std::mem::take(&mut was_heard) {
                    break;
                }
                let sent = tokio::time::timeout(SLOW_MAX, socket.send(Message::Ping(Bytes::new())));
                if !matches!(sent.await, Ok(Ok(()))) {
                    break;
                }
            }
            frame = cursor.next() => {
                let Some(frame) = frame else { break };
                let sent = tokio::time::timeout(SLOW_MAX, socket.send(Message::Text(frame.text)));
                tokio::select! {
                    sent = sent => if !matches!(sent, Ok(Ok(()))) { break },
                    () = &mut ended => break,
                }
            }
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {
                    was_heard = true;
                }
            },
        }
    }
    metrics::gauge!("streams.open").decrement(1.0);
}
