//! The figures, by name. Each prints a table and ends with one line: `NAME: figure (target) ok|short`.
//!
//! Ratios are taken in one run: our arm, the bare arm and the peer's arm in slices, their order
//! rotated, and the median of the per-round ratios counts. The machine is noisy; a ratio is less so.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod growth;
mod measure;
mod ours;
mod peer;
mod tokens;
mod turn;

/// The figures.
#[derive(Parser)]
#[command(name = "bench")]
struct Args {
    #[command(subcommand)]
    figure: Option<Figure>,
}

#[derive(Subcommand)]
enum Figure {
    /// A whole turn with a scripted model, in process: CPU, against a bare commit and a peer.
    Turn {
        /// Under 40 seconds.
        #[arg(long)]
        quick: bool,
    },
    /// One session of 150 plan-and-approve turns: bytes stored, and whether later turns cost more.
    Growth {
        /// Under 40 seconds.
        #[arg(long)]
        quick: bool,
    },
    /// Tokens that plan work adds to every request.
    Tokens {
        /// The same: it takes no time.
        #[arg(long)]
        quick: bool,
        /// Takes the measured figures as the golden ones.
        #[arg(long)]
        bless: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Args::parse().figure {
        None => {
            println!("turn     a whole turn with a scripted model, in process");
            println!("growth   one session of 150 plan-and-approve turns");
            println!("tokens   tokens that plan work adds to every request");
            return ExitCode::SUCCESS;
        }
        Some(Figure::Turn { quick }) => turn::run(quick),
        Some(Figure::Growth { quick }) => growth::run(quick),
        Some(Figure::Tokens { bless, .. }) => tokens::run(bless),
    };
    match outcome {
        Ok(measure::Judged::Ok) => ExitCode::SUCCESS,
        Ok(measure::Judged::Short) => ExitCode::FAILURE,
        Err(error) => {
            println!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
