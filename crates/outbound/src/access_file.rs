//! Who may do what, in private files of the data directory: the passphrase, the terminals that gave
//! it lately, and the digests of the tokens that were given out.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, RwLock},
};

use async_trait::async_trait;
use planwright_domain::{digest::Digest, time::Time};
use planwright_runtime::ports::access::{Access, AccessError, Grant, Room, TICKETS_MAX, Ticket};
use uuid::Uuid;

use crate::{durable_file, passphrase};

/// How long a terminal is remembered.
const REMEMBERED_MICROS: i64 = 15 * 60 * 1_000_000;

/// Access kept in files of one data directory.
#[derive(Debug)]
pub struct FileAccess {
    directory: PathBuf,
    grants: RwLock<HashMap<Digest, Grant>>,
    tickets: Mutex<HashMap<Digest, Ticket>>,
    /// The hash of the passphrase, as it was when this process began or as it was chosen since. Nobody makes this process
    /// forget that one was chosen, or take another, by moving files.
    passphrase: RwLock<Option<String>>,
}

impl FileAccess {
    /// The access that is kept in this directory. A file that others can read is refused.
    pub fn open(directory: &Path) -> Result<Self, AccessError> {
        for name in ["passphrase", "unlocked", "tokens"] {
            let path = directory.join(name);
            if let Ok(there) = fs::metadata(&path)
                && there.permissions().mode() & 0o077 != 0
            {
                return Err(AccessError::Refused(format!(
                    "others can read {0}; run: chmod 600 {0}",
                    path.display()
                )));
            }
        }
        let grants = match fs::read_to_string(directory.join("tokens")) {
            Ok(text) => {
                let kept: Vec<(Digest, Grant)> = serde_json::from_str(&text).map_err(|error| {
                    AccessError::Refused(format!(
                        "{} is damaged: {error}",
                        directory.join("tokens").display()
                    ))
                })?;
                kept.into_iter().collect()
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HashMap::new(),
            Err(error) => return Err(AccessError::Refused(error.to_string())),
        };
        let passphrase = match fs::read_to_string(directory.join("passphrase")) {
            Ok(hash) => Some(hash),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(AccessError::Refused(error.to_string())),
        };
        Ok(Self {
            directory: directory.to_owned(),
            grants: RwLock::new(grants),
            tickets: Mutex::default(),
            passphrase: RwLock::new(passphrase),
        })
    }

    /// Whether a passphrase was chosen.
    #[must_use]
    pub fn has_passphrase(&self) -> bool {
        self.hash().is_some()
    }

    fn hash(&self) -> Option<String> {
        self.passphrase.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Chooses the passphrase.
    pub fn choose_passphrase(&self, given: &str) -> Result<(), AccessError> {
        let hash = passphrase::hash(given)?;
        write_private(&self.directory.join("passphrase"), hash.as_bytes())?;
        *self.passphrase.write().unwrap_or_else(PoisonError::into_inner) = Some(hash);
        Ok(())
    }

    /// Whether this is the passphrase that was chosen. Takes a while, on purpose.
    pub fn matches(&self, given: &str) -> Result<bool, AccessError> {
        passphrase::fits(given, &self.hash().ok_or_else(none_chosen)?)
    }

    /// Remembers that the passphrase was given at this surface.
    pub fn remember(&self, surface: &str, now: Time) -> Result<(), AccessError> {
        let mut remembered = self.remembered();
        remembered.retain(|_, until| *until > now.0);
        remembered.insert(surface.to_owned(), now.0 + REMEMBERED_MICROS);
        let text = serde_json::to_string(&remembered)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        write_private(&self.directory.join("unlocked"), text.as_bytes())
    }

    /// Whether the passphrase was given at this surface not long ago.
    #[must_use]
    pub fn is_remembered(&self, surface: &str, now: Time) -> bool {
        let until = self.remembered().get(surface).copied();
        until.is_some_and(|until| (now.0..=now.0 + REMEMBERED_MICROS).contains(&until))
    }

    fn remembered(&self) -> BTreeMap<String, i64> {
        let text = fs::read_to_string(self.directory.join("unlocked")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Every grant there is, oldest first.
    #[must_use]
    pub fn grants(&self) -> Vec<Grant> {
        let mut grants: Vec<_> =
            self.grants.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        grants.sort_by_key(|grant| grant.created);
        grants
    }

    fn store(&self, grants: &HashMap<Digest, Grant>) -> Result<(), AccessError> {
        let kept: Vec<_> = grants.iter().collect();
        let text = serde_json::to_string(&kept)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        write_private(&self.directory.join("tokens"), text.as_bytes())
    }
}

#[async_trait]
impl Access for FileAccess {
    async fn keep(&self, grant: Grant, secret: Digest) -> Result<(), AccessError> {
        let mut grants = self.grants.write().unwrap_or_else(PoisonError::into_inner);
        let now = grant.created;
        grants.retain(|_, kept| kept.expires.is_none_or(|end| end > now));
        match Room::for_grant(&grant, grants.values()) {
            Room::Free => {}
            Room::InPlaceOf(oldest) => grants.retain(|_, kept| kept.id != oldest),
            Room::None => return Err(Room::refused(&grant)),
        }
        grants.insert(secret, grant);
        self.store(&grants)
    }

    async fn find(&self, secret: Digest) -> Result<Option<Grant>, AccessError> {
        Ok(self.grants.read().unwrap_or_else(PoisonError::into_inner).get(&secret).cloned())
    }

    async fn list(&self) -> Result<Vec<Grant>, AccessError> {
        Ok(self.grants())
    }

    async fn revoke(&self, id: Uuid) -> Result<bool, AccessError> {
        let mut grants = self.grants.write().unwrap_or_else(PoisonError::into_inner);
        let before = grants.len();
        grants.retain(|_, grant| grant.id != id && grant.token != Some(id));
        if grants.len() == before {
            return Ok(false);
        }
        self.store(&grants).map(|()| true)
    }

    async fn keep_ticket(&self, ticket: Ticket) -> Result<(), AccessError> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, kept| kept.expires > ticket.created);
        let own = tickets.values().filter(|kept| kept.grant == ticket.grant);
        let own: Vec<_> = own.map(|kept| (kept.created, kept.secret)).collect();
        if own.len() >= TICKETS_MAX
            && let Some((_, oldest)) = own.into_iter().min_by_key(|(created, _)| *created)
        {
            tickets.remove(&oldest);
        }
        tickets.insert(ticket.secret, ticket);
        Ok(())
    }

    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<Uuid>, AccessError> {
        let ticket = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).remove(&secret);
        Ok(ticket.filter(|ticket| ticket.expires > now).map(|ticket| ticket.grant))
    }

    async fn is_chosen(&self) -> Result<bool, AccessError> {
        Ok(self.has_passphrase())
    }

    async fn choose(&self, wished: &str) -> Result<(), AccessError> {
        if self.has_passphrase() {
            return Err(AccessError::Refused(passphrase::CHOSEN.into()));
        }
        self.choose_passphrase(wished)
    }

    async fn is_passphrase(&self, given: &str) -> Result<bool, AccessError> {
        let (hash, given) = (self.hash().ok_or_else(none_chosen)?, given.to_owned());
        let fits = tokio::task::spawn_blocking(move || passphrase::fits(&given, &hash));
        fits.await.map_err(|error| AccessError::Refused(error.to_string()))?
    }
}

fn none_chosen() -> AccessError {
    AccessError::Refused("no passphrase was chosen yet; run: planwright chat".into())
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, contents: &[u8]) -> Result<(), AccessError> {
    durable_file::write_private(path, contents).map_err(|error| {
        AccessError::Refused(format!("{} cannot be written: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_chooses_a_passphrase_again_by_moving_its_file() {
        let home = tempfile::tempdir().expect("a directory");
        let (file, aside) = (home.path().join("passphrase"), home.path().join("aside"));
        let access = FileAccess::open(home.path()).expect("access");
        access.choose("the owner's own").await.expect("the first one");
        fs::copy(&file, &aside).expect("copied");
        fs::remove_file(&file).expect("removed");
        assert!(access.is_chosen().await.expect("known"));
        assert!(access.choose("the intruder's").await.is_err());
        let other = passphrase::hash("the intruder's").expect("a hash");
        fs::write(&file, other).expect("written");
        assert!(!access.is_passphrase("the intruder's").await.expect("known"));
        assert!(access.is_passphrase("the owner's own").await.expect("known"));
    }
}
