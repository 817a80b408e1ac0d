//! Clients that are cut off see every event once, in order; clients that stall delay nobody.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use planwright_domain::identity::SessionKey;
use planwright_surfaces::http::HttpSettings;
use planwright_testkit::{
    people::owners_key,
    scripted_model::worker::worker,
    served::Served,
    streams::{Wire, listen, listen_with_cuts},
};
use serde_json::json;

use crate::on_threads;

/// How many clients stall.
const STALLED: usize = 200;

/// Proves it; at quick size with fewer messages.
pub(crate) fn prove(quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(quick))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(quick: bool) -> anyhow::Result<bool> {
    let (messages, samples) = if quick { (400, 400) } else { (4_000, 600) };
    let served = server().await;
    let wrong = wrong_with_cuts(&served, messages).await?;
    // The same conversation on a second server, whose clients all read: measured by turns, as neighbours come and go.
    let quiet = server().await;
    let mut stalled = Vec::new();
    for at in 0..STALLED {
        let wire = if at % 2 == 0 { Wire::WebSocket } else { Wire::ServerSent };
        stalled.push(listen(&served, wire, "cli:stream-0002", 0).await?);
    }
    for server in [&served, &quiet] {
        fill_buffers(server).await?;
    }
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let alone = latency(&quiet, &owners_key("cli:stream-0002")?, samples).await?;
        let beside = latency(&served, &owners_key("cli:stream-0002")?, samples).await?;
        println!(
            "from command to client, p99: {:.2} ms alone, {:.2} ms beside {STALLED} stalled clients",
            alone * 1e3,
            beside * 1e3
        );
        ratios.push(beside / alone);
    }
    drop(stalled);
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    let well = wrong == 0 && ratio < 2.0;
    println!(
        "streams: {wrong} wrong, p99 {ratio:.2} times what it was (target 0 wrong, less than 2 times) {}",
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// How many of four clients that are cut off while many messages come missed, doubled or misordered an event.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn wrong_with_cuts(served: &Served, messages: u64) -> anyhow::Result<u32> {
    let talk = owners_key("cli:stream-0001")?;
    let id = talk.identity.to_string();
    let say = async |text: String| {
        let path = format!("/api/sessions/{id}/messages");
        let sent = served
            .request(reqwest::Method::POST, &path)
            .json(&json!({"text": text}))
            .send()
            .await?;
        anyhow::ensure!(sent.status() == 202, "{}", sent.status());
        Ok(())
    };
    // Each message is at least one event.
    let upto = messages;
    let talking = async {
        for at in 0..messages {
            say(format!("just talk {at}")).await?;
        }
        anyhow::Ok(())
    };
    let cuts = 5;
    let (said, first, second, third, fourth) = tokio::join!(
        talking,
        listen_with_cuts(served, Wire::WebSocket, &id, upto, cuts),
        listen_with_cuts(served, Wire::WebSocket, &id, upto, cuts),
        listen_with_cuts(served, Wire::ServerSent, &id, upto, cuts),
        listen_with_cuts(served, Wire::ServerSent, &id, upto, cuts),
    );
    said?;
    let whole: Vec<u64> = (1..=upto).collect();
    let mut wrong = 0;
    for seen in [first?, second?, third?, fourth?] {
        if !seen.starts_with(&whole) {
            wrong += 1;
        }
    }
    println!(
        "4 clients, each cut off {cuts} times in {upto} events: {wrong} of them missed, doubled or misordered one"
    );
    served.house.rests(&talk).await;
    Ok(wrong)
}

/// Says enough that every stalled client's buffers are full: what they do not read waits in the journal.
async fn fill_buffers(server: &Served) -> anyhow::Result<()> {
    for _ in 0..40 {
        for line in ["stall ".repeat(20_000), "/reset".into()] {
            let path = "/api/sessions/cli:stream-0002/lines";
            let sent = server.request(reqwest::Method::POST, path).json(&json!({"line": line}));
            anyhow::ensure!(sent.send().await?.status() == 200, "a line was refused");
            server.house.rests(&owners_key("cli:stream-0002")?).await;
        }
    }
    Ok(())
}

async fn server() -> Served {
    Served::with(worker(300, 1), |settings| HttpSettings {
        requests_per_second: 1_000_000,
        ..settings
    })
    .await
}

/// The 99th percentile of the time from a command to the client that listens.
async fn latency(served: &Served, talk: &SessionKey, samples: usize) -> anyhow::Result<f64> {
    let version = served.house.rests(talk).await.version.0;
    let mut stream = listen(served, Wire::WebSocket, &talk.identity.to_string(), version).await?;
    let mut taken = Vec::new();
    let path = format!("/api/sessions/{}/plan", talk.identity);
    for at in 0..samples {
        let begun = Instant::now();
        let request = if at % 2 == 0 {
            served.request(reqwest::Method::POST, &path).json(&json!({}))
        } else {
            served.request(reqwest::Method::DELETE, &path)
        };
        let sending = tokio::spawn(request.send());
        let heard = tokio::time::timeout(Duration::from_secs(20), stream.next()).await?;
        anyhow::ensure!(heard.is_some(), "the stream ended");
        taken.push(begun.elapsed().as_secs_f64());
        anyhow::ensure!(sending.await??.status().is_success(), "a command was refused");
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken[samples * 99 / 100])
}
