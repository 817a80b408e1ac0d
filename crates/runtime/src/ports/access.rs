//! Who may do what.

use std::collections::BTreeSet;

use async_trait::async_trait;
use planwright_domain::{
    digest::Digest, id::GrantId, identity::SessionKey, plan::Strategy, time::Time,
};
use serde::{Deserialize, Serialize};

/// What is kept of a token, a login or a place beside the audit log, which says whether it is good: what people call it and what
/// it opens. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantDetails {
    /// Its name in lists.
    pub id: GrantId,
    /// What its owner calls it.
    pub name: String,
    /// When it was given.
    pub created: Time,
    /// The digest of the page key, for the login of a browser. The cookie of that login is good for nothing without the key,
    /// and never as a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<Digest>,
    /// The place of a foreign agent, if it is the token of one: it opens that place and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentGrant>,
}

impl GrantDetails {
    /// The digest of it and of its secret, by which the audit log knows it.
    #[must_use]
    pub fn digest(&self, secret: Digest) -> Digest {
        // Texts, numbers and ids are always written, and always alike.
        let text = serde_json::to_string(self).unwrap_or_default();
        Digest::of(format!("planwright grant 1\n{secret}\n{text}").as_bytes())
    }
}

/// How many tickets of one grant wait to be used; the oldest goes first.
pub const TICKETS_MAX: usize = 16;

/// Opens one stream, once: a browser can send no header of its own with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The digest of its secret.
    pub secret: Digest,
    /// Of this grant.
    pub grant: GrantId,
    /// When it was given.
    pub created: Time,
    /// When it ends.
    pub expires: Time,
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

/// What is kept beside the audit log: what passphrases are hashed to, what is told of grants, and tickets. Secrets are never kept,
/// only their digests.
#[async_trait]
pub trait Access: Send + Sync {
    /// Keeps what is told of a grant under the digest of its secret.
    async fn keep(&self, details: GrantDetails, secret: Digest) -> Result<(), AccessError>;

    /// What is told of the grant of this secret.
    async fn find(&self, secret: Digest) -> Result<Option<GrantDetails>, AccessError>;

    /// What is told of every grant, oldest first.
    async fn list(&self) -> Result<Vec<GrantDetails>, AccessError>;

    /// Forgets what was kept before this time of grants that are not among these.
    async fn keep_only(&self, good: &BTreeSet<GrantId>, before: Time) -> Result<(), AccessError>;

    /// Keeps a ticket of a grant until then.
    async fn keep_ticket(&self, ticket: Ticket) -> Result<(), AccessError>;

    /// Takes a ticket, which then is gone; the grant that it is of, if it has not ended.
    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<GrantId>, AccessError>;

    /// Keeps what this passphrase is hashed to; the digest of that.
    async fn keep_passphrase(&self, passphrase: &str) -> Result<Digest, AccessError>;

    /// Whether this passphrase is hashed to what has this digest. Takes as long where there is none.
    async fn fits(&self, hash: Option<Digest>, passphrase: &str) -> Result<bool, AccessError>;

    /// Forgets what a passphrase was hashed to.
    async fn forget_passphrase(&self, hash: Digest) -> Result<(), AccessError>;
}
