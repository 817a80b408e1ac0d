//! Who may do what, in private files of the data directory: the passphrase, the terminals that gave
//! it lately, and the digests of the tokens that were given out.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use async_trait::async_trait;
use planwright_domain::{digest::Digest, time::Time};
use planwright_runtime::ports::access::{Access, AccessError, Grant};
use uuid::Uuid;

use crate::{durable_file, passphrase};

/// How long a terminal is remembered.
const REMEMBERED_MICROS: i64 = 15 * 60 * 1_000_000;
/// How many grants are kept.
const GRANTS_MAX: usize = 1_000;

/// Access kept in files of one data directory.
#[derive(Debug)]
pub struct FileAccess {
    directory: PathBuf,
    grants: RwLock<HashMap<Digest, Grant>>,
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
        Ok(Self { directory: directory.to_owned(), grants: RwLock::new(grants) })
    }

    /// Whether a passphrase was chosen.
    #[must_use]
    pub fn has_passphrase(&self) -> bool {
        self.directory.join("passphrase").exists()
    }

    /// Chooses the passphrase.
    pub fn choose_passphrase(&self, given: &str) -> Result<(), AccessError> {
        let hash = passphrase::hash(given)?;
        write_private(&self.directory.join("passphrase"), hash.as_bytes())
    }

    /// Whether this is the passphrase that was chosen. Takes a while, on purpose.
    pub fn matches(&self, given: &str) -> Result<bool, AccessError> {
        let path = self.directory.join("passphrase");
        let hash = fs::read_to_string(&path).map_err(|_| {
            AccessError::Refused("no passphrase was chosen yet; run: planwright chat".into())
        })?;
        passphrase::fits(given, &hash)
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
        if grants.len() >= GRANTS_MAX {
            return Err(AccessError::Refused(format!(
                "{GRANTS_MAX} tokens are given out; revoke some first"
            )));
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
        grants.retain(|_, grant| grant.id != id);
        if grants.len() == before {
            return Ok(false);
        }
        self.store(&grants).map(|()| true)
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
        let (directory, given) = (self.directory.clone(), given.to_owned());
        let matches = tokio::task::spawn_blocking(move || {
            Self { directory, grants: RwLock::default() }.matches(&given)
        });
        matches.await.map_err(|error| AccessError::Refused(error.to_string()))?
    }
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, contents: &[u8]) -> Result<(), AccessError> {
    durable_file::write_private(path, contents).map_err(|error| {
        AccessError::Refused(format!("{} cannot be written: {error}", path.display()))
    })
}
