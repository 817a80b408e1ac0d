//! What drives Planwright from outside: HTTP, WebSocket, server-sent events and MCP. No rule lives here.

#![deny(clippy::disallowed_methods)]

pub mod http;
pub mod mcp;
