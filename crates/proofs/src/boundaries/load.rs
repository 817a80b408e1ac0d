//! 50 to 57: tries at the passphrase, and connections that want nothing.

use std::{fs, time::Duration};

use anyhow::{Context as _, ensure};
use planwright_testkit::{
    files,
    streams::{Wire, listen_at},
};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{
    Report,
    target::{PASSPHRASE, Target, answer_to},
};

pub(super) async fn attack(report: &mut Report, quick: bool) -> anyhow::Result<()> {
    logins(report).await?;
    connections(report, quick).await
}

async fn logins(report: &mut Report) -> anyhow::Result<()> {
    let target = Target::start("", &[]).await?;
    let mut waits = 0;
    report
        .attack("50", "wrong passphrases, one after another", async {
            let mut refused = 0;
            for _ in 0..15 {
                let wrong = json!({"passphrase": "not this one"});
                let request = target.bare(Method::POST, "/api/login").json(&wrong);
                let response = request.send().await?;
                if response.status() == 429 {
                    refused += 1;
                    waits = response.headers()["retry-after"].to_str()?.parse()?;
                }
            }
            ensure!(refused >= 5, "{refused} of 15 were refused");
            ensure!((2..=60).contains(&waits), "it says to wait {waits} s");
            Ok(())
        })
        .await;
    report
        .control("50b", "the terminal's way in, meanwhile", async {
            target.token_of("owner", true).await?;
            Ok(())
        })
        .await;
    report
        .control("50c", "after as long as it says, the right one", async {
            tokio::time::sleep(Duration::from_secs(waits)).await;
            let right = json!({"passphrase": PASSPHRASE});
            let (status, body) =
                answer_to(target.bare(Method::POST, "/api/login").json(&right)).await?;
            ensure!(status == 200, "{status} {body}");
            Ok(())
        })
        .await;
    report
        .control("51", "a login with a right token, however many tried", async {
            let request = target.bare(Method::POST, "/api/login");
            let (status, body) = answer_to(request.json(&json!({"token": target.token}))).await?;
            ensure!(status == 200, "{status} {body}");
            Ok(())
        })
        .await;
    Ok(())
}

/// The most memory that the server may take.
const MEMORY_MAX: u64 = 256 * 1024 * 1024;
/// How many streams one person may have.
const STREAMS_MAX: usize = 256;
/// How long `/health` may take, at the median.
const HEALTH_MAX: Duration = Duration::from_millis(100);

async fn connections(report: &mut Report, quick: bool) -> anyhow::Result<()> {
    let many = if quick { 5_000 } else { 20_000 };
    files::allow_many();
    let target = Target::start("", &[]).await?;
    report
        .attack("55", &format!("{many} requests that are never ended"), async {
            let mut held = Vec::new();
            let mut health = Vec::new();
            for at in 0..many {
                if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", target.port)).await {
                    let _ = stream.write_all(b"GET /api/me HTTP/1.1\r\nhost: x\r\nx-a: ").await;
                    held.push(stream);
                }
                if at % 100 == 0 {
                    health.push(health_of(&target).await?);
                }
            }
            let right = json!({"passphrase": PASSPHRASE});
            let (status, body) =
                answer_to(target.bare(Method::POST, "/api/login").json(&right)).await?;
            ensure!(status == 200, "a right login: {status} {body}");
            within(&target, health)?;
            Ok(())
        })
        .await;
    report
        .attack("56", "a body that never comes", async {
            let mut stream = TcpStream::connect(("127.0.0.1", target.port)).await?;
            let head = format!("POST /api/login HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{", target.port);
            stream.write_all(head.as_bytes()).await?;
            let mut came = Vec::new();
            let ended = timeout(Duration::from_secs(14), stream.read_to_end(&mut came)).await;
            ensure!(ended.is_ok() || !came.is_empty(), "it is waited for");
            Ok(())
        })
        .await;
    let sockets = if quick { 1_000 } else { 7_000 };
    // Whoever has a token of theirs is not held up by the tries that follow.
    target.token_of("ada", false).await?;
    report
        .attack("57", &format!("{sockets} WebSockets of one person"), async {
            let token = target.token_of("bob", false).await?;
            // A token more for each tenth: they are the same person's.
            let mut tokens = vec![token];
            let (mut held, mut health) = (Vec::new(), Vec::new());
            for at in 0..sockets {
                let token = tokens.last().context("a token")?;
                let stream = listen_at(&target.url, token, Wire::WebSocket, "api:many-0001", 0);
                held.extend(stream.await.ok());
                if at % (sockets / 10) == 0 {
                    health.push(health_of(&target).await?);
                    tokens.push(target.token_of("bob", false).await?);
                }
            }
            ensure!(held.len() == STREAMS_MAX, "{} are open", held.len());
            within(&target, health)?;
            let other = target.token_of("ada", false).await?;
            let own = listen_at(&target.url, &other, Wire::WebSocket, "api:one-0001", 0).await;
            own.map(drop).context("another's stream")
        })
        .await;
    Ok(())
}

/// How long it takes until a new client is answered.
async fn health_of(target: &Target) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
    let answer = client.get(format!("{}/health", target.url)).send().await;
    ensure!(answer.is_ok_and(|answer| answer.status() == 200), "/health is not answered");
    Ok(begun.elapsed())
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
fn within(target: &Target, mut health: Vec<Duration>) -> anyhow::Result<()> {
    health.sort_unstable();
    let median = health.get(health.len() / 2).copied().unwrap_or_default();
    let memory = resident(target.pid()?)?;
    println!("       /health at the median {median:.1?}, {} MB of memory", memory / 1_000_000);
    ensure!(median <= HEALTH_MAX, "/health at the median {median:.1?}");
    ensure!(memory <= MEMORY_MAX, "{memory} bytes of memory");
    Ok(())
}

fn resident(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kilobytes * 1_024)
}
