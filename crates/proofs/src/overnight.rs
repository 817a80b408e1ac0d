//! A goal with five tasks, overnight: killed ten times, stopped by its budget, taken up in the morning.

use std::{
    fs,
    time::{Duration, Instant},
};

use fastrand::Rng;
use planwright_domain::{
    autonomy::{RunPause, RunStatus, budget::Meter, event::AutoEvent},
    identity::SessionKey,
    next::{Waiting, waiting},
    session::SessionEvent,
    time::Time,
    turn::event::TurnEvent,
};
use planwright_runtime::{ports::journal::Recorded, queries::autonomy::WorkView, runtime::Runtime};
use planwright_testkit::people::ada_key;

use crate::{
    nights::{MORTAL, Night, Place, events, many, says},
    on_threads,
};

const HOUR_MICROS: i64 = 3_600_000_000;
const TASKS: [&str; 5] = [
    "list what the old server holds",
    "choose where each part goes",
    "write down the order of the move",
    "name what could go wrong",
    "say what to check afterwards",
];
/// How often the process is killed.
const KILLS: usize = 10;

/// Plays the night.
pub(crate) fn prove(seed: u64) -> anyhow::Result<bool> {
    on_threads(2, night(seed))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn night(seed: u64) -> anyhow::Result<bool> {
    let mut rng = Rng::with_seed(seed);
    let talk = ada_key("cli:overnight")?;
    // Ten in the evening.
    let evening = Time("2026-11-14T22:00:00Z".parse::<jiff::Timestamp>()?.as_microsecond());
    let place = Place::new("overnight", evening)?;
    fs::write(place.path().join("night"), "")?;
    fs::write(place.path().join(MORTAL), "")?;
    {
        let (runtime, _) = place.runtime()?;
        says(&runtime, &talk, "/goal add move the photos to the new server").await?;
        for task in TASKS {
            says(&runtime, &talk, &format!("/task add g1 {task}")).await?;
        }
        says(&runtime, &talk, "/auto on g1 calls=24 time=12h").await?;
    }
    let until = evening.plus_micros(10 * HOUR_MICROS);
    let kills = live(&place, until, &mut rng).await?;
    let (runtime, _) = place.runtime()?;
    let session = runtime.queries.session(&talk).await?;
    let asks = waiting(&session) == Some(Waiting::Run);
    let spent = session.auto.runs.values().any(|run| {
        run.status == RunStatus::Paused(RunPause::OutOfBudget { meter: Meter::ModelCalls })
    });
    let before = many(&events(&runtime, &talk).await?, "task_ended");
    show(&runtime, &talk).await?;
    println!("\nIn the morning:");
    let view = WorkView::of(&session, place.clock()?);
    for run in &view.runs {
        println!("  run {} waits: {}", run.number, run.waits.as_deref().unwrap_or("no"));
    }
    says(&runtime, &talk, "/auto resume").await?;
    drop(runtime);
    fs::remove_file(place.path().join("over"))?;
    place.start(Night::Overnight, until.plus_micros(4 * HOUR_MICROS))?.wait()?;
    let (runtime, _) = place.runtime()?;
    let recorded = events(&runtime, &talk).await?;
    let done = many(&recorded, "task_ended");
    let reached = many(&recorded, "goal_ended") == 1 && many(&recorded, "run_ended") == 1;
    println!(
        "  resumed; {} tasks are done, the goal is {}",
        done,
        if reached { "reached" } else { "open" }
    );
    let warned = many(&recorded, "run_warned") >= 1;
    let well = kills >= KILLS
        && asks
        && spent
        && warned
        && before < TASKS.len()
        && done == TASKS.len()
        && reached;
    println!(
        "overnight: {kills} kills, stopped at its budget after {before} of {} tasks and asked, all {done} done once after a word (target 10 kills, every task once) {}",
        TASKS.len(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// Starts the process until the night is over, and kills it as often as it is to be; how often that was.
async fn live(place: &Place, until: Time, rng: &mut Rng) -> anyhow::Result<usize> {
    let mut kills = 0;
    while !place.path().join("over").exists() {
        // It lives until it has got on, and a little longer.
        let (born, more) = (place.clock()?, Duration::from_millis(rng.u64(0..30)));
        let mut child = place.start(Night::Overnight, until)?;
        let mut got_on = None;
        while child.try_wait()?.is_none() {
            if kills < KILLS && place.clock()? > born {
                let since: &mut Instant = got_on.get_or_insert_with(Instant::now);
                if since.elapsed() >= more {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if child.try_wait()?.is_none() {
            child.kill()?;
            kills += 1;
        }
        if kills == KILLS && place.path().join(MORTAL).exists() {
            fs::remove_file(place.path().join(MORTAL))?;
        }
        child.wait()?;
    }
    Ok(kills)
}

/// The night, as a person reads it.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn show(runtime: &Runtime, talk: &SessionKey) -> anyhow::Result<()> {
    for Recorded { at, event, .. } in events(runtime, talk).await? {
        let words = match &event {
            SessionEvent::Auto(AutoEvent::GoalAdded { title, .. }) => format!("goal: {title}"),
            SessionEvent::Auto(AutoEvent::TaskAdded { title, .. }) => format!("task: {title}"),
            SessionEvent::Auto(AutoEvent::RunStarted { context, .. }) => {
                format!("a {} begins", context.kind.name())
            }
            SessionEvent::Auto(AutoEvent::TaskEnded { end, .. }) => {
                format!("task {}: {}", end.label(), end.summary())
            }
            SessionEvent::Auto(AutoEvent::RunWarned { meter, .. }) => {
                format!("most of its {} is used", meter.words())
            }
            SessionEvent::Auto(AutoEvent::RunPaused { why, .. }) => {
                format!("the run waits: {}", why.in_words())
            }
            SessionEvent::Memory(event) => match event {
                planwright_domain::memory::MemoryEvent::Saved { item } => {
                    format!("remembered for the {}: {}", item.scope.kind().name(), item.text)
                }
                planwright_domain::memory::MemoryEvent::Changed { .. }
                | planwright_domain::memory::MemoryEvent::Forgotten { .. } => continue,
            },
            SessionEvent::Turn(TurnEvent::ModelCallOrphaned { .. }) => {
                "(the process was killed while the model thought; it is asked again)".into()
            }
            SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. })
                if !answer.text.is_empty() =>
            {
                format!("said: {}", answer.text)
            }
            SessionEvent::Turn(_)
            | SessionEvent::Auto(_)
            | SessionEvent::Plan(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. } => continue,
        };
        println!("  {}  {words}", &at.to_string()[11..16]);
    }
    Ok(())
}
