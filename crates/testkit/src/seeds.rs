//! Seeds of proofs: new ones for every run, and those that once failed.

use std::{fs, path::Path};

use anyhow::Context as _;

/// Seeds stay below this, so that what is counted on from one of them never overflows.
const SEED_MAX: u64 = 1 << 48;

/// A seed that no earlier run is likely to have had.
#[must_use]
pub fn fresh() -> u64 {
    fastrand::u64(..SEED_MAX)
}

/// The seeds with which this proof once failed. They are played before a new one.
///
/// The file holds one seed a line, and what stands after a `#` says what was found.
pub fn corpus(proof: &str) -> anyhow::Result<Vec<u64>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(proof).with_extension("txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let seeds = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let seeds = seeds.filter(|seed| !seed.is_empty());
    seeds
        .map(|seed| seed.parse().with_context(|| format!("{}: {seed:?}", path.display())))
        .collect()
}
