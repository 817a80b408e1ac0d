//! What happened to goals, tasks, runs and schedules, as it is recorded.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    autonomy::{
        AutoExecutionContext, Pinned, RunEnd, RunPause, TaskEnd,
        budget::{Budget, Meter},
        schedule::{Rhythm, Slot, SlotEnd},
    },
    id::{GoalId, RunId, ScheduleId, TaskId},
    time::Time,
};

/// What happened to goals, tasks, runs and schedules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AutoEvent {
    /// A goal was set.
    GoalAdded {
        /// The goal.
        goal: GoalId,
        /// In words.
        title: String,
        /// Who.
        by: Person,
    },
    /// A goal is reached or given up; its tasks go with it.
    GoalEnded {
        /// The goal.
        goal: GoalId,
        /// Whether it was reached.
        reached: bool,
    },
    /// A task was added.
    TaskAdded {
        /// The task.
        task: TaskId,
        /// The goal it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<GoalId>,
        /// In words.
        title: String,
        /// Who; nobody, if a schedule did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// A task came out.
    TaskEnded {
        /// The task.
        task: TaskId,
        /// How.
        end: TaskEnd,
    },
    /// A run began.
    RunStarted {
        /// Whose work it is.
        context: AutoExecutionContext,
        /// What it may use.
        budget: Budget,
        /// When.
        at: Time,
        /// Who started it.
        by: Person,
        /// Whether it drafts a plan first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        drafts: bool,
        /// The slot of a schedule that it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot: Option<Slot>,
    },
    /// A run wants a turn.
    Ticked {
        /// Whose work it is.
        context: AutoExecutionContext,
        /// What the turn opens with.
        words: String,
    },
    /// A run turned to the next task of its goal.
    RunMoved {
        /// The run.
        run: RunId,
        /// The task.
        task: TaskId,
    },
    /// A run is pinned to an approved plan.
    RunPinned {
        /// The run.
        run: RunId,
        /// The plan.
        plan: Pinned,
    },
    /// A run has used most of a budget.
    RunWarned {
        /// The run.
        run: RunId,
        /// Of what.
        meter: Meter,
    },
    /// A run waits for a person.
    RunPaused {
        /// The run.
        run: RunId,
        /// Why.
        why: RunPause,
    },
    /// A run goes on.
    RunResumed {
        /// The run.
        run: RunId,
        /// What it may use now.
        budget: Budget,
        /// Who let it; nobody, if its plan goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// A run ended.
    RunEnded {
        /// Whose work it was.
        context: AutoExecutionContext,
        /// How.
        end: RunEnd,
    },
    /// A schedule is on.
    ScheduleAdded {
        /// The schedule.
        schedule: ScheduleId,
        /// When.
        rhythm: Rhythm,
        /// What is to be done.
        title: String,
        /// For this goal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<GoalId>,
        /// What each of its runs may use.
        budget: Budget,
        /// Its first slot.
        next: Time,
        /// How long after its time each slot begins.
        #[serde(default)]
        jitter_micros: i64,
        /// Who.
        by: Person,
    },
    /// Slots passed while nobody was there to run them.
    SlotsMissed {
        /// Of this schedule.
        schedule: ScheduleId,
        /// The first.
        first: Time,
        /// The last.
        last: Time,
        /// How many.
        count: u64,
    },
    /// A slot was claimed: its run begins, and it is never claimed again.
    SlotClaimed {
        /// Of this schedule.
        schedule: ScheduleId,
        /// The slot.
        slot: Time,
        /// The slot after it; none if there is none.
        next: Option<Time>,
    },
    /// A slot came out.
    SlotEnded {
        /// Of this schedule.
        schedule: ScheduleId,
        /// The slot.
        slot: Time,
        /// How.
        end: SlotEnd,
    },
    /// A schedule is off.
    ScheduleEnded {
        /// The schedule.
        schedule: ScheduleId,
        /// Why, in words.
        why: String,
    },
}

impl AutoEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::GoalAdded { .. } => "goal_added",
            Self::GoalEnded { .. } => "goal_ended",
            Self::TaskAdded { .. } => "task_added",
            Self::TaskEnded { .. } => "task_ended",
            Self::RunStarted { .. } => "run_started",
            Self::Ticked { .. } => "ticked",
            Self::RunMoved { .. } => "run_moved",
            Self::RunPinned { .. } => "run_pinned",
            Self::RunWarned { .. } => "run_warned",
            Self::RunPaused { .. } => "run_paused",
            Self::RunResumed { .. } => "run_resumed",
            Self::RunEnded { .. } => "run_ended",
            Self::ScheduleAdded { .. } => "schedule_added",
            Self::SlotsMissed { .. } => "slots_missed",
            Self::SlotClaimed { .. } => "slot_claimed",
            Self::SlotEnded { .. } => "slot_ended",
            Self::ScheduleEnded { .. } => "schedule_ended",
        }
    }
}
