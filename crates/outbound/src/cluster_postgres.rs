//! What the nodes of a cluster know of each other, and what they agreed on.

use std::time::Duration;

use deadpool_postgres::Pool;
use planwright_domain::{
    id::OwnerId,
    identity::{SessionIdentity, SessionKey},
    time::Time,
};
use planwright_runtime::ports::journal::JournalError;

use crate::{
    journal::engine,
    postgres::{agree, agreed, connection},
};

/// A node that was not heard of for so long does not run.
const ALIVE_MICROS: i64 = 10_000_000;
/// The same as a duration.
pub const ALIVE: Duration = Duration::from_micros(ALIVE_MICROS.cast_unsigned());
/// How often a node says that it runs.
pub const BEAT: Duration = Duration::from_secs(2);
/// A node that was not heard of for so long is late: it missed a beat.
const LATE_MICROS: i64 = 4_500_000;
/// After so long a node that did not say that it stops is forgotten.
const FORGOTTEN_MICROS: i64 = 3_600_000_000;
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
    /// What does not work as it finds it, in sentences.
    pub trouble: Vec<String>,
}

impl NodeRow {
    /// Whether it missed a beat, and did not say that it stops.
    #[must_use]
    pub fn is_late(&self, now: Time) -> bool {
        self.seen.plus_micros(LATE_MICROS) < now
    }
}

/// A session that nobody acts on any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Which one.
    pub session: SessionKey,
    /// Why.
    pub why: String,
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
        let sql = "WITH forgotten AS (DELETE FROM nodes WHERE seen_at < $2 - $6::bigint)
                   INSERT INTO nodes (name, seen_at, version, level, trouble) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, version = excluded.version,
                   level = excluded.level, trouble = excluded.trouble";
        let client = connection(&self.pool).await?;
        let NodeRow { name, seen, version, level, trouble } = node;
        let level = level.cast_signed();
        client
            .execute(sql, &[name, &seen.0, version, &level, trouble, &FORGOTTEN_MICROS])
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
        self.seen_after(now.plus_micros(-ALIVE_MICROS)).await
    }

    /// The nodes that run, and those that did not say that they stop, for an hour.
    pub async fn all(&self, now: Time) -> Result<Vec<NodeRow>, JournalError> {
        self.seen_after(now.plus_micros(-FORGOTTEN_MICROS)).await
    }

    async fn seen_after(&self, time: Time) -> Result<Vec<NodeRow>, JournalError> {
        let sql = "SELECT name, seen_at, version, level, trouble FROM nodes WHERE seen_at > $1 ORDER BY name";
        let rows = connection(&self.pool).await?.query(sql, &[&time.0]).await.map_err(engine)?;
        let node = |row: &tokio_postgres::Row| NodeRow {
            name: row.get(0),
            seen: Time(row.get(1)),
            version: row.get(2),
            level: row.get::<_, i32>(3).cast_unsigned(),
            trouble: row.get(4),
        };
        Ok(rows.iter().map(node).collect())
    }

    /// How many sessions are parked, and the first of them with why.
    pub async fn parked(&self, first: i64) -> Result<(u64, Vec<Parked>), JournalError> {
        let client = connection(&self.pool).await?;
        let count = "SELECT count(*) FROM due WHERE parked";
        let many: i64 = client.query_one(count, &[]).await.map_err(engine)?.get(0);
        let sql = "SELECT streams.owner, identity, streams.parked FROM due JOIN streams ON streams.id = due.stream
                   WHERE due.parked ORDER BY due.stream LIMIT $1";
        let rows = client.query(sql, &[&first]).await.map_err(engine)?;
        let parked = |row: &tokio_postgres::Row| -> Result<Parked, JournalError> {
            let (owner, identity): (uuid::Uuid, String) = (row.get(0), row.get(1));
            let identity = SessionIdentity::parse(&identity).map_err(engine)?;
            let why = row.get::<_, Option<String>>(2).unwrap_or_default();
            Ok(Parked { session: SessionKey::new(OwnerId(owner), identity), why })
        };
        let rows = rows.iter().map(parked).collect::<Result<_, _>>()?;
        Ok((many.cast_unsigned(), rows))
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
