//! State and events: data, constructors and readers. Nothing here decides, and nothing here uses a layer above it.

pub mod actor;
pub mod agent_call;
pub mod attempt;
pub mod autonomy;
pub mod command;
pub mod digest;
pub mod effect;
pub mod given;
pub mod hidden;
pub mod id;
pub mod identity;
pub mod limits;
pub mod log;
pub mod memory;
pub mod notebook;
pub mod plan;
pub mod policy;
pub mod quota;
pub mod refusal;
pub mod search;
pub mod session;
pub mod time;
pub mod tools;
pub mod turn;
