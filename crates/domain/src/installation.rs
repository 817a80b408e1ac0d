//! What belongs to the installation and to no session: the people who use it, what each may do, and which passphrase each
//! chose.
//!
//! It is a stream of its own. A passphrase is never in it, nor is what it is hashed to: only the digest of that hash, so
//! that nobody replaces a passphrase by writing a file.
//!
//! Must always hold:
//! - `one-choice`: a first passphrase is chosen once, by a person who was invited or at the first run; from then on it is
//!   changed by whoever knows it, or reset where everyone sees it.
//! - `an-owner`: the owner is always there, and may always do everything.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    hidden::is_hidden,
    id::Seq,
    limits,
    policy::check_age,
    session::CorruptJournal,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// What they may do.
    pub roles: BTreeSet<Role>,
    /// The digest of what their passphrase is hashed to, once they chose one.
    pub passphrase: Option<Digest>,
    /// The link with which they choose one.
    pub invitation: Option<Invitation>,
    /// Logins that were given before the installation came so far have ended: their passphrase is another one since.
    pub logins_since: Seq,
    /// Nothing that was given before the installation came so far is theirs: it was of somebody of this name who left.
    pub added: Seq,
}

/// A link that works once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Somebody who was given a token or a login.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Who.
    pub person: &'a PersonId,
    /// What it allows at most.
    pub standing: Standing,
    /// Whether it ends when the passphrase is another one.
    pub is_login: bool,
    /// How far the installation had come when it was given.
    pub given: Seq,
}

/// The last reset of a passphrase by somebody who did not know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// Whose.
    pub person: PersonId,
    /// When.
    pub at: Time,
}

/// How long people are told of a reset.
pub const RESET_TOLD_MICROS: i64 = 7 * 86_400 * 1_000_000;

/// The installation, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// How many events there are.
    pub version: Seq,
    /// Who uses it.
    pub people: BTreeMap<PersonId, Account>,
    /// The last reset.
    pub reset: Option<Reset>,
}

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
            | Self::PersonRemoved { .. } => None,
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
        }
    }
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
        }
    }
}

impl Default for Installation {
    /// One to which nothing has happened: its owner is there, and chose no passphrase yet.
    fn default() -> Self {
        let account = new_account(Role::ALL.into(), Seq(0));
        Self { version: Seq(0), people: [(PersonId(OWNER.into()), account)].into(), reset: None }
    }
}

fn new_account(roles: BTreeSet<Role>, added: Seq) -> Account {
    Account { roles, passphrase: None, invitation: None, logins_since: added, added }
}

impl Installation {
    /// The account of this name.
    #[must_use]
    pub fn account(&self, person: &PersonId) -> Option<&Account> {
        self.people.get(person)
    }

    /// Whether the owner chose a passphrase: without one, nobody decides.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        self.people.get(&PersonId(OWNER.into())).is_some_and(|owner| owner.passphrase.is_some())
    }

    /// Whether this person may choose the first passphrase without a link.
    pub fn may_choose_first(&self, person: &PersonId) -> Result<(), AccountRefusal> {
        if person.0 != OWNER {
            return Err(AccountRefusal::NotTheOwner);
        }
        if self.is_chosen() { Err(AccountRefusal::AlreadyChosen) } else { Ok(()) }
    }

    /// What the holder of something that was given may do now; nothing, if their account is gone, was somebody else's when it
    /// was given, or has another passphrase since.
    #[must_use]
    pub fn standing_of(&self, holder: &Holder<'_>) -> Option<Standing> {
        let account = self.account(holder.person)?;
        let is_theirs = (account.added..=self.version).contains(&holder.given);
        let has_ended = holder.is_login && holder.given < account.logins_since;
        (is_theirs && !has_ended).then(|| holder.standing.min(account.standing()))
    }

    /// The accounts that this person sees: everyone's, if they manage people, else their own.
    pub fn seen_by<'a>(
        &'a self,
        person: &'a PersonId,
    ) -> impl Iterator<Item = (&'a PersonId, &'a Account)> {
        let sees_all = self.account(person).is_some_and(|account| account.may(Role::Admin));
        self.people.iter().filter(move |(other, _)| sees_all || *other == person)
    }

    /// The reset that people are told of now.
    #[must_use]
    pub fn recent_reset(&self, now: Time) -> Option<&Reset> {
        self.reset.as_ref().filter(|reset| now < reset.at.plus_micros(RESET_TOLD_MICROS))
    }

    /// Applies a fact.
    pub fn evolve(mut self, event: &InstallationEvent) -> Result<Self, CorruptJournal> {
        self.version = self.version.following();
        let version = self.version;
        let people = &mut self.people;
        let nobody = || CorruptJournal::new(version, "something about a person who is not there");
        match event {
            InstallationEvent::PersonAdded { person, roles, .. } => {
                people.insert(person.clone(), new_account(roles.clone(), version));
            }
            InstallationEvent::PersonInvited { person, invitation, .. } => {
                people.get_mut(person).ok_or_else(nobody)?.invitation = Some(*invitation);
            }
            InstallationEvent::PassphraseChosen { person, hash } => {
                let account = people.get_mut(person).ok_or_else(nobody)?;
                account.passphrase = Some(*hash);
                account.invitation = None;
            }
            InstallationEvent::PassphraseChanged { person, hash } => {
                let account = people.get_mut(person).ok_or_else(nobody)?;
                account.passphrase = Some(*hash);
                account.invitation = None;
                account.logins_since = version;
            }
            InstallationEvent::PassphraseReset { person, hash, at } => {
                let account = people.get_mut(person).ok_or_else(nobody)?;
                account.passphrase = Some(*hash);
                // A link may be in the hands of whoever had access before.
                for account in people.values_mut() {
                    account.invitation = None;
                    account.logins_since = version;
                }
                self.reset = Some(Reset { person: person.clone(), at: *at });
            }
            InstallationEvent::RolesChanged { person, roles, .. } => {
                people.get_mut(person).ok_or_else(nobody)?.roles.clone_from(roles);
            }
            InstallationEvent::PersonRemoved { person, .. } => {
                people.remove(person).ok_or_else(nobody)?;
            }
        }
        Ok(self)
    }

    /// The state after these events.
    pub fn fold(&self, events: &[InstallationEvent]) -> Result<Self, CorruptJournal> {
        events.iter().try_fold(self.clone(), Self::evolve)
    }
}

/// Decides one command: events, or a refusal in words. Pure. What is the case already has no events.
pub fn decide(
    installation: &Installation,
    command: &InstallationCommand,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    let known = |person: &PersonId| {
        let missing = || AccountRefusal::NoSuchPerson { person: person.0.clone() };
        installation.account(person).ok_or_else(missing)
    };
    Ok(match command.clone() {
        InstallationCommand::Add { person, roles, invitation, by } => {
            administers(installation, &by)?;
            add(installation, person, roles, invitation, by.person)?
        }
        InstallationCommand::Invite { person, invitation, by } => {
            administers(installation, &by)?;
            known(&person)?;
            if person.0 == OWNER {
                return Err(AccountRefusal::OwnerNotInvited);
            }
            vec![InstallationEvent::PersonInvited { person, invitation, by: Some(by.person) }]
        }
        InstallationCommand::InviteOwner { invitation } => {
            if installation.is_chosen() {
                return Err(AccountRefusal::AlreadyChosen);
            }
            let person = PersonId(OWNER.into());
            vec![InstallationEvent::PersonInvited { person, invitation, by: None }]
        }
        InstallationCommand::ChooseFirst { person, hash } => {
            installation.may_choose_first(&person)?;
            vec![InstallationEvent::PassphraseChosen { person, hash }]
        }
        InstallationCommand::Accept { secret, hash, now } => {
            let (person, account) =
                invited(installation, secret, now).ok_or(AccountRefusal::BadLink)?;
            let person = person.clone();
            vec![match account.passphrase {
                None => InstallationEvent::PassphraseChosen { person, hash },
                Some(_) => InstallationEvent::PassphraseChanged { person, hash },
            }]
        }
        InstallationCommand::Change { person, old, hash } => match known(&person)?.passphrase {
            None => return Err(AccountRefusal::NoneChosen { person: person.0 }),
            Some(holds) if holds != old => return Err(AccountRefusal::Outdated),
            Some(_) => vec![InstallationEvent::PassphraseChanged { person, hash }],
        },
        InstallationCommand::Reset { person, hash, now } => {
            known(&person)?;
            vec![InstallationEvent::PassphraseReset { person, hash, at: now }]
        }
        InstallationCommand::SetRoles { person, roles, by } => {
            administers(installation, &by)?;
            let roles = with_speech(roles);
            if known(&person)?.roles == roles {
                return Ok(Vec::new());
            }
            if person.0 == OWNER {
                return Err(AccountRefusal::OwnerStays);
            }
            vec![InstallationEvent::RolesChanged { person, roles, by: by.person }]
        }
        InstallationCommand::Remove { person, by } => {
            administers(installation, &by)?;
            known(&person)?;
            if person.0 == OWNER {
                return Err(AccountRefusal::OwnerStays);
            }
            vec![InstallationEvent::PersonRemoved { person, by: by.person }]
        }
    })
}

fn add(
    installation: &Installation,
    person: PersonId,
    roles: BTreeSet<Role>,
    invitation: Invitation,
    by: PersonId,
) -> Result<Vec<InstallationEvent>, AccountRefusal> {
    named_well(&person)?;
    if installation.account(&person).is_some() {
        return Err(AccountRefusal::AlreadyThere { person: person.0 });
    }
    if installation.people.len() >= limits::PEOPLE_MAX {
        return Err(AccountRefusal::TooMany);
    }
    let (roles, named) = (with_speech(roles), person.clone());
    let added = InstallationEvent::PersonAdded { person: named, roles, by: by.clone() };
    Ok(vec![added, InstallationEvent::PersonInvited { person, invitation, by: Some(by) }])
}

/// Who was given the link with this secret, if it still works.
#[must_use]
pub fn invited(
    installation: &Installation,
    secret: Digest,
    now: Time,
) -> Option<(&PersonId, &Account)> {
    let fits = |account: &Account| {
        account.invitation.is_some_and(|link| link.secret == secret && now < link.until)
    };
    installation.people.iter().find(|(_, account)| fits(account))
}

fn administers(installation: &Installation, by: &Requester) -> Result<(), AccountRefusal> {
    let Requester { person, age_micros, age_micros_max } = by;
    if !installation.account(person).is_some_and(|account| account.may(Role::Admin)) {
        return Err(AccountRefusal::NotAnAdmin { person: person.0.clone() });
    }
    check_age(*age_micros, *age_micros_max).map_err(|minutes| AccountRefusal::AskAgain { minutes })
}

/// Everyone speaks.
fn with_speech(mut roles: BTreeSet<Role>) -> BTreeSet<Role> {
    roles.insert(Role::Speak);
    roles
}

/// Whether a person may have this name: others read it beside what was decided.
pub fn named_well(person: &PersonId) -> Result<(), AccountRefusal> {
    let name = &person.0;
    let fits = (1..=limits::PERSON_BYTES_MAX).contains(&name.len())
        && name.trim() == name
        // Parts of a path that clients leave out, and names that are read as the owner's.
        && name.chars().any(|character| character != '.')
        && (name == OWNER || !name.eq_ignore_ascii_case(OWNER))
        && !name.chars().any(is_hidden);
    if fits { Ok(()) } else { Err(AccountRefusal::BadName) }
}
