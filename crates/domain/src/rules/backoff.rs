//! When a session is tried again that could not be acted on, and when that is given up.

use crate::model::{
    limits,
    notebook::NotebookEvent,
    session::SessionEvent,
    time::Time,
    turn::event::{Arrival, TurnEvent},
};

/// When a session is tried again that has failed so often in a row. None after the last time: it is parked, and a person is
/// shown why. One that was deleted is never parked, as nobody is shown it: what is left of it must go.
#[must_use]
pub fn again_at(now: Time, failures: u32, is_deleted: bool) -> Option<Time> {
    let last = limits::FAILURES_MAX - 1;
    (failures <= last || is_deleted).then(|| now.plus_micros(250_000 << failures.min(last)))
}

/// Whether these events end a row of failures: an effect or a turn came to its end.
#[must_use]
pub fn is_progress(events: &[SessionEvent]) -> bool {
    events.iter().any(|event| match event {
        SessionEvent::Turn(event) => matches!(
            event,
            TurnEvent::ModelAnswered { arrival: Arrival::InTime, .. }
                | TurnEvent::ViewCompacted { arrival: Arrival::InTime, .. }
                | TurnEvent::CallFinished { .. }
                | TurnEvent::TurnFinished { .. }
        ),
        SessionEvent::Notebook(event) => matches!(event, NotebookEvent::PagesRemoved { .. }),
        SessionEvent::Plan(_)
        | SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => false,
    })
}
