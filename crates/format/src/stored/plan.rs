//! Events of plan work.

use std::collections::BTreeMap;

use planwright_domain::{
    digest::Digest, id::PlanId, identity::Root, plan::block::BlockSet, time::Time,
};

use super::shared::{Declared, Envelope, Person, ToolFacts, Touched};

stored! {
    #[derive(Default)]
    enum OnFailure = plan::step::OnFailure { #[default] Stop, Continue }

    struct Approval = plan::approval::Approval {
        plan: PlanId, revision: u32, revision_digest: Digest, envelope: Envelope,
        notes: Vec<String>, policy: u32, by: Person, at: Time; profiles: BTreeMap<String, Digest>,
        on_failure: OnFailure, rules: Option<Digest>, root: Option<Root>
    }

    #[derive(Default)]
    enum Author = plan::review::Author {
        #[default]
        Model,
        Person(of: Person),
    }

    struct Comment = plan::review::Comment {
        text: String; number: u32, line: Option<u32>, last_line: Option<u32>, step: Option<u32>,
        reply_to: Option<u32>
    }

    enum Said = plan::review::Said {
        Comment { comment: Comment },
        Edit { number: u32, text: String },
        Resolve { number: u32 },
        Reopen { number: u32 },
    }

    struct Brief = plan::draft::Brief {
        ; goal: Option<String>, title: Option<String>, assumptions: Vec<String>,
        risks: Vec<String>, verification: Vec<String>, files: Vec<String>
    }

    enum StepWork = plan::step::StepWork {
        Call { tool: String, arguments: String, facts: ToolFacts },
        Task { title: String, instructions: String, profile: String },
    }

    struct PlanStep = plan::step::PlanStep { number: u32, work: StepWork }

    enum DraftChange = plan::event::DraftChange {
        GoalSet { goal: String; title: Option<String> },
        MetadataSet { brief: Brief },
        StepAdded { step: PlanStep },
        StepUpdated { step: PlanStep },
        StepRemoved { step: u32 },
    }

    enum Ended = plan::Ended { Completed, Rejected, Cancelled, Superseded }

    enum PlanStage = plan::PlanStage { Drafting, Ready, Approved, Running, Paused, Failed }

    enum Basis = plan::observation::Basis { Observed, Claimed, Declared }

    struct StepTitle = plan::observation::StepTitle { number: u32, title: String }

    #[derive(Default)]
    struct Observation = plan::observation::Observation {
        ; calls_done: u32, calls_failed: u32, steps_without_calls: Vec<StepTitle>,
        basis: Option<Basis>
    }

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
        OutOfBudget { micros: u64 },
        ProfileChanged { profile: String },
        Imported { approver: String },
        PassphraseReset { approver: String },
    }

    #[derive(Default)]
    enum Reads = plan::Reads { #[default] Record, Run }

    struct Reply = plan::review::Reply { comment: u32; declined: Option<String>, answer: Option<String> }

    enum Strategy = plan::Strategy { Document, Collect, Build }

    struct Revision = plan::Revision {
        plan: PlanId, number: u32, strategy: Strategy, title: String, markdown: String;
        steps: Vec<PlanStep>, brief: Option<Brief>, envelope: Option<Declared>
    }

    enum Start = command::Start { AtOnce, Hold }

    enum StepEnd = plan::step::StepEnd {
        Done,
        Reported { by: String; evidence: Option<String> },
        Failed { why: String },
        Skipped { by: Person },
        Carried { from: PlanId },
    }

    struct Waits = policy::Waits {
        ; remind_at: Option<Time>, remind_micros: Option<i64>, expires_at: Option<Time>
    }

    enum Account = plan::event::Account {
        Person { by: Person; note: Option<String> },
        Model { summary: String; evidence: Option<String> },
        Agent { agent: String, summary: String; evidence: Option<String> },
        Steps { done: u32, skipped: u32 },
        Successor { plan: PlanId },
    }

    enum PlanEvent = plan::event::PlanEvent {
        PlanStarted {
            plan: PlanId, strategy: Strategy; predecessor: Option<PlanId>, reads: Reads,
            carried: Vec<Digest>, claimed: Vec<Digest>, by: Option<Person>
        },
        DraftChanged { change: DraftChange },
        RevisionAdded {
            revision: Box<Revision>, digest: Digest; author: Author, replies: Vec<Reply>,
            waits: Option<Waits>
        },
        DecisionReminded { digest: Digest, next: Time },
        DecisionExpired { digest: Digest },
        RevisionShown { digest: Digest, to: Person },
        BlocksSeen { digest: Digest, blocks: BlockSet, by: Person },
        Discussed { said: Said, by: Person },
        ChangesRequested { digest: Digest, comments: Vec<Comment>, by: Person },
        PlanApproved { approval: Box<Approval>, digest: Digest, start: Start },
        ExecutionStarted { plan: PlanId, number: u32 },
        StepQueued { plan: PlanId, step: u32 },
        StepBegun { step: u32, title: String, by: String },
        StepEnded { step: u32, end: StepEnd; summary: Option<String> },
        ExecutionPaused { reason: PauseReason },
        PlanFailed { summary: String },
        PlanEnded {
            plan: PlanId, ended: Ended, account: Account; touched: Vec<Touched>, touched_more: u64,
            observation: Observation
        },
    }
}
