//! A journal beside the one that nodes use, which takes its place once it is whole.

use planwright_runtime::ports::journal::JournalError;

use super::{PostgresJournal, schema};
use crate::{
    journal::engine,
    postgres::{connection, pool_in},
};

/// The schema in which it is built.
const STAGED: &str = "planwright_import";
/// What takes its place: everything that belongs to sessions and owners. Who uses the installation stays.
const MOVED: [&str; 15] = [
    "streams",
    "due",
    "uncounted",
    "unindexed",
    "snapshots",
    "events",
    "decisions",
    "answers",
    "views",
    "said_words",
    "outputs",
    "owners",
    "owner_events",
    "memory",
    "memory_scopes",
];

impl PostgresJournal {
    /// An empty journal beside this one, at the same address. What one that was given up left is gone.
    pub async fn stage(&self, address: &str) -> Result<Self, JournalError> {
        self.unstage().await?;
        let made = format!("CREATE SCHEMA {STAGED}");
        connection(&self.pool).await?.batch_execute(&made).await.map_err(engine)?;
        let pool = pool_in(address, STAGED)?;
        schema::migrate(&mut connection(&pool).await?).await?;
        let staged = Self { outputs: self.outputs.clone(), ..Self::over(pool)? };
        staged.write_up_to(self.level());
        Ok(staged)
    }

    /// Removes what was staged.
    pub async fn unstage(&self) -> Result<(), JournalError> {
        // Statements that are sent together are one transaction.
        let dropped =
            format!("SET LOCAL statement_timeout = 0; DROP SCHEMA IF EXISTS {STAGED} CASCADE");
        connection(&self.pool).await?.batch_execute(&dropped).await.map_err(engine)
    }

    /// Puts what was staged in the place of what is here, in one transaction. Nothing may be kept warm of either.
    pub async fn put_staged_in_place(self) -> Result<(), JournalError> {
        let mut client = connection(&self.pool).await?;
        let transaction = client.transaction().await.map_err(engine)?;
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await.map_err(engine)?;
        let sql = "SELECT current_schema()";
        let here: String = transaction.query_one(sql, &[]).await.map_err(engine)?.get(0);
        let here = format!("\"{}\"", here.replace('"', "\"\""));
        for table in MOVED.iter().rev() {
            let dropped = format!("DROP TABLE {here}.{table} CASCADE");
            transaction.batch_execute(&dropped).await.map_err(engine)?;
        }
        // Partitions are tables of their own, and do not come with what they are parts of.
        let sql = "SELECT quote_ident(relname) FROM pg_class
                   WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p')
                   AND NOT relname = ANY (SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema())";
        for row in transaction.query(sql, &[&STAGED]).await.map_err(engine)? {
            let table: String = row.get(0);
            let moved = format!("ALTER TABLE {STAGED}.{table} SET SCHEMA {here}");
            transaction.batch_execute(&moved).await.map_err(engine)?;
        }
        let dropped = format!("DROP SCHEMA {STAGED} CASCADE");
        transaction.batch_execute(&dropped).await.map_err(engine)?;
        transaction.commit().await.map_err(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::MOVED;

    /// What belongs to the installation and its nodes.
    const STAYS: [&str; 8] = [
        "agreed",
        "erased",
        "grants",
        "installation_events",
        "installation_state",
        "nodes",
        "passphrases",
        "tickets",
    ];

    #[test]
    fn every_table_takes_the_place_of_the_one_that_is_there_or_belongs_to_the_installation() {
        let mut known: Vec<_> = MOVED.into_iter().chain(STAYS).collect();
        known.sort_unstable();
        let words = include_str!("schema.sql").split("TABLE ").skip(1);
        let mut there: Vec<_> = words.filter_map(|rest| rest.split(' ').next()).collect();
        there.sort_unstable();
        there.dedup();
        assert_eq!(known, there);
    }
}
