//! The long proofs, by name. Each ends with one line: `NAME: figure (target) ok|short`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use planwright_domain::time::Time;
use planwright_testkit::{scratch, seeds};

mod binding;
mod boundaries;
mod cluster_kill;
mod compaction;
mod erase;
mod escapes;
mod isolation;
mod kill;
mod lives;
mod machine;
mod mutants;
mod nights;
mod operate;
mod overnight;
mod providers;
mod races;
mod record;
mod recovery;
mod replay;
mod rpc;
mod sections;
mod slots;
mod staged;
mod streams;
mod upgrade;
mod windows;

/// The long proofs.
#[derive(Parser)]
#[command(name = "prove")]
struct Args {
    #[command(subcommand)]
    proof: Proof,
}

#[derive(Subcommand)]
enum Proof {
    /// Generated commands against the domain: no invariant breaks.
    Machine {
        /// How many sequences.
        #[arg(long, default_value_t = 1_000_000)]
        count: u64,
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// A twentieth of it.
        #[arg(long)]
        quick: bool,
    },
    /// The real process, killed under load and cut off from power: nothing acknowledged is lost.
    Kill {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 40 lives instead of 470.
        #[arg(long)]
        quick: bool,
    },
    /// A cluster of real processes, killed and cut apart: nothing is lost, and everything goes on.
    ClusterKill {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 30 kills instead of 300, and one engine server instead of three.
        #[arg(long)]
        quick: bool,
    },
    /// Recorded calls against an MCP server, killed in mid-execution: each is made once, or shown in doubt.
    Replay {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 10 kills instead of 50.
        #[arg(long)]
        quick: bool,
    },
    /// Each digested field changed between approve and execute: nothing runs.
    Binding {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 1,000 cases instead of 100,000.
        #[arg(long)]
        quick: bool,
    },
    /// The attacks of the security review, by their numbers, against the program as people run it.
    Boundaries {
        /// Fewer connections and sockets.
        #[arg(long)]
        quick: bool,
    },
    /// Generated conversations over shared keys: none sees, moves or outlives another.
    Isolation {
        /// How many histories.
        #[arg(long, default_value_t = 10_000_000)]
        count: u64,
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// As many as a minute holds.
        #[arg(long)]
        quick: bool,
    },
    /// Journals that somebody tampered with, and a sequencer that is killed: all is found, nothing is lost.
    Record {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 483 tampered journals instead of 10,350, and fewer kills.
        #[arg(long)]
        quick: bool,
    },
    /// Sessions full of canaries, deleted under load and kills: nothing of them is left.
    Erase {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 18 kills on each engine instead of 180.
        #[arg(long)]
        quick: bool,
    },
    /// One life of the process that `erase` kills.
    #[command(hide = true)]
    Erasing {
        /// Its journal: a file, or an address.
        place: String,
        /// Where it works.
        home: std::path::PathBuf,
        /// What it says.
        seed: u64,
    },
    /// One life of the node that `record` kills.
    #[command(hide = true)]
    Sequence {
        /// Its journal: a file, or an address.
        place: String,
        /// Where its key is.
        home: std::path::PathBuf,
        /// What it decides.
        seed: u64,
    },
    /// Many sessions, due and in flight, when everything is killed: all go on soon, and each on one node.
    Recovery {
        /// A few hundred sessions instead of 100,000.
        #[arg(long)]
        quick: bool,
    },
    /// A cluster as its guide says, behind the balancer that is shipped: what stops is told of, and a restart loses no request.
    Operate {
        /// Each part is stopped once instead of five times.
        #[arg(long)]
        quick: bool,
    },
    /// Commands and steps that meet, in every order and with a crash at each point: one outcome.
    Races {
        /// Every other one, and without the races of steps and deletions against PostgreSQL, which have thousands of orders.
        #[arg(long)]
        quick: bool,
        /// Those whose name holds this alone.
        #[arg(long)]
        only: Option<String>,
    },
    /// Links that are swapped, addresses in disguise, tools that change, outputs that give orders: nothing gets through.
    Escapes {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 1,000 swaps instead of 10,000.
        #[arg(long)]
        quick: bool,
    },
    /// A thousand schedules through ten simulated days, kills and jumps of the clock: every slot has one verdict.
    Slots {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 100 schedules for four days.
        #[arg(long)]
        quick: bool,
    },
    /// A goal with five tasks, killed ten times in one night: stops at its budget, asks, and ends well.
    Overnight {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// The same: it is short.
        #[arg(long)]
        quick: bool,
    },
    /// One life of the process that `slots` and `overnight` kill.
    #[command(hide = true)]
    Live {
        /// What it is about.
        night: nights::Night,
        /// Where.
        home: std::path::PathBuf,
        /// Until when, in microseconds.
        until: i64,
    },
    /// Generated documents and spellings of paths: a section is replaced and nothing else, and the notebook stays invisible.
    Sections {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 50,000 documents instead of 1,000,000.
        #[arg(long)]
        quick: bool,
    },
    /// Windows of foreign agents that come and go, a server that is killed in the middle of every tool call: one answer
    /// each, and no plan crosses.
    Windows {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// Fewer calls and moves.
        #[arg(long)]
        quick: bool,
    },
    /// Generated and broken JSON-RPC against the MCP server: no crash, no hang, nothing is decided.
    Rpc {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 20 seconds of computing instead of 20 minutes.
        #[arg(long)]
        quick: bool,
    },
    /// What providers really do wrong, each against each: a person sees an outcome, and nothing is lost or done twice.
    Providers {
        /// The same: it is short.
        #[arg(long)]
        quick: bool,
    },
    /// Five hundred turns on a small window, compacted and killed at random: the plan comes back byte for byte.
    Compaction {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 120 turns.
        #[arg(long)]
        quick: bool,
    },
    /// One life of the process that `compaction` kills.
    #[command(hide = true)]
    Talk {
        /// Where.
        home: std::path::PathBuf,
        /// The model.
        url: String,
        /// How long.
        turns: u64,
    },
    /// Mutants of the rules: the domain's suite catches each.
    Mutants {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// A few of them, which the seed chooses.
        #[arg(long)]
        quick: bool,
    },
    /// A flipped bit in any stored body, a rolling upgrade: nothing broken is folded, nothing newer is written early.
    Upgrade {
        /// Plays this seed and no other; without it, those that once failed and a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// 10,000 flips in each engine instead of 100,000.
        #[arg(long)]
        quick: bool,
        /// Writes the golden journals anew, and proves nothing: for an edit of the stored form before 0.1.0.
        #[arg(long)]
        bless: bool,
    },
    /// Clients that are cut off see every event once, in order; clients that stall delay nobody.
    Streams {
        /// Fewer messages.
        #[arg(long)]
        quick: bool,
    },
}

/// Runs a proof on so many threads.
fn on_threads<T>(
    threads: usize,
    proof: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(proof)
}

/// Why a seed is played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A run failed with it once: at quick size.
    OnceFailed,
    /// It is the one of this run.
    ThisRun,
}

/// Plays the seeds that once failed and then a new one, or the one that was asked for and no other.
#[expect(clippy::print_stdout, reason = "a proof says how it is played again")]
fn seeded(
    name: &str,
    asked: Option<u64>,
    proof: impl Fn(u64, Why) -> anyhow::Result<bool>,
) -> ExitCode {
    let corpus = if asked.is_some() { Ok(Vec::new()) } else { seeds::corpus(name) };
    let corpus = match corpus {
        Ok(corpus) => corpus,
        Err(error) => {
            println!("{name}: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let new = asked.unwrap_or_else(seeds::fresh);
    let failed = corpus.into_iter().map(|seed| (seed, Why::OnceFailed));
    let mut words: Vec<_> = std::env::args().skip(1).collect();
    if asked.is_none() {
        words.extend(["--seed".into(), new.to_string()]);
    }
    for (seed, why) in failed.chain([(new, Why::ThisRun)]) {
        let words = match why {
            Why::OnceFailed => format!("{name} --quick --seed {seed}"),
            Why::ThisRun => words.join(" "),
        };
        println!("seed {seed}; play it again with: ./prove {words}");
        if !succeeds(name, || proof(seed, why)) {
            println!("seed {seed} failed; play it again with: ./prove {words}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Plays what has no seed: everything that there is.
fn unseeded(name: &str, proof: impl Fn() -> anyhow::Result<bool>) -> ExitCode {
    if succeeds(name, proof) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a proof ended as it should. If not, what it worked on is kept.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
fn succeeds(name: &str, proof: impl Fn() -> anyhow::Result<bool>) -> bool {
    let run = scratch::Run::begin(name);
    let well = proof().unwrap_or_else(|error| {
        println!("{name}: {error:#}");
        false
    });
    if well {
        run.succeed();
    }
    well
}

fn main() -> ExitCode {
    match Args::parse().proof {
        Proof::Machine { count, seed, quick } => seeded("machine", seed, |seed, why| {
            let count = if quick { count / 20 } else { count };
            Ok(machine::prove(if why == Why::OnceFailed { 1 } else { count }, seed))
        }),
        Proof::Kill { seed, quick } => {
            seeded("kill", seed, |seed, why| kill::prove(seed, quick || why == Why::OnceFailed))
        }
        Proof::ClusterKill { seed, quick } => seeded("cluster-kill", seed, |seed, why| {
            cluster_kill::prove(seed, quick || why == Why::OnceFailed)
        }),
        Proof::Replay { seed, quick } => seeded("replay", seed, |seed, why| {
            replay::prove(seed, if quick || why == Why::OnceFailed { 10 } else { 50 })
        }),
        Proof::Binding { seed, quick } => seeded("binding", seed, |seed, why| {
            binding::prove(seed, if quick || why == Why::OnceFailed { 1_000 } else { 100_000 })
        }),
        Proof::Escapes { seed, quick } => seeded("escapes", seed, |seed, why| {
            escapes::prove(seed, if quick || why == Why::OnceFailed { 1_000 } else { 10_000 })
        }),
        Proof::Isolation { count, seed, quick } => seeded("isolation", seed, |seed, why| {
            Ok(isolation::prove(if why == Why::OnceFailed { 1 } else { count }, seed, quick))
        }),
        Proof::Record { seed, quick } => {
            seeded("record", seed, |seed, why| record::prove(seed, quick || why == Why::OnceFailed))
        }
        Proof::Erase { seed, quick } => {
            seeded("erase", seed, |seed, why| erase::prove(seed, quick || why == Why::OnceFailed))
        }
        Proof::Operate { quick } => unseeded("operate", || operate::run(quick)),
        Proof::Recovery { quick } => unseeded("recovery", || recovery::prove(quick)),
        Proof::Erasing { place, home, seed } => one_life(erase::live(place, home, seed)),
        Proof::Sequence { place, home, seed } => one_life(record::live(place, home, seed)),
        Proof::Races { quick, only } => {
            unseeded("races", || races::prove(quick, only.clone().unwrap_or_default()))
        }
        Proof::Slots { seed, quick } => {
            seeded("slots", seed, |seed, why| slots::prove(seed, quick || why == Why::OnceFailed))
        }
        Proof::Overnight { seed, .. } => {
            seeded("overnight", seed, |seed, _| overnight::prove(seed))
        }
        Proof::Live { night, home, until } => one_life(nights::live(night, home, Time(until))),
        Proof::Sections { seed, quick } => seeded("sections", seed, |seed, why| {
            sections::prove(seed, if quick || why == Why::OnceFailed { 50_000 } else { 1_000_000 })
        }),
        Proof::Windows { seed, quick } => seeded("windows", seed, |seed, why| {
            windows::prove(seed, quick || why == Why::OnceFailed)
        }),
        Proof::Rpc { seed, quick } => seeded("rpc", seed, |seed, why| {
            rpc::prove(seed, if quick || why == Why::OnceFailed { 20 } else { 1_200 })
        }),
        Proof::Providers { .. } => unseeded("providers", providers::prove),
        Proof::Compaction { seed, quick } => seeded("compaction", seed, |seed, why| {
            compaction::prove(seed, quick || why == Why::OnceFailed)
        }),
        Proof::Talk { home, url, turns } => one_life(compaction::live(home, url, turns)),
        Proof::Mutants { seed, quick } => seeded("mutants", seed, |seed, why| {
            mutants::prove(seed, quick || why == Why::OnceFailed)
        }),
        Proof::Upgrade { bless: true, .. } => unseeded("upgrade", upgrade::bless),
        Proof::Upgrade { seed, quick, .. } => seeded("upgrade", seed, |seed, why| {
            upgrade::prove(seed, if quick || why == Why::OnceFailed { 10_000 } else { 100_000 })
        }),
        Proof::Streams { quick } => unseeded("streams", || streams::prove(quick)),
        Proof::Boundaries { quick } => unseeded("boundaries", || boundaries::prove(quick)),
    }
}

/// One life of a process that a proof kills.
#[expect(clippy::print_stdout, reason = "nobody reads it but who starts a life by hand")]
fn one_life(life: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    match on_threads(2, async { life.await.map(|()| true) }) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
