//! Kills at named points and at random moments, power cuts and a disk that fails; then log, journal and ledger compared.

use std::time::Instant;

use fastrand::Rng;
use planwright_runtime::failpoint::POINTS;
use planwright_testkit::{
    kill::{
        Campaign, Death, Mutant,
        verdict::{Verdict, verdict},
    },
    power::Fault,
};

use crate::on_threads;

/// How many lives of each kind.
struct Size {
    each_point: u32,
    random: u32,
    served: u32,
    cuts: u32,
    each_fault: u32,
    /// A mutant must be caught within so many.
    mutant: u32,
}

const FULL: Size =
    Size { each_point: 10, random: 200, served: 100, cuts: 100, each_fault: 25, mutant: 40 };
const QUICK: Size =
    Size { each_point: 1, random: 10, served: 8, cuts: 6, each_fault: 3, mutant: 24 };

/// Proves it, at full or at quick size.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(seed, if quick { &QUICK } else { &FULL }))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, size: &Size) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let parts = [
        killed(seed, size, &mut rng).await?,
        served(seed + 1, size, &mut rng).await?,
        cut(seed + 2, size, &mut rng).await?,
        failing(seed + 3, size, &mut rng).await?,
    ];
    let mut uncaught = 0;
    for (at, mutant) in (4..).zip(Mutant::ALL) {
        uncaught += u32::from(!is_caught(seed + at, size, mutant, &mut rng).await?);
    }
    let all = |count: fn(&Verdict) -> usize| -> usize {
        parts.iter().map(|part| count(&part.verdict)).sum()
    };
    let lost = all(|verdict| verdict.lost.len() + verdict.undone.len());
    let repeated = all(|verdict| verdict.repeated.len() + verdict.unexplained.len());
    let well = parts.iter().all(Part::is_well) && uncaught == 0;
    println!(
        "kill: {} lives ended by force, {:.0} s: {lost} lost, {repeated} repeated silently, {} in doubt and shown, {} of {} mutants caught (target 0 lost, 0 repeated, every fault hit, every mutant caught) {}",
        parts.iter().map(|part| part.killed).sum::<u32>(),
        begun.elapsed().as_secs_f32(),
        all(|verdict| verdict.in_doubt),
        Mutant::ALL.len() as u32 - uncaught,
        Mutant::ALL.len(),
        if well { "ok" } else { "short" },
    );
    Ok(well)
}

/// What came of one installation.
struct Part {
    verdict: Verdict,
    killed: u32,
    complaints: Vec<String>,
    /// What must have happened, or nothing was shown: how often it did.
    counts: Vec<(String, u64)>,
}

impl Part {
    fn is_well(&self) -> bool {
        self.verdict.is_well()
            && self.complaints.is_empty()
            && self.counts.iter().all(|(_, count)| *count > 0)
    }
}

async fn killed(seed: u64, size: &Size, rng: &mut Rng) -> anyhow::Result<Part> {
    let mut campaign = Campaign::new(seed).await?;
    for round in 0..size.each_point {
        for point in POINTS {
            at_point(&mut campaign, point, 1 + (round * 3) % 10, rng).await?;
        }
    }
    for _ in 0..size.random {
        campaign.live(Death::After(rng.u64(50..900))).await?;
    }
    let hit = campaign.hit;
    let counts = [
        ("at named points", campaign.killed_at_points),
        ("at random", campaign.killed),
        ("with a tool call under way", hit.calls),
        ("with a model call under way", hit.model_calls),
    ];
    let counts = counts.map(|(what, count)| (format!("kills {what}"), u64::from(count)));
    part("kills", campaign, counts.to_vec()).await
}

async fn served(seed: u64, size: &Size, rng: &mut Rng) -> anyhow::Result<Part> {
    let mut campaign = Campaign::new(seed).await?.over_http();
    for _ in 0..size.served {
        campaign.live(Death::After(rng.u64(100..1_200))).await?;
    }
    let counts = vec![("kills of a server".to_owned(), u64::from(campaign.killed))];
    part("kills over HTTP", campaign, counts).await
}

async fn cut(seed: u64, size: &Size, rng: &mut Rng) -> anyhow::Result<Part> {
    let mut campaign = Campaign::new(seed).await?.with_power()?;
    for at in 0..size.cuts {
        // At any moment little is unsynced: a cut at a write or a sync has something to lose.
        let death = match at % 3 {
            0 => Death::PowerCut(rng.u64(150..900)),
            1 => Death::CutAtWrite(rng.u32(20..400)),
            _ => Death::CutAtSync(rng.u32(1..60)),
        };
        campaign.live(death).await?;
    }
    let counts = vec![
        ("power cuts".to_owned(), u64::from(campaign.killed)),
        ("power cuts that lost bytes".to_owned(), u64::from(campaign.cuts_that_lost)),
    ];
    part("power cuts", campaign, counts).await
}

/// The disk is full or fails for some calls of each life, and then the power is cut.
async fn failing(seed: u64, size: &Size, rng: &mut Rng) -> anyhow::Result<Part> {
    let mut campaign = Campaign::new(seed).await?.with_power()?;
    let mut counts = Vec::new();
    for fault in Fault::ALL {
        campaign.disk_fails(fault);
        let before = campaign.fault_hits();
        for at in 0..size.each_fault * 3 {
            // On a busy machine a life may end before it came to the calls that fail.
            if at >= size.each_fault && campaign.fault_hits() > before {
                break;
            }
            campaign.live(Death::PowerCut(rng.u64(500..1_200))).await?;
        }
        counts.push((format!("calls hit by {}", fault.words()), campaign.fault_hits() - before));
    }
    let in_words = u64::from(campaign.refused + campaign.gave_up);
    counts.push(("refused in words meanwhile".into(), in_words));
    part("failing disk", campaign, counts).await
}

/// Whether a program with a mistake in it is found losing something.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn is_caught(seed: u64, size: &Size, mutant: Mutant, rng: &mut Rng) -> anyhow::Result<bool> {
    let mut campaign = Campaign::new(seed).await?.with_power()?.with_mutant(mutant);
    // The journal is there already: what it takes to make one is not acknowledged to anybody.
    campaign.live(Death::Peaceful).await?;
    for lives in 1..=size.mutant {
        let death = match mutant {
            Mutant::SynchronousNormal => Death::PowerCut(rng.u64(500..1_200)),
            // The first commits of a life are those of what a person says.
            Mutant::AnswerBeforeCommit => Death::CutAtSync(1 + (lives - 1) % 12),
            Mutant::RenameWithoutDirectorySync => Death::CutAtWrite(rng.u32(150..500)),
        };
        campaign.live(death).await?;
        let found = verdict(&campaign).await?;
        let lost = match mutant {
            Mutant::SynchronousNormal | Mutant::AnswerBeforeCommit => found.lost.len(),
            Mutant::RenameWithoutDirectorySync => found.undone.len(),
        };
        if lost > 0 {
            println!("mutant {}: caught after {lives} lives, {lost} lost", mutant.name());
            return Ok(true);
        }
    }
    println!("mutant {}: NOT CAUGHT in {} lives", mutant.name(), size.mutant);
    Ok(false)
}

/// Dies at a point; if a life passes without it, the first hit of the next one will do.
async fn at_point(
    campaign: &mut Campaign,
    point: &'static str,
    count: u32,
    rng: &mut Rng,
) -> anyhow::Result<()> {
    for count in [count, 1, 1, 1, 1, 1] {
        let before = campaign.killed_at_points;
        campaign.live(Death::At(point, count)).await?;
        if campaign.killed_at_points > before {
            return Ok(());
        }
        campaign.live(Death::After(rng.u64(50..400))).await?;
    }
    campaign.complaints.push(format!("{point} was never reached"));
    Ok(())
}

/// Lets an installation come to rest, and looks at what is left.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn part(
    what: &str,
    mut campaign: Campaign,
    mut counts: Vec<(String, u64)>,
) -> anyhow::Result<Part> {
    campaign.settle().await?;
    let verdict = verdict(&campaign).await?;
    counts.push(("commands acknowledged".into(), campaign.acknowledged.len() as u64));
    let killed = campaign.killed + campaign.killed_at_points;
    println!(
        "{what}: {killed} lives ended by force, {} effects, {} in doubt, {} approvals pending and decidable",
        verdict.effects, verdict.in_doubt, verdict.pending,
    );
    counts.iter().for_each(|(what, count)| println!("  {count:>6} {what}"));
    let mut complaints = campaign.complaints.clone();
    complaints.extend(campaign.panics()?);
    let found = verdict.complaints().chain(&complaints);
    found.take(20).for_each(|words| println!("  {words}"));
    Ok(Part { verdict, killed, complaints, counts })
}
