//! The cluster: a call of the lane against a bare virtual object, and approvals that wait.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use planwright_domain::{id::Seq, identity::SessionKey};
use planwright_format::{body::Packer, event::EventPlace};
use planwright_outbound::{journal_postgres::PostgresJournal, lane_restate::RestateAdmin};
use planwright_runtime::ports::journal::Journal as _;
use planwright_testkit::{
    cluster::{Cluster, Shape},
    people::key_in,
    scripted_model::{Conduct, ScriptedReply, SeenRequest, worker::worker},
    servers::Postgres,
};
use reqwest::{Client, Method};
use restate_sdk::{hyper::HyperEndpoint, prelude::*};
use tokio::net::TcpListener;

use crate::{
    measure::{Judged, close, cpu_of, cpu_of_all, median, resident_of},
    plot,
};

pub(crate) mod command;
pub(crate) mod export;

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

struct Bare;

#[restate_sdk::object(
    name = "Bare",
    client_visibility = "pub(super)",
    journal_retention = "0s",
    idempotency_retention = "1m"
)]
impl Bare {
    /// Nothing at all.
    #[handler]
    async fn run(&self, _context: ObjectContext<'_>) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// Serves the bare object; where.
async fn serve_bare() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let endpoint = HyperEndpoint::new(Endpoint::builder().bind(Bare).build());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), endpoint.clone());
            tokio::spawn(connection);
        }
    });
    Ok(address)
}

/// A call of the lane, against a call of an object that does nothing; and a whole turn.
pub(crate) fn turn(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1.0) } else { (7, 2.0) };
    runtime()?.block_on(async move {
        let model: Conduct = Arc::new(|_: &SeenRequest| ScriptedReply::text("done"));
        let cluster = Cluster::start(model, shape()).await?;
        let admin = RestateAdmin::new(&cluster.restate.admin(0))?;
        admin.register(&cluster.endpoint(0), false).await?;
        admin.register(&serve_bare().await?, false).await?;
        let client = Client::builder().tcp_nodelay(true).build()?;
        let ingress = cluster.restate.ingress(0);
        let call = async |object: &str, at: usize| {
            let begun = Instant::now();
            let answer = client.post(format!("{ingress}/{object}-{at:08}/{}", verb(object))).send();
            anyhow::ensure!(
                answer.await?.error_for_status()?.bytes().await?.is_empty(),
                "a result"
            );
            Ok(begun.elapsed().as_secs_f64())
        };
        println!(
            "{:<7}{:>12}{:>12}{:>12}{:>16}",
            "round", "lane µs", "bare µs", "lane/bare", "a turn, ms"
        );
        let (mut ratios, mut turns, mut at) = (Vec::new(), Vec::new(), 0);
        let (mut lanes, mut bares) = (Vec::new(), Vec::new());
        let (mut cpu, mut many) = ([0.0; 3], 0.0);
        for round in 0..rounds {
            let mut taken = [f64::NAN; 2];
            for arm in 0..2 {
                let which = (arm + round) % 2;
                let object = ["Lane/api:bench", "Bare/bench"][which];
                let (begun, mut times) = (Instant::now(), Vec::new());
                while begun.elapsed() < Duration::from_secs_f64(slice) {
                    at += 1;
                    times.push(call(object, at).await?);
                }
                taken[which] = median(&times);
            }
            let before = cpus(&cluster)?;
            let whole = whole_turns(&cluster, &mut at).await?;
            many += whole.len() as f64;
            for ((cpu, after), before) in cpu.iter_mut().zip(cpus(&cluster)?).zip(before) {
                *cpu += after - before;
            }
            let [lane, bare] = taken;
            let (ratio, turn) = (lane / bare, median(&whole) * 1e3);
            let (lane, bare) = (lane * 1e6, bare * 1e6);
            ratios.push(ratio);
            turns.push(turn);
            lanes.push(lane);
            bares.push(bare);
            println!("{round:<7}{lane:>12.0}{bare:>12.0}{ratio:>12.2}{turn:>16.1}");
        }
        let [node, engine, database] = cpu.map(|cpu| cpu / many * 1e3);
        println!(
            "CPU of a turn, status requests of this client included: node {node:.2} ms, Restate {engine:.2} ms, PostgreSQL {database:.2} ms"
        );
        let arms = [("the lane", median(&lanes)), ("a bare object", median(&bares))];
        plot::bars("cluster-turn", "A call through Restate", "µs", &arms)?;
        let ratio = median(&ratios);
        Ok(close(
            "cluster-turn",
            &format!(
                "the lane takes {ratio:.2} times a bare virtual object; a whole turn {:.1} ms",
                median(&turns)
            ),
            "1.3 times a bare virtual object",
            ratio <= 1.3,
        ))
    })
}

/// The seconds of twenty turns, each in a new session.
async fn whole_turns(cluster: &Cluster, at: &mut usize) -> anyhow::Result<Vec<f64>> {
    let mut whole = Vec::new();
    for _ in 0..20 {
        *at += 1;
        let session = format!("turn-{at:08}");
        let begun = Instant::now();
        cluster.says(0, &session, "hello").await?;
        loop {
            let status = cluster.status(0, &session).await?;
            if status["resting"] == true && status["version"].as_u64() > Some(1) {
                break;
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        whole.push(begun.elapsed().as_secs_f64());
    }
    Ok(whole)
}

/// CPU seconds of the node, the engine and the database.
fn cpus(cluster: &Cluster) -> anyhow::Result<[f64; 3]> {
    let pids = [cluster.pid(0), cluster.restate.pid(0), cluster.postgres.pid()];
    let mut used = [0.0; 3];
    for (used, pid) in used.iter_mut().zip(pids) {
        *used = cpu_of_all(pid.context("a server is gone")?)?;
    }
    Ok(used)
}

fn verb(object: &str) -> &'static str {
    if object.starts_with("Lane") { "advance" } else { "run" }
}

/// One node of the program as people run it.
fn shape() -> Shape {
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name("planwright"));
    Shape { nodes: 1, program: beside, ..Shape::default() }
}

/// Approvals that wait in a cluster: what they cost the process, and how fast they are listed.
pub(crate) fn waiting(quick: bool) -> anyhow::Result<Judged> {
    let count: u32 = if quick { 10_000 } else { 100_000 };
    runtime()?.block_on(async move {
        let cluster = Cluster::start(worker(4_096, 1), shape()).await?;
        cluster.says(0, "session-0", "/plan on").await?;
        cluster.says(0, "session-0", "plan it").await?;
        let ready = |status: &serde_json::Value| status["waiting"] == "decision";
        cluster.until(0, "session-0", ready).await?;
        let list = async || -> anyhow::Result<f64> {
            let begun = Instant::now();
            let answer = cluster.request(0, Method::GET, "/api/approvals").send().await?;
            anyhow::ensure!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await?;
            Ok(begun.elapsed().as_secs_f64())
        };
        for _ in 0..200 {
            list().await?;
        }
        let pid = cluster.pid(0).context("the node is gone")?;
        let before = resident_of(pid)?;
        copies(&cluster.postgres, count).await?;
        let mut lists = Vec::new();
        for _ in 0..200 {
            lists.push(list().await?);
        }
        let used = cpu_of(pid)?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let idle = (cpu_of(pid)? - used) / 10.0 * 100.0;
        let more = (resident_of(pid)? - before).max(0.0);
        let bytes = cluster.postgres.psql("SELECT pg_database_size('postgres')");
        println!("{count} approvals waiting; the database holds {bytes} bytes");
        println!(
            "the node: {:.1} MB before, {:.2} MB more after, {idle:.2} % of a core when idle",
            before / 1e6,
            more / 1e6
        );
        println!("listing: {:.2} ms", median(&lists) * 1e3);
        let each = more / (f64::from(count) / 10_000.0);
        Ok(close(
            "cluster-waiting",
            &format!(
                "{:.2} MB of the node for each 10,000 that wait, list in {:.2} ms",
                each / 1e6,
                median(&lists) * 1e3
            ),
            "1 MB, 5 ms",
            each <= 1e6 && median(&lists) < 5e-3,
        ))
    })
}

/// The one session that waits, so many times.
async fn copies(postgres: &Postgres, count: u32) -> anyhow::Result<()> {
    let one = "SELECT id FROM streams WHERE identity = 'cli:session-0'";
    let _ = postgres.psql(&format!(
        "INSERT INTO streams (owner, identity, version, updated_at, listed_at, waiting, plan, searched) SELECT owner, 'cli:copy-' || at, version, updated_at + at, listed_at + at, waiting, plan, version FROM streams, generate_series(1, {count}) AS at WHERE id = ({one})"
    ));
    let journal = PostgresJournal::open(&postgres.address()).await?;
    let session = key_in(&journal, "cli:session-0").await?;
    let events = journal.events(&session, Seq(0), usize::MAX).await?;
    let (mut packer, client) = (Packer::new()?, journal.pool().get().await?);
    // A body is sealed for the session in which it lies.
    for chunk in (1..=count).collect::<Vec<_>>().chunks(500) {
        let (mut sessions, mut seqs, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut kinds, mut bodies) = (Vec::new(), Vec::new());
        for (copy, recorded) in chunk.iter().flat_map(|at| events.iter().map(move |one| (at, one)))
        {
            let (identity, seq) = (format!("cli:copy-{copy}"), recorded.seq.0);
            let key = SessionKey::named(&identity, session.owner)?.to_string();
            let place = EventPlace { stream: &key, seq, at: recorded.at.0 };
            let stored = packer.seal_event(place, &recorded.event, 1)?;
            sessions.push(identity);
            seqs.push(seq.cast_signed());
            times.push(recorded.at.0);
            kinds.push(stored.kind);
            bodies.push(stored.body);
        }
        let sql = "INSERT INTO events (stream, seq, at, kind, body) SELECT streams.id, seq, at, kind, body
                   FROM streams, unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[])
                       AS copied (session, seq, at, kind, body) WHERE identity = session";
        client.execute(sql, &[&sessions, &seqs, &times, &kinds, &bodies]).await?;
    }
    let _ = postgres.psql("ANALYZE");
    Ok(())
}
