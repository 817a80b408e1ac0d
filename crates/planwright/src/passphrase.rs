//! Who may decide at this terminal: the passphrase, and how long a terminal is remembered.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use planwright_domain::time::Time;

/// How long a terminal is remembered.
const REMEMBERED_MICROS: i64 = 15 * 60 * 1_000_000;
/// The shortest passphrase.
const LENGTH_MIN: usize = 8;

/// The passphrase of an installation.
#[derive(Debug)]
pub struct Passphrase {
    directory: PathBuf,
}

impl Passphrase {
    /// The passphrase kept in this data directory.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Whether one was chosen.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.hash_path().exists()
    }

    /// Chooses it.
    pub fn set(&self, passphrase: &str) -> anyhow::Result<()> {
        if passphrase.chars().count() < LENGTH_MIN {
            bail!("a passphrase has at least {LENGTH_MIN} characters");
        }
        let hash = Argon2::default()
            .hash_password(passphrase.as_bytes())
            .map_err(|error| anyhow::anyhow!("the passphrase could not be hashed: {error}"))?;
        write_private(&self.hash_path(), hash.to_string().as_bytes())
    }

    /// Whether this is it.
    pub fn matches(&self, passphrase: &str) -> anyhow::Result<bool> {
        let text = fs::read_to_string(self.hash_path())
            .context("no passphrase was chosen yet; run planwright chat")?;
        let hash = PasswordHash::new(&text).map_err(|error| {
            anyhow::anyhow!("{} is damaged: {error}", self.hash_path().display())
        })?;
        Ok(Argon2::default().verify_password(passphrase.as_bytes(), &hash).is_ok())
    }

    /// Remembers that it was given at this surface.
    pub fn remember(&self, surface: &str, now: Time) -> anyhow::Result<()> {
        let mut remembered = self.remembered();
        remembered.retain(|_, until| *until > now.0);
        remembered.insert(surface.to_owned(), now.0 + REMEMBERED_MICROS);
        write_private(
            &self.directory.join("unlocked"),
            serde_json::to_string(&remembered)?.as_bytes(),
        )
    }

    /// Whether it was given at this surface not long ago.
    #[must_use]
    pub fn is_remembered(&self, surface: &str, now: Time) -> bool {
        self.remembered()
            .get(surface)
            .is_some_and(|until| (now.0..=now.0 + REMEMBERED_MICROS).contains(until))
    }

    fn remembered(&self) -> BTreeMap<String, i64> {
        let text = fs::read_to_string(self.directory.join("unlocked")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn hash_path(&self) -> PathBuf {
        self.directory.join("passphrase")
    }
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let beside = path.with_extension("part");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    Ok(fs::rename(beside, path)?)
}
