//! What happens to goals, tasks, runs, schedules and memories, as a terminal shows it.

use planwright_domain::{autonomy::event::AutoEvent, memory::MemoryEvent};

use super::{CALM, DIM, Terminal, WARN, visible::visible};

impl Terminal {
    /// Something that happened to goals, tasks, runs or schedules.
    pub(super) fn auto_event(&mut self, event: &AutoEvent) {
        let text = match event {
            AutoEvent::RunStarted { context, .. } => {
                format!("{CALM}▶ a run begins{CALM:#} {DIM}{}{DIM:#}\n", context.kind.name())
            }
            AutoEvent::TaskEnded { end, .. } => {
                format!("{CALM}■ task {}{CALM:#} {}\n", end.label(), visible(end.summary()))
            }
            AutoEvent::RunWarned { meter, .. } => {
                format!("{WARN}⚠ most of the run's {} is used{WARN:#}\n", meter.words())
            }
            AutoEvent::RunPaused { why, .. } => {
                let why = visible(&why.in_words());
                format!("{WARN}⏸ the run waits for you:{WARN:#} {why}\n")
            }
            AutoEvent::RunEnded { end, .. } => {
                format!("{CALM}■ the run ended:{CALM:#} {}\n", end.name())
            }
            AutoEvent::GoalEnded { reached: true, .. } => {
                format!("{CALM}★ the goal is reached{CALM:#}\n")
            }
            AutoEvent::SlotsMissed { count, first, last, .. } => format!(
                "{WARN}⏱ {count} slots were missed{WARN:#} {DIM}from {first} to {last}{DIM:#}\n"
            ),
            AutoEvent::ScheduleEnded { why, .. } => {
                format!("{DIM}· a schedule is off: {}{DIM:#}\n", visible(why))
            }
            AutoEvent::GoalAdded { .. }
            | AutoEvent::GoalEnded { .. }
            | AutoEvent::TaskAdded { .. }
            | AutoEvent::Ticked { .. }
            | AutoEvent::RunMoved { .. }
            | AutoEvent::RunPinned { .. }
            | AutoEvent::RunResumed { .. }
            | AutoEvent::ScheduleAdded { .. }
            | AutoEvent::SlotClaimed { .. }
            | AutoEvent::SlotEnded { .. } => return,
        };
        self.raw(&text);
    }

    /// Something that happened to what is remembered.
    pub(super) fn memory_event(&mut self, event: &MemoryEvent) {
        if let MemoryEvent::Saved { item } = event {
            let (scope, text) = (item.scope.kind().name(), visible(&item.text));
            self.raw(&format!("{DIM}✎ remembered for the {scope}: {text}{DIM:#}\n"));
        }
    }
}
