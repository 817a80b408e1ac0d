//! WebSockets at the edge of what they take.

use futures_util::{SinkExt as _, StreamExt as _};
use planwright_testkit::{scripted_model::worker::worker, served::Served};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest as _, http::HeaderValue},
};

/// What RELIABILITY promises of a frame.
const FRAME_BYTES_MAX: usize = 256 * 1024;

#[tokio::test]
async fn a_frame_at_the_limit_is_passed_over_and_one_above_ends_the_socket() {
    let served = Served::start(worker(300, 1)).await;
    for (bytes, survives) in
        [(FRAME_BYTES_MAX, true), (FRAME_BYTES_MAX + 1, false), (FRAME_BYTES_MAX * 64, false)]
    {
        let url =
            format!("{}/api/ws?sessionId=cli:talk-0001", served.url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().unwrap();
        let bearer = HeaderValue::from_str(&format!("Bearer {}", served.token)).unwrap();
        request.headers_mut().insert("authorization", bearer);
        let (mut socket, _) = connect_async(request).await.unwrap();
        let _ = socket.send(Message::text("x".repeat(bytes))).await;
        let _ = socket.send(Message::Ping("still there?".into())).await;
        let answered = loop {
            match socket.next().await {
                Some(Ok(Message::Pong(_))) => break true,
                Some(Ok(Message::Close(_)) | Err(_)) | None => break false,
                Some(Ok(_)) => {}
            }
        };
        assert_eq!(answered, survives, "{bytes} bytes");
    }
}
