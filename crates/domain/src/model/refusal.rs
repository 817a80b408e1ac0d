//! Why a command was refused. A person, the model or the runtime reads these words.

use serde::{Deserialize, Serialize};

use crate::model::{plan::refusal::PlanRefusal, quota::LimitReached};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A rule of plan work.
    #[error(transparent)]
    Plan(#[from] PlanRefusal),
    /// Nothing to say.
    #[error("the message is empty")]
    EmptyMessage,
    /// Too much to say.
    #[error(
        "the message has {bytes} bytes, and the limit is {limit}; send it as a file, or in parts"
    )]
    MessageTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too much waits.
    #[error("{limit} messages already wait in this session; let some be answered, or send /reset")]
    QueueFull {
        /// The limit.
        limit: usize,
    },
    /// Nothing was said that could be summed up.
    #[error("nothing was said here yet that could be summed up")]
    NothingToCompact,
    /// Nothing runs.
    #[error("nothing is running in this session")]
    NothingRunning,
    /// No such doubt.
    #[error("no call {call} is in doubt; /plan status lists what is")]
    NoSuchDoubt {
        /// The call that was named.
        call: String,
    },
    /// Nothing waits for this permission.
    #[error("no call with this digest waits for permission; /plan status shows what does")]
    NoSuchAsk,
    /// The time to decide is over.
    #[error("the time to allow this call is over; it is denied")]
    AskExpired,
    /// There is no plan until whose end it could be allowed.
    #[error("no plan executes here; allow the call once, or deny it")]
    NoPlanToGrantTo,
    /// Nothing says what else like it would be allowed.
    #[error("the tool does not say what the call is aimed at; allow it once, or deny it")]
    NoPattern,
    /// It may still be under way.
    #[error(
        "the call may still be under way until its deadline; say that it did not happen only after that"
    )]
    DoubtTooFresh,
    /// A key that no new session may have.
    #[error("no session {identity} exists, and a new one cannot have this key")]
    LegacyKeyIsNotNew {
        /// The identity that was named.
        identity: String,
    },
    /// The operator does not allow this root.
    #[error(
        "a session cannot work in {root}; the configuration allows {}: choose one of these, start with --workspace {root}, or add it to workspace.roots",
        allowed.join(", ")
    )]
    RootNotAllowed {
        /// The root.
        root: String,
        /// Those that are allowed.
        allowed: Vec<String>,
    },
    /// A session keeps the root with which it began.
    #[error("{identity} works in {root}, and a session keeps its root; begin another one there")]
    RootStands {
        /// Which session.
        identity: String,
        /// Its root.
        root: String,
    },
    /// The session is deleted.
    #[error("{identity} was deleted; start another conversation with /new")]
    SessionDeleted {
        /// The identity that was named.
        identity: String,
    },
    /// A foreign agent works in it, and hears nothing that is said here.
    #[error(
        "a foreign agent works in {identity}: speak to it where it runs, or request changes to its plan here"
    )]
    AgentElsewhere {
        /// The session.
        identity: String,
    },
    /// Its calls do not pass through here.
    #[error(
        "a foreign agent's own calls do not pass through Planwright, so there is nothing to collect; use document or build"
    )]
    NothingToCollect,
    /// No foreign agent works in it.
    #[error("{identity} is not a session of a foreign agent")]
    NotAnAgents {
        /// The session.
        identity: String,
    },
    /// The session is someone else's.
    #[error("{identity} is not yours; start a conversation of your own with /new")]
    NotYours {
        /// The identity that was named.
        identity: String,
    },
    /// Runs go on in it.
    #[error("{count} runs go on here; end them with /auto off first")]
    RunsGoOn {
        /// How many.
        count: usize,
    },
    /// What is named is not there.
    #[error("there is no such {what} here; /auto status lists what there is")]
    NotThere {
        /// What kind of thing.
        what: std::borrow::Cow<'static, str>,
    },
    /// No run is there.
    #[error("no run of this session waits or goes on")]
    NoRuns,
    /// No task can be worked on.
    #[error("there is no open task to work on; add one with /task add <what>")]
    NoOpenTask,
    /// The task is being worked on.
    #[error("a run works on task {number} already")]
    AlreadyRuns {
        /// The task.
        number: u32,
    },
    /// The run does not wait.
    #[error("run {number} goes on; it does not wait for you")]
    RunGoesOn {
        /// The run.
        number: u32,
    },
    /// The run waits for the plan.
    #[error("run {number} waits for the plan; decide on it with /plan approve or /plan resume")]
    RunWaitsForPlan {
        /// The run.
        number: u32,
    },
    /// The run waits for a doubt.
    #[error("run {number} waits for a call in doubt; settle it with /plan settle")]
    RunWaitsForDoubt {
        /// The run.
        number: u32,
    },
    /// There is no room for more.
    #[error("there are {limit} {what} already, and that is the limit; end some first")]
    TooMany {
        /// What kind of thing.
        what: std::borrow::Cow<'static, str>,
        /// The limit.
        limit: usize,
    },
    /// The interval is too short.
    #[error("a schedule runs at most once a minute")]
    TooOften,
    /// The rhythm cannot be read.
    #[error("this schedule cannot be read: {why}")]
    BadRhythm {
        /// Why.
        why: String,
    },
    /// The text is another one.
    #[error("what is remembered has other words now; read it again with /memory")]
    OtherText,
    /// The operator wants decisions handed over before they count, and this one could not be.
    #[error(
        "nothing was decided: the audit log must be handed over first, and was not ({why}); tell whoever runs this installation, then decide again"
    )]
    NotHandedOver {
        /// Why.
        why: String,
    },
    /// A limit of the owner is reached.
    #[error("{}; {}", .0.in_words(), .0.what_to_do())]
    LimitReached(LimitReached),
    /// No turn waits for a limit.
    #[error(
        "nothing waits for a limit here, so there is none to raise; /limits shows what is used"
    )]
    NothingToRaise,
    /// It is known everywhere already.
    #[error("this is known everywhere already")]
    AlreadyGlobal,
    /// The state moved on: the report is about something that is no longer the case.
    #[error("the session has moved on: {what}")]
    MovedOn {
        /// What is not the case.
        what: String,
    },
}

impl Refusal {
    /// Whether asking again with the same command id must give this answer again. What was only
    /// too late for the moment is not kept.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::MovedOn { .. }
                | Self::NotHandedOver { .. }
                | Self::LimitReached(_)
                | Self::Plan(PlanRefusal::AskAgain { .. })
        )
    }

    /// The kind, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(refusal) => refusal.kind(),
            Self::EmptyMessage => "empty_message",
            Self::MessageTooLong { .. } => "message_too_long",
            Self::QueueFull { .. } => "queue_full",
            Self::NothingRunning => "nothing_running",
            Self::NothingToCompact => "nothing_to_compact",
            Self::NoSuchDoubt { .. } => "no_such_doubt",
            Self::NoSuchAsk => "no_such_ask",
            Self::AskExpired => "ask_expired",
            Self::NoPlanToGrantTo => "no_plan_to_grant_to",
            Self::NoPattern => "no_pattern",
            Self::DoubtTooFresh => "doubt_too_fresh",
            Self::LegacyKeyIsNotNew { .. } => "legacy_key_is_not_new",
            Self::RootNotAllowed { .. } => "root_not_allowed",
            Self::RootStands { .. } => "root_stands",
            Self::SessionDeleted { .. } => "session_deleted",
            Self::NotYours { .. } => "not_yours",
            Self::AgentElsewhere { .. } => "agent_elsewhere",
            Self::NothingToCollect => "nothing_to_collect",
            Self::NotAnAgents { .. } => "not_an_agents",
            Self::RunsGoOn { .. } => "runs_go_on",
            Self::NotThere { .. } => "not_there",
            Self::NoRuns => "no_runs",
            Self::NoOpenTask => "no_open_task",
            Self::AlreadyRuns { .. } => "already_runs",
            Self::RunGoesOn { .. } => "run_goes_on",
            Self::RunWaitsForPlan { .. } => "run_waits_for_plan",
            Self::RunWaitsForDoubt { .. } => "run_waits_for_doubt",
            Self::TooMany { .. } => "too_many",
            Self::TooOften => "too_often",
            Self::BadRhythm { .. } => "bad_rhythm",
            Self::OtherText => "other_text",
            Self::NotHandedOver { .. } => "not_handed_over",
            Self::LimitReached(_) => "limit_reached",
            Self::NothingToRaise => "nothing_to_raise",
            Self::AlreadyGlobal => "already_global",
            Self::MovedOn { .. } => "moved_on",
        }
    }
}
