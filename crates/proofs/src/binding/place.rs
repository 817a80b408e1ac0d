//! Where the templates lie, and how one of them is changed at rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use fastrand::Rng;
use planwright_domain::{identity::SessionKey, plan::Strategy};
use planwright_outbound::{journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal};
use planwright_runtime::ports::memory::Store;
use planwright_testkit::people::ada_key;
use planwright_testkit::{scratch, servers::Postgres};
use tokio_postgres::NoTls;

use super::{
    change::{Change, Stored},
    template,
};
use crate::staged::talk;

const STRATEGIES: [Strategy; 2] = [Strategy::Collect, Strategy::Document];
const KINDS: [&str; 2] = ["revision_added", "plan_approved"];
/// How many sessions there are in the database: each is used once, then all are put back.
const SESSIONS: usize = 128;

/// Where the templates lie.
#[async_trait]
pub(super) trait Place {
    fn name(&self) -> &'static str;

    /// How many there are.
    fn templates(&self) -> usize;

    /// The one to be changed next.
    fn any(&mut self, rng: &mut Rng) -> usize;

    /// An event of a template, as it was recorded.
    fn event(&self, template: usize, kind: &'static str) -> anyhow::Result<Stored>;

    /// The journal as a process finds it that has just started, with this changed in it.
    async fn changed(
        &mut self,
        template: usize,
        change: Option<&Change>,
    ) -> anyhow::Result<(Arc<dyn Store>, SessionKey)>;
}

/// One file for each template, and one for each case.
pub(super) struct SqlitePlace {
    home: tempfile::TempDir,
    files: Vec<PathBuf>,
    identity: SessionKey,
    cases: u64,
}

impl SqlitePlace {
    pub(super) async fn new() -> anyhow::Result<Self> {
        let home = scratch::directory_in_memory("binding")?;
        let (identity, mut files) = (talk("binding-01"), Vec::new());
        for strategy in STRATEGIES {
            let file = home.path().join(format!("{}.sqlite", strategy.name()));
            template(Arc::new(SqliteJournal::open(&file)?), &identity, strategy).await?;
            // All of it in one file.
            checkpoint(&rusqlite::Connection::open(&file)?)?;
            files.push(file);
        }
        Ok(Self { home, files, identity, cases: 0 })
    }
}

/// All that was written is in the one file.
fn checkpoint(connection: &rusqlite::Connection) -> anyhow::Result<()> {
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy: bool = connection.query_row(sql, [], |row| row.get(0))?;
    anyhow::ensure!(!busy, "the checkpoint could not be finished");
    Ok(())
}

#[async_trait]
impl Place for SqlitePlace {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn templates(&self) -> usize {
        self.files.len()
    }

    fn any(&mut self, rng: &mut Rng) -> usize {
        rng.usize(0..self.files.len())
    }

    fn event(&self, template: usize, kind: &'static str) -> anyhow::Result<Stored> {
        let connection = rusqlite::Connection::open(&self.files[template])?;
        let sql = "SELECT seq, at, body FROM events WHERE kind = ?1";
        let row =
            connection.query_row(sql, [kind], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Stored::read(self.identity.to_string(), kind, row)
    }

    async fn changed(
        &mut self,
        template: usize,
        change: Option<&Change>,
    ) -> anyhow::Result<(Arc<dyn Store>, SessionKey)> {
        // A name is used once: a journal that closes late removes what lies beside its own file, by name.
        let beside = ["", "-wal", "-shm"].map(|end| format!("case-{}.sqlite{end}", self.cases));
        for name in beside {
            let _ = fs::remove_file(self.home.path().join(name));
        }
        self.cases += 1;
        let file = self.home.path().join(format!("case-{}.sqlite", self.cases));
        fs::copy(&self.files[template], &file)?;
        if let Some(change) = change {
            let connection = rusqlite::Connection::open(&file)?;
            let sql = "UPDATE events SET body = ?1 WHERE kind = ?2";
            let body = change.body(&self.event(template, change.kind)?)?;
            let changed = connection.execute(sql, rusqlite::params![body, change.kind])?;
            anyhow::ensure!(changed == 1, "{changed} events of the kind {}", change.kind);
            checkpoint(&connection)?;
        }
        Ok((Arc::new(SqliteJournal::open(&file)?), self.identity.clone()))
    }
}

/// Many sessions in one database, and a copy of how they were.
pub(super) struct PostgresPlace {
    server: Postgres,
    client: tokio_postgres::Client,
    events: BTreeMap<(usize, &'static str), Stored>,
    journal: Arc<dyn Store>,
    used: BTreeSet<usize>,
    last: usize,
}

impl PostgresPlace {
    pub(super) async fn new() -> anyhow::Result<Self> {
        let server = Postgres::start();
        let journal: Arc<dyn Store> = Arc::new(PostgresJournal::open(&server.address()).await?);
        let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await?;
        tokio::spawn(connection);
        for at in 0..SESSIONS {
            template(journal.clone(), &key(at), STRATEGIES[at % 2]).await?;
        }
        for table in ["streams", "due", "events", "answers"] {
            client.batch_execute(&format!("CREATE TABLE {table}_was AS TABLE {table}")).await?;
        }
        let sql =
            "SELECT identity, kind, seq, at, body FROM streams_was JOIN events_was ON stream = id";
        let mut stored = BTreeMap::new();
        for row in client.query(sql, &[]).await? {
            let (identity, kind): (String, String) = (row.get(0), row.get(1));
            let row = (row.get(2), row.get(3), row.get(4));
            let event = Stored::read(ada_key(&identity)?.to_string(), &kind, row)?;
            stored.insert((identity, kind), event);
        }
        let mut events = BTreeMap::new();
        for at in 0..SESSIONS {
            for kind in KINDS {
                let event = stored.remove(&(key(at).identity.to_string(), kind.to_owned()));
                events.insert((at, kind), event.context("an event")?);
            }
        }
        Ok(Self { server, client, events, journal, used: (0..SESSIONS).collect(), last: 0 })
    }

    /// Puts everything back, and forgets what a process would know.
    async fn put_back(&mut self) -> anyhow::Result<()> {
        let sql = "BEGIN; TRUNCATE events, answers, decisions, due, uncounted, unindexed; DELETE FROM streams;
                   INSERT INTO streams OVERRIDING SYSTEM VALUE SELECT * FROM streams_was;
                   INSERT INTO due SELECT * FROM due_was;
                   INSERT INTO events SELECT * FROM events_was;
                   INSERT INTO answers SELECT * FROM answers_was; COMMIT";
        self.client.batch_execute(sql).await?;
        self.journal = Arc::new(PostgresJournal::open(&self.server.address()).await?);
        self.used.clear();
        Ok(())
    }
}

fn key(at: usize) -> SessionKey {
    talk(&format!("binding-{at:04}"))
}

#[async_trait]
impl Place for PostgresPlace {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn templates(&self) -> usize {
        SESSIONS
    }

    fn any(&mut self, _: &mut Rng) -> usize {
        self.last = (self.last + 1) % SESSIONS;
        self.last
    }

    fn event(&self, template: usize, kind: &'static str) -> anyhow::Result<Stored> {
        self.events.get(&(template, kind)).cloned().context("an event")
    }

    async fn changed(
        &mut self,
        template: usize,
        change: Option<&Change>,
    ) -> anyhow::Result<(Arc<dyn Store>, SessionKey)> {
        if !self.used.insert(template) {
            self.put_back().await?;
            self.used.insert(template);
        }
        let identity = key(template);
        if let Some(change) = change {
            let sql = "UPDATE events SET body = $1
                       WHERE stream = (SELECT id FROM streams WHERE identity = $2) AND kind = $3";
            let body = change.body(&self.event(template, change.kind)?)?;
            let session = identity.identity.to_string();
            let changed = self.client.execute(sql, &[&body, &session, &change.kind]).await?;
            anyhow::ensure!(changed == 1, "{changed} events of the kind {}", change.kind);
        }
        Ok((self.journal.clone(), identity))
    }
}
