//! What a turn costs while many timers stand: the same turns beside sessions whose time is yet to come, and without them.

use std::path::Path;

use planwright_outbound::clock_system::SystemClock;
use planwright_runtime::ports::Clock as _;
use rusqlite::{Connection, params};

use crate::{
    many,
    measure::{Judged, close, median},
    ours::Ours,
    plot,
    turn::our_slice,
};

/// How much more a turn may cost beside the timers.
const TIMES_MAX: f64 = 1.05;
/// From when on they ring: never during a run.
const TOMORROW_MICROS: i64 = 86_400_000_000;

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (count, rounds, slice) = if quick { (6_000, 5, 0.5) } else { (60_000, 75, 0.3) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let without = runtime.block_on(async { Ours::start() })?;
    let with = runtime.block_on(async { Ours::over(|path| fill(path, count)) })?;
    let (mut talks, mut ratios) = ([0, 0], Vec::new());
    println!("{:<7}{:>18}{:>18}{:>10}", "round", "without µs CPU", "with µs CPU", "ratio");
    // The first round of each warms what is warm in the others.
    for round in 0..=rounds {
        let mut slice = |ours, talk: usize| {
            runtime.block_on(our_slice(ours, &mut talks[talk], slice)).map(|cost| cost.cpu)
        };
        // In turn, so that neither is always the second.
        let (first, second) = if round % 2 == 0 {
            let first = slice(&without, 0)?;
            (first, slice(&with, 1)?)
        } else {
            let second = slice(&with, 1)?;
            (slice(&without, 0)?, second)
        };
        if round > 0 {
            println!(
                "{round:<7}{:>18.0}{:>18.0}{:>10.3}",
                first * 1e6,
                second * 1e6,
                second / first
            );
            ratios.push((first, second));
        }
    }
    let times = median(&ratios.iter().map(|(first, second)| second / first).collect::<Vec<_>>());
    let cpu = |of: fn(&(f64, f64)) -> f64| median(&ratios.iter().map(of).collect::<Vec<_>>()) * 1e3;
    let arms = [("without", cpu(|pair| pair.0)), ("with", cpu(|pair| pair.1))];
    plot::bars("alarms", "CPU of a turn, without and with standing alarms", "ms", &arms)?;
    let figure = format!("{times:.3} times the CPU of a turn beside {count} alarms");
    Ok(close("alarms", &figure, "1.05", times <= TIMES_MAX))
}

/// Sessions that wait, each with an alarm that rings tomorrow or later.
fn fill(path: &Path, count: usize) -> anyhow::Result<()> {
    many::fill(path, count)?;
    let tomorrow = SystemClock.now().plus_micros(TOMORROW_MICROS);
    let connection = Connection::open(path)?;
    connection.execute("UPDATE streams SET due_at = ?1 + id * 1000", params![tomorrow.0])?;
    Ok(())
}
