//! Which goals, tasks, runs and schedules there may be, and what a run may still do.

use crate::{
    model::{
        actor::Person,
        autonomy::{
            AutoExecutionContext, Autonomy, Pinned, Run, RunEnd, RunPause, RunStatus, TaskEnd,
            budget::Budget,
            event::AutoEvent,
            schedule::{Rhythm, Slot, SlotEnd, jitter},
        },
        command::{AutoCommand, NewSchedule, Target},
        id::{GoalId, RunId},
        limits,
        plan::{PlanStatus, Progress, event::PlanEvent, refusal::PlanRefusal},
        refusal::Refusal,
        session::{Session, SessionEvent},
        time::Time,
        turn::{
            Cause, FailureKind, ModelFailure, Turn,
            ending::unrun,
            event::{TurnEnd, TurnEvent},
        },
    },
    rules::{
        autonomy::standing::{Doing, Standing, standing},
        openings as prompt,
    },
};

/// What a person asks of goals, tasks, runs and schedules.
pub(crate) fn decide(
    session: &Session,
    at: Time,
    person: &Person,
    command: &AutoCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let auto = &session.auto;
    let by = person.clone();
    match command {
        AutoCommand::AddGoal { goal, title } => {
            room("goals", auto.goals.len(), limits::GOALS_MAX)?;
            let title = titled(title)?;
            Ok(vec![event(AutoEvent::GoalAdded { goal: *goal, title, by })])
        }
        AutoCommand::EndGoal { goal, reached } => {
            if !auto.goals.contains_key(goal) {
                return Err(not_there("goal"));
            }
            let of_goal = |run: &&Run| run.context.goal_id == Some(*goal);
            let runs = auto.runs.values().filter(of_goal).map(|run| run.context.run_id).collect();
            let mut events = off(session, person, runs);
            events.push(event(AutoEvent::GoalEnded { goal: *goal, reached: *reached }));
            Ok(events)
        }
        AutoCommand::AddTask { task, goal, title } => {
            room("tasks", auto.tasks.len(), limits::TASKS_MAX)?;
            known_goal(auto, *goal)?;
            let (title, by) = (titled(title)?, Some(by));
            Ok(vec![event(AutoEvent::TaskAdded { task: *task, goal: *goal, title, by })])
        }
        AutoCommand::EndTask { task, end } => {
            let open = auto.tasks.get(task).filter(|task| task.ended.is_none());
            open.ok_or_else(|| not_there("open task"))?;
            let on_it = |run: &&Run| run.context.task_id == *task;
            let runs = auto.runs.values().filter(on_it).map(|run| run.context.run_id).collect();
            let mut events = off(session, person, runs);
            events.push(event(AutoEvent::TaskEnded { task: *task, end: end.clone() }));
            Ok(events)
        }
        AutoCommand::On { run, target, budget, drafts } => {
            start(session, at, person, *run, *target, *budget, *drafts)
        }
        AutoCommand::Off { run: Some(run) } => {
            if !auto.runs.contains_key(run) {
                return Err(not_there("run"));
            }
            Ok(off(session, person, vec![*run]))
        }
        AutoCommand::Off { run: None } if auto.runs.is_empty() => Err(Refusal::NoRuns),
        AutoCommand::Off { run: None } => Ok(all_off(session, person)),
        AutoCommand::Resume { run } => resume(session, person, *run),
        AutoCommand::AddSchedule(new) => add_schedule(auto, new, by),
        AutoCommand::EndSchedule { schedule } => {
            if !auto.schedules.contains_key(schedule) {
                return Err(not_there("schedule"));
            }
            let why = format!("{} turned it off", person.id.0);
            Ok(vec![event(AutoEvent::ScheduleEnded { schedule: *schedule, why })])
        }
    }
}

fn add_schedule(
    auto: &Autonomy,
    new: &NewSchedule,
    by: Person,
) -> Result<Vec<SessionEvent>, Refusal> {
    room("schedules", auto.schedules.len(), limits::SCHEDULES_MAX)?;
    known_goal(auto, new.goal)?;
    if let Rhythm::Every { micros, .. } = &new.rhythm
        && *micros < limits::INTERVAL_MICROS_MIN
    {
        return Err(Refusal::TooOften);
    }
    Ok(vec![event(AutoEvent::ScheduleAdded {
        schedule: new.schedule,
        rhythm: new.rhythm.clone(),
        title: titled(&new.title)?,
        goal: new.goal,
        budget: new.budget,
        next: new.next,
        jitter_micros: jitter(new.schedule, new.jitter_micros_max),
        by,
    })])
}

fn room(what: &'static str, there: usize, limit: usize) -> Result<(), Refusal> {
    if there < limit { Ok(()) } else { Err(Refusal::TooMany { what: what.into(), limit }) }
}

fn titled(title: &str) -> Result<String, Refusal> {
    let (bytes, limit) = (title.trim().len(), limits::WORK_TITLE_BYTES_MAX);
    match bytes {
        0 => Err(Refusal::EmptyMessage),
        _ if bytes > limit => Err(Refusal::MessageTooLong { bytes, limit }),
        _ => Ok(title.trim().to_owned()),
    }
}

fn known_goal(auto: &Autonomy, goal: Option<GoalId>) -> Result<(), Refusal> {
    let known = goal.is_none_or(|goal| auto.goals.contains_key(&goal));
    if known { Ok(()) } else { Err(not_there("goal")) }
}

fn start(
    session: &Session,
    at: Time,
    person: &Person,
    run: RunId,
    target: Target,
    budget: Budget,
    drafts: bool,
) -> Result<Vec<SessionEvent>, Refusal> {
    let auto = &session.auto;
    room("runs", auto.runs.len(), limits::RUNS_MAX)?;
    if drafts && session.plan().is_none() {
        return Err(PlanRefusal::WorkInactive.into());
    }
    let (goal, task) = match target {
        Target::Goal(goal) => {
            known_goal(auto, Some(goal))?;
            let (task, _) = auto.open_task(Some(goal)).ok_or(Refusal::NoOpenTask)?;
            (Some(goal), task)
        }
        Target::Task(task) => {
            let open = auto.tasks.get(&task).filter(|task| task.ended.is_none());
            let open = open.ok_or_else(|| not_there("open task"))?;
            if auto.runs.values().any(|run| run.context.task_id == task) {
                return Err(Refusal::AlreadyRuns { number: open.number });
            }
            (open.goal, task)
        }
        Target::NextTask => (None, auto.open_task(None).ok_or(Refusal::NoOpenTask)?.0),
    };
    let context = AutoExecutionContext::new(session.identity.clone(), run, goal, task);
    let pinned = match session.plan().map(|plan| (plan, &plan.status)) {
        Some((plan, PlanStatus::Executing(approval, Progress::Running))) => {
            Some(Pinned { plan: plan.id, digest: approval.revision_digest })
        }
        Some(_) | None => None,
    };
    let started = AutoEvent::RunStarted {
        context: context.clone(),
        budget,
        at,
        by: person.clone(),
        drafts,
        slot: None,
    };
    let then = match pinned.filter(|plan| auto.pinned_to(plan.plan).is_none()) {
        Some(plan) => AutoEvent::RunPinned { run, plan },
        None => ticked(auto, context, None),
    };
    Ok(vec![event(started), event(then)])
}

/// Ends every run of the session.
pub(crate) fn all_off(session: &Session, person: &Person) -> Vec<SessionEvent> {
    off(session, person, session.auto.runs.keys().copied().collect())
}

/// The end of every run, where its turn and what waits for it end anyway.
pub(crate) fn end_all(session: &Session, person: &Person) -> Vec<SessionEvent> {
    let runs = session.auto.runs.values();
    runs.flat_map(|run| ended(run, RunEnd::Off { by: person.id.clone() })).collect()
}

/// Ends these runs: the turn of one of them, what waits for one, and what it is pinned to.
fn off(session: &Session, person: &Person, runs: Vec<RunId>) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    let works = session.turn.as_ref().and_then(|turn| session.auto.context(turn));
    if works.is_some_and(|context| runs.contains(&context.run_id)) {
        events.extend(crate::model::turn::ending::stopped(session, person));
    }
    for id in runs {
        let Some(run) = session.auto.runs.get(&id) else { continue };
        events.extend(withdrawn(session, id));
        if let Some(plan) = session.plan()
            && run.plan.is_some_and(|pinned| pinned.plan == plan.id)
            && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
        {
            events.extend(crate::model::turn::ending::withdrawn(session, plan.id));
            let reason = crate::model::plan::PauseReason::Stopped;
            events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
        }
        events.extend(ended(run, RunEnd::Off { by: person.id.clone() }));
    }
    events
}

/// The ticks of a run leave the queue.
fn withdrawn(session: &Session, run: RunId) -> impl Iterator<Item = SessionEvent> {
    let ticks = session.queue.iter().filter(move |queued| queued.cause == Cause::Tick { run });
    ticks.map(|queued| SessionEvent::CauseWithdrawn {
        queued: queued.seq,
        why: "its run was turned off".into(),
    })
}

/// The end of a run, and of the slot that it is.
pub(super) fn ended(run: &Run, end: RunEnd) -> Vec<SessionEvent> {
    let came_out = match end {
        RunEnd::Completed => SlotEnd::Done,
        RunEnd::Failed | RunEnd::Off { .. } => SlotEnd::Failed,
    };
    let slot = run.slot.map(|Slot { schedule, at, .. }| {
        event(AutoEvent::SlotEnded { schedule, slot: at, end: came_out })
    });
    let context = run.context.clone();
    std::iter::once(event(AutoEvent::RunEnded { context, end })).chain(slot).collect()
}

fn resume(
    session: &Session,
    person: &Person,
    run: Option<RunId>,
) -> Result<Vec<SessionEvent>, Refusal> {
    let auto = &session.auto;
    let waits = |run: &&Run| matches!(run.status, RunStatus::Paused(_));
    let found = match run {
        Some(id) => auto.runs.get(&id).ok_or_else(|| not_there("run"))?,
        None => auto.runs.values().find(waits).ok_or(Refusal::NoRuns)?,
    };
    let RunStatus::Paused(why) = &found.status else {
        return Err(Refusal::RunGoesOn { number: found.number });
    };
    let (id, by) = (found.context.run_id, Some(person.clone()));
    let budget = match why {
        RunPause::OutOfBudget { meter } => {
            let more = found.budget.of(*meter).unwrap_or(0);
            found.budget.raised(*meter, more)
        }
        RunPause::AwaitsApproval | RunPause::PlanWaits { .. } if session.plan().is_some() => {
            return Err(Refusal::RunWaitsForPlan { number: found.number });
        }
        RunPause::InDoubt if !session.doubts.is_empty() => {
            return Err(Refusal::RunWaitsForDoubt { number: found.number });
        }
        RunPause::Loop { .. }
        | RunPause::Stalled
        | RunPause::Reported { .. }
        | RunPause::AwaitsApproval
        | RunPause::PlanWaits { .. }
        | RunPause::TurnFailed { .. }
        | RunPause::Stopped
        | RunPause::InDoubt => found.budget,
    };
    let mut events = vec![event(AutoEvent::RunResumed { run: id, budget, by })];
    let task = auto.tasks.get(&found.context.task_id);
    if task.is_some_and(|task| task.ended.is_some()) {
        events.extend(moved(auto, found));
    } else if found.plan.is_none() {
        events.push(event(goes_on(auto, &found.context)));
    }
    Ok(events)
}

/// The run turns to the next task of its goal, or has done what it was for.
pub(super) fn moved(auto: &Autonomy, run: &Run) -> Vec<SessionEvent> {
    let next = run.context.goal_id.and_then(|goal| auto.open_task(Some(goal)));
    if let Some((task, _)) = next {
        let context = AutoExecutionContext { task_id: task, ..run.context.clone() };
        return vec![
            event(AutoEvent::RunMoved { run: run.context.run_id, task }),
            event(ticked(auto, context, None)),
        ];
    }
    let mut events = ended(run, RunEnd::Completed);
    if let Some(goal) = run.context.goal_id {
        let of_goal = auto.tasks.values().filter(|task| task.goal == Some(goal));
        let done = |end: &Option<TaskEnd>| matches!(end, Some(TaskEnd::Done { .. }));
        if run.slot.is_none() && of_goal.into_iter().all(|task| done(&task.ended)) {
            events.push(event(AutoEvent::GoalEnded { goal, reached: true }));
        }
    }
    events
}

/// What a run's budget says to one more effect in this turn: nothing, a warning to record, or the end of it.
pub(crate) enum Allowance {
    /// It may go on, with these warnings.
    Go(Vec<SessionEvent>),
    /// The turn ends here.
    End(Vec<SessionEvent>),
}

/// Whether the run of this turn, if it is one's, may begin one more effect.
pub(crate) fn allowance(session: &Session, turn: &Turn, at: Time, doing: Doing) -> Allowance {
    let Some(run) = session.auto.run_of(turn.cause.cause) else {
        return Allowance::Go(Vec::new());
    };
    let id = run.context.run_id;
    match standing(run, at, doing) {
        Standing::Fine => Allowance::Go(Vec::new()),
        Standing::Warns(meter) => {
            Allowance::Go(vec![event(AutoEvent::RunWarned { run: id, meter })])
        }
        Standing::Spent(meter) => {
            let why = RunPause::OutOfBudget { meter };
            Allowance::End(parked(turn, id, why))
        }
    }
}

/// The run waits for a person, and its turn ends.
fn parked(turn: &Turn, run: RunId, why: RunPause) -> Vec<SessionEvent> {
    let message = why.in_words();
    let mut events = unrun(turn, "run_paused", "not run: the run waits for a person");
    events.push(event(AutoEvent::RunPaused { run, why }));
    let failure = ModelFailure::new(FailureKind::Limit, message);
    let end = TurnEnd::Failed { failure };
    events.push(SessionEvent::Turn(TurnEvent::TurnFinished { turn: turn.id, end }));
    events
}

/// The loop guard: the same call with the same observation once too often parks the run.
pub(crate) fn guard(session: &Session, after: &Session, tool: &str) -> Option<Vec<SessionEvent>> {
    let turn = after.turn.as_ref()?;
    let run = after.auto.run_of(turn.cause.cause)?;
    let before = session.auto.runs.get(&run.context.run_id)?;
    let again = |(seen, times): (&crate::model::digest::Digest, &u32)| {
        *times >= limits::SAME_OBSERVATION_MAX && before.seen.get(seen) != Some(times)
    };
    run.seen
        .iter()
        .any(again)
        .then(|| parked(turn, run.context.run_id, RunPause::Loop { tool: tool.to_owned() }))
}

/// The first turn of a task: what it is, what it is for, and what was done for it before.
pub(super) fn ticked(
    auto: &Autonomy,
    context: AutoExecutionContext,
    title: Option<&str>,
) -> AutoEvent {
    let task = auto.tasks.get(&context.task_id).map(|task| task.title.as_str());
    let goal =
        context.goal_id.and_then(|goal| auto.goals.get(&goal)).map(|goal| goal.title.as_str());
    let ended = |task: &crate::model::autonomy::Task| {
        let end = task.ended.as_ref()?;
        let of_goal = task.goal.is_some() && task.goal == context.goal_id;
        of_goal.then(|| format!("{} ({}): {}", task.title, end.label(), end.summary()))
    };
    let before: Vec<_> = auto.tasks.values().filter_map(ended).collect();
    let words = prompt::task_opening(goal, title.or(task).unwrap_or_default(), &before);
    AutoEvent::Ticked { context, words }
}

/// One more turn of a task.
pub(super) fn goes_on(auto: &Autonomy, context: &AutoExecutionContext) -> AutoEvent {
    let title = auto.tasks.get(&context.task_id).map_or("", |task| &task.title);
    AutoEvent::Ticked { context: context.clone(), words: prompt::task_again(title) }
}

fn not_there(what: &'static str) -> Refusal {
    Refusal::NotThere { what: what.into() }
}

pub(super) fn event(event: AutoEvent) -> SessionEvent {
    SessionEvent::Auto(event)
}
