//! Erasure: sessions full of canaries, deleted under load by processes that are killed, leave nothing behind but their digests.
//!
//! What is stored is packed, so the words alone would never be found. Before a session is deleted, pieces of its stored bodies are
//! kept outside, and looked for as well. A control counts where they were found while they were there: in every place that an
//! erasure must clear.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use fastrand::Rng;
use futures_util::TryStreamExt as _;
use object_store::{ObjectStore, ObjectStoreExt as _};
use planwright_domain::{
    command::{LifeCommand, PersonCommand},
    id::Seq,
    identity::SessionKey,
    memory::{Chain, ItemKind, MemoryCommand, Question},
    next::Due,
};
use planwright_outbound::{
    clock_system::SystemClock,
    journal_postgres::PostgresJournal,
    journal_sqlite::SqliteJournal,
    notebook_object_store::{Bucket, ObjectStoreNotebooks},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    audit::{check::Checker, log_file},
    failpoint::ERASE_POINTS as POINTS,
    ports::{
        Clock as _, Ports,
        journal::{Archive, KeptView},
        memory::{Memory, Store},
    },
    runtime::Runtime,
    settings::Settings,
};
use planwright_testkit::{
    people::introduce,
    prose, scratch,
    servers::{Postgres, S3},
};
use tokio_postgres::NoTls;
use uuid::Uuid;

use crate::{
    lives::{self, ended},
    on_threads,
    staged::{Staged, ada, planner_ports, talk},
};

mod search;

use search::{Found, PIECE, Wanted, bodies};

/// How many sessions a life deletes.
const SESSIONS: usize = 2;
/// What is in the text that was made known everywhere.
const KEPT: &str = "the-promoted-one";
/// The bucket of the cluster's outputs, and the file with its address.
const BUCKET: &str = "outputs";
/// Which part of a canary is looked for: an index may share the first letters of a word with the word before it.
const LOOKED_FOR: std::ops::Range<usize> = 6..6 + PIECE;

/// A journal that is all of these.
trait Whole: Archive + Memory {}
impl<T: Archive + Memory> Whole for T {}

async fn open(place: &str, home: &Path) -> anyhow::Result<(Arc<dyn Store>, Arc<dyn Whole>)> {
    Ok(if place.starts_with("postgresql:") {
        let journal = PostgresJournal::open(place).await?;
        let journal = Arc::new(journal.with_outputs_in(bucket(home)?));
        (journal.clone(), journal)
    } else {
        let journal = Arc::new(SqliteJournal::open(Path::new(place))?);
        (journal.clone(), journal)
    })
}

/// The bucket with the long outputs, at the address that is written down here.
fn bucket(home: &Path) -> anyhow::Result<Arc<dyn ObjectStore>> {
    let key = |name: &str| Some(name.to_owned());
    let bucket = Bucket {
        name: BUCKET.into(),
        endpoint: Some(fs::read_to_string(home.join(BUCKET))?),
        region: key("us-east-1"),
        access_key: key("a-key"),
        secret_key: key("a-secret"),
    };
    Ok(bucket.open()?)
}

fn runtime(journal: Arc<dyn Store>, home: &Path) -> anyhow::Result<(Runtime, Ports)> {
    let data = home.join("data");
    let toolbox = Arc::new(FileToolbox::open(&home.join("workspace"), &data)?);
    let mut ports = planner_ports(journal, toolbox);
    ports.notebook = Arc::new(ObjectStoreNotebooks::in_directory(&data)?);
    Ok((Runtime::new(&ports, &Settings::default()), ports))
}

/// One life: goes on with what the one before left, then fills sessions with canaries and deletes them.
pub(crate) async fn live(place: String, home: PathBuf, seed: u64) -> anyhow::Result<()> {
    let (journal, _) = open(&place, &home).await?;
    introduce(&*journal, &["ada"]).await?;
    let (runtime, ports) = runtime(journal.clone(), &home)?;
    for row in journal.due(None, 1_000).await? {
        drive(&runtime, &row.session).await?;
    }
    let works = Arc::new(AtomicBool::new(true));
    let load = tokio::spawn(load(runtime.clone(), seed, works.clone()));
    let mut rng = Rng::with_seed(seed);
    for number in 0..SESSIONS {
        let name = format!("gone-{seed:016x}-{number}");
        let key = talk(&name);
        fill(&runtime, &ports, &key, &mut rng, &home).await?;
        keep_pieces(&place, &home, &name).await?;
        let staged = Staged { runtime: &runtime, identity: &key };
        staged.ask(PersonCommand::Life(LifeCommand::Delete)).await?;
        drive(&runtime, &key).await?;
        anyhow::ensure!(journal.session(&key).await?.version == Seq(0), "{key} is still there");
    }
    works.store(false, Ordering::SeqCst);
    load.await??;
    // What a life before left in the files goes with the next erasure, or here.
    while !journal.scrub().await? {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn drive(runtime: &Runtime, key: &SessionKey) -> anyhow::Result<()> {
    for _ in 0..200 {
        match runtime.engine.advance(key).await?.due {
            Due::Now => {}
            Due::Never | Due::At(_) => return Ok(()),
        }
    }
    anyhow::bail!("{key} does not come to rest")
}

/// Others talk all the while.
async fn load(runtime: Runtime, seed: u64, works: Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut number = 0;
    while works.load(Ordering::SeqCst) {
        let key = talk(&format!("stays-{seed:016x}-{}", number % 3));
        let text = prose::prose(400, number);
        let staged = Staged { runtime: &runtime, identity: &key };
        staged.ask(PersonCommand::Say { text }).await?;
        drive(&runtime, &key).await?;
        number += 1;
    }
    Ok(())
}

/// Says, saves, keeps, notes and promotes something in a session: all of it holds a word of its own.
async fn fill(
    runtime: &Runtime,
    ports: &Ports,
    key: &SessionKey,
    rng: &mut Rng,
    home: &Path,
) -> anyhow::Result<()> {
    let mut wanted = File::options().append(true).create(true).open(home.join("wanted"))?;
    let mut canary = |what: &str| -> anyhow::Result<String> {
        let word: String = std::iter::repeat_with(|| rng.lowercase()).take(24).collect();
        writeln!(wanted, "word {}", &word[LOOKED_FOR])?;
        Ok(format!("{what} {word} {}", prose::prose(300, rng.u64(..))))
    };
    let staged = Staged { runtime, identity: key };
    for _ in 0..10 {
        staged.ask(PersonCommand::Say { text: canary("said")? }).await?;
    }
    drive(runtime, key).await?;
    let title = canary("called")?.chars().take(60).collect();
    staged.ask(PersonCommand::Life(LifeCommand::Rename { title })).await?;
    for _ in 0..3 {
        let (id, text) = (Uuid::now_v7().into(), canary("remembered")?);
        let save = MemoryCommand::Save { id, kind: ItemKind::Fact, text };
        staged.ask(PersonCommand::Memory(save)).await?;
    }
    let (id, text) = (Uuid::now_v7().into(), format!("{KEPT} of {key}"));
    let save = MemoryCommand::Save { id, kind: ItemKind::Fact, text: text.clone() };
    staged.ask(PersonCommand::Memory(save)).await?;
    let promoted = runtime.commands.promote(&ada(), key, id, &text).await?;
    promoted.map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    // As a conversation is kept, as a long and as a short output, as a page.
    let upto = ports.journal.session(key).await?.version;
    let view = KeptView { upto, form: 1, text: canary("summed up")? };
    ports.journal.keep_view(key, view).await?;
    for long in [500, 1] {
        ports.journal.keep_output(key, &canary("printed")?.repeat(long)).await?;
    }
    ports.notebook.write(key, "findings", &canary("noted")?, None).await?;
    while ports.journal.index_words().await? > 0 {}
    Ok(())
}

/// Keeps pieces of what is stored of a session, outside of where it is looked for, and where they are found now.
async fn keep_pieces(place: &str, home: &Path, name: &str) -> anyhow::Result<()> {
    let mut wanted = File::options().append(true).open(home.join("wanted"))?;
    let mut bodies = bodies(place, name).await?;
    bodies.extend(outputs_beside(place, home, name).await?);
    for body in bodies {
        let middle = body.len().saturating_sub(PIECE) / 2;
        if let Some(piece) = body.get(middle..middle + PIECE) {
            let digits: String = piece.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(wanted, "piece {digits}")?;
        }
    }
    let found = everywhere(&wanted_in(home)?, place, home).await?;
    for (at, many) in found.hits {
        writeln!(wanted, "control {many} {at}")?;
    }
    Ok(())
}

/// The long outputs of the sessions whose key holds this, as they lie beside the journal.
async fn outputs_beside(place: &str, home: &Path, name: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let key: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let beside = beside(place, home).await?.into_iter();
    Ok(beside.filter(|(at, _)| at.contains(&key)).map(|(_, body)| body).collect())
}

/// What lies beside the journal under `outputs`, by its name.
async fn beside(place: &str, home: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    if !place.starts_with("postgresql:") {
        return search::files(&home.join("data").join("outputs"))?
            .into_iter()
            .map(|file| Ok((file.display().to_string(), fs::read(file)?)))
            .collect();
    }
    let (store, mut all) = (bucket(home)?, Vec::new());
    let found: Vec<_> = store.list(None).try_collect().await?;
    for meta in found {
        let body = store.get(&meta.location).await?.bytes().await?;
        all.push((meta.location.to_string(), body.to_vec()));
    }
    Ok(all)
}

/// Looks everywhere: in every file and its name, in every row of every table, in the bucket.
async fn everywhere(wanted: &Wanted, place: &str, home: &Path) -> anyhow::Result<Found> {
    let mut found = Found::default();
    wanted.look_in_files(&home.join("data"), &mut found)?;
    if place.starts_with("postgresql:") {
        for (name, body) in beside(place, home).await? {
            wanted.look("the bucket", name.as_bytes(), &mut found);
            wanted.look("the bucket", &body, &mut found);
        }
        let (client, connection) = tokio_postgres::connect(place, NoTls).await?;
        tokio::spawn(connection);
        wanted.look_in_tables(&client, &mut found).await?;
    } else {
        wanted.look_in_sqlite(Path::new(place), &mut found)?;
    }
    Ok(found)
}

/// What is looked for, as the lives wrote it down.
fn wanted_in(home: &Path) -> anyhow::Result<Wanted> {
    let (mut words, mut pieces) = (HashSet::new(), HashSet::new());
    for line in fs::read_to_string(home.join("wanted"))?.lines() {
        match line.split_once(' ').context("a line")? {
            ("word", word) => {
                words.insert(*word.as_bytes().first_chunk().context("a long word")?);
            }
            ("piece", digits) => {
                pieces.insert(*search::unhex(digits).first_chunk().context("a piece")?);
            }
            _ => {}
        }
    }
    Ok(Wanted::new(words, pieces))
}

/// Proves it on both engines.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(seed, if quick { 6 } else { 60 }))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, rounds: u64) -> anyhow::Result<bool> {
    let (mut rng, begun, mut well, mut erased) = (Rng::with_seed(seed), Instant::now(), true, 0);
    for engine in [Engine::Sqlite, Engine::Postgres, Engine::Leaving] {
        let home = scratch::directory("erase")?;
        fs::create_dir(home.path().join("data"))?;
        let servers = (engine == Engine::Postgres).then(|| (Postgres::start(), S3::start()));
        let place = match &servers {
            Some((database, outputs)) => {
                outputs.make_bucket(BUCKET);
                fs::write(home.path().join(BUCKET), outputs.address())?;
                database.address()
            }
            None => home.path().join("data/journal.sqlite").display().to_string(),
        };
        drop(open(&place, home.path()).await?);
        let mut kills = BTreeMap::<&str, u64>::new();
        for _ in 0..if engine == Engine::Leaving { 1 } else { rounds } {
            for point in POINTS {
                let dies = format!("{point}:{}", rng.u64(1..=SESSIONS as u64));
                let mut life = start(engine, &place, home.path(), rng.u64(..), Some(&dies))?;
                if ended(&mut life).await?.code().is_none() {
                    *kills.entry(point).or_default() += 1;
                }
            }
        }
        let mut last = start(engine, &place, home.path(), rng.u64(..), None)?;
        anyhow::ensure!(ended(&mut last).await?.success(), "the last life did not end well");
        let outcome = look(&place, home.path()).await?;
        println!("  {:<10} killed {kills:?}; {outcome}", engine.name());
        if engine == Engine::Leaving {
            well &= !outcome.found.pieces.is_empty();
            continue;
        }
        outcome.found.at.iter().take(8).for_each(|at| println!("  left: {at}"));
        outcome.wrong.iter().for_each(|words| println!("  wrong: {words}"));
        for at in engine.places().iter().filter(|at| !outcome.control.contains_key(**at)) {
            println!("  the control found nothing in {at}");
            well = false;
        }
        well &= outcome.is_well() && kills.len() == POINTS.len();
        erased += outcome.erased;
    }
    println!(
        "erase: {erased} sessions erased, nothing of them is left (target nothing), {} s {}",
        begun.elapsed().as_secs(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// On what it is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Sqlite,
    Postgres,
    /// SQLite as it is by default: what is deleted stays in the file, and must be found there.
    Leaving,
}

impl Engine {
    const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Leaving => "mutant",
        }
    }

    /// Where the control must have found something: what holds words of a session as they were said, and what is packed.
    const fn places(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite | Self::Leaving => &[
                "events",
                "said_words_data",
                "memory",
                "memory_words_data",
                "views",
                "streams",
                "outputs",
                "users",
            ],
            Self::Postgres => &[
                "events",
                "said_words",
                "memory",
                "views",
                "streams",
                "outputs",
                "the bucket",
                "users",
            ],
        }
    }
}

fn start(
    engine: Engine,
    place: &str,
    home: &Path,
    seed: u64,
    dies: Option<&str>,
) -> anyhow::Result<Child> {
    let words = ["erasing".into(), place.into(), home.into(), seed.to_string().into()];
    let mutant = (engine == Engine::Leaving).then_some(("PLANWRIGHT_MUTANT", "leaves-deleted"));
    lives::start(words, mutant, dies)
}

/// What is left.
struct Outcome {
    erased: u64,
    stays: usize,
    promoted: usize,
    wanted: (usize, usize),
    /// In how many looks something was found before it was erased, by place.
    control: BTreeMap<String, u64>,
    found: Found,
    wrong: Vec<String>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { erased, stays, promoted, wanted, control, found, .. } = self;
        write!(
            out,
            "{erased} sessions erased beside {stays} others; {} words and {} pieces looked for in {} places, {} bytes: {} and {} found; {promoted} promoted things stayed; while they were there, the control found some in {control:?}",
            wanted.0,
            wanted.1,
            found.places,
            found.bytes,
            found.words.len(),
            found.pieces.len(),
        )
    }
}

impl Outcome {
    fn is_well(&self) -> bool {
        let is_found = !self.found.words.is_empty() || !self.found.pieces.is_empty();
        !is_found && self.erased > 0 && self.promoted > 0 && self.wrong.is_empty()
    }
}

async fn look(place: &str, home: &Path) -> anyhow::Result<Outcome> {
    let (wanted, mut wrong, mut control) = (wanted_in(home)?, Vec::new(), BTreeMap::new());
    for line in fs::read_to_string(home.join("wanted"))?.lines() {
        if let Some((many, at)) =
            line.strip_prefix("control ").and_then(|rest| rest.split_once(' '))
        {
            *control.entry(at.to_owned()).or_default() += many.parse::<u64>()?;
        }
    }
    let (journal, whole) = open(place, home).await?;
    if place.starts_with("postgresql:") {
        let (client, connection) = tokio_postgres::connect(place, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("VACUUM").await?;
    }
    let mut found = everywhere(&wanted, place, home).await?;
    wanted.look_in_export(&*whole, &mut found).await?;
    let keys = whole.keys(None, usize::MAX).await?;
    if let Some(key) = keys.iter().find(|key| key.to_string().contains("gone-")) {
        wrong.push(format!("{key} is still there"));
    }
    // What the next turn of the same person would be told.
    let chain = Chain::of(ada().owner, &talk("new-0001").identity, None);
    let question = Question::new(&format!("{KEPT} remembered"));
    let recalled = journal.candidates(&chain, &question, 1_000).await?;
    let recalled: Vec<_> = recalled.into_iter().flat_map(|found| found.items).collect();
    let promoted = recalled.iter().filter(|item| format!("{item:?}").contains(KEPT)).count();
    wanted.look("what a turn recalls", format!("{recalled:?}").as_bytes(), &mut found);
    while journal.take_heads(SystemClock.now(), 0, 1_000).await?.last.is_some() {}
    let mut checker = Checker::new(SystemClock.now(), []);
    log_file::check(&*whole, &mut checker).await?;
    wrong.extend(checker.finish(true).iter().map(ToString::to_string));
    let log = journal.audit_log(Seq(0), usize::MAX).await?;
    let erased = log.iter().filter(|entry| entry.event.kind() == "session_erased").count() as u64;
    Ok(Outcome {
        erased,
        stays: keys.len(),
        promoted,
        wanted: (wanted.words.len(), wanted.pieces.len()),
        control,
        found,
        wrong,
    })
}
