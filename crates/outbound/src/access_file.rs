//! What is kept beside the audit log, in private files of the data directory: what passphrases are hashed to, and what is told of
//! the tokens that were given out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, RwLock},
};

use async_trait::async_trait;
use planwright_domain::{digest::Digest, id::GrantId, time::Time};
use planwright_runtime::ports::access::{Access, AccessError, GrantDetails, TICKETS_MAX, Ticket};

use crate::{durable_file, passphrase};

/// Access kept in files of one data directory.
#[derive(Debug)]
pub struct FileAccess {
    directory: PathBuf,
    grants: RwLock<HashMap<Digest, GrantDetails>>,
    tickets: Mutex<HashMap<Digest, Ticket>>,
    /// What passphrases are hashed to, by the digest of that, as it was when this process began or as it was kept since.
    /// The journal says which one is whose: nobody makes this process take another by moving files.
    passphrases: RwLock<BTreeMap<Digest, String>>,
}

impl FileAccess {
    /// The access that is kept in this directory. A file that others can read is refused.
    pub fn open(directory: &Path) -> Result<Self, AccessError> {
        for name in [PASSPHRASES, "tokens"] {
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
                let kept: Vec<(Digest, GrantDetails)> =
                    serde_json::from_str(&text).map_err(|error| {
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
        let passphrases = match fs::read_to_string(directory.join(PASSPHRASES)) {
            Ok(text) => read_passphrases(&text).map_err(|why| {
                let path = directory.join(PASSPHRASES);
                AccessError::Refused(format!("{} is damaged: {why}", path.display()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(AccessError::Refused(error.to_string())),
        };
        Ok(Self {
            directory: directory.to_owned(),
            grants: RwLock::new(grants),
            tickets: Mutex::default(),
            passphrases: RwLock::new(passphrases),
        })
    }

    /// Whether what a passphrase is hashed to is kept here.
    #[must_use]
    pub fn has_hash(&self, digest: Digest) -> bool {
        self.kept_hash(digest).is_some()
    }

    fn kept_hash(&self, digest: Digest) -> Option<String> {
        let passphrases = self.passphrases.read().unwrap_or_else(PoisonError::into_inner);
        passphrases.get(&digest).cloned()
    }

    fn change_passphrases(
        &self,
        change: impl FnOnce(&mut BTreeMap<Digest, String>),
    ) -> Result<(), AccessError> {
        let mut passphrases = self.passphrases.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = passphrases.clone();
        change(&mut changed);
        let hashes: Vec<_> = changed.values().collect();
        let text = serde_json::to_string(&hashes)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        write_private(&self.directory.join(PASSPHRASES), text.as_bytes())?;
        *passphrases = changed;
        Ok(())
    }

    /// Changes what is told of grants: on the disk first, so that what failed did not happen.
    fn change_grants(
        &self,
        change: impl FnOnce(&mut HashMap<Digest, GrantDetails>),
    ) -> Result<(), AccessError> {
        let mut grants = self.grants.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = grants.clone();
        change(&mut changed);
        if changed == *grants {
            return Ok(());
        }
        let kept: Vec<_> = changed.iter().collect();
        let text = serde_json::to_string(&kept)
            .map_err(|error| AccessError::Refused(error.to_string()))?;
        write_private(&self.directory.join("tokens"), text.as_bytes())?;
        *grants = changed;
        Ok(())
    }
}

#[async_trait]
impl Access for FileAccess {
    async fn keep(&self, details: GrantDetails, secret: Digest) -> Result<(), AccessError> {
        self.change_grants(|grants| drop(grants.insert(secret, details)))
    }

    async fn find(&self, secret: Digest) -> Result<Option<GrantDetails>, AccessError> {
        Ok(self.grants.read().unwrap_or_else(PoisonError::into_inner).get(&secret).cloned())
    }

    async fn list(&self) -> Result<Vec<GrantDetails>, AccessError> {
        let grants = self.grants.read().unwrap_or_else(PoisonError::into_inner);
        let mut grants: Vec<_> = grants.values().cloned().collect();
        grants.sort_by_key(|grant| (grant.created, grant.id));
        Ok(grants)
    }

    async fn keep_only(&self, good: &BTreeSet<GrantId>, before: Time) -> Result<(), AccessError> {
        let is_kept = |kept: &GrantDetails| kept.created >= before || good.contains(&kept.id);
        self.change_grants(|grants| grants.retain(|_, kept| is_kept(kept)))
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

    async fn take_ticket(&self, secret: Digest, now: Time) -> Result<Option<GrantId>, AccessError> {
        let ticket = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).remove(&secret);
        Ok(ticket.filter(|ticket| ticket.expires > now).map(|ticket| ticket.grant))
    }

    async fn keep_passphrase(&self, given: &str) -> Result<Digest, AccessError> {
        let hash = passphrase::hash(given).await?;
        let digest = Digest::of(hash.as_bytes());
        self.change_passphrases(|passphrases| drop(passphrases.insert(digest, hash)))?;
        Ok(digest)
    }

    async fn fits(&self, hash: Option<Digest>, given: &str) -> Result<bool, AccessError> {
        let Some(digest) = hash else { return passphrase::fits_nothing(given).await };
        let hash = self.kept_hash(digest);
        passphrase::fits(given, hash.ok_or_else(passphrase::missing)?).await
    }

    async fn forget_passphrase(&self, hash: Digest) -> Result<(), AccessError> {
        self.change_passphrases(|passphrases| drop(passphrases.remove(&hash)))
    }
}

/// The file with what passphrases are hashed to.
const PASSPHRASES: &str = "passphrases";

fn read_passphrases(text: &str) -> Result<BTreeMap<Digest, String>, serde_json::Error> {
    let hashes: Vec<String> = serde_json::from_str(text)?;
    Ok(hashes.into_iter().map(|hash| (Digest::of(hash.as_bytes()), hash)).collect())
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
    async fn a_passphrase_is_replaced_by_no_file() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join(PASSPHRASES);
        let access = FileAccess::open(home.path()).expect("access");
        let own = access.keep_passphrase("the owner's own").await.expect("kept");
        let other = FileAccess::open(home.path()).expect("access");
        let others = other.keep_passphrase("the intruder's").await.expect("kept");
        assert!(!access.fits(Some(own), "the intruder's").await.expect("known"));
        assert!(access.fits(Some(own), "the owner's own").await.expect("known"));
        fs::remove_file(&file).expect("removed");
        assert!(access.fits(Some(own), "the owner's own").await.expect("known"));
        let after = FileAccess::open(home.path()).expect("access");
        let error = after.fits(Some(own), "the owner's own").await.expect_err("missing");
        assert!(error.to_string().contains("planwright passphrase --reset"), "{error}");
        assert!(after.fits(Some(others), "the intruder's").await.is_err());
    }

    #[tokio::test]
    async fn what_was_replaced_is_forgotten() {
        let home = tempfile::tempdir().expect("a directory");
        let access = FileAccess::open(home.path()).expect("access");
        let first = access.keep_passphrase("the first of them").await.expect("kept");
        let second = access.keep_passphrase("the second of them").await.expect("kept");
        access.forget_passphrase(first).await.expect("forgotten");
        let again = FileAccess::open(home.path()).expect("access");
        assert!(again.fits(Some(first), "the first of them").await.is_err());
        assert!(again.fits(Some(second), "the second of them").await.expect("known"));
        assert!(!again.fits(None, "the second of them").await.expect("known"));
    }
}
