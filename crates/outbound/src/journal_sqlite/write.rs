//! Writing: one thread, groups of appends, one commit for each group.

use std::{
    collections::{HashMap, HashSet},
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use planwright_domain::{
    actor::PersonId,
    backoff::{again_at, is_progress},
    id::{CommandId, OwnerId, Seq},
    identity::SessionKey,
    installation::{AccountRefusal, Installation, InstallationCommand, decide},
    owner::Owner,
    refusal::Refusal,
    session::{FOLD_VERSION, Session, erasure},
    time::Time,
};
use planwright_format::{
    body::Packer,
    event::{StoredEvent, known_level},
};
use planwright_runtime::{
    failpoint,
    ports::journal::{
        Answer, Append, BackedOff, Decide, DecideInstallation, DecideOwner, JournalError,
        KeptAnswer, Recorded, Stream, TakenHeads, Undecided,
    },
};
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc, oneshot};

use super::{
    erase, installation, memory, owner,
    read::{self, StreamRow},
    search, sqlite,
    usage::{self, Counted},
};
use crate::journal::{
    Listed, SNAPSHOT_EVERY, due_column, last_anchor,
    outputs::SealedOutput,
    remembering::{Whose, of_session},
    sealed::{AnswerRow, event_place, seal_snapshot},
    search::Indexed,
    verdicts, waiting_column,
    warm::Warm,
};

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

/// What was decided and packed before it was the writer's turn. It holds if the session has not moved since.
pub(super) struct Prepared {
    before: Seq,
    append: Append,
    rows: Vec<StoredEvent>,
}

impl Prepared {
    /// Decides on this session. What is refused, or breaks down, is left to the writer: it decides on what is stored.
    pub(super) fn new(
        packer: &mut Packer,
        session: &Session,
        at: Time,
        decide: &Decide,
    ) -> Option<Box<Self>> {
        let decided = panic::catch_unwind(AssertUnwindSafe(|| decide(session)));
        let append = decided.ok()?.ok()?;
        let rows = packed(packer, &session.key(), &append, |_| at).ok()?;
        Some(Box::new(Self { before: session.version, append, rows }))
    }
}

/// The events of what was decided, each with its own time, as their rows hold them.
fn packed(
    packer: &mut Packer,
    identity: &SessionKey,
    append: &Append,
    times: impl Fn(usize) -> Time,
) -> Result<Vec<StoredEvent>, JournalError> {
    let (key, level, first) = (identity.to_string(), known_level(), first_of(append));
    let row = |(number, event)| {
        let (seq, at) = (first + number as u64, times(number));
        Ok(packer.seal_event(event_place(&key, seq, at), event, level)?)
    };
    append.events.iter().enumerate().map(row).collect()
}

/// The number of the first event of what was decided.
fn first_of(append: &Append) -> u64 {
    append.after.version.0 + 1 - append.events.len() as u64
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
                settle(group, reply, written);
            }
            Job::Unpark { identity, now, reply } => {
                let written = self
                    .in_savepoint(group, |writer, _| Ok((writer.unpark(&identity, now)?, None)));
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

    /// Stores a whole stream that is not there yet.
    fn restore(
        &mut self,
        group: &Group,
        stream: Stream,
        append: Append,
        outputs: &[SealedOutput],
    ) -> Result<(bool, Option<Change>), JournalError> {
        let (_, found) = self.load(group, &stream.key)?;
        if found.is_some() || erase::is_erased(&self.connection, &stream.key)? {
            return Ok((false, None));
        }
        let at = stream.events.last().map_or(Time(0), |recorded| recorded.at);
        let times = |event: usize| stream.events.get(event).map_or(at, |recorded| recorded.at);
        let change = self.store(&stream.key, None, at, times, append, None)?;
        for (command, KeptAnswer { at, answer }) in &stream.answers {
            self.keep_answer(&stream.key, change.stream, (*command, *at), answer)?;
        }
        for output in outputs {
            self.keep_output(&stream.key, output)?;
        }
        Ok((true, Some(change)))
    }

    fn append(
        &mut self,
        group: &Group,
        identity: &SessionKey,
        (command, at): (Option<CommandId>, Time),
        decide: &Decide,
        prepared: Option<Box<Prepared>>,
    ) -> Result<(Answer, Option<Change>), JournalError> {
        let (session, stream) = self.load(group, identity)?;
        if let (Some(stream), Some(command)) = (stream, command)
            && let Some(answer) = self.answered(identity, stream, command)?
        {
            // What was decided before is not what is stored; whoever asked goes by what is decided last.
            if prepared.is_some() {
                drop(decide(&session));
            }
            return Ok((answer, None));
        }
        let before = session.version;
        let prepared = prepared.filter(|prepared| prepared.before == before && stream.is_some());
        let (decided, rows) = match prepared.map(|prepared| *prepared) {
            Some(Prepared { append, rows, .. }) => (Ok(append), Some(rows)),
            None => (decide(&session), None),
        };
        match self.admitted(&session, decided)? {
            Err(Undecided::Corrupt(corrupt)) => Err(corrupt.into()),
            Err(Undecided::Refused(refusal)) => {
                let is_kept = refusal.is_final();
                let answer = Answer::Refused(refusal);
                if let (Some(stream), Some(command)) = (stream, command)
                    && is_kept
                {
                    self.keep_answer(identity, stream, (command, at), &answer)?;
                }
                Ok((answer, None))
            }
            Ok(append) => {
                let version = append.after.version;
                let change = self.store(identity, stream, at, |_| at, append, rows)?;
                let answer = Answer::Accepted { before, version };
                if let Some(command) = command {
                    self.keep_answer(identity, change.stream, (command, at), &answer)?;
                }
                Ok((answer, Some(change)))
            }
        }
    }

    /// What was decided, if the owner has room for it.
    fn admitted(
        &self,
        session: &Session,
        decided: Result<Append, Undecided>,
    ) -> Result<Result<Append, Undecided>, JournalError> {
        if let Ok(Append { turns: Some(room), .. }) = &decided
            && let Err(refusal) = usage::check_room(&self.connection, session.owner, room)?
        {
            return Ok(Err(refusal.into()));
        }
        Ok(decided)
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

    /// The session with what this group has done to it, and its row.
    fn load(
        &mut self,
        group: &Group,
        identity: &SessionKey,
    ) -> Result<(Arc<Session>, Option<StreamRow>), JournalError> {
        if group.erased.contains(identity) {
            return Ok((Arc::new(Session::erased(identity.clone())), None));
        }
        let stream = group.streams.get(identity).or_else(|| self.streams.get(identity)).copied();
        if let (Some(session), Some(stream)) = (group.sessions.get(identity), stream) {
            return Ok((session.clone(), Some(stream)));
        }
        let warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity);
        if let Some(session) = warm {
            let stream = match stream {
                Some(stream) => Some(stream),
                None => read::stream(&self.connection, identity)?,
            };
            // A reader may have warmed it: what is decided on is what is stored.
            if let Some(stream) = stream.filter(|stream| stream.version == session.version) {
                return Ok((session, Some(stream)));
            }
        }
        let (session, stream) = read::session(&self.connection, identity)?;
        Ok((Arc::new(session), stream))
    }

    fn answered(
        &self,
        identity: &SessionKey,
        stream: StreamRow,
        command: CommandId,
    ) -> Result<Option<Answer>, JournalError> {
        let sql = "SELECT before, version, refusal, checksum FROM answers WHERE stream = ?1 AND command = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let row = statement
            .query_row(params![stream.id, command.0.as_bytes()], read::answer_row)
            .optional()
            .map_err(sqlite)?;
        row.map(|row| row.answer(identity, command)).transpose()
    }

    fn keep_answer(
        &self,
        identity: &SessionKey,
        stream: StreamRow,
        (command, at): (CommandId, Time),
        answer: &Answer,
    ) -> Result<(), JournalError> {
        let AnswerRow { columns, checksum } = AnswerRow::new(identity, command, answer)?;
        let sql = "INSERT INTO answers (stream, command, before, version, refusal, checksum, at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (before, version) = (columns.before, columns.version);
        self.execute(
            sql,
            params![
                stream.id,
                command.0.as_bytes(),
                before,
                version,
                columns.refusal,
                checksum,
                at.0
            ],
        )
    }

    fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError> {
        let sql = "DELETE FROM answers WHERE (stream, command) IN
                   (SELECT stream, command FROM answers WHERE at < ?1 ORDER BY at LIMIT ?2)";
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(params![before.0, limit as i64]).map_err(sqlite)
    }

    /// Keeps an output; whether the session has it, which it does not if it is not there any more.
    fn keep_output(
        &self,
        identity: &SessionKey,
        output: &SealedOutput,
    ) -> Result<bool, JournalError> {
        let sql = "INSERT OR IGNORE INTO outputs (stream, digest, body) SELECT id, ?3, ?4 FROM streams WHERE owner = ?1 AND identity = ?2";
        let (owner, text) = read::columns(identity);
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let row = params![owner, text, output.digest.0, output.body];
        if statement.execute(row).map_err(sqlite)? == 0 {
            return Ok(read::output(&self.connection, identity, output.digest)?.is_some());
        }
        let sql = "UPDATE streams SET bytes = bytes + ?3 WHERE owner = ?1 AND identity = ?2";
        self.execute(sql, params![owner, text, output.bytes])?;
        Ok(true)
    }

    fn keep_view(
        &self,
        identity: &SessionKey,
        upto: Seq,
        form: u32,
        body: &[u8],
    ) -> Result<(), JournalError> {
        let (owner, text) = read::columns(identity);
        let sql = "INSERT OR REPLACE INTO views (stream, upto, form, body)
                   SELECT id, ?3, ?4, ?5 FROM streams WHERE owner = ?1 AND identity = ?2";
        self.execute(sql, params![owner, text, upto.0.cast_signed(), form, body])
    }

    fn keep_snapshot(&mut self, session: &Session) -> Result<(), JournalError> {
        let stream = read::stream(&self.connection, &session.key())?;
        let Some(stream) = stream.filter(|stream| stream.snapshot < session.version) else {
            return Ok(());
        };
        let body = seal_snapshot(&mut self.packer, session, known_level())?;
        self.write_snapshot(stream.id, session.version, &body)?;
        if let Some(known) = self.streams.get_mut(&session.key()) {
            known.snapshot = session.version;
        }
        Ok(())
    }

    fn write_snapshot(&self, stream: i64, version: Seq, body: &[u8]) -> Result<(), JournalError> {
        let sql = "INSERT OR REPLACE INTO snapshots (stream, version, fold_version, body) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![stream, version.0.cast_signed(), FOLD_VERSION, body])
    }

    /// Writes the row of a stream anew, or makes it. Its events take so many bytes more.
    fn move_stream(
        &self,
        identity: &SessionKey,
        stream: Option<StreamRow>,
        at: Time,
        append: &Append,
        bytes: i64,
    ) -> Result<StreamRow, JournalError> {
        let Append { events, after, due, waiting, turns: _ } = append;
        let version = after.version.0.cast_signed();
        let (due, waiting) = (due_column(*due), waiting_column(*waiting));
        let logged = last_anchor(first_of(append), events);
        let Listed { title, life, plan, running, takes_room, used } = Listed::of(after);
        let (tokens, cost) = (used.tokens.cast_signed(), used.cost_micros.cast_signed());
        match stream {
            Some(stream) => {
                let sql = "UPDATE streams SET version = ?2, updated_at = ?3, due_at = ?4, waiting = ?5,
                           title = ?7, life = ?8, plan = ?9, logged = COALESCE(?10, logged),
                           running = ?11, takes_room = ?15, tokens = ?12, cost_micros = ?13, bytes = bytes + ?14,
                           failures = CASE WHEN parked IS NULL AND NOT ?6 THEN failures ELSE 0 END, parked = NULL WHERE id = ?1";
                let progress = is_progress(events);
                self.execute(
                    sql,
                    params![
                        stream.id, version, at.0, due, waiting, progress, title, life, plan,
                        logged, running, tokens, cost, bytes, takes_room
                    ],
                )?;
                Ok(stream)
            }
            None => {
                let sql = "INSERT INTO streams (owner, identity, version, updated_at, due_at, waiting, title, life, plan, logged,
                           running, tokens, cost_micros, bytes, counted_tokens, counted_cost_micros, takes_room)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, COALESCE(?10, 0), ?11, ?12, ?13, ?14, ?12, ?13, ?15)";
                let (owner, text) = read::columns(identity);
                self.execute(
                    sql,
                    params![
                        owner, text, version, at.0, due, waiting, title, life, plan, logged,
                        running, tokens, cost, bytes, takes_room
                    ],
                )?;
                let id = self.connection.last_insert_rowid();
                Ok(StreamRow { id, version: after.version, snapshot: Seq(0) })
            }
        }
    }

    /// Stores what was decided, each event with its own time. Everything is packed before anything is written; the events may
    /// have been packed before.
    fn store(
        &mut self,
        identity: &SessionKey,
        stream: Option<StreamRow>,
        at: Time,
        times: impl Fn(usize) -> Time,
        append: Append,
        rows: Option<Vec<StoredEvent>>,
    ) -> Result<Change, JournalError> {
        let rows = match rows {
            Some(rows) => rows,
            None => packed(&mut self.packer, identity, &append, &times)?,
        };
        let (first, level) = (first_of(&append), known_level());
        let last = stream.map_or(Seq(0), |stream| stream.snapshot);
        let is_snapshot_due = append.after.version.0 >= last.0 + SNAPSHOT_EVERY;
        let after = &append.after;
        let snapshot =
            is_snapshot_due.then(|| seal_snapshot(&mut self.packer, after, level)).transpose()?;
        let bytes = rows.iter().map(|row| row.body.len() as i64).sum::<i64>();
        let mut stream = self.move_stream(identity, stream, at, &append, bytes)?;
        let Append { events, after, .. } = append;
        stream.version = after.version;
        for (seq, (number, row)) in (first..).zip(rows.into_iter().enumerate()) {
            let sql = "INSERT INTO events (id, at, kind, body) VALUES (?1, ?2, ?3, ?4)";
            let (id, at) = (read::event_id(stream.id, seq)?, times(number).0);
            self.execute(sql, params![id, at, row.kind, row.body])?;
        }
        for seq in verdicts(first, &events) {
            let sql = "INSERT INTO decisions (event, owner, at) VALUES (?1, ?2, ?3)";
            let at = times((seq - first) as usize).0;
            self.execute(
                sql,
                params![read::event_id(stream.id, seq)?, identity.owner.0.as_bytes(), at],
            )?;
        }
        let changes = of_session(&events);
        memory::change(&self.connection, &mut self.packer, Whose::Session(identity), &changes)?;
        failpoint::hit("journal.after_events");
        if let Some(body) = snapshot {
            self.write_snapshot(stream.id, after.version, &body)?;
            stream.snapshot = after.version;
        }
        failpoint::hit("journal.after_snapshot");
        let recorded = events.into_iter().enumerate().map(|(number, event)| Recorded {
            seq: Seq(first + number as u64),
            at: times(number),
            event,
        });
        Ok(Change { stream, news: recorded.collect(), session: Arc::new(after) })
    }

    fn back_off(
        &self,
        identity: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        let (owner, text) = read::columns(identity);
        let sql =
            "SELECT failures, life = 'deleted' FROM streams WHERE owner = ?1 AND identity = ?2";
        let found: Option<(u32, bool)> = self
            .connection
            .query_row(sql, params![owner, text], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(sqlite)?;
        let (failures, is_deleted) = found.unwrap_or_default();
        let failures = failures.saturating_add(1);
        let Some(until) = again_at(now, failures, is_deleted) else {
            let sql =
                "UPDATE streams SET failures = ?3, parked = ?4 WHERE owner = ?1 AND identity = ?2";
            self.execute(sql, params![owner, text, failures, why])?;
            return Ok(BackedOff::Parked);
        };
        let sql =
            "UPDATE streams SET failures = ?3, due_at = ?4 WHERE owner = ?1 AND identity = ?2";
        self.execute(sql, params![owner, text, failures, until.0])?;
        Ok(BackedOff::Until(until))
    }

    fn postpone(
        &self,
        identity: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError> {
        let sql =
            "UPDATE streams SET due_at = ?4 WHERE owner = ?1 AND identity = ?2 AND version = ?3";
        let (owner, text) = read::columns(identity);
        self.execute(sql, params![owner, text, version.0.cast_signed(), until.0])
    }

    fn unpark(&self, identity: &SessionKey, now: Time) -> Result<(), JournalError> {
        let sql = "UPDATE streams SET failures = 0, due_at = CASE WHEN parked IS NULL THEN due_at ELSE ?3 END,
                   parked = NULL WHERE owner = ?1 AND identity = ?2";
        let (owner, text) = read::columns(identity);
        self.execute(sql, params![owner, text, now.0])
    }

    fn execute(&self, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Result<(), JournalError> {
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
