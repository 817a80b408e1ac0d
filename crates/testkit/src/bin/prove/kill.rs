//! Kills at named points, at random moments, and power cuts; then log, journal and ledger compared.

use std::{process::ExitCode, time::Instant};

use planwright_runtime::failpoint::POINTS;
use planwright_testkit::{
    kill::{
        Campaign, Death,
        verdict::{Verdict, verdict},
    },
    power::Honesty,
};

/// How many lives of each kind.
struct Size {
    each_point: u32,
    random: u32,
    served: u32,
    cuts: u32,
    lies: u32,
}

const FULL: Size = Size { each_point: 10, random: 200, served: 100, cuts: 50, lies: 10 };
const QUICK: Size = Size { each_point: 1, random: 10, served: 8, cuts: 6, lies: 4 };

/// Proves it, at full or at quick size.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(seed: u64, quick: bool) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            println!("kill: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(all(seed, if quick { &QUICK } else { &FULL })) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("kill: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, size: &Size) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut killed = Campaign::new(seed).await?;
    for round in 0..size.each_point {
        for point in POINTS {
            at_point(&mut killed, point, 1 + (round * 3) % 10, &mut rng).await?;
        }
    }
    let points = killed.killed_at_points;
    for _ in 0..size.random {
        killed.live(Death::After(rng.u64(50..900))).await?;
    }
    let kills = report("kills", &mut killed).await?;

    let mut served = Campaign::new(seed + 3).await?.over_http();
    for _ in 0..size.served {
        served.live(Death::After(rng.u64(100..1_200))).await?;
    }
    let over_http = report("kills over HTTP", &mut served).await?;

    let mut cut = Campaign::new(seed + 1).await?.with_power(Honesty::Honest)?;
    for _ in 0..size.cuts {
        cut.live(Death::PowerCut(rng.u64(150..900))).await?;
    }
    let cuts = report("power cuts", &mut cut).await?;

    let mut lied = Campaign::new(seed + 2).await?.with_power(Honesty::Lying)?;
    for _ in 0..size.lies {
        lied.live(Death::PowerCut(rng.u64(400..900))).await?;
    }
    let lies = verdict(&lied).await.map_or(usize::MAX, |verdict| verdict.lost.len());
    println!("mutant without fsync: {} acknowledged, {lies} found lost", lied.acknowledged.len());

    let lost = kills.lost.len() + over_http.lost.len() + cuts.lost.len();
    let repeated = over_http.repeated.len()
        + over_http.unexplained.len()
        + kills.repeated.len()
        + cuts.repeated.len()
        + kills.unexplained.len()
        + cuts.unexplained.len();
    let wanted = size.each_point * POINTS.len() as u32;
    let complaints = killed.complaints.len() + served.complaints.len() + cut.complaints.len();
    let well = kills.is_well()
        && over_http.is_well()
        && cuts.is_well()
        && lies > 0
        && points >= wanted
        && complaints == 0;
    println!(
        "kill: {points} kills at {} points, {} at random, {} over HTTP, {} power cuts, {:.0} s: {lost} lost, {repeated} repeated silently, {} in doubt and shown, mutant caught {} (target 0 lost, 0 repeated, mutant caught) {}",
        POINTS.len(),
        killed.killed,
        served.killed,
        cut.killed,
        begun.elapsed().as_secs_f32(),
        kills.in_doubt + over_http.in_doubt + cuts.in_doubt,
        lies > 0,
        if well { "ok" } else { "short" },
    );
    Ok(well)
}

/// Dies at a point; if a life passes without it, the first hit of the next one will do.
async fn at_point(
    campaign: &mut Campaign,
    point: &'static str,
    count: u32,
    rng: &mut fastrand::Rng,
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

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn report(what: &str, campaign: &mut Campaign) -> anyhow::Result<Verdict> {
    campaign.settle().await?;
    let verdict = verdict(campaign).await?;
    println!(
        "{what}: {} lives ended by force, {} commands acknowledged, {} effects, {} in doubt, {} approvals pending and decidable",
        campaign.killed + campaign.killed_at_points,
        campaign.acknowledged.len(),
        verdict.effects,
        verdict.in_doubt,
        verdict.pending,
    );
    let found = [
        &verdict.lost,
        &verdict.repeated,
        &verdict.unexplained,
        &verdict.undecidable,
        &campaign.complaints,
    ];
    found.into_iter().flatten().take(20).for_each(|words| println!("  {words}"));
    Ok(verdict)
}
