//! What happens between a command and its effects.
//!
//! Start at [`dispatch`] for what a person asks, at [`advance`] for what must happen because of
//! it, and at [`ports`] for what the runtime needs from the outside. No technology is named here.

pub mod advance;
pub mod agents;
pub mod archive;
mod asking;
pub mod audit;
pub mod calendar;
pub mod day;
pub mod dispatch;
pub mod failpoint;
mod figures;
mod fitting;
pub mod history;
pub mod inbound;
mod kit;
pub mod memories;
pub mod notebook;
mod output;
pub mod ports;
pub(crate) mod replay;
pub mod requests;
pub mod routing;
pub mod runtime;
pub mod timeline;
pub mod view;
pub mod work;
