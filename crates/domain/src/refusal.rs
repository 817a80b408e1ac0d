//! Why a command was refused. A person, the model or the runtime reads these words.

use serde::{Deserialize, Serialize};

use crate::plan::refusal::PlanRefusal;

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
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
        !matches!(self, Self::MovedOn { .. })
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
            Self::NoSuchDoubt { .. } => "no_such_doubt",
            Self::NoSuchAsk => "no_such_ask",
            Self::AskExpired => "ask_expired",
            Self::NoPlanToGrantTo => "no_plan_to_grant_to",
            Self::NoPattern => "no_pattern",
            Self::DoubtTooFresh => "doubt_too_fresh",
            Self::LegacyKeyIsNotNew { .. } => "legacy_key_is_not_new",
            Self::MovedOn { .. } => "moved_on",
        }
    }
}
