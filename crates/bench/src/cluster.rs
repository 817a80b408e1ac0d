//! The cluster: a command against the bare transaction, a call of the lane against a bare virtual object,
//! and approvals that wait.

use planwright_domain::identity::SessionKey;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use planwright_domain::{
    actor::Standing,
    command::{Issued, PersonCommand, SessionCommand},
    id::Seq,
    time::Time,
};
use planwright_format::{body::Packer, event::EventPlace};
use planwright_outbound::{journal_postgres::PostgresJournal, lane_restate::RestateAdmin};
use planwright_runtime::{commands::dispatch::dispatch, ports::journal::Journal as _};
use planwright_testkit::people::{ada_key, key_in, person};
use planwright_testkit::{
    cluster::{Cluster, Shape},
    scripted_model::{Conduct, ScriptedReply, SeenRequest, worker::worker},
    servers::{Nats, Postgres},
};
use reqwest::{Client, Method};
use restate_sdk::{hyper::HyperEndpoint, prelude::*};
use tokio::net::TcpListener;

use crate::{
    arm::{Arm, BUS, DATABASE},
    command::median_time,
    http_client::ArmClient,
    measure::{Judged, close, cpu_of, cpu_of_all, median, resident_of},
    payload::{COMMANDS, nth},
    plot,
};

/// Streams that the bare transaction moves.
const STREAMS: u32 = 1_000;
/// How many different texts the bare transaction stores.
const SCRIPTS: usize = 16;

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A durable command, one client, against the same transaction by pgbench.
pub(crate) fn command(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1) } else { (7, 2) };
    let runtime = runtime()?;
    let (postgres, nats) = (Postgres::start(), Nats::start());
    let (database, bus) = (postgres.address(), nats.address());
    let ours = Arm::start_with("cluster", &[(DATABASE, &database), (BUS, &bus)])?;
    let mut client = ArmClient::new(&ours, true, 0)?;
    runtime.block_on(client.command())?;
    let _ = postgres.psql(&format!(
        "INSERT INTO streams (owner, identity, version, updated_at) SELECT gen_random_uuid(), 'bare:' || at, 0, 0 FROM generate_series(1, {STREAMS}) AS at"
    ));
    let first = postgres.psql("SELECT min(id) FROM streams WHERE identity LIKE 'bare:%'");
    let home = tempfile::tempdir()?;
    let one = scripts(&home.path().join("one"), |text| one_statement(&first, text))?;
    let many = scripts(&home.path().join("six"), |text| six_statements(&first, text))?;
    let journal = runtime.block_on(PostgresJournal::open(&database))?;
    println!(
        "{:<7}{:>12}{:>16}{:>16}{:>16}{:>12}{:>12}",
        "round", "ours µs", "one stmt µs", "six stmts µs", "journal µs", "ours/one", "ours/six"
    );
    let (mut of_one, mut of_six, mut all) =
        (Vec::new(), Vec::new(), [Vec::new(), Vec::new(), Vec::new(), Vec::new()]);
    for round in 0..rounds {
        let mut taken = [f64::NAN; 4];
        for arm in 0..4 {
            let which = (arm + round) % 4;
            taken[which] = match which {
                0 => runtime.block_on(median_time(&mut client, f64::from(slice)))?,
                1 => pgbench(&postgres, &one, slice)?,
                2 => pgbench(&postgres, &many, slice)?,
                _ => runtime.block_on(append_time(&journal, round, f64::from(slice)))?,
            };
        }
        let [ours, one, six, alone] = taken;
        all.iter_mut().zip(taken).for_each(|(all, taken)| all.push(taken * 1e6));
        of_one.push(ours / one);
        of_six.push(ours / six);
        println!(
            "{round:<7}{:>12.0}{:>16.0}{:>16.0}{:>16.0}{:>12.2}{:>12.2}",
            ours * 1e6,
            one * 1e6,
            six * 1e6,
            alone * 1e6,
            ours / one,
            ours / six
        );
    }
    let arms = [
        ("ours, over HTTP", median(&all[0])),
        ("pgbench, one statement", median(&all[1])),
        ("pgbench, six statements", median(&all[2])),
        ("our journal alone", median(&all[3])),
    ];
    plot::bars("cluster-command", "A durable command of 4 KB in a cluster", "µs", &arms)?;
    let (of_one, of_six) = (median(&of_one), median(&of_six));
    Ok(close(
        "cluster-command",
        &format!(
            "{of_one:.2} times the bare statement, {of_six:.2} times the bare transaction of six"
        ),
        "1.5 times the bare transaction",
        of_six <= 1.5,
    ))
}

/// Seconds that one append takes, without HTTP and without anyone who is told.
async fn append_time(journal: &PostgresJournal, round: usize, seconds: f64) -> anyhow::Result<f64> {
    let person = person("ada", "bench", Standing::Speaks);
    let (begun, mut taken) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        let key = format!("api:alone-{round:04}-{:04}", taken.len() / 20);
        let say = PersonCommand::Say { text: nth(&COMMANDS, taken.len() as u64).into() };
        let command = SessionCommand::Person(person.clone(), say);
        let asked = Issued::new(uuid::Uuid::now_v7(), Time(1), command);
        let at = Instant::now();
        dispatch(journal, &ada_key(&key)?, asked).await?;
        taken.push(at.elapsed().as_secs_f64());
    }
    Ok(median(&taken))
}

/// A script for each of some texts; pgbench takes one of them at random for each transaction.
fn scripts(path: &Path, script: impl Fn(&str) -> String) -> anyhow::Result<Vec<PathBuf>> {
    let texts = COMMANDS.iter().take(SCRIPTS).enumerate();
    texts
        .map(|(at, text)| {
            let path = path.with_extension(format!("{at}.sql"));
            std::fs::write(&path, script(text))?;
            Ok(path)
        })
        .collect()
}

/// What one append stores, as one statement.
fn one_statement(first: &str, text: &str) -> String {
    format!(
        "\\set stream random({first}, {first} + {})
WITH moved AS (UPDATE streams SET version = version + 1, updated_at = 1, due_at = NULL WHERE id = :stream RETURNING id, version),
told AS (INSERT INTO answers (stream, command, before, version, checksum, at) SELECT id, gen_random_uuid(), version - 1, version, 1, 1 FROM moved)
INSERT INTO events (stream, seq, at, kind, body) SELECT id, version, 1, 'message_queued', '{text}'::bytea FROM moved;
",
        STREAMS - 1
    )
}

/// The same as it is usually written: lock, look, store.
fn six_statements(first: &str, text: &str) -> String {
    format!(
        "\\set stream random({first}, {first} + {})
BEGIN;
SELECT version FROM streams WHERE id = :stream FOR UPDATE \\gset
INSERT INTO events (stream, seq, at, kind, body) VALUES (:stream, :version + 1, 1, 'message_queued', '{text}'::bytea);
INSERT INTO answers (stream, command, before, version, checksum, at) VALUES (:stream, gen_random_uuid(), :version, :version + 1, 1, 1);
UPDATE streams SET version = :version + 1, updated_at = 1, due_at = NULL WHERE id = :stream;
COMMIT;
",
        STREAMS - 1
    )
}

/// Seconds that one transaction takes, one client.
fn pgbench(postgres: &Postgres, scripts: &[PathBuf], seconds: u32) -> anyhow::Result<f64> {
    let port = postgres.port.to_string();
    let path = format!("{}:/usr/lib/postgresql/15/bin", std::env::var("PATH").unwrap_or_default());
    let done = Command::new("pgbench")
        .env("PATH", path)
        .args(["-n", "-M", "prepared", "-c", "1", "-h", "127.0.0.1", "-U", "planwright"])
        .args(["-p", &port, "-T", &seconds.to_string()])
        .args(scripts.iter().flat_map(|script| [OsStr::new("-f"), script.as_os_str()]))
        .arg("postgres")
        .output()
        .context("pgbench does not start; it comes with PostgreSQL")?;
    let told = String::from_utf8_lossy(&done.stdout);
    let line = told.lines().find_map(|line| line.strip_prefix("latency average = "));
    let millis: f64 = line
        .and_then(|line| line.trim_end_matches(" ms").parse().ok())
        .with_context(|| format!("pgbench said {told}{}", String::from_utf8_lossy(&done.stderr)))?;
    Ok(millis / 1e3)
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
        admin.register(&cluster.endpoint(0)).await?;
        admin.register(&serve_bare().await?).await?;
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
        "INSERT INTO streams (owner, identity, version, updated_at, waiting, plan, searched) SELECT owner, 'cli:copy-' || at, version, updated_at + at, waiting, plan, version FROM streams, generate_series(1, {count}) AS at WHERE id = ({one})"
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
