//! Tokens, logins and places of agents: the audit log says which are good, and what is told of them is kept beside it.

use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    id::{GrantId, Seq},
    identity::ChannelType,
    installation::{Installation, InstallationCommand, NewGrant},
    time::Time,
};

use crate::{
    commands::{
        accounts::{AccountError, Accounts, Authenticated},
        new_secret,
    },
    ports::access::{AgentGrant, GrantDetails},
};

/// For so long what is told of a grant is kept, though the log does not hold it: it may be about to.
const SETTLED_MICROS: i64 = 10 * 60 * 1_000_000;

/// Who asks with a secret, and what they may do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The name of their grant in lists.
    pub id: GrantId,
    /// What its owner calls it.
    pub name: String,
    /// Who.
    pub person: PersonId,
    /// What they may do.
    pub standing: Standing,
    /// From where they ask.
    pub surface: ChannelType,
    /// When it was given.
    pub created: Time,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// When they last gave their passphrase.
    pub authenticated: Option<Time>,
    /// The digest of the page key, for the login of a browser.
    pub page_key: Option<Digest>,
    /// The place of a foreign agent.
    pub agent: Option<AgentGrant>,
}

/// What somebody is to be given.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What its owner calls it.
    pub name: String,
    /// Who.
    pub person: PersonId,
    /// What they may do with it at most.
    pub standing: Standing,
    /// From where they ask.
    pub surface: ChannelType,
    /// When it ends by itself.
    pub expires: Option<Time>,
    /// When they gave their passphrase, and how far the installation had come then.
    pub authenticated: Option<(Time, Seq)>,
    /// The digest of the page key, for the login of a browser.
    pub page_key: Option<Digest>,
    /// The token with which a browser logs in.
    pub token: Option<GrantId>,
    /// The place of a foreign agent.
    pub agent: Option<AgentGrant>,
}

impl Wanted {
    /// A token of this person that lasts until it is taken back.
    #[must_use]
    pub fn new(name: &str, person: PersonId, standing: Standing, surface: ChannelType) -> Self {
        Self {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            person,
            standing,
            surface,
            expires: None,
            authenticated: None,
            page_key: None,
            token: None,
            agent: None,
        }
    }
}

/// How long the name of a grant may be.
const NAME_CHARS_MAX: usize = 80;

/// What was given, told once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its name in lists.
    pub id: GrantId,
    /// The secret. It is not kept.
    pub secret: String,
}

impl Accounts {
    /// Gives somebody a token, a login or a place.
    pub async fn give(&self, wanted: Wanted) -> Result<Given, AccountError> {
        let secret = new_secret(&*self.ids);
        let id = self.give_for(wanted, &secret).await?;
        Ok(Given { id, secret })
    }

    /// The same, for a secret that is known already.
    pub async fn give_for(&self, wanted: Wanted, secret: &str) -> Result<GrantId, AccountError> {
        let secret = Digest::of(secret.as_bytes());
        self.detached(async move |accounts| {
            let Wanted { name, person, standing, surface, expires, authenticated, .. } = wanted;
            let Wanted { page_key, token, agent, .. } = wanted;
            let (id, now) = (GrantId(accounts.ids.command().0), accounts.clock.now());
            let details = GrantDetails { id, name, created: now, page_key, agent };
            let (is_page, digest) = (page_key.is_some(), details.digest(secret));
            // First, so that nothing is good that cannot be told of; without the entry it opens nothing.
            accounts.access.keep(details, secret).await?;
            let grant = NewGrant {
                id,
                person,
                standing,
                surface,
                expires,
                authenticated,
                is_page,
                token,
                details: digest,
            };
            let after = accounts.append(InstallationCommand::Give { grant, now }).await?;
            accounts.forget_ended(&after, now).await?;
            Ok(id)
        })
        .await
    }

    /// Who asks with this secret, if it is good.
    pub async fn bearer(&self, secret: Digest) -> Result<Option<Bearer>, AccountError> {
        let Some(details) = self.access.find(secret).await? else { return Ok(None) };
        let known = self.installation().await?;
        let found = self.bearer_in(&known, details.clone(), Some(secret));
        if found.is_some() || known.grants.contains_key(&details.id) {
            return Ok(found);
        }
        if details.created.plus_micros(SETTLED_MICROS) < self.clock.now() {
            return Ok(None);
        }
        // Another node gave it a moment ago.
        Ok(self.bearer_in(&*self.current().await?, details, Some(secret)))
    }

    /// Every grant that is good, oldest first.
    pub async fn bearers(&self) -> Result<Vec<Bearer>, AccountError> {
        let installation = self.current().await?;
        let all = self.access.list().await?.into_iter();
        Ok(all.filter_map(|details| self.bearer_in(&installation, details, None)).collect())
    }

    fn bearer_in(
        &self,
        installation: &Installation,
        details: GrantDetails,
        secret: Option<Digest>,
    ) -> Option<Bearer> {
        let (grant, standing) = installation.grant(details.id, self.clock.now())?;
        if secret.is_some_and(|secret| details.digest(secret) != grant.details) {
            return None;
        }
        let GrantDetails { id, name, page_key, agent, .. } = details;
        Some(Bearer {
            id,
            name,
            person: grant.person.clone(),
            standing,
            surface: grant.surface,
            created: grant.created,
            expires: grant.expires,
            authenticated: grant.authenticated,
            page_key,
            agent,
        })
    }

    /// Somebody gave their passphrase again with a login that they have.
    pub async fn renew(&self, id: GrantId, known: &Authenticated) -> Result<(), AccountError> {
        let (standing, version) = (known.standing, known.installation.version);
        let now = self.clock.now();
        let renew = InstallationCommand::Renew { id, standing, known: version, now };
        self.append(renew).await.map(drop)
    }

    /// Somebody who has one grant takes another, or that one, back.
    pub async fn revoke(&self, id: GrantId, with: GrantId) -> Result<(), AccountError> {
        let now = self.clock.now();
        let after = self.append(InstallationCommand::Revoke { id, with, now }).await?;
        self.forget_ended(&after, now).await
    }

    /// A place that an agent of this person held is given up.
    pub async fn end_place(&self, id: GrantId, person: PersonId) -> Result<(), AccountError> {
        let now = self.clock.now();
        let after = self.append(InstallationCommand::EndPlace { id, person, now }).await?;
        self.forget_ended(&after, now).await
    }

    /// Somebody gave their passphrase at a terminal.
    pub async fn unlock_terminal(
        &self,
        person: &PersonId,
        surface: &str,
        known: &Authenticated,
    ) -> Result<(), AccountError> {
        let (person, surface) = (person.clone(), surface.to_owned());
        let known = known.installation.version;
        let unlock = InstallationCommand::UnlockTerminal { person, surface, known };
        self.append(unlock).await.map(drop)
    }

    /// Forgets what is told of grants that are good no more. They open nothing in any case.
    async fn forget_ended(&self, after: &Installation, now: Time) -> Result<(), AccountError> {
        let good = after.grants.keys().copied().collect();
        Ok(self.access.keep_only(&good, now.plus_micros(-SETTLED_MICROS)).await?)
    }
}
