//! `planwright cluster`: what an operator does for all nodes at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use planwright_domain::actor::{OWNER, PersonId};
use planwright_format::event::known_level;
use planwright_outbound::{
    access_postgres::PostgresAccess, clock_system::SystemClock, cluster_postgres::PostgresNodes,
    ids_random::RandomIds, journal_postgres::PostgresJournal, lane_restate::RestateAdmin,
};
use planwright_runtime::{
    commands::accounts::Accounts,
    ports::{Clock as _, journal::Journal as _},
};
use serde_json::json;

use crate::{
    args::{Args, ClusterCommand},
    config::cluster::{ClusterConfig, without_secret},
    exit::Exit,
    node::database,
    people::{RESET, new_one},
    talk::Lines,
    terminal::Terminal,
};

/// Does what the operator asks.
pub async fn run(
    args: &Args,
    cluster: &ClusterConfig,
    command: &ClusterCommand,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    cluster.check()?;
    match command {
        ClusterCommand::Status => status(cluster, terminal).await,
        ClusterCommand::Passphrase { reset } => passphrase(args, cluster, *reset, terminal).await,
        ClusterCommand::Register { url } => {
            let made = admin(cluster)?.register(url).await?;
            terminal.row(
                &format!("{}: the engine now calls {url}", made.id),
                || json!({"type": "deployment", "id": made.id, "url": url}),
            );
            Ok(Exit::Fine)
        }
        ClusterCommand::Deployments => {
            for found in admin(cluster)?.deployments().await? {
                terminal.row(
                    &format!("{}  {}  since {}", found.id, found.uri, found.created_at),
                    || json!({"type": "deployment", "id": found.id, "url": found.uri, "since": found.created_at}),
                );
            }
            Ok(Exit::Fine)
        }
        ClusterCommand::Drain { id, wait } => drain(cluster, id, *wait, terminal).await,
        ClusterCommand::Finalize => {
            let journal = PostgresJournal::open(database(cluster)?).await?;
            let level = known_level();
            PostgresNodes::new(journal.pool()).finalize(level, SystemClock.now()).await?;
            terminal.row(
                &format!("events up to level {level} are written from now on"),
                || json!({"type": "finalized", "level": level}),
            );
            Ok(Exit::Fine)
        }
    }
}

async fn status(cluster: &ClusterConfig, terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let journal = PostgresJournal::open(database(cluster)?).await?;
    let nodes = PostgresNodes::new(journal.pool());
    let (now, level) = (SystemClock.now(), nodes.level().await?);
    let alive = nodes.alive(now).await?;
    for node in &alive {
        let ago = (now.0 - node.seen.0) / 1_000_000;
        terminal.row(
            &format!("{}  version {}  knows level {}  heard {ago} s ago", node.name, node.version, node.level),
            || json!({"type": "node", "name": node.name, "version": node.version, "level": node.level}),
        );
    }
    let parked: Vec<_> = journal
        .sessions(None, 1_000)
        .await?
        .into_iter()
        .filter(|row| row.parked.is_some())
        .collect();
    for row in &parked {
        let why = row.parked.as_deref().unwrap_or_default();
        terminal.refusal(&format!("{} is parked: {why}", row.session));
    }
    let overdue = journal.due(Some(now.plus_micros(-10_000_000)), 1_000).await?.len();
    terminal.row(
        &format!(
            "{} nodes at {}; events up to level {level} are written; {overdue} sessions overdue, {} parked",
            alive.len(),
            without_secret(database(cluster)?),
            parked.len()
        ),
        || json!({"type": "cluster", "nodes": alive.len(), "level": level, "overdue": overdue, "parked": parked.len()}),
    );
    Ok(if alive.is_empty() || overdue > 0 || !parked.is_empty() {
        Exit::Failed
    } else {
        Exit::Fine
    })
}

async fn passphrase(
    args: &Args,
    cluster: &ClusterConfig,
    is_reset: bool,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let journal = Arc::new(PostgresJournal::open(database(cluster)?).await?);
    let access = Arc::new(PostgresAccess::new(journal.pool()));
    let accounts = Accounts::new(journal, access, Arc::new(SystemClock), Arc::new(RandomIds));
    if !is_reset && accounts.is_chosen().await? {
        bail!(
            "a passphrase was chosen already; planwright passphrase changes it at a node, and planwright cluster passphrase --reset replaces it"
        );
    }
    let mut lines = Lines::default();
    let asked = "choose the owner's passphrase";
    let given = new_one(&mut lines, args.passphrase_stdin, asked).await?;
    let owner = PersonId(OWNER.into());
    if is_reset {
        accounts.reset(&owner, &given, LOGINS_END).await?;
        terminal.line(RESET);
    } else {
        accounts.choose_first(&owner, &given).await?;
        terminal.line("chosen; every node asks for it from now on");
    }
    Ok(Exit::Fine)
}

/// How long after a reset a node may still take a login for good: as long as it trusts what it read, and a request lasts.
const LOGINS_END: Duration = Duration::from_secs(5);

async fn drain(
    cluster: &ClusterConfig,
    id: &str,
    wait: u64,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let admin = admin(cluster)?;
    let begun = Instant::now();
    loop {
        let left = admin.unfinished(id).await?;
        if left == 0 {
            break;
        }
        if begun.elapsed() > Duration::from_secs(wait) {
            bail!("{left} calls still run at {id}; nothing was taken away, try again later");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    admin.remove(id).await?;
    terminal.line(&format!("{id} is taken away; nothing ran there any more"));
    Ok(Exit::Fine)
}

fn admin(cluster: &ClusterConfig) -> anyhow::Result<RestateAdmin> {
    let address = cluster.admin.as_deref();
    Ok(RestateAdmin::new(address.context("name the engine's administration in cluster.admin")?)?)
}
