//! Execution: performs the effects that `next` names, and records what came of them.

pub mod advance;
pub mod attempt;
pub mod calendar;
pub(crate) mod context_window;
pub mod conversation;
pub(crate) mod message_digest;
pub(crate) mod model_call;
pub mod notebook;
pub(crate) mod output;
pub(crate) mod replay;
pub(crate) mod run_calls;
pub(crate) mod tool_call;
