//! Erasing sessions: the rows in one transaction, then what is left of them in the files.

use planwright_domain::{
    digest::Digest,
    id::OwnerId,
    identity::SessionKey,
    log::{Erased, beginning},
};
use planwright_runtime::{failpoint::Mutant, ports::journal::JournalError};
use rusqlite::{Connection, params};

use super::sqlite;

/// Removes every row of a stream whose use was counted, and keeps that it was there. Its memory went when it was deleted.
pub(super) fn rows(
    connection: &Connection,
    stream: i64,
    erased: &Erased,
) -> Result<(), JournalError> {
    for sql in [
        "UPDATE owners SET bytes = bytes - (SELECT counted_bytes FROM streams WHERE id = ?1)
         WHERE id = (SELECT owner FROM streams WHERE id = ?1)",
        "DELETE FROM unindexed WHERE stream = ?1 AND owner = (SELECT owner FROM streams WHERE id = ?1)",
        "DELETE FROM decisions WHERE event BETWEEN ?1 << 32 AND ?1 << 32 | 0xFFFFFFFF",
        "DELETE FROM said_words WHERE rowid BETWEEN ?1 << 32 AND ?1 << 32 | 0xFFFFFFFF",
        "DELETE FROM snapshots WHERE stream = ?1",
        "DELETE FROM views WHERE stream = ?1",
        "DELETE FROM outputs WHERE stream = ?1",
        "DELETE FROM answers WHERE stream = ?1",
        "DELETE FROM events WHERE id BETWEEN ?1 << 32 AND ?1 << 32 | 0xFFFFFFFF",
        "DELETE FROM streams WHERE id = ?1",
    ] {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute([stream]).map_err(sqlite)?;
    }
    let sql = "INSERT OR REPLACE INTO erased (session, scrub) VALUES (?1, 'pages')";
    connection.execute(sql, params![erased.of.session.0]).map_err(sqlite)?;
    Ok(())
}

/// Removes what belongs to an owner beside their sessions: the person stays known by name.
pub(super) fn owner_rows(connection: &Connection, owner: OwnerId) -> Result<(), JournalError> {
    for sql in [
        "DELETE FROM memory_words WHERE rowid IN (SELECT memory.id FROM memory JOIN memory_scopes
         ON memory.scope = memory_scopes.id WHERE memory_scopes.owner = ?1)",
        "DELETE FROM memory WHERE scope IN (SELECT id FROM memory_scopes WHERE owner = ?1)",
        "DELETE FROM memory_scopes WHERE owner = ?1",
        "DELETE FROM owner_events WHERE owner = ?1",
        "UPDATE owners SET version = 0, fold_version = 0, state = NULL WHERE id = ?1",
    ] {
        connection.execute(sql, [owner.0.as_bytes()]).map_err(sqlite)?;
    }
    // No session begins so: only that there is something to scrub.
    let sql = "INSERT OR REPLACE INTO erased (session, scrub) VALUES (?1, 'pages')";
    connection.execute(sql, [Digest::of(owner.0.as_bytes()).0]).map_err(sqlite)?;
    Ok(())
}

/// Whether a session with this key was erased.
pub(super) fn is_erased(connection: &Connection, key: &SessionKey) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM erased WHERE session = ?1)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.query_row([beginning(key).0], |row| row.get(0)).map_err(sqlite)
}

/// Takes what was erased out of the index of words, the pages of the file and the log beside it, which must not be in a
/// transaction. Whether nothing is left: a reader may hold the log for a moment.
///
/// Rows that are deleted are overwritten, but a row that once moved from one page to another leaves a copy in the unused part of
/// the first: the file is written anew.
pub(super) fn scrub(connection: &Connection) -> Result<bool, JournalError> {
    let all = |sql: &str| connection.execute_batch(sql).map_err(sqlite);
    let is_any = |which: &str| {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM erased WHERE scrub = '{which}')");
        connection.query_row(&sql, [], |row| row.get::<_, bool>(0)).map_err(sqlite)
    };
    if is_any("pages")? {
        // Words that were taken out stay in the index until its parts are merged. What is written anew is kept in a file
        // meanwhile, as it may be large.
        all("INSERT INTO memory_words (memory_words) VALUES ('optimize');
             INSERT INTO said_words (said_words) VALUES ('optimize'); PRAGMA temp_store = FILE")?;
        let written = if Mutant::LeavesDeleted.is_on() { Ok(()) } else { all("VACUUM") };
        all("PRAGMA temp_store = MEMORY")?;
        written?;
        all("UPDATE erased SET scrub = 'log' WHERE scrub = 'pages'")?;
    }
    if is_any("log")? {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy: bool =
            connection.query_row(checkpoint, [], |row| row.get(0)).map_err(sqlite)?;
        if is_busy {
            return Ok(false);
        }
        all("UPDATE erased SET scrub = 'done' WHERE scrub = 'log'")?;
    }
    Ok(true)
}
