//! Which conversation a chat talks to. Resolved before every command; delivery never stands in for it.

use std::sync::PoisonError;

use planwright_domain::{
    actor::{Person, PersonId, Standing, Surface},
    id::{CommandId, OwnerId},
    identity::{ConversationKey, IdentityRefusal, SessionIdentity, SessionKey, Transport},
    owner::{self, Moved, Owner, OwnerCommand, Resolution},
    refusal::Refusal,
    session::life::Life,
    time::Time,
};

use crate::{commands::Commands, metrics::transport_hash, ports::journal::JournalError};

impl Commands {
    /// The person of this name at this surface. Who was not known yet becomes an owner.
    pub async fn person(
        &self,
        name: &PersonId,
        surface: Surface,
        standing: Standing,
        authenticated: Option<Time>,
    ) -> Result<Person, JournalError> {
        let known = self.owners.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        let owner = match known {
            Some(owner) => owner,
            None => {
                let fresh = OwnerId(self.ids.opaque());
                let owner = self.journal.owner_of(name, fresh).await?;
                let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
                owners.insert(name.clone(), owner);
                owner
            }
        };
        Ok(Person { owner, id: name.clone(), surface, standing, authenticated })
    }

    /// Decides a command on what belongs to an owner.
    pub async fn own(
        &self,
        owner: OwnerId,
        command: OwnerCommand,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        let decide = move |owner: &Owner| owner::decide(owner, &command);
        let now = self.clock.now();
        self.journal.append_owner(owner, now, Box::new(decide)).await
    }

    /// The conversation that this chat of this person talks to. A pointer to one that is not there or is not
    /// theirs is repaired first.
    pub async fn resolve(
        &self,
        person: OwnerId,
        transport: &Transport,
    ) -> Result<SessionKey, JournalError> {
        let journal = &self.journal;
        let owner = journal.owner(person).await?;
        let of_key = |key| SessionKey::new(person, SessionIdentity::new(transport.channel, key));
        let session = match owner.pointers.get(transport) {
            Some(key) => Some((key, journal.session(&of_key(key.clone())).await?)),
            None => None,
        };
        let named = session.as_ref().map(|(key, session)| (*key, &**session));
        if let Some((key, session)) = named
            && owner::is_reachable(person, session)
        {
            return Ok(of_key(key.clone()));
        }
        let newest = journal.newest(person, transport.channel).await?;
        let fresh = self.new_key().map_err(|error| JournalError::Engine(Box::new(error)))?;
        let key = match owner::resolve(person, named, newest.map(|newest| newest.identity), fresh) {
            Resolution::Stands(key) => return Ok(of_key(key)),
            Resolution::Repair(key) => key,
        };
        if named.is_some() {
            metrics::counter!("routing.session_mismatch.blocked.count").increment(1);
            let hash = transport_hash(transport);
            tracing::info!(transport_chat_hash = hash, event = "pointer_repaired");
        }
        let (why, chat) = (Moved::Repaired, transport.clone());
        let bind = OwnerCommand::Bind { transport: chat, key: key.clone(), why };
        // A pointer that cannot be kept is no reason not to answer.
        let stored = self.own(person, bind).await?.ok();
        let stored = stored.and_then(|owner| owner.pointers.get(transport).cloned());
        Ok(of_key(stored.unwrap_or(key)))
    }

    /// Lets a chat talk to another conversation of this person: one that is theirs, or a new one.
    pub async fn bind(
        &self,
        person: &Person,
        transport: &Transport,
        key: &ConversationKey,
    ) -> Result<Result<SessionKey, Refusal>, JournalError> {
        let identity = SessionIdentity::new(transport.channel, key.clone());
        let moved = SessionKey::new(person.owner, identity.clone());
        let session = self.queries.session(&moved).await?;
        if !owner::is_reachable(person.owner, &session) {
            metrics::counter!("routing.session_mismatch.blocked.count").increment(1);
            let identity = identity.to_string();
            let deleted = session.life == Life::Deleted;
            let exists = session.version.0 > 0;
            return Ok(Err(match (deleted, exists) {
                (true, _) => Refusal::SessionDeleted { identity },
                (false, true) => Refusal::NotYours { identity },
                (false, false) => Refusal::LegacyKeyIsNotNew { identity },
            }));
        }
        let (transport, key) = (transport.clone(), key.clone());
        let bind = OwnerCommand::Bind { transport, key, why: Moved::Requested };
        Ok(self.own(person.owner, bind).await?.map(|_| moved))
    }

    /// A key that no conversation had before.
    pub fn new_key(&self) -> Result<ConversationKey, IdentityRefusal> {
        key_of(self.ids.command())
    }
}

/// The key of the session that a command begins.
pub fn key_of(command: CommandId) -> Result<ConversationKey, IdentityRefusal> {
    ConversationKey::new(&format!("talk-{}", &command.0.simple().to_string()[20..]))
}
