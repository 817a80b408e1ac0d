//! The notebook: a session's planning files, what their tools mean, and when the pages give way to the plan.
//!
//! Three pages and an archive, apart from the files that people work on. The rules are here; where the
//! pages lie is the business of a port.
//!
//! Must always hold:
//! - `notebook-private`: no tool but the notebook's reaches a page, and a page is reached by the name of
//!   its session and no other.

use serde::{Deserialize, Serialize};

use crate::{
    actor::{Person, PersonId},
    effect::{Bracket, Effect},
    id::CallId,
    limits,
    refusal::Refusal,
    session::{Session, SessionEvent},
    time::Time,
    turn::{CallResult, CallStatus, OpenCall},
};

pub mod completion;
pub mod section;
pub mod template;
pub mod tool;

pub use tool::NotebookTool;

/// A page of the notebook.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Page {
    /// What is to be done, in phases.
    #[default]
    TaskPlan,
    /// What was found out.
    Findings,
    /// What was done, and what went wrong.
    Progress,
}

impl Page {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TaskPlan, Self::Findings, Self::Progress];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskPlan => "task_plan",
            Self::Findings => "findings",
            Self::Progress => "progress",
        }
    }

    /// The page of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.name() == name)
    }

    /// The name of its file.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::TaskPlan => "task_plan.md",
            Self::Findings => "findings.md",
            Self::Progress => "progress.md",
        }
    }
}

/// What a session knows of its notebook. The pages themselves are kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notebook {
    /// Whether a person turned it on or off; as the operator set it, if nobody did.
    pub switched: Option<bool>,
    /// How many calls that read have ended well.
    pub reads: u64,
    /// Calls of a foreign agent that have started and not ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_calls: Vec<OpenAgentCall>,
    /// The removal of the pages of a deleted session, until it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

impl Notebook {
    /// Whether it is on, where the operator set this for those who said nothing.
    #[must_use]
    pub fn is_on(&self, set: bool) -> bool {
        self.switched.unwrap_or(set)
    }

    /// A foreign agent's call that has started and not ended.
    #[must_use]
    pub fn open_agent_call(&self, call: CallId) -> Option<&OpenAgentCall> {
        self.agent_calls.iter().find(|open| open.call == call)
    }
}

/// A call of a notebook tool by a foreign agent that has started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenAgentCall {
    /// The call.
    pub call: CallId,
    /// By whom, and what.
    pub made: AgentNotebookCall,
}

/// A call of a notebook tool by a foreign agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentNotebookCall {
    /// Whose agent it is.
    pub of: PersonId,
    /// Who calls, as it names itself.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The arguments, cut for display.
    pub arguments: String,
}

/// The removal of the pages of a deleted session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Removal {
    /// The number of the last attempt; 0 before the first.
    pub attempt: u32,
    /// How often it has failed.
    pub failures: u32,
    /// It is tried again at this time.
    pub not_before: Option<Time>,
    /// The bracket of the last attempt, while it is under way.
    pub open: Option<Bracket>,
}

impl Removal {
    /// A removal that is due at once, whatever came of those before: what is under way may have missed a page.
    pub(crate) fn due(before: Option<Self>) -> Self {
        Self { attempt: before.map_or(0, |before| before.attempt), ..Self::default() }
    }

    /// When it is tried again after one failure more: after seconds at first, and at last once an hour, for good.
    pub(crate) fn retry_at(self, at: Time) -> Time {
        at.plus_micros((1_000_000_i64 << self.failures.min(12)).min(3_600_000_000))
    }
}

/// What happened to the notebook, where it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotebookEvent {
    /// A person turned it on or off.
    Switched {
        /// Whether it is on.
        on: bool,
        /// Who.
        by: Person,
    },
    /// What came of a call is to be noted on a page.
    NoteDue {
        /// The call.
        call: CallId,
        /// The page.
        page: Page,
    },
    /// A foreign agent's call is about to be made.
    AgentCallStarted {
        /// The call.
        call: CallId,
        /// By whom, and what.
        made: AgentNotebookCall,
    },
    /// The pages of a deleted session are about to be removed.
    RemovalStarted {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The bracket.
        bracket: Bracket,
    },
    /// The pages of a deleted session are removed.
    PagesRemoved {
        /// How many there were.
        pages: u32,
    },
    /// The pages of a deleted session could not be removed.
    RemovalFailed {
        /// Why not.
        why: String,
        /// When it is tried again.
        retry_at: Time,
    },
    /// Nobody works on the removal of the pages any more; it is made again.
    RemovalOrphaned {
        /// The number of the attempt.
        attempt: u32,
    },
}

impl NotebookEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Switched { .. } => "notebook_switched",
            Self::NoteDue { .. } => "note_due",
            Self::AgentCallStarted { .. } => "agent_call_started",
            Self::RemovalStarted { .. } => "removal_started",
            Self::PagesRemoved { .. } => "pages_removed",
            Self::RemovalFailed { .. } => "removal_failed",
            Self::RemovalOrphaned { .. } => "removal_orphaned",
        }
    }
}

/// Applies a fact.
pub(crate) fn evolve(session: &mut Session, event: &NotebookEvent) {
    match event {
        NotebookEvent::Switched { on, .. } => session.notebook.switched = Some(*on),
        NotebookEvent::NoteDue { .. } => {}
        NotebookEvent::AgentCallStarted { call, made } => {
            session.notebook.agent_calls.push(OpenAgentCall { call: *call, made: made.clone() });
        }
        NotebookEvent::RemovalStarted { attempt, bracket } => {
            if let Some(removal) = &mut session.notebook.removal {
                (removal.attempt, removal.open) = (*attempt, Some(*bracket));
            }
        }
        NotebookEvent::PagesRemoved { .. } => session.notebook.removal = None,
        NotebookEvent::RemovalFailed { retry_at, .. } => {
            if let Some(removal) = &mut session.notebook.removal {
                removal.failures = removal.failures.saturating_add(1);
                (removal.not_before, removal.open) = (Some(*retry_at), None);
            }
        }
        NotebookEvent::RemovalOrphaned { .. } => {
            if let Some(removal) = &mut session.notebook.removal {
                removal.open = None;
            }
        }
    }
}

/// Begins an attempt at the removal of the pages, if that one is due.
pub(crate) fn start_removal(
    session: &Session,
    attempt: u32,
    bracket: Bracket,
) -> Result<Vec<SessionEvent>, Refusal> {
    match session.notebook.removal {
        Some(Removal { attempt: last, open: None, .. }) if last + 1 == attempt => {
            let started = NotebookEvent::RemovalStarted { attempt, bracket };
            Ok(vec![SessionEvent::Notebook(started)])
        }
        Some(_) | None => {
            Err(Refusal::MovedOn { what: "this removal of the pages is not due".into() })
        }
    }
}

/// The removal, if this attempt at it is under way.
pub(crate) fn open_removal(session: &Session, attempt: u32) -> Result<Removal, Refusal> {
    let open = session.notebook.removal.filter(|removal| removal.open.is_some());
    open.filter(|removal| removal.attempt == attempt).ok_or_else(|| Refusal::MovedOn {
        what: "this removal of the pages is not under way".into(),
    })
}

/// Counts a call that read something.
pub(crate) fn count(session: &mut Session, call: CallId, result: &CallResult) {
    let reads = session.open.get(&call).is_some_and(|open| open.facts.effect == Effect::Read);
    if reads && result.status == CallStatus::Done {
        session.notebook.reads += 1;
    }
}

/// The page on which what came of this call is noted: one in so many findings, and every error.
/// The notebook's own calls are never noted.
pub(crate) fn noted(
    session: &Session,
    open: &OpenCall,
    result: &CallResult,
    every: u64,
) -> Option<Page> {
    if every == 0 || NotebookTool::named(&open.tool).is_some() {
        return None;
    }
    match (result.status, open.facts.effect) {
        (CallStatus::Failed, _) => Some(Page::Progress),
        (CallStatus::Done, Effect::Read) => {
            (session.notebook.reads + 1).is_multiple_of(every).then_some(Page::Findings)
        }
        (CallStatus::Done, Effect::Internal | Effect::Write | Effect::External) => None,
    }
}

/// A page with one line more, and nothing else changed. A line that stands there already is not added again.
#[must_use]
pub fn with_line(page: &str, line: &str) -> String {
    if page.lines().any(|there| there == line) {
        return page.to_owned();
    }
    let gap = if page.is_empty() || page.ends_with('\n') { "" } else { "\n" };
    format!("{page}{gap}{line}\n")
}

/// The line in which a call is noted: when, what was asked, how it began, and which call it was.
#[must_use]
pub fn line(stamp: &str, open: &OpenCall, call: CallId, result: &CallResult) -> String {
    let first = result.output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let cut = |text: &str, chars: usize| {
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        let mut short: String = text.chars().take(chars).map(plain).collect();
        if text.chars().nth(chars).is_some() {
            short.push('…');
        }
        short.trim().to_owned()
    };
    let (arguments, came) = (cut(&open.arguments, 120), cut(first, limits::NOTE_CHARS_MAX));
    let failed = if result.status == CallStatus::Failed { "failed: " } else { "" };
    let id = call.to_string();
    let short = &id[id.len().saturating_sub(8)..];
    format!("- {stamp} · `{} {arguments}` → {failed}{came} [{short}]", open.tool)
}

/// Why a notebook tool did not do what was asked. The model reads these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotebookRefusal {
    /// It is off.
    #[error("policy_denied: the notebook is off here; a person turns it on with /notebook on")]
    Off,
    /// The arguments do not fit.
    #[error("the arguments of {tool} do not fit: {problem}")]
    BadArguments {
        /// The tool.
        tool: String,
        /// What does not fit.
        problem: String,
    },
    /// There is nothing to read or change.
    #[error("there is no {page} yet; begin with init_plan")]
    NoPage {
        /// The page.
        page: &'static str,
    },
    /// The page would be too long.
    #[error(
        "{page} would have {bytes} bytes, and the limit is {limit}; keep it short, or archive it with init_plan force_new"
    )]
    TooLong {
        /// The page.
        page: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Clearing is meant, or it is not.
    #[error(
        "nothing was cleared: call clear_plan with confirm = true to remove the current pages; the archive stays"
    )]
    NotConfirmed,
    /// The section cannot be replaced.
    #[error(transparent)]
    Section(#[from] section::SectionRefusal),
}

/// A text for a page, if it is not too long.
pub fn fitting(page: Page, text: String) -> Result<String, NotebookRefusal> {
    let (bytes, limit) = (text.len(), limits::PAGE_BYTES_MAX);
    if bytes > limit {
        return Err(NotebookRefusal::TooLong { page: page.name(), bytes, limit });
    }
    Ok(text)
}

/// The minute of a time, in UTC, as archives and notes name it: `20261115-2145`.
#[must_use]
pub fn minute(at: Time) -> String {
    civil(at, "%Y%m%d-%H%M")
}

/// The same, as people read it: `2026-11-15 21:45`.
#[must_use]
pub fn minute_in_words(at: Time) -> String {
    civil(at, "%Y-%m-%d %H:%M")
}

fn civil(at: Time, form: &str) -> String {
    let at = jiff::Timestamp::from_microsecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime(form).to_string()
}

/// The name of an archive made in this minute, where these are taken.
#[must_use]
pub fn archive_name(minute: &str, taken: &[String]) -> String {
    let plain = format!("plan-{minute}");
    let free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(free).unwrap_or(plain)
}

/// The pages as one document, for the archive.
#[must_use]
pub fn archived(pages: &[(Page, String)]) -> String {
    let part = |(page, text): &(Page, String)| {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        format!("<!-- {} -->\n{text}{gap}", page.file())
    };
    pages.iter().map(part).collect::<Vec<_>>().join("\n")
}
