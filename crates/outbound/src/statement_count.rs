//! How many statements the databases were asked: for measurements. Nothing is counted, and nothing costs anything, before
//! somebody wants it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};

/// What begins and ends transactions, or parts of them, asks nothing.
const IN_TRANSACTIONS: [&str; 5] = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"];

/// What an index of words asks for itself while a statement runs is traced as a comment.
const NESTED: &str = "--";

static WANTED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Counts from now on: on SQLite, over the connections that are opened from now on.
pub fn want() {
    WANTED.store(true, Ordering::SeqCst);
}

/// How many were asked since.
#[must_use]
pub fn count() -> u64 {
    COUNT.load(Ordering::SeqCst)
}

/// One more was asked.
#[cfg(feature = "cluster")]
pub(crate) fn add() {
    if WANTED.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts what is asked over this connection, if somebody wants it.
pub(crate) fn watch(connection: &mut Connection) -> rusqlite::Result<()> {
    if !WANTED.load(Ordering::SeqCst) {
        return Ok(());
    }
    let add = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, sql) = event
            && !IN_TRANSACTIONS.iter().any(|begins| sql.starts_with(begins))
            && !sql.starts_with(NESTED)
        {
            COUNT.fetch_add(1, Ordering::SeqCst);
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(add))
}
