//! A cluster of two nodes, each with a child of the server: both are killed in mid-execution, or die by
//! themselves between an act and its record.

use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use planwright_testkit::{
    cluster::{Cluster, Shape},
    scripted_model::Conduct,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Replayed, TOOL_SECONDS, server::Server};

const NODES: usize = 2;
const SESSION: &str = "replay-0001";

/// So many kills, and as many plans as that takes.
pub(super) async fn replay(
    conduct: Conduct,
    server: &Server,
    seed: u64,
    kills: u32,
) -> anyhow::Result<Replayed> {
    let settings = server.config()?;
    let shape = Shape { nodes: NODES, settings, ..Shape::default() };
    let cluster = Cluster::start(conduct, shape).await?;
    let mut bench = Bench { cluster, server, rng: Rng::with_seed(seed), killed: 0, plans: 0 };
    let mut doubts = 0;
    while bench.killed < kills {
        doubts += bench.one_plan(kills).await?;
    }
    Ok(Replayed { plans: bench.plans, kills: bench.killed, doubts })
}

struct Bench<'a> {
    cluster: Cluster,
    server: &'a Server,
    rng: Rng,
    killed: u32,
    plans: u32,
}

impl Bench<'_> {
    /// One plan from the first word to the last call; how many calls were in doubt.
    async fn one_plan(&mut self, kills: u32) -> anyhow::Result<u32> {
        self.plans += 1;
        let mut doubts = 0;
        // The window is not what is proven here.
        self.says("/reset").await?;
        self.says("/plan on collect").await?;
        self.says(&format!("note plan {}", self.plans)).await?;
        let is_ready = |status: &Value| status["plan"]["status"] == "Ready";
        self.cluster.until(0, SESSION, is_ready).await?;
        self.says("/plan show").await?;
        self.says("/plan approve").await?;
        loop {
            let status = if self.killed < kills {
                self.die().await?;
                self.status().await?
            } else {
                self.rests().await?
            };
            if status["plan_active"] == json!(false) {
                return Ok(doubts);
            }
            for doubt in status["doubts"].as_array().into_iter().flatten() {
                doubts += 1;
                self.settle(doubt).await?;
            }
            // What was settled may go on by itself; a doubt that has come up since is settled in the next round.
            let status = self.status().await?;
            let doubted = status["doubts"].as_array().is_some_and(|doubts| !doubts.is_empty());
            if status["plan_active"] == json!(true) && !is_running(&status) && !doubted {
                self.says("/plan resume").await?;
            }
        }
    }

    /// Every node dies while the plan executes: killed, or each between an act and its record.
    async fn die(&mut self) -> anyhow::Result<()> {
        let by_itself = self.killed % 3 == 2;
        let after = Duration::from_millis(self.rng.u64(self.server.busy()) / 2);
        if by_itself {
            let point = format!("tool.before_record:{}", self.rng.u32(1..4));
            for at in 0..NODES {
                self.cluster.kill(at);
                let armed = ("PLANWRIGHT_FAILPOINT".to_owned(), point.clone());
                self.cluster.nodes[at].environment = vec![armed];
                self.cluster.launch(at);
            }
            for _ in 0..400 {
                let died = (0..NODES).any(|at| self.cluster.has_died(at));
                let still = self.status().await.is_ok_and(|status| !is_running(&status));
                if died || still {
                    break;
                }
                sleep(Duration::from_millis(10)).await;
            }
        } else {
            sleep(after).await;
        }
        let running = by_itself || self.status().await.is_ok_and(|status| is_running(&status));
        for at in 0..NODES {
            self.cluster.kill(at);
            self.cluster.nodes[at].environment.clear();
        }
        self.killed += u32::from(running);
        sleep(self.server.ends_within()).await;
        for at in 0..NODES {
            self.cluster.launch(at);
        }
        for at in 0..NODES {
            self.cluster.ready(at).await?;
        }
        Ok(())
    }

    async fn status(&self) -> anyhow::Result<Value> {
        self.cluster.status(0, SESSION).await
    }

    /// Where it stands when only a person can move it.
    async fn rests(&self) -> anyhow::Result<Value> {
        self.cluster.until(0, SESSION, |status| !is_running(status)).await
    }

    /// Says what became of a call in doubt, as the server's own ledger has it.
    async fn settle(&self, doubt: &Value) -> anyhow::Result<()> {
        let call = doubt["call"].as_str().context("a call")?;
        let verdict = self.server.verdict(&self.status().await?, self.plans)?;
        if verdict == "not" {
            sleep(Duration::from_secs(TOOL_SECONDS)).await;
        }
        self.says(&format!("/plan settle {call} {verdict}")).await
    }

    async fn says(&self, line: &str) -> anyhow::Result<()> {
        let reply = self.cluster.says(0, SESSION, line).await?;
        anyhow::ensure!(reply.get("refused").is_none(), "{line}: {reply}");
        Ok(())
    }
}

fn is_running(status: &Value) -> bool {
    status["plan_active"] == json!(true) && status["plan"]["status"] == "Running"
}
