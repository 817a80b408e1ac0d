//! Events of plan work.

use std::collections::BTreeMap;

use planwright_domain::{
    digest::Digest,
    id::PlanId,
    identity::Root,
    plan::block::{BlockId, BlockSet},
};
use planwright_format::mapping::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    shared::{Declared, Envelope, Person, ToolFacts, Touched},
    timestamp::Timestamp,
};

published! {
    enum OnFailure = plan::step::OnFailure { Stop, Continue }

    /// The record of an approval.
    struct Approval = plan::approval::Approval {
        plan: PlanId, revision: u32, revision_digest: Digest, envelope: Envelope,
        notes: Vec<String>, policy: u32, by: Person, at: Timestamp,
        profiles: BTreeMap<String, Digest>, on_failure: OnFailure; rules: Option<Digest>,
        root: Option<Root>
    }

    #[serde(tag = "kind", content = "by")]
    enum Author = plan::review::Author {
        Model,
        Person(of: Person),
    }

    struct Comment = plan::review::Comment {
        text: String, number: u32; line: Option<u32>, last_line: Option<u32>, step: Option<u32>,
        reply_to: Option<u32>
    }

    /// What a person says in the discussion of a revision.
    #[serde(tag = "kind")]
    enum Said = plan::review::Said {
        Comment { comment: Comment },
        Edit { number: u32, text: String },
        Resolve { number: u32 },
        Reopen { number: u32 },
    }

    /// What a plan says besides its steps.
    struct Brief = plan::draft::Brief {
        assumptions: Vec<String>, risks: Vec<String>, verification: Vec<String>, files: Vec<String>;
        goal: Option<String>, title: Option<String>
    }

    #[serde(tag = "kind")]
    enum StepWork = plan::step::StepWork {
        Call { tool: String, arguments: String, facts: ToolFacts },
        Task { title: String, instructions: String, profile: String },
    }

    struct PlanStep = plan::step::PlanStep { number: u32, work: StepWork }

    #[serde(tag = "kind")]
    enum DraftChange = plan::event::DraftChange {
        GoalSet { goal: String; title: Option<String> },
        MetadataSet { brief: Brief },
        StepAdded { step: PlanStep },
        StepUpdated { step: PlanStep },
        StepRemoved { step: u32 },
    }

    enum PlanEnd = plan::Ended { Completed, Rejected, Cancelled, Superseded }

    enum PlanStage = plan::PlanStage { Drafting, Ready, Approved, Running, Paused, Failed }

    /// Who says that the plan is done: the record, a model's report, or a person.
    enum Basis = plan::observation::Basis { Observed, Claimed, Declared }

    struct StepTitle = plan::observation::StepTitle { number: u32, title: String }

    /// What was observed of a plan's work, whatever anybody says.
    struct Observation = plan::observation::Observation {
        calls_done: u32, calls_failed: u32, steps_without_calls: Vec<StepTitle>; basis: Option<Basis>
    }

    #[serde(tag = "kind")]
    enum PauseReason = plan::PauseReason {
        Stopped,
        Unreported,
        InDoubt,
        DoubtSettled,
        Blocked { summary: String },
        TurnFailed { message: String },
        ToolChanged { tool: String },
        AsksPermission { tool: String },
        PermissionExpired { tool: String },
        OutOfBudget { micros "costMicros": u64 },
        ProfileChanged { profile: String },
        Imported { approver: String },
        PassphraseReset { approver: String },
    }

    /// What `collect` does with calls that only read.
    enum Reads = plan::Reads { Record, Run }

    /// What became of a comment.
    struct Reply = plan::review::Reply { comment: u32; declined: Option<String>, answer: Option<String> }

    enum Strategy = plan::Strategy { Document, Collect, Build }

    struct Revision = plan::Revision {
        plan: PlanId, number: u32, strategy: Strategy, title: String, markdown: String,
        steps: Vec<PlanStep>; brief: Option<Brief>, envelope "declared": Option<Declared>
    }

    enum Start = command::Start { AtOnce, Hold }

    #[serde(tag = "kind")]
    enum StepEnd = plan::step::StepEnd {
        Done,
        Reported { by "agent": String; evidence: Option<String> },
        Failed { why "reason": String },
        Skipped { by: Person },
        Carried { from: PlanId },
    }

    struct DecisionTimes = policy::Waits {
        ; remind_at: Option<Timestamp>, remind_micros "remindEveryMicros": Option<i64>,
        expires_at: Option<Timestamp>
    }

    /// On whose account a plan ended.
    #[serde(tag = "kind")]
    enum Account = plan::event::Account {
        Person { by: Person; note: Option<String> },
        Model { summary: String; evidence: Option<String> },
        Agent { agent: String, summary: String; evidence: Option<String> },
        Steps { done: u32, skipped: u32 },
        Successor { plan: PlanId },
    }

    #[serde(tag = "type", content = "data")]
    enum PlanEvent = plan::event::PlanEvent {
        /// Plan work began; by nobody, if the plan replaces another.
        PlanStarted {
            plan: PlanId, strategy: Strategy, reads: Reads,
            /// Keys of the work that the plan it replaces had done.
            carried: Vec<Digest>,
            /// The part of it for which no call was observed.
            claimed: Vec<Digest>;
            predecessor: Option<PlanId>, by: Option<Person>
        },
        /// The draft changed.
        DraftChanged { change: DraftChange },
        /// New content: the next revision.
        RevisionAdded {
            revision: Box<Revision>, digest: Digest, author: Author, replies: Vec<Reply>;
            waits "decision": Option<DecisionTimes>
        },
        /// A person was reminded that a revision waits.
        DecisionReminded { digest: Digest, next "nextAt": Timestamp },
        /// Nobody decided on a revision in time.
        DecisionExpired { digest: Digest },
        /// A surface showed a revision in full.
        RevisionShown { digest: Digest, to: Person },
        /// A person saw some blocks of a revision for the first time.
        BlocksSeen { digest: Digest, blocks: BlockIds, by: Person },
        /// A person said something of the current revision, and asked for nothing.
        Discussed { said: Said, by: Person },
        /// A person asked for a newer revision.
        ChangesRequested { digest: Digest, comments: Vec<Comment>, by: Person },
        /// A person approved a revision.
        PlanApproved { approval: Box<Approval>, digest: Digest, start: Start },
        /// An execution starts or goes on.
        ExecutionStarted {
            plan: PlanId,
            /// The number of the execution of this plan, from 1.
            number: u32
        },
        /// The next step is due.
        StepQueued { plan: PlanId, step: u32 },
        /// A step was handed to a foreign agent.
        StepBegun { step: u32, title: String, by "agent": String },
        /// A step ended.
        StepEnded { step: u32, end: StepEnd; summary: Option<String> },
        /// The execution waits for a person.
        ExecutionPaused { reason: PauseReason },
        /// The model reported failure.
        PlanFailed { summary: String },
        /// The plan ended.
        PlanEnded {
            plan: PlanId, ended "end": PlanEnd, account: Account, touched: Vec<Touched>,
            /// How many more things were touched than are listed.
            touched_more: u64,
            observation: Observation
        },
    }
}

/// Blocks of a revision, by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub(crate) struct BlockIds(#[schemars(with = "Vec<String>")] BlockSet);

impl From<BlockIds> for Vec<String> {
    fn from(ids: BlockIds) -> Self {
        ids.0.0.iter().map(BlockId::to_string).collect()
    }
}

impl TryFrom<Vec<String>> for BlockIds {
    type Error = &'static str;

    fn try_from(ids: Vec<String>) -> Result<Self, &'static str> {
        let ids: Option<_> = ids.iter().map(|id| BlockId::parse(id)).collect();
        ids.map(|ids| Self(BlockSet(ids))).ok_or("ids of blocks are 32 hexadecimal digits each")
    }
}

impl Form for BlockIds {
    type Domain = BlockSet;

    fn of(blocks: &BlockSet) -> Self {
        Self(blocks.clone())
    }

    fn domain(self) -> BlockSet {
        self.0
    }
}
