//! Events of goals, tasks, runs and schedules.

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{GoalId, PlanId, RunId, ScheduleId, TaskId},
    identity::SessionIdentity,
    time::Time,
};

use super::shared::Person;

stored! {
    enum AutoRunKind = autonomy::AutoRunKind { GoalRun, TaskRun }

    struct AutoExecutionContext = autonomy::AutoExecutionContext {
        session: SessionIdentity, kind: AutoRunKind, run_id: RunId, task_id: TaskId;
        goal_id: Option<GoalId>
    }

    struct Budget = autonomy::budget::Budget {
        ; micros: Option<u64>, model_calls: Option<u64>, tool_calls: Option<u64>,
        tokens: Option<u64>, cost_micros: Option<u64>
    }

    enum Meter = autonomy::budget::Meter { Time, ModelCalls, ToolCalls, Tokens, Money }

    struct Pinned = autonomy::Pinned { plan: PlanId, digest: Digest }

    enum Rhythm = autonomy::schedule::Rhythm {
        Cron { expression: String, zone: String },
        Every { micros: i64, from: Time },
        Once { at: String, zone: String },
    }

    enum RunEnd = autonomy::RunEnd {
        Completed,
        Failed,
        Off { by: PersonId },
    }

    enum RunPause = autonomy::RunPause {
        OutOfBudget { meter: Meter },
        Loop { tool: String },
        Stalled,
        Reported { summary: String },
        AwaitsApproval,
        PlanWaits { why: String },
        TurnFailed { message: String },
        Stopped,
        InDoubt,
    }

    struct Slot = autonomy::schedule::Slot { schedule: ScheduleId, at: Time, until: Time }

    enum SlotEnd = autonomy::schedule::SlotEnd { Done, Failed, Skipped }

    enum TaskEnd = autonomy::TaskEnd {
        Done { summary: String },
        Failed { summary: String },
        Dropped,
    }

    enum AutoEvent = autonomy::event::AutoEvent {
        GoalAdded { goal: GoalId, title: String, by: Person },
        GoalEnded { goal: GoalId, reached: bool },
        TaskAdded { task: TaskId, title: String; goal: Option<GoalId>, by: Option<Person> },
        TaskEnded { task: TaskId, end: TaskEnd },
        RunStarted {
            context: AutoExecutionContext, budget: Budget, at: Time, by: Person; drafts: bool,
            slot: Option<Slot>
        },
        Ticked { context: AutoExecutionContext, words: String },
        RunMoved { run: RunId, task: TaskId },
        RunPinned { run: RunId, plan: Pinned },
        RunWarned { run: RunId, meter: Meter },
        RunPaused { run: RunId, why: RunPause },
        RunResumed { run: RunId, budget: Budget; by: Option<Person> },
        RunEnded { context: AutoExecutionContext, end: RunEnd },
        ScheduleAdded {
            schedule: ScheduleId, rhythm: Rhythm, title: String, budget: Budget, next: Time,
            by: Person; goal: Option<GoalId>, jitter_micros: i64
        },
        SlotsMissed { schedule: ScheduleId, first: Time, last: Time, count: u64 },
        SlotClaimed { schedule: ScheduleId, slot: Time, next: Option<Time> },
        SlotEnded { schedule: ScheduleId, slot: Time, end: SlotEnd },
        ScheduleEnded { schedule: ScheduleId, why: String },
    }
}
