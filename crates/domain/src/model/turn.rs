//! A turn: one reaction of the agent to one cause, as recorded facts.
//!
//! [`decide`] says which reports of the runtime move the turn; [`evolve`] folds the facts. Between
//! them, [`crate::next::next`] says what should happen now.
//!
//! Must always hold:
//! - `effects-bracketed`: started is recorded before an effect, finished after; between them the
//!   outcome is unknown, and a person is asked unless repeating is harmless.
//! - `every-call-answered`: each call of an answer gets exactly one result before the model is
//!   asked again.

use serde::{Deserialize, Serialize};

use crate::model::{
    attempt::ModelAttempt,
    digest::Digest,
    effect::{Bracket, Effect, FileChange, ToolFacts, Touched},
    id::{CallId, PlanId, RunId, Seq, TurnId},
    quota::LimitReached,
    time::Time,
    tools,
    turn::{asking::Asking, profile::Profile},
};

pub mod ask;
pub mod asking;
pub mod ending;
pub mod event;
pub mod failure;
pub mod profile;

pub use failure::{FailureKind, ModelFailure};

/// Why a turn happens, and where in the stream that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queued {
    /// The event that queued it.
    pub seq: Seq,
    /// The cause.
    pub cause: Cause,
}

/// Why a turn happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A person said something.
    Message,
    /// A person asked for changes to this plan.
    ChangesRequested {
        /// The plan.
        plan: PlanId,
    },
    /// An execution of this plan starts or goes on.
    Execution {
        /// The plan.
        plan: PlanId,
    },
    /// A run goes on by itself.
    Tick {
        /// The run.
        run: RunId,
    },
    /// A person asked that what was said before be summed up.
    Compaction,
}

impl Cause {
    /// The plan that the cause is about, if any.
    #[must_use]
    pub fn plan(self) -> Option<PlanId> {
        match self {
            Self::Message | Self::Tick { .. } | Self::Compaction => None,
            Self::ChangesRequested { plan } | Self::Execution { plan } => Some(plan),
        }
    }
}

/// An open turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// Which turn.
    pub id: TurnId,
    /// Why it happens.
    pub cause: Queued,
    /// Where in the stream it began.
    pub started: Seq,
    /// How often the model was asked to go on.
    pub round: u32,
    /// What is under way.
    pub step: Step,
    /// The plan that this turn wrote or reported on, if it did.
    pub planned: Option<PlanId>,
    /// What it is there for.
    pub work: Work,
    /// The profile it works under; without one it may use every tool.
    pub profile: Option<Profile>,
    /// Whether its step has come out: it has no lease any more.
    pub reported: bool,
    /// The words beside the calls of the answer that finalises a plan.
    pub summary_text: String,
    /// Where it stands with the models that it asks.
    #[serde(default)]
    pub asking: Asking,
    /// The limit for which it waits.
    pub paused: Option<LimitReached>,
}

/// What a turn is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// To answer, or to execute a document.
    Answers,
    /// To make the recorded calls of a plan, without the model.
    Replays,
    /// To sum up what was said before.
    Compacts,
    /// To do one step of a plan.
    Does {
        /// The step.
        step: u32,
    },
}

impl Turn {
    /// The attempt of this number in the round that the turn is in.
    #[must_use]
    pub fn attempt(&self, number: u32) -> ModelAttempt {
        ModelAttempt { turn: self.id, round: self.round, number }
    }

    /// The attempt at a model call that is under way.
    #[must_use]
    pub fn open_attempt(&self) -> Option<ModelAttempt> {
        match self.step {
            Step::ModelOpen { attempt, .. } => Some(self.attempt(attempt)),
            Step::ModelDue { .. } | Step::Calls(_) => None,
        }
    }

    /// Whether its profile, if it has one, may use this tool.
    #[must_use]
    pub fn may_use(&self, tool: &str) -> bool {
        let listed = self.profile.as_ref().and_then(|profile| profile.tools.as_ref());
        tool == tools::READ_RESULT || listed.is_none_or(|listed| listed.contains(tool))
    }

    /// The plan that this turn executes, if it does.
    #[must_use]
    pub fn executes(&self) -> Option<PlanId> {
        match self.cause.cause {
            Cause::Execution { plan } => Some(plan),
            Cause::Message
            | Cause::ChangesRequested { .. }
            | Cause::Tick { .. }
            | Cause::Compaction => None,
        }
    }

    /// The calls of the answer that is being worked on.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        match &self.step {
            Step::Calls(calls) => calls,
            Step::ModelDue { .. } | Step::ModelOpen { .. } => &[],
        }
    }
}

/// What is under way in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The model should be asked.
    ModelDue {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// Not earlier than this.
        not_before: Option<Time>,
    },
    /// The model is being asked.
    ModelOpen {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
    },
    /// The calls of its answer are being worked on.
    Calls(Vec<Call>),
}

/// One call of the answer that is being worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    /// As it was asked for. The arguments are dropped once it is answered.
    pub requested: RequestedCall,
    /// Where it stands.
    pub state: CallState,
    /// The step of the plan that it is, if the turn replays.
    pub step: Option<u32>,
    /// The schema for which a person allowed it, if one did.
    pub permit: Option<Digest>,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It should be made; the number of the attempt.
    Pending(u32),
    /// It waits for a person's permission.
    Asking(u32),
    /// It is being made.
    Open(u32),
    /// It has its result.
    Answered,
}

/// A call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestedCall {
    /// Our id, and the idempotency key that a tool receives.
    pub id: CallId,
    /// The provider's id, to be returned with the result.
    pub wire_id: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// What kind of tool it is.
    pub kind: CallKind,
}

/// What kind of tool a call names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A plan tool: answered from state, no effect.
    Plan,
    /// A tool of the toolbox.
    Tool(ToolFacts),
    /// Not a tool we know, or not arguments it can take.
    Unusable {
        /// In words.
        problem: String,
    },
}

impl CallKind {
    /// The effect, where what is unknown counts as external.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Plan => Effect::Internal,
            Self::Tool(facts) => facts.effect,
            Self::Unusable { .. } => Effect::External,
        }
    }
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Its words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RequestedCall>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// What the provider wants back with it: reasoning, signatures. Nobody else can read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// What it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Box<Sent>>,
}

/// Something that a provider wants back, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// Where it stood: 0 before or with the words, n before or with the n-th call, one more after all.
    pub at: u32,
    /// The item, as the provider wrote it.
    pub item: String,
}

/// What a request was made of: enough to see what was sent, and to hold it against what is rebuilt from the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sent {
    /// Who was asked: how it is spoken to, and its name.
    pub model: String,
    /// How many tokens were expected.
    pub estimate: u64,
    /// The bytes of what the model is told about itself and its work.
    pub system_bytes: u64,
    /// The bytes of the tools that it is told of.
    pub tools_bytes: u64,
    /// The bytes of what was said.
    pub message_bytes: u64,
    /// How many messages that is.
    pub messages: u32,
    /// Results up to here are shortened, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Seq>,
    /// How many bytes that spared.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spared_bytes: u64,
    /// The digest of what it was told and what was said.
    pub digest: Digest,
}

/// How many tokens a model counts for what we expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measure {
    /// Bytes that were sent, the older the less.
    pub bytes: u64,
    /// Tokens that were counted for them.
    pub tokens: u64,
}

impl Measure {
    /// How many tokens so many bytes are expected to be: as the model counted before, else a quarter of them.
    #[must_use]
    pub fn expect(self, bytes: u64) -> u64 {
        if self.bytes == 0 {
            return bytes.div_ceil(4);
        }
        let tokens = u128::from(bytes) * u128::from(self.tokens) / u128::from(self.bytes);
        // No text is denser than a token a byte, nor thinner than one for sixteen.
        u64::try_from(tokens).unwrap_or(u64::MAX).clamp(bytes.div_ceil(16), bytes.max(1))
    }

    /// With one count more; what was counted before weighs half.
    #[must_use]
    pub fn with(self, bytes: u64, tokens: u64) -> Self {
        if bytes == 0 || tokens == 0 {
            return self;
        }
        Self { bytes: self.bytes / 2 + bytes, tokens: self.tokens / 2 + tokens }
    }
}

/// Tokens, as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Read by the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Of what was read, what the provider had kept.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cached: u64,
    /// Of what was read, what the provider keeps from now on, where it charges for that.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cache_written: u64,
    /// What that cost, in millionths of a dollar, where the price is known.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cost_micros: u64,
}

fn is_nothing(cost: &u64) -> bool {
    *cost == 0
}

impl Usage {
    /// So many tokens, at a price that is not known yet.
    #[must_use]
    pub fn tokens(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cached: self.cached + other.cached,
            cache_written: self.cache_written + other.cache_written,
            cost_micros: self.cost_micros + other.cost_micros,
        }
    }
}

/// What a tool call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallResult {
    /// Whether it did what was asked.
    pub status: CallStatus,
    /// What the model reads.
    pub output: String,
    /// What it did to the world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<Touched>,
    /// What it made of files, for people: the model is not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
}

impl CallResult {
    /// It did what was asked, and changed nothing that it knows of.
    #[must_use]
    pub fn done(output: impl Into<String>) -> Self {
        Self::of(CallStatus::Done, output)
    }

    /// It did not, and says why.
    #[must_use]
    pub fn failed(output: impl Into<String>) -> Self {
        Self::of(CallStatus::Failed, output)
    }

    /// What it says, if it touched nothing that it knows of.
    #[must_use]
    pub fn of(status: CallStatus, output: impl Into<String>) -> Self {
        Self { status, output: output.into(), touched: Vec::new(), changes: Vec::new() }
    }
}

/// Whether a call did what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It did.
    Done,
    /// It did not, and says why.
    Failed,
}

/// A result that no effect gave: from state, by the gate, or because the turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolReply {
    /// Words.
    Text {
        /// What the model reads.
        text: String,
    },
    /// The call was recorded as a step of the plan, and not made.
    Planned,
    /// The plans of this view.
    Plans,
    /// The document of this revision; the text stays where it is recorded.
    Revision {
        /// The revision.
        digest: Digest,
        /// A line before it.
        heading: String,
    },
    /// It was not run, and why.
    Refused {
        /// The kind, as programs read it.
        kind: String,
        /// What the model reads.
        words: String,
    },
    /// The turn was ended while it was under way.
    LeftRunning,
}

/// A call whose outcome nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Doubt {
    /// The tool.
    pub tool: String,
    /// The arguments, cut for display.
    pub arguments: String,
    /// The try that is in doubt.
    pub attempt: u32,
    /// Until then it may still be under way.
    pub deadline: Time,
    /// The plan under whose lease it ran.
    pub plan: Option<PlanId>,
    /// The step of that plan that it is.
    pub step: Option<u32>,
}

/// An effect that has started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenCall {
    /// In this turn.
    pub turn: TurnId,
    /// The tool.
    pub tool: String,
    /// The arguments, cut for display.
    pub arguments: String,
    /// The try.
    pub attempt: u32,
    /// The bracket.
    pub bracket: Bracket,
    /// What kind it is.
    pub facts: ToolFacts,
    /// The plan under whose lease it runs.
    pub plan: Option<PlanId>,
    /// The step of that plan that it is.
    pub step: Option<u32>,
}
