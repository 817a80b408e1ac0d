//! The journal: the only truth, and moving it elsewhere.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, SessionIdentity},
    next::{Due, Waiting},
    owner::{Owner, OwnerEvent},
    refusal::Refusal,
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
};
use serde::{Deserialize, Serialize};

/// What a decision stores, in one transaction.
#[derive(Debug)]
pub struct Append {
    /// What happened.
    pub events: Vec<SessionEvent>,
    /// The session after it.
    pub after: Session,
    /// When someone must act.
    pub due: Due,
    /// What the session waits for.
    pub waiting: Option<Waiting>,
}

/// Why nothing is stored.
#[derive(Debug, thiserror::Error)]
pub enum Undecided {
    /// The command was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The journal holds what cannot have happened.
    #[error(transparent)]
    Corrupt(#[from] CorruptJournal),
}

/// Decides on a session. What is stored was decided on the session as it stood at that moment; a
/// journal may have to ask more than once to get there.
pub type Decide = Box<dyn Fn(&Session) -> Result<Append, Undecided> + Send + Sync>;

/// The answer to a command. Asking again with the same id gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It happened: these events, of which there may be none.
    Accepted {
        /// The version of the session before it.
        before: Seq,
        /// The version of the session after it.
        version: Seq,
    },
    /// It did not, and why.
    Refused(Refusal),
}

/// An event as the journal holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its place in the stream.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// What happened.
    pub event: SessionEvent,
}

/// A session that needs someone to act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// Which session.
    pub identity: SessionIdentity,
    /// At which version.
    pub version: Seq,
    /// When; none for now.
    pub at: Option<Time>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Which session.
    pub identity: SessionIdentity,
    /// How many events it has.
    pub version: Seq,
    /// When something last happened.
    pub updated: Time,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// Why nobody acts on it any more, if it was parked.
    pub parked: Option<String>,
    /// Whose it is.
    pub owner: Option<PersonId>,
    /// What people call it.
    pub title: String,
    /// Whether it was put away.
    pub archived: bool,
}

/// What became of a session on which acting failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackedOff {
    /// It is tried again then.
    Until(Time),
    /// It failed too often: a person or the operator must look.
    Parked,
}

/// Why the journal could not answer. The operator reads this.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// What it holds cannot be folded.
    #[error(transparent)]
    Corrupt(#[from] CorruptJournal),
    /// It holds an event that this version does not know.
    #[error(
        "the session {identity} holds an event that this version does not know ({what}); it is left alone"
    )]
    UnknownEvent {
        /// The session.
        identity: String,
        /// What could not be read.
        what: String,
    },
    /// The engine failed.
    #[error("the journal failed: {0}")]
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// It is shut.
    #[error("the journal is closed")]
    Closed,
}

/// The only truth: one append-only stream of events per session.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Decides under the session's lock and stores, in one transaction, the events, the answer for
    /// this command and what is due. Answers only when that is durable.
    async fn append(
        &self,
        identity: &SessionIdentity,
        command: CommandId,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError>;

    /// The session as it stands; an empty one if nothing ever happened in it.
    async fn session(&self, identity: &SessionIdentity) -> Result<Arc<Session>, JournalError>;

    /// The events after this place, oldest first, at most so many.
    async fn events(
        &self,
        identity: &SessionIdentity,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError>;

    /// Keeps an output of this session under its digest. It is there before the event that names it.
    async fn keep_output(
        &self,
        identity: &SessionIdentity,
        text: &str,
    ) -> Result<Digest, JournalError>;

    /// An output of this session that was kept.
    async fn output(
        &self,
        identity: &SessionIdentity,
        digest: Digest,
    ) -> Result<Option<String>, JournalError>;

    /// The sessions that need someone to act by then, or at any time; the longest due first.
    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError>;

    /// Acting on this session failed: try later, or park it.
    async fn back_off(
        &self,
        identity: &SessionIdentity,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError>;

    /// Takes a parked session up again.
    async fn unpark(&self, identity: &SessionIdentity, now: Time) -> Result<(), JournalError>;

    /// The sessions that are there, newest first: those of this owner, or everyone's for the operator.
    async fn sessions(
        &self,
        owner: Option<&PersonId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError>;

    /// The sessions that wait for a person, whoever owns them, newest first.
    async fn waiting(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError>;

    /// How many sessions have plan work.
    async fn planning(&self) -> Result<u64, JournalError>;

    /// The owner's newest session of this channel that is there and was not put away.
    async fn newest(
        &self,
        owner: &PersonId,
        channel: ChannelType,
    ) -> Result<Option<SessionIdentity>, JournalError>;

    /// What belongs to this owner; nothing, if nothing ever happened to it.
    async fn owner(&self, owner: &PersonId) -> Result<Owner, JournalError>;

    /// Decides under the owner's lock and stores the events; what belongs to the owner then, or why not.
    async fn append_owner(
        &self,
        owner: &PersonId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError>;
}

/// Decides on what belongs to an owner.
pub type DecideOwner = Box<dyn Fn(&Owner) -> Result<Vec<OwnerEvent>, Refusal> + Send + Sync>;

/// One session, whole: what an archive holds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Which session.
    pub identity: SessionIdentity,
    /// Everything that happened, from the first event on.
    pub events: Vec<Recorded>,
    /// What every command was answered, by the command's id.
    pub answers: BTreeMap<CommandId, Answer>,
    /// The outputs that were kept, by their digests.
    pub outputs: BTreeMap<Digest, String>,
}

/// One event of an owner's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecorded {
    /// When it was recorded.
    pub at: Time,
    /// What happened.
    pub event: OwnerEvent,
}

/// Moving a whole journal elsewhere.
#[async_trait]
pub trait Archive: Journal {
    /// The sessions after this one, in the order of their text form, at most so many.
    async fn identities(
        &self,
        after: Option<&SessionIdentity>,
        limit: usize,
    ) -> Result<Vec<SessionIdentity>, JournalError>;

    /// What every command of a session was answered.
    async fn answers(
        &self,
        identity: &SessionIdentity,
    ) -> Result<BTreeMap<CommandId, Answer>, JournalError>;

    /// The outputs that were kept of a session.
    async fn outputs(&self, identity: &SessionIdentity) -> Result<Vec<Digest>, JournalError>;

    /// Every owner, in the order of their names.
    async fn owners(&self) -> Result<Vec<PersonId>, JournalError>;

    /// Everything that happened to what belongs to an owner.
    async fn owner_events(&self, owner: &PersonId) -> Result<Vec<OwnerRecorded>, JournalError>;

    /// Stores a whole session that is not there yet; whether it was stored.
    async fn restore(&self, stream: Stream, append: Append) -> Result<bool, JournalError>;
}
