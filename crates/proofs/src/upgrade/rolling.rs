//! A cluster of two nodes is upgraded, one after the other, to a program that stores one kind of event more.

use std::time::Duration;

use anyhow::Context as _;
use planwright_testkit::{
    cluster::{Cluster, Shape, newer_subject},
    scripted_model::worker::worker,
};
use serde_json::Value;

const SESSION: &str = "session-0";

/// What was seen of it.
pub(super) struct Rolled {
    /// Events of the new kind before every node knew it.
    pub(super) before: u64,
    /// Events of the new kind after they agreed on it.
    pub(super) after: u64,
    /// Messages of the older form that the newer program read.
    pub(super) upcast: u64,
    /// Events of the new kind in a snapshot that an older node must not use.
    pub(super) folded: u64,
}

impl Rolled {
    pub(super) fn is_well(&self) -> bool {
        self.before == 0 && self.after == 2 && self.upcast == 1 && self.folded > 0
    }
}

async fn talk(cluster: &Cluster, at: usize, session: &str, line: &str) -> anyhow::Result<()> {
    cluster.says(at, session, line).await?;
    cluster.until(at, session, |status| status["resting"] == true).await.map(drop)
}

/// The messages of the session, as a node reads them.
async fn messages(cluster: &Cluster, at: usize) -> anyhow::Result<Vec<String>> {
    let path = format!("/api/sessions/cli:{SESSION}/events");
    let answer = cluster.request(at, reqwest::Method::GET, &path).send().await?;
    let events: Vec<Value> = answer.json().await?;
    let queued = events.iter().filter(|event| event["type"] == "message_queued");
    let texts = queued.filter_map(|event| event["data"]["text"].as_str());
    Ok(texts.map(str::to_owned).collect())
}

fn noted(cluster: &Cluster) -> anyhow::Result<u64> {
    let sql = "SELECT count(*) FROM events WHERE kind = 'message_noted'";
    Ok(cluster.postgres.psql(sql).parse()?)
}

pub(super) async fn prove() -> anyhow::Result<Rolled> {
    let newer = newer_subject()?;
    let shape = Shape { nodes: 2, ..Shape::default() };
    let mut cluster = Cluster::start(worker(300, 1), shape).await?;
    talk(&cluster, 0, SESSION, "just\r\ntalk").await?;

    cluster.stop(1).await?;
    let older = std::mem::replace(&mut cluster.nodes[1].program, newer.clone());
    cluster.launch(1);
    cluster.ready(1).await?;
    for at in [0, 1, 0, 1] {
        talk(&cluster, at, SESSION, "just talk").await?;
    }
    let (old, new) = (messages(&cluster, 0).await?, messages(&cluster, 1).await?);
    anyhow::ensure!(old.first().is_some_and(|text| text == "just\r\ntalk"), "{old:?}");
    let upcast = new.iter().filter(|text| *text == "just\ntalk").count() as u64;
    let finalize = |cluster: &Cluster| cluster.tell_by(&newer, "cluster", &["finalize"], "");
    let refused = finalize(&cluster).err().context("finalized beside an old node")?.to_string();
    anyhow::ensure!(
        refused.contains("nothing was turned on") && refused.contains("level 1"),
        "{refused}"
    );
    let before = noted(&cluster)?;

    cluster.stop(0).await?;
    cluster.nodes[0].program.clone_from(&newer);
    cluster.launch(0);
    cluster.ready(0).await?;
    let done = finalize(&cluster)?;
    anyhow::ensure!(done.contains("events up to level 2 are written from now on"), "{done}");
    // Nodes look every two seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for at in [0, 1] {
        talk(&cluster, at, SESSION, "first\nsecond").await?;
    }
    let after = noted(&cluster)?;
    let texts = messages(&cluster, 0).await?;
    let last: Vec<_> = texts.iter().rev().take(2).collect();
    anyhow::ensure!(last == ["first\nsecond", "first\nsecond"], "{texts:?}");

    // Events of the new kind that are folded into a snapshot are newer all the same.
    let folded = async |cluster: &Cluster| -> anyhow::Result<u64> {
        let sql = "SELECT count(*) FROM events JOIN snapshots USING (stream)
                   WHERE kind = 'message_noted' AND seq <= snapshots.version";
        Ok(cluster.postgres.psql(sql).parse()?)
    };
    while noted(&cluster)? > folded(&cluster).await? {
        anyhow::ensure!(noted(&cluster)? < 64, "no snapshot is taken");
        talk(&cluster, 0, SESSION, "just talk").await?;
    }
    let folded = folded(&cluster).await?;

    // An old node that comes back leaves the session alone, says so, and breaks nothing.
    cluster.stop(1).await?;
    cluster.nodes[1].program = older;
    cluster.launch(1);
    cluster.ready(1).await?;
    let refused = cluster.says(1, SESSION, "just talk").await.err();
    let refused = refused.context("an old node wrote on top of newer events")?.to_string();
    anyhow::ensure!(
        refused.contains("was written by a newer version of this program"),
        "{refused}"
    );
    talk(&cluster, 0, SESSION, "just talk").await?;
    talk(&cluster, 1, "session-1", "just talk").await?;
    let parked = cluster.postgres.psql("SELECT count(*) FROM streams WHERE parked IS NOT NULL");
    anyhow::ensure!(parked == "0", "{parked} sessions are parked");
    Ok(Rolled { before, after, upcast, folded })
}
