//! Recorded calls against a real MCP server, with the process killed in mid-execution again and again.
//!
//! A `collect` plan of twenty calls is approved, and the process that makes them is killed, goes on, and is killed
//! again. The server's own ledger says what happened; the journal says what is shown. On both deployments, against
//! a strict server of our own and one that others published.

use std::{sync::Arc, time::Instant};

use planwright_testkit::scripted_model::{ScriptedModel, ScriptedReply, SeenRequest};
use serde_json::json;

mod cluster;
mod local;
mod server;

use server::Server;

/// How many calls one plan has.
const STEPS: usize = 20;
/// How long a call may be under way, in seconds: before that nobody can say that it did not happen.
const TOOL_SECONDS: u64 = 1;
const PASSPHRASE: &str = planwright_testkit::kill::PASSPHRASE;

/// What came of so many plans.
struct Replayed {
    plans: u32,
    kills: u32,
    doubts: u32,
}

/// Proves it with so many kills of each deployment and each server.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(seed: u64, kills: u32) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut killed, mut doubts, mut wrong) = (0, 0, 0);
    for at in ["one machine", "a cluster"] {
        for of in [server::Kind::Strict, server::Kind::Published] {
            let server = Server::new(of)?;
            let conduct = Arc::new({
                let server = server.clone();
                move |seen: &SeenRequest| conduct(&server, seen)
            });
            let replayed = if at == "a cluster" {
                runtime.block_on(cluster::replay(conduct, &server, seed, kills))?
            } else {
                let model = runtime.block_on(ScriptedModel::start(conduct))?;
                local::replay(&model.base_url(), &server, seed, kills)?
            };
            let amiss = amiss(&server, replayed.plans)?;
            amiss.iter().take(10).for_each(|words| println!("  {words}"));
            println!(
                "  {at:<12} {:<28} {:>3} plans, {:>3} kills, {:>3} in doubt, {} amiss",
                server.name(),
                replayed.plans,
                replayed.kills,
                replayed.doubts,
                amiss.len()
            );
            killed += replayed.kills;
            doubts += replayed.doubts;
            wrong += amiss.len();
        }
    }
    let well = wrong == 0 && doubts > 0;
    println!(
        "replay: {killed} kills in mid-execution of plans of {STEPS} calls on both deployments and against two servers, {doubts} in doubt and settled by the server's ledger, {wrong} calls not made exactly once, {:.0} s (target 0, some in doubt) {}",
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// The calls that do not stand in the server's ledger exactly once.
fn amiss(server: &Server, plans: u32) -> anyhow::Result<Vec<String>> {
    let noted = server.noted()?;
    let mut amiss = Vec::new();
    for plan in 1..=plans {
        for step in 0..STEPS {
            let times = noted.get(&format!("plan {plan} step {step}")).copied().unwrap_or(0);
            if times != 1 {
                amiss.push(format!("step {step} of plan {plan} was made {times} times"));
            }
        }
    }
    Ok(amiss)
}

/// Plans so many notes as it is told, by number.
fn conduct(server: &Server, seen: &SeenRequest) -> ScriptedReply {
    let plan = seen.last_message.rsplit(' ').next().unwrap_or_default().to_owned();
    if seen.rounds > 0 {
        return ScriptedReply::text("Planned.");
    }
    let note = |step: usize| server.call(&format!("plan {plan} step {step}"));
    let (tool, arguments) = note(0);
    let calls = (1..STEPS).fold(ScriptedReply::call(tool, &arguments), |said, step| {
        let (tool, arguments) = note(step);
        said.and(tool, &arguments)
    });
    calls.and("plan_finalize", &json!({"summary": format!("Twenty notes, plan {plan}")}))
}
