//! Schedules: when work begins by itself, and the ledger of what became of every slot.
//!
//! Which times a rhythm gives is computed outside, where time zones are known; what may be claimed, and
//! what a slot ends as, is decided here.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::Person,
    autonomy::budget::Budget,
    id::{GoalId, ScheduleId},
    limits,
    time::Time,
};

/// A schedule that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    /// Its number, for people.
    pub number: u32,
    /// When.
    pub rhythm: Rhythm,
    /// What is to be done: the title of the task that each slot makes.
    pub title: String,
    /// The goal that those tasks belong to.
    pub goal: Option<GoalId>,
    /// What each of its runs may use.
    pub budget: Budget,
    /// The next slot; none if there are no more.
    pub next: Option<Time>,
    /// How long after its time each slot begins, so that those of many schedules do not all begin at once.
    #[serde(default)]
    pub jitter_micros: i64,
    /// Who set it.
    pub by: Person,
}

impl Schedule {
    /// When its next slot begins. The slot keeps its own time.
    #[must_use]
    pub fn begins(&self) -> Option<Time> {
        self.next.map(|next| next.plus_micros(self.jitter_micros))
    }
}

/// How long after their time the slots of this schedule begin, if that may be as long as this: always the same.
pub(crate) fn jitter(schedule: ScheduleId, micros_max: i64) -> i64 {
    let micros_max = micros_max.clamp(0, limits::JITTER_MICROS_MAX);
    let spread = schedule.0.as_u128() % (u128::from(micros_max.unsigned_abs()) + 1);
    i64::try_from(spread).unwrap_or(micros_max)
}

/// When a schedule gives slots. The time zone is always said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    /// As a cron expression of five fields says.
    Cron {
        /// The expression.
        expression: String,
        /// The time zone, by its IANA name.
        zone: String,
    },
    /// Again and again.
    Every {
        /// After so long.
        micros: i64,
        /// Counted from here.
        from: Time,
    },
    /// Once.
    Once {
        /// When, as a date and a time of day.
        at: String,
        /// The time zone, by its IANA name.
        zone: String,
    },
}

impl Rhythm {
    /// In words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Cron { expression, zone } => format!("{expression} in {zone}"),
            Self::Every { micros, .. } => {
                let minutes = micros / 60_000_000;
                if minutes % 60 == 0 {
                    format!("every {} h", minutes / 60)
                } else {
                    format!("every {minutes} min")
                }
            }
            Self::Once { at, zone } => format!("once, at {at} in {zone}"),
        }
    }
}

/// A slot that was claimed and has not come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slot {
    /// Of this schedule.
    pub schedule: ScheduleId,
    /// When it was due.
    pub at: Time,
    /// Until then it may be tried again.
    pub until: Time,
}

/// What became of a slot that was claimed; one that was not is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SlotEnd {
    /// Its run did what it was for.
    Done,
    /// Its run failed, or was turned off.
    Failed,
    /// The run of an earlier slot was still at it.
    Skipped,
}

impl SlotEnd {
    /// In a word, as people read it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}
