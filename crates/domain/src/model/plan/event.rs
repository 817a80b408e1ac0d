//! What happened to plan work, as it is recorded.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    command::Start,
    digest::Digest,
    effect::Touched,
    id::PlanId,
    plan::{
        Ended, PauseReason, Reads, Revision, Strategy,
        approval::Approval,
        block::BlockSet,
        draft::Brief,
        observation::Observation,
        review::{Author, Comment, Reply, Said},
        step::{PlanStep, StepEnd},
    },
    policy::Waits,
    time::Time,
};

/// What happened to plan work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanEvent {
    /// Plan work began.
    PlanStarted {
        /// On this plan.
        plan: PlanId,
        /// Authored so.
        strategy: Strategy,
        /// In the place of this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        predecessor: Option<PlanId>,
        /// What `collect` does with calls that only read.
        #[serde(default)]
        reads: Reads,
        /// The work that the plan it replaces had done, by key.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        carried: Vec<Digest>,
        /// The part of it that was only claimed: no call was observed for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claimed: Vec<Digest>,
        /// Who; nobody, if it replaces another plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// The draft changed.
    DraftChanged {
        /// How.
        change: DraftChange,
    },
    /// New content: the next revision.
    RevisionAdded {
        /// The contents.
        revision: Box<Revision>,
        /// Their digest.
        digest: Digest,
        /// Who wrote it.
        #[serde(default)]
        author: Author,
        /// What became of the comments on the one before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replies: Vec<Reply>,
        /// What happens while it waits for a decision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<Waits>,
    },
    /// A person was reminded that a revision waits.
    DecisionReminded {
        /// Of this one.
        digest: Digest,
        /// When next.
        next: Time,
    },
    /// Nobody decided on a revision in time.
    DecisionExpired {
        /// On this one.
        digest: Digest,
    },
    /// A surface showed a revision in full.
    RevisionShown {
        /// What was shown.
        digest: Digest,
        /// To whom, where.
        to: Person,
    },
    /// A person saw some blocks of a revision for the first time.
    BlocksSeen {
        /// Of this one.
        digest: Digest,
        /// Which blocks.
        blocks: BlockSet,
        /// Who saw them, where.
        by: Person,
    },
    /// A person said something of the current revision, and asked for nothing.
    Discussed {
        /// What.
        said: Said,
        /// Who, where.
        by: Person,
    },
    /// A person asked for a newer revision.
    ChangesRequested {
        /// Of this one.
        digest: Digest,
        /// What should change.
        comments: Vec<Comment>,
        /// Who asks.
        by: Person,
    },
    /// A person approved a revision.
    PlanApproved {
        /// The record.
        approval: Box<Approval>,
        /// The digest of the record.
        digest: Digest,
        /// Whether it starts at once.
        start: Start,
    },
    /// An execution starts or goes on; its turn is queued.
    ExecutionStarted {
        /// Of this plan.
        plan: PlanId,
        /// The number of the execution of this plan, from 1.
        number: u32,
    },
    /// The next step of a `build` plan is due; its turn is queued.
    StepQueued {
        /// Of this plan.
        plan: PlanId,
        /// The step.
        step: u32,
    },
    /// A step was handed to a foreign agent.
    StepBegun {
        /// Which step.
        step: u32,
        /// In a few words.
        title: String,
        /// To whom, as it names itself.
        by: String,
    },
    /// A step came out.
    StepEnded {
        /// Which step.
        step: u32,
        /// How.
        end: StepEnd,
        /// What the agent that did it says of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The execution waits for a person.
    ExecutionPaused {
        /// Why.
        reason: PauseReason,
    },
    /// The model reported failure.
    PlanFailed {
        /// In its words.
        summary: String,
    },
    /// The plan ended.
    PlanEnded {
        /// Which plan.
        plan: PlanId,
        /// How.
        ended: Ended,
        /// On whose account it ended.
        account: Account,
        /// What its executions did to the world.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        touched: Vec<Touched>,
        /// How many more touched things there were than are listed.
        #[serde(default)]
        touched_more: u64,
        /// What was observed of its work, whatever anybody says.
        #[serde(default)]
        observation: Observation,
    },
}

/// How a draft changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DraftChange {
    /// The goal was set.
    GoalSet {
        /// What the plan is for.
        goal: String,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// What it says besides its steps was set.
    MetadataSet {
        /// All of it, as it stands now.
        brief: Brief,
    },
    /// A step was added at the end, or a call was recorded as one.
    StepAdded {
        /// The step.
        step: PlanStep,
    },
    /// A step was written anew.
    StepUpdated {
        /// The step, whole.
        step: PlanStep,
    },
    /// A step was taken out.
    StepRemoved {
        /// Its number.
        step: u32,
    },
}

/// On whose account a plan ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// A person's.
    Person {
        /// Who, where.
        by: Person,
        /// What they added, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The model's, by `plan_report`.
    Model {
        /// What was done.
        summary: String,
        /// How it can be seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
    },
    /// A foreign agent's, which did it with tools that are not ours.
    Agent {
        /// Who, as it names itself.
        agent: String,
        /// What was done.
        summary: String,
        /// How it can be seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
    },
    /// The record's: every step that was approved came out.
    Steps {
        /// How many were run or done before.
        done: u32,
        /// How many a person skipped.
        skipped: u32,
    },
    /// The model's, by new content that replaced the plan.
    Successor {
        /// The plan that took its place.
        plan: PlanId,
    },
}

impl Account {
    /// In words, for the completion card.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Person { by, note: None } => format!("by the word of {}", by.id.0),
            Self::Person { by, note: Some(note) } => format!("by the word of {}: {note}", by.id.0),
            Self::Model { summary, evidence: None } => format!("the model reports: {summary}"),
            Self::Model { summary, evidence: Some(evidence) } => {
                format!("the model reports: {summary} (see {evidence})")
            }
            Self::Agent { agent, summary, evidence } => {
                let seen = evidence.as_ref().map(|evidence| format!(" (see {evidence})"));
                let seen = seen.unwrap_or_default();
                format!("{agent} reports: {summary}{seen}; Planwright saw none of it done")
            }
            Self::Steps { done, skipped: 0 } => format!("all {done} steps are done"),
            Self::Steps { done, skipped } => format!("{done} steps are done, {skipped} skipped"),
            Self::Successor { .. } => "a newer plan took its place".into(),
        }
    }
}
