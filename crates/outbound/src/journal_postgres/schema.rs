//! The schema.

use deadpool_postgres::Object;
use planwright_format::DEVELOPMENT_FORM;
use planwright_runtime::ports::journal::JournalError;

use crate::journal::engine;

/// The schema. Edited until 0.1.0, and then never again: what comes after it is a migration.
const SCHEMA: &str = include_str!("schema.sql");
const SCHEMA_VERSION: i32 = 1;
/// Nodes that start at once migrate one after the other.
const MIGRATION_LOCK: i64 = 0x706c_616e;
/// The tables that are kept in parts.
const PARTITIONED: [&str; 3] = ["events", "answers", "outputs"];
/// In how many: fixed at birth, as each row is where the hash of its stream says.
const PARTITIONS: u32 = 64;

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
            transaction.batch_execute(&partitions()).await.map_err(engine)?;
            let sql =
                "CREATE TABLE planwright_schema (version INTEGER NOT NULL, form INTEGER NOT NULL)";
            transaction.batch_execute(sql).await.map_err(engine)?;
            let sql = "INSERT INTO planwright_schema (version, form) VALUES ($1, $2)";
            let form = DEVELOPMENT_FORM.cast_signed();
            transaction.execute(sql, &[&SCHEMA_VERSION, &form]).await.map_err(engine)?;
        }
    }
    transaction.commit().await.map_err(engine)
}

fn partitions() -> String {
    let part = |table: &str, part: u32| {
        format!(
            "CREATE TABLE {table}_{part} PARTITION OF {table} FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part});"
        )
    };
    PARTITIONED.iter().flat_map(|table| (0..PARTITIONS).map(|at| part(table, at))).collect()
}
