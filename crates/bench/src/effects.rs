//! Very many calls of models that are open at once: the model holds each until all are open, and answers a while after the last.
//! What a call that waits costs in memory and in CPU, in the program on one machine and on three nodes of a cluster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use planwright_testkit::{
    cluster::{Cluster, Shape},
    files,
    scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest},
};
use reqwest::Client;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use tokio::{sync::watch, time::sleep};
use uuid::Uuid;

use crate::{
    measure::{Judged, close, cpu_of_all, resident_of},
    payload::{TURNS, nth},
    start::House,
};

/// How many calls are to be open at once, and how long they stay open after the last.
const OPEN: usize = 5_000;
const HELD: Duration = Duration::from_secs(20);
/// How long it may take until they are open, and until all have ended.
const PATIENCE: Duration = Duration::from_secs(240);
/// How many people the sessions are begun by at once.
const CALLERS: usize = 32;

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    files::allow_many();
    let (open, held) = if quick { (400, Duration::from_secs(3)) } else { (OPEN, HELD) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        let alone = one_process(open, held).await?;
        alone.print("one process");
        let nodes = three_nodes(open, held).await?;
        nodes.print("three nodes");
        let figure =
            format!("one process: {}; three nodes: {}", alone.in_words(), nodes.in_words());
        let target = format!("{open} open, all end, none twice, none parked");
        let well = alone.is_well(open) && nodes.is_well(open);
        Ok(close("effects", &figure, &target, well))
    })
}

/// Where the sessions are, and what acts for them.
struct Place<'a> {
    urls: Vec<String>,
    token: String,
    /// What is looked at, by name, with its processes.
    parts: Vec<(&'static str, Vec<u32>)>,
    model: &'a ScriptedModel,
    release: watch::Sender<bool>,
    /// How many rows this question gives.
    counts: &'a (dyn Fn(&str) -> anyhow::Result<usize> + Sync),
}

/// What came of it.
struct Held {
    peak: usize,
    /// Seconds until the last call was open, and from the first answer until the last turn had ended.
    opened: f64,
    ended: f64,
    asked: usize,
    finished: usize,
    parked: usize,
    parts: Vec<Part>,
}

/// What a part of it took for each call.
struct Part {
    name: &'static str,
    /// Bytes more than before.
    memory: f64,
    /// Seconds of CPU to open it and to end it, and a second of it as long as it waits.
    beginning_and_end: f64,
    waiting: f64,
}

impl Held {
    fn is_well(&self, open: usize) -> bool {
        self.peak >= open && self.asked == open && self.finished == open && self.parked == 0
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} calls open at once, after {:.1} s; all ended {:.1} s after they were answered; {} asked, {} finished, {} parked",
            self.peak, self.opened, self.ended, self.asked, self.finished, self.parked
        );
        println!(
            "{:<14}{:>16}{:>24}{:>28}",
            "", "KB for each", "ms CPU to open and end", "µs CPU for each and second"
        );
        for part in &self.parts {
            println!(
                "{:<14}{:>16.1}{:>24.2}{:>28.1}",
                part.name,
                part.memory / 1e3,
                part.beginning_and_end * 1e3,
                part.waiting * 1e6
            );
        }
    }

    fn in_words(&self) -> String {
        let first = &self.parts[0];
        format!(
            "{} open after {:.0} s, {:.0} KB and {:.1} ms CPU for each, {} finished, {} asked twice, {} parked",
            self.peak,
            self.opened,
            first.memory / 1e3,
            first.beginning_and_end * 1e3,
            self.finished,
            self.asked.saturating_sub(self.finished),
            self.parked
        )
    }
}

/// A model that holds every call until it is released.
fn holding() -> (watch::Sender<bool>, Conduct) {
    let (release, released) = watch::channel(false);
    let conduct = Arc::new(move |seen: &SeenRequest| ScriptedReply {
        held_until: Some(released.clone()),
        ..ScriptedReply::text(nth(&TURNS, seen.earlier as u64))
    });
    (release, conduct)
}

async fn one_process(open: usize, held: Duration) -> anyhow::Result<Held> {
    let house = House::build(0)?;
    let (release, conduct) = holding();
    let model = ScriptedModel::start(conduct).await?;
    let mut running = house.start(Some(&model.base_url()))?;
    tokio::task::block_in_place(|| running.ready())?;
    let journal = Connection::open_with_flags(
        house.journal(),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_FULL_MUTEX,
    )?;
    let journal = std::sync::Mutex::new(journal);
    let counts = |sql: &str| -> anyhow::Result<usize> {
        let journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(usize::try_from(journal.query_row(sql, [], |row| row.get::<_, i64>(0))?)?)
    };
    let place = Place {
        urls: vec![format!("http://127.0.0.1:{}", running.port)],
        token: std::fs::read_to_string(house.data().join("token"))?.trim().to_owned(),
        parts: vec![("the program", vec![running.pid()])],
        model: &model,
        release,
        counts: &counts,
    };
    place.hold(open, held).await
}

async fn three_nodes(open: usize, held: Duration) -> anyhow::Result<Held> {
    let (release, conduct) = holding();
    let program = std::env::current_exe()?.with_file_name("planwright");
    let cluster = Cluster::start(
        conduct,
        Shape { program: Some(program), as_shipped: true, ..Shape::default() },
    )
    .await?;
    let nodes = (0..3).map(|at| cluster.pid(at).context("a node is gone"));
    let (nodes, engine) = (nodes.collect::<Result<_, _>>()?, cluster.restate.pid(0));
    let counts =
        |sql: &str| -> anyhow::Result<usize> { Ok(cluster.postgres.psql(sql).trim().parse()?) };
    let place = Place {
        urls: cluster.nodes.iter().map(|node| format!("http://127.0.0.1:{}", node.api)).collect(),
        token: cluster.decider.clone(),
        parts: vec![
            ("three nodes", nodes),
            ("Restate", vec![engine.context("the engine is gone")?]),
            ("PostgreSQL", vec![cluster.postgres.pid().context("the database is gone")?]),
        ],
        model: &cluster.model,
        release,
        counts: &counts,
    };
    place.hold(open, held).await
}

impl Place<'_> {
    fn cpu(&self) -> anyhow::Result<Vec<f64>> {
        let of = |pids: &Vec<u32>| pids.iter().map(|pid| cpu_of_all(*pid)).sum();
        self.parts.iter().map(|(_, pids)| of(pids)).collect()
    }

    fn memory(&self) -> anyhow::Result<Vec<f64>> {
        let of = |pids: &Vec<u32>| pids.iter().map(|pid| resident_of(*pid)).sum();
        self.parts.iter().map(|(_, pids)| of(pids)).collect()
    }

    /// Has a message said in each of so many sessions.
    async fn say(&self, open: usize) -> anyhow::Result<()> {
        let client = Client::builder().timeout(Duration::from_secs(60)).build()?;
        let mut said = stream::iter(0..open)
            .map(|at| {
                let url = &self.urls[at % self.urls.len()];
                let request =
                    client.post(format!("{url}/api/sessions/cli:effects-{at:05}/messages"));
                let request =
                    request.bearer_auth(&self.token).json(&json!({"text": nth(&TURNS, at as u64)}));
                request.header("idempotency-key", Uuid::new_v4().to_string()).send()
            })
            .buffer_unordered(CALLERS);
        while let Some(answer) = said.next().await {
            let answer = answer?;
            let status = answer.status();
            anyhow::ensure!(status.is_success(), "{status}: {}", answer.text().await?);
        }
        Ok(())
    }

    async fn hold(self, open: usize, held: Duration) -> anyhow::Result<Held> {
        let (cpu_before, memory_before) = (self.cpu()?, self.memory()?);
        let begun = Instant::now();
        self.say(open).await?;
        let mut peak = 0;
        while peak < open && begun.elapsed() < PATIENCE {
            peak = peak.max(self.model.thinking());
            sleep(Duration::from_millis(20)).await;
        }
        let (opened, cpu_open) = (begun.elapsed().as_secs_f64(), self.cpu()?);
        sleep(held).await;
        let (cpu_held, memory) = (self.cpu()?, self.memory()?);
        peak = peak.min(self.model.thinking());
        self.release.send_replace(true);
        let released = Instant::now();
        let finished = || (self.counts)("SELECT count(*) FROM events WHERE kind = 'turn_finished'");
        while finished()? < open && released.elapsed() < PATIENCE {
            sleep(Duration::from_millis(100)).await;
        }
        let ended = released.elapsed().as_secs_f64();
        // What was asked a second time, or parked, would be within a moment.
        sleep(Duration::from_secs(1)).await;
        let cpu_after = self.cpu()?;
        let each = open as f64;
        let part = |at: usize| Part {
            name: self.parts[at].0,
            memory: (memory[at] - memory_before[at]) / each,
            beginning_and_end: (cpu_after[at] - cpu_held[at] + cpu_open[at] - cpu_before[at])
                / each,
            waiting: (cpu_held[at] - cpu_open[at]) / held.as_secs_f64() / each,
        };
        Ok(Held {
            peak,
            opened,
            ended,
            asked: self.model.request_count(),
            finished: finished()?,
            parked: (self.counts)("SELECT count(*) FROM streams WHERE parked IS NOT NULL")?,
            parts: (0..self.parts.len()).map(part).collect(),
        })
    }
}
