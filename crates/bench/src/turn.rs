//! A whole turn: a message comes in, the model answers at once, the turn ends, all of it durable.

use std::time::{Duration, Instant};

use planwright_testkit::people::ada_key;
use rusqlite::Connection;

use crate::{
    measure::{Judged, ahead_of_peer, close, cpu, median},
    ours::Ours,
    payload::{TURNS, nth},
    peer::Peer,
    plot,
};

/// CPU and wall seconds of one turn.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) cpu: f64,
    wall: f64,
}

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (rounds, slice) = if quick { (3, 1.0) } else { (7, 2.0) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ours = runtime.block_on(async { Ours::start() })?;
    let mut bare = Bare::start()?;
    let mut peer = Peer::start_with(&TURNS)?;
    let mut talk = 0;
    let (mut of_ours, mut of_bare, mut of_peer) = (Vec::new(), Vec::new(), Vec::new());
    println!(
        "{:<7}{:>16}{:>16}{:>16}{:>12}{:>12}",
        "round", "ours µs CPU", "bare µs CPU", "peer µs CPU", "ours/bare", "peer/ours"
    );
    for round in 0..rounds {
        for arm in 0..3 {
            match (arm + round) % 3 {
                0 => of_ours.push(runtime.block_on(our_slice(&ours, &mut talk, slice))?),
                1 => of_bare.push(bare.slice(slice)?),
                _ => {
                    if let Some(peer) = &mut peer {
                        let told = peer.ask(&format!("turn {slice}"))?;
                        let turns = told["turns"].as_f64().unwrap_or(f64::NAN);
                        let cpu = told["cpu"].as_f64().unwrap_or(f64::NAN) / turns;
                        of_peer.push(Cost { cpu, wall: slice / turns });
                    }
                }
            }
        }
        let (ours, bare) = (of_ours[round], of_bare[round]);
        let peer = of_peer.get(round).map_or(f64::NAN, |cost| cost.cpu);
        println!(
            "{round:<7}{:>16.0}{:>16.0}{:>16.0}{:>12.1}{:>12.1}",
            ours.cpu * 1e6,
            bare.cpu * 1e6,
            peer * 1e6,
            ours.cpu / bare.cpu,
            peer / ours.cpu
        );
    }
    let cpus = |costs: &[Cost]| costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>();
    let ahead: Vec<_> =
        of_peer.iter().zip(&of_ours).map(|(peer, ours)| peer.cpu / ours.cpu).collect();
    let (cost, ahead) = (median(&cpus(&of_ours)), median(&ahead));
    let arms = [
        ("ours", cost * 1e3),
        ("bare", median(&cpus(&of_bare)) * 1e3),
        ("LangGraph", median(&cpus(&of_peer)) * 1e3),
    ];
    plot::bars("turn", "CPU of a whole durable turn", "ms", &arms)?;
    let wall = median(&of_ours.iter().map(|cost| cost.wall).collect::<Vec<_>>());
    println!("wall time of a turn: {:.2} ms (published, not judged)", wall * 1e3);
    let (ahead, is_ahead) = ahead_of_peer(ahead, 10.0);
    Ok(close(
        "turn",
        &format!("{:.2} ms CPU a turn, {ahead}", cost * 1e3),
        "0.5 ms CPU, 10 times ahead",
        cost <= 0.5e-3 && is_ahead,
    ))
}

/// Turns for so many seconds, ten in each session.
pub(crate) async fn our_slice(ours: &Ours, talk: &mut u32, seconds: f64) -> anyhow::Result<Cost> {
    let (begun, used, mut turns) = (Instant::now(), cpu(), 0_u32);
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        if turns % 10 == 0 {
            *talk += 1;
        }
        let identity = ada_key(&format!("cli:bench-{talk:04}"))?;
        ours.does(&identity, nth(&TURNS, turns.into())).await?;
        turns += 1;
    }
    Ok(Cost {
        cpu: (cpu() - used) / f64::from(turns),
        wall: begun.elapsed().as_secs_f64() / f64::from(turns),
    })
}

/// A model that answers at once, and one durable commit of what was said.
struct Bare {
    connection: Connection,
    _home: tempfile::TempDir,
}

impl Bare {
    fn start() -> anyhow::Result<Self> {
        let home = tempfile::Builder::new().prefix("planwright-bare-").tempdir()?;
        let connection = Connection::open(home.path().join("bare.sqlite"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE turns (id INTEGER PRIMARY KEY, said TEXT, answered TEXT)",
        )?;
        Ok(Self { connection, _home: home })
    }

    fn slice(&mut self, seconds: f64) -> anyhow::Result<Cost> {
        let (begun, used, mut turns) = (Instant::now(), cpu(), 0_u32);
        while begun.elapsed() < Duration::from_secs_f64(seconds) {
            let mut statement = self
                .connection
                .prepare_cached("INSERT INTO turns (said, answered) VALUES (?1, ?2)")?;
            let (said, answered) = (nth(&TURNS, turns.into()), nth(&TURNS, u64::from(turns) + 1));
            statement.execute([said, answered])?;
            turns += 1;
        }
        Ok(Cost {
            cpu: (cpu() - used) / f64::from(turns),
            wall: begun.elapsed().as_secs_f64() / f64::from(turns),
        })
    }
}
