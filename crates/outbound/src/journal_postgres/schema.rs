//! The schema, and room for the streams to come.

use deadpool_postgres::Object;
use planwright_format::DEVELOPMENT_FORM;
use planwright_runtime::ports::journal::JournalError;

use crate::journal::engine;

/// The schema. Edited until 0.1.0, and then never again: what comes after it is a migration.
const SCHEMA: &str = include_str!("schema.sql");
const SCHEMA_VERSION: i32 = 1;
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
    let sql =
        "SELECT to_regclass('planwright_schema') IS NOT NULL, to_regclass('streams') IS NOT NULL";
    let row = transaction.query_one(sql, &[]).await.map_err(engine)?;
    match (row.get(0), row.get(1)) {
        // The tables as they were before the first release: nothing says which they are.
        (false, true) => return Err(JournalError::DevelopmentData),
        (true, _) => {
            let sql = "SELECT version, form FROM planwright_schema";
            let row = transaction.query_one(sql, &[]).await.map_err(engine)?;
            let (found, form): (i32, i32) = (row.get(0), row.get(1));
            if form.cast_unsigned() != DEVELOPMENT_FORM {
                return Err(JournalError::DevelopmentData);
            }
            if found != SCHEMA_VERSION {
                let (found, known) = (found.cast_unsigned(), SCHEMA_VERSION.cast_unsigned());
                return Err(JournalError::NewerSchema { found, known });
            }
        }
        (false, false) => {
            transaction.batch_execute(SCHEMA).await.map_err(engine)?;
            let sql =
                "CREATE TABLE planwright_schema (version INTEGER NOT NULL, form INTEGER NOT NULL)";
            transaction.batch_execute(sql).await.map_err(engine)?;
            let sql = "INSERT INTO planwright_schema (version, form) VALUES ($1, $2)";
            let form = DEVELOPMENT_FORM.cast_signed();
            transaction.execute(sql, &[&SCHEMA_VERSION, &form]).await.map_err(engine)?;
        }
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
