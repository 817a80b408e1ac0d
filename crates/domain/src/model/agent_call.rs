//! A call of a foreign agent.

use crate::model::{
    actor::PersonId,
    given::Given,
    id::OwnerId,
    plan::{Revision, review::Comment},
    turn::RequestedCall,
};

/// A call of a foreign agent, and what answering it needs from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCall {
    /// Whose agent it is.
    pub owner: OwnerId,
    /// Their name.
    pub of: PersonId,
    /// Who calls, as it names itself.
    pub agent: String,
    /// The call.
    pub call: RequestedCall,
    /// What a plan tool needs.
    pub given: Given,
    /// The current revision of the plan, whole.
    pub revision: Option<Revision>,
    /// The comments that no revision has answered yet.
    pub comments: Vec<Comment>,
    /// Who answers it.
    pub answered: Answered,
}

/// Who answers a call of a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The decision itself.
    ByDecision,
    /// Nobody: what it asks of the notebook cannot be done, in these words.
    Refused(String),
    /// The notebook, once the call is recorded as started.
    ByNotebook,
}
