//! The passphrase that deciding needs: how it is hashed, and whether one fits.

use std::sync::{Mutex, PoisonError};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::{
        PasswordHasher as _,
        phc::{Output, PasswordHash},
    },
};
use planwright_runtime::ports::access::AccessError;
use tokio::sync::Semaphore;

/// The shortest passphrase.
const LENGTH_MIN: usize = 8;
/// The longest passphrase that is looked at.
const LENGTH_MAX: usize = 1_024;

/// Whether this may be chosen; if not, the rule.
pub fn check(passphrase: &str) -> Result<(), String> {
    match passphrase.chars().count() {
        LENGTH_MIN..=LENGTH_MAX => Ok(()),
        0..LENGTH_MIN => Err(format!("a passphrase has at least {LENGTH_MIN} characters")),
        _ => Err(format!("a passphrase has at most {LENGTH_MAX} characters")),
    }
}

/// What a passphrase that may be chosen is hashed to. Takes a while, on purpose.
pub(crate) async fn hash(passphrase: &str) -> Result<String, AccessError> {
    check(passphrase).map_err(AccessError::Refused)?;
    let passphrase = passphrase.to_owned();
    aside(move |_| {
        let hash = Argon2::default().hash_password(passphrase.as_bytes()).map_err(|error| {
            AccessError::Refused(format!("the passphrase could not be hashed: {error}"))
        })?;
        Ok(hash.to_string())
    })
    .await
}

/// Whether this is the passphrase of this hash. Takes a while, on purpose.
pub(crate) async fn fits(given: &str, hash: String) -> Result<bool, AccessError> {
    let given = given.to_owned();
    aside(move |memory| {
        let hash = PasswordHash::new(&hash).map_err(|error| {
            AccessError::Refused(format!("the passphrase's hash is damaged: {error}"))
        })?;
        // As long as where there is nothing that it could fit.
        let begins: String = given.chars().take(LENGTH_MAX).collect();
        let fits = memory.fits(begins.as_bytes(), &hash).unwrap_or(false);
        Ok(fits && begins.len() == given.len())
    })
    .await
}

/// Takes as long as to look whether it fits, where there is nothing that it could fit.
pub(crate) async fn fits_nothing(given: &str) -> Result<bool, AccessError> {
    let given: String = given.chars().take(LENGTH_MAX).collect();
    aside(move |memory| {
        let _ = memory.output(&Argon2::default(), given.as_bytes(), &[0; 16], &mut [0; 32]);
        Ok(false)
    })
    .await
}

/// What one hash works in, kept for the next. Where memory that is aligned like this is given back, it is hardly ever given out
/// again: every look at a passphrase would cost 19 MB for good.
#[derive(Default)]
struct Memory(Vec<Block>);

impl Memory {
    fn output(
        &mut self,
        argon2: &Argon2<'_>,
        given: &[u8],
        salt: &[u8],
        out: &mut [u8],
    ) -> argon2::Result<()> {
        let blocks = argon2.params().block_count();
        if self.0.len() < blocks {
            self.0.resize(blocks, Block::new());
        }
        argon2.hash_password_into_with_memory(given, salt, out, &mut self.0[..blocks])
    }

    /// Whether this fits; nothing, if the hash is not one of ours.
    fn fits(&mut self, given: &[u8], hash: &PasswordHash) -> Option<bool> {
        let (salt, expected) = (hash.salt.as_ref()?, hash.hash.as_ref()?);
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
        let version = Version::try_from(hash.version?).ok()?;
        let argon2 = Argon2::new(algorithm, version, Params::try_from(hash).ok()?);
        let mut out = [0; Output::MAX_LENGTH];
        let out = out.get_mut(..expected.len())?;
        self.output(&argon2, given, salt, out).ok()?;
        // In constant time.
        Some(Output::new(out).ok()? == *expected)
    }
}

/// What is said where the hash of a passphrase is gone.
pub(crate) fn missing() -> AccessError {
    let words = "what the passphrase is hashed to is gone, so nobody can give it; planwright passphrase --reset (in a cluster: planwright cluster passphrase --reset) chooses the owner's anew, and a link that of anybody else";
    AccessError::Refused(words.into())
}

/// How many hashes are made at once: each takes a core, and 19 MB.
const HASHERS: usize = 4;
static HASHING: Semaphore = Semaphore::const_new(HASHERS);

/// The memory that nobody hashes in at the moment.
static IDLE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// To hash takes long, and nobody else waits for it.
async fn aside<T: Send + 'static>(
    work: impl FnOnce(&mut Memory) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, AccessError> {
    let refused = |error: &dyn std::fmt::Display| AccessError::Refused(error.to_string());
    let turn = HASHING.acquire().await.map_err(|error| refused(&error))?;
    let hashing = move || {
        // Whoever asked may have gone: there are never more at work than may be.
        let _turn = turn;
        let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = idle().pop().unwrap_or_default();
        let done = work(&mut memory);
        idle().push(memory);
        done
    };
    tokio::task::spawn_blocking(hashing).await.map_err(|error| refused(&error))?
}
