//! Waking those who act, and telling those who watch.

use async_trait::async_trait;
use planwright_domain::{
    id::{OwnerId, Seq, TurnId},
    identity::SessionKey,
    next::Due,
    session::{Session, life::Life},
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::ports::journal::SessionRow;

/// Makes sure that someone acts on a session: one at a time per session, any number at once.
pub trait Lane: Send + Sync {
    /// The session moved to this version and is due.
    fn wake(&self, session: &SessionKey, version: Seq, due: Due);

    /// What a person should know, if wake-ups do not get through.
    fn trouble(&self) -> Option<String> {
        None
    }
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

    /// What a person should know, if signals do not get through.
    fn trouble(&self) -> Option<String> {
        None
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
}

impl ListChange {
    /// A session as lists show it, after something else than a decision.
    #[must_use]
    pub fn of(session: &Session, at: Time) -> Self {
        let deleted = session.life == Life::Deleted;
        Self { row: SessionRow::of(session, at), begun: false, deleted, decided: false }
    }
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
