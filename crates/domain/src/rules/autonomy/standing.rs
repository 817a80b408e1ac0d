//! How a run stands with its budget.

use crate::model::{
    autonomy::{
        Run,
        budget::{Meter, Spent},
    },
    quota::{WARNS_AT_PERCENT, is_share},
    time::Time,
};

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
        let warns = |(used, limit): (u64, u64)| is_share(used, limit, WARNS_AT_PERCENT);
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
