//! The passphrase that deciding needs: how it is hashed, and whether one fits.

use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use planwright_runtime::ports::access::AccessError;

/// Why it is not chosen again.
pub(crate) const CHOSEN: &str = "a passphrase was chosen already; log in with it";

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

/// The hash of a passphrase that may be chosen.
pub(crate) fn hash(passphrase: &str) -> Result<String, AccessError> {
    check(passphrase).map_err(AccessError::Refused)?;
    let hash = Argon2::default().hash_password(passphrase.as_bytes()).map_err(|error| {
        AccessError::Refused(format!("the passphrase could not be hashed: {error}"))
    })?;
    Ok(hash.to_string())
}

/// Whether this is the passphrase of this hash. Takes a while, on purpose.
pub(crate) fn fits(given: &str, hash: &str) -> Result<bool, AccessError> {
    let hash = PasswordHash::new(hash).map_err(|error| {
        AccessError::Refused(format!("the passphrase's hash is damaged: {error}"))
    })?;
    let is_short = given.len() <= LENGTH_MAX * 4;
    Ok(is_short && Argon2::default().verify_password(given.as_bytes(), &hash).is_ok())
}
