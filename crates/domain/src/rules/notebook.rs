//! What the notebook's events change, when a call is noted, and how pages are written.

use crate::model::{
    effect::Effect,
    id::CallId,
    limits,
    notebook::{NotebookEvent, OpenAgentCall, Page, Removal},
    refusal::Refusal,
    session::{Session, SessionEvent},
    time::Time,
    turn::{CallResult, CallStatus, OpenCall},
};

pub mod completion;
pub mod refusal;
pub mod section;
pub mod template;
pub mod tool;

pub use refusal::NotebookRefusal;
use tool::NotebookTool;

/// Applies a fact.
pub(crate) fn evolve(session: &mut Session, event: &NotebookEvent) {
    match event {
        NotebookEvent::Switched { on, .. } => session.notebook.switched = Some(*on),
        NotebookEvent::NoteDue { .. } => {}
        NotebookEvent::AgentCallStarted { call, made } => {
            session.notebook.agent_calls.push(OpenAgentCall { call: *call, made: made.clone() });
        }
        NotebookEvent::RemovalStarted { attempt, bracket } => {
            session.notebook.removal_attempt = *attempt;
            if let Some(removal) = &mut session.notebook.removal {
                removal.open = Some(*bracket);
            }
        }
        NotebookEvent::PagesRemoved { .. } => {
            let again = session.notebook.removal.is_some_and(|removal| removal.again);
            session.notebook.removal = again.then(Removal::default);
        }
        NotebookEvent::RemovalFailed { retry_at, .. }
        | NotebookEvent::RemovalOrphaned { retry_at, .. } => {
            if let Some(removal) = &mut session.notebook.removal {
                removal.failures = removal.failures.saturating_add(1);
                (removal.not_before, removal.open) = (Some(*retry_at), None);
            }
        }
    }
}

/// Ends the attempt at the removal of the pages that is under way, so.
pub(crate) fn end_removal(
    session: &Session,
    attempt: u32,
    how: impl FnOnce(Removal) -> NotebookEvent,
) -> Result<Vec<SessionEvent>, Refusal> {
    let open = session.notebook.removal.filter(|removal| removal.open.is_some());
    match open.filter(|_| session.notebook.removal_attempt == attempt) {
        Some(removal) => Ok(vec![SessionEvent::Notebook(how(removal))]),
        None => Err(Refusal::MovedOn { what: "this removal of the pages is not under way".into() }),
    }
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
