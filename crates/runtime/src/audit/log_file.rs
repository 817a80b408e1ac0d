//! The audit log and the decisions of every session, written out so that anyone can check them without us.
//!
//! One JSON object a line: every entry of the audit log, then every decision of every session, each with the head of its chain after
//! it, and at the end how many there were and a digest over all lines. [`verify`] needs nothing but the file.

use std::{
    io::{self, BufRead, Write},
    ops::ControlFlow,
};

use planwright_domain::{
    digest::Digest, id::Seq, identity::SessionKey, installation::Installation, log::Entry,
    session::SessionEvent, time::Time,
};
use serde::{Deserialize, Serialize};

use super::check::{Checker, Finding, SessionCheck};
use crate::{
    event_pages::for_each_event,
    ports::journal::{Archive, InstallationRecorded, JournalError},
    transfer::archive::chained,
};

/// How many events or sessions are read at once.
const PAGE: usize = 512;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// An entry of the audit log.
    Audit(Box<Logged>),
    /// A session, whose entries follow.
    Session(SessionKey),
    /// An entry of the last session.
    Entry(Box<Logged>),
    End(Summary),
}

/// An entry, where it stands, and the head of its chain after it.
#[derive(Debug, Serialize, Deserialize)]
struct Logged {
    seq: Seq,
    at: Time,
    entry: Entry,
    head: Digest,
}

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many sessions.
    pub sessions: u64,
    /// How many entries they have.
    pub entries: u64,
    /// How many entries the audit log has.
    pub audit: u64,
    /// Whether all sessions are in it.
    pub is_whole: bool,
    /// The digest of every line before the last.
    pub digest: Digest,
}

/// Why a log cannot be written or trusted.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file.
    #[error("the log cannot be read or written: {0}")]
    File(#[from] io::Error),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A line is not what it should be.
    #[error("line {line} of the log is not what was written: {what}")]
    Line {
        /// Which line.
        line: u64,
        /// Why.
        what: String,
    },
}

/// Where what is looked at goes to.
struct Walk<'a> {
    checker: &'a mut Checker,
    out: Option<&'a mut (dyn Write + Send + 'a)>,
    digest: Digest,
}

/// Looks at everything that a journal holds.
pub async fn check(journal: &dyn Archive, checker: &mut Checker) -> Result<Summary, AuditError> {
    walk(journal, None, checker, None).await
}

/// The same, of one session if it is named, and writes it out.
pub async fn export(
    journal: &dyn Archive,
    only: Option<&SessionKey>,
    checker: &mut Checker,
    out: &mut (dyn Write + Send),
) -> Result<Summary, AuditError> {
    walk(journal, only, checker, Some(out)).await
}

async fn walk<'a>(
    journal: &dyn Archive,
    only: Option<&SessionKey>,
    checker: &'a mut Checker,
    out: Option<&'a mut (dyn Write + Send + 'a)>,
) -> Result<Summary, AuditError> {
    let mut walk = Walk { checker, out, digest: Digest([0; 32]) };
    let kept = journal.installation().await?;
    let state = walk.audit_log(journal, Installation::default(), &kept).await?;
    if state.version < kept.version {
        walk.checker.find(Finding::OtherState { entry: kept.version });
    }
    if let Some(key) = only {
        walk.session(journal, key).await?;
    } else {
        let mut after = None;
        loop {
            let page = journal.keys(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            for key in &page {
                walk.session(journal, key).await?;
            }
        }
        // A server that works meanwhile may have erased one.
        walk.audit_log(journal, state, &kept).await?;
    }
    let Walk { digest, ref checker, .. } = walk;
    let (audit, _) = checker.log_head();
    let (sessions, entries) = (checker.sessions, checker.decisions);
    let summary = Summary { sessions, entries, audit: audit.0, is_whole: only.is_none(), digest };
    walk.line(&Line::End(summary))?;
    Ok(summary)
}

impl Walk<'_> {
    /// Looks at the entries of the audit log after this state; the state after them.
    async fn audit_log(
        &mut self,
        journal: &dyn Archive,
        mut state: Installation,
        kept: &Installation,
    ) -> Result<Installation, AuditError> {
        loop {
            let page = journal.audit_log(state.version, PAGE).await?;
            if page.is_empty() {
                return Ok(state);
            }
            for InstallationRecorded { seq, at, event } in &page {
                state = state.evolve(*at, event).map_err(JournalError::from)?;
                self.audit(*seq, *at, event.entry())?;
                if state.version == kept.version && state != *kept {
                    self.checker.find(Finding::OtherState { entry: kept.version });
                }
            }
        }
    }

    fn audit(&mut self, seq: Seq, at: Time, entry: Entry) -> Result<(), AuditError> {
        self.checker.entry(seq, at, &entry);
        let (_, head) = self.checker.log_head();
        self.line(&Line::Audit(Box::new(Logged { seq, at, entry, head })))
    }

    async fn session(&mut self, journal: &dyn Archive, key: &SessionKey) -> Result<(), AuditError> {
        self.line(&Line::Session(key.clone()))?;
        let Self { checker, out, digest } = self;
        let mut session = checker.session(key);
        for_each_event(journal, key, Seq(0), |recorded| {
            let (seq, at) = (recorded.seq, recorded.at);
            if let SessionEvent::Logged { head } = &recorded.event {
                session.anchor(seq, *head);
            }
            if let Some(entry) = Entry::of(&recorded.event) {
                let head = session.entry(seq, at, &entry);
                let line = Line::Entry(Box::new(Logged { seq, at, entry, head }));
                write_line(out, digest, &line)?;
            }
            Ok::<_, AuditError>(ControlFlow::Continue(()))
        })
        .await?;
        session.end();
        Ok(())
    }

    fn line(&mut self, line: &Line) -> Result<(), AuditError> {
        write_line(&mut self.out, &mut self.digest, line)
    }
}

fn write_line(
    out: &mut Option<&mut (dyn Write + Send + '_)>,
    digest: &mut Digest,
    line: &Line,
) -> Result<(), AuditError> {
    let Some(out) = out else { return Ok(()) };
    let text = serde_json::to_string(line).map_err(io::Error::other)?;
    *digest = chained(*digest, &text);
    writeln!(out, "{text}")?;
    Ok(())
}

/// Checks a log that was written out: any entry that was changed, dropped or moved shows.
pub fn verify(log: impl BufRead, checker: &mut Checker) -> Result<Summary, AuditError> {
    let (mut digest, mut found, mut last) = (Digest([0; 32]), None, 0);
    let mut session: Option<(SessionKey, Vec<Logged>)> = None;
    for (number, text) in (1..).zip(log.lines()) {
        let text = text?;
        last = number;
        let wrong = |what: &str| AuditError::Line { line: number, what: what.into() };
        if found.is_some() {
            return Err(wrong("something stands after the end"));
        }
        let line: Line = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(line, Line::Entry(_)) {
            end_session(checker, session.take()).map_err(|what| wrong(&what))?;
        }
        match line {
            Line::Audit(logged) => {
                let (before, _) = checker.log_head();
                checker.entry(logged.seq, logged.at, &logged.entry);
                if checker.log_head() != (before.following(), logged.head) {
                    return Err(wrong("its chain does not come out"));
                }
            }
            Line::Session(key) => session = Some((key, Vec::new())),
            Line::Entry(logged) => match &mut session {
                Some((_, entries)) => entries.push(*logged),
                None => return Err(wrong("it is of no session")),
            },
            Line::End(summary) => {
                let (audit, _) = checker.log_head();
                let counts = (checker.sessions, checker.decisions, audit.0);
                if (summary.sessions, summary.entries, summary.audit) != counts
                    || summary.digest != digest
                {
                    return Err(wrong(
                        "the lines before it are not those that it was written after",
                    ));
                }
                found = Some(summary);
            }
        }
        digest = chained(digest, &text);
    }
    found.ok_or_else(|| AuditError::Line { line: last + 1, what: "the log has no end".into() })
}

fn end_session(
    checker: &mut Checker,
    session: Option<(SessionKey, Vec<Logged>)>,
) -> Result<(), String> {
    let Some((key, entries)) = session else { return Ok(()) };
    let mut check: SessionCheck<'_> = checker.session(&key);
    let mut last = Seq(0);
    for logged in &entries {
        if logged.seq <= last {
            return Err(format!("event {} of {key} stands out of order", logged.seq));
        }
        last = logged.seq;
        if check.entry(logged.seq, logged.at, &logged.entry) != logged.head {
            return Err(format!("the chain of {key} does not come out at event {last}"));
        }
    }
    check.end();
    Ok(())
}
