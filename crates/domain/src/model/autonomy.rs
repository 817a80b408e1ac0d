//! Work without a person at the keyboard: goals, tasks, runs and schedules of one session.
//!
//! A run works on one task at a time, in turns of the session like any other. Its registry is the
//! session's own state, so a run cannot reach another session, and survives whatever the session survives.
//!
//! Must always hold:
//! - `run-output-stays-home`: what a run says is recorded in its own session and nowhere else.
//! - `slot-once`: a slot of a schedule is claimed once, and ends with exactly one verdict.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::PersonId,
    digest::Digest,
    id::{GoalId, PlanId, RunId, ScheduleId, TaskId},
    identity::SessionIdentity,
    time::Time,
    turn::{Cause, Turn},
};

pub mod attributes;
pub mod budget;
pub mod event;
pub mod schedule;

use budget::{Budget, Meter, Spent};
use schedule::{Schedule, Slot};

/// What kind of run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AutoRunKind {
    /// Tasks of one goal, one after the other, with what the goal shares.
    GoalRun,
    /// One task alone.
    TaskRun,
}

impl AutoRunKind {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GoalRun => "GOAL_RUN",
            Self::TaskRun => "TASK_RUN",
        }
    }
}

/// Whose work something is: it travels with every tick, message and log line of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutoExecutionContext {
    /// In this session.
    pub session: SessionIdentity,
    /// What kind of run.
    pub kind: AutoRunKind,
    /// The run.
    pub run_id: RunId,
    /// The goal; for a run of a goal alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<GoalId>,
    /// The task; always.
    pub task_id: TaskId,
}

impl AutoExecutionContext {
    /// A run of one task alone, or of a goal.
    #[must_use]
    pub fn new(
        session: SessionIdentity,
        run_id: RunId,
        goal_id: Option<GoalId>,
        task_id: TaskId,
    ) -> Self {
        let kind = if goal_id.is_some() { AutoRunKind::GoalRun } else { AutoRunKind::TaskRun };
        Self { session, kind, run_id, goal_id, task_id }
    }
}

/// Goals, tasks, runs and schedules of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Autonomy {
    /// The goals that are open.
    pub goals: BTreeMap<GoalId, Goal>,
    /// The tasks that are open, and those of open goals that have ended.
    pub tasks: BTreeMap<TaskId, Task>,
    /// The registry: the runs that have not ended.
    pub runs: BTreeMap<RunId, Run>,
    /// The schedules that are on.
    pub schedules: BTreeMap<ScheduleId, Schedule>,
    /// The number that was given out last.
    pub numbered: u32,
}

/// A goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goal {
    /// Its number, for people.
    pub number: u32,
    /// In words.
    pub title: String,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Its number, for people.
    pub number: u32,
    /// In words.
    pub title: String,
    /// The goal it belongs to; none if it stands alone.
    pub goal: Option<GoalId>,
    /// How it came out; none while it is open.
    pub ended: Option<TaskEnd>,
}

/// How a task came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It is done.
    Done {
        /// What was said of it.
        summary: String,
    },
    /// It failed.
    Failed {
        /// What was said of it.
        summary: String,
    },
    /// A person gave it up.
    Dropped,
}

impl TaskEnd {
    /// As people read it.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Dropped => "dropped",
        }
    }

    /// What was said of it.
    #[must_use]
    pub fn summary(&self) -> &str {
        match self {
            Self::Done { summary } | Self::Failed { summary } => summary,
            Self::Dropped => "",
        }
    }
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Its number, for people.
    pub number: u32,
    /// Whose work it is.
    pub context: AutoExecutionContext,
    /// Who started it.
    pub by: PersonId,
    /// Where it stands.
    pub status: RunStatus,
    /// What it may use.
    pub budget: Budget,
    /// What it has used.
    pub spent: Spent,
    /// When its time began.
    pub since: Time,
    /// The meters of which its person was warned.
    pub warned: BTreeSet<Meter>,
    /// The approved plan that it is pinned to.
    pub plan: Option<Pinned>,
    /// Whether it drafts a plan first and waits for its approval.
    pub drafts: bool,
    /// How often each call gave the same observation, in its task.
    pub seen: BTreeMap<Digest, u32>,
    /// How many of its turns in a row brought nothing.
    pub idle: u32,
    /// The slot of a schedule that it is.
    pub slot: Option<Slot>,
}

/// The plan that a run is pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pinned {
    /// The plan.
    pub plan: PlanId,
    /// The digest of the revision that was approved.
    pub digest: Digest,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It goes on by itself.
    Running,
    /// It waits for a person.
    Paused(RunPause),
}

/// Why a run waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunPause {
    /// A budget is used up.
    OutOfBudget {
        /// Which.
        meter: Meter,
    },
    /// The same call gave the same observation too often.
    Loop {
        /// The tool.
        tool: String,
    },
    /// Its turns bring nothing.
    Stalled,
    /// The model says that it cannot go on, or that its task failed.
    Reported {
        /// What it said.
        summary: String,
    },
    /// The plan that it wrote waits for approval.
    AwaitsApproval,
    /// The plan that it is pinned to does not go on.
    PlanWaits {
        /// Why.
        why: String,
    },
    /// A turn failed.
    TurnFailed {
        /// Why.
        message: String,
    },
    /// A person stopped its turn.
    Stopped,
    /// The outcome of a call is unknown.
    InDoubt,
}

impl RunPause {
    /// Why, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::OutOfBudget { meter } => {
                format!(
                    "its budget of {} is used up; /auto resume gives it as much again",
                    meter.words()
                )
            }
            Self::Loop { tool } => format!(
                "{tool} was called the same way {} times with the same result",
                crate::model::limits::SAME_OBSERVATION_MAX
            ),
            Self::Stalled => "its turns bring nothing".into(),
            Self::Reported { summary } => format!("the model says: {summary}"),
            Self::AwaitsApproval => "its plan waits for your decision".into(),
            Self::PlanWaits { why } => format!("its plan does not go on: {why}"),
            Self::TurnFailed { message } => format!("its turn failed: {message}"),
            Self::Stopped => "you stopped it".into(),
            Self::InDoubt => "the outcome of a call is unknown".into(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// What it was for is done.
    Completed,
    /// It failed.
    Failed,
    /// A person turned it off.
    Off {
        /// Who.
        by: PersonId,
    },
}

impl RunEnd {
    /// The name, as programs read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Off { .. } => "off",
        }
    }
}

impl Autonomy {
    /// The run whose work a turn of this cause is.
    #[must_use]
    pub fn run_of(&self, cause: Cause) -> Option<&Run> {
        match cause {
            Cause::Tick { run } => self.runs.get(&run),
            Cause::Execution { plan } => self.pinned_to(plan),
            Cause::Message | Cause::Compaction | Cause::ChangesRequested { .. } => None,
        }
    }

    /// The run that is pinned to this plan.
    #[must_use]
    pub fn pinned_to(&self, plan: PlanId) -> Option<&Run> {
        self.runs.values().find(|run| run.plan.is_some_and(|pinned| pinned.plan == plan))
    }

    /// Whose work this turn is, if it is a run's.
    #[must_use]
    pub fn context(&self, turn: &Turn) -> Option<&AutoExecutionContext> {
        self.run_of(turn.cause.cause).map(|run| &run.context)
    }

    /// The next open task of a goal, in the order in which they were added.
    #[must_use]
    pub fn open_task(&self, goal: Option<GoalId>) -> Option<(TaskId, &Task)> {
        let open = self.tasks.iter().filter(|(_, task)| task.goal == goal && task.ended.is_none());
        let free =
            open.filter(|(id, _)| !self.runs.values().any(|run| run.context.task_id == **id));
        free.min_by_key(|(_, task)| task.number).map(|(id, task)| (*id, task))
    }

    /// Whether a run waits for a person.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.runs.values().any(|run| matches!(run.status, RunStatus::Paused(_)))
    }
}
