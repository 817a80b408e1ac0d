//! The key with which an installation signs what it writes out: Ed25519, in a private file of its data directory.

use std::{fmt, fs, io, path::Path, str::FromStr};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use planwright_domain::digest::Digest;
use planwright_runtime::ports::audit::{Signature, Signer};

use crate::durable_file::write_private_once;

/// The file in the data directory.
pub const SIGNING_KEY: &str = "signing-key";

/// What an installation signs with.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key of this data directory, made where there is none yet.
    pub fn open(data: &Path) -> io::Result<Self> {
        let path = data.join(SIGNING_KEY);
        let named = |what| io::Error::other(format!("{} {what}", path.display()));
        match fs::read(&path) {
            Ok(kept) => Ed25519KeyPair::from_pkcs8(&kept)
                .map(Self)
                .map_err(|_| named("is no signing key; bring it back from a backup")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Ed25519KeyPair::generate().map_err(|_| named("cannot be made"))?;
                let kept = made.to_pkcs8().map_err(|_| named("cannot be made"))?;
                if write_private_once(&path, kept.as_ref())? {
                    return Ok(Self(made));
                }
                // Another process made one meanwhile.
                Self::open(data)
            }
            Err(error) => Err(error),
        }
    }

    /// What others know it by.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(Digest(bytes))
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        let signature = self.0.sign(message);
        let signature = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Signature { key: self.public().to_string(), signature }
    }
}

impl Signer for SigningKey {
    fn key(&self) -> Digest {
        self.public().0
    }

    fn sign(&self, message: &[u8]) -> Signature {
        Self::sign(self, message)
    }
}

/// Whether whom a signature names signed this message.
#[must_use]
pub fn has_signed(message: &[u8], signature: &Signature) -> bool {
    signature.key.parse::<PublicKey>().is_ok_and(|key| key.signed(message, signature))
}

/// What an installation is known by to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(Digest);

impl PublicKey {
    /// Whether this key signed the message.
    #[must_use]
    pub fn signed(&self, message: &[u8], signature: &Signature) -> bool {
        let halves = signature.signature.split_at_checked(64);
        let halves = halves.and_then(|(first, last)| Digest::parse(first).zip(Digest::parse(last)));
        let Some((first, last)) = halves else { return false };
        let signature = [first.0, last.0].concat();
        UnparsedPublicKey::new(&ED25519, self.0.0).verify(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ed25519:{}", self.0)
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix("ed25519:").and_then(Digest::parse);
        bytes.map(Self).ok_or_else(|| {
            format!("{text:?} is no key: one is written ed25519: and 64 hexadecimal digits")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{PublicKey, SigningKey};

    #[test]
    fn of_many_who_make_a_key_at_the_same_time_all_get_the_same_one() {
        let data = tempfile::tempdir().unwrap();
        let keys: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
            let open = || SigningKey::open(data.path()).unwrap().public().to_string();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(keys.len(), 1);
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_key_is_made_once_and_only_what_it_signed_is_signed_by_it() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = SigningKey::open(ours.path()).unwrap();
        let other = SigningKey::open(theirs.path()).unwrap();
        let (signature, public) = (key.sign(b"all of it"), key.public());
        assert_eq!(SigningKey::open(ours.path()).unwrap().public(), public);
        assert_eq!(public.to_string().parse::<PublicKey>(), Ok(public));
        assert!(public.signed(b"all of it", &signature));
        assert!(!public.signed(b"some of it", &signature));
        assert!(!public.signed(b"all of it", &other.sign(b"all of it")));
        assert!(!other.public().signed(b"all of it", &signature));
        for broken in ["", "ed25519:", "ed25519:00", &public.to_string()[8..]] {
            assert!(broken.parse::<PublicKey>().is_err(), "{broken}");
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(ours.path().join(super::SIGNING_KEY)).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }
}
