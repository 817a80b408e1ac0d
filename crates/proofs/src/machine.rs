//! Generated commands against the domain, with hits per status and command.

use std::time::Instant;

use planwright_testkit::machine::{self, COMMANDS, Hits, STATUSES};

/// Plays so many sequences from this seed on.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(count: u64, seed: u64) -> bool {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let work = |worker: u64| {
        let mut hits = Hits::new();
        let (mut commands, mut accepted, mut broken) = (0, 0, Vec::new());
        for at in (seed + worker..seed + count).step_by(threads as usize) {
            match machine::play(at, &mut hits) {
                Ok(played) => {
                    commands += played.commands;
                    accepted += played.accepted;
                }
                Err(words) => broken.push((at, words)),
            }
        }
        (hits, commands, accepted, broken)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let lost = threads as usize - outcomes.len();
    let (mut hits, mut commands, mut accepted, mut broken) = (Hits::new(), 0, 0, Vec::new());
    for (some, asked, done, broke) in outcomes {
        some.into_iter().for_each(|(cell, count)| *hits.entry(cell).or_default() += count);
        commands += asked;
        accepted += done;
        broken.extend(broke);
    }
    if count > 1 {
        show(&hits);
    }
    let cells =
        COMMANDS.iter().flat_map(|command| STATUSES.iter().map(|status| (*status, *command)));
    let fewest = cells.map(|cell| hits.get(&cell).copied().unwrap_or(0)).min().unwrap_or(0);
    broken.iter().take(10).for_each(|(at, words)| {
        println!("BROKEN {words}\n  play it again with: ./prove machine --count 1 --seed {at}")
    });
    let wanted = count / 1_000;
    let well = broken.is_empty() && lost == 0 && fewest >= wanted;
    let seconds = begun.elapsed().as_secs_f32();
    println!(
        "{commands} commands, {accepted} accepted, {seconds:.0} s; fewest hits of a cell: {fewest}"
    );
    let figure = format!(
        "{count} sequences, {} broken, every cell at least {fewest} times",
        broken.len() + lost
    );
    println!(
        "machine: {figure} (target 0 broken, every cell {wanted}) {}",
        if well { "ok" } else { "short" }
    );
    well
}

/// How often each command met each status.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
fn show(hits: &Hits) {
    print!("{:<14}", "");
    STATUSES.iter().for_each(|status| print!("{status:>11}"));
    println!();
    for command in COMMANDS {
        print!("{command:<14}");
        for status in STATUSES {
            print!("{:>11}", hits.get(&(status, command)).copied().unwrap_or(0));
        }
        println!();
    }
}
