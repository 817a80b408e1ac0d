//! One bit is flipped where it is stored, and whoever reads it must notice.
//!
//! A journal holds something of everything. In each case one bit of one stored body or column is another, a process that
//! has just started reads what it belongs to, and the bit is put back. What is read must be refused as corrupt; a snapshot
//! must be reported, and the session folded from its events instead.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context as _;
use async_trait::async_trait;
use fastrand::Rng;
use planwright_domain::{
    id::Seq, identity::SessionKey, installation::Installation, owner::Owner, session::Session,
};
use planwright_outbound::{journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal};
use planwright_runtime::ports::{
    journal::{Archive, JournalError},
    memory::Memory,
};
use planwright_testkit::people::ada_key;
use planwright_testkit::{
    scratch,
    servers::Postgres,
    stored::{self, ada, chain, talk},
};
use tokio_postgres::NoTls;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// What came of it.
pub(super) struct Flipped {
    pub(super) all: u64,
    /// How many kinds of bodies and columns were hit.
    pub(super) kinds: usize,
    /// How often the one was hit that was hit least.
    pub(super) fewest: u64,
    pub(super) missed: Vec<String>,
}

/// What is stored, and what a flip of it must lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Event,
    EventTime,
    EventKind,
    Answer,
    AnswerBefore,
    AnswerVersion,
    AnswerChecksum,
    Output,
    View,
    ViewPlace,
    OwnerEvent,
    OwnerEventTime,
    OwnerEventKind,
    InstallationEvent,
    InstallationEventTime,
    InstallationEventKind,
    InstallationState,
    Memory,
    Snapshot,
    OwnerState,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stored {
    Bytes(Vec<u8>),
    Number(i64),
    Text(Vec<u8>),
}

impl Stored {
    /// The same with one bit flipped; of a text only what the engine takes for one.
    fn flipped(&self, rng: &mut Rng, is_text: impl Fn(&[u8]) -> bool) -> Self {
        match self {
            Self::Bytes(bytes) => {
                let (mut bytes, at) = (bytes.clone(), rng.usize(0..bytes.len()));
                bytes[at] ^= 1 << rng.u8(0..8);
                Self::Bytes(bytes)
            }
            Self::Number(number) => Self::Number(number ^ (1 << rng.u8(0..63))),
            Self::Text(bytes) => {
                let mut bytes = bytes.clone();
                loop {
                    let (at, bit) = (rng.usize(0..bytes.len()), 1 << rng.u8(0..8));
                    bytes[at] ^= bit;
                    if bytes[at] != 0 && is_text(&bytes) {
                        return Self::Text(bytes);
                    }
                    bytes[at] ^= bit;
                }
            }
        }
    }
}

/// One column of one row.
#[derive(Debug, Clone)]
struct Target {
    what: What,
    table: &'static str,
    column: &'static str,
    /// The session that it belongs to; empty, where it is one of several or an owner's.
    session: String,
    /// The condition that finds the row.
    row: String,
    stored: Stored,
}

/// A journal in an engine, and a way to its tables.
#[async_trait]
trait Engine: Send {
    fn name(&self) -> &'static str;

    /// A blob as SQL writes it.
    fn bytes(&self, bytes: &[u8]) -> String;

    /// A text of these bytes as SQL writes it.
    fn text(&self, bytes: &[u8]) -> String;

    /// Whether the engine takes these bytes for a text.
    fn takes(&self, bytes: &[u8]) -> bool;

    /// How SQL finds a row by its key, as an expression over the key's column.
    fn key(&self, what: What) -> &'static str;

    async fn execute(&mut self, sql: &str) -> anyhow::Result<u64>;

    /// Three columns: the session, the condition that finds the row, and what is stored.
    async fn rows(&mut self, sql: &str) -> anyhow::Result<Vec<Row>>;

    /// The journal as a process finds it that has just started.
    async fn journal(&mut self) -> anyhow::Result<Arc<dyn Journal>>;
}

/// Session, condition, what is stored.
type Row = (String, String, Option<Stored>);

trait Journal: Archive + Memory {}
impl<T: Archive + Memory> Journal for T {}

const COLUMNS: [(What, &str, &str); 20] = [
    (What::Snapshot, "snapshots", "body"),
    (What::Event, "events", "body"),
    (What::EventTime, "events", "at"),
    (What::EventKind, "events", "kind"),
    (What::Answer, "answers", "refusal"),
    (What::AnswerBefore, "answers", "before"),
    (What::AnswerVersion, "answers", "version"),
    (What::AnswerChecksum, "answers", "checksum"),
    (What::Output, "outputs", "body"),
    (What::View, "views", "body"),
    (What::ViewPlace, "views", "upto"),
    (What::OwnerEvent, "owner_events", "body"),
    (What::OwnerEventTime, "owner_events", "at"),
    (What::OwnerEventKind, "owner_events", "kind"),
    (What::InstallationEvent, "installation_events", "body"),
    (What::InstallationEventTime, "installation_events", "at"),
    (What::InstallationEventKind, "installation_events", "kind"),
    (What::InstallationState, "installation_state", "body"),
    (What::Memory, "memory", "body"),
    (What::OwnerState, "owners", "state"),
];

/// What every read must come to.
struct Truth {
    sessions: BTreeMap<SessionKey, Arc<Session>>,
    owner: Owner,
    installation: Arc<Installation>,
}

/// Flips so many bits in each engine.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(super) async fn prove(seed: u64, flips: u64, reports: &Reports) -> anyhow::Result<Flipped> {
    let mut rng = Rng::with_seed(seed);
    let mut counts = BTreeMap::<(&'static str, What), u64>::new();
    let mut missed = Vec::new();
    let engines: [Box<dyn Engine>; 2] =
        [Box::new(SqliteEngine::new().await?), Box::new(PostgresEngine::new().await?)];
    for mut engine in engines {
        let journal = engine.journal().await?;
        let mut truth = Truth {
            sessions: BTreeMap::new(),
            owner: journal.owner(ada()).await?,
            installation: journal.installation().await?,
        };
        for identity in journal.keys(None, 1_000).await? {
            truth.sessions.insert(identity.clone(), journal.session(&identity).await?);
        }
        drop(journal);
        anyhow::ensure!(reports.take() == 0, "something was reported before anything was flipped");
        let targets = targets(&mut *engine).await?;
        let reading = engine.journal().await?;
        for flip in 0..flips {
            // Every kind as often as every other, whatever they weigh.
            let of_kind = &targets[flip as usize % targets.len()];
            let target = &of_kind[rng.usize(0..of_kind.len())];
            let flipped = target.stored.flipped(&mut rng, |text| engine.takes(text));
            write(&mut *engine, target, &flipped).await?;
            // What was folded is kept: only a process that has just started reads a snapshot.
            let is_fresh = matches!(target.what, What::Snapshot | What::InstallationState);
            let journal = if is_fresh { engine.journal().await? } else { reading.clone() };
            let found = is_found(&*journal, target, &truth, reports).await;
            write(&mut *engine, target, &target.stored).await?;
            *counts.entry((engine.name(), target.what)).or_default() += 1;
            if let Err(words) = found {
                let Target { table, column, row, .. } = target;
                missed.push(format!("{}: {table}.{column}, {row}: {words}", engine.name()));
            }
        }
        let journal = engine.journal().await?;
        for (identity, session) in &truth.sessions {
            let read = journal.session(identity).await?;
            anyhow::ensure!(read == *session, "{identity} is not as it was before");
        }
        println!("  flips      {flips} in {}, over {} kinds", engine.name(), targets.len());
    }
    Ok(Flipped {
        all: counts.values().sum(),
        kinds: counts.len() / 2,
        fewest: counts.values().min().copied().unwrap_or(0),
        missed,
    })
}

/// Everything that can be flipped, by its kind; each kind is there.
async fn targets(engine: &mut dyn Engine) -> anyhow::Result<Vec<Vec<Target>>> {
    let mut all = Vec::new();
    for (what, table, column) in COLUMNS {
        let session = match table {
            "events" | "answers" | "snapshots" | "views" => {
                "(SELECT identity FROM streams WHERE id = stream)"
            }
            _ => "''",
        };
        let sql = format!("SELECT {session}, {}, {column} FROM {table}", engine.key(what));
        let rows = engine.rows(&sql).await?.into_iter();
        let targets: Vec<_> = rows
            .filter_map(|(session, row, stored)| {
                Some(Target { what, table, column, session, row, stored: stored? })
            })
            .collect();
        anyhow::ensure!(!targets.is_empty(), "{}: nothing in {table}.{column}", engine.name());
        all.push(targets);
    }
    Ok(all)
}

async fn write(engine: &mut dyn Engine, target: &Target, stored: &Stored) -> anyhow::Result<()> {
    let literal = match stored {
        Stored::Bytes(bytes) => engine.bytes(bytes),
        Stored::Number(number) => format!("({number})"),
        Stored::Text(text) => engine.text(text),
    };
    let Target { table, column, row, .. } = target;
    let sql = format!("UPDATE {table} SET {column} = {literal} WHERE {row}");
    let changed = engine.execute(&sql).await?;
    anyhow::ensure!(changed == 1, "{changed} rows: {table}, {row}");
    Ok(())
}

/// Reads what the flipped bit belongs to; in words, what went wrong if nobody noticed.
async fn is_found(
    journal: &dyn Journal,
    target: &Target,
    truth: &Truth,
    reports: &Reports,
) -> Result<(), String> {
    let session = || ada_key(&target.session).map_err(|error| error.to_string());
    let read = match target.what {
        What::Event | What::EventTime | What::EventKind => {
            journal.events(&session()?, Seq(0), usize::MAX).await.map(drop)
        }
        What::Answer | What::AnswerBefore | What::AnswerVersion | What::AnswerChecksum => {
            journal.answers(&session()?).await.map(drop)
        }
        What::Output => outputs(journal).await,
        What::OwnerEvent | What::OwnerEventTime | What::OwnerEventKind => {
            journal.owner_events(ada()).await.map(drop)
        }
        What::InstallationEvent | What::InstallationEventTime | What::InstallationEventKind => {
            journal.audit_log(Seq(0), usize::MAX).await.map(drop)
        }
        What::InstallationState => {
            let read = journal.installation().await.map_err(|error| error.to_string())?;
            return reported(read == truth.installation, reports);
        }
        What::View | What::ViewPlace => {
            let read = journal.kept_view(&session()?).await.map_err(|error| error.to_string())?;
            return reported(read.is_none(), reports);
        }
        What::Memory => journal.everything(&chain(), 100).await.map(drop),
        What::Snapshot => {
            let session = session()?;
            let read = journal.session(&session).await.map_err(|error| error.to_string())?;
            return reported(truth.sessions.get(&session) == Some(&read), reports);
        }
        What::OwnerState => {
            let read = journal.owner(ada()).await.map_err(|error| error.to_string())?;
            return reported(read == truth.owner, reports);
        }
    };
    match read {
        Err(error) if error.is_corrupt() => Ok(()),
        Err(error) => Err(format!("not called corrupt: {error}")),
        Ok(()) => Err("read as if it were whole".into()),
    }
}

fn reported(same: bool, reports: &Reports) -> Result<(), String> {
    match (same, reports.take()) {
        (true, 1) => Ok(()),
        (true, count) => Err(format!("reported {count} times")),
        (false, _) => Err("folded into something else".into()),
    }
}

async fn outputs(journal: &dyn Journal) -> Result<(), JournalError> {
    for digest in journal.outputs(&talk()).await? {
        journal.output(&talk(), digest).await?;
    }
    Ok(())
}

struct SqliteEngine {
    home: tempfile::TempDir,
    connection: rusqlite::Connection,
}

impl SqliteEngine {
    async fn new() -> anyhow::Result<Self> {
        let home = scratch::directory_in_memory("upgrade")?;
        let file = home.path().join("journal.sqlite");
        stored::fill(&SqliteJournal::open(&file)?).await?;
        let connection = rusqlite::Connection::open(&file)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        Ok(Self { home, connection })
    }
}

#[async_trait]
impl Engine for SqliteEngine {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn bytes(&self, bytes: &[u8]) -> String {
        format!("x'{}'", hex(bytes))
    }

    fn text(&self, bytes: &[u8]) -> String {
        format!("CAST(x'{}' AS TEXT)", hex(bytes))
    }

    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn key(&self, what: What) -> &'static str {
        match what {
            What::Event | What::EventTime | What::EventKind => "'id = ' || id",
            What::Answer | What::AnswerBefore | What::AnswerVersion | What::AnswerChecksum => {
                "'stream = ' || stream || ' AND command = x''' || hex(command) || ''''"
            }
            What::Output => "'digest = x''' || hex(digest) || ''''",
            What::OwnerEvent
            | What::OwnerEventTime
            | What::OwnerEventKind
            | What::InstallationEvent
            | What::InstallationEventTime
            | What::InstallationEventKind => "'seq = ' || seq",
            What::Memory => "'id = ' || id",
            What::Snapshot | What::View | What::ViewPlace => "'stream = ' || stream",
            What::InstallationState => "'id = ' || id",
            What::OwnerState => "'id = x''' || hex(id) || ''''",
        }
    }

    async fn execute(&mut self, sql: &str) -> anyhow::Result<u64> {
        Ok(self.connection.execute(sql, [])? as u64)
    }

    async fn rows(&mut self, sql: &str) -> anyhow::Result<Vec<Row>> {
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            let stored = match row.get::<_, rusqlite::types::Value>(2)? {
                rusqlite::types::Value::Blob(bytes) => Some(Stored::Bytes(bytes)),
                rusqlite::types::Value::Integer(number) => Some(Stored::Number(number)),
                rusqlite::types::Value::Text(text) => Some(Stored::Text(text.into_bytes())),
                rusqlite::types::Value::Null | rusqlite::types::Value::Real(_) => None,
            };
            Ok((row.get(0)?, row.get(1)?, stored))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn journal(&mut self) -> anyhow::Result<Arc<dyn Journal>> {
        Ok(Arc::new(SqliteJournal::open_read_only(&self.home.path().join("journal.sqlite"))?))
    }
}

struct PostgresEngine {
    server: Postgres,
    client: tokio_postgres::Client,
}

impl PostgresEngine {
    async fn new() -> anyhow::Result<Self> {
        let server = Postgres::start();
        stored::fill(&PostgresJournal::open(&server.address()).await?).await?;
        let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("SET synchronous_commit = off").await?;
        Ok(Self { server, client })
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn bytes(&self, bytes: &[u8]) -> String {
        format!(r"'\x{}'::bytea", hex(bytes))
    }

    fn text(&self, bytes: &[u8]) -> String {
        format!(r"convert_from('\x{}'::bytea, 'UTF8')", hex(bytes))
    }

    fn takes(&self, bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok()
    }

    fn key(&self, what: What) -> &'static str {
        match what {
            What::Event | What::EventTime | What::EventKind => {
                "'stream = ' || stream || ' AND seq = ' || seq"
            }
            What::Answer | What::AnswerBefore | What::AnswerVersion | What::AnswerChecksum => {
                "'stream = ' || stream || ' AND command = ''' || command || ''''"
            }
            What::Output => r"'digest = ''\x' || encode(digest, 'hex') || ''''",
            What::OwnerEvent
            | What::OwnerEventTime
            | What::OwnerEventKind
            | What::InstallationEvent
            | What::InstallationEventTime
            | What::InstallationEventKind => "'seq = ' || seq",
            What::View | What::ViewPlace | What::Snapshot => "'stream = ' || stream",
            What::Memory | What::InstallationState => "'id = ' || id",
            What::OwnerState => "'id = ''' || id || ''''",
        }
    }

    async fn execute(&mut self, sql: &str) -> anyhow::Result<u64> {
        Ok(self.client.execute(sql, &[]).await?)
    }

    async fn rows(&mut self, sql: &str) -> anyhow::Result<Vec<Row>> {
        let rows = self.client.query(sql, &[]).await?;
        rows.iter()
            .map(|row| {
                let kind = row.columns().get(2).context("three columns")?.type_().name();
                let stored = match kind {
                    "bytea" => row.get::<_, Option<_>>(2).map(Stored::Bytes),
                    "int8" => row.get::<_, Option<_>>(2).map(Stored::Number),
                    _ => {
                        row.get::<_, Option<String>>(2).map(|text| Stored::Text(text.into_bytes()))
                    }
                };
                Ok((row.get(0), row.get(1), stored))
            })
            .collect()
    }

    async fn journal(&mut self) -> anyhow::Result<Arc<dyn Journal>> {
        Ok(Arc::new(PostgresJournal::open(&self.server.address()).await?))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Counts what is logged about snapshots and conversations that were discarded.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<AtomicU64>);

impl Reports {
    /// The one of this process: several seeds may be played.
    pub(super) fn install() -> Self {
        static INSTALLED: LazyLock<Reports> = LazyLock::new(|| {
            let reports = Reports::default();
            tracing::subscriber::set_global_default(reports.clone())
                .unwrap_or_else(|_| unreachable!("no proof logs"));
            reports
        });
        INSTALLED.take();
        INSTALLED.clone()
    }

    /// How many there were since the last time.
    pub(super) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Visit for Reports {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" && matches!(value, "snapshot_discarded" | "view_discarded") {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Subscriber for Reports {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
