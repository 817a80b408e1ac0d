//! The long proofs, by name. Each ends with one line: `NAME: figure (target) ok|short`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use planwright_domain::time::Time;

mod binding;
mod cluster_kill;
mod compaction;
mod escapes;
mod isolation;
mod kill;
mod machine;
mod mutants;
mod nights;
mod overnight;
mod providers;
mod races;
mod replay;
mod rpc;
mod sections;
mod slots;
mod staged;
mod streams;
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
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// A twentieth of it.
        #[arg(long)]
        quick: bool,
    },
    /// The real process, killed under load and cut off from power: nothing acknowledged is lost.
    Kill {
        /// The seed of the load.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 40 lives instead of 470.
        #[arg(long)]
        quick: bool,
    },
    /// A cluster of real processes, killed and cut apart: nothing is lost, and everything goes on.
    ClusterKill {
        /// The seed of the load.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 30 kills instead of 300, and one engine server instead of three.
        #[arg(long)]
        quick: bool,
    },
    /// Recorded calls against an MCP server, killed in mid-execution: each is made once, or shown in doubt.
    Replay {
        /// The seed of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 10 kills instead of 50.
        #[arg(long)]
        quick: bool,
    },
    /// Each digested field changed between approve and execute: nothing runs.
    Binding {
        /// The seed of the changes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 1,000 cases instead of 100,000.
        #[arg(long)]
        quick: bool,
    },
    /// Generated conversations over shared keys: none sees, moves or outlives another.
    Isolation {
        /// How many histories.
        #[arg(long, default_value_t = 10_000_000)]
        count: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// As many as five minutes hold.
        #[arg(long)]
        quick: bool,
    },
    /// Commands and steps that meet, in every order and with a crash at each point: one outcome.
    Races {
        /// Without the races of steps and deletions against PostgreSQL, which have thousands of orders.
        #[arg(long)]
        quick: bool,
        /// Those whose name holds this alone.
        #[arg(long)]
        only: Option<String>,
    },
    /// Links that are swapped, addresses in disguise, tools that change, outputs that give orders: nothing gets through.
    Escapes {
        /// The seed of the attempts.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 1,000 swaps instead of 10,000.
        #[arg(long)]
        quick: bool,
    },
    /// A thousand schedules through ten simulated days, kills and jumps of the clock: every slot has one verdict.
    Slots {
        /// The seed of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 100 schedules for four days.
        #[arg(long)]
        quick: bool,
    },
    /// A goal with five tasks, killed ten times in one night: stops at its budget, asks, and ends well.
    Overnight {
        /// The seed of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
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
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// 50,000 documents instead of 1,000,000.
        #[arg(long)]
        quick: bool,
    },
    /// Windows of foreign agents that come and go, a server that is killed in the middle of every tool call: one answer
    /// each, and no plan crosses.
    Windows {
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Fewer calls and moves.
        #[arg(long)]
        quick: bool,
    },
    /// Generated and broken JSON-RPC against the MCP server: no crash, no hang, nothing is decided.
    Rpc {
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
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
        /// The seed of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
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
        /// The first of them only.
        #[arg(long)]
        quick: bool,
    },
    /// Clients that are cut off see every event once, in order; clients that stall delay nobody.
    Streams {
        /// Fewer messages.
        #[arg(long)]
        quick: bool,
    },
}

/// Runs a proof on so many threads.
fn on_threads(
    name: &str,
    threads: usize,
    proof: impl Future<Output = anyhow::Result<bool>>,
) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let proved = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(proof));
    ended(name, proved)
}

/// How a proof ended: as it should, or not, or not at all.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
fn ended(name: &str, proved: anyhow::Result<bool>) -> ExitCode {
    match proved {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    match Args::parse().proof {
        Proof::Machine { count, seed, quick } => {
            machine::prove(if quick { count / 20 } else { count }, seed)
        }
        Proof::Kill { seed, quick } => kill::prove(seed, quick),
        Proof::ClusterKill { seed, quick } => cluster_kill::prove(seed, quick),
        Proof::Replay { seed, quick } => replay::prove(seed, if quick { 10 } else { 50 }),
        Proof::Binding { seed, quick } => binding::prove(seed, if quick { 1_000 } else { 100_000 }),
        Proof::Escapes { seed, quick } => escapes::prove(seed, if quick { 1_000 } else { 10_000 }),
        Proof::Isolation { count, seed, quick } => isolation::prove(count, seed, quick),
        Proof::Races { quick, only } => races::prove(quick, only.unwrap_or_default()),
        Proof::Slots { seed, quick } => slots::prove(seed, quick),
        Proof::Overnight { seed, .. } => overnight::prove(seed),
        Proof::Live { night, home, until } => {
            let life = nights::live(night, home, Time(until));
            on_threads("live", 2, async { life.await.map(|()| true) })
        }
        Proof::Sections { seed, quick } => {
            sections::prove(seed, if quick { 50_000 } else { 1_000_000 })
        }
        Proof::Windows { seed, quick } => windows::prove(seed, quick),
        Proof::Rpc { seed, quick } => rpc::prove(seed, if quick { 20 } else { 1_200 }),
        Proof::Providers { .. } => providers::prove(),
        Proof::Compaction { seed, quick } => compaction::prove(seed, quick),
        Proof::Talk { home, url, turns } => {
            let life = compaction::live(home, url, turns);
            on_threads("talk", 2, async { life.await.map(|()| true) })
        }
        Proof::Mutants { quick } => mutants::prove(quick),
        Proof::Streams { quick } => streams::prove(quick),
    }
}
