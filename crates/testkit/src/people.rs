//! People of tests by their names, and what is theirs.

use planwright_domain::{
    actor::{OWNER, Person, PersonId, Standing},
    digest::Digest,
    id::OwnerId,
    identity::{IdentityRefusal, SessionKey},
};
use planwright_runtime::ports::journal::{Journal, JournalError};
use uuid::Uuid;

/// The id of whoever has this name in tests.
#[must_use]
pub fn owner_id(name: &str) -> OwnerId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Digest::of(name.as_bytes()).0[..16]);
    OwnerId(Uuid::from_bytes(bytes))
}

/// A person of this name.
#[must_use]
pub fn person(name: &str, surface: &str, standing: Standing) -> Person {
    Person::new(owner_id(name), name, surface, standing)
}

/// A session of whoever is called ada, by its identity.
pub fn ada_key(identity: &str) -> Result<SessionKey, IdentityRefusal> {
    SessionKey::named(identity, owner_id("ada"))
}

/// A session of the one person whom every installation knows, in an installation of tests.
pub fn owners_key(identity: &str) -> Result<SessionKey, IdentityRefusal> {
    SessionKey::named(identity, owner_id(OWNER))
}

/// The same in any installation.
pub async fn key_in(journal: &dyn Journal, identity: &str) -> anyhow::Result<SessionKey> {
    let owner = journal.owner_of(&PersonId(OWNER.into()), owner_id(OWNER)).await?;
    Ok(SessionKey::named(identity, owner)?)
}

/// Lets a journal know these people.
pub async fn introduce(journal: &dyn Journal, names: &[&str]) -> Result<(), JournalError> {
    for name in names {
        journal.owner_of(&PersonId((*name).into()), owner_id(name)).await?;
    }
    Ok(())
}
