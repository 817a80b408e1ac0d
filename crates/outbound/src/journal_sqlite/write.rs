//! Writing: one thread, groups of appends, one commit for each group.

use std::{
    collections::HashMap,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, PoisonError},
};

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, Seq},
    identity::SessionIdentity,
    owner::Owner,
    refusal::Refusal,
    session::{FOLD_VERSION, Session},
    time::Time,
};
use planwright_runtime::{
    failpoint,
    ports::journal::{
        Answer, Append, BackedOff, Decide, DecideOwner, JournalError, Recorded, Stream, Undecided,
    },
};
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc, oneshot};

use super::{
    memory, owner,
    read::{self, StreamRow},
};
use crate::journal::{
    FAILURES_MAX, SNAPSHOT_EVERY, answer_columns, answered, codec, due_column, is_progress,
    remembering::{Whose, of_session},
    retry_at, waiting_column,
    warm::Warm,
};

/// How many jobs share one commit at most.
const GROUP_MAX: usize = 64;

type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

/// Something to be written.
pub(super) enum Job {
    Append {
        identity: SessionIdentity,
        command: CommandId,
        at: Time,
        decide: Decide,
        reply: Reply<Answer>,
    },
    BackOff {
        identity: SessionIdentity,
        now: Time,
        why: String,
        reply: Reply<BackedOff>,
    },
    Unpark {
        identity: SessionIdentity,
        now: Time,
        reply: Reply<()>,
    },
    AppendOwner {
        owner: PersonId,
        at: Time,
        decide: DecideOwner,
        reply: Reply<Result<Owner, Refusal>>,
    },
    KeepOutput {
        identity: SessionIdentity,
        digest: Digest,
        text: String,
        reply: Reply<()>,
    },
    Restore {
        whole: Box<(Stream, Append)>,
        reply: Reply<bool>,
    },
}

/// An answer that waits for its commit.
type Pending = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The one writer.
pub(super) struct Writer {
    connection: Connection,
    warm: Arc<Mutex<Warm>>,
    streams: HashMap<SessionIdentity, StreamRow>,
    packer: codec::Packer,
}

/// What one group has changed and not committed yet.
#[derive(Default)]
struct Group {
    sessions: HashMap<SessionIdentity, Arc<Session>>,
    streams: HashMap<SessionIdentity, StreamRow>,
    news: HashMap<SessionIdentity, Vec<Recorded>>,
    pending: Vec<Pending>,
}

impl Writer {
    pub(super) fn new(connection: Connection, warm: Arc<Mutex<Warm>>) -> std::io::Result<Self> {
        Ok(Self { connection, warm, streams: HashMap::new(), packer: codec::Packer::new()? })
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

    fn commit(&mut self, batch: Vec<Job>) {
        failpoint::hit("journal.before_begin");
        let mut group = Group::default();
        let mut outcome = self.say("BEGIN IMMEDIATE");
        for job in batch {
            let begun = outcome.clone();
            if let Err(error) = self.write(&mut group, job, begun)
                && outcome.is_ok()
            {
                outcome = Err(error);
            }
        }
        if outcome.is_ok() {
            failpoint::hit("journal.before_commit");
            outcome = self.say("COMMIT");
            failpoint::hit("journal.after_commit");
        }
        if outcome.is_err() {
            let _ = self.say("ROLLBACK");
        } else {
            let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
            for session in group.sessions.into_values() {
                let news = group.news.remove(&session.identity).unwrap_or_default();
                warm.put(session, news);
            }
            self.streams.extend(group.streams);
        }
        failpoint::hit("journal.before_acknowledge");
        for answer in group.pending {
            answer(outcome.clone());
        }
    }

    /// A statement without parameters, prepared once.
    fn say(&self, sql: &str) -> Result<(), String> {
        let said =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        said.map(drop).map_err(|error| error.to_string())
    }

    /// Writes one job. An error means that the engine failed and the whole group must go.
    fn write(
        &mut self,
        group: &mut Group,
        job: Job,
        begun: Result<(), String>,
    ) -> Result<(), String> {
        match job {
            Job::Append { identity, command, at, decide, reply } => {
                let written = begun
                    .clone()
                    .map_err(Failed::Engine)
                    .and_then(|()| self.append(group, &identity, command, at, decide));
                settle(group, reply, written)
            }
            Job::BackOff { identity, now, why, reply } => {
                let written = begun
                    .map_err(Failed::Engine)
                    .and_then(|()| self.back_off(&identity, now, &why));
                settle(group, reply, written)
            }
            Job::Unpark { identity, now, reply } => {
                let written =
                    begun.map_err(Failed::Engine).and_then(|()| self.unpark(&identity, now));
                settle(group, reply, written)
            }
            Job::AppendOwner { owner: id, at, decide, reply } => {
                let written = begun.map_err(Failed::Engine).and_then(|()| {
                    owner::append(&self.connection, &mut self.packer, &id, at, &decide)
                        .map_err(|error| Failed::Engine(error.to_string()))
                });
                settle(group, reply, written)
            }
            Job::KeepOutput { identity, digest, text, reply } => {
                let written = begun
                    .map_err(Failed::Engine)
                    .and_then(|()| self.keep_output(&identity, digest, &text));
                settle(group, reply, written)
            }
            Job::Restore { whole, reply } => {
                let (stream, append) = *whole;
                let written = begun
                    .map_err(Failed::Engine)
                    .and_then(|()| self.restore(group, stream, append));
                settle(group, reply, written)
            }
        }
    }

    /// Stores a whole stream that is not there yet.
    fn restore(
        &mut self,
        group: &mut Group,
        stream: Stream,
        append: Append,
    ) -> Result<bool, Failed> {
        let (_, found) = self.load(group, &stream.identity).map_err(Failed::Job)?;
        if found.is_some() {
            return Ok(false);
        }
        let at = stream.events.last().map_or(Time(0), |recorded| recorded.at);
        let row = self.store(group, &stream.identity, None, at, append)?;
        for recorded in &stream.events {
            let sql = "UPDATE events SET at = ?3 WHERE stream = ?1 AND seq = ?2";
            self.execute(sql, params![row.id, recorded.seq.0.cast_signed(), recorded.at.0])?;
        }
        // The events were stored with one time; what is warm of them is not right.
        group.news.remove(&stream.identity);
        for (command, answer) in &stream.answers {
            let (before, version, refusal) = answer_columns(answer).map_err(Failed::Job)?;
            let (before, version) = (Seq(before.cast_unsigned()), Seq(version.cast_unsigned()));
            self.keep_answer(row, *command, before, version, refusal)?;
        }
        for (digest, text) in &stream.outputs {
            self.keep_output(&stream.identity, *digest, text)?;
        }
        Ok(true)
    }

    fn append(
        &mut self,
        group: &mut Group,
        identity: &SessionIdentity,
        command: CommandId,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, Failed> {
        let (session, stream) = self.load(group, identity).map_err(Failed::Job)?;
        if let Some(stream) = stream
            && let Some(answer) = self.answered(stream, command)?
        {
            return Ok(answer);
        }
        let before = session.version;
        // One command that cannot be decided must not end the journal of all.
        match panic::catch_unwind(AssertUnwindSafe(|| decide(&session))) {
            Err(_) => {
                let words =
                    format!("deciding a command of {identity} broke down; nothing was stored");
                Err(Failed::Job(JournalError::Engine(words.into())))
            }
            Ok(Err(Undecided::Corrupt(corrupt))) => Err(Failed::Job(corrupt.into())),
            Ok(Err(Undecided::Refused(refusal))) => {
                if let Some(stream) = stream
                    && refusal.is_final()
                {
                    let words = serde_json::to_string(&refusal)
                        .map_err(|error| Failed::Engine(error.to_string()))?;
                    self.keep_answer(stream, command, before, before, Some(words))?;
                }
                Ok(Answer::Refused(refusal))
            }
            Ok(Ok(append)) => {
                let version = append.after.version;
                let stream = self.store(group, identity, stream, at, append)?;
                self.keep_answer(stream, command, before, version, None)?;
                Ok(Answer::Accepted { before, version })
            }
        }
    }

    /// The session with what this group has done to it, and its row.
    fn load(
        &mut self,
        group: &Group,
        identity: &SessionIdentity,
    ) -> Result<(Arc<Session>, Option<StreamRow>), JournalError> {
        let stream = group.streams.get(identity).or_else(|| self.streams.get(identity)).copied();
        if let (Some(session), Some(stream)) = (group.sessions.get(identity), stream) {
            return Ok((session.clone(), Some(stream)));
        }
        let warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity);
        if let (Some(session), Some(stream)) = (warm, stream) {
            return Ok((session, Some(stream)));
        }
        let (session, stream) = read::session(&self.connection, identity)?;
        Ok((Arc::new(session), stream))
    }

    fn answered(&self, stream: StreamRow, command: CommandId) -> Result<Option<Answer>, Failed> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT before, version, refusal FROM answers WHERE stream = ?1 AND command = ?2",
            )
            .map_err(failed)?;
        let row = statement
            .query_row(params![stream.id, command.0.as_bytes()], |row| {
                let refusal: Option<String> = row.get(2)?;
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, refusal))
            })
            .optional()
            .map_err(failed)?;
        let Some((before, version, refusal)) = row else { return Ok(None) };
        answered(before, version, refusal)
            .map(Some)
            .map_err(|error| Failed::Engine(error.to_string()))
    }

    fn keep_answer(
        &self,
        stream: StreamRow,
        command: CommandId,
        before: Seq,
        version: Seq,
        refusal: Option<String>,
    ) -> Result<(), Failed> {
        let sql = "INSERT INTO answers (stream, command, before, version, refusal) VALUES (?1, ?2, ?3, ?4, ?5)";
        let (before, version) = (before.0.cast_signed(), version.0.cast_signed());
        self.execute(sql, params![stream.id, command.0.as_bytes(), before, version, refusal])
    }

    fn keep_output(
        &mut self,
        identity: &SessionIdentity,
        digest: Digest,
        text: &str,
    ) -> Result<(), Failed> {
        let body = self.packer.pack(&text).map_err(Failed::Job)?;
        let sql = "INSERT OR IGNORE INTO outputs (stream, digest, body) SELECT id, ?2, ?3 FROM streams WHERE identity = ?1";
        self.execute(sql, params![identity.to_string(), digest.0, body])
    }

    fn store(
        &mut self,
        group: &mut Group,
        identity: &SessionIdentity,
        stream: Option<StreamRow>,
        at: Time,
        append: Append,
    ) -> Result<StreamRow, Failed> {
        let Append { events, after, due, waiting } = append;
        let version = after.version.0.cast_signed();
        let (due, waiting) = (due_column(due), waiting_column(waiting));
        let owner = after.owner.as_ref().map(|owner| owner.0.as_str());
        let (title, life, planning) = (&after.title, after.life.name(), after.plan().is_some());
        let mut stream = match stream {
            Some(stream) => {
                let sql = "UPDATE streams SET version = ?2, updated_at = ?3, due_at = ?4, waiting = ?5,
                           owner = ?7, title = ?8, life = ?9, planning = ?10,
                           failures = CASE WHEN parked IS NULL AND NOT ?6 THEN failures ELSE 0 END, parked = NULL WHERE id = ?1";
                let progress = is_progress(&events);
                self.execute(
                    sql,
                    params![
                        stream.id, version, at.0, due, waiting, progress, owner, title, life,
                        planning
                    ],
                )?;
                stream
            }
            None => {
                let sql = "INSERT INTO streams (identity, version, updated_at, due_at, waiting, owner, title, life, planning)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
                let text = identity.to_string();
                self.execute(
                    sql,
                    params![text, version, at.0, due, waiting, owner, title, life, planning],
                )?;
                StreamRow { id: self.connection.last_insert_rowid(), snapshot: Seq(0) }
            }
        };
        let first = after.version.0 + 1 - events.len() as u64;
        for (seq, event) in (first..).zip(&events) {
            let body = self.packer.pack(event).map_err(Failed::Job)?;
            let sql =
                "INSERT INTO events (stream, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)";
            self.execute(sql, params![stream.id, seq.cast_signed(), at.0, event.kind(), body])?;
        }
        let changes = of_session(&events);
        memory::change(&self.connection, &mut self.packer, Whose::Session(identity), &changes)
            .map_err(|error| Failed::Engine(error.to_string()))?;
        failpoint::hit("journal.after_events");
        if after.version.0 >= stream.snapshot.0 + SNAPSHOT_EVERY {
            let sql = "UPDATE streams SET snapshot = ?2, snapshot_version = ?3, fold_version = ?4 WHERE id = ?1";
            let body = self.packer.pack(&after).map_err(Failed::Job)?;
            self.execute(sql, params![stream.id, body, version, FOLD_VERSION])?;
            stream.snapshot = after.version;
        }
        failpoint::hit("journal.after_snapshot");
        let recorded =
            (first..).zip(events).map(|(seq, event)| Recorded { seq: Seq(seq), at, event });
        group.news.entry(identity.clone()).or_default().extend(recorded);
        group.streams.insert(identity.clone(), stream);
        group.sessions.insert(identity.clone(), Arc::new(after));
        Ok(stream)
    }

    fn back_off(
        &self,
        identity: &SessionIdentity,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, Failed> {
        let text = identity.to_string();
        let failures: Option<u32> = self
            .connection
            .query_row("SELECT failures FROM streams WHERE identity = ?1", [&text], |row| {
                row.get(0)
            })
            .optional()
            .map_err(failed)?;
        let failures = failures.unwrap_or(0) + 1;
        if failures >= FAILURES_MAX {
            let sql = "UPDATE streams SET failures = ?2, parked = ?3 WHERE identity = ?1";
            self.execute(sql, params![text, failures, why])?;
            return Ok(BackedOff::Parked);
        }
        let until = retry_at(now, failures);
        let sql = "UPDATE streams SET failures = ?2, due_at = ?3 WHERE identity = ?1";
        self.execute(sql, params![text, failures, until.0])?;
        Ok(BackedOff::Until(until))
    }

    fn unpark(&self, identity: &SessionIdentity, now: Time) -> Result<(), Failed> {
        let sql = "UPDATE streams SET failures = 0, due_at = CASE WHEN parked IS NULL THEN due_at ELSE ?2 END,
                   parked = NULL WHERE identity = ?1";
        self.execute(sql, params![identity.to_string(), now.0])
    }

    fn execute(&self, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Result<(), Failed> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(parameters).map(drop).map_err(failed)
    }
}

/// Why a job did not get its answer.
enum Failed {
    /// This job alone; nothing was written for it.
    Job(JournalError),
    /// The engine: the whole group must go.
    Engine(String),
}

fn failed(error: rusqlite::Error) -> Failed {
    Failed::Engine(error.to_string())
}

/// Lines the answer up behind the commit.
fn settle<T: Send + 'static>(
    group: &mut Group,
    reply: Reply<T>,
    written: Result<T, Failed>,
) -> Result<(), String> {
    match written {
        Ok(answer) => {
            group.pending.push(Box::new(move |committed| {
                let _ = reply.send(
                    committed.map(|()| answer).map_err(|words| JournalError::Engine(words.into())),
                );
            }));
            Ok(())
        }
        Err(Failed::Job(error)) => {
            let _ = reply.send(Err(error));
            Ok(())
        }
        Err(Failed::Engine(words)) => {
            let _ = reply.send(Err(JournalError::Engine(words.clone().into())));
            Err(words)
        }
    }
}
