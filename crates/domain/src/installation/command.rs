//! What can be asked of the installation, and why it is refused.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    account::{Invitation, Role},
    grant::GRANTS_OF_A_KIND_MAX,
};
use crate::model::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::{GrantId, OwnerId, Seq},
    identity::ChannelType,
    limits,
    log::{Erased, SessionHead},
    time::Time,
};

/// What is to be given to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    /// Its name in lists.
    pub id: GrantId,
    /// Who the bearer is.
    pub person: PersonId,
    /// What they may do with it at most.
    pub standing: Standing,
    /// From where they ask.
    pub surface: ChannelType,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// When its bearer gave their passphrase, and how far the installation had come then.
    pub authenticated: Option<(Time, Seq)>,
    /// Whether it is of a browser.
    pub is_page: bool,
    /// The token with which a browser logs in.
    pub token: Option<GrantId>,
    /// The digest of what is kept of it elsewhere, its secret with it.
    pub details: Digest,
}

/// Who asks, and how long ago they gave their passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// Who.
    pub person: PersonId,
    /// How many microseconds ago; nothing, if they did not give it from where they ask.
    pub age_micros: Option<i64>,
    /// How long ago it may be.
    pub age_micros_max: i64,
}

/// What can be asked of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallationCommand {
    /// An administrator adds somebody, who chooses a passphrase with the link.
    Add {
        /// Who.
        person: PersonId,
        /// What they may do.
        roles: BTreeSet<Role>,
        /// The link.
        invitation: Invitation,
        /// Who asks.
        by: Requester,
    },
    /// An administrator gives somebody a new link: their passphrase stands until they choose another with it.
    Invite {
        /// Who.
        person: PersonId,
        /// The link.
        invitation: Invitation,
        /// Who asks.
        by: Requester,
    },
    /// The program gives the owner a link for the first passphrase.
    InviteOwner {
        /// The link.
        invitation: Invitation,
    },
    /// Somebody at the machine chooses the first passphrase, as the owner alone may.
    ChooseFirst {
        /// Who.
        person: PersonId,
        /// The digest of what it is hashed to.
        hash: Digest,
    },
    /// Somebody chooses a passphrase with a link.
    Accept {
        /// The digest of the link's secret.
        secret: Digest,
        /// The digest of what the passphrase is hashed to.
        hash: Digest,
        /// Now.
        now: Time,
    },
    /// Somebody who gave their passphrase chooses another one.
    Change {
        /// Who.
        person: PersonId,
        /// The digest of what the one they gave is hashed to.
        old: Digest,
        /// The digest of what the new one is hashed to.
        hash: Digest,
    },
    /// Somebody at the machine gives a person another passphrase.
    Reset {
        /// Whose.
        person: PersonId,
        /// The digest of what it is hashed to.
        hash: Digest,
        /// Now.
        now: Time,
    },
    /// An administrator says what somebody may do.
    SetRoles {
        /// Who.
        person: PersonId,
        /// What they may do.
        roles: BTreeSet<Role>,
        /// Who asks.
        by: Requester,
    },
    /// An administrator lets somebody use it no more.
    Remove {
        /// Who.
        person: PersonId,
        /// Who asks.
        by: Requester,
    },
    /// Somebody is given a token, a login or a place for an agent.
    Give {
        /// What.
        grant: NewGrant,
        /// Now.
        now: Time,
    },
    /// Somebody gave their passphrase again with a login that they have.
    Renew {
        /// Which.
        id: GrantId,
        /// What they may do.
        standing: Standing,
        /// How far the installation had come when they gave it.
        known: Seq,
        /// Now.
        now: Time,
    },
    /// Somebody takes a token, a login or a place back.
    Revoke {
        /// Which.
        id: GrantId,
        /// With which they ask.
        with: GrantId,
        /// Now.
        now: Time,
    },
    /// A place that an agent of this person held is given to another, or given up.
    EndPlace {
        /// Which.
        id: GrantId,
        /// Whose.
        person: PersonId,
        /// Now.
        now: Time,
    },
    /// Somebody gave their passphrase at a terminal.
    UnlockTerminal {
        /// Who.
        person: PersonId,
        /// Which terminal.
        surface: String,
        /// How far the installation had come when they gave it.
        known: Seq,
    },
    /// The program begins with these settings, and signs with this key.
    Begin {
        /// What is set that security rests on, by name, as digests.
        settings: BTreeMap<String, Digest>,
        /// The public key.
        key: Digest,
    },
    /// An archive is brought in.
    Import {
        /// Its digest.
        archive: Digest,
        /// How many sessions it has.
        sessions: u64,
        /// Whether the operator vouches for it.
        is_vouched: bool,
    },
    /// The chains of decisions of these sessions have come so far.
    TakeHeads(Vec<SessionHead>),
    /// A deleted session is erased.
    Erase(Erased),
    /// What belongs to an owner is erased.
    EraseOwner {
        /// Whose.
        owner: OwnerId,
        /// Who asked for it.
        by: PersonId,
    },
}

/// Why something was refused. A person reads these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountRefusal {
    /// They may not.
    #[error("{person} may not manage people; ask someone with the role admin")]
    NotAnAdmin {
        /// Who asks.
        person: String,
    },
    /// They must give it again.
    #[error(
        "give your passphrase again: this needs one that was given in the last {minutes} minutes"
    )]
    AskAgain {
        /// How long ago it may be.
        minutes: i64,
    },
    /// The name is no name.
    #[error(
        "a person has a name of 1 to {} bytes, without spaces at its ends, control or direction marks",
        limits::PERSON_BYTES_MAX
    )]
    BadName,
    /// There is one.
    #[error("there is a person {person} already; planwright people lists them")]
    AlreadyThere {
        /// Who.
        person: String,
    },
    /// There is none.
    #[error("there is no person {person:?}; planwright people lists them")]
    NoSuchPerson {
        /// Who.
        person: String,
    },
    /// There are too many.
    #[error(
        "there are {} people already, and that is the limit; remove some first",
        limits::PEOPLE_MAX
    )]
    TooMany,
    /// A first passphrase is chosen once.
    #[error(
        "a passphrase was chosen already; log in with it, or change it with planwright passphrase"
    )]
    AlreadyChosen,
    /// Everyone else has a link.
    #[error(
        "the first passphrase is the owner's: choose it with the token of the data directory, or the link that planwright up prints"
    )]
    NotTheOwner,
    /// None was chosen.
    #[error(
        "{person} has chosen no passphrase yet; the owner does so with planwright passphrase, everyone else with their link"
    )]
    NoneChosen {
        /// Who.
        person: String,
    },
    /// The link is of no use.
    #[error("this link was used, has ended, or was never given; ask for a new one")]
    BadLink,
    /// It is another one by now.
    #[error("the passphrase was changed meanwhile; give the current one")]
    Outdated,
    /// Nobody gives the owner a passphrase.
    #[error("the owner is not invited: they change their passphrase with planwright passphrase")]
    OwnerNotInvited,
    /// There is no such grant.
    #[error("there is no such token or login; it was taken back, or has ended")]
    NoSuchGrant,
    /// It is a token.
    #[error("this is a token and no login; get one that decides with POST /api/tokens")]
    NotALogin,
    /// They did not give it.
    #[error("taking back another token needs the passphrase")]
    NeedsPassphrase,
    /// There are too many.
    #[error(
        "{person} has {GRANTS_OF_A_KIND_MAX} tokens of the kind {surface}; take some back first"
    )]
    TooManyGrants {
        /// Who.
        person: String,
        /// From where they are used.
        surface: &'static str,
    },
    /// The owner stays.
    #[error("the owner of the installation can be neither removed nor given fewer roles")]
    OwnerStays,
}

impl AccountRefusal {
    /// The kind, as programs read it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotAnAdmin { .. } => "not_an_admin",
            Self::AskAgain { .. } => "ask_again",
            Self::BadName => "bad_person",
            Self::AlreadyThere { .. } => "already_there",
            Self::NoSuchPerson { .. } => "no_such_person",
            Self::TooMany => "too_many",
            Self::AlreadyChosen => "already_chosen",
            Self::NotTheOwner => "not_the_owner",
            Self::NoneChosen { .. } => "none_chosen",
            Self::BadLink => "bad_link",
            Self::Outdated => "outdated",
            Self::OwnerNotInvited => "owner_not_invited",
            Self::OwnerStays => "owner_stays",
            Self::NoSuchGrant => "no_such_token",
            Self::NotALogin => "not_a_login",
            Self::NeedsPassphrase => "may_not_decide",
            Self::TooManyGrants { .. } => "too_many",
        }
    }
}
