//! What the runtime needs from the outside, each by its role.

use planwright_domain::time::Time;

pub mod access;
pub mod connection;
pub mod journal;
pub mod memory;
pub mod model;
pub mod notebook;
pub mod signal;
pub mod toolbox;

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}
