//! A cluster of three nodes with everything that they share, for those who drive it from another process.

use std::{collections::BTreeMap, io::Read as _};

use planwright_testkit::{
    cluster::{Cluster, Shape},
    kill::PASSPHRASE,
    scripted_model::by_script::by_script,
};
use serde_json::json;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it says where it listens")]
async fn main() -> anyhow::Result<()> {
    let cluster = Cluster::start(by_script(BTreeMap::new()), Shape::default()).await?;
    let ports: Vec<_> = cluster.nodes.iter().map(|node| node.api).collect();
    let told = json!({
        "ports": ports,
        "decider": cluster.decider,
        "model": cluster.model.base_url(),
        "passphrase": PASSPHRASE,
    });
    println!("{told}");
    // It lives until whoever started it is gone.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    drop(cluster);
    Ok(())
}
