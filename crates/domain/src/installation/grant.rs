//! Tokens, logins and terminals: what was given to whom, and until when.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::GrantId,
    identity::ChannelType,
    time::Time,
};

/// How many grants of one kind one person may have. A login over that ends the person's oldest one, so that nobody is kept
/// out; a token or a place over that is refused.
pub const GRANTS_OF_A_KIND_MAX: usize = 100;
/// How long a terminal is remembered at which the passphrase was given.
pub const TERMINAL_MICROS: i64 = 15 * 60 * 1_000_000;

/// What was given to a person: a token, a login of a browser, or the place of a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Who the bearer is.
    pub person: PersonId,
    /// What they may do with it at most.
    pub standing: Standing,
    /// From where they ask, as it was given: nothing that a request says changes it.
    pub surface: ChannelType,
    /// When it was given.
    pub created: Time,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// When its bearer last gave their passphrase, if it was given for one.
    pub authenticated: Option<Time>,
    /// Whether it is of a browser.
    pub is_page: bool,
    /// The token with which a browser logged in: the login ends with it.
    pub token: Option<GrantId>,
    /// The digest of what is kept of it elsewhere, its secret with it.
    pub details: Digest,
}

impl Grant {
    /// Whether it was given for a passphrase, or to a browser: such grants end when the passphrase is another one.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.authenticated.is_some() || self.is_page || self.standing == Standing::Decides
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self, now: Time) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// Whether it is of the same kind as another: there are only so many of each.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.person, self.surface, self.standing)
            == (&other.person, other.surface, other.standing)
    }
}

/// A terminal at which a person gave their passphrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// Who.
    pub person: PersonId,
    /// When.
    pub given: Time,
}

impl Terminal {
    pub(super) fn has_ended(&self, now: Time) -> bool {
        !(self.given..self.given.plus_micros(TERMINAL_MICROS)).contains(&now)
    }
}
