//! Scoped search over many sessions: its time, against raw FTS5 and a scan in memory; and nothing foreign, ever.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use planwright_domain::{
    actor::{Person, Standing},
    command::{Issued, PersonCommand, SessionCommand},
    identity::SessionKey,
    memory::{Chain, ItemKind, MemoryCommand, Question, select::select, words},
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{commands::dispatch::dispatch, ports::memory::Memory as _};
use planwright_testkit::people::{ada_key, person};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::measure::{Judged, close, median};

/// How many sessions share what is remembered.
const SCOPES: usize = 10_000;
const VOCABULARY: usize = 20_000;
const WORDS_EACH: usize = 12;
/// How much of the time at most, in milliseconds.
const P50_MS_MAX: f64 = 1.0;
const RATIO_MAX: f64 = 2.0;
const DAY: Time = Time(86_400_000_000);

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(all(quick))
}

async fn all(quick: bool) -> anyhow::Result<Judged> {
    let sizes: &[usize] = if quick { &[10_000] } else { &[10_000, 100_000, 1_000_000] };
    let queries = if quick { 20_000 } else { 1_000_000 };
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>10} {:>10}",
        "items", "ours p50", "FTS5 p50", "scan p50", "/ FTS5", "/ scan"
    );
    let (mut last, mut foreign, mut asked) = (Figures::default(), 0, 0);
    for (at, size) in sizes.iter().enumerate() {
        let store = Store::fill(*size).await?;
        last = store.compare(if quick { 3 } else { 7 }).await?;
        println!(
            "{size:>10} {:>9.0} µs {:>9.0} µs {:>9.0} µs {:>10.2} {:>10.2}",
            last.ours,
            last.fts,
            last.scan,
            last.ours / last.fts,
            last.ours / last.scan
        );
        if at + 1 == sizes.len() {
            (asked, foreign) = store.foreign(queries).await?;
        }
    }
    println!("{asked} queries, {foreign} foreign items");
    let ratio = last.ours / last.fts;
    let well = last.ours / 1_000.0 <= P50_MS_MAX && ratio <= RATIO_MAX && foreign == 0;
    let figure = format!(
        "p50 {:.2} ms at {} items, {ratio:.2}× raw FTS5, {:.1}× a scan in memory, {foreign} foreign in {asked}",
        last.ours / 1_000.0,
        sizes.last().copied().unwrap_or(0),
        last.ours / last.scan
    );
    Ok(close("retrieval", &figure, "≤ 1 ms, ≤ 2× raw FTS5, 0 foreign", well))
}

#[derive(Default, Clone, Copy)]
struct Figures {
    ours: f64,
    fts: f64,
    scan: f64,
}

struct Store {
    _home: tempfile::TempDir,
    journal: Arc<SqliteJournal>,
    raw: Connection,
    memory: HashMap<usize, Vec<Vec<String>>>,
}

/// A word, the common ones more often.
fn word(rng: &mut Rng) -> String {
    let at = (rng.f64().powi(3) * VOCABULARY as f64) as usize;
    format!("w{at}")
}

fn text(rng: &mut Rng, scope: usize) -> String {
    let said: Vec<_> = (0..WORDS_EACH).map(|_| word(rng)).collect();
    format!("of{scope} {}", said.join(" "))
}

fn session(scope: usize) -> anyhow::Result<SessionKey> {
    Ok(ada_key(&format!("web:retrieval-{scope:05}"))?)
}

fn ada() -> Person {
    person("ada", "bench", Standing::Speaks)
}

impl Store {
    async fn fill(size: usize) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new().prefix("planwright-retrieval-").tempdir()?;
        let journal = Arc::new(SqliteJournal::open(&home.path().join("journal.sqlite"))?);
        let mut rng = Rng::with_seed(7);
        let items: Vec<_> = (0..size)
            .map(|at| {
                let scope = at % SCOPES;
                (scope, text(&mut rng, scope))
            })
            .collect();
        let mut raw = Connection::open(home.path().join("raw.sqlite"))?;
        raw.pragma_update(None, "journal_mode", "WAL")?;
        raw.execute_batch("CREATE VIRTUAL TABLE raw USING fts5 (scope, text)")?;
        let transaction = raw.transaction()?;
        let mut memory: HashMap<usize, Vec<Vec<String>>> = HashMap::new();
        for (scope, said) in &items {
            transaction
                .prepare_cached("INSERT INTO raw (scope, text) VALUES (?1, ?2)")?
                .execute(params![format!("s{scope}"), said])?;
            memory.entry(*scope).or_default().push(words(said));
        }
        transaction.commit()?;
        let save = |(at, (scope, text)): (usize, (usize, String))| {
            let journal = journal.clone();
            async move {
                let (id, kind) = (Uuid::from_u128(at as u128).into(), ItemKind::Fact);
                let save = PersonCommand::Memory(MemoryCommand::Save { id, kind, text });
                let command = SessionCommand::Person(ada(), save);
                let asked = Issued::new(Uuid::from_u128(at as u128), Time(at as i64), command);
                dispatch(&*journal, &session(scope)?, asked).await?;
                anyhow::Ok(())
            }
        };
        let mut saving =
            stream::iter(items.into_iter().enumerate()).map(save).buffer_unordered(256);
        while let Some(saved) = saving.next().await {
            saved?;
        }
        drop(saving);
        Ok(Self { _home: home, journal, raw, memory })
    }

    async fn ours(&self, scope: usize, question: &[String]) -> anyhow::Result<u64> {
        let identity = session(scope)?;
        let chain = Chain::of(ada().owner, &identity.identity, None);
        let question = Question::new(&question.join(" "));
        let found = self.journal.candidates(&chain, &question, 512).await?;
        let recalled = select(&chain, question.words(), found, DAY, 800);
        let label = format!("of{scope} ");
        let foreign = recalled.items.iter().filter(|ranked| {
            ranked.item.scope.session() != Some(&identity.identity)
                || !ranked.item.text.starts_with(&label)
        });
        Ok(foreign.count() as u64 + recalled.blocked)
    }

    fn fts(&self, scope: usize, question: &[String]) -> anyhow::Result<usize> {
        let any = question.join(" OR ");
        let mut statement = self
            .raw
            .prepare_cached("SELECT text FROM raw WHERE raw MATCH ?1 ORDER BY rank LIMIT 16")?;
        let asked = format!("scope:s{scope} AND text:({any})");
        let rows = statement.query_map([asked], |row| row.get::<_, String>(0))?;
        Ok(rows.filter_map(Result::ok).count())
    }

    fn scan(&self, scope: usize, question: &[String]) -> usize {
        let items = self.memory.get(&scope).map_or(&[][..], Vec::as_slice);
        let mut found: Vec<_> = items
            .iter()
            .map(|item| item.iter().filter(|word| question.contains(word)).count())
            .filter(|fits| *fits > 0)
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.len()
    }

    /// The median of each arm, in rounds whose order rotates.
    async fn compare(&self, rounds: usize) -> anyhow::Result<Figures> {
        let mut rng = Rng::with_seed(11);
        let (mut ours, mut fts, mut scan) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            for arm in 0..3 {
                let begun = Instant::now();
                let mut times = Vec::new();
                while begun.elapsed() < Duration::from_millis(700) {
                    let scope = rng.usize(0..SCOPES);
                    let question: Vec<_> = (0..3).map(|_| word(&mut rng)).collect();
                    let at = Instant::now();
                    match (arm + round) % 3 {
                        0 => drop(self.ours(scope, &question).await?),
                        1 => drop(std::hint::black_box(self.fts(scope, &question)?)),
                        _ => drop(std::hint::black_box(self.scan(scope, &question))),
                    }
                    times.push(at.elapsed().as_secs_f64() * 1e6);
                }
                match (arm + round) % 3 {
                    0 => ours.push(median(&times)),
                    1 => fts.push(median(&times)),
                    _ => scan.push(median(&times)),
                }
            }
        }
        Ok(Figures { ours: median(&ours), fts: median(&fts), scan: median(&scan) })
    }

    /// How many items of other sessions so many queries find.
    async fn foreign(&self, queries: u64) -> anyhow::Result<(u64, u64)> {
        let (asked, foreign) = (AtomicU64::new(0), AtomicU64::new(0));
        let ask = |at: u64| {
            let (asked, foreign) = (&asked, &foreign);
            async move {
                let mut rng = Rng::with_seed(at);
                let question: Vec<_> = (0..rng.usize(1..5)).map(|_| word(&mut rng)).collect();
                let found = self.ours(rng.usize(0..SCOPES), &question).await?;
                asked.fetch_add(1, Ordering::Relaxed);
                foreign.fetch_add(found, Ordering::Relaxed);
                anyhow::Ok(())
            }
        };
        let mut asking = stream::iter(0..queries).map(ask).buffer_unordered(8);
        while let Some(answered) = asking.next().await {
            answered?;
        }
        drop(asking);
        Ok((asked.into_inner(), foreign.into_inner()))
    }
}
