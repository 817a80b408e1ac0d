//! Why a model did not answer.

use serde::{Deserialize, Serialize};

/// Why the model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelFailure {
    /// Who can mend it.
    pub kind: FailureKind,
    /// In words.
    pub message: String,
    /// How long the provider asks us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_micros: Option<i64>,
}

impl ModelFailure {
    /// A failure of this kind, in these words.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after_micros: None }
    }
}

/// Who can mend a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Time: the provider is busy or out of reach.
    Transient,
    /// The provider's answer could not be used.
    Malformed,
    /// The operator: key, address, name of the model.
    Permanent,
    /// The person: the conversation no longer fits the model's window.
    TooLarge,
    /// A limit of ours was reached.
    Limit,
    /// The model said nothing.
    Empty,
    /// The person: the provider withholds the answer to this.
    Withheld,
}
