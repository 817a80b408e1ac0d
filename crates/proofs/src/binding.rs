//! What was approved is what runs: each digested field changed at rest, or a tool's schema by a live server,
//! between approve and execute. Nothing may run. And what is shown is what is digested.
//!
//! A held plan is a template, in a file of SQLite and in a database of PostgreSQL. In each case one value in the
//! recorded revision or in the record of its approval is changed where it lies, and a process that has just
//! started would go on: a runtime is opened over it and told to resume. The toolbox counts what reaches it.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use fastrand::Rng;
use planwright_domain::{
    command::{Decision, PersonCommand, SessionCommand, Start},
    id::Seq,
    identity::{Root, SessionKey},
    plan::Strategy,
    policy::Policy,
    session::SessionEvent,
    turn::{ToolReply, event::TurnEvent},
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    ports::{
        journal::{Answer, JournalError},
        memory::Store,
    },
    runtime::Runtime,
    settings::Settings,
};

use crate::{
    on_threads,
    staged::{Counting, Staged, ada, planner_ports, runtime},
};

mod change;
mod live;
mod place;
mod shown;

use change::Change;
use live::Changed;
use place::{Place, PostgresPlace, SqlitePlace};

/// Proves it over so many cases.
pub(crate) fn prove(seed: u64, cases: u64) -> anyhow::Result<bool> {
    on_threads(2, all(seed, cases))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, cases: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let (mut ran, mut fields): (Vec<String>, BTreeMap<String, u64>) = Default::default();
    let mut reasons = BTreeMap::<(&'static str, String), u64>::new();
    // Half of the cases at rest in each database, and one in fifty by a server that is alive.
    let (live, at_rest) = (cases / 50, cases - cases / 50);
    let places: [Box<dyn Place>; 2] =
        [Box::new(SqlitePlace::new().await?), Box::new(PostgresPlace::new().await?)];
    for mut place in places {
        for template in 0..place.templates().min(2) {
            let unchanged = try_case(&mut *place, template, None).await?;
            anyhow::ensure!(unchanged.ran > 0, "{} runs nothing unchanged", place.name());
        }
        for _ in 0..at_rest / 2 {
            let template = place.any(&mut rng);
            let change = Change::any(&mut rng, |kind| place.event(template, kind))?;
            *fields.entry(change.field.clone()).or_default() += 1;
            let tried = try_case(&mut *place, template, Some(&change)).await?;
            if tried.ran > 0 {
                ran.push(format!("{}: {change:?}", place.name()));
            } else {
                *reasons.entry((place.name(), tried.came_to)).or_default() += 1;
            }
        }
        println!("  {:<10} {} cases at rest", place.name(), at_rest / 2);
    }
    let mut server = live::Server::start().await?;
    for _ in 0..live {
        match server.changes(&mut rng).await? {
            Changed::Ran(words) => ran.push(words),
            Changed::CameTo(why) => *reasons.entry((LIVE, why)).or_default() += 1,
        }
    }
    println!("  live       {live} changes of a schema by an MCP server");
    let plans = cases / 100;
    let hidden = shown::hidden(&mut rng, plans).await?;
    println!("  shown      {plans} plans of any length with what hides in text");
    println!("  why nothing ran:");
    for ((place, why), count) in &reasons {
        println!("    {count:>7} {place:<10} {why}");
    }
    let counted = |place: &str, sign: &str| -> u64 {
        let of = reasons.iter().filter(|((at, why), _)| *at == place && why.starts_with(sign));
        of.map(|(_, count)| count).sum()
    };
    // What cannot be read never comes to the digests: they must have refused some cases themselves.
    let wanted = [
        ("SQLite", UNREADABLE),
        ("SQLite", CORRUPT),
        ("PostgreSQL", UNREADABLE),
        ("PostgreSQL", CORRUPT),
        (LIVE, ""),
    ];
    let counts = wanted.map(|(place, sign)| counted(place, sign));
    ran.iter().take(10).for_each(|words| println!("  ran although changed: {words}"));
    hidden.iter().take(10).for_each(|words| println!("  not shown as digested: {words}"));
    let fewest = fields.values().min().copied().unwrap_or(0);
    let well = ran.is_empty() && hidden.is_empty() && counts.iter().all(|count| *count > 0);
    println!(
        "binding: {cases} cases over {} fields (each at least {fewest} times) in both databases and by a live server, {} ran; refused: {} as corrupt, {} as unreadable, {} by a changed schema; {plans} plans, {} not shown as digested, {:.0} s (target 0, 0) {}",
        fields.len(),
        ran.len(),
        counts[1] + counts[3],
        counts[0] + counts[2],
        counts[4],
        hidden.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// A case that could be set up, and what came of it.
struct Tried {
    /// How often a tool was called.
    ran: u32,
    came_to: String,
}

/// Whether anything runs when a plan goes on that was changed so.
async fn try_case(
    place: &mut dyn Place,
    template: usize,
    change: Option<&Change>,
) -> anyhow::Result<Tried> {
    let (journal, identity) = place.changed(template, change).await?;
    let toolbox: Arc<Counting> = Arc::default();
    let runtime = runtime(journal, toolbox.clone());
    let came_to = goes_on(&Staged { runtime: &runtime, identity: &identity }).await?;
    Ok(Tried { ran: toolbox.ran.load(Ordering::SeqCst), came_to })
}

/// What a reason begins with: an event cannot be read at all.
const UNREADABLE: &str = "unreadable";
/// What a reason begins with: what is read does not fit its digest, or what was logged.
const CORRUPT: &str = "corrupt";
/// The cases of a live server.
const LIVE: &str = "live";

/// A person says go on, and whatever is due is done. What it comes to, in words; an error is one of the proof itself.
async fn goes_on(staged: &Staged<'_>) -> anyhow::Result<String> {
    let resume = SessionCommand::Person(ada(), PersonCommand::Decide(Decision::Resume));
    let dispatched = staged.runtime.engine.dispatch(staged.identity, fresh_id(), resume).await;
    let driven = match dispatched {
        Ok(Answer::Refused(refusal)) => return Ok(format!("refused: {}", refusal.kind())),
        Ok(Answer::Accepted { .. }) => staged.drive().await,
        Err(error) => Err(error.into()),
    };
    match driven {
        Ok(()) => came_to(staged).await,
        Err(error) => match error.downcast_ref::<JournalError>() {
            Some(JournalError::Corrupt(corrupt)) => Ok(format!("{CORRUPT}: {}", corrupt.what)),
            Some(JournalError::Format(_)) => Ok(format!("{UNREADABLE}: an event")),
            Some(
                JournalError::Engine(_)
                | JournalError::NewerSchema { .. }
                | JournalError::DevelopmentData
                | JournalError::Closed,
            )
            | None => Err(error),
        },
    }
}

/// Where a plan stands that went on, and the last refusal that its model was told.
async fn came_to(staged: &Staged<'_>) -> anyhow::Result<String> {
    let session = staged.runtime.queries.session(staged.identity).await?;
    let events = staged.runtime.queries.events(staged.identity, Seq(0), usize::MAX).await?;
    let refused = events.iter().rev().find_map(|recorded| {
        let SessionEvent::Turn(TurnEvent::CallAnswered {
            reply: ToolReply::Refused { kind, .. },
            ..
        }) = &recorded.event
        else {
            return None;
        };
        Some(kind.as_str())
    });
    let status = session.plan().map_or("no plan", |plan| plan.status.name());
    Ok(format!("went on: {status}, {}", refused.unwrap_or("nothing refused")))
}

/// A plan that was approved and is held.
async fn template(
    journal: Arc<dyn Store>,
    identity: &SessionKey,
    strategy: Strategy,
) -> anyhow::Result<()> {
    let mut ports = planner_ports(journal, Arc::new(Counting::default()));
    // The root is one of the fields that the approval is bound to.
    let roots = vec![Root("/binding".into())];
    ports.policy = Arc::new(Policy { roots, ..Policy::default() });
    let runtime = Runtime::new(&ports, &Settings::default());
    let staged = Staged { runtime: &runtime, identity };
    hold(&staged, strategy).await
}

async fn hold(staged: &Staged<'_>, strategy: Strategy) -> anyhow::Result<()> {
    let digest = staged.ready(strategy).await?;
    staged.ask(staged.approve(digest, Start::Hold)).await?;
    staged.drive().await
}
