//! The journal: the only truth, and moving it elsewhere.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, Incarnation, OwnerId, Seq},
    identity::{ChannelType, SessionKey},
    installation::{AccountRefusal, Installation, InstallationEvent},
    next::{Due, Waiting, is_running, waiting},
    owner::{Owner, OwnerEvent},
    plan::PlanStage,
    quota::{Day, TurnRoom, Used},
    refusal::Refusal,
    session::{CorruptJournal, Session, SessionEvent, life::Life},
    time::Time,
};
use planwright_format::FormatError;
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
    /// It begins a turn: nothing is stored, if the owner has as many under way as they may.
    pub turns: Option<TurnRoom>,
}

/// Which of a session's events are asked for: recorded at or after this time, of these kinds or of any if none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The time.
    pub time: Time,
    /// The kinds, as [`SessionEvent::kind`] names them.
    pub kinds: &'static [&'static str],
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

impl Answer {
    /// Whether it says no.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// An answer that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// When it was given.
    pub at: Time,
    /// The answer.
    pub answer: Answer,
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

/// A conversation as it stood after it was summed up, kept so that nobody reads all of it again. The events are the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptView {
    /// Up to this event.
    pub upto: Seq,
    /// In which form the text is.
    pub form: u32,
    /// The conversation.
    pub text: String,
}

/// A session that needs someone to act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// Which session.
    pub session: SessionKey,
    /// At which version.
    pub version: Seq,
    /// When; none for now.
    pub at: Option<Time>,
}

/// For how long a row is reserved for whoever takes it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// The life that takes it up.
    pub by: Incarnation,
    /// From now.
    pub from: Time,
    /// Until then.
    pub until: Time,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Which session.
    pub session: SessionKey,
    /// How many events it has.
    pub version: Seq,
    /// When something last happened.
    pub updated: Time,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// Why nobody acts on it any more, if it was parked.
    pub parked: Option<String>,
    /// What people call it.
    pub title: String,
    /// Whether it was put away.
    pub archived: bool,
    /// Whether something is under way in it.
    pub running: bool,
    /// Where its plan stands; none without one.
    pub plan: Option<PlanStage>,
    /// What its models have cost, in millionths of a dollar.
    pub cost_micros: u64,
}

impl SessionRow {
    /// The row of a session in which something happened just now.
    #[must_use]
    pub fn of(session: &Session, updated: Time) -> Self {
        Self {
            session: session.key(),
            version: session.version,
            updated,
            waiting: waiting(session),
            parked: None,
            title: session.title.clone(),
            archived: session.life == Life::Archived,
            running: is_running(session),
            plan: session.plan().map(|plan| plan.status.stage()),
            cost_micros: session.usage.cost_micros,
        }
    }
}

/// Which sessions are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Whose; everyone's, for those who may decide.
    pub owner: Option<OwnerId>,
    /// Only those that wait for a person.
    pub waiting: bool,
    /// Those with these words, the last of them by its beginning, in their title and identity, or in something that was said or
    /// planned there and was indexed since; all of them, if it is empty.
    pub text: String,
    /// Those after this place; the newest, if there is none.
    pub after: Option<ListPlace>,
    /// At most so many.
    pub limit: usize,
}

/// A place in a list whose newest rows come first. It stays where it is, whatever comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPlace {
    /// When something happened in the session of the row: not much before what happened last.
    pub listed: Time,
    /// The number of its stream.
    pub stream: i64,
}

impl ListPlace {
    /// Before every row.
    pub const BEGINNING: Self = Self { listed: Time(i64::MAX), stream: i64::MAX };
}

impl std::fmt::Display for ListPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.listed.0, self.stream)
    }
}

impl std::str::FromStr for ListPlace {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (listed, stream) = text.rsplit_once('-').unwrap_or((text, ""));
        Ok(Self { listed: Time(listed.parse()?), stream: stream.parse()? })
    }
}

/// How far the sessions of a list are counted.
pub const TOTAL_MAX: u64 = 1_000;

/// Some of the sessions that are there, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// Those of this page.
    pub rows: Vec<SessionRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<ListPlace>,
    /// How many there are on all pages; `TOTAL_MAX`, if there are so many or more.
    pub total: u64,
}

/// Something that a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// In which session.
    pub session: SessionKey,
    /// What the session is called.
    pub title: String,
    /// The decision.
    pub recorded: Recorded,
}

/// Which decisions are listed.
#[derive(Debug, Clone, Copy)]
pub struct DecisionQuery {
    /// Those in the sessions of this owner, or in everyone's.
    pub owner: Option<OwnerId>,
    /// Not those before this time.
    pub since: Time,
    /// Those after this place; from the newest on, if none.
    pub after: Option<DecisionPlace>,
    /// At most so many.
    pub limit: usize,
}

/// A place in the list of decisions, whose newest come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionPlace {
    /// When it was decided.
    pub at: Time,
    /// The number of its session's stream.
    pub stream: i64,
    /// Its number in the stream.
    pub seq: Seq,
}

impl DecisionPlace {
    /// Before every decision.
    pub const BEGINNING: Self =
        Self { at: Time(i64::MAX), stream: i64::MAX, seq: Seq(i64::MAX.cast_unsigned()) };
}

impl std::fmt::Display for DecisionPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.at.0, self.stream, self.seq.0)
    }
}

impl std::str::FromStr for DecisionPlace {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.rsplitn(3, '-');
        let mut part = || parts.next().unwrap_or_default();
        let (seq, stream, at) = (part(), part(), part());
        // As the columns that it is compared with, it has a sign.
        let seq = seq.parse::<i64>()?.max(0).cast_unsigned();
        Ok(Self { at: Time(at.parse()?), stream: stream.parse()?, seq: Seq(seq) })
    }
}

/// Some of the decisions, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionPage {
    /// Those of this page.
    pub rows: Vec<DecisionRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<DecisionPlace>,
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
    /// Something that it holds cannot be read, or must not be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A newer version of this program has changed the database's schema.
    #[error(
        "the database has schema {found}, and this version knows {known} at most: a newer version has opened it; \
         start that version or a newer one, or restore a backup from before the upgrade. Nothing was changed"
    )]
    NewerSchema {
        /// The version of the database's schema.
        found: u32,
        /// The newest that this version knows.
        known: u32,
    },
    /// It was written before the first release.
    #[error(
        "the data is of a version from before the first release, and is not carried over; begin with an empty data \
         directory or database, or go on with the version that wrote it. Nothing was changed"
    )]
    DevelopmentData,
    /// The engine failed.
    #[error("the journal failed: {}", crate::ports::causes::with_causes(&**.0))]
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// It is shut.
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    /// Whether a newer program wrote what cannot be read.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Format(FormatError::Newer { .. }))
    }

    /// Whether what is stored is not what was written.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Format(FormatError::Corrupt { .. }))
    }
}

/// The only truth: one append-only stream of events per session.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Decides under the session's lock and stores, in one transaction, the events, the answer for
    /// this command and what is due. Answers only when that is durable. Without an id nobody asks for the answer again, and it
    /// is not kept.
    async fn append(
        &self,
        session: &SessionKey,
        command: Option<CommandId>,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError>;

    /// The session as it stands; an empty one if nothing ever happened in it.
    async fn session(&self, session: &SessionKey) -> Result<Arc<Session>, JournalError>;

    /// The events after this place, oldest first, at most so many.
    async fn events(
        &self,
        session: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError>;

    /// The events after this place that are asked for, oldest first, at most so many. They need
    /// not follow each other: a time is read before the event is stored, and on several clocks.
    async fn events_since(
        &self,
        session: &SessionKey,
        since: Since,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError>;

    /// Keeps an output of this session under its digest. It is there before the event that names it.
    async fn keep_output(&self, session: &SessionKey, text: &str) -> Result<Digest, JournalError>;

    /// An output of this session that was kept.
    async fn output(
        &self,
        session: &SessionKey,
        digest: Digest,
    ) -> Result<Option<String>, JournalError>;

    /// Removes long outputs that were written before then and that nothing names: whoever wrote them ended before they did, or
    /// their session was erased meanwhile. How many.
    async fn sweep_outputs(&self, before: Time) -> Result<usize, JournalError>;

    /// Keeps a conversation of this session instead of what was kept of it; nothing, if the session is not there.
    async fn keep_view(&self, session: &SessionKey, view: KeptView) -> Result<(), JournalError>;

    /// The conversation that was kept, if it can be read.
    async fn kept_view(&self, session: &SessionKey) -> Result<Option<KeptView>, JournalError>;

    /// The sessions that need someone to act by then, or at any time; the longest due first.
    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError>;

    /// Takes up sessions that were due by then: each is reserved for the caller until then, or until somebody acted on it. A
    /// journal that no other process acts on need not reserve anything.
    async fn take_due(
        &self,
        by: Time,
        reserved: Reserved,
        limit: usize,
    ) -> Result<Vec<DueRow>, JournalError>;

    /// Acting on this session failed: try later, or park it.
    async fn back_off(
        &self,
        session: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError>;

    /// Takes a parked session up again.
    async fn unpark(&self, session: &SessionKey, now: Time) -> Result<(), JournalError>;

    /// The sessions that are there, newest first: those of this owner, or everyone's for the operator.
    async fn sessions(
        &self,
        owner: Option<OwnerId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError>;

    /// A session as lists show it, also where its events cannot be read; none if it is not there.
    async fn row(&self, session: &SessionKey) -> Result<Option<SessionRow>, JournalError>;

    /// A page of the sessions that are there, newest first.
    async fn session_page(&self, query: &SessionQuery) -> Result<SessionPage, JournalError>;

    /// A page of what people decided, newest first.
    async fn decisions(&self, query: &DecisionQuery) -> Result<DecisionPage, JournalError>;

    /// The sessions that are there and in which something happened at or after this time, in the order of their
    /// keys after this one: those of this owner, or everyone's.
    async fn active(
        &self,
        owner: Option<OwnerId>,
        since: Time,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError>;

    /// Forgets what was answered before then, at most so many; how many. Who asks again is decided on anew.
    async fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError>;

    /// How many sessions have plan work.
    async fn planning(&self) -> Result<u64, JournalError>;

    /// The owner's newest session of this channel that is there and was not put away.
    async fn newest(
        &self,
        owner: OwnerId,
        channel: ChannelType,
    ) -> Result<Option<SessionKey>, JournalError>;

    /// What belongs to this owner; nothing, if nothing ever happened to it.
    async fn owner(&self, owner: OwnerId) -> Result<Owner, JournalError>;

    /// The owner that this person is. One that was not known is made, with this id.
    async fn owner_of(&self, person: &PersonId, fresh: OwnerId) -> Result<OwnerId, JournalError>;

    /// Decides under the owner's lock and stores the events; what belongs to the owner then, or why not.
    async fn append_owner(
        &self,
        owner: OwnerId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError>;

    /// What belongs to this owner, and what they have used: what was taken up, and what was not yet.
    async fn used(&self, owner: OwnerId, day: Day) -> Result<(Owner, Used), JournalError>;

    /// The name of this owner.
    async fn owner_name(&self, owner: OwnerId) -> Result<Option<PersonId>, JournalError>;

    /// Takes up what sessions used into what their owners used, models into their streams: of so many sessions at most. All of it
    /// is one transaction. Of how many sessions.
    async fn count_use(&self, at: Time, limit: usize) -> Result<usize, JournalError>;

    /// Puts some of what was said and planned since into the index of words; of how many sessions. None, if there is nothing more.
    async fn index_words(&self) -> Result<usize, JournalError>;

    /// Nobody needs to act on this session before then, as long as it stands at this version.
    async fn postpone(
        &self,
        session: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError>;

    /// The sessions in this life in which nothing happened since, the oldest first, at most so many.
    async fn unused_since(
        &self,
        life: Life,
        since: Time,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError>;

    /// What belongs to the installation; what another node stored is seen within a second.
    async fn installation(&self) -> Result<Arc<Installation>, JournalError>;

    /// Decides on the installation as it stands and stores the events; what belongs to it then, or why not.
    async fn append_installation(
        &self,
        at: Time,
        decide: DecideInstallation,
    ) -> Result<Result<Arc<Installation>, AccountRefusal>, JournalError>;

    /// The entries of the audit log after this one, oldest first, at most so many.
    async fn audit_log(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<InstallationRecorded>, JournalError>;

    /// Erases a session whose erasure is due: events, answers, outputs, snapshots, what it remembers, and what is looked up of it;
    /// the audit log keeps that it was. One transaction. Whether it was due.
    async fn erase(&self, session: &SessionKey, at: Time) -> Result<bool, JournalError>;

    /// Erases what belongs to an owner beside their sessions: pointers, and what is known everywhere. The audit log keeps that it
    /// was.
    async fn erase_owner(
        &self,
        owner: OwnerId,
        by: &PersonId,
        at: Time,
    ) -> Result<(), JournalError>;

    /// Removes what is left of erased sessions where rows were: in files and logs of this journal. Whether nothing is left;
    /// who reads at the moment may keep something a little longer.
    async fn scrub(&self) -> Result<bool, JournalError>;

    /// Takes up into the audit log how far the decisions of sessions have come: of streams after this one, at most so many. All
    /// of it is one transaction. Nothing, while another node does.
    async fn take_heads(
        &self,
        at: Time,
        after: i64,
        limit: usize,
    ) -> Result<TakenHeads, JournalError>;
}

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationRecorded {
    /// Its number.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// What happened.
    pub event: InstallationEvent,
}

/// What the audit log took up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenHeads {
    /// How many heads.
    pub count: usize,
    /// The stream that was looked at last; none, where there was nothing to look at.
    pub last: Option<i64>,
}

/// Decides on what belongs to the installation.
pub type DecideInstallation =
    Box<dyn Fn(&Installation) -> Result<Vec<InstallationEvent>, AccountRefusal> + Send + Sync>;

/// Decides on what belongs to an owner.
pub type DecideOwner = Box<dyn Fn(&Owner) -> Result<Vec<OwnerEvent>, Refusal> + Send + Sync>;

/// One session, whole: what an archive holds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Which session.
    pub key: SessionKey,
    /// Everything that happened, from the first event on.
    pub events: Vec<Recorded>,
    /// What every command was answered, by the command's id.
    pub answers: BTreeMap<CommandId, KeptAnswer>,
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
    /// The sessions after this one, in the order of their keys, at most so many.
    async fn keys(
        &self,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, JournalError>;

    /// What every command of a session was answered.
    async fn answers(
        &self,
        session: &SessionKey,
    ) -> Result<BTreeMap<CommandId, KeptAnswer>, JournalError>;

    /// The outputs that were kept of a session.
    async fn outputs(&self, session: &SessionKey) -> Result<Vec<Digest>, JournalError>;

    /// Every owner, in the order of their names.
    async fn owners(&self) -> Result<Vec<(PersonId, OwnerId)>, JournalError>;

    /// Gives a person the id that they had elsewhere; whether they have it now. Who has anything here keeps their own.
    async fn adopt_owner(&self, person: &PersonId, owner: OwnerId) -> Result<bool, JournalError>;

    /// Everything that happened to what belongs to an owner.
    async fn owner_events(&self, owner: OwnerId) -> Result<Vec<OwnerRecorded>, JournalError>;

    /// Stores a whole session that is not there yet; whether it was stored.
    async fn restore(&self, stream: Stream, append: Append) -> Result<bool, JournalError>;
}
