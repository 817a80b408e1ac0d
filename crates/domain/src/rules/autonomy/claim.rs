//! A slot of a schedule that is due: claimed once, with those before it said to be missed.

use crate::{
    model::{
        autonomy::{
            AutoExecutionContext, Autonomy, Run,
            event::AutoEvent,
            schedule::{Schedule, Slot, SlotEnd},
        },
        command::Claim,
        id::TaskId,
        limits,
        refusal::Refusal,
        session::{Session, SessionEvent},
        time::Time,
        turn::ending::moved_on,
    },
    rules::autonomy::decide::{event, ticked},
};

/// A slot is due: it is claimed once, those before it are missed, and its run begins.
pub(crate) fn claim(
    session: &Session,
    at: Time,
    claim: &Claim,
) -> Result<Vec<SessionEvent>, Refusal> {
    let Claim { schedule, missed, slot, next, task, run, until } = claim;
    let auto = &session.auto;
    let known = auto.schedules.get(schedule).ok_or_else(|| moved_on("the schedule is off"))?;
    let first = missed.map_or(*slot, |missed| missed.first);
    if known.next != Some(first)
        || at < slot.plus_micros(known.jitter_micros)
        || next.is_some_and(|next| next <= *slot)
    {
        return Err(moved_on("this slot is not due"));
    }
    let mut events = Vec::new();
    if let Some(missed) = missed {
        events.push(event(AutoEvent::SlotsMissed {
            schedule: *schedule,
            first: missed.first,
            last: missed.last,
            count: missed.count,
        }));
    }
    if known.goal.is_some_and(|goal| !auto.goals.contains_key(&goal)) {
        events.push(event(AutoEvent::SlotsMissed {
            schedule: *schedule,
            first: *slot,
            last: *slot,
            count: 1,
        }));
        let why = format!("the goal of {:?} is not there any more", known.title);
        events.push(event(AutoEvent::ScheduleEnded { schedule: *schedule, why }));
        return Ok(events);
    }
    events.push(event(AutoEvent::SlotClaimed { schedule: *schedule, slot: *slot, next: *next }));
    let still = |run: &Run| run.slot.is_some_and(|slot| slot.schedule == *schedule);
    let full = auto.runs.len() >= limits::RUNS_MAX || auto.tasks.len() >= limits::TASKS_MAX;
    if full || auto.runs.values().any(still) {
        let end = SlotEnd::Skipped;
        events.push(event(AutoEvent::SlotEnded { schedule: *schedule, slot: *slot, end }));
    } else {
        let context = AutoExecutionContext::new(session.identity.clone(), *run, known.goal, *task);
        events.extend(begun(
            auto,
            known,
            *task,
            &context,
            at,
            Slot { schedule: *schedule, at: *slot, until: *until },
        ));
    }
    if next.is_none() {
        let why = "it had no more slots".into();
        events.push(event(AutoEvent::ScheduleEnded { schedule: *schedule, why }));
    }
    Ok(events)
}

fn begun(
    auto: &Autonomy,
    schedule: &Schedule,
    task: TaskId,
    context: &AutoExecutionContext,
    at: Time,
    slot: Slot,
) -> [SessionEvent; 3] {
    let (goal, title) = (schedule.goal, schedule.title.clone());
    [
        event(AutoEvent::TaskAdded { task, goal, title, by: None }),
        event(AutoEvent::RunStarted {
            context: context.clone(),
            budget: schedule.budget,
            at,
            by: schedule.by.clone(),
            drafts: false,
            slot: Some(slot),
        }),
        event(ticked(auto, context.clone(), Some(&schedule.title))),
    ]
}
