//! Text for people and for models: the chat grammar, prompts, tool specifications, outcomes and differences. Nothing below uses it.

pub mod agent_tools;
pub mod chat;
pub mod diff;
pub mod moved;
mod observation;
pub mod outcome;
pub mod prompt;
mod tool_specs;
