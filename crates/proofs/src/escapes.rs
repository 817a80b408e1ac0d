//! Ways out, tried: nothing may get through.
//!
//! Each part says how much it tried and how much got through, and each has a control: the same attempts where
//! nothing stands in the way, which must succeed, so that a part that tries nothing is not taken for one that
//! holds.

use std::time::Instant;

use crate::on_threads;

mod files;
mod orders;
mod programs;
mod web;

/// What one part found.
struct Found {
    /// What was tried, in words.
    what: String,
    /// How much got through, in words.
    through: Vec<String>,
    /// Whether its control got through, as it must.
    control: bool,
}

/// Proves it with so many swaps.
pub(crate) fn prove(seed: u64, swaps: u32) -> anyhow::Result<bool> {
    on_threads(2, all(seed, swaps))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, swaps: u32) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let parts = [
        files::swapped_links(seed, swaps).await?,
        web::addresses_in_disguise().await?,
        programs::refused_calls().await?,
        orders::changed_schemas().await?,
        orders::obeyed_outputs().await?,
        orders::foreign_tools().await?,
    ];
    let (mut through, mut controls) = (0, 0);
    for Found { what, through: got, control } in &parts {
        println!("  {what}: {} got through", got.len());
        got.iter().take(5).for_each(|words| println!("    {words}"));
        through += got.len();
        controls += usize::from(*control);
    }
    let well = through == 0 && controls == parts.len();
    println!(
        "escapes: {through} got through, {controls} of {} controls did, {:.0} s (target 0, all) {}",
        parts.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}
