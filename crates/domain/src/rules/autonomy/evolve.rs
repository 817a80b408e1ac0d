//! What an event of goals, tasks, runs and schedules means. Never judges: that was `decide`'s job, once.

use crate::model::{
    autonomy::{
        Autonomy, Goal, Run, RunStatus, Task, budget::Spent, event::AutoEvent, schedule::Schedule,
    },
    digest::{Digest, Encoder},
    id::{PlanId, RunId, Seq},
    limits,
    session::{CorruptJournal, Session},
    turn::{Answer, Cause, Queued, event::TurnEnd},
};

/// Applies a fact that stands at this place in the stream.
#[expect(clippy::too_many_lines, reason = "one arm for each event of a run")]
pub(crate) fn evolve(
    session: &mut Session,
    seq: Seq,
    event: &AutoEvent,
) -> Result<(), CorruptJournal> {
    let missing = |what: &str| CorruptJournal::new(seq, format!("{what} that is not there"));
    let auto = &mut session.auto;
    match event {
        AutoEvent::GoalAdded { goal, title, .. } => {
            let number = auto.number();
            auto.goals.insert(*goal, Goal { number, title: title.clone() });
        }
        AutoEvent::GoalEnded { goal, .. } => {
            auto.goals.remove(goal).ok_or_else(|| missing("a goal"))?;
            auto.tasks.retain(|_, task| task.goal != Some(*goal));
        }
        AutoEvent::TaskAdded { task, goal, title, .. } => {
            let number = auto.number();
            let (title, goal) = (title.clone(), *goal);
            auto.tasks.insert(*task, Task { number, title, goal, ended: None });
        }
        AutoEvent::TaskEnded { task, end } => {
            let ended = auto.tasks.get_mut(task).ok_or_else(|| missing("a task"))?;
            ended.ended = Some(end.clone());
            let stands_alone = ended.goal.is_none();
            let worked_on = auto.runs.values().any(|run| run.context.task_id == *task);
            if stands_alone && !worked_on {
                auto.tasks.remove(task);
            }
        }
        AutoEvent::RunStarted { context, budget, at, by, drafts, slot } => {
            let run = Run {
                number: auto.number(),
                context: context.clone(),
                by: by.id.clone(),
                status: RunStatus::Running,
                budget: *budget,
                spent: Spent::default(),
                since: *at,
                warned: Default::default(),
                plan: None,
                drafts: *drafts,
                seen: Default::default(),
                idle: 0,
                slot: *slot,
            };
            auto.runs.insert(context.run_id, run);
        }
        AutoEvent::Ticked { context, .. } => {
            session.queue.push(Queued { seq, cause: Cause::Tick { run: context.run_id } });
        }
        AutoEvent::RunMoved { run, task } => {
            let run = auto.runs.get_mut(run).ok_or_else(|| missing("a run"))?;
            run.context.task_id = *task;
            (run.idle, run.plan) = (0, None);
            run.seen.clear();
        }
        AutoEvent::RunPinned { run, plan } => {
            auto.runs.get_mut(run).ok_or_else(|| missing("a run"))?.plan = Some(*plan);
        }
        AutoEvent::RunWarned { run, meter } => {
            auto.runs.get_mut(run).ok_or_else(|| missing("a run"))?.warned.insert(*meter);
        }
        AutoEvent::RunPaused { run, why } => {
            let run = auto.runs.get_mut(run).ok_or_else(|| missing("a run"))?;
            run.status = RunStatus::Paused(why.clone());
        }
        AutoEvent::RunResumed { run, budget, .. } => {
            let run = auto.runs.get_mut(run).ok_or_else(|| missing("a run"))?;
            (run.status, run.budget, run.idle) = (RunStatus::Running, *budget, 0);
            run.seen.clear();
            run.warned.clear();
        }
        AutoEvent::RunEnded { context, .. } => {
            auto.runs.remove(&context.run_id).ok_or_else(|| missing("a run"))?;
            let ended = |task: &Task| task.goal.is_none() && task.ended.is_some();
            if auto.tasks.get(&context.task_id).is_some_and(ended) {
                auto.tasks.remove(&context.task_id);
            }
        }
        AutoEvent::ScheduleAdded {
            schedule,
            rhythm,
            title,
            goal,
            budget,
            next,
            jitter_micros,
            by,
        } => {
            let added = Schedule {
                number: auto.number(),
                rhythm: rhythm.clone(),
                title: title.clone(),
                goal: *goal,
                budget: *budget,
                next: Some(*next),
                jitter_micros: *jitter_micros,
                by: by.clone(),
            };
            auto.schedules.insert(*schedule, added);
        }
        AutoEvent::SlotClaimed { schedule, next, .. } => {
            let claimed = auto.schedules.get_mut(schedule);
            claimed.ok_or_else(|| missing("a schedule"))?.next = *next;
        }
        AutoEvent::SlotsMissed { .. } | AutoEvent::SlotEnded { .. } => {}
        AutoEvent::ScheduleEnded { schedule, .. } => {
            auto.schedules.remove(schedule).ok_or_else(|| missing("a schedule"))?;
        }
    }
    Ok(())
}

impl Autonomy {
    fn number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    fn run_mut(&mut self, cause: Cause) -> Option<&mut Run> {
        let id: RunId = self.run_of(cause)?.context.run_id;
        self.runs.get_mut(&id)
    }

    /// The model is about to be asked in a turn of this cause.
    pub(crate) fn model_call_started(&mut self, cause: Cause) {
        if let Some(run) = self.run_mut(cause) {
            run.spent.model_calls += 1;
        }
    }

    /// A model call in a turn of this cause did not begin after all.
    pub(crate) fn model_call_abandoned(&mut self, cause: Cause) {
        if let Some(run) = self.run_mut(cause) {
            run.spent.model_calls = run.spent.model_calls.saturating_sub(1);
        }
    }

    /// The model answered in a turn of this cause.
    pub(crate) fn answered(&mut self, cause: Cause, answer: &Answer) {
        if let Some(run) = self.run_mut(cause) {
            run.spent.usage = run.spent.usage.plus(answer.usage);
        }
    }

    /// A tool is about to be called in a turn of this cause.
    pub(crate) fn call_started(&mut self, cause: Cause) {
        if let Some(run) = self.run_mut(cause) {
            run.spent.tool_calls += 1;
        }
    }

    /// A tool call in a turn of this cause did not begin after all.
    pub(crate) fn call_abandoned(&mut self, cause: Cause) {
        if let Some(run) = self.run_mut(cause) {
            run.spent.tool_calls = run.spent.tool_calls.saturating_sub(1);
        }
    }

    /// A call gave an observation in a turn of this cause.
    pub(crate) fn observed(&mut self, cause: Cause, observation: Digest) {
        if let Some(run) = self.run_mut(cause) {
            run.idle = 0;
            if run.seen.len() >= limits::OBSERVATIONS_MAX {
                run.seen.clear();
            }
            *run.seen.entry(observation).or_default() += 1;
        }
    }

    /// A turn of this cause ended.
    pub(crate) fn turn_ended(&mut self, cause: Cause, end: &TurnEnd) {
        let answered = matches!(end, TurnEnd::Answered | TurnEnd::Planned { .. });
        if let Some(run) = self.run_mut(cause).filter(|_| answered) {
            run.idle += 1;
        }
    }

    /// A plan ended: nothing is pinned to it any more.
    pub(crate) fn plan_ended(&mut self, plan: PlanId) {
        for run in self.runs.values_mut() {
            run.plan = run.plan.filter(|pinned| pinned.plan != plan);
        }
    }
}

/// What a call asked for and what it gave, as one thing that can be seen again.
pub(crate) fn observation(tool: &str, arguments: &str, output: &str) -> Digest {
    Encoder::of("observation", 1)
        .field("tool", tool)
        .field("arguments", arguments)
        .field("output", output)
        .digest()
}
