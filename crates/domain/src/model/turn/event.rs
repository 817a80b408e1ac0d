//! What happened in turns, as it is recorded.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    autonomy::AutoExecutionContext,
    command::{Permit, Verdict},
    digest::Digest,
    effect::{Aim, Bracket, ToolFacts},
    id::{CallId, PlanId, Seq, TurnId},
    memory::rank::Ranked,
    plan::PlanStage,
    quota::LimitReached,
    time::Time,
    turn::{
        Answer, CallResult, ModelFailure, Sent, ToolReply, Usage, asking::Asking, profile::Profile,
    },
};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model's last words are the answer.
    Answered,
    /// The turn wrote or reported on a plan.
    Planned {
        /// The plan.
        plan: PlanId,
    },
    /// It failed.
    Failed {
        /// Why.
        failure: ModelFailure,
    },
    /// A person stopped it.
    Stopped {
        /// Who.
        by: Person,
    },
    /// What was said before is summed up.
    Compacted {
        /// How many messages.
        messages: u32,
    },
    /// A run's turn made way for a person; the run goes on after it.
    Yielded,
    /// A call's outcome is unknown.
    InDoubt {
        /// The call.
        call: CallId,
    },
}

/// What happened in turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnEvent {
    /// A turn began; its cause left the queue.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// The cause.
        queued: Seq,
        /// The profile it works under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<Profile>,
        /// Whose work it is, if it is a run's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<AutoExecutionContext>,
        /// What was remembered that fits, and why each was found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        recalled: Vec<Ranked>,
        /// How the plan stood, while plan work was active.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stage: Option<PlanStage>,
    },
    /// The model is about to be asked.
    ModelCallStarted {
        /// In this turn.
        turn: TurnId,
        /// The number of the request within its turn, from 1.
        round: u32,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
        /// Messages that entered the turn here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        entered: Vec<Seq>,
    },
    /// The owner may use no more: the turn waits until then, or until a person says how much more they may use.
    TurnPaused {
        /// The turn.
        turn: TurnId,
        /// Which limit, whose, and until when.
        reached: LimitReached,
        /// When it is looked at again.
        until: Time,
    },
    /// A limit was raised: the turn looks whether it may go on.
    TurnResumed {
        /// The turn.
        turn: TurnId,
    },
    /// Most of what the owner may use is gone.
    LimitWarned {
        /// Which limit, whose, and until when.
        near: LimitReached,
    },
    /// The model answered. Late, if the turn is over or another try is under way.
    ModelAnswered {
        /// In this turn.
        turn: TurnId,
        /// In this round.
        round: u32,
        /// What it said.
        answer: Answer,
        /// Whether it came in time to move the turn.
        #[serde(default, skip_serializing_if = "is_in_time")]
        arrival: Arrival,
    },
    /// The model did not answer.
    ModelCallFailed {
        /// In this turn.
        turn: TurnId,
        /// In this round.
        round: u32,
        /// At this try.
        attempt: u32,
        /// Why not.
        failure: ModelFailure,
        /// When it is tried again; never, if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Time>,
        /// Where the turn then stands with the models that it asks.
        #[serde(default)]
        asking: Asking,
        /// What was sent, if it came to that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<Box<Sent>>,
    },
    /// What was said before is summed up: the model is given this instead. The facts stay.
    ViewCompacted {
        /// In this turn.
        turn: TurnId,
        /// In this round.
        round: u32,
        /// At this try.
        attempt: u32,
        /// Everything up to here.
        upto: Seq,
        /// How many messages that was.
        messages: u32,
        /// The summary.
        summary: String,
        /// What it cost.
        usage: Usage,
        /// Who wrote it.
        by: String,
        /// Whether it came in time to change the view; late, only its cost counts.
        #[serde(default, skip_serializing_if = "is_in_time")]
        arrival: Arrival,
    },
    /// The model call is known not to have begun; it is made again.
    ModelCallAbandoned {
        /// In this turn.
        turn: TurnId,
        /// In this round.
        round: u32,
        /// At this try.
        attempt: u32,
        /// What kept it from beginning.
        why: String,
    },
    /// Nobody works on the model call any more; it is made again.
    ModelCallOrphaned {
        /// In this turn.
        turn: TurnId,
        /// In this round.
        round: u32,
        /// At this try.
        attempt: u32,
    },
    /// A tool is about to be called.
    CallStarted {
        /// The call.
        call: CallId,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
        /// The plan under whose lease it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanId>,
        /// The step of that plan that it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u32>,
    },
    /// A call is not leased: it waits for a person.
    PermissionAsked {
        /// The call.
        call: CallId,
        /// The digest of all that is asked.
        digest: Digest,
        /// The tool as it stands.
        facts: ToolFacts,
        /// What it is aimed at.
        aim: Aim,
        /// Why it asks, in words.
        why: String,
        /// When it is denied by itself.
        expires: Time,
        /// The plan whose execution waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanId>,
    },
    /// A call that waited was decided on.
    PermissionDecided {
        /// The call.
        call: CallId,
        /// The digest of what was asked.
        digest: Digest,
        /// The decision.
        permit: Permit,
        /// Who decided; nobody, if the time ran out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// A tool call ended: the bracket is closed.
    CallFinished {
        /// The call.
        call: CallId,
        /// At this try.
        attempt: u32,
        /// What it gave.
        result: CallResult,
    },
    /// A call got a result that no effect gave.
    CallAnswered {
        /// The call.
        call: CallId,
        /// What the model reads.
        reply: ToolReply,
    },
    /// A call is known not to have begun; it is made again, whatever it does to the world.
    CallAbandoned {
        /// The call.
        call: CallId,
        /// At this try.
        attempt: u32,
        /// What kept it from beginning.
        why: String,
    },
    /// Nobody works on a harmless call any more; it is made again.
    CallOrphaned {
        /// The call.
        call: CallId,
        /// At this try.
        attempt: u32,
    },
    /// Nobody knows what became of this call.
    CallInDoubt {
        /// The call.
        call: CallId,
        /// At this try.
        attempt: u32,
    },
    /// A person said what became of a call.
    DoubtSettled {
        /// The call.
        call: CallId,
        /// What they found.
        verdict: Verdict,
        /// Who.
        by: Person,
    },
    /// The turn ended.
    TurnFinished {
        /// The turn.
        turn: TurnId,
        /// How.
        end: TurnEnd,
    },
}

/// Whether a result came in time to move its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// It moves the turn.
    #[default]
    InTime,
    /// It is recorded, and moves nothing.
    Late,
}

fn is_in_time(arrival: &Arrival) -> bool {
    *arrival == Arrival::InTime
}
