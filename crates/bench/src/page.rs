//! Lists over many sessions on both engines, and what a turn costs in reads while many tabs watch lists.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use planwright_domain::{
    actor::{Person, Standing},
    command::{Decision, Issued, PersonCommand, SessionCommand},
    identity::SessionKey,
    next::{next, waiting},
    session::{Session, SessionEvent, decide},
    time::Time,
};
use planwright_outbound::{
    clock_system::SystemClock, journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal,
    statement_count,
};
use planwright_runtime::{
    ports::{
        Clock as _,
        journal::{Append, Archive, Journal as _, ListPlace, Recorded, SessionQuery, Stream},
        memory::Store,
    },
    queries::Queries,
};
use planwright_surfaces::http::serve;
use planwright_testkit::{
    people::{owner_id, person},
    servers::{Nats, Postgres},
};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::{
    arm::app_over,
    many,
    measure::{Judged, close, median},
    ours::Ours,
    plot,
};

/// How many statements a list may take, and how long: one that is searched for may take longer.
const STATEMENTS_MAX: u64 = 3;
const SECONDS_MAX: f64 = 5e-3;
const SEARCH_SECONDS_MAX: f64 = 20e-3;
/// How many reads of a database a turn may take while tabs watch.
const READS_MAX: u64 = 50;
/// How many sessions a page has.
const PAGE: usize = 100;
/// One of so many sessions is another owner's; in one of so many of the others, somebody decided.
const FOREIGN: usize = 10;
const DECIDED: usize = 200;

/// A word that all have, with one that few have; and what many words begin with.
const COMMON_AND_RARE: &str = "the depot0777";
const BEGINNING: &str = "depot07";

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (count, samples, tabs) = if quick { (2_000, 10, 100) } else { (100_000, 50, 1_000) };
    let pages = (count / PAGE / 2).min(100);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    statement_count::want();
    runtime.block_on(async move {
        let (postgres, nats) = (Postgres::start(), Nats::start());
        let (mut all, mut is_well) = (Vec::new(), true);
        println!("{count} sessions, page {pages}");
        println!("{:<12}{:<14}{:>10}{:>12}", "engine", "list", "ms", "statements");
        for engine in ["SQLite", "PostgreSQL"] {
            let ours = match engine {
                "SQLite" => Ours::start()?,
                _ => Ours::on_cluster(&postgres.address(), &nats.address()).await?,
            };
            let (journal, archive) = opened(&ours, engine, &postgres).await?;
            fill(&*archive, count).await?;
            drop((journal, archive));
            for (list, taken) in lists(&ours.runtime.queries, count, pages, samples).await? {
                let (seconds, statements) = taken;
                println!("{engine:<12}{list:<14}{:>10.2}{statements:>12}", seconds * 1e3);
                let most = if list.starts_with("search") { SEARCH_SECONDS_MAX } else { SECONDS_MAX };
                is_well &= seconds <= most && statements <= STATEMENTS_MAX;
                all.push((format!("{engine} {list}"), seconds * 1e3, statements));
            }
        }
        let (alone, watched, of_others) = watched(tabs).await?;
        println!(
            "statements of a turn: {alone} alone, {watched} while {tabs} tabs watch lists, {of_others} hints to those of others"
        );
        is_well &= watched <= READS_MAX.min(alone) && of_others == 0;
        let bars: Vec<_> = all.iter().map(|(list, ms, _)| (list.as_str(), *ms)).collect();
        plot::bars("page", "A list of 100,000 sessions", "ms", &bars)?;
        let slowest = |search| {
            let of = all.iter().filter(|(list, ..)| list.contains("search") == search);
            of.map(|(_, ms, _)| *ms).fold(0.0, f64::max)
        };
        let most = all.iter().map(|(.., statements)| *statements).max().unwrap_or(0);
        let figure = format!(
            "lists in at most {:.2} ms, searched in {:.1} ms, {most} statements; {watched} statements a turn with {tabs} tabs, {alone} without",
            slowest(false), slowest(true)
        );
        Ok(close("page", &figure, "5 ms, 20 ms, 3, 50", is_well))
    })
}

/// The journal of this arm once more, to be filled.
async fn opened(
    ours: &Ours,
    engine: &str,
    postgres: &Postgres,
) -> anyhow::Result<(Arc<dyn Store>, Arc<dyn Archive>)> {
    if engine == "SQLite" {
        let journal = Arc::new(SqliteJournal::open(&ours.journal())?);
        return Ok((journal.clone(), journal));
    }
    let journal = Arc::new(PostgresJournal::open(&postgres.address()).await?);
    Ok((journal.clone(), journal))
}

/// Stores so many sessions in which a plan waits; in some of them somebody rejected it.
async fn fill(archive: &dyn Archive, count: usize) -> anyhow::Result<()> {
    for name in ["ada", "bea"] {
        archive.owner_of(&person(name, "bench", Standing::Decides).id, owner_id(name)).await?;
    }
    let now = SystemClock.now();
    let numbers: Vec<_> = (0..count).collect();
    for some in numbers.chunks(64) {
        try_join_all(some.iter().map(async |number| {
            let at = now.plus_micros(*number as i64 - count as i64);
            let (stream, append) = session(*number, at)?;
            anyhow::ensure!(archive.restore(stream, append).await?, "{number} was there");
            anyhow::Ok(())
        }))
        .await?;
    }
    while archive.count_use(now, 1_024).await? > 0 {}
    while archive.index_words().await? > 0 {}
    Ok(())
}

fn session(number: usize, at: Time) -> anyhow::Result<(Stream, Append)> {
    let name = if number.is_multiple_of(FOREIGN) { "bea" } else { "ada" };
    let own = many::session(number)?;
    let key = SessionKey::new(owner_id(name), own.identity);
    let (mut after, mut events) = many::ready(&key, number, name)?;
    if number % DECIDED == 1 {
        let more = rejected(&after, &person(name, "bench", Standing::Decides), at)?;
        after = after.fold(at, &more)?;
        events.extend(more);
    }
    let recorded = (1..).zip(&events).map(|(seq, event)| {
        let seq = planwright_domain::id::Seq(seq);
        Recorded { seq, at, event: event.clone() }
    });
    let (answers, outputs) = (Default::default(), Default::default());
    let stream = Stream { key, events: recorded.collect(), answers, outputs };
    let (due, waiting) = (next(&after).due(), waiting(&after));
    Ok((stream, Append { events, after, due, waiting, turns: None }))
}

/// What happens when somebody rejects the plan.
fn rejected(session: &Session, by: &Person, at: Time) -> anyhow::Result<Vec<SessionEvent>> {
    let digest = session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
    let digest = digest.ok_or_else(|| anyhow::anyhow!("no revision"))?;
    let reject = PersonCommand::Decide(Decision::Reject { digest, why: None });
    let command = SessionCommand::Person(by.clone(), reject);
    Ok(decide(session, &Issued::new(Uuid::now_v7(), at, command))?)
}

/// The median seconds of each list, and its statements.
async fn lists(
    queries: &Queries,
    count: usize,
    pages: usize,
    samples: usize,
) -> anyhow::Result<Vec<(&'static str, (f64, u64))>> {
    let ada = person("ada", "bench", Standing::Speaks);
    let query = |after, text: &str| SessionQuery {
        owner: Some(ada.owner),
        waiting: false,
        text: text.into(),
        after,
        limit: PAGE,
    };
    let mut hundredth: Option<ListPlace> = None;
    for _ in 1..pages {
        hundredth = queries.session_page(&query(hundredth, "")).await?.next;
    }
    anyhow::ensure!(hundredth.is_some(), "there are not so many pages");
    let page = async |after, text: &str| -> anyhow::Result<usize> {
        Ok(queries.session_page(&query(after, text)).await?.rows.len())
    };
    let day = SystemClock.now().plus_micros(-86_400_000_000);
    let first = measured(samples, PAGE, async || page(None, "").await).await?;
    let later = measured(samples, PAGE, async || page(hundredth, "").await).await?;
    let approvals = async || Ok(queries.approvals(&ada, None, PAGE).await?.rows.len());
    let approvals = measured(samples, PAGE, approvals).await?;
    let some = PAGE.min(count / DECIDED);
    let decisions = async || Ok(queries.decided(&ada, day, None, PAGE).await?.0.len().min(some));
    let decisions = measured(samples, some, decisions).await?;
    let spend = async || Ok(usize::from(queries.quotas().now(ada.owner).await?.1.used.bytes > 0));
    let spend = measured(samples, 1, spend).await?;
    let key = measured(samples, 1, async || page(None, "waiting-001777").await).await?;
    // A word that many sessions have, with one that few have; and how many words begin.
    let text = COMMON_AND_RARE;
    let rare = page(None, text).await?;
    anyhow::ensure!(rare > 0 && rare < PAGE, "{rare} sessions have {text}");
    let words = measured(samples, rare, async || page(None, text).await).await?;
    let beginning = page(None, BEGINNING).await?;
    let begins = measured(samples, beginning, async || page(None, BEGINNING).await).await?;
    Ok(vec![
        ("first", first),
        ("later", later),
        ("approvals", approvals),
        ("decisions", decisions),
        ("spend", spend),
        ("search key", key),
        ("search words", words),
        ("search begins", begins),
    ])
}

/// The median seconds of what is asked, and the statements of one time; it must bring so many rows.
async fn measured(
    samples: usize,
    rows: usize,
    ask: impl AsyncFn() -> anyhow::Result<usize>,
) -> anyhow::Result<(f64, u64)> {
    // The first time prepares what the others use.
    ask().await?;
    let (mut seconds, before) = (Vec::new(), statement_count::count());
    for _ in 0..samples {
        let begun = Instant::now();
        let found = ask().await?;
        seconds.push(begun.elapsed().as_secs_f64());
        anyhow::ensure!(found == rows, "{found} rows instead of {rows}");
    }
    let asked = statement_count::count() - before;
    Ok((median(&seconds), asked.div_ceil(samples as u64)))
}

/// The statements of a turn alone, the same while so many tabs watch lists over HTTP, half of them those of its owner; and how
/// many hints the tabs of somebody else got.
async fn watched(tabs: usize) -> anyhow::Result<(u64, u64, usize)> {
    const TURNS: u64 = 20;
    let (ours, home) = (Ours::start()?, tempfile::tempdir()?);
    for name in ["ada", "bea"] {
        let person = person(name, "bench", Standing::Speaks);
        SqliteJournal::open(&ours.journal())?.owner_of(&person.id, person.owner).await?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let tokens = [("of-ada", "ada", Standing::Speaks), ("of-bea", "bea", Standing::Speaks)];
    let app = app_over(&ours.runtime, home.path(), port, &tokens).await?;
    tokio::spawn(serve(listener, app, std::future::pending()));
    let key = many::session(0)?;
    let turns = async || -> anyhow::Result<u64> {
        let before = statement_count::count();
        for _ in 0..TURNS {
            ours.does(&key, "what do you think?").await?;
        }
        Ok((statement_count::count() - before).div_ceil(TURNS))
    };
    turns().await?;
    let alone = turns().await?;
    let (client, mut watching) = (reqwest::Client::new(), Vec::new());
    for (token, ..) in tokens {
        let heard = Arc::new(AtomicUsize::new(0));
        for _ in 0..tabs / 2 {
            let asked = client.get(format!("http://127.0.0.1:{port}/api/hints")).bearer_auth(token);
            tokio::spawn(listens(asked.send().await?.error_for_status()?, heard.clone()));
        }
        watching.push(heard);
    }
    // Every tab was told to read everything once.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let with_tabs = turns().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let heard = |which: usize| watching[which].load(Ordering::SeqCst);
    anyhow::ensure!(heard(0) >= tabs / 2, "{} tabs of the owner heard {}", tabs / 2, heard(0));
    Ok((alone, with_tabs, heard(1)))
}

/// Counts the rows that a tab is sent.
async fn listens(mut tab: reqwest::Response, heard: Arc<AtomicUsize>) {
    while let Ok(Some(piece)) = tab.chunk().await {
        let rows = String::from_utf8_lossy(&piece).matches("event: changed").count();
        heard.fetch_add(rows, Ordering::SeqCst);
    }
}
