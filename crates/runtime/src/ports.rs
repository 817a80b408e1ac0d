//! What the runtime needs from the outside, each by its role.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    effect::{Aim, Repeat, ToolFacts},
    id::{CallId, CommandId, PlanId, Seq, TurnId},
    identity::{ChannelType, ConversationKey, SessionIdentity, TransportChatId},
    next::{Due, Waiting},
    refusal::Refusal,
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
    tools::ToolSpec,
    turn::{CallResult, ModelFailure, Usage, profile::Profile},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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

    /// The sessions, newest first.
    async fn sessions(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError>;

    /// The sessions that wait for a person, newest first.
    async fn waiting(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError>;

    /// The conversation that is active for this chat.
    async fn pointer(
        &self,
        channel: ChannelType,
        chat: &TransportChatId,
    ) -> Result<Option<ConversationKey>, JournalError>;

    /// Makes a conversation the active one for this chat.
    async fn move_pointer(
        &self,
        channel: ChannelType,
        chat: &TransportChatId,
        key: &ConversationKey,
    ) -> Result<(), JournalError>;
}

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

/// The active conversation of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// In this channel.
    pub channel: ChannelType,
    /// Of this chat.
    pub chat: TransportChatId,
    /// The conversation's key.
    pub key: String,
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

    /// Every pointer, in the order of channel and chat.
    async fn pointers(&self) -> Result<Vec<Pointer>, JournalError>;

    /// Stores a whole session that is not there yet; whether it was stored.
    async fn restore(&self, stream: Stream, append: Append) -> Result<bool, JournalError>;
}

/// Makes sure that someone acts on a session: one at a time per session, any number at once.
pub trait Lane: Send + Sync {
    /// The session moved to this version and is due.
    fn wake(&self, identity: &SessionIdentity, version: Seq, due: Due);

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
    fn publish(&self, identity: &SessionIdentity, signal: Signal);

    /// Listens to one session.
    fn subscribe(&self, identity: &SessionIdentity) -> Box<dyn Subscription>;

    /// What a person should know, if signals do not get through.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// An ear on one session.
#[async_trait]
pub trait Subscription: Send {
    /// The next signal; none when there will be no more.
    async fn next(&mut self) -> Option<Signal>;
}

/// What the model is given.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// What it is, and what plan work is active.
    pub system: String,
    /// What was said.
    pub messages: Arc<Vec<Message>>,
    /// What it may call.
    pub tools: Vec<Arc<ToolSpec>>,
}

/// One message of the conversation, as the model is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// From outside.
    User(String),
    /// From the model.
    Assistant {
        /// Its words.
        text: String,
        /// The calls it asked for.
        calls: Vec<WireCall>,
    },
    /// A call's result.
    Tool {
        /// The call, as the provider named it.
        wire_id: String,
        /// What came of it.
        text: String,
    },
}

/// A call as the provider writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireCall {
    /// The provider's id.
    pub wire_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// Its words.
    pub text: String,
    /// The calls it asks for.
    pub calls: Vec<WireCall>,
    /// What it cost, if the provider says.
    pub usage: Option<Usage>,
}

/// What a model costs, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// For what it reads.
    pub input_micros: u64,
    /// For what it writes.
    pub output_micros: u64,
}

impl Price {
    /// What so many tokens cost, in millionths of a dollar.
    #[must_use]
    pub fn of(self, usage: Usage) -> u64 {
        let cost = u128::from(self.input_micros) * u128::from(usage.input)
            + u128::from(self.output_micros) * u128::from(usage.output);
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Hears pieces of text as they arrive.
pub type OnPreview<'a> = &'a (dyn for<'piece> Fn(&'piece str) + Send + Sync);

/// A model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks it. Pieces of text go to `preview` as they arrive.
    async fn answer(
        &self,
        request: &ModelRequest,
        preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure>;

    /// How many tokens one request may hold.
    fn window_tokens(&self) -> usize;

    /// What it costs, if that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Its name, for people.
    fn name(&self) -> String;
}

/// An agent profile: who does a step of a plan.
#[derive(Clone)]
pub struct AgentProfile {
    /// As the gate knows it.
    pub facts: Profile,
    /// What it is told besides.
    pub prompt: String,
    /// The model that it asks.
    pub model: Arc<dyn Model>,
}

impl AgentProfile {
    /// A profile, given all that it is.
    #[must_use]
    pub fn new(
        name: &str,
        prompt: &str,
        model: Arc<dyn Model>,
        tools: Option<BTreeSet<String>>,
        rounds_max: Option<u32>,
    ) -> Self {
        let facts = Profile::new(name, prompt, &model.name(), tools, rounds_max);
        Self { facts, prompt: prompt.into(), model }
    }
}

/// The profiles there are, by name.
pub type Profiles = Arc<BTreeMap<String, AgentProfile>>;

/// The profile that is there without any setting: every tool, and the model of the conversation.
pub const DEFAULT_PROFILE: &str = "default";

/// The profiles of an installation that names none: one, with this model.
#[must_use]
pub fn default_profiles(model: &Arc<dyn Model>) -> Profiles {
    let profile = AgentProfile::new(DEFAULT_PROFILE, "", model.clone(), None, None);
    Arc::new([(DEFAULT_PROFILE.to_owned(), profile)].into())
}

/// A tool of the toolbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// As the model is told of it.
    pub spec: Arc<ToolSpec>,
    /// As the gate knows it.
    pub facts: ToolFacts,
}

impl Tool {
    /// A tool, and whether a call whose outcome is unknown may be made again unasked.
    #[must_use]
    pub fn new(spec: ToolSpec, repeat: Repeat) -> Self {
        let facts = ToolFacts { effect: spec.effect, repeat, schema: spec.schema_digest() };
        Self { spec: Arc::new(spec), facts }
    }
}

/// One call to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRun {
    /// In this session.
    pub identity: SessionIdentity,
    /// The call: also the idempotency key.
    pub call: CallId,
    /// The so-manieth try.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// The plan under whose lease it runs.
    pub plan: Option<PlanId>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It ended, well or badly.
    Ended(CallResult),
    /// Nobody knows whether it took effect.
    Unknown {
        /// In words.
        why: String,
    },
}

/// The tools there are.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// All of them, as they stand now.
    fn tools(&self) -> Arc<Vec<Tool>>;

    /// What a call with these arguments is aimed at, as far as the tool can say.
    fn aim(&self, tool: &str, arguments: &str) -> Aim {
        let _ = (tool, arguments);
        Aim::default()
    }

    /// Whether a tool can take these arguments; in words if not.
    fn check(&self, tool: &str, arguments: &str) -> Result<(), String>;

    /// Looks again which tools there are, where they may change by themselves. The gate asks for this
    /// before every call, so that what was approved is held against what is there now.
    async fn refresh(&self) {}

    /// Makes a call.
    async fn run(&self, run: ToolRun) -> Ran;
}

/// The schemas of a toolbox, by name.
pub fn schemas(toolbox: &dyn Toolbox) -> BTreeMap<String, Digest> {
    toolbox.tools().iter().map(|tool| (tool.spec.name.clone(), tool.facts.schema)).collect()
}

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}

/// What the bearer of a secret may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name in lists.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Who the bearer is.
    pub person: PersonId,
    /// Whether the bearer may decide.
    pub standing: Standing,
    /// When it was given.
    pub created: Time,
    /// When it ends by itself.
    pub expires: Option<Time>,
}

/// Why access could not be looked up or changed. The operator reads this.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It will not be, and why.
    #[error("access cannot be looked up or changed: {0}")]
    Refused(String),
    /// It cannot be now.
    #[error("who may do what cannot be looked up now: {0}")]
    Unreachable(String),
}

/// Who may do what. Secrets are never kept, only their digests.
#[async_trait]
pub trait Access: Send + Sync {
    /// Keeps a grant under the digest of its secret.
    async fn keep(&self, grant: Grant, secret: Digest) -> Result<(), AccessError>;

    /// The grant of this secret.
    async fn find(&self, secret: Digest) -> Result<Option<Grant>, AccessError>;

    /// Every grant there is, oldest first.
    async fn list(&self) -> Result<Vec<Grant>, AccessError>;

    /// Takes a grant back; whether there was one.
    async fn revoke(&self, id: Uuid) -> Result<bool, AccessError>;

    /// Whether this is the passphrase that was chosen.
    async fn is_passphrase(&self, given: &str) -> Result<bool, AccessError>;
}
