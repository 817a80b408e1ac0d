//! The audit log: whatever somebody changes who can write to the journal, a head that was kept elsewhere shows it; and whoever takes
//! decisions up loses none, repeats none and misplaces none, killed wherever and with others beside.

use std::{collections::BTreeMap, time::Instant};

use fastrand::Rng;
use planwright_outbound::signing_key::SigningKey;
use planwright_testkit::scratch;

use crate::on_threads;

mod nodes;
mod places;
mod story;
mod tampering;

use places::{OnPostgres, OnSqlite, Place};
use story::{Story, found};
use tampering::{Care, Tampering};

pub(crate) use nodes::live;

/// An honest journal is looked at after so many that are not.
const HONEST_EVERY: u64 = 20;
/// A story is tampered with so often before there is another.
const STORY_LASTS: u64 = 25;

/// How often a place for what is done to it is looked for in one story.
const TRIES_OF_STORY: u32 = 64;

/// What was found of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    all: u64,
    /// With a head kept elsewhere.
    found: u64,
    without: u64,
}

/// What came of all of them.
#[derive(Default)]
struct Totals {
    counts: BTreeMap<(Tampering, Care), Counts>,
    honest: u64,
    missed: Vec<String>,
    accused: Vec<String>,
}

/// Proves it with so many tampered journals in all.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(seed, quick))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, quick: bool) -> anyhow::Result<bool> {
    let (mut rng, begun) = (Rng::with_seed(seed), Instant::now());
    let mut totals = Totals::default();
    let shares = if quick { [345, 138] } else { [6_900, 3_450] };
    let places: [Box<dyn Place>; 2] =
        [Box::new(OnSqlite::new()?), Box::new(OnPostgres::new().await?)];
    for (mut place, many) in places.into_iter().zip(shares) {
        let (since, name) = (Instant::now(), place.name());
        tamper(&mut *place, many, &mut rng, &mut totals).await?;
        println!("  {name:<10} {many} tampered journals in {} s", since.elapsed().as_secs());
    }
    for ((tampering, care), Counts { all, found, without }) in &totals.counts {
        println!(
            "  {:<26} {:<34} {found} of {all} found with a head kept elsewhere, {without} without one",
            tampering.name(),
            care.name(),
        );
    }
    let tampered: u64 = totals.counts.values().map(|counts| counts.all).sum();
    let is_each_tried = totals.counts.len() == kinds().len();
    let without: u64 = totals.counts.values().map(|counts| counts.without).sum();
    println!(
        "  control    {} honest journals, {} of them accused",
        totals.honest,
        totals.accused.len()
    );
    let mut is_sequenced = true;
    for on_postgres in [false, true] {
        let each = if quick { 2 } else { 60 };
        let done = nodes::prove(&mut rng, each, on_postgres).await?;
        let engine = if on_postgres { "PostgreSQL, three nodes" } else { "SQLite" };
        println!(
            "  sequencer  {engine}: killed {:?}; {} heads taken up, {} wrong",
            done.kills,
            done.taken,
            done.wrong.len()
        );
        done.wrong.iter().take(10).for_each(|words| println!("  wrong: {words}"));
        is_sequenced &= done.is_well();
    }
    for words in totals.missed.iter().chain(&totals.accused).take(10) {
        println!("  {words}");
    }
    let well = totals.missed.is_empty()
        && totals.accused.is_empty()
        && totals.honest > 0
        && is_each_tried
        && is_sequenced;
    println!(
        "record: {} of {tampered} tampered journals found with a head kept elsewhere, {without} without one, in {} s (all) {}",
        tampered - totals.missed.len() as u64,
        begun.elapsed().as_secs(),
        if well { "ok" } else { "short" },
    );
    Ok(well)
}

/// What is done to journals, and with how much care.
fn kinds() -> Vec<(Tampering, Care)> {
    let of = |tampering: Tampering| {
        // What is changed in the log alone leaves no session to hash again.
        let cares = if tampering.is_of_log() { &[Care::Everything] } else { &Care::ALL[..] };
        cares.iter().map(move |care| (tampering, *care))
    };
    Tampering::ALL.into_iter().flat_map(of).collect()
}

async fn tamper(
    place: &mut dyn Place,
    many: u64,
    rng: &mut Rng,
    totals: &mut Totals,
) -> anyhow::Result<()> {
    let keys = scratch::directory("record-key")?;
    let key = SigningKey::open(keys.path())?;
    let mut honest = Story::new(rng, &key)?;
    let kinds = kinds();
    for number in 0..many {
        if number % STORY_LASTS == STORY_LASTS - 1 {
            honest = Story::new(rng, &key)?;
        }
        if number % HONEST_EVERY == 0 {
            let journal = place.empty().await?;
            honest.store(&*journal).await?;
            totals.honest += 1;
            let wrongly = found(&*journal, &honest.kept).await?;
            totals.accused.extend(wrongly.iter().map(|finding| format!("accused: {finding}")));
        }
        let (tampering, care) = kinds[number as usize % kinds.len()];
        let (mut story, mut tries) = (honest.clone(), 0);
        while tampering.apply(&mut story, care, rng).is_none() {
            tries += 1;
            if tries % TRIES_OF_STORY == 0 {
                // It may have no place for it: in some nobody says a word.
                honest = Story::new(rng, &key)?;
            }
            story = honest.clone();
        }
        let journal = place.empty().await?;
        story.store(&*journal).await?;
        // The last head, or all of them.
        let kept =
            if rng.bool() { &honest.kept[honest.kept.len() - 1..] } else { &honest.kept[..] };
        let counts = totals.counts.entry((tampering, care)).or_default();
        counts.all += 1;
        counts.without += u64::from(!found(&*journal, &[]).await?.is_empty());
        let is_found = !found(&*journal, kept).await?.is_empty();
        counts.found += u64::from(is_found);
        if !is_found {
            let words =
                format!("missed on {}: {}, {}", place.name(), tampering.name(), care.name());
            totals.missed.push(words);
        }
    }
    Ok(())
}
