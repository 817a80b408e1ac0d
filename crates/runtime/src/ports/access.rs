//! Who may do what.

use async_trait::async_trait;
use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    identity::SessionKey,
    plan::Strategy,
    time::Time,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of the one person whom every installation knows: its owner.
pub const OWNER: &str = "owner";

/// What the bearer of a secret may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name in lists.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Who the bearer is.
    pub person: PersonId,
    /// Whether the bearer may decide.
    pub standing: Standing,
    /// When it was given.
    pub created: Time,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// The place of a foreign agent, if it is the token of one: it opens that place and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentGrant>,
}

impl Grant {
    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self, now: Time) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// The place of a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentGrant {
    /// The session.
    pub session: SessionKey,
    /// The project that it works in.
    pub root: String,
    /// The plan work with which the session begins.
    pub plan: Option<Strategy>,
    /// Whether it may only look.
    pub read_only: bool,
    /// Whether it is told of every tool, whatever the state.
    pub always: bool,
}

/// Why access could not be looked up or changed. The operator reads this.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It will not be, and why.
    #[error("access cannot be looked up or changed: {0}")]
    Refused(String),
    /// It cannot be now.
    #[error("who may do what cannot be looked up now: {0}")]
    Unreachable(String),
}

/// Who may do what. Secrets are never kept, only their digests.
#[async_trait]
pub trait Access: Send + Sync {
    /// Keeps a grant under the digest of its secret.
    async fn keep(&self, grant: Grant, secret: Digest) -> Result<(), AccessError>;

    /// The grant of this secret.
    async fn find(&self, secret: Digest) -> Result<Option<Grant>, AccessError>;

    /// Every grant there is, oldest first.
    async fn list(&self) -> Result<Vec<Grant>, AccessError>;

    /// Takes a grant back; whether there was one.
    async fn revoke(&self, id: Uuid) -> Result<bool, AccessError>;

    /// Whether a passphrase was chosen.
    async fn is_chosen(&self) -> Result<bool, AccessError>;

    /// Chooses the passphrase, if none was chosen yet.
    async fn choose(&self, passphrase: &str) -> Result<(), AccessError>;

    /// Whether this is the passphrase that was chosen.
    async fn is_passphrase(&self, given: &str) -> Result<bool, AccessError>;
}
