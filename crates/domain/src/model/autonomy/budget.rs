//! What a run may use, and how much of it is gone. 80 % warns, 100 % pauses and asks.

use serde::{Deserialize, Serialize};

use crate::model::turn::Usage;

/// One of the things that a run uses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// Time, in microseconds.
    Time,
    /// Calls of the model.
    ModelCalls,
    /// Calls of tools.
    ToolCalls,
    /// Tokens, read and written.
    Tokens,
    /// Money, in millionths of a dollar.
    Money,
}

impl Meter {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Time, Self::ModelCalls, Self::ToolCalls, Self::Tokens, Self::Money];

    /// As people read it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::ModelCalls => "model calls",
            Self::ToolCalls => "tool calls",
            Self::Tokens => "tokens",
            Self::Money => "money",
        }
    }
}

/// What a run may use; what is not named is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Budget {
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// How often it may ask the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// How often it may call a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// How many tokens it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How much money it may cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Budget {
    /// The limit of a meter.
    #[must_use]
    pub fn of(&self, meter: Meter) -> Option<u64> {
        match meter {
            Meter::Time => self.micros,
            Meter::ModelCalls => self.model_calls,
            Meter::ToolCalls => self.tool_calls,
            Meter::Tokens => self.tokens,
            Meter::Money => self.cost_micros,
        }
    }

    /// The same with as much again of one meter.
    #[must_use]
    pub fn raised(self, meter: Meter, by: u64) -> Self {
        let more = |limit: Option<u64>| limit.map(|limit| limit.saturating_add(by));
        match meter {
            Meter::Time => Self { micros: more(self.micros), ..self },
            Meter::ModelCalls => Self { model_calls: more(self.model_calls), ..self },
            Meter::ToolCalls => Self { tool_calls: more(self.tool_calls), ..self },
            Meter::Tokens => Self { tokens: more(self.tokens), ..self },
            Meter::Money => Self { cost_micros: more(self.cost_micros), ..self },
        }
    }
}

/// What a run has used; its time is told by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// How often it asked the model.
    pub model_calls: u64,
    /// How often it called a tool.
    pub tool_calls: u64,
    /// What the model cost.
    pub usage: Usage,
}
