//! Golden journals: what this form of the stored data looked like, in files that stay as they are.
//!
//! `crates/format/golden/` holds one journal of each engine, one archive, the sessions and owners that they fold to, and
//! events of the kinds that none of them holds. They are read by every version that comes after; until 0.1.0 they are made anew, by `./prove upgrade --bless`, whenever the
//! stored form is edited.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use planwright_domain::{
    id::Seq,
    memory::Chain,
    session::{FOLD_VERSION, Session, SessionEvent},
    time::Time,
};
use planwright_format::{
    DEVELOPMENT_FORM,
    body::Packer,
    event::{EventPlace, known_level, read_event},
};
use planwright_outbound::{
    journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal,
    notebook_object_store::NoNotebooks,
};
use planwright_runtime::{
    ports::{
        journal::{Archive, DecisionQuery, Journal as _},
        memory::Memory,
    },
    transfer::archive::{Trust, export, import, verify},
};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::{event_samples, scratch, servers::Postgres, stored};

/// Tables of the journal on PostgreSQL, in the order in which they are filled.
const TABLES: [&str; 16] = [
    "streams",
    "due",
    "uncounted",
    "unindexed",
    "snapshots",
    "events",
    "decisions",
    "answers",
    "views",
    "outputs",
    "owners",
    "owner_events",
    "installation_events",
    "installation_state",
    "memory_scopes",
    "memory",
];

/// Where the files lie.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/golden")
}

/// What a journal holds, read whole: the folded sessions and owners, and everything beside them.
pub async fn folded(journal: &impl Whole) -> anyhow::Result<Value> {
    let mut sessions = BTreeMap::new();
    for identity in journal.keys(None, 10_000).await? {
        let session = journal.session(&identity).await?;
        let events = journal.events(&identity, Seq(0), usize::MAX).await?;
        let again = Session::new(identity.clone())
            .fold_all(events.iter().map(|recorded| (recorded.at, &recorded.event)))?;
        anyhow::ensure!(again == *session, "{identity}: its events fold to another state");
        let mut outputs = BTreeMap::new();
        for digest in journal.outputs(&identity).await? {
            outputs.insert(digest.to_string(), journal.output(&identity, digest).await?);
        }
        let answers = journal.answers(&identity).await?;
        let answers: BTreeMap<_, _> = answers
            .iter()
            .map(|(command, answer)| (command.0.to_string(), format!("{answer:?}")))
            .collect();
        let memories = journal.everything(&Chain::in_session(&session, None), 10_000).await?;
        let times: Vec<_> = events.iter().map(|recorded| recorded.at).collect();
        let all = json!({
            "session": *session, "times": times, "outputs": outputs, "answers": answers, "memories": memories,
        });
        sessions.insert(identity.to_string(), all);
    }
    let mut owners = BTreeMap::new();
    for (name, owner) in journal.owners().await? {
        let events = journal.owner_events(owner).await?;
        let all = json!({"owner": journal.owner(owner).await?, "events": events});
        owners.insert(name.0, all);
    }
    let query = DecisionQuery { owner: None, since: Time(0), after: None, limit: 10_000 };
    let decisions = journal.decisions(&query).await?;
    let decisions: BTreeSet<_> = decisions
        .rows
        .into_iter()
        .map(|row| (row.session.to_string(), row.recorded.seq, row.recorded.at))
        .collect();
    let log = journal.audit_log(Seq(0), usize::MAX).await?;
    let log: Vec<_> = log.iter().map(|recorded| format!("{recorded:?}")).collect();
    let installation = json!({"state": *journal.installation().await?, "log": log});
    Ok(json!({
        "form": DEVELOPMENT_FORM, "fold_version": FOLD_VERSION, "sessions": sessions, "owners": owners,
        "installation": installation, "decisions": decisions,
    }))
}

/// A journal with everything that is looked up beside it.
pub trait Whole: Archive + Memory {}
impl<T: Archive + Memory> Whole for T {}

/// What the files say that every one of them folds to.
pub fn recorded() -> anyhow::Result<Value> {
    Ok(serde_json::from_slice(&fs::read(directory().join("folded.json"))?)?)
}

/// What the golden journal on SQLite folds to.
pub async fn sqlite() -> anyhow::Result<Value> {
    let home = scratch::directory("golden")?;
    folded(&opened(home.path())?).await
}

/// All events of the golden journal.
pub async fn events() -> anyhow::Result<Vec<SessionEvent>> {
    let home = scratch::directory("golden")?;
    let (journal, mut events) = (opened(home.path())?, Vec::new());
    for key in journal.keys(None, 10_000).await? {
        let page = journal.events(&key, Seq(0), usize::MAX).await?;
        events.extend(page.into_iter().map(|recorded| recorded.event));
    }
    Ok(events)
}

/// The golden journal on SQLite, in a copy here.
fn opened(home: &Path) -> anyhow::Result<SqliteJournal> {
    let file = home.join("journal.sqlite");
    fs::copy(directory().join("journal.sqlite"), &file)?;
    Ok(SqliteJournal::open(&file)?)
}

/// Where the events lie that no golden journal holds.
const EVENTS_FILE: &str = "events.jsonl";

fn place_of(number: usize) -> EventPlace<'static> {
    EventPlace { stream: "cli:golden", seq: number as u64 + 1, at: number as i64 }
}

/// The events of kinds that no golden journal holds, read from their bodies.
pub fn lone_events() -> anyhow::Result<Vec<SessionEvent>> {
    let lines = fs::read_to_string(directory().join(EVENTS_FILE))?;
    let read = lines.lines().enumerate().map(|(number, line)| {
        let (kind, body): (String, Vec<u8>) = serde_json::from_str(line)?;
        Ok(read_event(place_of(number), &kind, &body)?)
    });
    read.collect()
}

fn write_lone_events() -> anyhow::Result<()> {
    let (mut packer, mut lines) = (Packer::new()?, String::new());
    for (number, event) in event_samples::by_hand().iter().enumerate() {
        let stored = packer.seal_event(place_of(number), event, known_level())?;
        lines.push_str(&format!("{}\n", json!([stored.kind, stored.body])));
    }
    Ok(fs::write(directory().join(EVENTS_FILE), lines)?)
}

/// What the golden archive folds to, brought into a new journal.
pub async fn archive() -> anyhow::Result<Value> {
    let home = scratch::directory("golden")?;
    let journal = SqliteJournal::open(&home.path().join("journal.sqlite"))?;
    let lines =
        || Ok::<_, std::io::Error>(BufReader::new(File::open(directory().join("archive.jsonl"))?));
    import(&journal, &NoNotebooks, lines()?, verify(lines()?)?, Trust::Vouched).await?;
    // An archive holds no accounts and no audit log.
    stored::fill_installation(&journal).await?;
    folded(&journal).await
}

/// What the golden journal on PostgreSQL folds to.
pub async fn postgres() -> anyhow::Result<Value> {
    let server = Postgres::start();
    let journal = PostgresJournal::open(&server.address()).await?;
    let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await?;
    tokio::spawn(connection);
    for line in fs::read_to_string(directory().join("journal.postgres.jsonl"))?.lines() {
        let (table, row) = line.split_once(' ').context("a table and a row")?;
        anyhow::ensure!(TABLES.contains(&table), "{table} is no table");
        let sql = format!(
            "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_record(NULL::{table}, $1::text::json)"
        );
        client.execute(&sql, &[&row]).await?;
    }
    folded(&journal).await
}

/// Writes the files anew; the stored kinds that they hold.
pub async fn bless() -> anyhow::Result<BTreeSet<String>> {
    let golden = directory();
    fs::create_dir_all(&golden)?;
    let home = scratch::directory("golden")?;
    let file = home.path().join("journal.sqlite");
    let journal = SqliteJournal::open(&file)?;
    let sessions = stored::fill(&journal).await?;
    let mut kinds = BTreeSet::new();
    for session in &sessions {
        let events = journal.events(session, Seq(0), usize::MAX).await?;
        kinds.extend(events.iter().map(|recorded| recorded.event.kind().to_owned()));
    }
    let all = folded(&journal).await?;
    if let Ok(before) = recorded()
        && before["form"] == all["form"]
        && before != all
    {
        anyhow::bail!(
            "what is stored changed: raise DEVELOPMENT_FORM in crates/format/src/lib.rs first"
        );
    }
    fs::write(golden.join("folded.json"), format!("{all:#}\n"))?;
    let mut archive = File::create(golden.join("archive.jsonl"))?;
    export(&journal, &NoNotebooks, &mut archive).await?;
    drop(journal);
    let whole = golden.join("journal.sqlite");
    let _ = fs::remove_file(&whole);
    // One file without what lies beside it.
    let connection = rusqlite::Connection::open(&file)?;
    connection.execute("VACUUM INTO ?1", [whole.display().to_string()])?;

    let server = Postgres::start();
    stored::fill(&PostgresJournal::open(&server.address()).await?).await?;
    let (client, connection) = tokio_postgres::connect(&server.address(), NoTls).await?;
    tokio::spawn(connection);
    let mut rows = String::new();
    for table in TABLES {
        let sql = format!("SELECT row_to_json({table})::text FROM {table} ORDER BY 1");
        for row in client.query(&sql, &[]).await? {
            rows.push_str(&format!("{table} {}\n", row.get::<_, &str>(0)));
        }
    }
    fs::write(golden.join("journal.postgres.jsonl"), rows)?;
    write_lone_events()?;
    kinds.extend(event_samples::by_hand().iter().map(|event| event.kind().to_owned()));
    fs::write(golden.join(schema_file()), format!("{:#}\n", schema()))?;
    Ok(kinds)
}

/// The form of a folded session, which snapshots have.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(planwright_domain::session::Session).to_value()
}

/// Where it is recorded for this version of the fold.
#[must_use]
pub fn schema_file() -> String {
    format!("session.fold-{FOLD_VERSION}.schema.json")
}
