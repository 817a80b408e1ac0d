//! How runs react when a turn ends or a plan moves.

use crate::{
    model::{
        autonomy::{Pinned, Run, RunEnd, RunPause, RunStatus, TaskEnd, event::AutoEvent},
        limits,
        plan::{Ended, Plan, event::PlanEvent},
        session::{Session, SessionEvent},
        time::Time,
        turn::{
            Cause, Turn,
            event::{TurnEnd, TurnEvent},
        },
    },
    rules::autonomy::decide::{ended, event, goes_on, moved},
};

/// What becomes of the runs because of what was just decided: a turn of theirs ended, or their plan moved.
pub(crate) fn follow(
    session: &Session,
    after: &Session,
    at: Time,
    news: &[SessionEvent],
) -> Vec<SessionEvent> {
    let ended_turn = session.turn.as_ref().and_then(|turn| Some((turn, end_of(turn, news)?)));
    let mut events = Vec::new();
    for run in after.auto.runs.values() {
        match &run.status {
            RunStatus::Paused(why) if run.slot.is_some() && !has_turn(after, run) => {
                events.extend(slot_failed(after, run, &why.in_words()));
            }
            RunStatus::Paused(why) => events.extend(unpaused(after, run, why, news)),
            RunStatus::Running => {
                if let Some(pinned) = pinned_plan(session, run) {
                    events.extend(plan_moved(after, run, pinned, news));
                } else if let Some((turn, end)) = ended_turn
                    && turn.cause.cause == (Cause::Tick { run: run.context.run_id })
                {
                    events.extend(turn_ended(after, run, at, end));
                }
            }
        }
    }
    events
}

fn end_of<'a>(turn: &Turn, news: &'a [SessionEvent]) -> Option<&'a TurnEnd> {
    news.iter().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { turn: ended, end }) if *ended == turn.id => {
            Some(end)
        }
        SessionEvent::Turn(_)
        | SessionEvent::Plan(_)
        | SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => None,
    })
}

/// The plan that the run was pinned to before this was decided.
fn pinned_plan(session: &Session, run: &Run) -> Option<Pinned> {
    session.auto.runs.get(&run.context.run_id)?.plan
}

fn turn_ended(after: &Session, run: &Run, at: Time, end: &TurnEnd) -> Vec<SessionEvent> {
    let id = run.context.run_id;
    // A run of a schedule waits for nobody: what would make it wait fails its slot.
    let pause = |why: RunPause| match run.slot {
        Some(_) => slot_failed(after, run, &why.in_words()),
        None => vec![event(AutoEvent::RunPaused { run: id, why })],
    };
    let tick = || vec![event(goes_on(&after.auto, &run.context))];
    let task = after.auto.tasks.get(&run.context.task_id);
    match task.and_then(|task| task.ended.as_ref()) {
        Some(TaskEnd::Done { .. } | TaskEnd::Dropped) => return moved(&after.auto, run),
        Some(TaskEnd::Failed { .. }) if run.context.goal_id.is_none() || run.slot.is_some() => {
            return ended(run, RunEnd::Failed);
        }
        Some(TaskEnd::Failed { summary }) => {
            return pause(RunPause::Reported { summary: summary.clone() });
        }
        None => {}
    }
    if run.drafts && after.plan().is_some_and(Plan::awaits_decision) {
        return pause(RunPause::AwaitsApproval);
    }
    match end {
        TurnEnd::Answered | TurnEnd::Planned { .. } if run.idle >= limits::IDLE_TURNS_MAX => {
            pause(RunPause::Stalled)
        }
        TurnEnd::Answered
        | TurnEnd::Planned { .. }
        | TurnEnd::Compacted { .. }
        | TurnEnd::Yielded => tick(),
        TurnEnd::Failed { failure } => match run.slot {
            Some(slot) if at < slot.until => tick(),
            Some(_) | None => pause(RunPause::TurnFailed { message: failure.message.clone() }),
        },
        TurnEnd::Stopped { .. } => pause(RunPause::Stopped),
        TurnEnd::InDoubt { .. } => pause(RunPause::InDoubt),
    }
}

/// A slot whose run cannot go on by itself has failed, and its task with it.
fn slot_failed(after: &Session, run: &Run, summary: &str) -> Vec<SessionEvent> {
    let task = run.context.task_id;
    let open = after.auto.tasks.get(&task).is_some_and(|task| task.ended.is_none());
    let end = TaskEnd::Failed { summary: summary.to_owned() };
    let failed = open.then(|| event(AutoEvent::TaskEnded { task, end }));
    failed.into_iter().chain(ended(run, RunEnd::Failed)).collect()
}

/// Whether a turn of this run is open.
fn has_turn(after: &Session, run: &Run) -> bool {
    let tick = Cause::Tick { run: run.context.run_id };
    after.turn.as_ref().is_some_and(|turn| turn.cause.cause == tick)
}

/// A run that waits for its plan goes on when the plan is approved or resumed.
fn unpaused(
    after: &Session,
    run: &Run,
    why: &RunPause,
    news: &[SessionEvent],
) -> Vec<SessionEvent> {
    let id = run.context.run_id;
    let resumed = event(AutoEvent::RunResumed { run: id, budget: run.budget, by: None });
    let Some(plan) = after.plan() else {
        let ended = news
            .iter()
            .any(|event| matches!(event, SessionEvent::Plan(PlanEvent::PlanEnded { .. })));
        if ended && *why == RunPause::AwaitsApproval {
            let why = RunPause::PlanWaits { why: "it was ended".into() };
            return vec![event(AutoEvent::RunPaused { run: id, why })];
        }
        return Vec::new();
    };
    let starts = |event: &SessionEvent| matches!(event, SessionEvent::Plan(PlanEvent::ExecutionStarted { plan: started, .. }) if *started == plan.id);
    if !news.iter().any(starts) {
        return Vec::new();
    }
    match (why, plan.status.approval()) {
        (RunPause::AwaitsApproval, Some(approval)) => {
            let pinned = Pinned { plan: plan.id, digest: approval.revision_digest };
            vec![resumed, event(AutoEvent::RunPinned { run: id, plan: pinned })]
        }
        (RunPause::PlanWaits { .. }, Some(_)) => vec![resumed],
        (_, _) => Vec::new(),
    }
}

/// The plan that a run is pinned to ended or does not go on.
fn plan_moved(
    after: &Session,
    run: &Run,
    pinned: Pinned,
    news: &[SessionEvent],
) -> Vec<SessionEvent> {
    let id = run.context.run_id;
    for happened in news {
        match happened {
            SessionEvent::Plan(PlanEvent::PlanEnded {
                plan,
                ended: Ended::Completed,
                account,
                ..
            }) if *plan == pinned.plan => {
                let end =
                    TaskEnd::Done { summary: format!("its plan is done, {}", account.in_words()) };
                let task = run.context.task_id;
                let mut events = Vec::new();
                let mut auto = after.auto.clone();
                if let Some(open) = auto.tasks.get_mut(&task).filter(|task| task.ended.is_none()) {
                    open.ended = Some(end.clone());
                    events.push(event(AutoEvent::TaskEnded { task, end }));
                }
                events.extend(moved(&auto, run));
                return events;
            }
            SessionEvent::Plan(PlanEvent::PlanEnded { plan, ended, .. })
                if *plan == pinned.plan =>
            {
                let why =
                    RunPause::PlanWaits { why: format!("it is {}", ended.label().to_lowercase()) };
                return vec![event(AutoEvent::RunPaused { run: id, why })];
            }
            SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }) => {
                let why = RunPause::PlanWaits { why: reason.in_words() };
                return vec![event(AutoEvent::RunPaused { run: id, why })];
            }
            SessionEvent::Plan(PlanEvent::PlanFailed { summary }) => {
                let why = RunPause::PlanWaits { why: summary.clone() };
                return vec![event(AutoEvent::RunPaused { run: id, why })];
            }
            SessionEvent::Plan(_)
            | SessionEvent::Turn(_)
            | SessionEvent::Auto(_)
            | SessionEvent::Memory(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. } => {}
        }
    }
    Vec::new()
}
