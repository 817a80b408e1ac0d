//! What answering a tool of ours needs from outside the session.

use std::collections::BTreeSet;

use crate::model::{id::PlanId, memory::Item};

/// What answering a plan tool needs from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The id of a successor, should the call bring one about.
    pub fresh: PlanId,
    /// The agent profiles there are.
    pub profiles: BTreeSet<String>,
    /// What was looked up in the turn's own scopes; none if memory is turned off.
    pub memory: Option<Vec<Item>>,
    /// The document of the current revision, where the call changes a part of it.
    pub markdown: Option<String>,
}
