//! Plan work: one session's plan, from first draft to last effect.
//!
//! [`decide`] says whether a command may happen; [`evolve`] says what an event means. Both are
//! pure. The folded plan holds heads and digests only; the texts stay in the journal.
//!
//! Must always hold:
//! - `single-active-plan`: the stream is the session; a second plan has nowhere to live.
//! - `approved-as-read`: an approval names the digest of what the person was shown.
//! - `no-zombies`: ending plan work leaves no non-terminal plan.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{Person, PersonId, Surface},
    digest::{Digest, Encoder},
    effect::{Aim, Declared, Envelope, Touched},
    id::{PlanId, Seq},
    identity::SessionKey,
    plan::{
        approval::Approval,
        block::{BlockId, BlockSet},
        draft::{Brief, Draft},
        review::Posted,
        step::{PlanStep, StepEnd, StepHead},
    },
    policy::Waits,
    time::Time,
};

pub mod approval;
pub mod block;
pub mod draft;
pub mod event;
pub mod observation;
pub mod refusal;
pub mod review;
pub mod step;

/// How a plan is authored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The model writes one Markdown document.
    #[default]
    Document,
    /// The model's tool calls are recorded instead of run.
    Collect,
    /// The model builds steps through tools.
    Build,
}

impl Strategy {
    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Collect => "collect",
            Self::Build => "build",
        }
    }
}

/// Whether `collect` records calls that only read, or lets them run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// They become steps, like every other call.
    #[default]
    Record,
    /// They run, so that the model can look before it plans.
    Run,
}

/// A session either has no plan work, or is working on exactly one plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PlanWork {
    /// Nothing is planned.
    #[default]
    Inactive,
    /// One plan.
    Active(Box<Plan>),
}

/// A plan owned by one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Which plan.
    pub id: PlanId,
    /// How it is authored.
    pub strategy: Strategy,
    /// Where it stands.
    pub status: PlanStatus,
    /// The current revision, once there is one.
    pub current: Option<RevisionHead>,
    /// Where in the stream its revisions stand, by number.
    pub revisions: Vec<Seq>,
    /// The plan that this one replaced.
    pub predecessor: Option<PlanId>,
    /// Where in the stream its approval stands: a turn that began earlier cannot revise it.
    pub approved_seq: Option<Seq>,
    /// What each person was last shown in full, by surface.
    pub shown: BTreeMap<PersonId, BTreeMap<Surface, Digest>>,
    /// What its executions did to the world.
    pub touched: Vec<Touched>,
    /// How many more touched things there were than are listed.
    pub touched_more: u64,
    /// How often an execution was started or gone on with.
    pub executions: u32,
    /// What `collect` does with calls that only read.
    pub reads: Reads,
    /// What is being written beside the revisions.
    pub draft: Option<Draft>,
    /// What the current revision of a `build` plan was made of; the next draft begins as a copy.
    pub basis: Option<Draft>,
    /// The highest number that a step of it has had.
    pub numbered: u32,
    /// How its steps came out.
    pub outcomes: BTreeMap<u32, StepEnd>,
    /// The work that the plan it replaced had done, by key.
    pub carried: Vec<Digest>,
    /// The part of it that was only claimed: no call was observed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimed: Vec<Digest>,
    /// What a person allowed besides the approval, until the plan ends.
    pub grants: Vec<Grant>,
    /// How many calls were made under its lease.
    pub calls_made: u32,
    /// How many calls of its executions ended well.
    pub calls_done: u32,
    /// How many failed.
    pub calls_failed: u32,
    /// The steps of which a call has ended.
    pub steps_with_calls: BTreeSet<u32>,
    /// What its executions cost since the last start, in millionths of a dollar.
    pub spent_micros: u64,
    /// How many comments were made on it.
    pub commented: u32,
    /// The comments that no revision has answered yet.
    pub comments_open: BTreeSet<u32>,
    /// The comments that were posted and that no request has taken along yet, by number.
    pub posted: BTreeMap<u32, Posted>,
    /// The threads that a person settled.
    pub resolved: BTreeSet<u32>,
    /// The comments that go on with a thread.
    pub replies: BTreeSet<u32>,
    /// The revisions that each person saw or decided on last.
    pub seen: BTreeMap<PersonId, Seen>,
    /// The blocks that each person has seen, of this revision or an earlier one, until the plan is approved.
    pub blocks_seen: BTreeMap<PersonId, BlockSet>,
    /// What happens while the current revision waits for a decision.
    pub waits: Option<Waits>,
    /// The step that was handed to a foreign agent, which has not reported it.
    pub begun: Option<Begun>,
}

/// A step that was handed to a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Begun {
    /// Its number.
    pub step: u32,
    /// In a few words.
    pub title: String,
    /// To whom, as it names itself.
    pub by: String,
}

/// The revisions that a person saw or decided on last, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seen {
    /// The last one.
    pub last: u32,
    /// The one before it.
    pub before: Option<u32>,
}

/// What a person allowed besides the approval: a tool, on what it was aimed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// The schema it had.
    pub schema: Digest,
    /// What it may be aimed at.
    pub scope: Aim,
}

/// Where a plan stands. Terminal plans are not held: plan work is then inactive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// No revision yet.
    Collecting,
    /// A revision waits for a decision.
    Ready,
    /// Approved, and held.
    Approved(Approval),
    /// Approved, and running or paused.
    Executing(Approval, Progress),
    /// The execution said that it failed; it can be resumed.
    Failed(Approval),
}

/// Whether an execution moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It has a turn, or one is queued for it.
    Running,
    /// It waits for a person.
    Paused(PauseReason),
}

/// Why an execution waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person said stop.
    Stopped,
    /// The turn ended without `plan_report`.
    Unreported,
    /// A call's outcome is unknown.
    InDoubt,
    /// A call in doubt turned out, late, to have ended.
    DoubtSettled,
    /// The model reported that it is blocked.
    Blocked {
        /// In its words.
        summary: String,
    },
    /// The model could not be had, or the turn ran into a limit.
    TurnFailed {
        /// In words.
        message: String,
    },
    /// A leased tool is not the tool that was leased.
    ToolChanged {
        /// Its name.
        tool: String,
    },
    /// A call is outside what was approved, and waits for a person.
    AsksPermission {
        /// The tool.
        tool: String,
    },
    /// Nobody decided on a call in time; it was denied.
    PermissionExpired {
        /// The tool.
        tool: String,
    },
    /// The money that was leased is spent.
    OutOfBudget {
        /// How much was leased, in millionths of a dollar.
        micros: u64,
    },
    /// The profile of a step is not there, or not the one that was approved.
    ProfileChanged {
        /// Its name.
        profile: String,
    },
    /// The plan came with an archive: nobody approved it here.
    Imported {
        /// Who approved it elsewhere.
        approver: String,
    },
    /// Somebody who did not know a passphrase gave a person another one: the approval may have been theirs.
    PassphraseReset {
        /// Who approved it.
        approver: String,
    },
}

impl PauseReason {
    /// Whether what was allowed besides the approval counts no more.
    #[must_use]
    pub const fn withdraws(&self) -> bool {
        matches!(self, Self::Imported { .. } | Self::PassphraseReset { .. })
    }

    /// In words, for the person who is asked.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Stopped => "you stopped it".into(),
            Self::Unreported => {
                "the model ended its turn without reporting done, failed or blocked".into()
            }
            Self::InDoubt => "the outcome of a call is unknown; say what became of it".into(),
            Self::DoubtSettled => {
                "the call in doubt has ended after all; resume when you are ready".into()
            }
            Self::Blocked { summary } => format!("the model says it is blocked: {summary}"),
            Self::TurnFailed { message } => message.clone(),
            Self::ToolChanged { tool } => {
                format!("the tool {tool} is not the one that was approved")
            }
            Self::AsksPermission { tool } => {
                format!("a call of {tool} is outside what was approved; allow or deny it")
            }
            Self::PermissionExpired { tool } => {
                format!("nobody decided on a call of {tool} in time, so it was denied")
            }
            Self::OutOfBudget { micros } => format!(
                "the ${:.2} that were leased are spent; /plan resume leases as much again",
                *micros as f64 / 1e6
            ),
            Self::ProfileChanged { profile } => {
                format!("the profile {profile} is gone, or not the one that was approved")
            }
            Self::Imported { approver } => format!(
                "it came with an archive, and was approved elsewhere by {approver}; read it, then /plan resume lets it run here"
            ),
            Self::PassphraseReset { approver } => format!(
                "it was approved by {approver}, and a passphrase was reset since; read it, then /plan resume lets it run"
            ),
        }
    }
}

/// The stage of a plan: its status, without what it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// It is written.
    Drafting,
    /// It waits for a decision.
    Ready,
    /// It may be executed.
    Approved,
    /// It is executed.
    Running,
    /// Its execution waits.
    Paused,
    /// Its execution failed.
    Failed,
}

impl PlanStage {
    /// The word people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Drafting => "Drafting",
            Self::Ready => "Ready",
            Self::Approved => "Approved",
            Self::Running => "Running",
            Self::Paused => "Paused",
            Self::Failed => "Failed",
        }
    }
}

impl PlanStatus {
    /// Its stage, without what it stands on.
    #[must_use]
    pub fn stage(&self) -> PlanStage {
        match self {
            Self::Collecting => PlanStage::Drafting,
            Self::Ready => PlanStage::Ready,
            Self::Approved(_) => PlanStage::Approved,
            Self::Executing(_, Progress::Running) => PlanStage::Running,
            Self::Executing(_, Progress::Paused(_)) => PlanStage::Paused,
            Self::Failed(_) => PlanStage::Failed,
        }
    }

    /// The word people read.
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.stage().label()
    }

    /// The name programs read.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collecting => "collecting",
            Self::Ready => "ready",
            Self::Approved(_) => "approved",
            Self::Executing(_, Progress::Running) => "executing",
            Self::Executing(_, Progress::Paused(_)) => "executing_paused",
            Self::Failed(_) => "failed",
        }
    }

    /// The planner's word (seed 003): a draft is still written, a proposal waits for a decision.
    #[must_use]
    pub fn planner_word(&self) -> Option<&'static str> {
        match self {
            Self::Collecting => Some("draft"),
            Self::Ready => Some("proposal"),
            Self::Approved(_) | Self::Executing(..) | Self::Failed(_) => None,
        }
    }

    /// The approval under which it stands, if any.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        match self {
            Self::Collecting | Self::Ready => None,
            Self::Approved(approval) | Self::Executing(approval, _) | Self::Failed(approval) => {
                Some(approval)
            }
        }
    }
}

/// A terminal status, as the history of a session keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It did what it said.
    Completed,
    /// A person said no.
    Rejected,
    /// Plan work ended without it.
    Cancelled,
    /// Another plan took its place.
    Superseded,
}

impl Ended {
    /// The name programs read, and the decision log hashes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// The word people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Completed => "Done",
            Self::Rejected => "Rejected",
            Self::Cancelled => "Cancelled",
            Self::Superseded => "Superseded",
        }
    }
}

/// The head of a revision: what a decision needs to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionHead {
    /// Its number in its plan, from 1.
    pub number: u32,
    /// The digest of everything in it.
    pub digest: Digest,
    /// Its title.
    pub title: String,
    /// Whether a person has asked for changes to it.
    pub review: Review,
    /// Its steps; none in `document`.
    pub steps: Vec<StepHead>,
    /// The steps that a document lists, by their first words; none in the other strategies.
    pub written: Vec<String>,
    /// What it asks to be leased, if it says.
    pub envelope: Option<Declared>,
    /// How many lines its Markdown has.
    pub lines: u32,
    /// Its blocks.
    pub blocks: BlockSet,
    /// The tools whose output was in the conversation that it was written in.
    pub outside: BTreeSet<String>,
}

/// Whether a revision can still be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// It waits for a decision.
    Open,
    /// Changes were requested; only a newer revision can be approved.
    Withdrawn,
    /// Nobody decided in time; only a newer revision can be approved.
    Expired,
}

/// The immutable contents of a plan at one point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revision {
    /// Of this plan.
    pub plan: PlanId,
    /// Its number in its plan, from 1.
    pub number: u32,
    /// How it was authored.
    pub strategy: Strategy,
    /// Its title.
    pub title: String,
    /// The document, exactly as written or rendered.
    pub markdown: String,
    /// Its steps; none in `document`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
    /// What a `build` plan says besides its steps. All of it stands in the Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
    /// What it asks to be leased, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Declared>,
}

impl Revision {
    /// The digest over owner and session, plan, number, strategy, title, Markdown, steps and envelope.
    #[must_use]
    pub fn digest(&self, session: &SessionKey) -> Digest {
        let encoder = Encoder::of("revision", 1)
            .field("session", &session.to_string())
            .bytes("plan", self.plan.0.as_bytes())
            .number("number", u64::from(self.number))
            .field("strategy", self.strategy.name())
            .field("title", &self.title)
            .field("markdown", &self.markdown)
            .number("steps", self.steps.len() as u64);
        let encoder = self.steps.iter().fold(encoder, |encoder, step| step.encode(encoder));
        let encoder = match &self.envelope {
            None => encoder.optional("envelope", None),
            Some(declared) => declared.encode(encoder.number("envelope", 1)),
        };
        encoder.digest()
    }
}

impl Plan {
    /// A plan in which nothing is written yet.
    pub(crate) fn new(id: PlanId, strategy: Strategy) -> Self {
        Self {
            id,
            strategy,
            status: PlanStatus::Collecting,
            current: None,
            revisions: Vec::new(),
            predecessor: None,
            approved_seq: None,
            shown: BTreeMap::new(),
            touched: Vec::new(),
            touched_more: 0,
            executions: 0,
            reads: Reads::default(),
            draft: None,
            basis: None,
            numbered: 0,
            outcomes: BTreeMap::new(),
            carried: Vec::new(),
            claimed: Vec::new(),
            grants: Vec::new(),
            calls_made: 0,
            calls_done: 0,
            calls_failed: 0,
            steps_with_calls: BTreeSet::new(),
            spent_micros: 0,
            commented: 0,
            comments_open: BTreeSet::new(),
            posted: BTreeMap::new(),
            resolved: BTreeSet::new(),
            replies: BTreeSet::new(),
            seen: BTreeMap::new(),
            blocks_seen: BTreeMap::new(),
            waits: None,
            begun: None,
        }
    }

    /// Whether a decision on its current revision is awaited.
    #[must_use]
    pub fn awaits_decision(&self) -> bool {
        self.status == PlanStatus::Ready
            && self.current.as_ref().is_some_and(|head| head.review == Review::Open)
    }

    /// The steps of the current revision.
    #[must_use]
    pub fn steps(&self) -> &[StepHead] {
        self.current.as_ref().map_or(&[], |head| &head.steps)
    }

    /// The steps that have not come out, or have failed.
    pub fn unsettled(&self) -> impl Iterator<Item = &StepHead> {
        let settled =
            |step: &&StepHead| self.outcomes.get(&step.number).is_some_and(StepEnd::is_settled);
        self.steps().iter().filter(move |step| !settled(step))
    }

    /// The step of a `build` plan whose turn it is.
    #[must_use]
    pub fn next_step(&self) -> Option<&StepHead> {
        self.unsettled().next()
    }

    /// Where in the stream the revision of this number stands.
    #[must_use]
    pub fn revision_seq(&self, number: u32) -> Option<Seq> {
        self.revisions.get((number as usize).checked_sub(1)?).copied()
    }

    /// The revision against which this person reads the current one: what they last saw or decided on
    /// before it; 0 if there is none.
    #[must_use]
    pub fn read_against(&self, person: &PersonId) -> u32 {
        let current = self.current.as_ref().map_or(0, |head| head.number);
        match self.seen.get(person) {
            Some(seen) if seen.last == current => seen.before.unwrap_or(0),
            Some(seen) => seen.last,
            None => 0,
        }
    }

    /// Whether this person has seen this block, in this revision or an earlier one, on any surface.
    #[must_use]
    pub fn has_seen(&self, person: &PersonId, block: BlockId) -> bool {
        self.blocks_seen.get(person).is_some_and(|seen| seen.0.contains(&block))
    }

    /// What this person was last shown in full at this surface.
    #[must_use]
    pub fn shown_to(&self, person: &Person) -> Option<Digest> {
        self.shown.get(&person.id)?.get(&person.surface).copied()
    }

    /// What an approval of it at this time would lease, given the tools as they stand: what it declares,
    /// or else the file tools under the session's root. Recorded calls need no lease but themselves.
    #[must_use]
    pub fn envelope(&self, schemas: &BTreeMap<String, Digest>, at: Time) -> Envelope {
        let declared = self.current.as_ref().and_then(|head| head.envelope.as_ref());
        match (declared, self.strategy) {
            (Some(declared), _) => declared.lease(schemas, at),
            (None, Strategy::Document | Strategy::Build) => {
                crate::model::effect::document_envelope(schemas)
            }
            (None, Strategy::Collect) => Envelope::default(),
        }
    }
}
