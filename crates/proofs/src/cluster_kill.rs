//! Everything that a cluster is made of, killed, cut off and frozen under load; then log, journal and
//! ledger compared, and every session made to go on.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fastrand::Rng;
use planwright_outbound::journal_postgres::PostgresJournal;
use planwright_runtime::ports::journal::Journal as _;
use planwright_testkit::{
    cluster::{Cluster, Shape, load::Load},
    kill::verdict::judge,
    scripted_model::worker::worker,
    servers::faults::Fault,
};

use crate::on_threads;

/// How many people work.
const PEOPLE: usize = 12;
/// How soon after a fault every session must have moved again.
const MOVES_WITHIN: Duration = Duration::from_secs(10);

/// How long a request that can be repeated is waited for.
const REPEATS_WITHIN: Duration = Duration::from_secs(10);

/// What happens to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    Node,
    Engine,
    Bus,
    Backends,
    Database,
    EngineFromNode,
    NodeFromEngine,
    NodeFromDatabase,
    NodeFromBus,
    Repeated,
    Slow,
}

/// The blows that kill a process, and those that cut a connection.
const KILLS: [Blow; 8] = [
    Blow::Node,
    Blow::Node,
    Blow::Node,
    Blow::Engine,
    Blow::Engine,
    Blow::Bus,
    Blow::Backends,
    Blow::Database,
];
const CUTS: [Blow; 6] = [
    Blow::EngineFromNode,
    Blow::NodeFromEngine,
    Blow::NodeFromDatabase,
    Blow::NodeFromBus,
    Blow::Repeated,
    Blow::Slow,
];

/// How long the people at work may decide before they log in again.
const LOGIN_LASTS: Duration = Duration::from_secs(15 * 60);

/// Proves it, at full or at quick size.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    let (kills, cuts, engines) = if quick { (30, 8, 1) } else { (300, 60, 3) };
    on_threads(2, all(seed, kills, cuts, engines))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, kills: usize, cuts: usize, engines: usize) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let shape = Shape { engines, ..Shape::default() };
    let mut cluster = Cluster::start(worker(600, 3), shape).await?;
    let load = Load::on(&cluster);
    let mut people = load.begin(PEOPLE, seed);
    let mut rng = Rng::with_seed(seed);
    let mut blows: Vec<_> = KILLS.iter().cycle().take(kills).copied().collect();
    blows.extend(CUTS.iter().cycle().take(cuts));
    rng.shuffle(&mut blows);
    let blows_report = strike_all(&mut cluster, &load, blows, &mut rng).await?;
    let detects = detects_a_standstill(&cluster).await;
    load.end();
    let (mut acknowledged, mut complaints, mut silence) = (Vec::new(), Vec::new(), Duration::ZERO);
    while let Some(seen) = people.join_next().await {
        let seen = seen?;
        acknowledged.extend(seen.acknowledged);
        complaints.extend(seen.complaints);
        silence = silence.max(seen.longest_silence);
    }
    let journal = PostgresJournal::open(&cluster.postgres.address()).await?;
    let sessions: Vec<_> = (0..PEOPLE).map(Load::session).collect();
    let verdict = judge(&journal, &cluster.ledger(), &sessions, &acknowledged).await?;
    let parked = journal.sessions(None, 100).await?.into_iter().filter(|row| row.parked.is_some());
    complaints.extend(parked.map(|row| format!("{} is parked: {:?}", row.session, row.parked)));

    for (blow, times) in &blows_report.blows {
        let [first, middle, last] = times.slowest.map(|time| time.as_secs_f32());
        println!(
            "{blow:?}: {} times, every session moved within {first:.1} s in the first third of the run, {middle:.1} s in the second, {last:.1} s in the last",
            times.count
        );
    }
    println!(
        "{} commands acknowledged, {} effects, {} approvals pending and decidable, longest silence {:.1} s",
        acknowledged.len(),
        verdict.effects,
        verdict.pending,
        silence.as_secs_f32()
    );
    let found = verdict.complaints().chain(&complaints).chain(&blows_report.stuck);
    found.take(30).for_each(|words| println!("  {words}"));
    let repeated: u64 = cluster.nodes.iter().map(|node| node.to_engine.repeated()).sum();
    let counts: [(&str, u64); 4] = [
        ("effects that were under way when their process died", verdict.orphans as u64),
        ("requests to the engine repeated and answered", repeated),
        ("backends of the database terminated", blows_report.backends),
        ("commands acknowledged", acknowledged.len() as u64),
    ];
    counts.iter().for_each(|(what, count)| println!("  {count:>6} {what}"));
    let well = verdict.is_well()
        && blows_report.stuck.is_empty()
        && complaints.is_empty()
        && detects
        && counts.iter().all(|(_, count)| *count > 0);
    println!(
        "cluster-kill: {kills} kills and {cuts} partitions over 3 nodes and {engines} engine servers, {:.0} s: {} lost, {} repeated silently, {} in doubt and shown, {} stuck, every session moved within {:.1} s, detector {} (target 0 lost, 0 repeated, within 10 s, detector works) {}",
        begun.elapsed().as_secs_f32(),
        verdict.lost.len(),
        verdict.repeated.len() + verdict.unexplained.len(),
        verdict.in_doubt,
        blows_report.stuck.len(),
        blows_report.slowest.as_secs_f32(),
        if detects { "works" } else { "is blind" },
        if well { "ok" } else { "short" },
    );
    Ok(well)
}

/// How often something was struck, and how long every session took at most to move again, in each third of the run.
#[derive(Default)]
struct Times {
    count: u32,
    slowest: [Duration; 3],
}

/// What came of the blows.
#[derive(Default)]
struct BlowReport {
    blows: BTreeMap<Blow, Times>,
    stuck: Vec<String>,
    slowest: Duration,
    /// Backends of the database that were terminated.
    backends: u64,
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn strike_all(
    cluster: &mut Cluster,
    load: &Load,
    blows: Vec<Blow>,
    rng: &mut Rng,
) -> anyhow::Result<BlowReport> {
    let mut blows_report = BlowReport::default();
    let all = blows.len();
    let mut logged_in = Instant::now();
    for (done, blow) in (1..).zip(blows) {
        tokio::time::sleep(Duration::from_millis(rng.u64(100..600))).await;
        blows_report.backends += strike(cluster, blow, rng).await?;
        let times = blows_report.blows.entry(blow).or_default();
        times.count += 1;
        match moves_again(cluster).await {
            Ok(time) => {
                blows_report.slowest = blows_report.slowest.max(time);
                let slowest = &mut times.slowest[(done - 1) * 3 / all];
                *slowest = time.max(*slowest);
            }
            Err(words) => {
                println!("  STUCK at {done} of {all}, after {blow:?}: {words}");
                blows_report.stuck.push(format!("after {blow:?}: {words}"));
            }
        }
        if logged_in.elapsed() > LOGIN_LASTS / 2 {
            cluster.log_in().await?;
            load.renew(cluster);
            logged_in = Instant::now();
        }
        if done % 60 == 0 {
            let (slowest, stuck) = (blows_report.slowest, blows_report.stuck.len());
            let kept = cluster.restate.bytes() / 1_000_000;
            println!(
                "{done} of {all}: slowest {slowest:.1?}, {stuck} stuck, the engine keeps {kept} MB"
            );
        }
    }
    Ok(blows_report)
}

/// The detector itself: with the engine's way to the nodes held, it must say so.
async fn detects_a_standstill(cluster: &Cluster) -> bool {
    let inflict = |fault: Fault| {
        cluster.balancer.inflict(fault);
        cluster.nodes.iter().for_each(|node| node.from_engine.inflict(fault));
    };
    inflict(Fault::Hold);
    let detects = moves_again(cluster).await.is_err();
    inflict(Fault::None);
    detects
}

/// Strikes, lasts a while, and mends; how many backends of the database were terminated.
async fn strike(cluster: &mut Cluster, blow: Blow, rng: &mut Rng) -> anyhow::Result<u64> {
    let (at, lasts) = (rng.usize(0..cluster.nodes.len()), rng.u64(100..1_500));
    let lasts = Duration::from_millis(lasts);
    let cut = if rng.bool() { Fault::Cut } else { Fault::Hold };
    match blow {
        Blow::Node => {
            cluster.kill(at);
            tokio::time::sleep(lasts).await;
            cluster.launch(at);
            cluster.ready(at).await?;
        }
        Blow::Engine => {
            let one = rng.usize(0..cluster.restate.count());
            cluster.restate.kill(one);
            tokio::time::sleep(lasts).await;
            cluster.restate.up(one);
        }
        Blow::Bus => {
            cluster.nats.kill();
            tokio::time::sleep(lasts).await;
            cluster.nats.up();
        }
        Blow::Backends => {
            let end = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'planwright'";
            return Ok(cluster.postgres.psql(end).trim().parse()?);
        }
        Blow::Database => {
            cluster.postgres.kill();
            tokio::time::sleep(lasts).await;
            cluster.postgres.up();
        }
        Blow::EngineFromNode => during(&cluster.nodes[at].from_engine, cut, lasts).await,
        Blow::NodeFromEngine => during(&cluster.nodes[at].to_engine, cut, lasts).await,
        Blow::NodeFromDatabase => during(&cluster.nodes[at].to_database, cut, lasts).await,
        Blow::NodeFromBus => during(&cluster.nodes[at].to_bus, cut, lasts).await,
        Blow::Repeated => {
            let proxy = &cluster.nodes[at].to_engine;
            let (before, begun) = (proxy.repeated(), Instant::now());
            proxy.inflict(Fault::Repeat);
            tokio::time::sleep(lasts * 2).await;
            // It lasts until something was repeated.
            while proxy.repeated() == before && begun.elapsed() < REPEATS_WITHIN {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            proxy.inflict(Fault::None);
        }
        Blow::Slow => {
            let slow = Fault::Delay(Duration::from_millis(rng.u64(10..200)));
            during(&cluster.nodes[at].to_database, slow, lasts).await;
        }
    }
    Ok(0)
}

async fn during(proxy: &planwright_testkit::servers::faults::Proxy, fault: Fault, lasts: Duration) {
    proxy.inflict(fault);
    tokio::time::sleep(lasts * 2).await;
    proxy.inflict(Fault::None);
}

/// How long it takes until every session has moved; which one does not.
async fn moves_again(cluster: &Cluster) -> Result<Duration, String> {
    let versions = || -> BTreeMap<String, String> {
        let rows = cluster.postgres.psql("SELECT identity, version FROM streams");
        let pairs = rows.lines().filter_map(|line| line.split_once('|'));
        pairs.map(|(identity, version)| (identity.to_owned(), version.to_owned())).collect()
    };
    let (begun, before) = (Instant::now(), versions());
    loop {
        let now = versions();
        let still: Vec<_> = before
            .iter()
            .filter(|(identity, version)| now.get(*identity) == Some(version))
            .collect();
        if still.is_empty() {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > MOVES_WITHIN {
            return Err(format!("{still:?} did not move within {MOVES_WITHIN:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
