//! The passphrase that deciding needs: how it is hashed, and whether one fits.

use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
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
    aside(move || {
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
    aside(move || {
        let hash = PasswordHash::new(&hash).map_err(|error| {
            AccessError::Refused(format!("the passphrase's hash is damaged: {error}"))
        })?;
        let is_short = given.len() <= LENGTH_MAX * 4;
        Ok(is_short && Argon2::default().verify_password(given.as_bytes(), &hash).is_ok())
    })
    .await
}

/// Takes as long as to look whether it fits, where there is nothing that it could fit.
pub(crate) async fn fits_nothing(given: &str) -> Result<bool, AccessError> {
    let given: String = given.chars().take(LENGTH_MAX).collect();
    aside(move || {
        drop(Argon2::default().hash_password(given.as_bytes()));
        Ok(false)
    })
    .await
}

/// What is said where the hash of a passphrase is gone.
pub(crate) fn missing() -> AccessError {
    let words = "what the passphrase is hashed to is gone, so nobody can give it; planwright passphrase --reset (in a cluster: planwright cluster passphrase --reset) chooses the owner's anew, and a link that of anybody else";
    AccessError::Refused(words.into())
}

/// How many hashes are made at once: each takes a core, and 19 MB.
static HASHING: Semaphore = Semaphore::const_new(4);

/// To hash takes long, and nobody else waits for it.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AccessError> + Send + 'static,
) -> Result<T, AccessError> {
    let refused = |error: &dyn std::fmt::Display| AccessError::Refused(error.to_string());
    let _turn = HASHING.acquire().await.map_err(|error| refused(&error))?;
    tokio::task::spawn_blocking(work).await.map_err(|error| refused(&error))?
}
