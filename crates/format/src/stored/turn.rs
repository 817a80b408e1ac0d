//! Events of turns.

use std::collections::BTreeSet;

use planwright_domain::{
    digest::Digest,
    id::{CallId, PlanId, Seq, TurnId},
    time::Time,
};

use super::{
    autonomy::AutoExecutionContext,
    memory::Ranked,
    plan::PlanStage,
    shared::{Aim, Bracket, FileChange, LimitReached, Person, ToolFacts, Touched},
};

stored! {
    enum ToolReply = turn::ToolReply {
        Text { text: String },
        Planned,
        Plans,
        Revision { digest: Digest, heading: String },
        Refused { kind: String, words: String },
        LeftRunning,
    }

    struct Kept = turn::Kept { at: u32, item: String }

    enum CallKind = turn::CallKind {
        Plan,
        Tool(of: ToolFacts),
        Unusable { problem: String },
    }

    struct RequestedCall = turn::RequestedCall {
        id: CallId, wire_id: String, tool: String, arguments: String, kind: CallKind
    }

    struct Sent = turn::Sent {
        model: String, estimate: u64, system_bytes: u64, tools_bytes: u64, message_bytes: u64,
        messages: u32, digest: Digest; shortened: Option<Seq>, spared_bytes: u64
    }

    #[derive(Default)]
    struct Usage = turn::Usage {
        input: u64, output: u64; cached: u64, cache_written: u64, cost_micros: u64
    }

    struct Answer = turn::Answer {
        ; text: String, calls: Vec<RequestedCall>, usage: Usage, kept: Vec<Kept>,
        sent: Option<Box<Sent>>
    }

    #[derive(Default)]
    enum Arrival = turn::event::Arrival { #[default] InTime, Late }

    #[derive(Default)]
    struct Asking = turn::asking::Asking {
        ; model: u32, tries: u32, suspended: u32, since: Option<Time>, halved: u32
    }

    enum CallStatus = turn::CallStatus { Done, Failed }

    struct CallResult = turn::CallResult {
        status: CallStatus, output: String; touched: Vec<Touched>, changes: Vec<FileChange>
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

    enum Permit = command::Permit {
        Once,
        UntilPlanEnds,
        Deny,
        Replan { text: String },
    }

    struct Profile = turn::profile::Profile {
        name: String, digest: Digest; tools: Option<BTreeSet<String>>, rounds_max: Option<u32>
    }

    enum TurnEnd = turn::event::TurnEnd {
        Answered,
        Planned { plan: PlanId },
        Failed { failure: ModelFailure },
        Stopped { by: Person },
        Compacted { messages: u32 },
        Yielded,
        InDoubt { call: CallId },
    }

    enum Verdict = command::Verdict { Happened, DidNotHappen }

    enum TurnEvent = turn::event::TurnEvent {
        TurnStarted {
            turn: TurnId, queued: Seq; profile: Option<Profile>,
            context: Option<AutoExecutionContext>, recalled: Vec<Ranked>, stage: Option<PlanStage>
        },
        ModelCallStarted {
            turn: TurnId, round: u32, attempt: u32, bracket: Bracket; entered: Vec<Seq>
        },
        ModelAnswered { turn: TurnId, round: u32, answer: Answer; arrival: Arrival },
        ModelCallFailed {
            turn: TurnId, round: u32, attempt: u32, failure: ModelFailure; retry_at: Option<Time>,
            asking: Asking, sent: Option<Box<Sent>>
        },
        ViewCompacted {
            turn: TurnId, round: u32, attempt: u32, upto: Seq, messages: u32, summary: String,
            usage: Usage, by: String; arrival: Arrival
        },
        TurnPaused { turn: TurnId, reached: LimitReached, until: Time },
        TurnResumed { turn: TurnId },
        LimitWarned { near: LimitReached },
        ModelCallAbandoned { turn: TurnId, round: u32, attempt: u32, why: String },
        ModelCallOrphaned { turn: TurnId, round: u32, attempt: u32 },
        CallStarted {
            call: CallId, attempt: u32, bracket: Bracket; plan: Option<PlanId>, step: Option<u32>
        },
        PermissionAsked {
            call: CallId, digest: Digest, facts: ToolFacts, aim: Aim, why: String, expires: Time;
            plan: Option<PlanId>
        },
        PermissionDecided { call: CallId, digest: Digest, permit: Permit; by: Option<Person> },
        CallFinished { call: CallId, attempt: u32, result: CallResult },
        CallAnswered { call: CallId, reply: ToolReply },
        CallAbandoned { call: CallId, attempt: u32, why: String },
        CallOrphaned { call: CallId, attempt: u32 },
        CallInDoubt { call: CallId, attempt: u32 },
        DoubtSettled { call: CallId, verdict: Verdict, by: Person },
        TurnFinished { turn: TurnId, end: TurnEnd },
    }
}
