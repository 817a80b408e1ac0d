//! The tools that are answered here: when a turn is told of them and may use them, and what they do.
//!
//! Must always hold:
//! - `mode-gating`: a plan tool is listed only while plan work of its strategy is active, and usable only in its state.
//! - `inactive-is-inert`: called at any other time it is refused as `policy_denied`, and no state
//!   changes.
//! - `no-side-effects-in-plan-tools`: they touch plan state and nothing else.

use crate::model::{
    effect::Effect,
    plan::{Plan, PlanStatus, Progress, Reads, Strategy},
    session::Session,
    tools::{PlanTool, own::OwnTool},
    turn::{CallKind, Cause, RequestedCall, Turn},
};

pub(crate) mod apply;

/// The plan tools that a turn is told of: all of the strategy while its plan work is active, whatever its status. A list
/// that changed with it would have the model's maker read the whole conversation again.
#[must_use]
pub fn listed(session: &Session) -> &'static [PlanTool] {
    session.plan().map_or(&[], |plan| of_strategy(plan.strategy))
}

/// The plan tools of a strategy.
#[must_use]
pub fn of_strategy(strategy: Strategy) -> &'static [PlanTool] {
    match strategy {
        Strategy::Document => &[PlanTool::Get, PlanTool::SetContent, PlanTool::Report],
        Strategy::Collect => &[PlanTool::Get, PlanTool::Finalize],
        Strategy::Build => &[
            PlanTool::Get,
            PlanTool::List,
            PlanTool::Create,
            PlanTool::SetMetadata,
            PlanTool::AddStep,
            PlanTool::UpdateStep,
            PlanTool::RemoveStep,
            PlanTool::Submit,
            PlanTool::Report,
        ],
    }
}

/// The plan tools that this turn may use.
#[must_use]
pub fn available(session: &Session, turn: &Turn) -> Vec<PlanTool> {
    let Some(plan) = session.plan() else { return Vec::new() };
    let undecided = matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready);
    let executes = executes(plan, turn);
    let is_usable = |tool: &PlanTool| match tool {
        PlanTool::Get | PlanTool::SetContent => true,
        PlanTool::Finalize => undecided,
        PlanTool::Report => executes,
        PlanTool::List
        | PlanTool::Create
        | PlanTool::SetMetadata
        | PlanTool::AddStep
        | PlanTool::UpdateStep
        | PlanTool::RemoveStep
        | PlanTool::Submit => !executes,
    };
    of_strategy(plan.strategy).iter().copied().filter(is_usable).collect()
}

fn executes(plan: &Plan, turn: &Turn) -> bool {
    turn.executes() == Some(plan.id)
        && !turn.reported
        && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
}

/// The tools of a run that this turn may see and use.
#[must_use]
pub fn of_run(session: &Session, turn: &Turn) -> Option<OwnTool> {
    let ticks = matches!(turn.cause.cause, Cause::Tick { .. });
    (ticks && session.auto.context(turn).is_some()).then_some(OwnTool::TaskReport)
}

/// Whether `collect` records this call instead of making it.
#[must_use]
pub fn is_recorded(plan: &Plan, call: &RequestedCall) -> bool {
    let CallKind::Tool(facts) = &call.kind else { return false };
    let collects = plan.strategy == Strategy::Collect
        && matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready);
    match facts.effect {
        Effect::Internal => false,
        Effect::Read => collects && plan.reads == Reads::Record,
        Effect::Write | Effect::External => collects,
    }
}
