//! Writing: one thread, groups of appends, one commit for each group.

use std::{
    collections::{HashMap, HashSet},
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use planwright_domain::{
    actor::PersonId,
    id::{CommandId, OwnerId, Seq},
    identity::SessionKey,
    installation::{AccountRefusal, Installation, InstallationCommand, decide},
    owner::Owner,
    refusal::Refusal,
    session::{Session, erasure},
    time::Time,
};
use planwright_format::body::Packer;
use planwright_runtime::{
    failpoint,
    ports::journal::{
        Answer, Append, BackedOff, Decide, DecideInstallation, DecideOwner, JournalError, Recorded,
        Stream, TakenHeads,
    },
};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{
    erase, installation, owner,
    read::StreamRow,
    search, sqlite,
    usage::{self, Counted},
};
use crate::journal::{outputs::SealedOutput, search::Indexed, warm::Warm};

pub(super) mod append;
mod kept;
mod postponed;

use append::Prepared;

/// How many jobs share one commit at most.
const GROUP_MAX: usize = 64;

type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

/// Something to be written.
pub(super) enum Job {
    Append {
        identity: SessionKey,
        command: Option<CommandId>,
        at: Time,
        decide: Decide,
        prepared: Option<Box<Prepared>>,
        reply: Reply<Answer>,
    },
    BackOff {
        identity: SessionKey,
        now: Time,
        why: String,
        reply: Reply<BackedOff>,
    },
    Unpark {
        identity: SessionKey,
        now: Time,
        reply: Reply<()>,
    },
    Owner(OwnerJob),
    Log(LogJob),
    /// Not part of any transaction.
    Scrub {
        reply: Reply<bool>,
    },
    CountUse {
        at: Time,
        limit: usize,
        reply: Reply<usize>,
    },
    ForgetAnswers {
        before: Time,
        limit: usize,
        reply: Reply<usize>,
    },
    Postpone {
        identity: SessionKey,
        version: Seq,
        until: Time,
        reply: Reply<()>,
    },
    KeepOutput {
        identity: SessionKey,
        output: SealedOutput,
        /// Whether the session has it now.
        reply: Reply<bool>,
    },
    Derived(DerivedJob),
    Restore {
        whole: Box<(Stream, Append, Vec<SealedOutput>)>,
        reply: Reply<bool>,
    },
}

/// Something that is kept beside the events so that they need not all be read again.
pub(super) enum DerivedJob {
    /// Words by which sessions are found.
    Words { all: Vec<Indexed>, reply: Reply<()> },
    /// A conversation as it stood after it was summed up.
    View { identity: SessionKey, upto: Seq, form: u32, body: Vec<u8>, reply: Reply<()> },
    /// A session that had to be folded from far back, so that the next to read it need not.
    Snapshot { session: Arc<Session>, reply: Reply<()> },
}

/// Something to be written of an owner.
pub(super) enum OwnerJob {
    Append { owner: OwnerId, at: Time, decide: DecideOwner, reply: Reply<Result<Owner, Refusal>> },
    Make { name: PersonId, fresh: OwnerId, reply: Reply<OwnerId> },
    Adopt { name: PersonId, owner: OwnerId, reply: Reply<bool> },
}

/// Something to be written into the audit log, alone or with what it is about.
pub(super) enum LogJob {
    Append {
        at: Time,
        decide: DecideInstallation,
        reply: Reply<Result<Installation, AccountRefusal>>,
    },
    TakeHeads {
        at: Time,
        after: i64,
        limit: usize,
        reply: Reply<(TakenHeads, Installation)>,
    },
    Erase {
        key: SessionKey,
        at: Time,
        reply: Reply<Option<Installation>>,
    },
    EraseOwner {
        owner: OwnerId,
        by: PersonId,
        at: Time,
        reply: Reply<Installation>,
    },
}

/// An answer that waits for its commit.
type Pending = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The one writer.
#[derive(Debug)]
pub(super) struct Writer {
    connection: Connection,
    warm: Arc<Mutex<Warm>>,
    streams: HashMap<SessionKey, StreamRow>,
    packer: Packer,
}

/// What one group has changed and not committed yet.
#[derive(Default)]
struct Group {
    sessions: HashMap<SessionKey, Arc<Session>>,
    streams: HashMap<SessionKey, StreamRow>,
    news: HashMap<SessionKey, Vec<Recorded>>,
    erased: HashSet<SessionKey>,
    pending: Vec<Pending>,
    /// Why the transaction is gone, and every job of the group with it.
    broken: Option<String>,
}

/// What one job has changed in a session's stream.
struct Change {
    stream: StreamRow,
    session: Arc<Session>,
    news: Vec<Recorded>,
}

impl Group {
    fn apply(&mut self, Change { stream, session, news }: Change) {
        let identity = session.key();
        self.news.entry(identity.clone()).or_default().extend(news);
        self.streams.insert(identity.clone(), stream);
        self.sessions.insert(identity, session);
    }

    /// What the indexes hold of a stream is not known any more.
    fn forget_indexed(&mut self, session: &SessionKey) {
        if let Some(stream) = self.streams.get_mut(session) {
            stream.indexed = None;
        }
    }

    fn erase(&mut self, key: SessionKey) {
        self.sessions.remove(&key);
        self.streams.remove(&key);
        self.news.remove(&key);
        self.erased.insert(key);
    }
}

impl Writer {
    pub(super) fn new(connection: Connection, warm: Arc<Mutex<Warm>>) -> std::io::Result<Self> {
        Ok(Self { connection, warm, streams: HashMap::new(), packer: Packer::new()? })
    }

    /// Writes until nobody can ask any more.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < GROUP_MAX
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            self.commit(batch);
        }
    }

    pub(super) fn commit(&mut self, batch: Vec<Job>) {
        let (scrubs, batch): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|job| matches!(job, Job::Scrub { .. }));
        if !batch.is_empty() {
            self.commit_group(batch);
        }
        for job in scrubs {
            if let Job::Scrub { reply } = job {
                let _ = reply.send(erase::scrub(&self.connection));
            }
        }
    }

    fn commit_group(&mut self, batch: Vec<Job>) {
        failpoint::hit("journal.before_begin");
        let begun = self.execute_static("BEGIN IMMEDIATE");
        let mut group = Group { broken: begun.err(), ..Group::default() };
        for job in batch {
            self.write(&mut group, job);
        }
        if group.broken.is_none() {
            failpoint::hit("journal.before_commit");
            if failpoint::Mutant::AnswerBeforeCommit.is_on() {
                group.pending.drain(..).for_each(|answer| answer(Ok(())));
                failpoint::slow_disk();
            }
            group.broken = self.execute_static("COMMIT").err();
            failpoint::hit("journal.after_commit");
        }
        let outcome = match group.broken.take() {
            Some(words) => {
                let _ = self.execute_static("ROLLBACK");
                Err(words)
            }
            None => {
                let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
                for session in group.sessions.into_values() {
                    let news = group.news.remove(&session.key()).unwrap_or_default();
                    warm.put(session, news);
                }
                self.streams.extend(group.streams);
                for key in &group.erased {
                    warm.forget(key);
                    self.streams.remove(key);
                }
                Ok(())
            }
        };
        failpoint::hit("journal.before_acknowledge");
        for answer in group.pending {
            answer(outcome.clone());
        }
    }

    pub(super) fn copy_audit_log(&self, from: &Path) -> Result<(), JournalError> {
        let name = from.to_string_lossy();
        self.execute("ATTACH DATABASE ?1 AS source", params![name])?;
        let copied = self.connection.execute_batch(
            "BEGIN;
             INSERT INTO installation_events SELECT * FROM source.installation_events;
             INSERT INTO installation_state SELECT * FROM source.installation_state;
             INSERT INTO erased SELECT * FROM source.erased;
             COMMIT;",
        );
        copied.map_err(sqlite)?;
        self.execute("DETACH DATABASE source", params![])
    }

    /// A statement without parameters, prepared once.
    fn execute_static(&self, sql: &str) -> Result<(), String> {
        let executed =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        executed.map(drop).map_err(|error| error.to_string())
    }

    /// Writes one job. What fails in it is told to its caller alone.
    fn write(&mut self, group: &mut Group, job: Job) {
        match job {
            Job::Append { identity, command, at, decide, prepared, reply } => {
                let written = self.in_savepoint(group, |writer, group| {
                    writer.append(group, &identity, (command, at), &decide, prepared)
                });
                settle(group, reply, written);
            }
            Job::BackOff { identity, now, why, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((writer.back_off(&identity, now, &why)?, None))
                });
                group.forget_indexed(&identity);
                settle(group, reply, written);
            }
            Job::Unpark { identity, now, reply } => {
                let written = self
                    .in_savepoint(group, |writer, _| Ok((writer.unpark(&identity, now)?, None)));
                group.forget_indexed(&identity);
                settle(group, reply, written);
            }
            Job::Owner(job) => self.write_owner(group, job),
            Job::Log(job) => self.write_log(group, job),
            Job::CountUse { at, limit, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    let Self { connection, packer, .. } = writer;
                    Ok((usage::count(connection, packer, at, &Counted::Some(limit))?, None))
                });
                settle(group, reply, written);
            }
            Job::Postpone { identity, version, until, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((writer.postpone(&identity, version, until)?, None))
                });
                group.forget_indexed(&identity);
                settle(group, reply, written);
            }
            Job::ForgetAnswers { before, limit, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((writer.forget_answers(before, limit)?, None))
                });
                settle(group, reply, written);
            }
            // Taken out before the transaction began.
            Job::Scrub { .. } => {}
            Job::KeepOutput { identity, output, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((writer.keep_output(&identity, &output)?, None))
                });
                settle(group, reply, written);
            }
            Job::Derived(job) => self.write_derived(group, job),
            Job::Restore { whole, reply } => {
                let (stream, append, outputs) = *whole;
                let written = self.in_savepoint(group, |writer, group| {
                    writer.restore(group, stream, append, &outputs)
                });
                settle(group, reply, written);
            }
        }
    }

    fn write_derived(&mut self, group: &mut Group, job: DerivedJob) {
        match job {
            DerivedJob::Words { all, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((search::add(&writer.connection, &all)?, None))
                });
                settle(group, reply, written);
            }
            DerivedJob::View { identity, upto, form, body, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((writer.keep_view(&identity, upto, form, &body)?, None))
                });
                settle(group, reply, written);
            }
            DerivedJob::Snapshot { session, reply } => {
                let written = self
                    .in_savepoint(group, |writer, _| Ok((writer.keep_snapshot(&session)?, None)));
                settle(group, reply, written);
            }
        }
    }

    fn write_owner(&mut self, group: &mut Group, job: OwnerJob) {
        match job {
            OwnerJob::Append { owner: id, at, decide, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    let Self { connection, packer, .. } = writer;
                    Ok((owner::append(connection, packer, id, at, &decide)?, None))
                });
                settle(group, reply, written);
            }
            OwnerJob::Make { name, fresh, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((owner::made(&writer.connection, &name, fresh)?, None))
                });
                settle(group, reply, written);
            }
            OwnerJob::Adopt { name, owner: id, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    Ok((owner::adopt(&writer.connection, &name, id)?, None))
                });
                settle(group, reply, written);
            }
        }
    }

    fn write_log(&mut self, group: &mut Group, job: LogJob) {
        match job {
            LogJob::Append { at, decide, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    let Self { connection, packer, .. } = writer;
                    Ok((installation::append(connection, packer, at, &decide)?, None))
                });
                settle(group, reply, written);
            }
            LogJob::TakeHeads { at, after, limit, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    let Self { connection, packer, .. } = writer;
                    Ok((installation::take_heads(connection, packer, at, after, limit)?, None))
                });
                settle(group, reply, written);
            }
            LogJob::Erase { key, at, reply } => {
                let written = self.in_savepoint(group, |writer, group| {
                    Ok((writer.erase(group, &key, at)?, None))
                });
                if matches!(&written, Ok(Some(_))) {
                    group.erase(key);
                }
                settle(group, reply, written);
            }
            LogJob::EraseOwner { owner, by, at, reply } => {
                let written = self.in_savepoint(group, |writer, _| {
                    erase::owner_rows(&writer.connection, owner)?;
                    let command = InstallationCommand::EraseOwner { owner, by };
                    Ok((writer.record(command, at)?, None))
                });
                settle(group, reply, written);
            }
        }
    }

    /// Does one job so that it is written whole or not at all, whatever fails or panics in it. Only where SQLite
    /// itself gave the transaction up (no space, I/O error) does the whole group fail.
    fn in_savepoint<T>(
        &mut self,
        group: &mut Group,
        job: impl FnOnce(&mut Self, &Group) -> Result<(T, Option<Change>), JournalError>,
    ) -> Result<T, JournalError> {
        if let Some(words) = &group.broken {
            return Err(failed(words.clone()));
        }
        if let Err(words) = self.execute_static("SAVEPOINT job") {
            return Err(failed(group.broken.insert(words).clone()));
        }
        let done = panic::catch_unwind(AssertUnwindSafe(|| job(self, group)));
        let done = done.unwrap_or_else(|_| {
            Err(failed("a decision panicked; nothing of it was stored".to_owned()))
        });
        match done {
            Ok((answer, change)) => {
                if let Err(words) = self.execute_static("RELEASE job") {
                    return Err(failed(group.broken.insert(words).clone()));
                }
                if let Some(change) = change {
                    group.apply(change);
                }
                Ok(answer)
            }
            Err(error) => {
                let undone = if self.connection.is_autocommit() {
                    Err(error.to_string())
                } else {
                    self.execute_static("ROLLBACK TO job")
                        .and_then(|()| self.execute_static("RELEASE job"))
                };
                group.broken = undone.err();
                Err(error)
            }
        }
    }

    /// Erases a session if that is due; the installation then.
    fn erase(
        &mut self,
        group: &Group,
        key: &SessionKey,
        at: Time,
    ) -> Result<Option<Installation>, JournalError> {
        let (session, stream) = self.load(group, key)?;
        let (Some(erased), Some(stream)) = (erasure(&session, at), stream) else {
            return Ok(None);
        };
        failpoint::hit("erase.before_rows");
        // What it used stays counted.
        usage::count(&self.connection, &mut self.packer, at, &Counted::One(stream.id))?;
        erase::rows(&self.connection, stream.id, &erased)?;
        let after = self.record(InstallationCommand::Erase(erased), at)?;
        failpoint::hit("erase.after_rows");
        Ok(Some(after))
    }

    /// Writes an entry of the audit log, in the transaction that is open.
    fn record(
        &mut self,
        command: InstallationCommand,
        at: Time,
    ) -> Result<Installation, JournalError> {
        let decide: DecideInstallation = Box::new(move |before| decide(before, &command));
        let Self { connection, packer, .. } = self;
        let stored = installation::append(connection, packer, at, &decide)?;
        stored.map_err(|refusal| JournalError::Engine(refusal.into()))
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        parameters: &[&dyn rusqlite::ToSql],
    ) -> Result<(), JournalError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(parameters).map(drop).map_err(sqlite)
    }
}

fn failed(words: String) -> JournalError {
    JournalError::Engine(words.into())
}

/// An answer waits for the commit; a failure is told at once, as nothing of it is stored.
fn settle<T: Send + 'static>(group: &mut Group, reply: Reply<T>, written: Result<T, JournalError>) {
    match written {
        Ok(answer) => group.pending.push(Box::new(move |committed| {
            let _ = reply.send(committed.map(|()| answer).map_err(failed));
        })),
        Err(error) => {
            let _ = reply.send(Err(error));
        }
    }
}
