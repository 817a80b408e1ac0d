//! Waking those who act, and telling those who watch.

use async_trait::async_trait;
use planwright_domain::{
    id::{Seq, TurnId},
    identity::SessionKey,
    next::Due,
};
use serde::{Deserialize, Serialize};

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

    /// Listens to which sessions move, for those who keep lists.
    fn hints(&self) -> Box<dyn Hints>;

    /// What a person should know, if signals do not get through.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// Why a list should be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// This session moved.
    Moved(SessionKey),
    /// Something was missed; read all of it again.
    Missed,
}

/// Subscription to changes of any session.
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
