//! Goals, tasks, runs and schedules: as people look at them.

use std::iter;

use planwright_domain::{
    autonomy::{RunStatus, TaskEnd, budget::Meter, schedule::Schedule, standing::used},
    id::{GoalId, RunId, TaskId},
    next::{next, waiting},
    session::Session,
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::{engine::calendar, queries::waiting::waits_for};

/// So many slots of a schedule are told ahead.
const UPCOMING: usize = 5;

/// Goals, tasks, runs and schedules of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkView {
    /// The goals that are open.
    pub goals: Vec<GoalRow>,
    /// The tasks that are open, and those of open goals that have ended.
    pub tasks: Vec<TaskRow>,
    /// The runs that have not ended.
    pub runs: Vec<RunRow>,
    /// The schedules that are on.
    pub schedules: Vec<ScheduleRow>,
}

/// A goal in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalRow {
    /// Its id.
    pub id: GoalId,
    /// Its number.
    pub number: u32,
    /// In words.
    pub title: String,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskRow {
    /// Its id.
    pub id: TaskId,
    /// Its number.
    pub number: u32,
    /// In words.
    pub title: String,
    /// The number of its goal.
    pub goal: Option<u32>,
    /// How it came out, as people read it; none while it is open.
    pub ended: Option<String>,
    /// What was said of it.
    pub summary: String,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// Its number.
    pub number: u32,
    /// `GOAL_RUN` or `TASK_RUN`.
    pub kind: String,
    /// The number of its task.
    pub task: Option<u32>,
    /// The number of its goal.
    pub goal: Option<u32>,
    /// Why it waits; none while it goes on.
    pub waits: Option<String>,
    /// Whether it paused by itself, so that `/auto resume` lets it go on.
    #[serde(default)]
    pub resumable: bool,
    /// What it has used, and what it may use, by meter.
    pub used: Vec<(String, u64, u64)>,
}

/// A schedule in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleRow {
    /// Its number.
    pub number: u32,
    /// When, in words.
    pub rhythm: String,
    /// What.
    pub title: String,
    /// Its next slot.
    pub next: Option<Time>,
    /// Its next slots, the first of them too.
    pub upcoming: Vec<Time>,
    /// How long after its time each slot begins.
    pub jitter_micros: i64,
}

impl WorkView {
    /// Goals, tasks, runs and schedules, in the order of their numbers.
    #[must_use]
    pub fn of(session: &Session, now: Time) -> Self {
        let auto = &session.auto;
        // A run goes on as long as its session does: it waits for whatever its session waits for.
        let held = waiting(session).filter(|_| next(session).is_rest()).map(waits_for);
        let goal_number = |goal: Option<GoalId>| Some(auto.goals.get(&goal?)?.number);
        let mut view = Self {
            goals: auto
                .goals
                .iter()
                .map(|(id, goal)| GoalRow {
                    id: *id,
                    number: goal.number,
                    title: goal.title.clone(),
                })
                .collect(),
            tasks: auto
                .tasks
                .iter()
                .map(|(id, task)| TaskRow {
                    id: *id,
                    number: task.number,
                    title: task.title.clone(),
                    goal: goal_number(task.goal),
                    ended: task.ended.as_ref().map(|end| end.label().to_owned()),
                    summary: task.ended.as_ref().map_or("", TaskEnd::summary).to_owned(),
                })
                .collect(),
            runs: auto
                .runs
                .iter()
                .map(|(id, run)| {
                    let meter = |meter: Meter| {
                        let limit = run.budget.of(meter)?;
                        Some((meter.words().to_owned(), used(run, meter, now), limit))
                    };
                    RunRow {
                        id: *id,
                        number: run.number,
                        kind: run.context.kind.name().into(),
                        task: auto.tasks.get(&run.context.task_id).map(|task| task.number),
                        goal: goal_number(run.context.goal_id),
                        waits: match &run.status {
                            RunStatus::Running => held.map(str::to_owned),
                            RunStatus::Paused(why) => Some(why.in_words()),
                        },
                        resumable: matches!(run.status, RunStatus::Paused(_)),
                        used: Meter::ALL.into_iter().filter_map(meter).collect(),
                    }
                })
                .collect(),
            schedules: auto
                .schedules
                .values()
                .map(|schedule| ScheduleRow {
                    number: schedule.number,
                    rhythm: schedule.rhythm.in_words(),
                    title: schedule.title.clone(),
                    next: schedule.next,
                    upcoming: upcoming(schedule),
                    jitter_micros: schedule.jitter_micros,
                })
                .collect(),
        };
        view.goals.sort_by_key(|row| row.number);
        view.tasks.sort_by_key(|row| row.number);
        view.runs.sort_by_key(|row| row.number);
        view.schedules.sort_by_key(|row| row.number);
        view
    }
}

/// The slots of a schedule that come next.
fn upcoming(schedule: &Schedule) -> Vec<Time> {
    let after = |slot: &Time| calendar::next(&schedule.rhythm, *slot).ok().flatten();
    iter::successors(schedule.next, after).take(UPCOMING).collect()
}
