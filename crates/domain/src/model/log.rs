//! An entry of a chain of decisions, as a session or the audit log keeps it, and the chain.

use serde::{Deserialize, Serialize};

use super::{
    actor::PersonId,
    digest::{Digest, Encoder},
    id::{OwnerId, Seq},
    time::Time,
};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// What happened, by name.
    pub kind: String,
    /// Who decided; nobody, where the runtime did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The id under which what belongs to them is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerId>,
    /// Where they stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// What it is about: a digest, the id of a call, plan or turn, the number of a step, the name of a tool.
    pub subject: String,
    /// The code of what was decided, or of what the gate said.
    pub verdict: String,
    /// What belongs to the code: a number, a digest, the code of a refusal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

/// The head after one more entry, which was recorded at this time.
#[must_use]
pub fn head_after(head: Digest, seq: Seq, at: Time, entry: &Entry) -> Digest {
    let encoder = Encoder::of("log-entry", 2)
        .bytes("head", &head.0)
        .number("seq", seq.0)
        .number("at", at.0.cast_unsigned())
        .field("kind", &entry.kind)
        .optional("who", entry.who.as_deref())
        .optional("owner", entry.owner.map(|owner| owner.to_string()).as_deref())
        .optional("surface", entry.surface.as_deref())
        .field("subject", &entry.subject)
        .field("verdict", &entry.verdict)
        .number("arguments", entry.arguments.len() as u64);
    let arguments = entry.arguments.iter();
    arguments.fold(encoder, |encoder, argument| encoder.field("argument", argument)).digest()
}

impl Entry {
    /// Whether somebody decided, or was asked to.
    #[must_use]
    pub fn is_decision(&self) -> bool {
        self.who.is_some() || self.kind == "permission_asked"
    }

    /// Whether a person decided something, and did not only look at it.
    #[must_use]
    pub fn is_verdict(&self) -> bool {
        self.who.is_some() && self.kind != "revision_shown"
    }
}

/// How far the chain of decisions of a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Which session: the digest with which its chain begins.
    pub session: Digest,
    /// The number of the last event that is in it.
    pub seq: Seq,
    /// The head.
    pub head: Digest,
}

/// A session that was erased: ids and digests, nothing that anybody wrote in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Which, how many events it had, and the head of its decisions.
    pub of: SessionHead,
    /// Who asked for it.
    pub by: PersonId,
    /// When they did.
    pub asked: Time,
}
