//! A whole journal with its notebooks as lines of JSON, and back: how an installation moves to another engine.
//!
//! Every line is chained into a digest, and the last line names it. The same journal gives the same
//! lines on every engine, so that what was brought in can be written out again and compared.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
};

use planwright_domain::{
    actor::{Person, PersonId, Standing},
    command::{HoldReason, Issued, SessionCommand, SystemCommand},
    digest::Digest,
    id::{CommandId, OwnerId, Seq},
    identity::{SessionIdentity, SessionKey},
    next::{next, waiting},
    owner::OwnerEvent,
    session::{Session, is_held, life::Life},
    time::Time,
};
use planwright_format::value::{StoredOwnerEvent, StoredRefusal, StoredSessionEvent};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    commands::dispatch::dispatch,
    ports::{
        audit::Signature,
        journal::{Answer, Append, Archive, JournalError, KeptAnswer, Recorded, Stream},
        notebook::{NotebookError, Notebooks, Put},
    },
};

/// The form of the lines: until 0.1.0, of everything that is stored.
const FORMAT: u32 = planwright_format::DEVELOPMENT_FORM;
/// How many sessions are listed at once.
const PAGE: usize = 256;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Planwright {
        format: u32,
    },
    Person {
        name: PersonId,
        owner: OwnerId,
    },
    Session {
        key: SessionKey,
        events: u64,
        answers: u64,
        outputs: u64,
    },
    Event {
        seq: Seq,
        at: Time,
        event: Box<StoredSessionEvent>,
    },
    Answer {
        at: Time,
        command: CommandId,
        before: Seq,
        version: Seq,
        refusal: Option<Box<StoredRefusal>>,
    },
    Output(String),
    Page {
        key: SessionKey,
        name: String,
        text: String,
    },
    Owner {
        owner: OwnerId,
        at: Time,
        event: Box<StoredOwnerEvent>,
    },
    End(Totals),
    Signed(Signature),
}

/// What is signed of an archive: its digest, as that of an archive.
#[must_use]
pub fn signed_message(totals: &Totals) -> Vec<u8> {
    [b"planwright archive 1\n".as_slice(), &totals.digest.0].concat()
}

/// Writes down who signed an archive, after its end.
pub fn write_signature(
    out: &mut (dyn Write + Send),
    signature: Signature,
) -> Result<(), ArchiveError> {
    let text = serde_json::to_string(&Line::Signed(signature)).map_err(io::Error::from)?;
    Ok(writeln!(out, "{text}")?)
}

/// Who signed an archive, if anybody did. Reads it to its end.
pub fn signature(lines: impl BufRead) -> Result<Option<Signature>, ArchiveError> {
    let last = lines.lines().last().transpose()?;
    let last = last.and_then(|text| serde_json::from_str(&text).ok());
    Ok(match last {
        Some(Line::Signed(signature)) => Some(signature),
        Some(_) | None => None,
    })
}

/// How much there was, and the digest of every line before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// How many sessions.
    pub sessions: u64,
    /// How many events.
    pub events: u64,
    /// The digest of everything.
    pub digest: Digest,
}

/// Why a journal could not be written out or brought in. The operator reads this.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file could not be read or written.
    #[error("the archive cannot be read or written: {0}")]
    File(#[from] io::Error),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store of notebooks failed.
    #[error(transparent)]
    Notebook(#[from] NotebookError),
    /// A line is not what it should be.
    #[error("line {line} of the archive cannot be used: {what}; nothing was brought in")]
    Line {
        /// Which line.
        line: u64,
        /// Why.
        what: String,
    },
    /// The digests differ.
    #[error(
        "the archive is damaged: its lines have the digest {found}, and its end names {named}; nothing was brought in"
    )]
    Damaged {
        /// What the lines have.
        found: Digest,
        /// What the end says.
        named: Digest,
    },
    /// A session is there already.
    #[error(
        "{0} is there already; bring an archive into an installation without sessions: name another directory with --data"
    )]
    Exists(SessionIdentity),
    /// Somebody has something there already.
    #[error(
        "{0:?} has sessions or memories here already; bring an archive into an installation in which nobody has any"
    )]
    OwnerExists(String),
    /// Something in it would go on by itself.
    #[error(
        "{0} cannot be held: something in it would go on by itself; do not use what was brought in"
    )]
    NotHeld(SessionIdentity),
    /// A kept output is not what it was.
    #[error(
        "the output {1} of {0} is damaged or gone; bring the database back from a backup, then write it out again"
    )]
    Output(SessionIdentity, Digest),
    /// What was brought in is not what the archive holds.
    #[error("what was brought in has the digest {found}, and the archive {named}; do not use it")]
    Differs {
        /// What is there now.
        found: Digest,
        /// What should be.
        named: Digest,
    },
}

/// Writes a whole journal out.
pub async fn export(
    journal: &dyn Archive,
    notebooks: &dyn Notebooks,
    out: &mut (dyn Write + Send),
) -> Result<Totals, ArchiveError> {
    export_of(journal, notebooks, None, out).await
}

/// The same, of one owner alone.
pub async fn export_of(
    journal: &dyn Archive,
    notebooks: &dyn Notebooks,
    only: Option<OwnerId>,
    out: &mut (dyn Write + Send),
) -> Result<Totals, ArchiveError> {
    let is_asked = |owner: OwnerId| only.is_none_or(|only| only == owner);
    let mut writer = Writer { out, digest: Digest([0; 32]), sessions: 0, events: 0 };
    writer.line(&Line::Planwright { format: FORMAT })?;
    let mut owners = journal.owners().await?;
    owners.retain(|(_, owner)| is_asked(*owner));
    for (name, owner) in owners.iter().cloned() {
        writer.line(&Line::Person { name, owner })?;
    }
    let mut after: Option<SessionKey> = None;
    loop {
        let page = journal.keys(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        for identity in page.into_iter().filter(|key| is_asked(key.owner)) {
            writer.session(journal, notebooks, identity).await?;
        }
    }
    for (_, owner) in owners {
        for recorded in journal.owner_events(owner).await? {
            let (at, event) = (recorded.at, Box::new((&recorded.event).into()));
            writer.line(&Line::Owner { owner, at, event })?;
        }
    }
    let Writer { digest, sessions, events, .. } = writer;
    let totals = Totals { sessions, events, digest };
    writer.line(&Line::End(totals))?;
    Ok(totals)
}

struct Writer<'a> {
    out: &'a mut (dyn Write + Send),
    digest: Digest,
    sessions: u64,
    events: u64,
}

impl Writer<'_> {
    fn line(&mut self, line: &Line) -> Result<(), ArchiveError> {
        let text = serde_json::to_string(line).map_err(io::Error::from)?;
        self.digest = chained(self.digest, &text);
        Ok(writeln!(self.out, "{text}")?)
    }

    async fn session(
        &mut self,
        journal: &dyn Archive,
        notebooks: &dyn Notebooks,
        identity: SessionKey,
    ) -> Result<(), ArchiveError> {
        let events = journal.events(&identity, Seq(0), usize::MAX).await?;
        let answers = journal.answers(&identity).await?;
        // Those of a deleted session may be gone already: its erasure removes them first.
        let outputs = match journal.session(&identity).await?.life {
            Life::Deleted => Vec::new(),
            Life::Open | Life::Archived => journal.outputs(&identity).await?,
        };
        self.sessions += 1;
        self.events += events.len() as u64;
        let (many, answered) = (events.len() as u64, answers.len() as u64);
        let kept = outputs.len() as u64;
        let named = identity.clone();
        self.line(&Line::Session { key: named, events: many, answers: answered, outputs: kept })?;
        for recorded in events {
            let Recorded { seq, at, event } = recorded;
            self.line(&Line::Event { seq, at, event: Box::new((&event).into()) })?;
        }
        for (command, KeptAnswer { at, answer }) in answers {
            self.line(&match answer {
                Answer::Accepted { before, version } => {
                    Line::Answer { at, command, before, version, refusal: None }
                }
                Answer::Refused(refusal) => Line::Answer {
                    at,
                    command,
                    before: Seq(0),
                    version: Seq(0),
                    refusal: Some(Box::new((&refusal).into())),
                },
            })?;
        }
        for digest in outputs {
            let text = journal.output(&identity, digest).await?;
            let whole = text.filter(|text| Digest::of(text.as_bytes()) == digest);
            let text =
                whole.ok_or_else(|| ArchiveError::Output(identity.identity.clone(), digest))?;
            self.line(&Line::Output(text))?;
        }
        for name in notebooks.list(&identity).await? {
            if let Some(kept) = notebooks.read(&identity, &name).await? {
                let (key, text) = (identity.clone(), kept.text);
                self.line(&Line::Page { key, name, text })?;
            }
        }
        Ok(())
    }
}

/// Looks whether an archive is whole. Reads it to its end.
pub fn verify(lines: impl BufRead) -> Result<Totals, ArchiveError> {
    let mut digest = Digest([0; 32]);
    for (number, line) in (1..).zip(lines.lines()) {
        let text = line?;
        match read(number, &text)? {
            Line::End(totals) if totals.digest == digest => return Ok(totals),
            Line::End(totals) => {
                return Err(ArchiveError::Damaged { found: digest, named: totals.digest });
            }
            Line::Planwright { format } if format != FORMAT => {
                let what = format!("it has the form {format}, and this version reads {FORMAT}");
                return Err(ArchiveError::Line { line: number, what });
            }
            Line::Planwright { .. }
            | Line::Person { .. }
            | Line::Session { .. }
            | Line::Event { .. }
            | Line::Answer { .. }
            | Line::Output(_)
            | Line::Page { .. }
            | Line::Owner { .. } => digest = chained(digest, &text),
            Line::Signed(_) => {
                let what = "a signature stands after the end".into();
                return Err(ArchiveError::Line { line: number, what });
            }
        }
    }
    Err(ArchiveError::Line { line: 0, what: "it has no end; it was cut off".into() })
}

/// Whether somebody here vouches for an archive.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The operator named its digest, which they got from where it was written: it goes on as it was.
    Vouched,
    /// Nobody: what was approved, permitted or scheduled elsewhere waits for a person here.
    Held {
        /// Who brings it in.
        by: PersonId,
        /// When.
        at: Time,
        /// An id that the archive cannot know: it could bring answers to the commands that hold it.
        import: Uuid,
    },
}

/// Whether an archive may take the place of what this journal holds: nobody has anything in it.
pub async fn check_empty(journal: &dyn Archive) -> Result<(), ArchiveError> {
    if let Some(there) = journal.keys(None, 1).await?.first() {
        return Err(ArchiveError::Exists(there.identity.clone()));
    }
    for (name, owner) in journal.owners().await? {
        if !journal.owner(owner).await?.promoted.is_empty() {
            return Err(ArchiveError::OwnerExists(name.0));
        }
    }
    Ok(())
}

/// Removes the pages of the sessions of this journal, which does not take its place.
pub async fn remove_pages(
    journal: &dyn Archive,
    notebooks: &dyn Notebooks,
) -> Result<(), ArchiveError> {
    let mut after: Option<SessionKey> = None;
    loop {
        let page = journal.keys(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for key in page {
            for name in notebooks.list(&key).await? {
                notebooks.remove(&key, &name).await?;
            }
        }
    }
}

/// Brings a verified archive in, then writes it out again to nowhere and compares the digests. Into an empty journal: nothing
/// of it must be served before this has ended well.
pub async fn import(
    journal: &dyn Archive,
    notebooks: &dyn Notebooks,
    lines: impl BufRead,
    verified: Totals,
    trust: Trust,
) -> Result<(), ArchiveError> {
    check_empty(journal).await?;
    store(journal, notebooks, lines).await?;
    let found = export(journal, notebooks, &mut io::sink()).await?.digest;
    if found != verified.digest {
        return Err(ArchiveError::Differs { found, named: verified.digest });
    }
    match trust {
        Trust::Vouched => Ok(()),
        Trust::Held { by, at, import } => hold(journal, &by, at, import).await,
    }
}

/// Stores what the lines hold.
async fn store(
    journal: &dyn Archive,
    notebooks: &dyn Notebooks,
    lines: impl BufRead,
) -> Result<(), ArchiveError> {
    let mut open: Option<(Stream, [u64; 3])> = None;
    for (number, line) in (1..).zip(lines.lines()) {
        match read(number, &line?)? {
            Line::Planwright { .. } => {}
            Line::Person { name, owner } => {
                if !journal.adopt_owner(&name, owner).await? {
                    return Err(ArchiveError::OwnerExists(name.0));
                }
            }
            Line::Session { key, events, answers, outputs } => {
                // Pages of a session that is not there belong to nobody: an import that was killed left them.
                for name in notebooks.list(&key).await? {
                    notebooks.remove(&key, &name).await?;
                }
                let stream = Stream {
                    key,
                    events: Vec::new(),
                    answers: BTreeMap::new(),
                    outputs: BTreeMap::new(),
                };
                open = Some((stream, [events, answers, outputs]));
            }
            Line::Event { seq, at, event } => {
                if let Some((stream, _)) = &mut open {
                    stream.events.push(Recorded { seq, at, event: (*event).into() });
                }
            }
            Line::Answer { at, command, before, version, refusal } => {
                if let Some((stream, _)) = &mut open {
                    let answer = match refusal {
                        None => Answer::Accepted { before, version },
                        Some(refusal) => Answer::Refused((*refusal).into()),
                    };
                    stream.answers.insert(command, KeptAnswer { at, answer });
                }
            }
            Line::Output(text) => {
                if let Some((stream, _)) = &mut open {
                    stream.outputs.insert(Digest::of(text.as_bytes()), text);
                }
            }
            Line::Page { key, name, text } => {
                if notebooks.write(&key, &name, &text, None).await? == Put::Changed {
                    return Err(ArchiveError::Exists(key.identity));
                }
            }
            Line::Owner { owner, at, event } => {
                let event = OwnerEvent::from(*event);
                let as_it_was = move |_: &_| Ok(vec![event.clone()]);
                let stored = journal.append_owner(owner, at, Box::new(as_it_was)).await?;
                stored.map_err(|refusal| ArchiveError::Line {
                    line: number,
                    what: refusal.to_string(),
                })?;
            }
            Line::End(_) | Line::Signed(_) => break,
        }
        if open.as_ref().is_some_and(is_whole)
            && let Some((stream, _)) = open.take()
        {
            restore(journal, stream).await?;
        }
    }
    Ok(())
}

/// Lets nothing go on that was approved, permitted or scheduled elsewhere.
async fn hold(
    journal: &dyn Archive,
    by: &PersonId,
    at: Time,
    import: Uuid,
) -> Result<(), ArchiveError> {
    let mut after: Option<SessionKey> = None;
    loop {
        let page = journal.keys(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for key in page {
            let by = Person::new(key.owner, &by.0, "cli import", Standing::Speaks);
            let command = SystemCommand::Hold { by, why: HoldReason::Imported };
            let id = Uuid::new_v5(&import, key.to_string().as_bytes());
            let issued = Issued::new(id, at, SessionCommand::System(command));
            let answer = dispatch(journal, &key, issued).await?;
            if answer.is_refused() || !is_held(&*journal.session(&key).await?) {
                return Err(ArchiveError::NotHeld(key.identity));
            }
        }
    }
}

/// Whether as much of a session was read as was announced.
fn is_whole((stream, announced): &(Stream, [u64; 3])) -> bool {
    let has = [stream.events.len(), stream.answers.len(), stream.outputs.len()];
    has.map(|many| many as u64) == *announced
}

async fn restore(journal: &dyn Archive, stream: Stream) -> Result<(), ArchiveError> {
    let key = stream.key.clone();
    let recorded = stream.events.iter().map(|recorded| (recorded.at, &recorded.event));
    let after = Session::new(key.clone()).fold_all(recorded).map_err(JournalError::from)?;
    let events: Vec<_> = stream.events.iter().map(|recorded| recorded.event.clone()).collect();
    let append =
        Append { due: next(&after).due(), waiting: waiting(&after), events, after, turns: None };
    if journal.restore(stream, append).await? {
        Ok(())
    } else {
        Err(ArchiveError::Exists(key.identity))
    }
}

fn read(number: u64, text: &str) -> Result<Line, ArchiveError> {
    serde_json::from_str(text)
        .map_err(|error| ArchiveError::Line { line: number, what: error.to_string() })
}

/// The digest of all lines so far and this one.
pub(crate) fn chained(before: Digest, line: &str) -> Digest {
    Digest::of(&[&before.0, line.as_bytes()].concat())
}
