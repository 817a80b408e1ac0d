//! Clients of the live streams, over WebSocket and server-sent events.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream::BoxStream};
use planwright_surfaces::http::streams::envelope::Envelope;
use sse_stream::SseByteStream;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest as _, http::HeaderValue},
};

use crate::served::Served;

/// How a client listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Over a WebSocket.
    WebSocket,
    /// By server-sent events.
    ServerSent,
}

/// What is streamed of a session after this place, until the stream is dropped.
pub async fn listen(
    served: &Served,
    wire: Wire,
    session: &str,
    after: u64,
) -> anyhow::Result<BoxStream<'static, Envelope>> {
    listen_at(&served.url, &served.token, wire, session, after).await
}

/// The same at any server.
pub async fn listen_at(
    url: &str,
    token: &str,
    wire: Wire,
    session: &str,
    after: u64,
) -> anyhow::Result<BoxStream<'static, Envelope>> {
    match wire {
        Wire::WebSocket => {
            let address = format!(
                "{}/api/ws?sessionId={session}&after={after}",
                url.replacen("http", "ws", 1)
            );
            let mut request = address.into_client_request()?;
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
            request.headers_mut().insert("authorization", bearer);
            let (socket, _) = connect_async(request).await?;
            let frames = socket.filter_map(|frame| async move {
                match frame.ok()? {
                    Message::Text(text) => serde_json::from_str(&text).ok(),
                    _ => None,
                }
            });
            Ok(frames.boxed())
        }
        Wire::ServerSent => {
            let path = format!("/api/sessions/{session}/stream?after={after}");
            let request = reqwest::Client::new().get(format!("{url}{path}")).bearer_auth(token);
            let response = request.send().await?.error_for_status()?;
            let events = SseByteStream::new(response.bytes_stream());
            Ok(events
                .filter_map(|event| async move { serde_json::from_str(&event.ok()?.data?).ok() })
                .boxed())
        }
    }
}

/// Listens from the beginning to this place, and is cut off so often on the way; the places it saw.
pub async fn listen_with_cuts(
    served: &Served,
    wire: Wire,
    session: &str,
    upto: u64,
    cuts: u64,
) -> anyhow::Result<Vec<u64>> {
    let mut seen: Vec<u64> = Vec::new();
    let each = upto / (cuts + 1);
    for cut in 0..=cuts {
        let until = if cut == cuts { upto } else { each * (cut + 1) };
        let mut stream = listen(served, wire, session, seen.last().copied().unwrap_or(0)).await?;
        while seen.last().copied().unwrap_or(0) < until {
            let next = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
            let envelope = next.context("nothing came for 20 s")?.context("the stream ended")?;
            anyhow::ensure!(
                envelope.session_id == session,
                "{} on the stream of {session}",
                envelope.session_id
            );
            seen.extend(envelope.seq);
        }
    }
    Ok(seen)
}
