//! Many approvals that wait: what they cost in memory, how fast they are listed, how fast one is decided.

use std::time::{Duration, Instant};

use planwright_domain::{
    actor::{Person, Standing},
    command::{Approving, Asked, Decision, PersonCommand, SessionCommand, Start, Terms},
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    dispatch::dispatch,
    ports::journal::{Answer, Journal as _},
};
use uuid::Uuid;

use crate::{
    many,
    measure::{Judged, close, median, resident},
    peer::Peer,
};

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
        let _ = small.waiting(100).await?;
        let before = resident()?;
        let journal = SqliteJournal::open(&many_path)?;
        let mut lists = Vec::new();
        for _ in 0..200 {
            let begun = Instant::now();
            let rows = journal.waiting(1_000).await?;
            lists.push(begun.elapsed().as_secs_f64());
            anyhow::ensure!(rows.len() == 1_000.min(count), "{} rows", rows.len());
        }
        let per_ten_thousand = (resident()? - before).max(0.0) / (count as f64 / 10_000.0);
        let person = Person::new("ada", "bench", Standing::Decides);
        let (mut commands, mut resumes) = (Vec::new(), Vec::new());
        for at in 0..if quick { 200 } else { 1_000 } {
            let identity = many::session(at * 7 % count)?;
            // A command on a session that is warm: what a command costs.
            let say = SessionCommand::Person(
                person.clone(),
                PersonCommand::Say { text: "x".repeat(4_096) },
            );
            let warm = many::session(count - 1)?;
            if at % 500 == 0 {
                let reset = SessionCommand::Person(person.clone(), PersonCommand::Reset);
                dispatch(&journal, &warm, Asked::new(Uuid::now_v7(), Time(2), reset)).await?;
            }
            commands.push(
                timed(dispatch(&journal, &warm, Asked::new(Uuid::now_v7(), Time(2), say))).await?,
            );
            // And on one that has waited on disk: load, show, decide.
            let session = journal.session(&identity).await?;
            let digest =
                session.plan().and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
            let digest = digest.ok_or_else(|| anyhow::anyhow!("no revision"))?;
            let show =
                SessionCommand::Person(person.clone(), PersonCommand::RecordShown { digest });
            dispatch(&journal, &identity, Asked::new(Uuid::now_v7(), Time(2), show)).await?;
            let decision = Decision::Approve(Approving {
                start: Start::Hold,
                ..Approving::of(digest, Terms::default())
            });
            let approve = SessionCommand::Person(person.clone(), PersonCommand::Decide(decision));
            resumes.push(
                timed(dispatch(&journal, &identity, Asked::new(Uuid::now_v7(), Time(2), approve)))
                    .await?,
            );
        }
        if let Some(mut peer) = Peer::start() {
            let told = peer.ask("waiting 1000")?;
            let figure = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
            println!(
                "LangGraph, 1,000 that wait: {:.1} KB stored for each, listed in {:.0} ms, its process {:.1} MB larger",
                figure("bytes") / 1e6,
                figure("list") * 1e3,
                figure("memory") / 1e6
            );
        }
        let (list, ratio) = (median(&lists), median(&resumes) / median(&commands));
        println!("{count} approvals waiting");
        println!("memory for each 10,000: {:.2} MB", per_ten_thousand / 1e6);
        println!("listing 1,000 of them: {:.2} ms", list * 1e3);
        println!(
            "deciding one: {:.0} µs; a command: {:.0} µs",
            median(&resumes) * 1e6,
            median(&commands) * 1e6
        );
        let figure = format!(
            "{:.2} MB for each 10,000, list in {:.2} ms, decide in {ratio:.2} of a command",
            per_ten_thousand / 1e6,
            list * 1e3
        );
        let well = per_ten_thousand <= 1e6 && list < 5e-3 && ratio <= 2.0;
        Ok(close("waiting", &figure, "1 MB, 5 ms, 2 times", well))
    })
}

async fn timed(
    asked: impl Future<Output = Result<Answer, planwright_runtime::ports::journal::JournalError>>,
) -> anyhow::Result<f64> {
    let begun = Instant::now();
    match asked.await? {
        Answer::Accepted { .. } => Ok(begun.elapsed().as_secs_f64()),
        Answer::Refused(refusal) => anyhow::bail!(
            "{refusal} after {:?}",
            Duration::from_secs_f64(begun.elapsed().as_secs_f64())
        ),
    }
}
