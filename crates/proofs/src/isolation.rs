//! Conversations that never mix: generated histories over shared keys, with oracles that know nothing of the rules.
//!
//! A history is played twice. First through everything that a runtime does, from chats and pointers to turns,
//! runs, memory and deliveries ([`world`]), while a reference keeps nothing but what each command was meant for
//! ([`reference`]). Then, for one session, again without the commands of all others. What the oracles say:
//!
//! - *route*: a line lands in the session that its chat talked to when it was received;
//! - *label*: nothing that another session said is read, recorded or delivered here, unless it was promoted;
//! - *twin*: without the others, this session's state, events and recollections are the same, byte for byte;
//! - *positive*: tasks of one goal do see what their goal keeps, and everyone what was promoted;
//! - *lifecycle*: nothing goes on after off, nothing happens after a deletion, a disconnect ends no run;
//! - *digest*: what executes is what was approved, and a stale approval is refused;
//! - *quota*: without the other owners, an owner who may use only so much comes to the same, byte for byte: who is at their
//!   limit stops nobody else.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use fastrand::Rng;
use planwright_domain::{identity::SessionKey, quota::Quota};

use crate::on_threads;

mod op;
mod reference;
mod served;
mod wiring;
mod world;

use op::Op;
use reference::Reference;
use served::OpenDoor;
use wiring::{Mutant, Sound, Wiring};
use world::World;

/// How many commands one history has.
const OPS: usize = 40;

/// What one history came to.
#[derive(Debug, Default, Clone, Copy)]
struct Played {
    /// How many commands there were.
    ops: u64,
    /// How many recollections were compared.
    recalls: u64,
    /// How many of them had something of a goal or something promoted in them.
    shared: u64,
    /// How often an owner had used what they may.
    limited: u64,
}

/// Plays the history of this seed; in words, what broke.
fn play(seed: u64, wiring: &dyn Wiring) -> Result<Played, String> {
    let mut rng = Rng::with_seed(seed);
    let mut reference = Reference::default();
    // Sessions of one owner share what the owner may use: then owners are held against each other, and not sessions.
    let quota = rng.bool().then(|| Quota {
        tokens: Some(rng.u64(1..12)),
        turns: rng.bool().then_some(1),
        ..Quota::default()
    });
    let mut world = World::new(wiring, quota);
    let mut meant = Vec::with_capacity(OPS);
    let mut played = Played::default();
    for at in 0..OPS {
        let op = op::generate(&mut rng, at, &reference, &world);
        let broke = |what: String| format!("seed {seed}, command {at} ({op:?}): {what}");
        let target = reference.target(&op);
        let landed = world.apply(at, &op).map_err(broke)?;
        if let (Some(meant), Some(landed)) = (&target, &landed)
            && meant != landed
        {
            return Err(broke(format!("route: it was meant for {meant} and landed in {landed}")));
        }
        world.check(&op, &reference).map_err(broke)?;
        reference.apply(&op, target.as_ref(), &world).map_err(broke)?;
        meant.push((op, target));
        played.ops += 1;
    }
    (played.recalls, played.shared, played.limited) = (world.recalls, world.shared, world.limited);
    let broke = |what: String| format!("seed {seed}: {what}");
    world.finish(&reference).map_err(broke)?;
    let sessions: Vec<_> = world.sessions.keys().cloned().collect();
    let Some(chosen) = rng.choice(sessions.iter().cloned()) else { return Ok(played) };
    let is_compared = |key: &SessionKey| match quota {
        Some(_) => key.owner == chosen.owner,
        None => *key == chosen,
    };
    let mut twin = World::new(wiring, quota);
    for (at, (op, target)) in meant.iter().enumerate() {
        let promotes = matches!(op, Op::Promote { .. } | Op::ForgetGlobal { .. });
        if target.as_ref().is_some_and(is_compared) || promotes {
            twin.apply_at(at, op, target.as_ref(), &world).map_err(broke)?;
        }
    }
    let oracle = if quota.is_some() { "quota" } else { "twin" };
    for key in sessions.iter().filter(|key| is_compared(key)) {
        world.same_as(&mut twin, key, OPS, oracle).map_err(broke)?;
    }
    Ok(played)
}

/// How long the histories of a sound wiring are played at quick size: every run has new ones.
const QUICK: Duration = Duration::from_secs(60);
/// How many histories go through HTTP on each deployment.
const SERVED: u64 = 500;
/// The same at quick size.
const SERVED_QUICK: u64 = 30;
/// On so many seeds each mutant is caught.
const MUTANT_SEEDS: u64 = 5;
/// Each mutant has so long to be caught in.
const MUTANT_MAX: Duration = Duration::from_secs(30);
/// What a violation begins with.
const ORACLES: [&str; 7] = ["route", "label", "twin", "positive", "lifecycle", "digest", "quota"];
/// Where the histories of the next seed begin.
const STRIDE: u64 = 1 << 40;

/// Plays so many histories, or as many as the quick time holds, then every mutant until it is caught.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(count: u64, seed: u64, quick: bool) -> bool {
    let limit = quick.then_some(QUICK);
    let (played, broken, seconds) = histories(count, seed, limit);
    broken.iter().take(10).for_each(|words| {
        println!(
            "BROKEN {words}\n  play it again with: ./prove isolation --count 1 --seed <that seed>"
        )
    });
    let Totals { cases, ops, recalls, shared, limited } = played;
    println!(
        "{cases} histories, {ops} commands, {recalls} recollections of which {shared} had something shared to tell, {limited} turns held back by a limit, {seconds:.0} s"
    );
    let mutants = if count == 1 { &[][..] } else { &Mutant::ALL[..] };
    let mut survivors = 0;
    for mutant in mutants {
        let caught: Vec<_> =
            (1..=MUTANT_SEEDS).map(|at| caught(*mutant, seed + at * STRIDE)).collect();
        let mut cases: Vec<_> = caught.iter().flatten().map(|(cases, _)| *cases).collect();
        cases.sort_unstable();
        let by = caught.iter().flatten().next().map_or("", |(_, by)| by);
        let lived = caught.iter().filter(|caught| caught.is_none()).count();
        survivors += lived;
        let median = cases.get(cases.len() / 2).copied().unwrap_or(0);
        let worst = cases.last().copied().unwrap_or(0);
        let name = mutant.name();
        println!(
            "  {name:<52} median {median:>6} worst {worst:>7} cases, by {by}{}",
            if lived > 0 { " SURVIVED" } else { "" }
        );
    }
    let through = match (count, quick) {
        (1, _) => 0,
        (_, true) => SERVED_QUICK,
        (_, false) => SERVED,
    };
    let played = match through {
        0 => Ok((0, Vec::new())),
        _ => on_threads(2, served::histories(through, seed)),
    };
    let (lines, leaked) = played.unwrap_or_else(|error| (0, vec![format!("{error:#}")]));
    let doors = if through == 0 { &[][..] } else { &OpenDoor::ALL[..] };
    for door in doors {
        let found = on_threads(2, async { Ok(served::finds(*door, seed + STRIDE).await) });
        let found = found.ok().flatten();
        survivors += usize::from(found.is_none());
        let words = found.map_or("SURVIVED".into(), |cases| format!("{cases} histories, by label"));
        println!("  {:<52} {words}", door.name());
    }
    leaked.iter().take(10).for_each(|words| println!("BROKEN {words}"));
    println!(
        "{through} histories through HTTP and WebSockets on each deployment, {lines} commands, {} violations",
        leaked.len()
    );
    let met = count == 1 || (cases > 0 && shared > 0 && limited > 0 && lines > 0);
    let well = broken.is_empty() && survivors == 0 && leaked.is_empty() && met;
    println!(
        "isolation: {cases} histories, {} violations; {} mutants, {survivors} of {} tries uncaught (target 0, all caught) {}",
        broken.len() + leaked.len(),
        mutants.len() + doors.len(),
        mutants.len() as u64 * MUTANT_SEEDS + doors.len() as u64,
        if well { "ok" } else { "short" }
    );
    well
}

#[derive(Default)]
struct Totals {
    cases: u64,
    ops: u64,
    recalls: u64,
    shared: u64,
    limited: u64,
}

fn histories(count: u64, seed: u64, limit: Option<Duration>) -> (Totals, Vec<String>, f32) {
    let begun = Instant::now();
    let next = AtomicU64::new(seed);
    let work = || {
        let (mut totals, mut broken) = (Totals::default(), Vec::new());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let over = limit.is_some_and(|limit| begun.elapsed() > limit);
            if at >= seed + count || over || broken.len() > 10 {
                return (totals, broken);
            }
            totals.cases += 1;
            match play(at, &Sound) {
                Ok(Played { ops, recalls, shared, limited }) => {
                    totals.ops += ops;
                    totals.recalls += recalls;
                    totals.shared += shared;
                    totals.limited += limited;
                }
                Err(words) => broken.push(words),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join()).collect()
    });
    let (mut totals, mut broken) = (Totals::default(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok((some, broke)) => {
                totals.cases += some.cases;
                totals.ops += some.ops;
                totals.recalls += some.recalls;
                totals.shared += some.shared;
                totals.limited += some.limited;
                broken.extend(broke);
            }
            Err(_) => broken.push("a history broke down".into()),
        }
    }
    (totals, broken, begun.elapsed().as_secs_f32())
}

/// After how many histories from this seed on a mutant is caught, and by which oracle; none if it is not in time.
fn caught(mutant: Mutant, seed: u64) -> Option<(u64, &'static str)> {
    let begun = Instant::now();
    for at in 0.. {
        if begun.elapsed() > MUTANT_MAX {
            return None;
        }
        if let Err(words) = play(seed + at, &mutant) {
            let said = |oracle: &&&str| words.contains(&format!(": {oracle}: "));
            let oracle = ORACLES.iter().find(said).copied().unwrap_or("the rules themselves");
            return Some((at + 1, oracle));
        }
    }
    None
}
