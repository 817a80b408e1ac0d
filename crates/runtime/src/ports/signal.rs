//! Waking those who act, and telling those who watch.

use async_trait::async_trait;
use planwright_domain::{
    id::{OwnerId, Seq, TurnId},
    identity::SessionKey,
    log::Entry,
    next::Due,
    owner::DayUse,
    session::{Session, SessionEvent, life::Life},
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::ports::{health::Part, journal::SessionRow};

/// Makes sure that someone acts on a session: one at a time per session, any number at once.
pub trait Lane: Send + Sync {
    /// The session moved to this version and is due.
    fn wake(&self, session: &SessionKey, version: Seq, due: Due);

    /// How the parts are that wake-ups go through; none where that is this process alone.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }
}

/// The other processes that act for sessions.
#[async_trait]
pub trait OtherNodes: Send + Sync {
    /// Whether one of them says that it acts for this session now, and can record what comes of it. None does that is silent.
    async fn act_for(&self, session: &SessionKey) -> bool;
}

/// Something that watchers are told, outside the sequence of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The session moved to this version; read the journal.
    Moved(Seq),
    /// A piece of an answer that is not committed yet.
    Preview(Preview),
    /// Something was missed; read the journal.
    Missed,
}

/// A piece of an answer that is not committed yet, keyed so that it can be placed or dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// In this turn.
    pub turn: TurnId,
    /// In this round.
    pub round: u32,
    /// At this try.
    pub attempt: u32,
    /// Where in the answer's text it begins.
    pub offset: usize,
    /// The piece.
    pub text: String,
}

/// Tells watchers that a session moved.
pub trait Broadcast: Send + Sync {
    /// Tells everyone. Never waits.
    fn publish(&self, session: &SessionKey, signal: Signal);

    /// Listens to one session.
    fn subscribe(&self, session: &SessionKey) -> Box<dyn Subscription>;

    /// Tells those who keep lists what changed in them. Never waits.
    fn hint(&self, change: ListChange);

    /// Listens to what changes in the lists of this owner, or in everyone's.
    fn hints(&self, owner: Option<OwnerId>) -> Box<dyn Hints>;

    /// How the parts are that signals go through; none where that is this process alone.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }
}

/// What changed in lists, with the row as it is now: nobody needs to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChange {
    /// The row.
    pub row: SessionRow,
    /// Whether the session began with it.
    pub begun: bool,
    /// Whether the session was deleted: no list shows it any more.
    pub deleted: bool,
    /// Whether a person decided something in it.
    pub decided: bool,
    /// What models were used for in it.
    pub used: DayUse,
}

impl ListChange {
    /// What changed in lists when a session came from one state to another by these events.
    #[must_use]
    pub fn of(before: &Session, after: &Session, events: &[SessionEvent], at: Time) -> Self {
        let used = |session: &Session| session.usage.input.saturating_add(session.usage.output);
        Self {
            row: SessionRow::of(after, at),
            begun: before.version == Seq(0),
            deleted: after.life == Life::Deleted,
            decided: events.iter().any(is_verdict),
            used: DayUse {
                tokens: used(after).saturating_sub(used(before)),
                cost_micros: after.usage.cost_micros.saturating_sub(before.usage.cost_micros),
            },
        }
    }

    /// A session as it is listed, where it is not known what changed in it.
    #[must_use]
    pub fn read(row: SessionRow) -> Self {
        let used = DayUse::default();
        Self { row, begun: false, deleted: false, decided: true, used }
    }

    /// Both as one, whichever came first: the row that is newer, and whatever happened in either.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let row = if other.row.version >= self.row.version { other.row } else { self.row };
        Self {
            row,
            begun: self.begun || other.begun,
            deleted: self.deleted || other.deleted,
            decided: self.decided || other.decided,
            used: self.used.plus(other.used),
        }
    }
}

/// Whether a person decided something with this.
fn is_verdict(event: &SessionEvent) -> bool {
    Entry::of(event).is_some_and(|entry| entry.is_verdict())
}

/// Something that those who keep lists should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// This changed.
    Changed(Box<ListChange>),
    /// Something was missed; read all of it again.
    Missed,
}

/// Subscription to changes of lists.
#[async_trait]
pub trait Hints: Send {
    /// The next hint; none when there will be no more.
    async fn next(&mut self) -> Option<Hint>;
}

/// Subscription to one session.
#[async_trait]
pub trait Subscription: Send {
    /// The next signal; none when there will be no more.
    async fn next(&mut self) -> Option<Signal>;
}

#[cfg(test)]
mod tests {
    use planwright_domain::identity::SessionIdentity;

    use super::*;

    fn change(version: u64, tokens: u64) -> ListChange {
        let identity = SessionIdentity::parse("web:talk-0001").expect("an identity");
        let session = Session::new(SessionKey::new(OwnerId(uuid::Uuid::nil()), identity));
        let change = ListChange::of(&session, &session, &[], Time(version.cast_signed()));
        let row = SessionRow { version: Seq(version), ..change.row };
        ListChange { row, begun: false, used: DayUse { tokens, cost_micros: 0 }, ..change }
    }

    #[test]
    fn two_changes_are_one_with_the_newer_row_and_all_that_was_used_in_either_order() {
        let (first, second) = (change(1, 10), change(2, 5));
        let first = ListChange { begun: true, ..first };
        let second = ListChange { decided: true, ..second };
        let both = ListChange { begun: true, decided: true, ..change(2, 15) };
        assert_eq!(first.clone().with(second.clone()), both);
        assert_eq!(second.with(first), both);
    }
}
