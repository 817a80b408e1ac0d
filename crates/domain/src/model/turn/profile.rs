//! Agent profiles: who does a step of a plan, and what they may use.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::digest::{Digest, Encoder};

/// An agent profile, as it stood when its turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The digest of all that it is: an approval holds only for the profile that was approved.
    pub digest: Digest,
    /// The tools it may use; none named means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// How often its model may be asked in one turn, if less than in any turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_max: Option<u32>,
}

impl Profile {
    /// A profile, given all that it is.
    #[must_use]
    pub fn new(
        name: &str,
        prompt: &str,
        model: &str,
        tools: Option<BTreeSet<String>>,
        rounds_max: Option<u32>,
    ) -> Self {
        let encoder = Encoder::of("profile", 1)
            .field("name", name)
            .field("prompt", prompt)
            .field("model", model)
            .optional("rounds", rounds_max.map(|max| max.to_string()).as_deref())
            .number("tools", tools.as_ref().map_or(0, |tools| tools.len() as u64 + 1));
        let listed = tools.iter().flatten();
        let encoder = listed.fold(encoder, |encoder, tool| encoder.field("tool", tool));
        Self { name: name.into(), digest: encoder.digest(), tools, rounds_max }
    }
}
