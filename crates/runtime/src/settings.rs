//! What an operator may set.

use std::{collections::BTreeMap, sync::Arc};

use planwright_domain::{actor::PersonId, autonomy::budget::Budget, plan::Reads, quota::Quota};

use crate::secrets::Secrets;

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the model is told about itself.
    pub system_prompt: String,
    /// How long one model call may take.
    pub model_deadline_ms: i64,
    /// How long one tool call may take.
    pub tool_deadline_ms: i64,
    /// How long after its recorded start an effect may still begin.
    pub start_by_ms: i64,
    /// Tokens that every request leaves free for the answer.
    pub answer_tokens: usize,
    /// What `collect` does with calls that only read.
    pub collect_reads: Reads,
    /// How long a call waits for a person's permission before it is denied.
    pub permission_ms: i64,
    /// What a run may use, where nothing else is said.
    pub budget: Budget,
    /// How long after its time a slot of a schedule is tried again.
    pub slot_window_ms: i64,
    /// How long after its time a slot of a schedule may begin, so that many do not begin at once.
    pub jitter_ms_max: i64,
    /// What is remembered; nothing, if not set.
    pub memory: Option<MemorySettings>,
    /// The notebook.
    pub notebook: NotebookSettings,
    /// What is replaced in what tools give.
    pub secrets: Arc<Secrets>,
    /// What owners may use.
    pub limits: Arc<Limits>,
    /// How long sessions are kept.
    pub retention: Retention,
}

/// What owners may use: everyone the same, but for those who are named.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Everyone.
    pub everyone: Quota,
    /// Who has other limits.
    pub owners: BTreeMap<PersonId, Quota>,
}

impl Limits {
    /// What this owner may use.
    #[must_use]
    pub fn of(&self, owner: &PersonId) -> Quota {
        self.owners.get(owner).copied().unwrap_or(self.everyone)
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.everyone.is_unlimited() && self.owners.values().all(Quota::is_unlimited)
    }
}

/// How long sessions are kept in which nothing happens; for good, where nothing is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Those that were put away, in days.
    pub archived_days: Option<u32>,
    /// The others, in days.
    pub idle_days: Option<u32>,
}

/// What an operator may set of the notebook.
#[derive(Debug, Clone, Copy)]
pub struct NotebookSettings {
    /// Whether it is on where nobody said otherwise.
    pub enabled: bool,
    /// One in this many findings is noted, and every error; nothing, if zero.
    pub note_every: u64,
}

/// What an operator may set of what is remembered.
#[derive(Debug, Clone, Copy)]
pub struct MemorySettings {
    /// How many tokens of what is remembered a turn is told at its beginning.
    pub budget_tokens: usize,
}

/// What a run may use, unless the operator or the person says otherwise.
const BUDGET: Budget = Budget {
    micros: Some(8 * 3_600_000_000),
    model_calls: Some(200),
    tool_calls: Some(400),
    tokens: Some(2_000_000),
    cost_micros: Some(1_000_000),
};

impl Default for Settings {
    fn default() -> Self {
        Self {
            system_prompt:
                "You are a careful assistant working for one person. Use the tools you are given; \
                            say plainly what you did and what you could not do."
                    .into(),
            model_deadline_ms: 10 * 60_000,
            tool_deadline_ms: 60_000,
            start_by_ms: 30_000,
            answer_tokens: 4_096,
            collect_reads: Reads::Record,
            permission_ms: 24 * 3_600_000,
            budget: BUDGET,
            slot_window_ms: 3_600_000,
            jitter_ms_max: 0,
            memory: Some(MemorySettings { budget_tokens: 800 }),
            notebook: NotebookSettings { enabled: false, note_every: 2 },
            secrets: Arc::default(),
            limits: Arc::default(),
            retention: Retention::default(),
        }
    }
}
