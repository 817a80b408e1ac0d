//! What was approved is what runs: each digested field changed at rest, or a tool's schema by a live server,
//! between approve and execute. Nothing may run. And what is shown is what is digested.
//!
//! A held plan is a template, in a file of SQLite and in a database of PostgreSQL. In each case one value in the
//! recorded revision or in the record of its approval is changed where it lies, and a process that has just
//! started would go on: a runtime is opened over it and told to resume. The toolbox counts what reaches it.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use fastrand::Rng;
use planwright_domain::{
    command::{Decision, PersonCommand, Start},
    identity::SessionIdentity,
    plan::Strategy,
};
use planwright_runtime::ports::memory::Store;

use crate::{
    on_threads,
    staged::{Counting, Staged, runtime},
};

mod change;
mod live;
mod place;
mod shown;

use change::Change;
use place::{Place, PostgresPlace, SqlitePlace};

/// Proves it over so many cases.
pub(crate) fn prove(seed: u64, cases: u64) -> ExitCode {
    on_threads("binding", 2, all(seed, cases))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, cases: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let (mut ran, mut fields): (Vec<String>, BTreeMap<String, u64>) = Default::default();
    // Half of the cases at rest in each database, and one in fifty by a server that is alive.
    let (live, at_rest) = (cases / 50, cases - cases / 50);
    let places: [Box<dyn Place>; 2] =
        [Box::new(SqlitePlace::new().await?), Box::new(PostgresPlace::new().await?)];
    for mut place in places {
        for template in 0..place.templates().min(2) {
            let unchanged = try_case(&mut *place, template, None).await?;
            anyhow::ensure!(unchanged > 0, "{} runs nothing unchanged", place.name());
        }
        for _ in 0..at_rest / 2 {
            let template = place.any(&mut rng);
            let change = Change::any(&mut rng, |kind| place.event(template, kind))?;
            *fields.entry(change.field.clone()).or_default() += 1;
            if try_case(&mut *place, template, Some(&change)).await? > 0 {
                ran.push(format!("{}: {change:?}", place.name()));
            }
        }
        println!("  {:<10} {} cases at rest", place.name(), at_rest / 2);
    }
    let mut server = live::Server::start().await?;
    for _ in 0..live {
        ran.extend(server.changes(&mut rng).await?);
    }
    println!("  live       {live} changes of a schema by an MCP server");
    let plans = cases / 100;
    let hidden = shown::hidden(&mut rng, plans).await?;
    println!("  shown      {plans} plans of any length with what hides in text");
    ran.iter().take(10).for_each(|words| println!("  ran although changed: {words}"));
    hidden.iter().take(10).for_each(|words| println!("  not shown as digested: {words}"));
    let fewest = fields.values().min().copied().unwrap_or(0);
    let well = ran.is_empty() && hidden.is_empty();
    println!(
        "binding: {cases} cases over {} fields (each at least {fewest} times) in both databases and by a live server, {} ran; {plans} plans, {} not shown as digested, {:.0} s (target 0, 0) {}",
        fields.len(),
        ran.len(),
        hidden.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// Whether anything runs when a plan goes on that was changed so; how often.
async fn try_case(
    place: &mut dyn Place,
    template: usize,
    change: Option<&Change>,
) -> anyhow::Result<u32> {
    let Ok((journal, identity)) = place.changed(template, change).await else { return Ok(0) };
    let toolbox: Arc<Counting> = Arc::default();
    let runtime = runtime(journal, toolbox.clone());
    goes_on(&Staged { runtime: &runtime, identity: &identity }).await;
    Ok(toolbox.ran.load(Ordering::SeqCst))
}

/// A person says go on, and whatever is due is done.
async fn goes_on(staged: &Staged<'_>) {
    let _ = staged.ask(PersonCommand::Decide(Decision::Resume)).await;
    let _ = staged.drive().await;
}

/// A plan that was approved and is held.
async fn template(
    journal: Arc<dyn Store>,
    identity: &SessionIdentity,
    strategy: Strategy,
) -> anyhow::Result<()> {
    let runtime = runtime(journal, Arc::new(Counting::default()));
    let staged = Staged { runtime: &runtime, identity };
    hold(&staged, strategy).await
}

async fn hold(staged: &Staged<'_>, strategy: Strategy) -> anyhow::Result<()> {
    let digest = staged.ready(strategy).await?;
    staged.ask(staged.approve(digest, Start::Hold)).await?;
    staged.drive().await
}
