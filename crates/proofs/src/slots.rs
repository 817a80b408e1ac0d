//! Every slot of every schedule exactly one verdict, through kills, downtime and clocks that jump.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Range, RangeInclusive},
    time::{Duration, Instant},
};

use fastrand::Rng;
use jiff::{ToSpan as _, civil::date, tz::TimeZone};
use planwright_domain::{
    autonomy::{
        event::AutoEvent,
        schedule::{Rhythm, SlotEnd},
    },
    id::ScheduleId,
    identity::SessionKey,
    session::SessionEvent,
    time::Time,
};
use planwright_runtime::ports::journal::Recorded;
use planwright_testkit::people::ada_key;

use crate::{
    nights::{Night, Place, WORKS, events, says},
    on_threads,
};

/// How many schedules one session has.
const EACH: usize = 20;
const DAY_MICROS: i64 = 86_400_000_000;
/// How many kills a proof needs at least.
const KILLS_MIN: u32 = 10;
/// The kill after which the process stays down for long.
const LONG_AFTER: u32 = 3;
/// How long: the most frequent schedules come at least three times in it.
const LONG_MICROS: i64 = 20 * 3_600_000_000;

/// Proves it: so many schedules for so many simulated days.
pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    let (schedules, days) = if quick { (100, 4) } else { (1_000, 10) };
    on_threads(2, all(seed, schedules, days))
}

/// The night on which the clocks of Europe change is among the days.
fn begins() -> anyhow::Result<Time> {
    let begins = date(2026, 10, 23).at(0, 0, 0, 0).to_zoned(TimeZone::UTC)?;
    Ok(Time(begins.timestamp().as_microsecond()))
}

fn sessions(schedules: usize) -> anyhow::Result<Vec<SessionKey>> {
    let many = schedules / EACH;
    let named = (0..many).map(|at| ada_key(&format!("cli:slots-{at:04}")));
    Ok(named.collect::<Result<_, _>>()?)
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, schedules: usize, days: i64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let (first, until) = (begins()?, begins()?.plus_micros(days * DAY_MICROS));
    let place = Place::new("slots", first)?;
    let talks = sessions(schedules)?;
    add_schedules(&place, &talks, days, &mut rng).await?;
    let Lives { kills, jumps, down } = live(&place, first..until, &mut rng).await?;
    let (runtime, _) = place.runtime()?;
    let mut totals = BTreeMap::<&str, u64>::new();
    let (mut slots, mut wrong) = (0, Vec::new());
    for talk in &talks {
        let recorded = events(&runtime, talk).await?;
        for (schedule, ledger) in ledgers(&recorded) {
            slots += ledger.judge(until, &down, &mut totals, &mut wrong, schedule)?;
        }
    }
    wrong.iter().take(10).for_each(|words| println!("WRONG {words}"));
    println!(
        "{schedules} schedules, {days} simulated days, {kills} kills, {jumps} jumps of the clock, {:.0} s",
        begun.elapsed().as_secs_f32()
    );
    println!("verdicts: {totals:?}");
    let [done, failed, missed] =
        ["done", "failed", "missed"].map(|verdict| totals.get(verdict).copied().unwrap_or(0));
    let occurred = done > 0 && failed > 0 && missed > 0 && !down.is_empty();
    let well = wrong.is_empty() && kills >= KILLS_MIN && occurred;
    println!(
        "slots: {slots} slots, {done} done, {failed} failed, {missed} missed in {} downtimes, {} without exactly one verdict or missed while the process was up (target some of each, 0) {}",
        down.len(),
        wrong.len(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

async fn add_schedules(
    place: &Place,
    talks: &[SessionKey],
    days: i64,
    rng: &mut Rng,
) -> anyhow::Result<()> {
    let (runtime, _) = place.runtime()?;
    for talk in talks {
        for at in 0..EACH {
            let fails = if at % 7 == 3 { "fails" } else { "works" };
            let when = match at % 6 {
                0 => "30 2 * * * Europe/Berlin".to_owned(),
                1 => "15 9 * * 1-5 America/New_York".into(),
                2 => "0 6,18 * * * Asia/Kolkata".into(),
                3 => format!("every {}m", rng.u32(40..400)),
                4 => format!("every {}h", rng.u32(1..30)),
                _ => format!(
                    "at 2026-10-{}T{:02}:30 Europe/Berlin",
                    23 + rng.i64(1..days.min(8)),
                    rng.u8(0..24)
                ),
            };
            says(&runtime, talk, &format!("/schedule add {when} number {at} that {fails}")).await?;
        }
    }
    Ok(())
}

/// How the process lived until its time was over.
#[derive(Default)]
struct Lives {
    kills: u32,
    /// Of the clock.
    jumps: u32,
    /// The times that it was not up, because the clock jumped over them.
    down: Vec<RangeInclusive<Time>>,
}

/// Starts the process and kills it, again and again, until it says that it is over.
async fn live(place: &Place, times: Range<Time>, rng: &mut Rng) -> anyhow::Result<Lives> {
    let mut lives = Lives::default();
    while !place.path().join("over").exists() {
        let _ = std::fs::remove_file(place.path().join(WORKS));
        let mut child = place.start(Night::Slots, times.end)?;
        let span = Duration::from_millis(rng.u64(60..900));
        // However fast the machine is, and whatever the seed draws: time is left for the kills that are still needed.
        let needed = KILLS_MIN.saturating_sub(lives.kills);
        let begins = place.clock()?;
        let enough = begins.plus_micros((times.end.0 - begins.0) / (i64::from(needed) + 2));
        let lived_enough = || anyhow::Ok(needed > 0 && place.clock()? >= enough);
        // On a busy machine it takes longer to start than it is to live; a few are killed while they start.
        let starts = rng.u8(0..8) > 0;
        while starts && !place.path().join(WORKS).exists() && child.try_wait()?.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let born = Instant::now();
        while born.elapsed() < span && !lived_enough()? && child.try_wait()?.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if child.try_wait()?.is_none() {
            child.kill()?;
            lives.kills += 1;
        }
        child.wait()?;
        let now = place.clock()?;
        let moved = match rng.u8(0..12) {
            // One downtime is long enough for several slots of the frequent schedules, whatever the seed draws.
            _ if lives.kills == LONG_AFTER && lives.down.iter().all(is_short) => {
                now.plus_micros(LONG_MICROS)
            }
            0 => now.plus_micros(rng.i64(1..9 * 3_600_000_000).min((times.end.0 - now.0) / 4)),
            1 => now.plus_micros(-3_600_000_000),
            2 if rng.u8(0..4) == 0 => now.plus_micros(-DAY_MICROS),
            _ => now,
        };
        if moved != now && !place.path().join("over").exists() {
            let moved = Time(moved.0.clamp(times.start.0, times.end.0));
            place.set_clock(moved)?;
            lives.jumps += 1;
            if moved > now {
                lives.down.push(now..=moved);
            }
        }
    }
    Ok(lives)
}

fn is_short(down: &RangeInclusive<Time>) -> bool {
    down.end().0 - down.start().0 < LONG_MICROS
}

/// What was recorded of one schedule.
struct Ledger {
    rhythm: Rhythm,
    added: Time,
    claimed: Vec<Time>,
    ended: Vec<(Time, SlotEnd)>,
    missed: Vec<(Time, Time, u64)>,
    runs: Vec<Time>,
}

fn ledgers(recorded: &[Recorded]) -> BTreeMap<ScheduleId, Ledger> {
    let mut ledgers = BTreeMap::new();
    for Recorded { at, event, .. } in recorded {
        let SessionEvent::Auto(event) = event else { continue };
        match event {
            AutoEvent::ScheduleAdded { schedule, rhythm, .. } => {
                ledgers.insert(
                    *schedule,
                    Ledger {
                        rhythm: rhythm.clone(),
                        added: *at,
                        claimed: Vec::new(),
                        ended: Vec::new(),
                        missed: Vec::new(),
                        runs: Vec::new(),
                    },
                );
            }
            AutoEvent::SlotClaimed { schedule, slot, .. } => {
                ledgers.entry(*schedule).and_modify(|ledger| ledger.claimed.push(*slot));
            }
            AutoEvent::SlotEnded { schedule, slot, end } => {
                ledgers.entry(*schedule).and_modify(|ledger| ledger.ended.push((*slot, *end)));
            }
            AutoEvent::SlotsMissed { schedule, first, last, count } => {
                let range = (*first, *last, *count);
                ledgers.entry(*schedule).and_modify(|ledger| ledger.missed.push(range));
            }
            AutoEvent::RunStarted { slot: Some(slot), .. } => {
                ledgers.entry(slot.schedule).and_modify(|ledger| ledger.runs.push(slot.at));
            }
            AutoEvent::GoalAdded { .. }
            | AutoEvent::GoalEnded { .. }
            | AutoEvent::TaskAdded { .. }
            | AutoEvent::TaskEnded { .. }
            | AutoEvent::RunStarted { .. }
            | AutoEvent::Ticked { .. }
            | AutoEvent::RunMoved { .. }
            | AutoEvent::RunPinned { .. }
            | AutoEvent::RunWarned { .. }
            | AutoEvent::RunPaused { .. }
            | AutoEvent::RunResumed { .. }
            | AutoEvent::RunEnded { .. }
            | AutoEvent::ScheduleEnded { .. } => {}
        }
    }
    ledgers
}

impl Ledger {
    /// Holds what was recorded against the calendar, computed here from nothing but the calendar.
    fn judge(
        &self,
        until: Time,
        down: &[RangeInclusive<Time>],
        totals: &mut BTreeMap<&'static str, u64>,
        wrong: &mut Vec<String>,
        schedule: ScheduleId,
    ) -> anyhow::Result<u64> {
        let expected = calendar(&self.rhythm, self.added, until)?;
        let claimed: BTreeSet<_> = self.claimed.iter().copied().collect();
        let runs: BTreeSet<_> = self.runs.iter().copied().collect();
        let mut complain =
            |what: String| wrong.push(format!("{schedule} {:?}: {what}", self.rhythm));
        if claimed.len() != self.claimed.len() || runs.len() != self.runs.len() {
            complain("a slot was claimed or run twice".into());
        }
        for (first, last, count) in &self.missed {
            let inside =
                expected.iter().filter(|slot| (first..=last).contains(slot)).count() as u64;
            if inside != *count {
                complain(format!(
                    "{count} missed from {first} to {last}, and the calendar has {inside}"
                ));
            }
        }
        for slot in &expected {
            let missed =
                self.missed.iter().filter(|(first, last, _)| (first..=last).contains(&slot));
            let missed = missed.count();
            let ended: Vec<_> =
                self.ended.iter().filter(|(at, _)| at == slot).map(|(_, end)| *end).collect();
            let verdict = match (claimed.contains(slot), missed, ended.as_slice()) {
                (false, 1, []) if down.iter().any(|down| down.contains(slot)) => "missed",
                (false, 1, []) => {
                    complain(format!("the slot {slot} was missed while the process was up"));
                    continue;
                }
                (true, 0, [SlotEnd::Done]) => "done",
                (true, 0, [SlotEnd::Failed]) => "failed",
                (true, 0, [SlotEnd::Skipped]) => "skipped",
                other => {
                    complain(format!("the slot {slot} has {other:?}"));
                    continue;
                }
            };
            *totals.entry(verdict).or_default() += 1;
        }
        if let Some(strange) = claimed.iter().find(|slot| !expected.contains(slot)) {
            complain(format!("{strange} was claimed and is no slot"));
        }
        Ok(expected.len() as u64)
    }
}

/// The slots of a rhythm after one time and up to another, by walking through every day.
fn calendar(rhythm: &Rhythm, after: Time, until: Time) -> anyhow::Result<BTreeSet<Time>> {
    let inside = |at: &Time| *at > after && *at <= until;
    Ok(match rhythm {
        Rhythm::Every { micros, from } => {
            let each = (1..).map(|at| from.plus_micros(at * micros));
            each.take_while(|at| *at <= until).filter(inside).collect()
        }
        Rhythm::Once { at, zone } => {
            let local: jiff::civil::DateTime = at.parse()?;
            let zoned = local.to_zoned(TimeZone::get(zone)?)?;
            [Time(zoned.timestamp().as_microsecond())].into_iter().filter(inside).collect()
        }
        Rhythm::Cron { expression, zone } => {
            let fields: Vec<_> = expression.split(' ').collect();
            let minute: i8 = fields[0].parse()?;
            let hours: Vec<i8> = fields[1].split(',').map(str::parse).collect::<Result<_, _>>()?;
            let weekdays = fields[4] == "1-5";
            let zone = TimeZone::get(zone)?;
            let mut slots = BTreeSet::new();
            let mut day = date(2026, 10, 20);
            while day < date(2026, 11, 10) {
                let works = !weekdays || day.weekday().to_monday_one_offset() <= 5;
                for hour in hours.iter().filter(|_| works) {
                    // What a change of the clocks repeats counts once: the first time.
                    let local = day.at(*hour, minute, 0, 0);
                    let zoned = zone.to_ambiguous_zoned(local).compatible()?;
                    slots.insert(Time(zoned.timestamp().as_microsecond()));
                }
                day = day.checked_add(1.day())?;
            }
            slots.into_iter().filter(inside).collect()
        }
    })
}
