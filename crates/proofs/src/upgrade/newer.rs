//! A database that a newer program has changed is refused in words, and left as it is.

use planwright_outbound::{journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal};
use planwright_runtime::ports::journal::JournalError;
use planwright_testkit::{scratch, servers::Postgres};

/// The engines that refuse it.
pub(super) async fn prove() -> anyhow::Result<[&'static str; 2]> {
    let home = scratch::directory("newer")?;
    let file = home.path().join("journal.sqlite");
    drop(SqliteJournal::open(&file)?);
    rusqlite::Connection::open(&file)?.pragma_update(None, "user_version", 99)?;
    refused(SqliteJournal::open(&file).map(drop))?;
    let server = Postgres::start();
    drop(PostgresJournal::open(&server.address()).await?);
    let _ = server.psql("UPDATE planwright_schema SET version = 99");
    refused(PostgresJournal::open(&server.address()).await.map(drop))?;
    Ok(["SQLite", "PostgreSQL"])
}

fn refused(opened: Result<(), JournalError>) -> anyhow::Result<()> {
    match opened {
        Err(JournalError::NewerSchema { found: 99, .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => anyhow::bail!("a newer schema was opened"),
    }
}
