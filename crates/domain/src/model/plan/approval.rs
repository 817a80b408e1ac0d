//! The record of an approval: resolved once, bound to what was read, with a digest of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    digest::{Digest, Encoder},
    effect::Envelope,
    id::PlanId,
    identity::Root,
    plan::step::OnFailure,
    time::Time,
};

/// What a person decided: resolved once, bound to a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// The plan.
    pub plan: PlanId,
    /// The number of the revision.
    pub revision: u32,
    /// The digest of the revision that was read.
    pub revision_digest: Digest,
    /// The directory that the paths of the envelope are relative to, and that the work is done in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// What the approval leases.
    pub envelope: Envelope,
    /// What the person adds. Notes never widen the envelope.
    pub notes: Vec<String>,
    /// The profiles that its steps name, each with the digest of what it was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Digest>,
    /// What happens to the rest when a recorded call fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The digest of the rules on who may decide, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Digest>,
    /// The version of the policy under which it was decided.
    pub policy: u32,
    /// Who decided, and where.
    pub by: Person,
    /// When.
    pub at: Time,
}

/// The policy under which approvals are recorded now.
pub const POLICY_VERSION: u32 = 2;

impl Approval {
    /// The digest of the record itself.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let encoder = Encoder::of("approval", 1)
            .bytes("plan", self.plan.0.as_bytes())
            .number("number", u64::from(self.revision))
            .bytes("revision", &self.revision_digest.0)
            .number("policy", u64::from(self.policy))
            .optional("root", self.root.as_ref().map(|root| root.0.as_str()))
            .bytes("owner", self.by.owner.0.as_bytes())
            .field("person", &self.by.id.0)
            .field("surface", &self.by.surface.0)
            .number("at", self.at.0.cast_unsigned())
            .number("notes", self.notes.len() as u64);
        let encoder = self.notes.iter().fold(encoder, |encoder, note| encoder.field("note", note));
        let encoder = self.envelope.encode(encoder);
        let on_failure = match self.on_failure {
            OnFailure::Stop => "stop",
            OnFailure::Continue => "continue",
        };
        let encoder =
            encoder.field("on_failure", on_failure).number("profiles", self.profiles.len() as u64);
        let profiles = self.profiles.iter().fold(encoder, |encoder, (name, digest)| {
            encoder.field("profile", name).bytes("digest", &digest.0)
        });
        profiles.optional("rules", self.rules.map(|rules| rules.to_string()).as_deref()).digest()
    }
}
