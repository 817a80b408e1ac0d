//! What happened to the installation, as it is recorded.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    account::{Invitation, Role},
    grant::Grant,
};
use crate::model::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::{GrantId, OwnerId},
    log::{Erased, SessionHead},
    time::Time,
};

/// What happened to the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallationEvent {
    /// Somebody may use it from now on.
    PersonAdded {
        /// Who.
        person: PersonId,
        /// What they may do.
        roles: BTreeSet<Role>,
        /// Who says so.
        by: PersonId,
    },
    /// Somebody was given a link with which they choose a passphrase.
    PersonInvited {
        /// Who.
        person: PersonId,
        /// The link.
        invitation: Invitation,
        /// Who says so; nobody, where the program gave it to who started it.
        by: Option<PersonId>,
    },
    /// Somebody chose their first passphrase.
    PassphraseChosen {
        /// Who.
        person: PersonId,
        /// The digest of what it is hashed to.
        hash: Digest,
    },
    /// Somebody who knew their passphrase, or was invited anew, has another one.
    PassphraseChanged {
        /// Who.
        person: PersonId,
        /// The digest of what it is hashed to.
        hash: Digest,
    },
    /// Somebody at the machine gave a person another passphrase.
    PassphraseReset {
        /// Whose.
        person: PersonId,
        /// The digest of what it is hashed to.
        hash: Digest,
        /// When.
        at: Time,
    },
    /// Somebody may do something else.
    RolesChanged {
        /// Who.
        person: PersonId,
        /// What they may do.
        roles: BTreeSet<Role>,
        /// Who says so.
        by: PersonId,
    },
    /// Somebody may not use it any more.
    PersonRemoved {
        /// Who.
        person: PersonId,
        /// Who says so.
        by: PersonId,
    },
    /// Somebody was given a token, a login or a place for an agent.
    Granted {
        /// Its name in lists.
        id: GrantId,
        /// What was given.
        grant: Grant,
    },
    /// Somebody gave their passphrase again with a login that they have.
    GrantRenewed {
        /// Which.
        id: GrantId,
        /// What they may do with it at most.
        standing: Standing,
    },
    /// A token, a login or a place was taken back, with the logins that were made with it.
    GrantRevoked {
        /// Which.
        id: GrantId,
        /// By whom.
        by: PersonId,
    },
    /// Somebody gave their passphrase at a terminal.
    TerminalUnlocked {
        /// Who.
        person: PersonId,
        /// Which terminal.
        surface: String,
    },
    /// The program began with other settings that security rests on than it had before.
    SettingsFound {
        /// All of them, by name, as digests.
        settings: BTreeMap<String, Digest>,
    },
    /// The program began with another key for signatures than it had before.
    KeyFound {
        /// The public key.
        key: Digest,
    },
    /// An archive was brought in.
    Imported {
        /// Its digest.
        archive: Digest,
        /// How many sessions it had.
        sessions: u64,
        /// Whether the operator vouched for it, so that it goes on as it was.
        is_vouched: bool,
    },
    /// The chain of decisions of a session had come so far.
    HeadTaken(SessionHead),
    /// A session was erased, with all that it held.
    SessionErased(Erased),
    /// What belonged to an owner was erased.
    OwnerErased {
        /// Whose.
        owner: OwnerId,
        /// Who asked for it.
        by: PersonId,
    },
}

impl InstallationEvent {
    /// Who has which passphrase since, by the digest of what it is hashed to.
    #[must_use]
    pub const fn passphrase(&self) -> Option<(&PersonId, Digest)> {
        match self {
            Self::PassphraseChosen { person, hash }
            | Self::PassphraseChanged { person, hash }
            | Self::PassphraseReset { person, hash, .. } => Some((person, *hash)),
            Self::PersonAdded { .. }
            | Self::PersonInvited { .. }
            | Self::RolesChanged { .. }
            | Self::PersonRemoved { .. }
            | Self::Granted { .. }
            | Self::GrantRenewed { .. }
            | Self::GrantRevoked { .. }
            | Self::TerminalUnlocked { .. }
            | Self::SettingsFound { .. }
            | Self::KeyFound { .. }
            | Self::Imported { .. }
            | Self::HeadTaken(_)
            | Self::SessionErased(_)
            | Self::OwnerErased { .. } => None,
        }
    }

    /// Its kind, as it is stored.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PersonAdded { .. } => "person_added",
            Self::PersonInvited { .. } => "person_invited",
            Self::PassphraseChosen { .. } => "passphrase_chosen",
            Self::PassphraseChanged { .. } => "passphrase_changed",
            Self::PassphraseReset { .. } => "passphrase_reset",
            Self::RolesChanged { .. } => "roles_changed",
            Self::PersonRemoved { .. } => "person_removed",
            Self::Granted { .. } => "granted",
            Self::GrantRenewed { .. } => "grant_renewed",
            Self::GrantRevoked { .. } => "grant_revoked",
            Self::TerminalUnlocked { .. } => "terminal_unlocked",
            Self::SettingsFound { .. } => "settings_found",
            Self::KeyFound { .. } => "key_found",
            Self::Imported { .. } => "imported",
            Self::HeadTaken(_) => "head_taken",
            Self::SessionErased(_) => "session_erased",
            Self::OwnerErased { .. } => "owner_erased",
        }
    }
}
