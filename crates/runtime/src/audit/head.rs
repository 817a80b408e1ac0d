//! What is signed of the audit log and kept elsewhere, one JSON object a line.

use planwright_domain::{digest::Digest, id::Seq, log::SessionHead, time::Time};
use serde::{Deserialize, Serialize};

use crate::ports::audit::{Signature, Signer};

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Statement {
    /// The audit log had come so far.
    Head {
        /// The number of its last entry.
        entry: Seq,
        /// The head of its chain.
        head: Digest,
        /// When this was said.
        at: Time,
    },
    /// A decision is about to be stored, with which the chain of its session comes so far.
    Decision {
        /// Where.
        #[serde(flatten)]
        of: SessionHead,
        /// When it was decided.
        at: Time,
    },
    /// The decision that was said to be about to be stored was not.
    NotStored {
        /// Where.
        #[serde(flatten)]
        of: SessionHead,
        /// When this was said.
        at: Time,
    },
}

impl Statement {
    /// What is signed.
    fn message(&self) -> Vec<u8> {
        let told = match self {
            Self::Head { entry, head, at } => format!("head\n{entry}\n{head}\n{}", at.0),
            Self::Decision { of: SessionHead { session, seq, head }, at } => {
                format!("decision\n{session}\n{seq}\n{head}\n{}", at.0)
            }
            Self::NotStored { of: SessionHead { session, seq, head }, at } => {
                format!("not_stored\n{session}\n{seq}\n{head}\n{}", at.0)
            }
        };
        format!("planwright audit 1\n{told}\n").into_bytes()
    }

    /// The same, signed.
    #[must_use]
    pub fn signed_by(self, signer: &dyn Signer) -> SignedLine {
        SignedLine { signature: signer.sign(&self.message()), statement: self }
    }
}

/// A line, and who signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedLine {
    /// What it says.
    #[serde(flatten)]
    pub statement: Statement,
    /// Who signed it.
    #[serde(flatten)]
    pub signature: Signature,
}

impl SignedLine {
    /// The line, without its end.
    #[must_use]
    pub fn text(&self) -> String {
        // Numbers, digests and names of keys can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a line and looks whether whom it names signed it; in words, why it is of no use.
    pub fn read(text: &str, has_signed: HasSigned) -> Result<Self, String> {
        let line: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if has_signed(&line.statement.message(), &line.signature) {
            Ok(line)
        } else {
            Err(format!("{} did not sign it", line.signature.key))
        }
    }
}

/// Whether whom a signature names signed this.
pub type HasSigned = fn(&[u8], &Signature) -> bool;
