//! What drives Planwright from outside: HTTP, WebSocket, server-sent events and MCP. No rule lives here.

pub mod http;
pub mod mcp;
