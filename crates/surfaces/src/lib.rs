//! What drives Planwright from outside: HTTP, WebSocket and server-sent events. No rule lives here.

pub mod http;
