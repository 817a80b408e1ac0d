//! The journal on SQLite: one writer thread that commits in groups, and a few readers.
//!
//! Every append that waits while a commit is under way joins the next one, so many clients share
//! one fsync. A job that fails is undone by itself, and the others of its group are stored. Folded
//! sessions are kept warm as they are written or read; this process owns the file, so what is warm is
//! what is stored.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, MemoryId, OwnerId, Seq},
    identity::{ChannelType, SessionKey},
    installation::{AccountRefusal, Installation},
    memory::{Chain, Item, Question, rank::Candidates},
    owner::Owner,
    quota::{Day, Used},
    refusal::Refusal,
    session::{Session, erasure, life::Life},
    time::Time,
};
use planwright_format::{DEVELOPMENT_FORM, FormatError, body::Packer};
use planwright_runtime::{
    failpoint::{self, Mutant},
    ports::{
        journal::{
            Answer, Append, Archive, BackedOff, Decide, DecideInstallation, DecideOwner,
            DecisionPage, DecisionQuery, DueRow, InstallationRecorded, Journal, JournalError,
            KeptAnswer, KeptView, OwnerRecorded, Recorded, Reserved, SessionPage, SessionQuery,
            SessionRow, Since, Stream, TakenHeads,
        },
        memory::Memory,
    },
};
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use tokio::sync::{mpsc, oneshot};

mod erase;
mod installation;
mod memory;
mod owner;
mod read;
mod search;
mod usage;
mod write;

use read::StreamRow;
use write::{DerivedJob, Job, LogJob, OwnerJob, Writer, append::Prepared};

use crate::{
    journal::{
        COLD_FOLD_MIN, engine,
        known_installation::KnownInstallation,
        outputs::{Beside, OutputRow, OutputStore, SealedOutput},
        sealed::seal_view,
        warm::Warm,
    },
    statement_count,
};

/// How many appends may wait for the writer.
const WRITES_MAX: usize = 1_024;
/// How many idle packers are kept.
const PACKERS_MAX: usize = 4;
/// How many readers are kept open.
const READERS_MAX: usize = 4;

/// The journal on SQLite.
#[derive(Debug)]
pub struct SqliteJournal {
    /// Before the writer: they cannot take up what lies beside the file, and whoever closes it last should.
    readers: Arc<Readers>,
    writing: Writing,
    warm: Arc<Mutex<Warm>>,
    /// Packers that nobody uses at the moment.
    packers: Mutex<Vec<Packer>>,
    installation: Arc<KnownInstallation>,
    outputs: OutputStore,
}

/// Who writes.
#[derive(Debug)]
enum Writing {
    /// A thread of its own, which shares one commit among all who wait.
    Thread(mpsc::Sender<Job>),
    /// Whoever asks, one after the other, before they go on. Nothing happens beside them.
    Inline(Mutex<Writer>),
    /// Nobody: another process may.
    Nobody,
}

impl SqliteJournal {
    /// Opens the journal in this file, or makes it.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (writer, warm) = open_writer(path)?;
        let (jobs, receiver) = mpsc::channel(WRITES_MAX);
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || writer.run(receiver))
            .map_err(engine)?;
        Ok(Self {
            writing: Writing::Thread(jobs),
            readers: Readers::of(path),
            warm,
            packers: Mutex::default(),
            installation: Arc::default(),
            outputs: outputs_beside(path)?,
        })
    }

    /// The same without any thread: what is asked is done before the caller goes on, in the order in which it is asked.
    /// For runs that must be repeatable.
    pub fn open_inline(path: &Path) -> Result<Self, JournalError> {
        let (writer, warm) = open_writer(path)?;
        let writing = Writing::Inline(Mutex::new(writer));
        let (packers, installation) = (Mutex::default(), Arc::default());
        let outputs = outputs_beside(path)?;
        Ok(Self { writing, readers: Readers::of(path), warm, packers, installation, outputs })
    }

    /// Opens a journal that another process may be writing, to read it: every write is refused as closed.
    pub fn open_read_only(path: &Path) -> Result<Self, JournalError> {
        let readers = Readers::of(path);
        if readers.with(schema)? == Schema::None {
            return Err(JournalError::Engine("there is nothing in it".into()));
        }
        let (warm, packers, installation) = (Arc::default(), Mutex::default(), Arc::default());
        let outputs = outputs_beside(path)?;
        Ok(Self { writing: Writing::Nobody, readers, warm, packers, installation, outputs })
    }

    /// Copies the audit log of the journal in another file into this one, which has none and has no thread of its own.
    pub fn copy_audit_log(&self, from: &Path) -> Result<(), JournalError> {
        let Writing::Inline(writer) = &self.writing else { return Err(JournalError::Closed) };
        let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.copy_audit_log(from)
    }

    /// Decides and packs here, where others can meanwhile, if the session is warm: the writer, whom all wait for, only writes.
    fn prepared(&self, identity: &SessionKey, at: Time, decide: &Decide) -> Option<Box<Prepared>> {
        let Writing::Thread(_) = &self.writing else { return None };
        let session = self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity)?;
        let idle = self.packers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut packer = idle.map_or_else(Packer::new, Ok).ok()?;
        let prepared = Prepared::new(&mut packer, &session, at, decide);
        let mut idle = self.packers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < PACKERS_MAX {
            idle.push(packer);
        }
        prepared
    }

    /// Has a session kept as it stands, if somebody writes and is not too busy.
    fn keep_snapshot(&self, session: Arc<Session>) {
        let Writing::Thread(jobs) = &self.writing else { return };
        let (reply, _) = oneshot::channel();
        let _ = jobs.try_send(Job::Derived(DerivedJob::Snapshot { session, reply }));
    }

    /// Does what takes long beside the threads that serve others, where there are any.
    async fn beside_others<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        match &self.writing {
            Writing::Inline(_) => work(),
            Writing::Thread(_) | Writing::Nobody => {
                tokio::task::spawn_blocking(work).await.map_err(engine)?
            }
        }
    }

    async fn submit<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, JournalError>>) -> Job,
    ) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        match &self.writing {
            Writing::Thread(jobs) => {
                jobs.send(job(reply)).await.map_err(|_| JournalError::Closed)?;
            }
            Writing::Inline(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.commit(vec![job(reply)]);
            }
            Writing::Nobody => return Err(JournalError::Closed),
        }
        answer.await.map_err(|_| JournalError::Closed)?
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        if matches!(self.writing, Writing::Inline(_)) {
            return self.readers.with(query);
        }
        let readers = self.readers.clone();
        tokio::task::spawn_blocking(move || readers.with(query)).await.map_err(engine)?
    }
}

/// The outputs beside the journal in this file.
fn outputs_beside(path: &Path) -> Result<OutputStore, JournalError> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    OutputStore::in_directory(directory.unwrap_or(Path::new(".")))
}

/// The writer of the journal in this file, which is made if it is not there, and the sessions that it keeps warm.
fn open_writer(path: &Path) -> Result<(Writer, Arc<Mutex<Warm>>), JournalError> {
    // Looked at first, and only to be read: even to open and to close it otherwise may change the file.
    let found = if path.exists() {
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        schema(&Connection::open_with_flags(path, read_only).map_err(engine)?)?
    } else {
        Schema::None
    };
    let mut connection = Connection::open(path).map_err(engine)?;
    statement_count::watch(&mut connection).map_err(engine)?;
    // By its name: to open and close it here would take SQLite's locks away. What SQLite puts beside it gets the same rights.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(engine)?;
    configure(&connection).map_err(engine)?;
    if found == Schema::None {
        create(&connection).map_err(engine)?;
    }
    // Whoever wrote here before may have been killed before nothing was left of what it erased.
    erase::scrub(&connection)?;
    let warm = Arc::<Mutex<Warm>>::default();
    let writer = Writer::new(connection, warm.clone()).map_err(engine)?;
    Ok((writer, warm))
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(
        &self,
        identity: &SessionKey,
        command: Option<CommandId>,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError> {
        let prepared = self.prepared(identity, at, &decide);
        let identity = identity.clone();
        self.submit(|reply| Job::Append { identity, command, at, decide, prepared, reply }).await
    }

    async fn session(&self, identity: &SessionKey) -> Result<Arc<Session>, JournalError> {
        let since = {
            let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(session) = warm.get(identity) {
                return Ok(session);
            }
            warm.evictions()
        };
        let (identity, warm) = (identity.clone(), self.warm.clone());
        let read = self.read(move |connection| {
            let (session, stream) = read::session(connection, &identity)?;
            let session = Arc::new(session);
            if stream.is_some() {
                let mut warm = warm.lock().unwrap_or_else(PoisonError::into_inner);
                warm.put_read(session.clone(), since);
            }
            Ok((session, stream))
        });
        let (session, stream) = read.await?;
        let folded = |stream: StreamRow| session.version.0 - stream.snapshot.0;
        if stream.is_some_and(|stream| folded(stream) >= COLD_FOLD_MIN) {
            self.keep_snapshot(session.clone());
        }
        Ok(session)
    }

    async fn events(
        &self,
        identity: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        let warm =
            self.warm.lock().unwrap_or_else(PoisonError::into_inner).events(identity, after, limit);
        if let Some(events) = warm {
            return Ok(events);
        }
        let identity = identity.clone();
        self.read(move |connection| read::events(connection, &identity, after, limit)).await
    }

    async fn events_since(
        &self,
        identity: &SessionKey,
        since: Since,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::events_since(connection, &identity, since, after, limit))
            .await
    }

    async fn keep_output(&self, identity: &SessionKey, text: &str) -> Result<Digest, JournalError> {
        let (session, text) = (identity.clone(), text.to_owned());
        let sealed = self.beside_others(move || SealedOutput::of(&session, &text)).await?;
        let _writing = self.outputs.writing().await;
        let output = self.outputs.take(identity, sealed).await?;
        let (key, digest, is_beside) = (identity.clone(), output.digest, output.body.is_none());
        let named = self.submit(|reply| Job::KeepOutput { identity: key, output, reply }).await?;
        if !named && is_beside {
            self.outputs.remove(identity, digest).await?;
        }
        Ok(digest)
    }

    async fn output(
        &self,
        identity: &SessionKey,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        let key = identity.clone();
        match self.read(move |connection| read::output(connection, &key, digest)).await? {
            None => Ok(None),
            Some(OutputRow::Here(text)) => Ok(Some(text)),
            Some(OutputRow::Beside) => self.outputs.read(identity, digest).await.map(Some),
        }
    }

    async fn sweep_outputs(&self, before: Time) -> Result<usize, JournalError> {
        let is_named = |Beside { session, digest }| {
            let named = move |connection: &_| read::has_output(connection, &session, digest);
            self.read(named).boxed()
        };
        self.outputs.sweep(before, is_named).await
    }

    async fn keep_view(&self, identity: &SessionKey, view: KeptView) -> Result<(), JournalError> {
        let (identity, upto, form) = (identity.clone(), view.upto, view.form);
        let key = identity.clone();
        let body = self.beside_others(move || seal_view(&key, &view)).await?;
        self.submit(|reply| Job::Derived(DerivedJob::View { identity, upto, form, body, reply }))
            .await
    }

    async fn kept_view(&self, identity: &SessionKey) -> Result<Option<KeptView>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::kept_view(connection, &identity)).await
    }

    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.read(move |connection| read::due(connection, by, limit)).await
    }

    async fn take_due(
        &self,
        by: Time,
        _: Reserved,
        limit: usize,
    ) -> Result<Vec<DueRow>, JournalError> {
        self.due(Some(by), limit).await
    }

    async fn back_off(
        &self,
        identity: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        let (identity, why) = (identity.clone(), why.to_owned());
        self.submit(|reply| Job::BackOff { identity, now, why, reply }).await
    }

    async fn unpark(&self, identity: &SessionKey, now: Time) -> Result<(), JournalError> {
        let identity = identity.clone();
        self.submit(|reply| Job::Unpark { identity, now, reply }).await
    }

    async fn sessions(
        &self,
        owner: Option<OwnerId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.read(move |connection| read::sessions(connection, owner, limit)).await
    }

    async fn row(&self, session: &SessionKey) -> Result<Option<SessionRow>, JournalError> {
        let key = session.clone();
        self.read(move |connection| read::session_row_of(connection, &key)).await
    }

    async fn session_page(&self, query: &SessionQuery) -> Result<SessionPage, JournalError> {
        let query = query.clone();
        self.read(move |connection| read::session_page(connection, &query)).await
    }

    async fn decisions(&self, query: &DecisionQuery) -> Result<DecisionPage, JournalError> {
        let query = *query;
        self.read(move |connection| read::decisions(connection, query)).await
    }

    async fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError> {
        self.submit(|reply| Job::ForgetAnswers { before, limit, reply }).await
    }

    async fn planning(&self) -> Result<u64, JournalError> {
        self.read(read::planning).await
    }

    async fn newest(
        &self,
        owner: OwnerId,
        channel: ChannelType,
    ) -> Result<Option<SessionKey>, JournalError> {
        self.read(move |connection| read::newest(connection, owner, channel)).await
    }

    async fn owner(&self, owner: OwnerId) -> Result<Owner, JournalError> {
        self.read(move |connection| owner::read(connection, owner)).await
    }

    async fn owner_of(&self, person: &PersonId, fresh: OwnerId) -> Result<OwnerId, JournalError> {
        let name = person.clone();
        if let Some(owner) = self.read(move |connection| owner::named(connection, &name)).await? {
            return Ok(owner);
        }
        let name = person.clone();
        self.submit(|reply| Job::Owner(OwnerJob::Make { name, fresh, reply })).await
    }

    async fn append_owner(
        &self,
        owner: OwnerId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        self.submit(|reply| Job::Owner(OwnerJob::Append { owner, at, decide, reply })).await
    }

    async fn used(&self, owner: OwnerId, day: Day) -> Result<(Owner, Used), JournalError> {
        self.read(move |connection| usage::used(connection, owner, day)).await
    }

    async fn owner_name(&self, owner: OwnerId) -> Result<Option<PersonId>, JournalError> {
        self.read(move |connection| usage::name(connection, owner)).await
    }

    async fn count_use(&self, at: Time, limit: usize) -> Result<usize, JournalError> {
        if !self.read(usage::has_uncounted).await? {
            return Ok(0);
        }
        self.submit(|reply| Job::CountUse { at, limit, reply }).await
    }

    async fn index_words(&self) -> Result<usize, JournalError> {
        let all = self.read(search::unindexed).await?;
        let many = all.len();
        if many > 0 {
            self.submit(|reply| Job::Derived(DerivedJob::Words { all, reply })).await?;
        }
        Ok(many)
    }

    async fn postpone(
        &self,
        session: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError> {
        let identity = session.clone();
        self.submit(|reply| Job::Postpone { identity, version, until, reply }).await
    }

    async fn unused_since(
        &self,
        life: Life,
        since: Time,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.read(move |connection| read::unused_since(connection, life, since, limit)).await
    }

    async fn installation(&self) -> Result<Arc<Installation>, JournalError> {
        if let Some(known) = self.installation.trusted(None) {
            return Ok(known);
        }
        let known = self.installation.clone();
        self.read(move |connection| Ok(known.keep(installation::read(connection)?))).await
    }

    async fn append_installation(
        &self,
        at: Time,
        decide: DecideInstallation,
    ) -> Result<Result<Arc<Installation>, AccountRefusal>, JournalError> {
        let stored = self.submit(|reply| Job::Log(LogJob::Append { at, decide, reply })).await?;
        Ok(stored.map(|installation| self.installation.keep(installation)))
    }

    async fn audit_log(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<InstallationRecorded>, JournalError> {
        self.read(move |connection| installation::events(connection, after, limit)).await
    }

    async fn erase(&self, session: &SessionKey, at: Time) -> Result<bool, JournalError> {
        if erasure(&*self.session(session).await?, at).is_some() {
            self.outputs.remove_all(session).await?;
        }
        let key = session.clone();
        let erased = self.submit(|reply| Job::Log(LogJob::Erase { key, at, reply })).await?;
        let Some(installation) = erased else { return Ok(false) };
        self.installation.keep(installation);
        self.outputs.remove_rest(session).await;
        Ok(true)
    }

    async fn erase_owner(
        &self,
        owner: OwnerId,
        by: &PersonId,
        at: Time,
    ) -> Result<(), JournalError> {
        let by = by.clone();
        let after =
            self.submit(|reply| Job::Log(LogJob::EraseOwner { owner, by, at, reply })).await?;
        self.installation.keep(after);
        Ok(())
    }

    async fn scrub(&self) -> Result<bool, JournalError> {
        self.submit(|reply| Job::Scrub { reply }).await
    }

    async fn take_heads(
        &self,
        at: Time,
        after: i64,
        limit: usize,
    ) -> Result<TakenHeads, JournalError> {
        if !self.read(read::has_untaken).await? {
            return Ok(TakenHeads::default());
        }
        let (taken, installation) =
            self.submit(|reply| Job::Log(LogJob::TakeHeads { at, after, limit, reply })).await?;
        failpoint::hit("audit.after_commit");
        self.installation.keep(installation);
        Ok(taken)
    }

    async fn active(
        &self,
        owner: Option<OwnerId>,
        since: Time,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        let after = after.cloned();
        self.read(move |connection| read::active(connection, owner, since, after.as_ref(), limit))
            .await
    }
}

#[async_trait]
impl Memory for SqliteJournal {
    async fn candidates(
        &self,
        chain: &Chain,
        question: &Question,
        limit: usize,
    ) -> Result<Vec<Candidates>, JournalError> {
        let (chain, question) = (chain.clone(), question.clone());
        self.read(move |connection| memory::candidates(connection, &chain, &question, limit)).await
    }

    async fn item(&self, chain: &Chain, id: MemoryId) -> Result<Option<Item>, JournalError> {
        let chain = chain.clone();
        self.read(move |connection| memory::item(connection, &chain, id)).await
    }

    async fn everything(&self, chain: &Chain, limit: usize) -> Result<Vec<Item>, JournalError> {
        let chain = chain.clone();
        self.read(move |connection| memory::everything(connection, &chain, limit)).await
    }

    async fn elsewhere(&self, chain: &Chain) -> Result<u64, JournalError> {
        let chain = chain.clone();
        self.read(move |connection| memory::elsewhere(connection, &chain)).await
    }
}

#[async_trait]
impl Archive for SqliteJournal {
    async fn keys(
        &self,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, JournalError> {
        let after = after.cloned();
        self.read(move |connection| read::keys(connection, after.as_ref(), limit)).await
    }

    async fn answers(
        &self,
        identity: &SessionKey,
    ) -> Result<BTreeMap<CommandId, KeptAnswer>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::answers(connection, &identity)).await
    }

    async fn outputs(&self, identity: &SessionKey) -> Result<Vec<Digest>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::outputs(connection, &identity)).await
    }

    async fn owners(&self) -> Result<Vec<(PersonId, OwnerId)>, JournalError> {
        self.read(owner::owners).await
    }

    async fn adopt_owner(&self, person: &PersonId, owner: OwnerId) -> Result<bool, JournalError> {
        let name = person.clone();
        self.submit(|reply| Job::Owner(OwnerJob::Adopt { name, owner, reply })).await
    }

    async fn owner_events(&self, owner: OwnerId) -> Result<Vec<OwnerRecorded>, JournalError> {
        self.read(move |connection| owner::events(connection, owner)).await
    }

    async fn restore(&self, mut stream: Stream, append: Append) -> Result<bool, JournalError> {
        let mut outputs = Vec::new();
        let _writing = self.outputs.writing().await;
        for text in std::mem::take(&mut stream.outputs).into_values() {
            let key = stream.key.clone();
            let sealed = self.beside_others(move || SealedOutput::of(&key, &text)).await?;
            outputs.push(self.outputs.take(&stream.key, sealed).await?);
        }
        self.submit(|reply| Job::Restore { whole: Box::new((stream, append, outputs)), reply })
            .await
    }
}

#[derive(Debug)]
struct Readers {
    path: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn of(path: &Path) -> Arc<Self> {
        Arc::new(Self { path: path.to_owned(), idle: Mutex::default() })
    }

    fn with<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let mut connection =
                    Connection::open_with_flags(&self.path, flags).map_err(engine)?;
                plan_once(&connection).map_err(engine)?;
                statement_count::watch(&mut connection).map_err(engine)?;
                connection
            }
        };
        let result = query(&connection);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_MAX {
            idle.push(connection);
        }
        result
    }
}

/// What SQLite says. A value that has not the type of its column, and a file that is not as SQLite wrote it, are corrupt.
fn sqlite(error: rusqlite::Error) -> JournalError {
    let is_type = matches!(
        error,
        rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    );
    let code = error.sqlite_error_code();
    if is_type || matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
        let (what, why) = ("a row of the journal".into(), error.to_string());
        return FormatError::Corrupt { what, why }.into();
    }
    engine(error)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // A row that does not fit on a page takes others besides: of answers that hold a plan of 4 KB, compressed, three fit on one.
    // Only a new database takes this on.
    connection.pragma_update(None, "page_size", 8_192)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // An acknowledgement means that the disk has it.
    let synchronous = if Mutant::SynchronousNormal.is_on() { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // A job that is undone by itself keeps the pages that it changes: in memory, and not in a file for each command.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What is deleted or replaced is overwritten. What an erased session leaves besides is scrubbed.
    connection.pragma_update(None, "secure_delete", !Mutant::LeavesDeleted.is_on())?;
    connection.set_prepared_statement_cache_capacity(64);
    plan_once(connection)
}

/// A statement that was prepared stays as it is. Without this SQLite looks at the values that are bound and prepares a statement
/// again when they changed, which here never leads to another plan.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// The schema. Edited until 0.1.0, and then never again: what comes after it is a migration.
const SCHEMA: &str = include_str!("journal_sqlite/schema.sql");
const SCHEMA_VERSION: u32 = 1;
/// What marks the file as a journal of this form: "PW" and the number of the form.
const APPLICATION_ID: u32 = 0x5057_0000 + DEVELOPMENT_FORM;

#[derive(Debug, PartialEq, Eq)]
enum Schema {
    /// The file is new.
    None,
    /// It is the one that this program writes.
    Known,
}

/// Which schema is there, if this program can use it.
fn schema(connection: &Connection) -> Result<Schema, JournalError> {
    let read = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (application, found): (u32, u32) =
        (read("application_id").map_err(engine)?, read("user_version").map_err(engine)?);
    let sql = "SELECT COUNT(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(engine)?;
    match (application, found) {
        (APPLICATION_ID, SCHEMA_VERSION) => Ok(Schema::Known),
        (APPLICATION_ID, found) => Err(JournalError::NewerSchema { found, known: SCHEMA_VERSION }),
        (0, 0) if tables == 0 => Ok(Schema::None),
        (_, _) => Err(JournalError::DevelopmentData),
    }
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN; {SCHEMA}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    ))
}
