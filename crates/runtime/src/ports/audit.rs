//! Who signs the heads of the audit log, and who keeps them elsewhere.

use std::sync::Arc;

use async_trait::async_trait;
use planwright_domain::digest::Digest;
use serde::{Deserialize, Serialize};

/// Who signed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// What they are known by.
    pub key: String,
    /// The signature, in hexadecimal digits.
    pub signature: String,
}

/// Signs with the key of the installation.
pub trait Signer: Send + Sync {
    /// What others know the key by.
    fn key(&self) -> Digest;

    /// Signs a message.
    fn sign(&self, message: &[u8]) -> Signature;
}

/// Keeps heads where whoever changes the journal does not reach them.
#[async_trait]
pub trait HeadKeeper: Send + Sync {
    /// Hands one line over; it is kept when this returns. Why it is not, in words.
    async fn hand_over(&self, line: &str) -> Result<(), String>;
}

/// To whom decisions are handed over before they count.
#[derive(Clone)]
pub struct Handover {
    /// Who signs them.
    pub signer: Arc<dyn Signer>,
    /// Who keeps them.
    pub keeper: Arc<dyn HeadKeeper>,
}
