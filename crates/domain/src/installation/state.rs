//! The installation, folded from its events.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    account::{Account, RESET_TOLD_MICROS, Reset, Role},
    command::AccountRefusal,
    event::InstallationEvent,
    grant::{Grant, Terminal},
};
use crate::model::{
    actor::{OWNER, PersonId, Standing},
    digest::{Digest, Encoder},
    id::{GrantId, Seq},
    log::head_after,
    session::CorruptJournal,
    time::Time,
};

/// The version of the fold. A snapshot of another version is discarded.
pub const INSTALLATION_FOLD_VERSION: u32 = 1;

/// The installation, folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// How many entries there are.
    pub version: Seq,
    /// The head of their chain.
    pub head: Digest,
    /// Who uses it.
    pub people: BTreeMap<PersonId, Account>,
    /// The tokens and logins that were given and have not ended.
    pub grants: BTreeMap<GrantId, Grant>,
    /// How many were ever given.
    pub grants_given: u64,
    /// The terminals at which the passphrase was given lately, by surface.
    pub terminals: BTreeMap<String, Terminal>,
    /// What is set that security rests on, by name, as a digest.
    pub settings: BTreeMap<String, Digest>,
    /// The key with which heads were signed last.
    pub key: Option<Digest>,
    /// The last reset.
    pub reset: Option<Reset>,
}

impl Default for Installation {
    /// One to which nothing has happened: its owner is there, and chose no passphrase yet.
    fn default() -> Self {
        let account = new_account(Role::ALL.into(), Seq(0));
        Self {
            version: Seq(0),
            head: beginning(),
            people: [(PersonId(OWNER.into()), account)].into(),
            grants: BTreeMap::new(),
            grants_given: 0,
            terminals: BTreeMap::new(),
            settings: BTreeMap::new(),
            key: None,
            reset: None,
        }
    }
}

/// The head of a log without entries.
#[must_use]
pub fn beginning() -> Digest {
    Encoder::of("audit-log", 1).digest()
}

fn new_account(roles: BTreeSet<Role>, passphrase_since: Seq) -> Account {
    Account { roles, passphrase: None, invitation: None, passphrase_since }
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

    /// Applies a fact that was recorded at this time.
    pub fn evolve(mut self, at: Time, event: &InstallationEvent) -> Result<Self, CorruptJournal> {
        let version = self.version.following();
        self.version = version;
        self.head = head_after(self.head, version, at, &event.entry());
        self.end_grants(|grant| grant.has_ended(at));
        self.terminals.retain(|_, terminal| !terminal.has_ended(at));
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
                account.passphrase_since = version;
                self.end_logins(|other| other == person);
            }
            InstallationEvent::PassphraseReset { person, hash, at } => {
                let account = people.get_mut(person).ok_or_else(nobody)?;
                account.passphrase = Some(*hash);
                // A link may be in the hands of whoever had access before.
                for account in people.values_mut() {
                    account.invitation = None;
                    account.passphrase_since = version;
                }
                self.reset = Some(Reset { person: person.clone(), at: *at });
                self.end_logins(|_| true);
            }
            InstallationEvent::RolesChanged { person, roles, .. } => {
                people.get_mut(person).ok_or_else(nobody)?.roles.clone_from(roles);
            }
            InstallationEvent::PersonRemoved { person, .. } => {
                people.remove(person).ok_or_else(nobody)?;
                self.end_grants(|grant| grant.person == *person);
                self.terminals.retain(|_, terminal| terminal.person != *person);
            }
            InstallationEvent::Granted { id, grant } => {
                people.get(&grant.person).ok_or_else(nobody)?;
                self.grants.insert(*id, grant.clone());
                self.grants_given += 1;
            }
            InstallationEvent::GrantRenewed { id, standing } => {
                let missing = || CorruptJournal::new(version, "a login renewed that is not there");
                let grant = self.grants.get_mut(id).ok_or_else(missing)?;
                (grant.standing, grant.authenticated) = (*standing, Some(at));
            }
            InstallationEvent::GrantRevoked { id, .. } => {
                self.grants.retain(|other, grant| other != id && grant.token != Some(*id));
            }
            InstallationEvent::TerminalUnlocked { person, surface } => {
                let terminal = Terminal { person: person.clone(), given: at };
                self.terminals.insert(surface.clone(), terminal);
            }
            InstallationEvent::SettingsFound { settings } => self.settings.clone_from(settings),
            InstallationEvent::KeyFound { key } => self.key = Some(*key),
            InstallationEvent::Imported { .. }
            | InstallationEvent::HeadTaken(_)
            | InstallationEvent::SessionErased(_)
            | InstallationEvent::OwnerErased { .. } => {}
        }
        Ok(self)
    }

    fn end_grants(&mut self, ends: impl Fn(&Grant) -> bool) {
        let before = self.grants.len();
        self.grants.retain(|_, grant| !ends(grant));
        if self.grants.len() == before {
            return;
        }
        let lives = self.grants.keys().copied().collect::<BTreeSet<_>>();
        // A login that was made with a token ends with it.
        self.grants.retain(|_, grant| grant.token.is_none_or(|token| lives.contains(&token)));
    }

    fn end_logins(&mut self, whose: impl Fn(&PersonId) -> bool) {
        self.end_grants(|grant| grant.is_login() && whose(&grant.person));
        self.terminals.retain(|_, terminal| !whose(&terminal.person));
    }

    /// The state after these events, which were decided together at this time.
    pub fn fold(&self, at: Time, events: &[InstallationEvent]) -> Result<Self, CorruptJournal> {
        self.fold_all(events.iter().map(|event| (at, event)))
    }

    /// The state after these events, each with the time at which it was recorded.
    pub fn fold_all<'a>(
        &self,
        events: impl IntoIterator<Item = (Time, &'a InstallationEvent)>,
    ) -> Result<Self, CorruptJournal> {
        events.into_iter().try_fold(self.clone(), |state, (at, event)| state.evolve(at, event))
    }
}

impl Installation {
    /// A grant that has not ended, and what its bearer may do now.
    #[must_use]
    pub fn grant(&self, id: GrantId, now: Time) -> Option<(&Grant, Standing)> {
        let grant = self.grants.get(&id).filter(|grant| !grant.has_ended(now))?;
        let account = self.account(&grant.person)?;
        Some((grant, grant.standing.min(account.standing())))
    }

    /// When this person gave their passphrase at this terminal, if that is not long ago.
    #[must_use]
    pub fn given_at(&self, person: &PersonId, surface: &str, now: Time) -> Option<Time> {
        let terminal = self.terminals.get(surface)?;
        (terminal.person == *person && !terminal.has_ended(now)).then_some(terminal.given)
    }
}
