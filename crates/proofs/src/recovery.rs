//! Many sessions, some of them due and some in flight, when everything is killed: how soon all of them go on, on one machine
//! and on three nodes, where each row that is due goes to one node alone.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use planwright_domain::{
    actor::Standing,
    command::{Issued, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, Seq},
    identity::SessionKey,
    memory::{ItemKind, MemoryCommand},
    time::Time,
};
use planwright_outbound::{
    clock_system::SystemClock, journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal,
    lane_restate::RESERVED_MICROS,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        Clock as _,
        journal::{Journal, Reserved},
    },
};
use planwright_testkit::{
    cluster::{Cluster, Shape},
    people::{owner_id, person},
    prose, scratch,
    scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest},
    servers::free_port,
};
use reqwest::Method;
use rusqlite::{Connection, OpenFlags};
use uuid::Uuid;

use crate::on_threads;

/// How soon the API must answer, and all that was due or in flight must have advanced.
const READY_MAX: f64 = 5.0;
const ADVANCED_MAX: f64 = 30.0;
/// What is a node's share of the rows, at least and at most.
const SHARE: (f64, f64) = (0.25, 0.42);
/// What a session may cost on three nodes, by what it costs on one. Not judged at quick size, where programs
/// are not optimised.
const COST_MAX: f64 = 1.15;
/// How soon what a frozen node took up must be taken over.
const TAKEN_OVER_MAX: f64 = 10.0;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(180);
/// How many people the sessions belong to.
const PEOPLE: u64 = 40;

/// How many sessions there are of each kind.
#[derive(Clone, Copy)]
struct Sizes {
    idle: u64,
    due: u64,
    in_flight: u64,
}

impl Sizes {
    fn to_recover(self) -> u64 {
        self.due + self.in_flight
    }
}

/// Proves it, at full or at quick size.
pub(crate) fn prove(quick: bool) -> anyhow::Result<bool> {
    let (machine, nodes) = if quick {
        let machine = Sizes { idle: 4_000, due: 500, in_flight: 100 };
        (machine, Sizes { idle: 400, due: 500, in_flight: 60 })
    } else {
        let machine = Sizes { idle: 94_000, due: 5_000, in_flight: 1_000 };
        (machine, Sizes { idle: 94_000, due: 5_000, in_flight: 1_000 })
    };
    on_threads(2, async move {
        let alone = one_machine(machine).await?;
        Ok(three_nodes(nodes, quick).await? && alone)
    })
}

/// A model that answers at once, or not as long as it is held.
fn model(held: &Arc<AtomicBool>) -> Conduct {
    let held = held.clone();
    Arc::new(move |_: &SeenRequest| {
        let thinks = if held.load(Ordering::SeqCst) { PATIENCE * 2 } else { Duration::ZERO };
        ScriptedReply { thinks, ..ScriptedReply::text("Here is what you asked for.") }
    })
}

/// Fills a journal: sessions in which nothing goes on, in which a turn is due, and whose model was asked by a process
/// that is gone. All of it is said at this time.
async fn fill(journal: &dyn Journal, round: u64, sizes: Sizes, now: Time) -> anyhow::Result<()> {
    let gone = Incarnation(Uuid::now_v7());
    let all = sizes.idle + sizes.to_recover();
    let mut filling = stream::iter(0..all)
        .map(|number| async move {
            let name = format!("person-{}", number % PEOPLE);
            let key = SessionKey::named(&format!("cli:r{round}-{number:06}"), owner_id(&name))?;
            let says = person(&name, "proof", Standing::Decides);
            let text = prose::prose(400, number);
            let first = if number < sizes.idle {
                let (id, kind) = (Uuid::now_v7().into(), ItemKind::Fact);
                PersonCommand::Memory(MemoryCommand::Save { id, kind, text })
            } else {
                PersonCommand::Say { text }
            };
            let tell = async |command| {
                let issued = Issued::new(Uuid::now_v7(), now, command);
                let answer = dispatch(journal, &key, issued).await?;
                anyhow::ensure!(!answer.is_refused(), "{key}: {answer:?}");
                anyhow::Ok(())
            };
            tell(SessionCommand::Person(says, first)).await?;
            if number >= sizes.idle + sizes.due {
                let until = now.plus_micros(600_000_000);
                let call = Some(Bracket { incarnation: gone, start_by: until, deadline: until });
                let (turn, recalled) = (Uuid::now_v7().into(), Default::default());
                let queued = Seq(1);
                let start =
                    SystemCommand::StartTurn { turn, queued, profile: None, recalled, call };
                tell(SessionCommand::System(start)).await?;
            }
            anyhow::Ok(())
        })
        .buffer_unordered(128);
    while let Some(filled) = filling.next().await {
        filled?;
    }
    Ok(())
}

/// The program as people run it, over a data directory.
struct Machine {
    home: tempfile::TempDir,
    program: PathBuf,
    port: u16,
}

impl Machine {
    fn new() -> anyhow::Result<Self> {
        let home = scratch::directory("recovery")?;
        let program = std::env::current_exe()?.with_file_name("planwright");
        anyhow::ensure!(program.exists(), "{} is missing: build it", program.display());
        let machine = Self { home, program, port: free_port() };
        let data = machine.data();
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let config = data.join("config.toml");
        fs::write(&config, format!("[server]\nbind = \"127.0.0.1:{}\"\n", machine.port))?;
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        Ok(machine)
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn journal(&self) -> PathBuf {
        self.data().join("journal.sqlite")
    }

    fn start(&self, model: &str) -> anyhow::Result<Child> {
        let log = fs::File::create(self.home.path().join("log"))?;
        Ok(Command::new(&self.program)
            .envs([("PLANWRIGHT_MODEL_URL", model), ("PLANWRIGHT_MODEL", "scripted")])
            .arg("up")
            .args([Path::new("--data"), &self.data()])
            .args([Path::new("--workspace"), &self.home.path().join("workspace")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?)
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let url = format!("http://127.0.0.1:{}/ready", self.port);
        until("the API answers", async || {
            let answer = reqwest::get(&url).await;
            Ok(answer.is_ok_and(|answer| answer.status().is_success()))
        })
        .await
        .map(drop)
    }
}

/// Waits until it is so, and gives how long it took.
async fn until(
    what: &str,
    is_so: impl AsyncFn() -> anyhow::Result<bool>,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    while !is_so().await? {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(begun.elapsed())
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn one_machine(sizes: Sizes) -> anyhow::Result<bool> {
    let machine = Machine::new()?;
    let journal = SqliteJournal::open(&machine.journal())?;
    fill(&journal, 0, sizes, SystemClock.now()).await?;
    drop(journal);
    let held = Arc::new(AtomicBool::new(true));
    let model = ScriptedModel::start(model(&held)).await?;
    let mut before = machine.start(&model.base_url())?;
    machine.ready().await?;
    until("turns are under way", async || Ok(model.thinking() > 0)).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let under_way = model.thinking();
    before.kill()?;
    before.wait()?;
    held.store(false, Ordering::SeqCst);
    let begun = Instant::now();
    let mut after = machine.start(&model.base_url())?;
    machine.ready().await?;
    let ready = begun.elapsed().as_secs_f64();
    let read = Connection::open_with_flags(machine.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let count = |sql: &str| read.query_row(sql, [], |row| row.get::<_, i64>(0));
    until("all have advanced", async || {
        Ok(count("SELECT count(*) FROM streams WHERE due_at IS NOT NULL AND parked IS NULL")? == 0)
    })
    .await?;
    let advanced = begun.elapsed().as_secs_f64();
    after.kill()?;
    after.wait()?;
    let parked = count("SELECT count(*) FROM streams WHERE parked IS NOT NULL")?;
    let answered = count("SELECT count(*) FROM events WHERE kind = 'turn_finished'")?;
    let wanted = sizes.to_recover().cast_signed();
    let well = ready <= READY_MAX
        && advanced <= ADVANCED_MAX
        && (parked, answered) == (0, wanted)
        && under_way > 0;
    println!(
        "  one machine: {} sessions, {} due, {} in flight; {under_way} asked the model when it was killed",
        sizes.idle + sizes.to_recover(),
        sizes.due,
        sizes.in_flight
    );
    println!(
        "recovery, one machine: the API answers after {ready:.2} s, all {answered} of {wanted} have ended after {advanced:.1} s ({:.0} a second), {parked} parked (target 5 s, 30 s, 0) {}",
        wanted as f64 / advanced,
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// What a recovery by some of the nodes came to.
struct Recovered {
    seconds: f64,
    cpu: f64,
    taken: Vec<f64>,
}

/// Seconds of computing that a process has used.
fn cpu_of(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    let ticks: Vec<f64> = after.split(' ').skip(11).take(2).flat_map(str::parse).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// How many rows a node has taken up since it started.
async fn taken(cluster: &Cluster, node: usize) -> anyhow::Result<f64> {
    let figures = cluster.request(node, Method::GET, "/metrics").send().await?.text().await?;
    let line = figures.lines().find(|line| line.starts_with("lane_due_taken_count "));
    Ok(line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0.0))
}

/// How many sessions still have something due.
async fn left(journal: &dyn Journal) -> anyhow::Result<usize> {
    Ok(journal.due(None, usize::MAX).await?.len())
}

fn kill_all(cluster: &mut Cluster) {
    for node in 0..cluster.nodes.len() {
        cluster.kill(node);
    }
}

async fn launch(cluster: &mut Cluster, nodes: &[usize]) -> anyhow::Result<()> {
    nodes.iter().for_each(|node| cluster.launch(*node));
    for node in nodes {
        cluster.ready(*node).await?;
    }
    Ok(())
}

/// When what is filled in now is due: all nodes are there by then.
fn soon(sizes: Sizes) -> Time {
    SystemClock.now().plus_micros(6_000_000 + sizes.due.cast_signed() * 2_000)
}

fn cpu_of_all(cluster: &Cluster, nodes: &[usize]) -> anyhow::Result<f64> {
    nodes.iter().map(|node| cpu_of(cluster.pid(*node).unwrap_or_default())).sum()
}

/// Kills all nodes with turns in flight, has more become due while none runs, starts these, and waits until all have
/// advanced.
async fn recover(
    cluster: &mut Cluster,
    held: &AtomicBool,
    (round, sizes): (u64, Sizes),
    nodes: &[usize],
) -> anyhow::Result<Recovered> {
    let journal = &PostgresJournal::open(&cluster.postgres.address()).await?;
    kill_all(cluster);
    held.store(true, Ordering::SeqCst);
    let waiting = Sizes { due: sizes.in_flight, in_flight: 0, ..sizes };
    fill(journal, round, waiting, SystemClock.now()).await?;
    launch(cluster, nodes).await?;
    let in_flight = usize::try_from(sizes.in_flight)?;
    until("turns are in flight", async || Ok(cluster.model.thinking() >= in_flight)).await?;
    kill_all(cluster);
    held.store(false, Ordering::SeqCst);
    let due_at = soon(sizes);
    fill(journal, round + 1, Sizes { idle: 0, in_flight: 0, ..sizes }, due_at).await?;
    launch(cluster, nodes).await?;
    let before = cpu_of_all(cluster, nodes)?;
    until("it is due", async || Ok(SystemClock.now() >= due_at)).await?;
    let begun = Instant::now();
    until("all have advanced", async || Ok(left(journal).await? == 0)).await?;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_of_all(cluster, nodes)? - before);
    let mut all = Vec::new();
    for node in nodes {
        all.push(taken(cluster, *node).await?);
    }
    Ok(Recovered { seconds, cpu, taken: all })
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn three_nodes(sizes: Sizes, quick: bool) -> anyhow::Result<bool> {
    let held = Arc::new(AtomicBool::new(false));
    let mut cluster = Cluster::start(model(&held), Shape::default()).await?;
    let journal = PostgresJournal::open(&cluster.postgres.address()).await?;
    let few = Sizes { idle: 0, in_flight: 0, ..sizes };
    // A node that looks first may have taken much of a little before the others look.
    let more = Sizes { due: sizes.due * 2, ..few };
    let one = recover(&mut cluster, &held, (20, Sizes { in_flight: 0, ..sizes }), &[0]).await?;
    let three = recover(&mut cluster, &held, (30, more), &[0, 1, 2]).await?;
    let taken: f64 = three.taken.iter().sum();
    let twice = taken - more.due as f64;
    // What is in flight the engine gives to another node by itself, or a node takes it up: all of it goes on.
    let in_flight = Sizes { idle: 0, due: 0, ..sizes };
    recover(&mut cluster, &held, (50, in_flight), &[0, 1, 2]).await?;
    let shares: Vec<_> = three.taken.iter().map(|of_node| of_node / taken).collect();
    let is_even = shares.iter().all(|share| (SHARE.0..=SHARE.1).contains(share));
    let (of_one, of_three) = (one.cpu / few.due as f64, three.cpu / more.due as f64);
    // Several times what a node has reserved at once; so few that what takes long is not the turns themselves.
    let fewer = Sizes { due: (few.due / 2).min(500), ..few };
    let frozen = frozen(&mut cluster, &journal, fewer).await?;
    let parked = journal.sessions(None, usize::MAX).await?;
    let parked = parked.iter().filter(|row| row.parked.is_some()).count();
    let well = twice == 0.0
        && is_even
        && (quick || of_three <= COST_MAX * of_one)
        && frozen <= TAKEN_OVER_MAX
        && parked == 0;
    let shares: Vec<_> = shares.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
    println!(
        "  one node: {} due in {:.1} s; three nodes: {} due in {:.1} s, and {} in flight",
        few.due, one.seconds, more.due, three.seconds, sizes.in_flight
    );
    println!(
        "recovery, three nodes: {twice} rows taken twice of {taken}, shares {}, {:.2} ms of CPU a session ({:.2} times one node), what a frozen node had taken over in {frozen:.1} s, {parked} parked (target 0, 25 to 42 %, {COST_MAX}, 10 s, 0) {}",
        shares.join(" "),
        of_three * 1e3,
        of_three / of_one,
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// A node takes up rows and freezes before it sends any of them on: how long until the others have.
async fn frozen(
    cluster: &mut Cluster,
    journal: &PostgresJournal,
    sizes: Sizes,
) -> anyhow::Result<f64> {
    kill_all(cluster);
    let due_at = soon(sizes);
    fill(journal, 40, sizes, due_at).await?;
    // As a node does it, a moment before the others look; it has them for as long as a node would.
    let by = Incarnation(Uuid::now_v7());
    let reserved = Reserved { by, from: due_at, until: due_at.plus_micros(RESERVED_MICROS) };
    let share = usize::try_from(sizes.due / 3)?;
    let rows = journal.take_due(due_at, reserved, share).await?;
    anyhow::ensure!(rows.len() == share, "{} of {share} rows were taken up", rows.len());
    launch(cluster, &[0, 1]).await?;
    until("it is due", async || Ok(SystemClock.now() >= due_at)).await?;
    let begun = Instant::now();
    until("what was taken up goes on", async || Ok(left(journal).await? == 0)).await?;
    Ok(begun.elapsed().as_secs_f64())
}
