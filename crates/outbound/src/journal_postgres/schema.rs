//! The schema: its versions, and room for the streams to come.

use deadpool_postgres::Object;
use planwright_runtime::ports::journal::JournalError;

use crate::journal::engine;

/// The schema's versions, oldest first. A version is never changed once it was released.
const MIGRATIONS: [&str; 3] = [
    include_str!("0001_journal.sql"),
    include_str!("0002_outputs.sql"),
    include_str!("0003_owners.sql"),
];
/// Nodes that start at once migrate one after the other.
const MIGRATION_LOCK: i64 = 0x706c_616e;
/// How many streams one partition holds.
const STREAMS_PER_PARTITION: i64 = 262_144;
/// How many partitions are kept ahead of the newest stream.
const AHEAD: i64 = 2;

pub(super) async fn migrate(client: &mut Object) -> Result<(), JournalError> {
    let transaction = client.transaction().await.map_err(engine)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(engine)?;
    let begin = "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)";
    transaction.batch_execute(begin).await.map_err(engine)?;
    let row = transaction
        .query_one("SELECT COALESCE(MAX(version), 0) FROM migrations", &[])
        .await
        .map_err(engine)?;
    let done: i32 = row.get(0);
    for (version, migration) in (1_i32..).zip(MIGRATIONS).skip(done.cast_unsigned() as usize) {
        transaction.batch_execute(migration).await.map_err(engine)?;
        transaction
            .execute("INSERT INTO migrations (version) VALUES ($1)", &[&version])
            .await
            .map_err(engine)?;
    }
    transaction.commit().await.map_err(engine)?;
    make_room(client).await
}

/// Makes the partitions that the next streams will need.
pub(super) async fn make_room(client: &mut Object) -> Result<(), JournalError> {
    let row =
        client.query_one("SELECT COALESCE(MAX(id), 0) FROM streams", &[]).await.map_err(engine)?;
    let newest = row.get::<_, i64>(0) / STREAMS_PER_PARTITION;
    let last = format!("outputs_{}", newest + AHEAD);
    let row =
        client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&last]).await.map_err(engine)?;
    if row.get(0) {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(engine)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(engine)?;
    for at in newest..=newest + AHEAD {
        let (from, to) = (at * STREAMS_PER_PARTITION, (at + 1) * STREAMS_PER_PARTITION);
        for table in ["events", "answers", "outputs"] {
            let sql = format!(
                "CREATE TABLE IF NOT EXISTS {table}_{at} PARTITION OF {table} FOR VALUES FROM ({from}) TO ({to})"
            );
            transaction.batch_execute(&sql).await.map_err(engine)?;
        }
    }
    transaction.commit().await.map_err(engine)
}
