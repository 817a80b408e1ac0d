//! What a turn asks a model to be: whoever plans need not be whoever executes.

use crate::model::{
    plan::PlanStatus,
    session::Session,
    turn::{Cause, Turn, Work},
};

/// What a model is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It talks.
    Talk,
    /// It writes a plan.
    Plan,
    /// It executes a plan, or does the work of a run.
    Execute,
    /// It sums up what was said.
    SumUp,
}

impl Role {
    /// What this turn asks for.
    #[must_use]
    pub fn of(session: &Session, turn: &Turn) -> Self {
        let drafts = session
            .plan()
            .is_some_and(|plan| matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready));
        match (turn.work, turn.cause.cause) {
            (Work::Compacts, _) => Self::SumUp,
            (_, Cause::Execution { .. } | Cause::Tick { .. }) => Self::Execute,
            (_, Cause::Message | Cause::ChangesRequested { .. } | Cause::Compaction) if drafts => {
                Self::Plan
            }
            (_, Cause::Message | Cause::ChangesRequested { .. } | Cause::Compaction) => Self::Talk,
        }
    }
}
