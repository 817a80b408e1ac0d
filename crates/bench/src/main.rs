//! The figures, by name. Each prints a table and ends with one line: `NAME: figure (target) ok|short`.
//!
//! Ratios are taken in one run: our arm, the bare arm and the peer's arm in slices, their order
//! rotated, and the median of the per-round ratios counts. The machine is noisy; a ratio is less so.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

mod active;
mod alarms;
mod arm;
mod audit;
mod cached;
mod cluster;
mod command;
mod effects;
mod fanout;
mod growth;
mod http_client;
mod many;
mod measure;
mod ours;
mod page;
mod payload;
mod peer;
mod plot;
mod recall;
mod retrieval;
mod size;
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
    /// What remains when a process is frozen: from the runtime's last look at the clock to the tool.
    Window(Size),
    /// 100,000 approvals that wait: memory, list, decide.
    Waiting(Size),
    /// Lists over 100,000 sessions, and a turn that many tabs watch.
    Page(Size),
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
    /// From a command to the last of 1,000 clients that listen, beside one that does not read.
    Fanout(Size),
    /// `audit verify` on a million entries: its time and its memory, against shorter logs.
    Audit(Size),
    /// What a provider has read before of each request: the share of its bytes, every break with its cause, and the cost.
    Cached(Size),
    /// A turn where many sessions are at work, late in a long one, and how a long one is loaded.
    Active(Size),
    /// A turn beside many standing alarms.
    Alarms(Size),
    /// Whether what is remembered is found by questions in other words, in three languages, against plain BM25.
    Recall(Size),
    /// Scoped search over 10,000 sessions: its time, against raw FTS5 and a scan; and nothing foreign.
    Retrieval(Size),
    /// Start and idle with 100,000 sessions, and recovery after kill -9 with 1,000 turns in flight.
    Start(Size),
    /// The binary that people are given: its size, and its largest parts where that is too much.
    Size(Size),
    /// A durable command in a cluster, one client: its time, against the same transaction by pgbench.
    ClusterCommand(Size),
    /// A call of the lane through Restate, against a bare virtual object; and a whole turn.
    ClusterTurn(Size),
    /// 100,000 approvals that wait in a cluster: the node's memory, list.
    ClusterWaiting(Size),
    /// A million sessions of a cluster: what listing and exporting one costs, by what it costs among fewer.
    ClusterExport(Size),
    /// 5,000 calls of models that are open at once: whether all end, and what each costs, in one process and on three nodes.
    Effects(Size),
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
            | Self::Page(size)
            | Self::Growth(size)
            | Self::Tokens { size, .. }
            | Self::Fanout(size)
            | Self::Audit(size)
            | Self::Cached(size)
            | Self::Active(size)
            | Self::Alarms(size)
            | Self::Recall(size)
            | Self::Start(size)
            | Self::Retrieval(size)
            | Self::Size(size)
            | Self::ClusterCommand(size)
            | Self::ClusterTurn(size)
            | Self::ClusterWaiting(size)
            | Self::ClusterExport(size)
            | Self::Effects(size) => Some(size),
            Self::Arm { .. } => None,
        }
    }
}

fn main() -> ExitCode {
    let figure = Arguments::parse().figure;
    if figure.as_ref().and_then(Figure::size).is_some_and(|size| size.plot) {
        plot::want();
    }
    let outcome = match figure {
        None => {
            figures().iter().for_each(|(name, what)| println!("{name:<18}{what}"));
            return ExitCode::SUCCESS;
        }
        Some(Figure::Command(size)) => command::one_client(size.quick),
        Some(Figure::Throughput(size)) => command::many_clients(size.quick),
        Some(Figure::Turn(size)) => turn::run(size.quick),
        Some(Figure::Window(size)) => window::run(size.quick),
        Some(Figure::Audit(size)) => audit::run(size.quick),
        Some(Figure::Cached(_)) => cached::run(),
        Some(Figure::Active(size)) => active::run(size.quick),
        Some(Figure::Alarms(size)) => alarms::run(size.quick),
        Some(Figure::Waiting(size)) => waiting::run(size.quick),
        Some(Figure::Page(size)) => page::run(size.quick),
        Some(Figure::Growth(size)) => growth::run(size.quick),
        Some(Figure::Tokens { bless, size }) => tokens::run(size.quick, bless),
        Some(Figure::Fanout(size)) => fanout::run(size.quick),
        Some(Figure::Recall(size)) => recall::run(size.quick),
        Some(Figure::Retrieval(size)) => retrieval::run(size.quick),
        Some(Figure::Start(size)) => start::run(size.quick),
        Some(Figure::Size(_)) => size::run(),
        Some(Figure::ClusterCommand(size)) => cluster::command::command(size.quick),
        Some(Figure::ClusterTurn(size)) => cluster::turn(size.quick),
        Some(Figure::ClusterWaiting(size)) => cluster::waiting(size.quick),
        Some(Figure::ClusterExport(size)) => cluster::export::export(size.quick),
        Some(Figure::Effects(size)) => effects::run(size.quick),
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

/// Every figure, by name, and what it is.
fn figures() -> Vec<(String, String)> {
    let command = Arguments::command();
    let shown = command.get_subcommands().filter(|figure| !figure.is_hide_set());
    shown
        .map(|figure| {
            let what = figure.get_about().map(ToString::to_string).unwrap_or_default();
            (figure.get_name().to_owned(), what)
        })
        .collect()
}

fn serve(name: &str) -> anyhow::Result<measure::Judged> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(arm::run(name))?;
    Ok(measure::Judged::Ok)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn read(path: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
    }

    #[test]
    fn every_figure_is_a_step_of_the_nightly_run_and_a_row_of_the_page() {
        let (nightly, page) = (read(".ci/nightly"), read("docs/BENCHMARKS.md"));
        for (name, _) in figures() {
            let runs = nightly.lines().any(|line| line.ends_with(&format!(" ./bench {name}")));
            assert!(runs, ".ci/nightly does not run ./bench {name}");
            let has_row = page.lines().any(|line| line.starts_with(&format!("| `{name}` ")));
            assert!(has_row, "docs/BENCHMARKS.md lacks {name}");
        }
    }

    #[test]
    fn contributors_are_told_of_every_figure() {
        let page = read("CONTRIBUTING.md");
        let row = page.lines().find(|line| line.starts_with("| `./bench NAME` |")).unwrap();
        let what = row.split('|').nth(2).unwrap();
        let told: BTreeSet<_> = what.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(told, figures().into_iter().map(|(name, _)| name).collect());
    }
}
