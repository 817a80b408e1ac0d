//! Why a plan command was refused. The model or the person reads these words.

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;

/// Why a plan command was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanRefusal {
    /// There is no plan to speak of.
    #[error("plan work is not active in this session; send /plan on first")]
    WorkInactive,
    /// There is one already.
    #[error(
        "plan work is already active in this session; end it with /plan done or /plan off first"
    )]
    WorkAlreadyActive,
    /// Deciding needs a surface that identified the person.
    #[error(
        "you may not decide from here: give your passphrase first, and if you did, ask an administrator for the role decide"
    )]
    MayNotDecide,
    /// Nothing waits for a decision.
    #[error("the plan is {status}; there is no revision to decide on")]
    NothingToDecide {
        /// Its status, as people read it.
        status: String,
    },
    /// The person read something else.
    #[error("revision {} was replaced by revision {current_number} ({}); read it, then decide again", seen.short(), current.short())]
    StaleDecision {
        /// What the person read.
        seen: Digest,
        /// What is current.
        current: Digest,
        /// Its number.
        current_number: u32,
    },
    /// The surface never showed it in full.
    #[error(
        "revision {number} was not shown in full here; read all of it first (in a terminal with /plan show, in the dashboard in the plan's panel), then decide"
    )]
    NotShown {
        /// The current revision.
        number: u32,
    },
    /// What the person named is no revision of this plan.
    #[error(
        "{named} is not the current revision of this plan; nothing was approved (/plan status names what waits)"
    )]
    NoSuchRevision {
        /// What was named.
        named: String,
    },
    /// A page shows a part of a text at a time.
    #[error("a page shows a part of a revision at a time; say which blocks were seen")]
    ShownInBlocks,
    /// A block that the revision does not have.
    #[error("revision {number} has no block {block}; read its blocks again")]
    NoSuchBlock {
        /// The id that was given.
        block: String,
        /// The current revision.
        number: u32,
    },
    /// Changes were requested.
    #[error(
        "changes were requested on revision {number}; a newer revision is needed before it can be approved"
    )]
    RevisionWithdrawn {
        /// The withdrawn revision.
        number: u32,
    },
    /// It waited too long.
    #[error(
        "nobody decided on revision {number} in time; a newer revision is needed before it can be approved"
    )]
    RevisionExpired {
        /// The revision.
        number: u32,
    },
    /// The policy names others.
    #[error(
        "{person} at {surface} may not decide here: the operator's policy names other people or places"
    )]
    NotAnApprover {
        /// Who asked.
        person: String,
        /// Where.
        surface: String,
    },
    /// They must give their passphrase again.
    #[error(
        "give your passphrase again: this decision needs one that was given in the last {minutes} minutes"
    )]
    AskAgain {
        /// How long ago it may be.
        minutes: i64,
    },
    /// It was decided before.
    #[error("revision {revision} is already approved, by {by} at {surface}")]
    AlreadyDecided {
        /// The approved revision.
        revision: u32,
        /// Who decided.
        by: String,
        /// Where.
        surface: String,
    },
    /// Nothing to go on with.
    #[error("the plan is {status}; there is nothing to resume")]
    NothingToResume {
        /// Its status, as people read it.
        status: String,
    },
    /// An outcome is unknown.
    #[error("{count} call(s) are in doubt; settle them first, then the execution can go on")]
    DoubtsOpen {
        /// How many.
        count: usize,
    },
    /// Nothing executes.
    #[error("the plan is {status}; there is no execution to stop")]
    NothingToStop {
        /// Its status, as people read it.
        status: String,
    },
    /// No comment says what should change.
    #[error("say what should change: at least one comment is needed")]
    NoComments,
    /// A text or list is longer than allowed.
    #[error("{what} is too long: {size}, and the limit is {limit}")]
    TooLong {
        /// What.
        what: String,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Empty content.
    #[error("plan_markdown is empty; write the whole plan")]
    EmptyPlan,
    /// A text that is needed is empty.
    #[error("{what} is empty; say it in words")]
    EmptyText {
        /// What.
        what: String,
    },
    /// A plan that is not complete.
    #[error("the plan stays a draft; {} missing: {}", gaps.len(), gaps.join("; "))]
    Gaps {
        /// Everything that is missing.
        gaps: Vec<String>,
    },
    /// The goal can be set once.
    #[error("the goal is set: {goal}; go on with its steps, or a person ends it with /plan off")]
    GoalIsSet {
        /// The goal.
        goal: String,
    },
    /// A comment on a line that is not there.
    #[error("there is no line {line}; the revision has {lines}")]
    NoSuchLine {
        /// The line that was named.
        line: u32,
        /// How many there are.
        lines: u32,
    },
    /// Comments that no reply speaks of.
    #[error("every comment needs a reply, addressed or declined with a reason; left: {left}")]
    CommentsUnanswered {
        /// Their numbers.
        left: String,
    },
    /// A reply to no open comment.
    #[error("there is no open comment {comment}")]
    NoSuchComment {
        /// The number that was given.
        comment: u32,
    },
    /// Only its author changes the words of a comment, and only until a request for changes takes it along.
    #[error("comment {comment} {why}; reply to it instead")]
    CommentNotYours {
        /// The number that was given.
        comment: u32,
        /// Why not.
        why: String,
    },
    /// Text can be edited where text is what the plan is.
    #[error(
        "a {strategy} plan is made of steps; ask for changes to it instead of editing its text"
    )]
    NotADocument {
        /// Its strategy.
        strategy: String,
    },
    /// A part of an envelope that cannot be read.
    #[error("{part:?} of the envelope {problem}")]
    BadEnvelope {
        /// Which part.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// An envelope that names a tool that is not there.
    #[error(
        "there is no tool {tool:?} that could be leased; ask for a plan without it, or grant others"
    )]
    ToolUnknown {
        /// The tool.
        tool: String,
    },
    /// An envelope that limits what cannot be counted.
    #[error(
        "the price of the model is not set, so a limit on what is spent cannot be kept; set model.price_in and model.price_out"
    )]
    PriceUnknown,
    /// A call of this plan waits for a person.
    #[error("a call waits for a decision; allow or deny it first")]
    PermissionPending,
    /// There is no such profile.
    #[error("there is no profile {profile:?}; there are {}", known.join(", "))]
    ProfileUnknown {
        /// The name that was given.
        profile: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// There is no such step, or it needs nothing more.
    #[error("there is no such step {step}; there are {open}")]
    NoSuchStep {
        /// The number that was given.
        step: u32,
        /// The numbers there are.
        open: String,
    },
    /// Nothing was recorded or changed since the current revision.
    #[error("nothing is new since revision {number}, which waits for a person")]
    NothingNew {
        /// The current revision.
        number: u32,
    },
    /// A turn reports on its own step.
    #[error("this turn does step {step}, not {named}; report on that one")]
    NotThisStep {
        /// The step that was named.
        named: u32,
        /// The step that the turn does.
        step: u32,
    },
    /// Nobody knows yet what became of a step.
    #[error("step {step} is under way or in doubt; it can be skipped when it has come out")]
    StepUnderWay {
        /// Its number.
        step: u32,
    },
    /// Steps are skipped while nothing runs.
    #[error(
        "the plan is {status}; a step can be skipped while the execution is held, paused or failed"
    )]
    CannotSkip {
        /// Its status, as people read it.
        status: String,
    },
    /// A shown revision that is not the current one.
    #[error("revision {} is not current; only the current revision can be shown for a decision", seen.short())]
    ShownNotCurrent {
        /// What was shown.
        seen: Digest,
    },
    /// A tool of another strategy or status.
    #[error("policy_denied: {tool} is not available while {state}")]
    ToolUnavailable {
        /// The tool.
        tool: String,
        /// What is the case.
        state: String,
    },
    /// The turn began before the approval.
    #[error(
        "policy_denied: the plan was approved while this turn was under way; this turn cannot revise it"
    )]
    TurnOlderThanApproval,
    /// Arguments that do not parse.
    #[error("the arguments of {tool} do not fit: {problem}")]
    BadArguments {
        /// The tool.
        tool: String,
        /// What is wrong.
        problem: String,
    },
}

impl PlanRefusal {
    /// The kind, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WorkInactive => "work_inactive",
            Self::WorkAlreadyActive => "work_already_active",
            Self::MayNotDecide => "may_not_decide",
            Self::NothingToDecide { .. } => "nothing_to_decide",
            Self::StaleDecision { .. } => "stale_decision",
            Self::NotShown { .. } => "not_shown",
            Self::NoSuchRevision { .. } => "no_such_revision",
            Self::RevisionWithdrawn { .. } => "revision_withdrawn",
            Self::RevisionExpired { .. } => "revision_expired",
            Self::NotAnApprover { .. } => "not_an_approver",
            Self::AskAgain { .. } => "ask_again",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::NothingToResume { .. } => "nothing_to_resume",
            Self::DoubtsOpen { .. } => "doubts_open",
            Self::NothingToStop { .. } => "nothing_to_stop",
            Self::NoComments => "no_comments",
            Self::TooLong { .. } => "too_long",
            Self::EmptyPlan => "empty_plan",
            Self::EmptyText { .. } => "empty_text",
            Self::Gaps { .. } => "gaps",
            Self::GoalIsSet { .. } => "goal_is_set",
            Self::NoSuchLine { .. } => "no_such_line",
            Self::CommentsUnanswered { .. } => "comments_unanswered",
            Self::NoSuchComment { .. } => "no_such_comment",
            Self::CommentNotYours { .. } => "comment_not_yours",
            Self::NotADocument { .. } => "not_a_document",
            Self::BadEnvelope { .. } => "bad_envelope",
            Self::ToolUnknown { .. } => "tool_unknown",
            Self::PriceUnknown => "price_unknown",
            Self::PermissionPending => "permission_pending",
            Self::ProfileUnknown { .. } => "profile_unknown",
            Self::NoSuchStep { .. } => "no_such_step",
            Self::NothingNew { .. } => "nothing_new",
            Self::NotThisStep { .. } => "not_this_step",
            Self::StepUnderWay { .. } => "step_under_way",
            Self::CannotSkip { .. } => "cannot_skip",
            Self::ShownNotCurrent { .. } => "shown_not_current",
            Self::ShownInBlocks => "shown_in_blocks",
            Self::NoSuchBlock { .. } => "no_such_block",
            Self::ToolUnavailable { .. } | Self::TurnOlderThanApproval => "policy_denied",
            Self::BadArguments { .. } => "bad_arguments",
        }
    }
}
