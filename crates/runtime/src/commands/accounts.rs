//! Accounts: who uses the installation, the passphrase that each chose, and whether a grant is still good.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::{
    actor::{OWNER, Person, PersonId, Standing},
    command::{HoldReason, Issued, SessionCommand, SystemCommand},
    digest::Digest,
    identity::SessionKey,
    installation::{
        self, Account, AccountRefusal, Installation, InstallationCommand, Invitation, Requester,
        Role,
    },
    time::Time,
};

use crate::{
    commands::{Commands, dispatch::dispatch, new_secret},
    ports::{
        Clock, Ids,
        access::{Access, AccessError},
        journal::{Journal, JournalError},
    },
};

/// How long the link works that the program prints at its first start.
const FIRST_LINK_MICROS: i64 = 10 * 60 * 1_000_000;
/// How long an invitation works.
const INVITATION_MICROS: i64 = 7 * 86_400 * 1_000_000;
/// The longest passphrase that is looked at.
const PASSPHRASE_BYTES_MAX: usize = 4_096;
/// How many sessions are read at once.
const PAGE: usize = 256;

/// Why something about an account was not done.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// It was refused.
    #[error(transparent)]
    Refused(#[from] AccountRefusal),
    /// The passphrase is another one.
    #[error("the passphrase is not the one that was chosen, or there is no such person")]
    WrongPassphrase,
    /// What passphrases are hashed to cannot be reached.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A link with which somebody chooses a passphrase, told once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its secret.
    pub secret: String,
    /// Until when it works.
    pub until: Time,
}

/// Somebody who gave their passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// What they may do.
    pub standing: Standing,
    /// The installation at that moment.
    pub installation: Arc<Installation>,
}

/// The accounts of an installation.
#[derive(Clone)]
pub struct Accounts {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) access: Arc<dyn Access>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
}

impl Accounts {
    /// The accounts in this journal, with passphrases that are kept there.
    #[must_use]
    pub fn new(
        journal: Arc<dyn Journal>,
        access: Arc<dyn Access>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self { journal, access, clock, ids }
    }

    /// What belongs to the installation; what another node stored is seen within a second.
    pub async fn installation(&self) -> Result<Arc<Installation>, JournalError> {
        self.journal.installation().await
    }

    /// The same, as it stands at this moment, whoever stored it.
    pub(super) async fn current(&self) -> Result<Arc<Installation>, AccountError> {
        let nothing = |_: &Installation| Ok(Vec::new());
        Ok(self.journal.append_installation(self.clock.now(), Box::new(nothing)).await??)
    }

    /// Whether the owner chose a passphrase: without one, nobody decides.
    pub async fn is_chosen(&self) -> Result<bool, AccountError> {
        Ok(self.current().await?.is_chosen())
    }

    /// Whether this is the person's passphrase, and what they may do with it.
    pub async fn authenticate(
        &self,
        person: &PersonId,
        passphrase: &str,
    ) -> Result<Authenticated, AccountError> {
        // Looked at first: whether there is such a person must not show in how long it takes.
        if passphrase.len() > PASSPHRASE_BYTES_MAX {
            return Err(AccountError::WrongPassphrase);
        }
        let installation = self.current().await?;
        if person.0 == OWNER && !installation.is_chosen() {
            return Err(AccountRefusal::NoneChosen { person: person.0.clone() }.into());
        }
        let account = installation.account(person);
        // Whoever is not there is looked up as long as whoever is.
        let hash = account.and_then(|account| account.passphrase);
        let fits = self.access.fits(hash, passphrase).await?;
        let standing = account.filter(|_| fits).map(Account::standing);
        let standing = standing.ok_or(AccountError::WrongPassphrase)?;
        Ok(Authenticated { standing, installation })
    }

    /// Somebody at the machine chooses the first passphrase, as the owner alone may.
    pub async fn choose_first(
        &self,
        person: &PersonId,
        passphrase: &str,
    ) -> Result<(), AccountError> {
        // Hashing takes long, and is for nothing where it is refused.
        self.installation().await?.may_choose_first(person)?;
        let command = |hash| InstallationCommand::ChooseFirst { person: person.clone(), hash };
        self.choose(passphrase, command).await.map(drop)
    }

    /// Somebody chooses a passphrase with a link; who.
    pub async fn accept(&self, secret: &str, passphrase: &str) -> Result<PersonId, AccountError> {
        let (secret, now) = (Digest::of(secret.trim().as_bytes()), self.clock.now());
        if installation::invited(&*self.current().await?, secret, now).is_none() {
            return Err(AccountRefusal::BadLink.into());
        }
        self.choose(passphrase, |hash| InstallationCommand::Accept { secret, hash, now }).await
    }

    /// Somebody who knows their passphrase chooses another one.
    pub async fn change(
        &self,
        person: &PersonId,
        given: &str,
        passphrase: &str,
    ) -> Result<(), AccountError> {
        let known = self.authenticate(person, given).await?;
        let old = known.installation.account(person).and_then(|account| account.passphrase);
        let old = old.ok_or(AccountError::WrongPassphrase)?;
        let person = person.clone();
        let command = |hash| InstallationCommand::Change { person, old, hash };
        self.choose(passphrase, command).await.map(drop)
    }

    /// Somebody at the machine gives a person another passphrase: all logins end, nothing that was approved goes on by
    /// itself, and everyone is told. So long after it the last login has ended, wherever it was used.
    pub async fn reset(
        &self,
        person: &PersonId,
        passphrase: &str,
        logins_end: Duration,
    ) -> Result<(), AccountError> {
        if self.current().await?.account(person).is_none() {
            return Err(AccountRefusal::NoSuchPerson { person: person.0.clone() }.into());
        }
        let hash = self.access.keep_passphrase(passphrase).await?;
        // Before, so that nothing goes on though this is cut off; and after, for what a login did meanwhile.
        self.withdraw_approvals().await?;
        let (person, now) = (person.clone(), self.clock.now());
        self.choose_kept(hash, InstallationCommand::Reset { person, hash, now }).await?;
        tokio::time::sleep(logins_end).await;
        Ok(self.withdraw_approvals().await?)
    }

    /// A link for the owner's first passphrase; none, if one was chosen.
    pub async fn first_link(&self) -> Result<Option<Link>, AccountError> {
        let (link, invitation) = self.new_link(FIRST_LINK_MICROS);
        match self.decide(InstallationCommand::InviteOwner { invitation }).await {
            Ok(_) => Ok(Some(link)),
            Err(AccountError::Refused(AccountRefusal::AlreadyChosen)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a person, who chooses a passphrase with the link.
    pub async fn add(
        &self,
        by: Requester,
        person: PersonId,
        roles: BTreeSet<Role>,
    ) -> Result<Link, AccountError> {
        let (link, invitation) = self.new_link(INVITATION_MICROS);
        self.decide(InstallationCommand::Add { person, roles, invitation, by }).await?;
        Ok(link)
    }

    /// Gives a person a new link; their passphrase stands until they choose another with it.
    pub async fn invite(&self, by: Requester, person: PersonId) -> Result<Link, AccountError> {
        let (link, invitation) = self.new_link(INVITATION_MICROS);
        self.decide(InstallationCommand::Invite { person, invitation, by }).await?;
        Ok(link)
    }

    /// Says what a person may do.
    pub async fn set_roles(
        &self,
        by: Requester,
        person: PersonId,
        roles: BTreeSet<Role>,
    ) -> Result<(), AccountError> {
        self.decide(InstallationCommand::SetRoles { person, roles, by }).await.map(drop)
    }

    /// Lets a person use the installation no more.
    pub async fn remove(&self, by: Requester, person: PersonId) -> Result<(), AccountError> {
        self.detached(async move |accounts| {
            let before = accounts.current().await?;
            let old = before.account(&person).and_then(|account| account.passphrase);
            accounts.decide(InstallationCommand::Remove { person: person.clone(), by }).await?;
            accounts.forget(old).await
        })
        .await
    }

    async fn decide(
        &self,
        command: InstallationCommand,
    ) -> Result<Arc<Installation>, AccountError> {
        self.detached(async move |accounts| accounts.append(command).await).await
    }

    /// Decides and stores; what belongs to the installation then.
    pub(super) async fn append(
        &self,
        command: InstallationCommand,
    ) -> Result<Arc<Installation>, AccountError> {
        let decide = move |before: &Installation| installation::decide(before, &command);
        Ok(self.journal.append_installation(self.clock.now(), Box::new(decide)).await??)
    }

    /// Does this whether or not the caller waits for it: what a client who went away asked for is done wholly or not at all.
    pub(super) async fn detached<T, F>(
        &self,
        work: impl FnOnce(Self) -> F,
    ) -> Result<T, AccountError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AccountError>> + Send + 'static,
    {
        let working = tokio::spawn(work(self.clone()));
        working.await.map_err(|broke| JournalError::Engine(Box::new(broke)))?
    }

    /// Chooses a passphrase, for whom the command says; who that is. What it is hashed to is kept first, so that nobody has
    /// one that cannot be checked.
    async fn choose(
        &self,
        passphrase: &str,
        command: impl FnOnce(Digest) -> InstallationCommand,
    ) -> Result<PersonId, AccountError> {
        let hash = self.access.keep_passphrase(passphrase).await?;
        self.choose_kept(hash, command(hash)).await
    }

    /// The same, once it is kept. What it replaces is forgotten.
    async fn choose_kept(
        &self,
        hash: Digest,
        command: InstallationCommand,
    ) -> Result<PersonId, AccountError> {
        self.detached(async move |accounts| {
            let replaced = Arc::new(Mutex::new(None));
            let decided = replaced.clone();
            let decide = move |before: &Installation| {
                let events = installation::decide(before, &command)?;
                // The last one counts: a journal may have to ask more than once.
                let chosen = events.iter().find_map(|event| event.passphrase().map(|(who, _)| who));
                let old = chosen.and_then(|person| before.account(person)?.passphrase);
                *decided.lock().unwrap_or_else(PoisonError::into_inner) =
                    chosen.cloned().zip(Some(old));
                Ok(events)
            };
            let now = accounts.clock.now();
            let stored = accounts.journal.append_installation(now, Box::new(decide)).await?;
            if let Err(refusal) = stored {
                accounts.forget(Some(hash)).await?;
                return Err(refusal.into());
            }
            let chosen = replaced.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (person, old) = chosen.ok_or(AccountError::WrongPassphrase)?;
            accounts.forget(old).await?;
            Ok(person)
        })
        .await
    }

    async fn forget(&self, hash: Option<Digest>) -> Result<(), AccountError> {
        match hash {
            Some(hash) => Ok(self.access.forget_passphrase(hash).await?),
            None => Ok(()),
        }
    }

    fn new_link(&self, micros: i64) -> (Link, Invitation) {
        let (secret, until) = (new_secret(&*self.ids), self.clock.now().plus_micros(micros));
        let invitation = Invitation { secret: Digest::of(secret.as_bytes()), until };
        (Link { secret, until }, invitation)
    }

    async fn withdraw_approvals(&self) -> Result<(), JournalError> {
        let mut after: Option<SessionKey> = None;
        loop {
            let page = self.journal.active(None, Time(0), after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.session.clone());
            for row in page {
                let by = Person::new(row.session.owner, OWNER, "cli reset", Standing::Speaks);
                let hold = SystemCommand::Hold { by, why: HoldReason::PassphraseReset };
                let (id, at) = (self.ids.command(), self.clock.now());
                let issued = Issued::new(id, at, SessionCommand::System(hold));
                match dispatch(&*self.journal, &row.session, issued).await {
                    // Nothing goes on in a session that cannot be read.
                    Err(error) if error.is_corrupt() || error.is_newer() => {
                        tracing::warn!(session = %row.session, %error, event = "session_not_held");
                    }
                    held => drop(held?),
                }
            }
        }
    }
}

impl Commands {
    /// The accounts of the installation, with passphrases that are kept there.
    #[must_use]
    pub fn accounts(&self, access: Arc<dyn Access>) -> Accounts {
        Accounts::new(self.journal.clone(), access, self.clock.clone(), self.ids.clone())
    }

    /// A person who asks to change who uses the installation.
    #[must_use]
    pub fn requester(&self, person: &Person) -> Requester {
        let now = self.clock.now();
        Requester {
            person: person.id.clone(),
            age_micros: person.authenticated.map(|given| now.0.saturating_sub(given.0)),
            age_micros_max: self.dispatcher.policy().risky_age_micros_max.unwrap_or(i64::MAX),
        }
    }
}
