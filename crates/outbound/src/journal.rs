//! What every journal stores alike: bytes, columns, and when to give up for a while.

use planwright_domain::{
    id::Seq,
    identity::SessionIdentity,
    next::{Due, Waiting},
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
    turn::event::{Arrival, TurnEvent},
};
use planwright_runtime::ports::journal::{Answer, JournalError, Recorded};

pub(crate) mod codec;
pub(crate) mod remembering;
pub(crate) mod warm;

/// A snapshot is stored when so many events have come since the last one.
pub(crate) const SNAPSHOT_EVERY: u64 = 64;
/// After so many failures in a row a session is parked.
pub(crate) const FAILURES_MAX: u32 = 8;

/// Whether these events end a row of failures: an effect or a turn came to its end.
pub(crate) fn is_progress(events: &[SessionEvent]) -> bool {
    events.iter().any(|event| match event {
        SessionEvent::Turn(event) => matches!(
            event,
            TurnEvent::ModelAnswered { arrival: Arrival::InTime, .. }
                | TurnEvent::CallFinished { .. }
                | TurnEvent::TurnFinished { .. }
        ),
        SessionEvent::Plan(_)
        | SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => false,
    })
}

/// When a session that failed so often is tried again.
pub(crate) fn retry_at(now: Time, failures: u32) -> Time {
    now.plus_micros(250_000 << failures)
}

/// When someone must act: nothing for never, 0 for now, else microseconds.
pub(crate) fn due_column(due: Due) -> Option<i64> {
    match due {
        Due::Never => None,
        Due::Now => Some(0),
        Due::At(time) => Some(time.0.max(1)),
    }
}

pub(crate) fn waiting_column(waiting: Option<Waiting>) -> Option<&'static str> {
    waiting.map(|waiting| match waiting {
        Waiting::Decision => "decision",
        Waiting::Resume => "resume",
        Waiting::Doubt => "doubt",
        Waiting::Permission => "permission",
        Waiting::Run => "run",
    })
}

pub(crate) fn waiting_of(column: Option<String>) -> Option<Waiting> {
    column.and_then(|name| serde_json::from_value(name.into()).ok())
}

pub(crate) fn identity_of(text: &str) -> Result<SessionIdentity, JournalError> {
    SessionIdentity::parse(text).map_err(engine)
}

/// An answer out of its columns.
pub(crate) fn answered(
    before: i64,
    version: i64,
    refusal: Option<String>,
) -> Result<Answer, JournalError> {
    Ok(match refusal {
        None => Answer::Accepted {
            before: Seq(before.cast_unsigned()),
            version: Seq(version.cast_unsigned()),
        },
        Some(words) => Answer::Refused(serde_json::from_str(&words).map_err(engine)?),
    })
}

/// An answer as its columns hold it: before, version, refusal.
pub(crate) fn answer_columns(answer: &Answer) -> Result<(i64, i64, Option<String>), JournalError> {
    Ok(match answer {
        Answer::Accepted { before, version } => {
            (before.0.cast_signed(), version.0.cast_signed(), None)
        }
        Answer::Refused(refusal) => (0, 0, Some(serde_json::to_string(refusal).map_err(engine)?)),
    })
}

/// An event as a row holds it.
pub(crate) struct EventRow {
    pub(crate) seq: Seq,
    pub(crate) at: Time,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

/// Reads rows that follow one place in a stream, and notices what is missing or was swapped.
pub(crate) struct Reading<'a> {
    identity: &'a SessionIdentity,
    expected: Seq,
}

impl<'a> Reading<'a> {
    pub(crate) fn after(identity: &'a SessionIdentity, after: Seq) -> Self {
        Self { identity, expected: after }
    }

    pub(crate) fn read(&mut self, row: EventRow) -> Result<Recorded, JournalError> {
        let EventRow { seq, at, kind, body } = row;
        self.expected = self.expected.following();
        if seq != self.expected {
            let expected = self.expected;
            return Err(CorruptJournal::new(seq, format!("event {expected} is missing")).into());
        }
        let event = codec::unpack_event(self.identity, &kind, &body)?;
        let kind = codec::kind_now(&kind);
        if event.kind() != kind {
            let found = format!("a {} in the row of a {kind}", event.kind());
            return Err(CorruptJournal::new(seq, found).into());
        }
        Ok(Recorded { seq, at, event })
    }
}

/// A session with these events after it.
pub(crate) fn fold(start: Session, events: &[Recorded]) -> Result<Session, JournalError> {
    Ok(events.iter().try_fold(start, |session, recorded| session.evolve(&recorded.event))?)
}

/// A session that has come as far as its stream says; else its last events are gone.
pub(crate) fn whole(session: Session, version: Seq) -> Result<Session, JournalError> {
    if session.version < version {
        let what = format!("the events after {} are missing", session.version);
        return Err(CorruptJournal::new(version, what).into());
    }
    Ok(session)
}

pub(crate) fn engine(error: impl std::error::Error + Send + Sync + 'static) -> JournalError {
    JournalError::Engine(Box::new(error))
}
