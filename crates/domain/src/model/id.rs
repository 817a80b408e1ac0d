//! Ids. Each is a type of its own, so that none can stand in for another.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )*};
}

uuid_id! {
    /// Names one owner: random, made with the installation or the person, and never a name. Nothing of one owner can be
    /// reached under the id of another.
    OwnerId;
    /// Names one command; asking twice with the same id has one effect and one answer.
    CommandId;
    /// Names one plan.
    PlanId;
    /// Names one turn.
    TurnId;
    /// Names one tool call, whatever the provider called it.
    CallId;
    /// Names one life of one process; effects of a life that is over are orphans.
    Incarnation;
    /// Names one goal.
    GoalId;
    /// Names one task, in all sessions together.
    TaskId;
    /// Names one run.
    RunId;
    /// Names one schedule.
    ScheduleId;
    /// Names one thing that is remembered.
    MemoryId;
    /// Names one token, login or place that was given.
    GrantId;
}

/// The position of an event in its session's stream, from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub fn following(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
