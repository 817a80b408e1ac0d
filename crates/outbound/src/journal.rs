//! What every journal stores alike: bytes and columns.

use std::{cmp::Reverse, collections::BTreeMap};

use planwright_domain::{
    id::{OwnerId, Seq},
    identity::{SessionIdentity, SessionKey},
    log::{Entry, SessionHead, beginning},
    next::{Due, Waiting, is_running, takes_room},
    owner::{self, DayUse, OwnerCommand},
    plan::PlanStage,
    quota::Day,
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
    turn::Usage,
};
use planwright_format::event::read_event;
use planwright_runtime::ports::journal::{
    DecideOwner, DecisionPage, DecisionPlace, DecisionRow, JournalError, ListPlace, Recorded,
    SessionPage, SessionRow,
};
use uuid::Uuid;

pub(crate) mod known_installation;
pub(crate) mod outputs;
pub(crate) mod remembering;
pub(crate) mod sealed;
pub(crate) mod search;
pub(crate) mod warm;

/// A snapshot is stored when so many events have come since the last one.
pub(crate) const SNAPSHOT_EVERY: u64 = 64;
/// From how many events on a session that was folded without a snapshot is kept, so that it is folded so once.
pub(crate) const COLD_FOLD_MIN: u64 = 4 * SNAPSHOT_EVERY;

/// How long a session that moves keeps its place in lists: so long, its row can be written anew and no index is.
pub(crate) const LISTED_MICROS: i64 = 60_000_000;

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
        Waiting::Limit => "limit",
    })
}

pub(crate) fn waiting_of(column: Option<String>) -> Option<Waiting> {
    column.and_then(|name| serde_json::from_value(name.into()).ok())
}

fn plan_column(stage: PlanStage) -> &'static str {
    match stage {
        PlanStage::Drafting => "drafting",
        PlanStage::Ready => "ready",
        PlanStage::Approved => "approved",
        PlanStage::Running => "running",
        PlanStage::Paused => "paused",
        PlanStage::Failed => "failed",
    }
}

pub(crate) fn plan_of(column: Option<String>) -> Option<PlanStage> {
    column.and_then(|name| serde_json::from_value(name.into()).ok())
}

/// The most tokens, or millionths of a dollar, that a session is counted with.
const USED_MAX: u64 = 1 << 50;

/// What lists, limits and owners know of a session beside its version.
pub(crate) struct Listed<'a> {
    pub(crate) title: &'a str,
    pub(crate) life: &'static str,
    /// Where its plan stands; none without one.
    pub(crate) plan: Option<&'static str>,
    /// Whether something is under way.
    pub(crate) running: bool,
    /// Whether a turn is under way that waits for nobody.
    pub(crate) takes_room: bool,
    /// What its models were used, all in all.
    pub(crate) used: DayUse,
}

impl<'a> Listed<'a> {
    pub(crate) fn of(session: &'a Session) -> Self {
        let Usage { input, output, cost_micros, .. } = session.usage;
        Self {
            title: &session.title,
            life: session.life.name(),
            plan: session.plan().map(|plan| plan_column(plan.status.stage())),
            running: is_running(session),
            takes_room: takes_room(session),
            // What no model can have used must not break the sums of others.
            used: DayUse {
                tokens: input.saturating_add(output).min(USED_MAX),
                cost_micros: cost_micros.min(USED_MAX),
            },
        }
    }
}

/// What sessions used and their owners did not take up, in the order of the owners' ids: who locks them meets nobody who locks
/// them the other way round.
#[derive(Default)]
pub(crate) struct Uncounted(pub(crate) BTreeMap<OwnerId, UncountedOfOwner>);

/// What the sessions of one owner used.
#[derive(Default)]
pub(crate) struct UncountedOfOwner {
    pub(crate) bytes: i64,
    days: BTreeMap<Day, DayUse>,
}

impl Uncounted {
    pub(crate) fn add(&mut self, owner: OwnerId, updated: Time, used: DayUse, bytes: i64) {
        let of_owner = self.0.entry(owner).or_default();
        of_owner.bytes += bytes;
        if used != DayUse::default() {
            let sum = of_owner.days.entry(Day::of(updated)).or_default();
            *sum = sum.plus(used);
        }
    }
}

impl UncountedOfOwner {
    /// What the owner takes up, day by day.
    pub(crate) fn decisions(self) -> impl Iterator<Item = DecideOwner> {
        self.days.into_iter().map(|(day, used)| {
            let command = OwnerCommand::CountUse { day, used };
            let decide: DecideOwner = Box::new(move |before| owner::decide(before, &command));
            decide
        })
    }
}

/// What cannot be stored, because nobody has this id.
pub(crate) fn nobody(owner: OwnerId) -> JournalError {
    JournalError::Engine(format!("nobody is known as the owner {owner}").into())
}

/// The session that two columns name.
pub(crate) fn key_of(owner: Uuid, identity: &str) -> Result<SessionKey, JournalError> {
    let identity = SessionIdentity::parse(identity).map_err(engine)?;
    Ok(SessionKey::new(OwnerId(owner), identity))
}

/// An event as a row holds it.
pub(crate) struct EventRow {
    pub(crate) seq: Seq,
    pub(crate) at: Time,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

/// Reads rows that follow one place in a stream, and notices what is missing or was swapped.
pub(crate) struct Reading {
    session: String,
    expected: Seq,
}

impl Reading {
    pub(crate) fn after(identity: &SessionKey, after: Seq) -> Self {
        Self { session: identity.to_string(), expected: after }
    }

    pub(crate) fn read(&mut self, row: EventRow) -> Result<Recorded, JournalError> {
        let EventRow { seq, at, kind, body } = row;
        self.expected = self.expected.following();
        if seq != self.expected {
            let expected = self.expected;
            return Err(CorruptJournal::new(seq, format!("event {expected} is missing")).into());
        }
        let event = read_event(sealed::event_place(&self.session, seq.0, at), &kind, &body)?;
        Ok(Recorded { seq, at, event })
    }
}

/// A page of a stream that ends before its limit must have come as far as the stream had when it was asked for; else the
/// last events are gone.
pub(crate) fn to_the_end(
    events: Vec<Recorded>,
    after: Seq,
    limit: usize,
    version: Seq,
) -> Result<Vec<Recorded>, JournalError> {
    let last = events.last().map_or(after, |recorded| recorded.seq);
    if events.len() < limit && last < version {
        let what = format!("the events after {last} are missing");
        return Err(CorruptJournal::new(version, what).into());
    }
    Ok(events)
}

/// Reads one row by itself, wherever it stands in its stream.
pub(crate) fn read_alone(identity: &SessionKey, row: EventRow) -> Result<Recorded, JournalError> {
    Reading::after(identity, Seq(row.seq.0.saturating_sub(1))).read(row)
}

/// The number of the last event that anchors the chain of decisions, of events of which the first has this number.
pub(crate) fn last_anchor<'a>(
    first: u64,
    events: impl IntoIterator<Item = &'a SessionEvent>,
) -> Option<i64> {
    let numbered = (first.cast_signed()..).zip(events);
    let anchors = numbered.filter(|(_, event)| matches!(event, SessionEvent::Logged { .. }));
    anchors.map(|(seq, _)| seq).last()
}

/// The numbers of the events with which a person decided something, of events of which the first has this number.
pub(crate) fn verdicts<'a>(
    first: u64,
    events: impl IntoIterator<Item = &'a SessionEvent>,
) -> impl Iterator<Item = u64> {
    let is_verdict = |event: &_| Entry::of(event).is_some_and(|entry| entry.is_verdict());
    (first..).zip(events).filter(move |(_, event)| is_verdict(*event)).map(|(seq, _)| seq)
}

/// What a person decided with the event of this row. One that cannot be read is told of and left out: it does not hide the others.
pub(crate) fn decision_at(key: SessionKey, title: String, row: EventRow) -> Option<DecisionRow> {
    match read_alone(&key, row) {
        Ok(recorded) => Some(DecisionRow { session: key, title, recorded }),
        Err(error) => {
            tracing::warn!(session = %key, %error, event = "session_unreadable");
            None
        }
    }
}

/// A page of this many decisions, of which one more was read if there is one. Those that cannot be read have their places.
pub(crate) fn decision_page(
    mut rows: Vec<(DecisionPlace, Option<DecisionRow>)>,
    limit: usize,
) -> DecisionPage {
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(|(place, _)| *place).filter(|_| is_more);
    DecisionPage { rows: rows.into_iter().filter_map(|(_, row)| row).collect(), next }
}

/// A page of this many rows, of which one more was read if there is one, with their places. On the page they are in the order
/// in which they moved.
pub(crate) fn page_of(
    mut rows: Vec<(SessionRow, ListPlace)>,
    limit: usize,
    total: i64,
) -> SessionPage {
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(|(_, place)| *place).filter(|_| is_more);
    let rows = in_order_of_moves(rows.into_iter().map(|(row, _)| row).collect());
    SessionPage { rows, next, total: total.cast_unsigned() }
}

/// Those that moved last first, wherever they are listed.
pub(crate) fn in_order_of_moves(mut rows: Vec<SessionRow>) -> Vec<SessionRow> {
    rows.sort_by_key(|row| Reverse(row.updated));
    rows
}

/// How far the chain of decisions had come at this row. One that cannot be read is told of and left: whoever checks the audit
/// log finds that it was not taken up.
pub(crate) fn head_at(key: &SessionKey, row: EventRow) -> Option<SessionHead> {
    match read_alone(key, row) {
        Ok(Recorded { seq, event: SessionEvent::Logged { head }, .. }) => {
            Some(SessionHead { session: beginning(key), seq, head })
        }
        Ok(_) => {
            tracing::error!(session = %key, event = "head_not_taken");
            None
        }
        Err(error) => {
            tracing::error!(session = %key, %error, event = "head_not_taken");
            None
        }
    }
}

/// A session with these events after it.
pub(crate) fn fold(start: Session, events: &[Recorded]) -> Result<Session, JournalError> {
    let evolve =
        |session: Session, recorded: &Recorded| session.evolve(recorded.at, &recorded.event);
    Ok(events.iter().try_fold(start, evolve)?)
}

pub(crate) fn engine(error: impl std::error::Error + Send + Sync + 'static) -> JournalError {
    JournalError::Engine(Box::new(error))
}
