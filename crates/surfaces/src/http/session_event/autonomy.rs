//! Events of goals, tasks, runs and schedules.

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{GoalId, PlanId, RunId, ScheduleId, TaskId},
    identity::SessionIdentity,
};

use super::{shared::Person, timestamp::Timestamp};

published! {
    enum AutoRunKind = autonomy::AutoRunKind { GoalRun, TaskRun }

    /// Whose work a run's turn is.
    struct AutoExecutionContext = autonomy::AutoExecutionContext {
        session: SessionIdentity, kind: AutoRunKind, run_id "run": RunId, task_id "task": TaskId;
        goal_id "goal": Option<GoalId>
    }

    struct Budget = autonomy::budget::Budget {
        ; micros: Option<u64>, model_calls: Option<u64>, tool_calls: Option<u64>,
        tokens: Option<u64>, cost_micros: Option<u64>
    }

    enum Meter = autonomy::budget::Meter { Time, ModelCalls, ToolCalls, Tokens, Money }

    struct Pinned = autonomy::Pinned { plan: PlanId, digest: Digest }

    #[serde(tag = "kind")]
    enum Rhythm = autonomy::schedule::Rhythm {
        Cron { expression: String, zone: String },
        Every { micros: i64, from: Timestamp },
        Once { at "localTime": String, zone: String },
    }

    #[serde(tag = "kind")]
    enum RunEnd = autonomy::RunEnd {
        Completed,
        Failed,
        Off { by "person": PersonId },
    }

    #[serde(tag = "kind")]
    enum RunPause = autonomy::RunPause {
        OutOfBudget { meter: Meter },
        Loop { tool: String },
        Stalled,
        Reported { summary: String },
        AwaitsApproval,
        PlanWaits { why "reason": String },
        TurnFailed { message: String },
        Stopped,
        InDoubt,
    }

    struct Slot = autonomy::schedule::Slot { schedule: ScheduleId, at: Timestamp, until: Timestamp }

    enum SlotEnd = autonomy::schedule::SlotEnd { Done, Failed, Skipped }

    #[serde(tag = "kind")]
    enum TaskEnd = autonomy::TaskEnd {
        Done { summary: String },
        Failed { summary: String },
        Dropped,
    }

    #[serde(tag = "type", content = "data")]
    enum AutoEvent = autonomy::event::AutoEvent {
        /// A goal was set.
        GoalAdded { goal: GoalId, title: String, by: Person },
        /// A goal is reached or given up; its tasks go with it.
        GoalEnded { goal: GoalId, reached: bool },
        /// A task was added; by nobody, if a schedule did.
        TaskAdded { task: TaskId, title: String; goal: Option<GoalId>, by: Option<Person> },
        /// A task ended.
        TaskEnded { task: TaskId, end: TaskEnd },
        /// A run began.
        RunStarted {
            context: AutoExecutionContext, budget: Budget, at: Timestamp, by: Person,
            /// Whether it drafts a plan first.
            drafts: bool;
            slot: Option<Slot>
        },
        /// A run wants a turn.
        Ticked {
            context: AutoExecutionContext,
            /// What the turn opens with.
            words "text": String
        },
        /// A run turned to the next task of its goal.
        RunMoved { run: RunId, task: TaskId },
        /// A run is pinned to an approved plan.
        RunPinned { run: RunId, plan "pinned": Pinned },
        /// A run has used most of a budget.
        RunWarned { run: RunId, meter: Meter },
        /// A run waits for a person.
        RunPaused { run: RunId, why "reason": RunPause },
        /// A run goes on; let by nobody, if its plan goes on.
        RunResumed { run: RunId, budget: Budget; by: Option<Person> },
        /// A run ended.
        RunEnded { context: AutoExecutionContext, end: RunEnd },
        /// A schedule is on.
        ScheduleAdded {
            schedule: ScheduleId, rhythm: Rhythm, title: String, budget: Budget,
            next "nextSlot": Timestamp, by: Person;
            goal: Option<GoalId>, jitter_micros: i64
        },
        /// Slots passed while nobody was there to run them.
        SlotsMissed { schedule: ScheduleId, first: Timestamp, last: Timestamp, count: u64 },
        /// A slot was claimed: its run begins, and it is never claimed again.
        SlotClaimed { schedule: ScheduleId, slot: Timestamp; next "nextSlot": Option<Timestamp> },
        /// The run of a slot ended.
        SlotEnded { schedule: ScheduleId, slot: Timestamp, end: SlotEnd },
        /// A schedule is off.
        ScheduleEnded { schedule: ScheduleId, why "reason": String },
    }
}
