//! The decision log, written out so that anyone can check it without us.
//!
//! One JSON object a line: every entry with the head of its session's chain after it, and at the end how
//! many there were and a digest over all lines. [`verify`] needs nothing but the file.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    ops::ControlFlow,
};

use planwright_domain::{
    digest::Digest,
    id::Seq,
    identity::SessionKey,
    log::{Entry, beginning, head_after},
    session::SessionEvent,
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::{
    event_pages::for_each_event,
    ports::journal::{Archive, JournalError},
    transfer::archive::chained,
};

/// How many events or sessions are read at once.
const PAGE: usize = 512;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Entry(Box<Logged>),
    End(Summary),
}

/// An entry, where it stands, and the head of its chain after it.
#[derive(Debug, Serialize, Deserialize)]
struct Logged {
    session: SessionKey,
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
    /// How many entries.
    pub entries: u64,
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
    /// What the journal holds was changed after it was decided.
    #[error(
        "{session} was changed at rest: at event {seq} its chain of decisions does not come out as it was logged"
    )]
    Changed {
        /// The session.
        session: String,
        /// Where it shows.
        seq: Seq,
    },
}

/// Writes the decision log of every session, or of one.
pub async fn export(
    journal: &dyn Archive,
    only: Option<&SessionKey>,
    out: &mut (dyn Write + Send),
) -> Result<Summary, AuditError> {
    let mut writer = Writer { out, digest: Digest([0; 32]), sessions: 0, entries: 0 };
    if let Some(identity) = only {
        writer.session(journal, identity).await?;
    } else {
        let mut after = None;
        loop {
            let page = journal.keys(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            for identity in &page {
                writer.session(journal, identity).await?;
            }
        }
    }
    let Writer { digest, sessions, entries, .. } = writer;
    let summary = Summary { sessions, entries, digest };
    writer.line(&Line::End(summary))?;
    Ok(summary)
}

struct Writer<'a> {
    out: &'a mut (dyn Write + Send),
    digest: Digest,
    sessions: u64,
    entries: u64,
}

impl Writer<'_> {
    async fn session(
        &mut self,
        journal: &dyn Archive,
        identity: &SessionKey,
    ) -> Result<(), AuditError> {
        self.sessions += 1;
        let mut head = beginning(identity);
        for_each_event(journal, identity, Seq(0), |recorded| {
            let seq = recorded.seq;
            match (&recorded.event, Entry::of(&recorded.event)) {
                (SessionEvent::Logged { head: logged }, _) if *logged != head => {
                    return Err(AuditError::Changed { session: identity.to_string(), seq });
                }
                (_, Some(entry)) => {
                    head = head_after(head, seq, &entry);
                    self.entries += 1;
                    let (session, at) = (identity.clone(), recorded.at);
                    let logged = Logged { session, seq, at, entry, head };
                    self.line(&Line::Entry(Box::new(logged)))?;
                }
                (_, None) => {}
            }
            Ok(ControlFlow::Continue(()))
        })
        .await
    }

    fn line(&mut self, line: &Line) -> Result<(), AuditError> {
        let text = serde_json::to_string(line).map_err(io::Error::other)?;
        self.digest = chained(self.digest, &text);
        writeln!(self.out, "{text}")?;
        Ok(())
    }
}

/// Checks a log that was written out: any entry that was changed, dropped or moved shows.
pub fn verify(log: impl BufRead) -> Result<Summary, AuditError> {
    let mut heads: BTreeMap<String, (Digest, Seq)> = BTreeMap::new();
    let (mut digest, mut entries, mut found) = (Digest([0; 32]), 0, None);
    for (number, text) in (1..).zip(log.lines()) {
        let text = text?;
        let wrong = |what: &str| AuditError::Line { line: number, what: what.into() };
        if found.is_some() {
            return Err(wrong("something stands after the end"));
        }
        let line: Line = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        match line {
            Line::Entry(logged) => {
                let name = logged.session.to_string();
                let (head, last) =
                    heads.remove(&name).unwrap_or_else(|| (beginning(&logged.session), Seq(0)));
                if logged.seq <= last {
                    return Err(wrong("it stands out of order"));
                }
                if head_after(head, logged.seq, &logged.entry) != logged.head {
                    return Err(wrong("its chain does not come out"));
                }
                heads.insert(name, (logged.head, logged.seq));
                entries += 1;
                digest = chained(digest, &text);
            }
            Line::End(summary) => {
                if summary.entries != entries || summary.digest != digest {
                    return Err(wrong(
                        "the lines before it are not those that it was written after",
                    ));
                }
                found = Some(summary);
            }
        }
    }
    found.ok_or_else(|| AuditError::Line { line: entries + 1, what: "the log has no end".into() })
}
