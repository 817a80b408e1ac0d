//! Accounts: who uses the installation, and what each may do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::Seq,
    time::Time,
};

/// What an account may do. Everyone who is known reads and speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Talk, read and stop.
    Speak,
    /// Decide on plans and calls.
    Decide,
    /// Manage people: say who uses the installation, and what they may do.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Speak, Self::Decide, Self::Admin];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speak => "speak",
            Self::Decide => "decide",
            Self::Admin => "admin",
        }
    }
}

/// A person whom the installation knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// What they may do.
    pub roles: BTreeSet<Role>,
    /// The digest of what their passphrase is hashed to, once they chose one.
    pub passphrase: Option<Digest>,
    /// The link with which they choose one.
    pub invitation: Option<Invitation>,
    /// Who gave their passphrase before the installation came so far gave another one, or was somebody else of this name.
    pub passphrase_since: Seq,
}

/// A link that works once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The digest of its secret.
    pub secret: Digest,
    /// Until when.
    pub until: Time,
}

impl Account {
    /// Whether they have this role.
    #[must_use]
    pub fn may(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// What they may do at most, where they gave their passphrase.
    #[must_use]
    pub fn standing(&self) -> Standing {
        if self.may(Role::Decide) { Standing::Decides } else { Standing::Speaks }
    }
}

/// The last reset of a passphrase by somebody who did not know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// Whose.
    pub person: PersonId,
    /// When.
    pub at: Time,
}

/// How long people are told of a reset.
pub const RESET_TOLD_MICROS: i64 = 7 * 86_400 * 1_000_000;
