//! A call that waits for a person's permission.

use serde::{Deserialize, Serialize};

use crate::model::{
    digest::{Digest, Encoder},
    effect::{Aim, ToolFacts},
    id::{CallId, PlanId, Seq},
    identity::SessionKey,
    time::Time,
    turn::RequestedCall,
};

/// A call that waits for a person's permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ask {
    /// The call.
    pub call: CallId,
    /// The digest of all that is asked: what a decision names.
    pub digest: Digest,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// The tool as it stands.
    pub facts: ToolFacts,
    /// What it is aimed at.
    pub aim: Aim,
    /// Why it asks, in words.
    pub why: String,
    /// When it is denied by itself.
    pub expires: Time,
    /// The plan whose execution waits for it.
    pub plan: Option<PlanId>,
}

impl Ask {
    /// The digest of a call that asks in a session of this version. A call that asks twice asks for
    /// two decisions.
    #[must_use]
    pub fn digest_of(
        session: &SessionKey,
        version: Seq,
        call: &RequestedCall,
        schema: Digest,
    ) -> Digest {
        Encoder::of("permission", 1)
            .field("session", &session.to_string())
            .number("version", version.0)
            .bytes("call", call.id.0.as_bytes())
            .field("tool", &call.tool)
            .field("arguments", &call.arguments)
            .bytes("schema", &schema.0)
            .digest()
    }
}
