//! The figures, by name. Each prints a table and ends with one line: `NAME: figure (target) ok|short`.
//!
//! Ratios are taken in one run: our arm, the bare arm and the peer's arm in slices, their order
//! rotated, and the median of the per-round ratios counts. The machine is noisy; a ratio is less so.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod arm;
mod cluster;
mod command;
mod fanout;
mod growth;
mod http_client;
mod many;
mod measure;
mod ours;
mod peer;
mod plot;
mod retrieval;
mod start;
mod tokens;
mod turn;
mod waiting;
mod window;

/// The figures.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    figure: Option<Figure>,
}

#[derive(Subcommand)]
enum Figure {
    /// A durable command over HTTP, one client: its time, against a bare server and a peer.
    Command(Size),
    /// Durable commands over HTTP, 64 clients: the server's CPU, against a bare server and a peer.
    Throughput(Size),
    /// A whole turn with a scripted model, in process: CPU, against a bare commit and a peer.
    Turn(Size),
    /// What remains when a process is frozen: from the last look at the clock to the tool.
    Window(Size),
    /// 100,000 approvals that wait: memory, list, decide.
    Waiting(Size),
    /// One session of 150 plan-and-approve turns: bytes stored, and whether later turns cost more.
    Growth(Size),
    /// Tokens that plan work adds to every request.
    Tokens {
        #[command(flatten)]
        size: Size,
        /// Takes the measured figures as the golden ones.
        #[arg(long)]
        bless: bool,
    },
    /// From a command to the last of 1,000 clients that listen, one stalled.
    Fanout(Size),
    /// Scoped search over 10,000 sessions: its time, against raw FTS5 and a scan; and nothing foreign.
    Retrieval(Size),
    /// Start, idle and start again after kill -9, with 100,000 sessions.
    Start(Size),
    /// A durable command in a cluster, one client: its time, against the same transaction by pgbench.
    ClusterCommand(Size),
    /// A call of the lane through Restate, against a bare virtual object; and a whole turn.
    ClusterTurn(Size),
    /// 100,000 approvals that wait in a cluster: the node's memory, list.
    ClusterWaiting(Size),
    /// A server that another figure measures.
    #[command(hide = true)]
    Arm {
        /// Which one.
        name: String,
    },
}

#[derive(Args)]
struct Size {
    /// Under 40 seconds.
    #[arg(long)]
    quick: bool,
    /// Draw it into docs/figures.
    #[arg(long)]
    plot: bool,
}

impl Figure {
    fn size(&self) -> Option<&Size> {
        match self {
            Self::Command(size)
            | Self::Throughput(size)
            | Self::Turn(size)
            | Self::Window(size)
            | Self::Waiting(size)
            | Self::Growth(size)
            | Self::Tokens { size, .. }
            | Self::Fanout(size)
            | Self::Start(size)
            | Self::Retrieval(size)
            | Self::ClusterCommand(size)
            | Self::ClusterTurn(size)
            | Self::ClusterWaiting(size) => Some(size),
            Self::Arm { .. } => None,
        }
    }
}

const NAMES: [(&str, &str); 12] = [
    ("command", "a durable command over HTTP, one client"),
    ("throughput", "durable commands over HTTP, 64 clients"),
    ("turn", "a whole turn with a scripted model, in process"),
    ("waiting", "100,000 approvals that wait"),
    ("growth", "one session of 150 plan-and-approve turns"),
    ("tokens", "tokens that plan work adds to every request"),
    ("fanout", "from a command to the last of 1,000 clients"),
    ("retrieval", "scoped search over 10,000 sessions"),
    ("start", "start, idle and recovery with 100,000 sessions"),
    ("cluster-command", "a durable command in a cluster, one client"),
    ("cluster-turn", "a call of the lane through Restate, and a whole turn"),
    ("cluster-waiting", "100,000 approvals that wait in a cluster"),
];

fn main() -> ExitCode {
    let figure = Arguments::parse().figure;
    if figure.as_ref().and_then(Figure::size).is_some_and(|size| size.plot) {
        plot::want();
    }
    let outcome = match figure {
        None => {
            NAMES.iter().for_each(|(name, what)| println!("{name:<18}{what}"));
            return ExitCode::SUCCESS;
        }
        Some(Figure::Command(size)) => command::one_client(size.quick),
        Some(Figure::Throughput(size)) => command::many_clients(size.quick),
        Some(Figure::Turn(size)) => turn::run(size.quick),
        Some(Figure::Window(size)) => window::run(size.quick),
        Some(Figure::Waiting(size)) => waiting::run(size.quick),
        Some(Figure::Growth(size)) => growth::run(size.quick),
        Some(Figure::Tokens { bless, size: _ }) => tokens::run(bless),
        Some(Figure::Fanout(size)) => fanout::run(size.quick),
        Some(Figure::Retrieval(size)) => retrieval::run(size.quick),
        Some(Figure::Start(size)) => start::run(size.quick),
        Some(Figure::ClusterCommand(size)) => cluster::command(size.quick),
        Some(Figure::ClusterTurn(size)) => cluster::turn(size.quick),
        Some(Figure::ClusterWaiting(size)) => cluster::waiting(size.quick),
        Some(Figure::Arm { name }) => serve(&name),
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

fn serve(name: &str) -> anyhow::Result<measure::Judged> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(arm::run(name))?;
    Ok(measure::Judged::Ok)
}
