//! One session of many plan-and-approve turns: what is stored, and whether later turns cost more.

use planwright_domain::{
    id::Seq,
    session::SessionEvent,
    turn::{ToolReply, event::TurnEvent},
};
use planwright_testkit::people::ada_key;
use rusqlite::Connection;

use crate::{
    measure::{Judged, PEER_MISSING, close, cpu, median},
    ours::Ours,
    payload::PLANS,
    peer::Peer,
    plot,
};

/// How often the session is grown; the median of the ratios counts.
const ROUNDS: usize = 7;

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let turns = if quick { 60 } else { 150 };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let header = [
        "arm",
        "bytes stored",
        "bytes said",
        "ratio",
        "turn 25 ms CPU",
        "last turn ms CPU",
        "ratio",
    ];
    let [arm, stored, said, ratio, early, late, growth] = header;
    println!("{arm:<8}{stored:>14}{said:>14}{ratio:>10}{early:>18}{late:>18}{growth:>8}");
    let (mut of_raw, mut of_early) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (stored, raw, costs) = runtime.block_on(ours(turns))?;
        let (early, late) = (low(&costs[20..40]), low(&costs[turns - 20..]));
        of_raw.push(stored as f64 / raw as f64);
        of_early.push(late / early);
        row("ours", stored as f64, raw as f64, early, late);
    }
    let mut of_peer = f64::NAN;
    if let Some(mut peer) = Peer::start_with(&PLANS)? {
        let told = peer.ask(&format!("growth {turns}"))?;
        let number = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
        of_peer = number("bytes") / number("raw");
        row("peer", number("bytes"), number("raw"), number("early"), number("late"));
    }
    let (of_raw, of_early) = (median(&of_raw), median(&of_early));
    plot::bars(
        "growth",
        "Bytes stored for each byte said",
        "ratio",
        &[("ours", of_raw), ("LangGraph", of_peer)],
    )?;
    let peer = if of_peer.is_nan() {
        PEER_MISSING.into()
    } else {
        format!("the peer stores {of_peer:.0}")
    };
    let figure = format!(
        "{of_raw:.2} of what was said, turn {turns} costs {of_early:.2} of turn 25; {peer}"
    );
    let well = of_raw <= 1.8 && of_early <= 1.1 && !of_peer.is_nan();
    Ok(close("growth", &figure, "1.8 of what was said, 1.1 of turn 25", well))
}

fn row(arm: &str, bytes: f64, raw: f64, early: f64, late: f64) {
    let (of_raw, growth) = (bytes / raw, late / early);
    println!(
        "{arm:<8}{bytes:>14}{raw:>14}{of_raw:>10.2}{:>18.2}{:>18.2}{growth:>8.2}",
        early * 1e3,
        late * 1e3
    );
}

/// The lower quartile: what a turn costs when the neighbours are quiet.
fn low(costs: &[f64]) -> f64 {
    let mut sorted = costs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 4]
}

async fn ours(turns: usize) -> anyhow::Result<(u64, usize, Vec<f64>)> {
    let ours = Ours::start()?;
    let identity = ada_key("cli:growth-0001")?;
    let mut costs = Vec::new();
    for _ in 0..turns {
        let used = cpu();
        ours.does(&identity, "/plan on").await?;
        ours.does(&identity, "plan it").await?;
        ours.does(&identity, "/plan show").await?;
        ours.does(&identity, "/plan approve").await?;
        costs.push(cpu() - used);
    }
    let mut raw = 0;
    for recorded in ours.runtime.queries.events(&identity, Seq(0), usize::MAX).await? {
        raw += said(&recorded.event);
    }
    // With the words that it is found by.
    while ours.runtime.housekeeping.index().await? > 0 {}
    let connection = Connection::open(ours.journal())?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok((std::fs::metadata(ours.journal())?.len(), raw, costs))
}

/// The bytes of what was said: by people, by the model, by tools.
fn said(event: &SessionEvent) -> usize {
    match event {
        SessionEvent::MessageQueued { text, .. } => text.len(),
        SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. }) => {
            answer.text.len() + answer.calls.iter().map(|call| call.arguments.len()).sum::<usize>()
        }
        SessionEvent::Turn(TurnEvent::CallFinished { result, .. }) => result.output.len(),
        SessionEvent::Turn(TurnEvent::CallAnswered { reply: ToolReply::Text { text }, .. }) => {
            text.len()
        }
        SessionEvent::Plan(_)
        | SessionEvent::Turn(_)
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => 0,
    }
}
