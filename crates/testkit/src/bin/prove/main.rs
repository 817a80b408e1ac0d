//! The long proofs, by name. Each ends with one line: `NAME: figure (target) ok|short`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod cluster_kill;
mod kill;
mod machine;
mod streams;

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
    /// Clients that are cut off see every event once, in order; clients that stall delay nobody.
    Streams {
        /// Fewer messages.
        #[arg(long)]
        quick: bool,
    },
}

fn main() -> ExitCode {
    match Args::parse().proof {
        Proof::Machine { count, seed, quick } => {
            machine::prove(if quick { count / 20 } else { count }, seed)
        }
        Proof::Kill { seed, quick } => kill::prove(seed, quick),
        Proof::ClusterKill { seed, quick } => cluster_kill::prove(seed, quick),
        Proof::Streams { quick } => streams::prove(quick),
    }
}
