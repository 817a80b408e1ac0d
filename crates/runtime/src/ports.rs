//! What the runtime needs from the outside, each by its role.

use std::sync::Arc;

use planwright_domain::{id::CommandId, policy::Policy, time::Time};
use uuid::Uuid;

pub mod access;
pub mod audit;
pub mod causes;
pub mod connection;
pub mod health;
pub mod journal;
pub mod memory;
pub mod model;
pub mod notebook;
pub mod signal;
pub mod toolbox;

use audit::Handover;
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

/// Where ids come from that nobody had before.
pub trait Ids: Send + Sync {
    /// An id that sorts after those that were made before it.
    fn ordered(&self) -> Uuid;

    /// An id that says nothing, not even when it was made.
    fn opaque(&self) -> Uuid;

    /// The id of a command that nobody gave before.
    fn command(&self) -> CommandId {
        self.ordered().into()
    }
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
    /// Where new ids come from.
    pub ids: Arc<dyn Ids>,
    /// Who may decide, and when.
    pub policy: Arc<Policy>,
    /// To whom a decision is handed over before it counts, if the operator wants that.
    pub handover: Option<Handover>,
    /// Whether figures say which session they are of.
    pub session_label: bool,
}
