//! Stored data survives the program: a bit that flipped is found, a newer form is refused, and an older one is read.

use std::time::Instant;

use planwright_testkit::golden;

use crate::on_threads;

mod flips;
mod newer;
mod rolling;

/// Writes the golden journals anew.
#[expect(clippy::print_stdout, reason = "a proof says what it did")]
pub(crate) fn bless() -> anyhow::Result<bool> {
    on_threads(2, async {
        let kinds = golden::bless().await?;
        println!("crates/format/golden holds {} kinds of events: {kinds:?}", kinds.len());
        Ok(true)
    })
}

/// Proves it with so many flips in each engine.
pub(crate) fn prove(seed: u64, flips: u64) -> anyhow::Result<bool> {
    on_threads(2, all(seed, flips))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, flips: u64) -> anyhow::Result<bool> {
    let (begun, reports) = (Instant::now(), flips::Reports::install());
    let recorded = golden::recorded()?;
    let mut other = Vec::new();
    for (name, folded) in [
        ("SQLite", golden::sqlite().await?),
        ("PostgreSQL", golden::postgres().await?),
        ("an archive", golden::archive().await?),
    ] {
        if folded != recorded {
            other.push(name);
        }
    }
    println!(
        "  golden     three journals, {} of them folded to other states: {other:?}",
        other.len()
    );
    let discarded = reports.take();
    let newer = newer::prove().await?;
    println!("  newer      a newer schema, refused in words: {newer:?}");
    let flipped = flips::prove(seed, flips, &reports).await?;
    flipped.missed.iter().take(10).for_each(|words| println!("  missed: {words}"));
    let rolled = rolling::prove().await?;
    println!(
        "  rolling    two nodes, one of a later version: {} of its events before finalize, {} after; {} read by an upcaster, {} in a snapshot that the older node did not use",
        rolled.before, rolled.after, rolled.upcast, rolled.folded
    );
    let well = other.is_empty()
        && discarded == 0
        && flipped.missed.is_empty()
        && flipped.fewest > 0
        && rolled.is_well();
    println!(
        "upgrade: golden journals of both engines and an archive, {} folded to other states, {discarded} snapshots discarded; a newer schema refused by {}; {} bits flipped over {} kinds of bodies and columns in both engines (each at least {} times), {} missed; a rolling upgrade wrote nothing early and was refused in words by the older node, {:.0} s (target 0 missed, nothing early) {}",
        other.len(),
        newer.join(" and "),
        flipped.all,
        flipped.kinds,
        flipped.fewest,
        flipped.missed.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}
