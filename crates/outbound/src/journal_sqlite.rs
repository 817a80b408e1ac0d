//! The journal on SQLite: one writer thread that commits in groups, and a few readers.
//!
//! Every append that waits while a commit is under way joins the next one, so many clients share
//! one fsync. The writer also keeps folded sessions warm; this process owns the file, so what is
//! warm is what is stored.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, MemoryId, Seq},
    identity::{ChannelType, SessionIdentity},
    memory::{Chain, Item, rank::Candidates},
    owner::Owner,
    refusal::Refusal,
    session::Session,
    time::Time,
};
use planwright_runtime::ports::{
    journal::{
        Answer, Append, Archive, BackedOff, Decide, DecideOwner, DueRow, Journal, JournalError,
        OwnerRecorded, Recorded, SessionRow, Stream,
    },
    memory::Memory,
};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{mpsc, oneshot};

mod memory;
mod owner;
mod read;
mod write;

use write::{Job, Writer};

use crate::journal::{engine, warm::Warm};

/// How many appends may wait for the writer.
const WRITES_MAX: usize = 1_024;
/// How many readers are kept open.
const READERS_MAX: usize = 4;

/// The journal on SQLite.
#[derive(Debug)]
pub struct SqliteJournal {
    jobs: mpsc::Sender<Job>,
    readers: Arc<Readers>,
    warm: Arc<Mutex<Warm>>,
}

impl SqliteJournal {
    /// Opens the journal in this file, or makes it.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let connection = Connection::open(path).map_err(engine)?;
        configure(&connection).map_err(engine)?;
        migrate(&connection).map_err(engine)?;
        let warm = Arc::new(Mutex::new(Warm::default()));
        let (jobs, receiver) = mpsc::channel(WRITES_MAX);
        let writer = Writer::new(connection, warm.clone()).map_err(engine)?;
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || writer.run(receiver))
            .map_err(engine)?;
        let readers = Arc::new(Readers { path: path.to_owned(), idle: Mutex::default() });
        Ok(Self { jobs, readers, warm })
    }

    async fn submit<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, JournalError>>) -> Job,
    ) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| JournalError::Closed)?;
        answer.await.map_err(|_| JournalError::Closed)?
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let readers = self.readers.clone();
        tokio::task::spawn_blocking(move || readers.with(query)).await.map_err(engine)?
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(
        &self,
        identity: &SessionIdentity,
        command: CommandId,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError> {
        let identity = identity.clone();
        self.submit(|reply| Job::Append { identity, command, at, decide, reply }).await
    }

    async fn session(&self, identity: &SessionIdentity) -> Result<Arc<Session>, JournalError> {
        if let Some(session) =
            self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity)
        {
            return Ok(session);
        }
        let identity = identity.clone();
        self.read(move |connection| {
            let (session, _) = read::session(connection, &identity)?;
            Ok(Arc::new(session))
        })
        .await
    }

    async fn events(
        &self,
        identity: &SessionIdentity,
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

    async fn keep_output(
        &self,
        identity: &SessionIdentity,
        text: &str,
    ) -> Result<Digest, JournalError> {
        let (identity, digest, text) =
            (identity.clone(), Digest::of(text.as_bytes()), text.to_owned());
        self.submit(|reply| Job::KeepOutput { identity, digest, text, reply }).await?;
        Ok(digest)
    }

    async fn output(
        &self,
        identity: &SessionIdentity,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::output(connection, &identity, digest)).await
    }

    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.read(move |connection| read::due(connection, by, limit)).await
    }

    async fn back_off(
        &self,
        identity: &SessionIdentity,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        let (identity, why) = (identity.clone(), why.to_owned());
        self.submit(|reply| Job::BackOff { identity, now, why, reply }).await
    }

    async fn unpark(&self, identity: &SessionIdentity, now: Time) -> Result<(), JournalError> {
        let identity = identity.clone();
        self.submit(|reply| Job::Unpark { identity, now, reply }).await
    }

    async fn sessions(
        &self,
        owner: Option<&PersonId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        let owner = owner.cloned();
        self.read(move |connection| read::sessions(connection, owner.as_ref(), limit)).await
    }

    async fn planning(&self) -> Result<u64, JournalError> {
        self.read(read::planning).await
    }

    async fn newest(
        &self,
        owner: &PersonId,
        channel: ChannelType,
    ) -> Result<Option<SessionIdentity>, JournalError> {
        let owner = owner.clone();
        self.read(move |connection| read::newest(connection, &owner, channel)).await
    }

    async fn owner(&self, owner: &PersonId) -> Result<Owner, JournalError> {
        let owner = owner.clone();
        self.read(move |connection| owner::read(connection, &owner)).await
    }

    async fn append_owner(
        &self,
        owner: &PersonId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        let owner = owner.clone();
        self.submit(|reply| Job::AppendOwner { owner, at, decide, reply }).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError> {
        self.read(move |connection| read::waiting(connection, limit)).await
    }
}

#[async_trait]
impl Memory for SqliteJournal {
    async fn candidates(
        &self,
        chain: &Chain,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<Candidates>, JournalError> {
        let (chain, words) = (chain.clone(), words.to_vec());
        self.read(move |connection| memory::candidates(connection, &chain, &words, limit)).await
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
    async fn identities(
        &self,
        after: Option<&SessionIdentity>,
        limit: usize,
    ) -> Result<Vec<SessionIdentity>, JournalError> {
        let after = after.map(ToString::to_string).unwrap_or_default();
        self.read(move |connection| read::identities(connection, &after, limit)).await
    }

    async fn answers(
        &self,
        identity: &SessionIdentity,
    ) -> Result<BTreeMap<CommandId, Answer>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::answers(connection, &identity)).await
    }

    async fn outputs(&self, identity: &SessionIdentity) -> Result<Vec<Digest>, JournalError> {
        let identity = identity.clone();
        self.read(move |connection| read::outputs(connection, &identity)).await
    }

    async fn owners(&self) -> Result<Vec<PersonId>, JournalError> {
        self.read(owner::owners).await
    }

    async fn owner_events(&self, owner: &PersonId) -> Result<Vec<OwnerRecorded>, JournalError> {
        let owner = owner.clone();
        self.read(move |connection| owner::events(connection, &owner)).await
    }

    async fn restore(&self, stream: Stream, append: Append) -> Result<bool, JournalError> {
        self.submit(|reply| Job::Restore { whole: Box::new((stream, append)), reply }).await
    }
}

#[derive(Debug)]
struct Readers {
    path: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn with<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                Connection::open_with_flags(&self.path, flags).map_err(engine)?
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

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // A row that is longer than a quarter of a page takes a page of its own besides: an answer that holds a plan of
    // 4 KB, compressed, is just longer than that on the default page. Only a new database takes this on.
    connection.pragma_update(None, "page_size", 8_192)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // An acknowledgement means that the disk has it.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The schema's versions, oldest first. A version is never changed once it was released.
const MIGRATIONS: [&str; 3] = [
    include_str!("journal_sqlite/0001_journal.sql"),
    include_str!("journal_sqlite/0002_outputs.sql"),
    include_str!("journal_sqlite/0003_owners.sql"),
];

fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    let done: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (at, migration) in MIGRATIONS.iter().enumerate().skip(done as usize) {
        connection.execute_batch(&format!(
            "BEGIN; {migration}; PRAGMA user_version = {}; COMMIT;",
            at + 1
        ))?;
    }
    Ok(())
}
