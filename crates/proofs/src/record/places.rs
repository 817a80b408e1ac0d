//! Empty journals on both engines, one after the other.

use std::{fs, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use planwright_outbound::{journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal};
use planwright_runtime::ports::journal::Archive;
use planwright_testkit::{scratch, servers::Postgres};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Where journals are.
#[async_trait]
pub(super) trait Place {
    fn name(&self) -> &'static str;

    /// A journal without anything, as a process finds it that has just started. The one before is gone.
    async fn empty(&mut self) -> anyhow::Result<Arc<dyn Archive>>;
}

pub(super) struct OnSqlite {
    home: TempDir,
    template: PathBuf,
    many: u64,
}

impl OnSqlite {
    pub(super) fn new() -> anyhow::Result<Self> {
        let home = scratch::directory("record")?;
        let template = home.path().join("template.sqlite");
        drop(SqliteJournal::open(&home.path().join("first.sqlite"))?);
        let first = rusqlite::Connection::open(home.path().join("first.sqlite"))?;
        first.execute("VACUUM INTO ?1", [template.display().to_string()])?;
        Ok(Self { home, template, many: 0 })
    }
}

#[async_trait]
impl Place for OnSqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    async fn empty(&mut self) -> anyhow::Result<Arc<dyn Archive>> {
        self.many += 1;
        let directory = self.home.path().join(self.many.to_string());
        let _ = fs::remove_dir_all(self.home.path().join((self.many - 1).to_string()));
        fs::create_dir(&directory)?;
        fs::copy(&self.template, directory.join("journal.sqlite"))?;
        Ok(Arc::new(SqliteJournal::open(&directory.join("journal.sqlite"))?))
    }
}

pub(super) struct OnPostgres {
    server: Postgres,
    client: Client,
}

impl OnPostgres {
    pub(super) async fn new() -> anyhow::Result<Self> {
        let server = Postgres::start();
        let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await?;
        tokio::spawn(connection);
        drop(PostgresJournal::open(&server.address()).await?);
        Ok(Self { server, client })
    }
}

#[async_trait]
impl Place for OnPostgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    async fn empty(&mut self) -> anyhow::Result<Arc<dyn Archive>> {
        let tables = "streams, events, decisions, answers, installation_events, installation_state";
        self.client.batch_execute(&format!("TRUNCATE {tables} CASCADE")).await?;
        Ok(Arc::new(PostgresJournal::open(&self.server.address()).await?))
    }
}
