//! What a run may use, and how much of it is gone. 80 % warns, 100 % pauses and asks.

use serde::{Deserialize, Serialize};

use crate::{autonomy::Run, time::Time, turn::Usage};

/// From this share on a person is warned, in percent.
pub const WARNS_AT_PERCENT: u64 = 80;

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

/// How a run stands with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is enough left.
    Fine,
    /// A person should know, and was not told yet.
    Warns(Meter),
    /// Nothing is left.
    Spent(Meter),
}

/// What a run is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Ask the model.
    Asking,
    /// Call tools.
    Calling,
}

impl Doing {
    /// Whether a meter has a say in it: calls of tools are not held back by calls of the model, nor the reverse.
    fn is_counted_by(self, meter: Meter) -> bool {
        match meter {
            Meter::ModelCalls => self == Self::Asking,
            Meter::ToolCalls => self == Self::Calling,
            Meter::Time | Meter::Tokens | Meter::Money => true,
        }
    }
}

/// How a run stands with its budget now, for what it is about to do.
#[must_use]
pub fn standing(run: &Run, at: Time, doing: Doing) -> Standing {
    let meters = || Meter::ALL.into_iter().filter(|meter| doing.is_counted_by(*meter));
    let share = |meter: Meter| {
        let limit = run.budget.of(meter)?;
        Some((used(run, meter, at), limit))
    };
    let full = |meter: &Meter| share(*meter).is_some_and(|(used, limit)| used >= limit);
    if let Some(meter) = meters().find(full) {
        return Standing::Spent(meter);
    }
    let high = |meter: &Meter| {
        let warns = |(used, limit): (u64, u64)| {
            u128::from(used) * 100 >= u128::from(limit) * u128::from(WARNS_AT_PERCENT)
        };
        !run.warned.contains(meter) && share(*meter).is_some_and(warns)
    };
    meters().find(high).map_or(Standing::Fine, Standing::Warns)
}

/// How much of a meter a run has used.
#[must_use]
pub fn used(run: &Run, meter: Meter, at: Time) -> u64 {
    let Spent { model_calls, tool_calls, usage } = run.spent;
    match meter {
        Meter::Time => u64::try_from(at.0 - run.since.0).unwrap_or(0),
        Meter::ModelCalls => model_calls,
        Meter::ToolCalls => tool_calls,
        Meter::Tokens => usage.input + usage.output,
        Meter::Money => usage.cost_micros,
    }
}
