//! What was approved is what runs: each digested field changed at rest, or a tool's schema, between approve and
//! execute. Nothing may run.
//!
//! A held plan is a template on disk. In each case it is copied, one value in the recorded revision or in the
//! record of its approval is changed where it lies, or the tool comes with another schema, and a new process
//! would go on: the runtime is opened over it and told to resume. The toolbox counts what reaches it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use anyhow::Context as _;
use fastrand::Rng;
use planwright_domain::{
    command::{Decision, PersonCommand, Start},
    plan::Strategy,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::runtime::Runtime;
use serde_json::{Value, json};

use crate::staged::{Counting, Staged, runtime, talk};

const KEY: &str = "binding-01";

/// Proves it over so many cases.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(seed: u64, cases: u64) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let proved =
        runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(all(seed, cases)));
    match proved {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("binding: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, cases: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let home = tempfile::Builder::new().prefix("planwright-binding-").tempdir_in(place)?;
    let mut templates = Vec::new();
    for strategy in [Strategy::Collect, Strategy::Document] {
        let file = home.path().join(format!("{}.sqlite", strategy.name()));
        template(&file, strategy).await?;
        let unchanged = try_case(home.path(), &file, &Change::Nothing).await?;
        anyhow::ensure!(unchanged > 0, "{} does not run when nothing is changed", strategy.name());
        templates.push(file);
    }
    let mut rng = Rng::with_seed(seed);
    let (mut ran, mut kinds): (Vec<String>, BTreeMap<String, u64>) = (Vec::new(), BTreeMap::new());
    for _ in 0..cases {
        let file = &templates[rng.usize(0..templates.len())];
        let change = Change::any(&mut rng, file)?;
        *kinds.entry(change.kind()).or_default() += 1;
        if try_case(home.path(), file, &change).await? > 0 {
            ran.push(format!("{}: {change:?}", file.display()));
        }
    }
    let fewest = kinds.values().min().copied().unwrap_or(0);
    ran.iter().take(10).for_each(|words| println!("  ran although changed: {words}"));
    let well = ran.is_empty();
    println!(
        "binding: {cases} cases over {} fields (each at least {fewest} times), {} ran, {:.0} s (target 0) {}",
        kinds.len(),
        ran.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// What is changed between approve and execute.
#[derive(Debug)]
enum Change {
    Nothing,
    /// The tool's schema, as a live server would change it.
    Schema(u32),
    /// One value of one recorded event.
    AtRest {
        kind: &'static str,
        path: String,
        to: Value,
    },
}

impl Change {
    fn any(rng: &mut Rng, file: &Path) -> anyhow::Result<Self> {
        if rng.u8(0..20) == 0 {
            return Ok(Self::Schema(rng.u32(1..)));
        }
        let kind = if rng.bool() { "revision_added" } else { "plan_approved" };
        let event = read(file, kind)?;
        let mut leaves = Vec::new();
        collect(&event, String::new(), &mut leaves);
        // What an event says beside its digested contents is not what is approved.
        leaves.retain(|(path, _)| {
            let beside = ["/author", "/replies", "/waits", "/start"];
            !beside.iter().any(|name| path.contains(name))
        });
        let (path, value) = leaves[rng.usize(0..leaves.len())].clone();
        let to = match value {
            Value::String(text) if text.len() >= 32 && rng.bool() => other_digit(&text, rng),
            Value::String(text) => {
                json!(format!("{text}{}", ["x", " ", "\u{200b}"][rng.usize(0..3)]))
            }
            Value::Number(number) => json!(number.as_i64().unwrap_or(0) + rng.i64(1..9)),
            Value::Bool(value) => json!(!value),
            Value::Null | Value::Array(_) | Value::Object(_) => json!("x"),
        };
        Ok(Self::AtRest { kind, path, to })
    }

    fn kind(&self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::Schema(_) => "schema".into(),
            Self::AtRest { kind, path, .. } => format!("{kind}{path}"),
        }
    }
}

/// The same text with one hexadecimal digit changed.
fn other_digit(text: &str, rng: &mut Rng) -> Value {
    let at = rng.usize(0..text.len());
    let other = |(index, letter): (usize, char)| {
        if index == at { if letter == '0' { '1' } else { '0' } } else { letter }
    };
    json!(text.chars().enumerate().map(other).collect::<String>())
}

fn collect(value: &Value, path: String, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect(value, format!("{path}/{key}"), leaves));
        }
        Value::Array(values) => {
            values
                .iter()
                .enumerate()
                .for_each(|(at, value)| collect(value, format!("{path}/{at}"), leaves));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            leaves.push((path, value.clone()));
        }
    }
}

/// Whether anything runs when a plan goes on that was changed so; how often.
async fn try_case(home: &Path, template: &Path, change: &Change) -> anyhow::Result<u32> {
    let file = home.join("case.sqlite");
    for beside in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(home.join(format!("case.sqlite{beside}")));
    }
    fs::copy(template, &file)?;
    let schema = match change {
        Change::Nothing => 0,
        Change::Schema(other) => *other,
        Change::AtRest { kind, path, to } => {
            let mut event = read(&file, kind)?;
            *event.pointer_mut(path).context("a field")? = to.clone();
            write(&file, kind, &event)?;
            0
        }
    };
    let ran = Arc::new(AtomicU32::new(0));
    let Ok(runtime) = open(&file, schema, ran.clone()) else { return Ok(0) };
    let identity = talk(KEY);
    let staged = Staged { runtime: &runtime, identity: &identity };
    let _ = staged.ask(PersonCommand::Decide(Decision::Resume)).await;
    let _ = staged.drive().await;
    Ok(ran.load(Ordering::SeqCst))
}

/// A plan that was approved and is held, in a file.
async fn template(file: &Path, strategy: Strategy) -> anyhow::Result<()> {
    let (runtime, identity) = (open(file, 0, Arc::default())?, talk(KEY));
    let staged = Staged { runtime: &runtime, identity: &identity };
    let digest = staged.ready(strategy).await?;
    staged.ask(staged.approve(digest, Start::Hold)).await?;
    staged.drive().await?;
    drop(runtime);
    // All of it in one file.
    rusqlite::Connection::open(file)?
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn open(file: &Path, schema: u32, ran: Arc<AtomicU32>) -> anyhow::Result<Runtime> {
    let journal = Arc::new(SqliteJournal::open(file)?);
    Ok(runtime(journal, Arc::new(Counting { schema, ran })))
}

/// The recorded event of this kind, unpacked.
fn read(file: &Path, kind: &str) -> anyhow::Result<Value> {
    let connection = rusqlite::Connection::open(file)?;
    let body: Vec<u8> =
        connection
            .query_row("SELECT body FROM events WHERE kind = ?1", [kind], |row| row.get(0))?;
    let (mark, packed) = body.split_first().context("a body")?;
    let json = if *mark == 0 { packed.to_vec() } else { zstd::decode_all(packed)? };
    Ok(serde_json::from_slice(&json)?)
}

fn write(file: &Path, kind: &str, event: &Value) -> anyhow::Result<()> {
    let mut body = vec![0];
    body.extend(serde_json::to_vec(event)?);
    let connection = rusqlite::Connection::open(file)?;
    let changed = connection
        .execute("UPDATE events SET body = ?1 WHERE kind = ?2", rusqlite::params![body, kind])?;
    anyhow::ensure!(changed == 1, "{changed} events of the kind {kind}");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
