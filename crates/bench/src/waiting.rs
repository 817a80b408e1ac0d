//! Many approvals that wait: what they cost in memory, how fast they are listed, how fast one is decided.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use planwright_domain::{
    actor::Standing,
    command::{Approving, Decision, Issued, PersonCommand, SessionCommand, Start, Terms},
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::journal::{Answer, Journal as _, SessionQuery},
};
use planwright_testkit::people::person;
use uuid::Uuid;

use crate::{
    many,
    measure::{Judged, PEER_MISSING, close, median, resident},
    payload::{COMMANDS, nth},
    peer::Peer,
};

/// How many conversations wait at the peer.
const PEER_COUNT: usize = 2_000;

fn all_waiting(limit: usize) -> SessionQuery {
    SessionQuery { owner: None, waiting: true, text: String::new(), after: None, limit }
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let count = if quick { 10_000 } else { 100_000 };
    let home = tempfile::Builder::new().prefix("planwright-waiting-").tempdir()?;
    let (few, many_path) = (home.path().join("few.sqlite"), home.path().join("many.sqlite"));
    many::fill(&few, 1)?;
    many::fill(&many_path, count)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        // What a journal costs by itself, before there is anything in it.
        let small = SqliteJournal::open(&few)?;
        let _ = small.session_page(&all_waiting(100)).await?;
        let before = resident()?;
        let journal = SqliteJournal::open(&many_path)?;
        let mut lists = Vec::new();
        for _ in 0..200 {
            let begun = Instant::now();
            let rows = journal.session_page(&all_waiting(1_000)).await?.rows;
            lists.push(begun.elapsed().as_secs_f64());
            anyhow::ensure!(rows.len() == 1_000.min(count), "{} rows", rows.len());
        }
        let per_ten_thousand = (resident()? - before).max(0.0) / (count as f64 / 10_000.0);
        let (commands, resumes) =
            decide_many(&journal, count, if quick { 200 } else { 1_000 }).await?;
        let of_peer = peer_memory(home.path(), if quick { 200 } else { PEER_COUNT })?;
        let (list, ratio) = (median(&lists), median(&resumes) / median(&commands));
        println!("{count} approvals waiting");
        println!("memory for each 10,000: {:.2} MB", per_ten_thousand / 1e6);
        println!("listing 1,000 of them: {:.2} ms", list * 1e3);
        println!(
            "deciding one: {:.0} µs; a command: {:.0} µs",
            median(&resumes) * 1e6,
            median(&commands) * 1e6
        );
        let peer = of_peer.map_or_else(
            || PEER_MISSING.into(),
            |bytes| format!("the peer {:.1} MB for each 10,000", bytes / 1e6),
        );
        let figure = format!(
            "{:.2} MB for each 10,000, list in {:.2} ms, decide in {ratio:.2} of a command; {peer}",
            per_ten_thousand / 1e6,
            list * 1e3
        );
        let is_well = per_ten_thousand <= 1e6 && list < 5e-3 && ratio <= 2.0;
        let well = is_well && of_peer.is_some();
        Ok(close("waiting", &figure, "1 MB, 5 ms, 2 times", well))
    })
}

/// The seconds of so many commands on a warm session, and of as many decisions on sessions that waited on disk.
async fn decide_many(
    journal: &SqliteJournal,
    count: usize,
    samples: usize,
) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let person = person("ada", "bench", Standing::Decides);
    let (mut commands, mut resumes) = (Vec::new(), Vec::new());
    for at in 0..samples {
        let identity = many::session(at * 7 % count)?;
        // A command on a session that is warm: what a command costs.
        let say = SessionCommand::Person(
            person.clone(),
            PersonCommand::Say { text: nth(&COMMANDS, at as u64).into() },
        );
        let warm = many::session(count - 1)?;
        if at % 500 == 0 {
            let reset = SessionCommand::Person(person.clone(), PersonCommand::Reset);
            dispatch(journal, &warm, Issued::new(Uuid::now_v7(), Time(2), reset)).await?;
        }
        commands.push(
            timed(dispatch(journal, &warm, Issued::new(Uuid::now_v7(), Time(2), say))).await?,
        );
        // And on one that has waited on disk: load, show, decide.
        let session = journal.session(&identity).await?;
        let digest = session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
        let digest = digest.ok_or_else(|| anyhow::anyhow!("no revision"))?;
        let show = SessionCommand::Person(person.clone(), PersonCommand::RecordShown { digest });
        dispatch(journal, &identity, Issued::new(Uuid::now_v7(), Time(2), show)).await?;
        let decision = Decision::Approve(Approving {
            start: Start::Hold,
            ..Approving::of(digest, Terms::default())
        });
        let approve = SessionCommand::Person(person.clone(), PersonCommand::Decide(decision));
        resumes.push(
            timed(dispatch(journal, &identity, Issued::new(Uuid::now_v7(), Time(2), approve)))
                .await?,
        );
    }
    Ok((commands, resumes))
}

/// Bytes of memory that the peer's process takes for each 10,000 that wait; none if it is not installed. Measured as ours
/// is: one process leaves them in a file, another one opens it and lists them, and what it held before is not counted.
fn peer_memory(home: &Path, count: usize) -> anyhow::Result<Option<f64>> {
    let (few, many) = (home.join("few-peer.sqlite"), home.join("many-peer.sqlite"));
    let Some(mut maker) = Peer::start() else { return Ok(None) };
    maker.ask(&format!("wait 1 {}", few.display()))?;
    maker.ask(&format!("wait {count} {}", many.display()))?;
    drop(maker);
    let Some(mut peer) = Peer::start() else { return Ok(None) };
    let told = peer.ask(&format!("waiting {} {}", few.display(), many.display()))?;
    let figure = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
    anyhow::ensure!(figure("found") == count as f64, "the peer found {}", told["found"]);
    println!(
        "LangGraph, {count} that wait: {:.1} KB stored for each, listed in {:.0} ms, its process {:.1} MB larger",
        figure("bytes") / 1e3 / count as f64,
        figure("list") * 1e3,
        figure("memory") / 1e6
    );
    println!(
        "(not alike: the peer has {count} where we have more, so its memory is multiplied up; it keeps no list of what waits, so listing loads every conversation; ours reads rows, with a page cache of SQLite's that does not grow with them)"
    );
    Ok(Some(figure("memory") / (count as f64 / 10_000.0)))
}

async fn timed(
    answered: impl Future<Output = Result<Answer, planwright_runtime::ports::journal::JournalError>>,
) -> anyhow::Result<f64> {
    let begun = Instant::now();
    match answered.await? {
        Answer::Accepted { .. } => Ok(begun.elapsed().as_secs_f64()),
        Answer::Refused(refusal) => anyhow::bail!(
            "{refusal} after {:?}",
            Duration::from_secs_f64(begun.elapsed().as_secs_f64())
        ),
    }
}
