//! From a command to the last of many clients that listen, one of whom does not.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest as _, http::HeaderValue},
};

use crate::{
    arm::{Arm, TOKEN},
    measure::{Judged, close, median},
    plot,
};

pub(crate) fn run(quick: bool) -> anyhow::Result<Judged> {
    let (clients, rounds, samples) = if quick { (250, 3, 12) } else { (1_000, 7, 20) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        let (ours, bare, peer) = (Arm::start("ours")?, Arm::start("bare")?, Arm::node_ws());
        let mut arms = vec![
            Listeners::connect(&ours, true, clients).await?,
            Listeners::connect(&bare, false, clients).await?,
        ];
        match &peer {
            Some(peer) => arms.push(Listeners::connect(peer, false, clients).await?),
            None => println!("(Node and ws are not installed; the peer's arm is left out)"),
        }
        println!("{clients} clients, one stalled; from the command to the last of them");
        println!(
            "{:<7}{:>14}{:>14}{:>14}{:>12}{:>12}",
            "round", "ours p99 ms", "bare p99 ms", "peer p99 ms", "ours/bare", "peer/ours"
        );
        let (mut ratios, mut ahead) = (Vec::new(), Vec::new());
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            let mut p99 = [f64::NAN; 3];
            for arm in 0..arms.len() {
                let which = (arm + round) % arms.len();
                let mut taken = Vec::new();
                for _ in 0..samples {
                    taken.push(arms[which].command().await?);
                }
                taken.sort_by(f64::total_cmp);
                p99[which] = taken[(taken.len() * 99 / 100).min(taken.len() - 1)];
            }
            all.iter_mut().zip(p99).for_each(|(all, p99)| all.push(p99 * 1e3));
            let [ours, bare, peer] = p99;
            ratios.push(ours / bare);
            ahead.push(peer / ours);
            println!(
                "{round:<7}{:>14.1}{:>14.1}{:>14.1}{:>12.2}{:>12.2}",
                ours * 1e3,
                bare * 1e3,
                peer * 1e3,
                ours / bare,
                peer / ours
            );
        }
        let medians = all.map(|all| median(&all));
        let bars = [("ours", medians[0]), ("bare", medians[1]), ("Node ws", medians[2])];
        plot::bars("fanout", "From a command to the last client, p99", "ms", &bars)?;
        let (ratio, ahead) = (median(&ratios), median(&ahead));
        let figure = format!("{ratio:.2} times bare; Node ws takes {ahead:.2} times ours");
        Ok(close("fanout", &figure, "2 times bare", ratio <= 2.0))
    })
}

/// Many ears on one session of one arm.
struct Listeners {
    client: reqwest::Client,
    url: String,
    heard: mpsc::UnboundedReceiver<()>,
    count: usize,
}

impl Listeners {
    async fn connect(arm: &Arm, is_ours: bool, count: usize) -> anyhow::Result<Self> {
        let (sender, heard) = mpsc::unbounded_channel();
        let path = if is_ours { "/api/ws?sessionId=api:fanout-0001" } else { "/ws" };
        for at in 0..count {
            let mut request = format!("ws://127.0.0.1:{}{path}", arm.port).into_client_request()?;
            request
                .headers_mut()
                .insert("authorization", HeaderValue::from_str(&format!("Bearer {TOKEN}"))?);
            let (mut socket, _) = connect_async(request).await?;
            let sender = sender.clone();
            let is_stalled = at == 0;
            tokio::spawn(async move {
                if is_stalled {
                    std::future::pending::<()>().await;
                }
                while let Some(Ok(Message::Text(_))) = socket.next().await {
                    let _ = sender.send(());
                }
            });
        }
        let session = if is_ours { "/api/sessions/api:fanout-0001/messages" } else { "/messages" };
        let url = format!("http://127.0.0.1:{}{session}", arm.port);
        Ok(Self { client: reqwest::Client::new(), url, heard, count: count - 1 })
    }

    /// The time from a command to the last ear that hears it.
    async fn command(&mut self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let body = serde_json::json!({"text": "x".repeat(512)});
        let sent = self.client.post(&self.url).bearer_auth(TOKEN).json(&body).send().await?;
        anyhow::ensure!(sent.status() == 202, "{}", sent.status());
        for _ in 0..self.count {
            tokio::time::timeout(Duration::from_secs(20), self.heard.recv()).await?;
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}
