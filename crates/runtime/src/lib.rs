//! What happens between a command and its effects.
//!
//! Start at [`commands::dispatch`] for what a person asks, at [`engine::advance`] for what must happen because of
//! it, and at [`ports`] for what the runtime needs from the outside. No technology is named here.

#![deny(clippy::disallowed_methods)]

pub mod audit;
pub mod commands;
pub mod engine;
mod event_pages;
pub mod failpoint;
pub mod housekeeping;
pub mod ids;
pub mod memories;
mod metrics;
mod model_health;
pub mod owner_turns;
pub mod ports;
pub mod queries;
pub mod quotas;
pub mod reply_text;
mod revisions;
pub mod runtime;
pub mod secrets;
pub mod settings;
pub mod transfer;
