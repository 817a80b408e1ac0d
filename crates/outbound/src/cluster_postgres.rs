//! What the nodes of a cluster know of each other, and what they agreed on.

use deadpool_postgres::Pool;
use planwright_domain::time::Time;
use planwright_runtime::ports::journal::JournalError;

use crate::{
    journal::engine,
    postgres::{agree, agreed, connection},
};

/// A node that was not heard of for so long does not run.
const ALIVE_MICROS: i64 = 10_000_000;
/// What all nodes agree on under this name is the level of events that may be written.
const LEVEL: &str = "event_level";

/// A node, as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// When it was last heard of.
    pub seen: Time,
    /// The version of its program.
    pub version: String,
    /// The highest level of events that it knows.
    pub level: u32,
}

/// The nodes of a cluster.
#[derive(Debug, Clone)]
pub struct PostgresNodes {
    pool: Pool,
}

/// Why a level is not turned on. The operator reads this.
#[derive(Debug, thiserror::Error)]
pub enum FinalizeError {
    /// Some node does not know it.
    #[error(
        "nothing was turned on: {name} runs version {version}, which knows events up to level {level}, and the new level is {wanted}; upgrade it, or stop it and wait ten seconds"
    )]
    Behind {
        /// The node.
        name: String,
        /// Its version.
        version: String,
        /// What it knows.
        level: u32,
        /// What was asked for.
        wanted: u32,
    },
    /// The database failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl PostgresNodes {
    /// The nodes behind these connections.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Says that this node runs.
    pub async fn beat(&self, node: &NodeRow) -> Result<(), JournalError> {
        let sql = "INSERT INTO nodes (name, seen_at, version, level) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at,
                   version = excluded.version, level = excluded.level";
        let client = connection(&self.pool).await?;
        let level = node.level.cast_signed();
        client
            .execute(sql, &[&node.name, &node.seen.0, &node.version, &level])
            .await
            .map(drop)
            .map_err(engine)
    }

    /// Says that this node is gone.
    pub async fn leave(&self, name: &str) -> Result<(), JournalError> {
        let client = connection(&self.pool).await?;
        client
            .execute("DELETE FROM nodes WHERE name = $1", &[&name])
            .await
            .map(drop)
            .map_err(engine)
    }

    /// The nodes that run.
    pub async fn alive(&self, now: Time) -> Result<Vec<NodeRow>, JournalError> {
        let sql =
            "SELECT name, seen_at, version, level FROM nodes WHERE seen_at > $1 ORDER BY name";
        let rows = connection(&self.pool)
            .await?
            .query(sql, &[&(now.0 - ALIVE_MICROS)])
            .await
            .map_err(engine)?;
        let node = |row: &tokio_postgres::Row| NodeRow {
            name: row.get(0),
            seen: Time(row.get(1)),
            version: row.get(2),
            level: row.get::<_, i32>(3).cast_unsigned(),
        };
        Ok(rows.iter().map(node).collect())
    }

    /// The level of events that may be written: the first, until it is raised.
    pub async fn level(&self) -> Result<u32, JournalError> {
        let level = agreed(&self.pool, LEVEL).await?;
        Ok(level.and_then(|level| level.parse().ok()).unwrap_or(1))
    }

    /// Lets events of this level be written, if every node that runs knows them.
    pub async fn finalize(&self, wanted: u32, now: Time) -> Result<(), FinalizeError> {
        if let Some(behind) = self.alive(now).await?.into_iter().find(|node| node.level < wanted) {
            let NodeRow { name, version, level, .. } = behind;
            return Err(FinalizeError::Behind { name, version, level, wanted });
        }
        let level = self.level().await?.max(wanted);
        Ok(agree(&self.pool, LEVEL, &level.to_string()).await?)
    }
}
