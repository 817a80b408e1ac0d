//! Who may do what.

use async_trait::async_trait;
use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::Seq,
    identity::{ChannelType, SessionKey},
    plan::Strategy,
    time::Time,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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
    /// When its bearer last gave their passphrase, if it was given for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated: Option<Time>,
    /// How far the installation had come when it was given.
    #[serde(default)]
    pub installation: Seq,
    /// From where its bearer asks, as it was given: nothing that a request says changes it.
    pub surface: ChannelType,
    /// The digest of the page key, for the login of a browser. The cookie of that login is good for nothing without the key,
    /// and never as a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<Digest>,
    /// The token with which a browser logged in: the login ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Uuid>,
    /// The place of a foreign agent, if it is the token of one: it opens that place and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentGrant>,
}

/// How many grants of one kind one person may have. A login over that ends the person's oldest one, so that nobody is kept
/// out; a token or a place over that is refused.
pub const GRANTS_OF_A_KIND_MAX: usize = 100;

/// What is to be done with a new grant, where one person has these of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It is kept.
    Free,
    /// It is kept, and this one ends.
    InPlaceOf(Uuid),
    /// It is refused.
    None,
}

impl Room {
    /// Whether there is room for this grant among those that are kept.
    #[must_use]
    pub fn for_grant<'a>(grant: &Grant, kept: impl Iterator<Item = &'a Grant>) -> Self {
        let is_alike = |other: &&Grant| {
            (&other.person, other.surface, other.standing)
                == (&grant.person, grant.surface, grant.standing)
        };
        let alike: Vec<_> = kept.filter(is_alike).collect();
        if alike.len() < GRANTS_OF_A_KIND_MAX {
            return Self::Free;
        }
        let oldest = alike.into_iter().min_by_key(|other| (other.created, other.id));
        match oldest {
            // Whoever gives the passphrase gets in.
            Some(oldest) if grant.page_key.is_some() || grant.standing == Standing::Decides => {
                Self::InPlaceOf(oldest.id)
            }
            Some(_) | None => Self::None,
        }
    }

    /// Why a grant is refused.
    #[must_use]
    pub fn refused(grant: &Grant) -> AccessError {
        let (person, surface) = (&grant.person.0, grant.surface.name());
        AccessError::Refused(format!(
            "{person} has {GRANTS_OF_A_KIND_MAX} tokens of the kind {surface}; take some back first"
        ))
    }
}

impl Grant {
    /// A grant that lasts until it is taken back.
    #[must_use]
    pub fn new(id: Uuid, name: &str, person: PersonId, standing: Standing, created: Time) -> Self {
        Self {
            id,
            name: name.into(),
            person,
            standing,
            created,
            expires: None,
            authenticated: None,
            installation: Seq(0),
            surface: ChannelType::Api,
            page_key: None,
            token: None,
            agent: None,
        }
    }

    /// Whether it was given for a passphrase, or to a browser: such grants end when the passphrase is another one.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.authenticated.is_some()
            || self.page_key.is_some()
            || self.standing == Standing::Decides
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self, now: Time) -> bool {
        self.expires.is_some_and(|end| end <= now)
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
    pub grant: Uuid,
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

/// Who may do what. Secrets are never kept, only their digests.
#[async_trait]
pub trait Access: Send + Sync {
    /// Keeps a grant under the digest of its secret.
    async fn keep(&self, grant: Grant, secret: Digest) -> Result<(), AccessError>;

    /// The grant of this secret.
    async fn find(&self, secret: Digest) -> Result<Option<Grant>, AccessError>;

    /// Every grant there is, oldest first.
    async fn list(&self) -> Result<Vec<Grant>, AccessError>;

    /// Takes a grant back, with the logins that were made with it; whether there was one.
    async fn revoke(&self, id: Uuid) -> Result<bool, AccessError>;

    /// Keeps a ticket of a grant until then.
    async fn keep_ticket(&self, ticket: Ticket) -> Result<(), AccessError>;

    /// Takes a ticket, which then is gone; the grant that it is of, if it has not ended.
    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<Uuid>, AccessError>;

    /// Keeps what this passphrase is hashed to; the digest of that.
    async fn keep_passphrase(&self, passphrase: &str) -> Result<Digest, AccessError>;

    /// Whether this passphrase is hashed to what has this digest. Takes as long where there is none.
    async fn fits(&self, hash: Option<Digest>, passphrase: &str) -> Result<bool, AccessError>;

    /// Forgets what a passphrase was hashed to.
    async fn forget_passphrase(&self, hash: Digest) -> Result<(), AccessError>;
}
