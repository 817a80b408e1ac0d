//! Events of turns.

use std::collections::BTreeSet;

use planwright_domain::{
    digest::Digest,
    id::{CallId, PlanId, Seq, TurnId},
};

use super::{
    autonomy::AutoExecutionContext,
    memory::Ranked,
    plan::PlanStage,
    shared::{Aim, Bracket, FileChange, LimitReached, Person, ToolFacts, Touched},
    timestamp::Timestamp,
};

published! {
    /// What a caller of a tool reads where no effect gave the result.
    #[serde(tag = "kind")]
    enum ToolReply = turn::ToolReply {
        Text { text: String },
        Planned,
        Plans,
        Revision { digest: Digest, heading: String },
        Refused { kind "code": String, words "text": String },
        LeftRunning,
    }

    /// Something a provider wants back with the next request.
    struct ProviderItem = turn::Kept { at "position": u32, item: String }

    #[serde(tag = "kind", content = "detail")]
    enum CallKind = turn::CallKind {
        Plan,
        Tool(of: ToolFacts),
        Unusable { problem: String },
    }

    /// A call that the model asked for.
    struct RequestedCall = turn::RequestedCall {
        id: CallId, wire_id "providerId": String, tool: String, arguments: String, kind: CallKind
    }

    /// What was sent to the model.
    struct ModelRequest = turn::Sent {
        model: String, estimate "estimatedTokens": u64, system_bytes: u64, tools_bytes: u64,
        message_bytes: u64, messages "messageCount": u32, digest: Digest,
        spared_bytes "savedBytes": u64;
        /// Results up to this event were shortened.
        shortened "shortenedUpTo": Option<Seq>
    }

    struct Usage = turn::Usage {
        input "inputTokens": u64, output "outputTokens": u64, cached "cachedTokens": u64,
        cache_written "cacheWrittenTokens": u64, cost_micros: u64
    }

    struct Answer = turn::Answer {
        text: String, calls: Vec<RequestedCall>, usage: Usage, kept "providerItems": Vec<ProviderItem>;
        sent "request": Option<Box<ModelRequest>>
    }

    /// Late, if the turn was over or another attempt was under way.
    enum Arrival = turn::event::Arrival { InTime, Late }

    /// Where the turn stands with the models that it asks, in this round.
    struct Retries = turn::asking::Asking {
        /// The number of the fallback; 0 is the model that should answer.
        model "fallback": u32,
        tries: u32, suspended "suspensions": u32,
        /// How often the server called the request larger than its window.
        halved "halvings": u32;
        since: Option<Timestamp>
    }

    enum CallStatus = turn::CallStatus { Done, Failed }

    struct CallResult = turn::CallResult {
        status: CallStatus, output: String, touched: Vec<Touched>, changes: Vec<FileChange>
    }

    enum FailureKind = turn::FailureKind {
        Transient,
        Malformed,
        Permanent,
        TooLarge,
        Limit,
        Empty,
        Withheld,
    }

    struct ModelFailure = turn::ModelFailure {
        kind: FailureKind, message: String; retry_after_micros: Option<i64>
    }

    #[serde(tag = "kind")]
    enum Permit = command::Permit {
        Once,
        UntilPlanEnds,
        Deny,
        Replan { text: String },
    }

    struct Profile = turn::profile::Profile {
        name: String, digest: Digest; tools: Option<BTreeSet<String>>, rounds_max: Option<u32>
    }

    #[serde(tag = "kind")]
    enum TurnEnd = turn::event::TurnEnd {
        Answered,
        Planned { plan: PlanId },
        Failed { failure: ModelFailure },
        Stopped { by: Person },
        Compacted { messages "messageCount": u32 },
        Yielded,
        InDoubt { call: CallId },
    }

    enum Verdict = command::Verdict { Happened, DidNotHappen }

    #[serde(tag = "type", content = "data")]
    enum TurnEvent = turn::event::TurnEvent {
        /// A turn began.
        TurnStarted {
            turn: TurnId,
            /// The number of the event that queued it.
            queued: Seq,
            recalled: Vec<Ranked>;
            profile: Option<Profile>,
            context: Option<AutoExecutionContext>,
            /// How the plan stood, while plan work was active.
            stage "planStage": Option<PlanStage>
        },
        /// The model is about to be asked.
        ModelCallStarted {
            turn: TurnId, round: u32, attempt: u32, bracket: Bracket,
            /// The numbers of the queued messages that entered the turn here.
            entered "messages": Vec<Seq>
        },
        /// The model answered.
        ModelAnswered { turn: TurnId, round: u32, answer: Answer, arrival: Arrival },
        /// The model did not answer.
        ModelCallFailed {
            turn: TurnId, round: u32, attempt: u32, failure: ModelFailure, asking "retries": Retries;
            /// When it is tried again; never, if absent.
            retry_at: Option<Timestamp>,
            sent "request": Option<Box<ModelRequest>>
        },
        /// The conversation up to an event was replaced by a summary in what the model is given.
        ViewCompacted {
            turn: TurnId, round: u32, attempt: u32, upto "upTo": Seq, messages "messageCount": u32,
            summary: String, usage: Usage, by "model": String, arrival: Arrival
        },
        /// A model call is known not to have begun; it is made again.
        TurnPaused { turn: TurnId, reached: LimitReached, until: Timestamp },
        TurnResumed { turn: TurnId },
        LimitWarned { near: LimitReached },
        ModelCallAbandoned { turn: TurnId, round: u32, attempt: u32, why "reason": String },
        /// Nobody works on a model call any more; it is made again.
        ModelCallOrphaned { turn: TurnId, round: u32, attempt: u32 },
        /// A tool is about to be called.
        CallStarted {
            call: CallId, attempt: u32, bracket: Bracket; plan: Option<PlanId>, step: Option<u32>
        },
        /// A call waits for a person's permission.
        PermissionAsked {
            call: CallId, digest: Digest, facts: ToolFacts, aim: Aim, why "reason": String,
            expires "expiresAt": Timestamp;
            plan: Option<PlanId>
        },
        /// A call that waited was decided on; by nobody, if the time ran out.
        PermissionDecided { call: CallId, digest: Digest, permit: Permit; by: Option<Person> },
        /// A tool call ended.
        CallFinished { call: CallId, attempt: u32, result: CallResult },
        /// A call got a result that no effect gave.
        CallAnswered { call: CallId, reply: ToolReply },
        /// A call is known not to have begun; it is made again.
        CallAbandoned { call: CallId, attempt: u32, why "reason": String },
        /// Nobody works on a harmless call any more; it is made again.
        CallOrphaned { call: CallId, attempt: u32 },
        /// Nobody knows whether a call took effect: a person must look.
        CallInDoubt { call: CallId, attempt: u32 },
        /// A person said whether a call took effect.
        DoubtSettled { call: CallId, verdict: Verdict, by: Person },
        /// A turn ended.
        TurnFinished { turn: TurnId, end: TurnEnd },
    }
}
