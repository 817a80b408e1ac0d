//! What the runtime needs from the outside, each by its role.

use std::sync::Arc;

use planwright_domain::{policy::Policy, time::Time};

pub mod access;
pub mod connection;
pub mod journal;
pub mod memory;
pub mod model;
pub mod notebook;
pub mod signal;
pub mod toolbox;

use journal::Journal;
use memory::Memory;
use model::{Model, Profiles, Roles};
use notebook::Notebooks;
use signal::{Broadcast, Lane};
use toolbox::Toolbox;

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}

/// The ports that a runtime is made of.
#[derive(Clone)]
pub struct Ports {
    /// The only truth.
    pub journal: Arc<dyn Journal>,
    /// Who makes sure that someone acts.
    pub lane: Arc<dyn Lane>,
    /// Who tells the watchers.
    pub broadcast: Arc<dyn Broadcast>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// Which models do what, beside it.
    pub roles: Roles,
    /// The agent profiles.
    pub profiles: Profiles,
    /// The tools.
    pub toolbox: Arc<dyn Toolbox>,
    /// What is remembered.
    pub memory: Arc<dyn Memory>,
    /// The pages of notebooks.
    pub notebook: Arc<dyn Notebooks>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Who may decide, and when.
    pub policy: Arc<Policy>,
    /// Whether figures say which session they are of.
    pub session_label: bool,
}
