//! Commands: what can be asked of a session, sorted by who may ask it.
//!
//! A model's commands are a type of their own, and that type has no decision in it: there is no
//! value with which a model could approve, reject, resume or settle anything.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

pub use crate::model::given::Given;
use crate::model::{
    actor::{Actor, Person},
    agent_call::AgentCall,
    attempt::{CallAttempt, ModelAttempt},
    autonomy::{TaskEnd, budget::Budget, schedule::Rhythm},
    digest::Digest,
    effect::{Aim, Bracket, Declared, ToolFacts},
    id::{CallId, CommandId, GoalId, PlanId, RunId, ScheduleId, Seq, TaskId, TurnId},
    identity::Root,
    memory::{MemoryCommand, rank::Recalled},
    plan::{
        Reads, Strategy,
        block::BlockId,
        review::{Comment, Said},
        step::OnFailure,
    },
    policy::Policy,
    quota::QuotaUse,
    time::Time,
    turn::{Answer, CallResult, ModelFailure, Sent, ToolReply, Usage, profile::Profile},
};

/// A command as it was issued: its id, its time, and the policy that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued<C> {
    /// Asking twice with the same id has one effect and one answer; none, if nobody asks twice.
    pub id: Option<CommandId>,
    /// When it was issued.
    pub at: Time,
    /// What is asked, and by whom.
    pub command: C,
    /// The policy that holds now.
    pub policy: Arc<Policy>,
    /// The project of a foreign agent: its session begins there, whatever the operator names for those of people.
    pub project: Option<Root>,
    /// How the session's owner stands with what they may use; none, where nothing is limited or nothing is used.
    pub quota: Option<Arc<QuotaUse>>,
}

impl<C> Issued<C> {
    /// A command with its id and its time.
    pub fn new(id: impl Into<CommandId>, at: Time, command: C) -> Self {
        Self { id: Some(id.into()), ..Self::once(at, command) }
    }

    /// A command that nobody asks twice.
    pub fn once(at: Time, command: C) -> Self {
        Self { id: None, at, command, policy: Arc::default(), project: None, quota: None }
    }

    /// The same, under this policy.
    #[must_use]
    pub fn under(self, policy: Arc<Policy>) -> Self {
        Self { policy, ..self }
    }

    /// The same, for an owner who stands so with what they may use.
    #[must_use]
    pub fn with_quota(self, quota: Option<Arc<QuotaUse>>) -> Self {
        Self { quota, ..self }
    }

    /// The same, of an agent that works in this project.
    #[must_use]
    pub fn of_project(self, project: Option<Root>) -> Self {
        Self { project, ..self }
    }
}

/// Everything that can be asked of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionCommand {
    /// Asked by a person.
    Person(Person, PersonCommand),
    /// Asked by the model, inside one turn.
    Model(TurnId, ModelCommand),
    /// Asked by a foreign agent.
    Agent(Box<AgentCall>),
    /// Reported by the runtime.
    System(SystemCommand),
}

impl SessionCommand {
    /// Who asks.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match self {
            Self::Person(person, _) => Actor::Person(person.clone()),
            Self::Model(turn, _) => Actor::Model(*turn),
            Self::Agent(call) => Actor::Agent(call.agent.clone()),
            Self::System(_) => Actor::System,
        }
    }
}

/// What a person can ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonCommand {
    /// Say something to the agent.
    Say {
        /// The words.
        text: String,
    },
    /// `/plan on`: begin plan work.
    StartPlan {
        /// The id the plan will have.
        plan: PlanId,
        /// How it will be written.
        strategy: Strategy,
        /// What `collect` does with calls that only read.
        reads: Reads,
    },
    /// `/plan off` or `/plan done`: end plan work.
    EndPlan(Ending),
    /// `/reset`: end turn and plan work, answer what waits with a notice, start a new view.
    Reset,
    /// `/compact`: sum up what was said before.
    Compact,
    /// `/stop`: end the turn, pause an execution, keep the queue.
    Stop,
    /// `/plan stop`: pause the execution only.
    PausePlan,
    /// Write the document anew: a revision by a person. It needs [`crate::actor::Standing::Decides`].
    EditPlan {
        /// The digest of what was edited; none if nothing was written yet.
        base: Option<Digest>,
        /// The document.
        markdown: String,
        /// The id of a successor, should there be one.
        fresh: PlanId,
        /// Whether words that somebody suggested are taken over: then who does it has not read them by writing them.
        suggested: bool,
    },
    /// A surface has shown this revision to this person in full.
    RecordShown {
        /// The digest of what was shown.
        digest: Digest,
    },
    /// This person has seen these blocks of this revision.
    MarkSeen {
        /// The digest of the revision.
        digest: Digest,
        /// Which blocks; none, to say that nothing is left to be seen.
        blocks: Vec<BlockId>,
    },
    /// Say something of the current revision, and ask for nothing.
    Discuss {
        /// The plan that is meant; the one there is, if none is named.
        plan: Option<PlanId>,
        /// The digest of what was read; needed by a comment on lines.
        base: Option<Digest>,
        /// What.
        said: Said,
    },
    /// A decision. It needs [`crate::actor::Standing::Decides`].
    Decide(Decision),
    /// Goals, tasks, runs and schedules.
    Auto(AutoCommand),
    /// What is remembered here.
    Memory(MemoryCommand),
    /// `/notebook on`, `/notebook off`
    Notebook {
        /// Whether it is on.
        on: bool,
    },
    /// The life of the session itself.
    Life(LifeCommand),
}

/// The life of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifeCommand {
    /// Begin it, in this root.
    Open {
        /// The root.
        root: Root,
    },
    /// Call it something else.
    Rename {
        /// The title.
        title: String,
    },
    /// Put it away; what is said in it brings it back.
    Archive,
    /// Bring it back.
    Restore,
    /// End everything in it, for good.
    Delete,
}

/// Goals, tasks, runs and schedules, as a person asks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoCommand {
    /// `/goal add`
    AddGoal {
        /// The id it will have.
        goal: GoalId,
        /// In words.
        title: String,
    },
    /// `/goal done`, `/goal drop`: its runs and tasks end with it.
    EndGoal {
        /// The goal.
        goal: GoalId,
        /// Whether it was reached.
        reached: bool,
    },
    /// `/task add`
    AddTask {
        /// The id it will have.
        task: TaskId,
        /// The goal it belongs to.
        goal: Option<GoalId>,
        /// In words.
        title: String,
    },
    /// `/task done`, `/task drop`
    EndTask {
        /// The task.
        task: TaskId,
        /// How it came out.
        end: TaskEnd,
    },
    /// `/auto on`
    On {
        /// The id the run will have.
        run: RunId,
        /// What it works on.
        target: Target,
        /// What it may use.
        budget: Budget,
        /// Whether it drafts a plan first and waits for its approval.
        drafts: bool,
    },
    /// `/auto off`: all of the session's runs, or the one named.
    Off {
        /// The run.
        run: Option<RunId>,
    },
    /// `/auto resume`: the run that waits, or the one named.
    Resume {
        /// The run.
        run: Option<RunId>,
    },
    /// `/schedule add`
    AddSchedule(NewSchedule),
    /// `/schedule off`
    EndSchedule {
        /// The schedule.
        schedule: ScheduleId,
    },
}

/// A schedule as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSchedule {
    /// The id it will have.
    pub schedule: ScheduleId,
    /// When.
    pub rhythm: Rhythm,
    /// What is to be done.
    pub title: String,
    /// For this goal.
    pub goal: Option<GoalId>,
    /// What each of its runs may use.
    pub budget: Budget,
    /// Its first slot.
    pub next: Time,
    /// How long after their time its slots may begin.
    pub jitter_micros_max: i64,
}

/// What a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The tasks of this goal, one after the other.
    Goal(GoalId),
    /// This task.
    Task(TaskId),
    /// The oldest open task that stands alone.
    NextTask,
}

/// A slot that is due, as the clock and the calendar have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Of this schedule.
    pub schedule: ScheduleId,
    /// The slots before it that nobody claimed.
    pub missed: Option<Missed>,
    /// The slot.
    pub slot: Time,
    /// The slot after it; none if there is none.
    pub next: Option<Time>,
    /// Until then it may be tried again.
    pub until: Time,
    /// The id its task will have.
    pub task: TaskId,
    /// The id its run will have.
    pub run: RunId,
}

/// Slots that passed while nobody was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// The first.
    pub first: Time,
    /// The last.
    pub last: Time,
    /// How many.
    pub count: u64,
}

/// How a person ends plan work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `/plan off`
    Off,
    /// `/plan done`
    Done,
}

/// What only a person can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Approve a revision.
    Approve(Approving),
    /// Ask for a newer revision.
    RequestChanges {
        /// The digest of what the person read.
        digest: Digest,
        /// What should change.
        comments: Vec<Comment>,
    },
    /// End the plan unexecuted.
    Reject {
        /// The digest of what the person read.
        digest: Digest,
        /// Why, if they say.
        why: Option<String>,
    },
    /// Start a held plan, or go on with a paused or failed one.
    Resume,
    /// Decide on a call that waits for permission.
    Permit {
        /// The digest of the call as it was shown.
        digest: Digest,
        /// The decision.
        permit: Permit,
    },
    /// Leave a step out.
    SkipStep {
        /// Its number.
        step: u32,
    },
    /// Say what became of a call whose outcome is unknown.
    SettleDoubt {
        /// The call in doubt.
        call: CallId,
        /// What the person found.
        verdict: Verdict,
    },
}

/// The approval of a revision, as a person asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approving {
    /// The digest of what the person read.
    pub digest: Digest,
    /// Notes that the execution must receive.
    pub notes: Vec<String>,
    /// Whether the execution starts at once.
    pub start: Start,
    /// What happens to the rest when a recorded call fails.
    pub on_failure: OnFailure,
    /// What is leased instead of what the plan declares.
    pub grant: Option<Declared>,
    /// What there is to be leased.
    pub terms: Terms,
}

impl Approving {
    /// An approval that starts at once and adds nothing.
    #[must_use]
    pub fn of(digest: Digest, terms: Terms) -> Self {
        let (notes, start, on_failure) = (Vec::new(), Start::AtOnce, OnFailure::Stop);
        Self { digest, notes, start, on_failure, grant: None, terms }
    }
}

/// Tools and profiles as they stand when a person approves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// The tools, with the digests of their schemas.
    pub schemas: BTreeMap<String, Digest>,
    /// The agent profiles, with the digests of what they are.
    pub profiles: BTreeMap<String, Digest>,
    /// Whether the price of every model is known.
    pub priced: bool,
}

/// Whether an approved plan starts at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// The execution is the next turn.
    AtOnce,
    /// The plan waits for `/plan resume`.
    Hold,
}

/// What a person says to a call that waits for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permit {
    /// This call, once.
    Once,
    /// This tool, on what the call is aimed at, until the plan ends.
    UntilPlanEnds,
    /// Not this call.
    Deny,
    /// Not this call: the plan is to be revised.
    Replan {
        /// What should change.
        text: String,
    },
}

/// What a person found out about a call in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It took effect.
    Happened,
    /// It did not; it may be made again.
    DidNotHappen,
}

/// What the model can ask: that a plan tool which it called be answered, or a call recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelCommand {
    /// Answer this call of a plan tool, or record this call as a step.
    UsePlanTool {
        /// The call, as the answer recorded it.
        call: CallId,
        /// What the decision needs from outside.
        given: Given,
    },
}

/// Why nothing that was approved so far goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// The session came with an archive that nobody here vouches for. Its schedules are off, too.
    Imported,
    /// Somebody who did not know a passphrase gave a person another one.
    PassphraseReset,
}

/// What the runtime reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemCommand {
    /// Begin the turn for this cause.
    StartTurn {
        /// The id the turn will have.
        turn: TurnId,
        /// The cause, by its place in the queue.
        queued: Seq,
        /// The profile of the step that it works on, as it stands now.
        profile: Option<Profile>,
        /// What is remembered that fits, found in the turn's own scopes.
        recalled: Recalled,
        /// The bracket of its first model call, where that begins in the same commit.
        call: Option<Bracket>,
    },
    /// A slot of a schedule is due.
    ClaimSlot(Claim),
    /// The model is about to be asked.
    StartModelCall {
        /// The attempt.
        attempt: ModelAttempt,
        /// The bracket of the effect.
        bracket: Bracket,
    },
    /// A limit for which a turn waits may have been raised.
    ResumeTurn,
    /// The session is older than sessions are kept: delete it, if it stands where it was looked at and nothing goes on in it.
    DeleteByAge {
        /// Its version when it was looked at.
        version: Seq,
    },
    /// The model answered.
    RecordAnswer {
        /// The attempt.
        attempt: ModelAttempt,
        /// What it said.
        answer: Answer,
        /// How many other models can be asked, should the answer be of no use.
        others: u32,
    },
    /// The model did not answer.
    RecordModelFailure {
        /// The attempt.
        attempt: ModelAttempt,
        /// Why not.
        failure: ModelFailure,
        /// How many other models can be asked.
        others: u32,
        /// What was sent, if it came to that.
        sent: Option<Box<Sent>>,
    },
    /// What was said before was summed up, or there was nothing to sum up.
    RecordCompaction {
        /// The attempt.
        attempt: ModelAttempt,
        /// The summary, if there is one.
        summed: Option<Summed>,
    },
    /// This model call did not begin.
    AbandonModelCall {
        /// The attempt.
        attempt: ModelAttempt,
        /// What kept it from beginning.
        why: String,
    },
    /// Nobody works on this model call any more.
    OrphanModelCall {
        /// The attempt.
        attempt: ModelAttempt,
    },
    /// Tools are about to be called: exactly those calls that are due.
    StartCalls {
        /// The calls.
        calls: Vec<StartingCall>,
        /// The bracket of the effects.
        bracket: Bracket,
        /// Until when a call that is not leased waits for a person.
        ask_until: Time,
    },
    /// Nothing that was approved or permitted so far goes on by itself.
    Hold {
        /// Who says so.
        by: Person,
        /// Why.
        why: HoldReason,
    },
    /// A revision has waited so long that a person is reminded, or that it can no longer be approved.
    RingDecision,
    /// Nobody decided on a call in time.
    ExpireAsk {
        /// The call.
        call: CallId,
    },
    /// A tool call ended.
    RecordResult {
        /// The attempt.
        attempt: CallAttempt,
        /// What it gave.
        result: CallResult,
        /// One in this many findings is noted, and every error; nothing, if zero.
        note_every: u64,
    },
    /// This tool call did not begin.
    AbandonCall {
        /// The attempt.
        attempt: CallAttempt,
        /// What kept it from beginning.
        why: String,
    },
    /// What came of a notebook call of a foreign agent.
    RecordAgentCall {
        /// The call.
        call: CallId,
        /// What the agent reads.
        reply: ToolReply,
    },
    /// The pages of a deleted session are about to be removed.
    StartRemoval {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket of the effect.
        bracket: Bracket,
    },
    /// The pages of a deleted session are removed.
    RecordPagesRemoved {
        /// The number of the attempt.
        attempt: u32,
        /// How many there were.
        pages: u32,
    },
    /// The pages of a deleted session could not be removed.
    RecordRemovalFailure {
        /// The number of the attempt.
        attempt: u32,
        /// Why not.
        why: String,
    },
    /// Nobody works on the removal of the pages any more.
    OrphanRemoval {
        /// The number of the attempt.
        attempt: u32,
    },
    /// Nobody works on this tool call any more.
    OrphanCall {
        /// The attempt.
        attempt: CallAttempt,
    },
}

/// A summary of what was said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summed {
    /// Of everything up to here.
    pub upto: Seq,
    /// How many messages that was.
    pub messages: u32,
    /// The words.
    pub summary: String,
    /// What it cost.
    pub usage: Usage,
    /// Who wrote it.
    pub by: String,
}

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartingCall {
    /// The attempt.
    pub attempt: CallAttempt,
    /// The tool as it stands now; none if it is gone.
    pub tool: Option<ToolFacts>,
    /// What the call is aimed at.
    pub aim: Aim,
}
