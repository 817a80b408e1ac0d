//! `planwright cluster`: what an operator does for all nodes at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use planwright_domain::{
    actor::{OWNER, PersonId},
    identity::{SessionIdentity, SessionKey},
    time::Time,
};
use planwright_format::event::known_level;
use planwright_outbound::{
    access_postgres::PostgresAccess,
    broadcast_nats::who_drives,
    clock_system::SystemClock,
    cluster_postgres::{NodeRow, Parked, PostgresNodes},
    ids_random::RandomIds,
    journal_postgres::PostgresJournal,
    lane_restate::RestateAdmin,
};
use planwright_runtime::{
    commands::accounts::Accounts,
    ports::{
        Clock as _,
        journal::{Journal as _, SessionRow},
    },
};
use serde_json::json;

use crate::{
    args::{Args, ClusterCommand},
    config::cluster::ClusterConfig,
    exit::Exit,
    node::database,
    people::{RESET, new_one},
    talk::Lines,
    terminal::Terminal,
    transfer::owner_named,
};

pub mod look;

use look::{Looked, look};

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
        ClusterCommand::Where { session } => drives(cluster, session, terminal).await,
        ClusterCommand::Release { session } => release(cluster, session, terminal).await,
        ClusterCommand::Register { url, force } => {
            let made = admin(cluster)?.register(url, *force).await?;
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
        ClusterCommand::Drain { id, wait, force } => {
            drain(cluster, id, *wait, *force, terminal).await
        }
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
    let looked = look(cluster).await;
    for (what, finding) in &looked.parts {
        terminal.finding(what, finding);
    }
    for node in &looked.nodes {
        say_node(node, looked.at, terminal);
    }
    if looked.nodes.is_empty() && looked.level > 0 {
        terminal.refusal("no node runs; start one with: planwright node");
    }
    for Parked { session, why } in &looked.first_parked {
        let words = format!(
            "{session} is parked: {why}; once that is mended, run: planwright cluster release {session}"
        );
        terminal.refusal(&words);
    }
    let Looked { level, overdue, parked, .. } = looked;
    let running = looked.nodes.iter().filter(|node| !node.is_late(looked.at)).count();
    let is_well = looked.is_well();
    if level > 0 {
        terminal.row(
            &format!(
                "{running} nodes; events up to level {level} are written; {overdue} sessions overdue, {parked} parked"
            ),
            || json!({"type": "cluster", "nodes": running, "level": level, "overdue": overdue, "parked": parked, "ok": is_well}),
        );
    }
    Ok(if is_well { Exit::Fine } else { Exit::Failed })
}

/// One node: when it was heard, and what it says of everything else.
fn say_node(node: &NodeRow, now: Time, terminal: &mut Terminal) {
    let NodeRow { name, version, level, trouble, seen } = node;
    let ago = (now.0 - seen.0).max(0) / 1_000_000;
    let is_late = node.is_late(now);
    let words = format!("{name}  version {version}  knows level {level}  heard {ago} s ago");
    let words = if is_late {
        format!("{words}; it did not say that it stops: look after it, and start it again")
    } else {
        words
    };
    let mark = if is_late || !trouble.is_empty() { "✗" } else { "✓" };
    let said: String = trouble.iter().map(|sentence| format!("\n    {sentence}")).collect();
    terminal.row(
        &format!("{mark} node {words}{said}"),
        || json!({"type": "node", "name": name, "version": version, "level": level, "heard_seconds_ago": ago, "late": is_late, "trouble": trouble}),
    );
}

/// The session that an operator names, as it is listed.
async fn named(
    journal: &PostgresJournal,
    session: &str,
) -> anyhow::Result<(SessionKey, SessionRow)> {
    let key = match SessionKey::parse(session) {
        Ok(key) => key,
        Err(_) => {
            SessionKey::new(owner_named(journal, OWNER).await?, SessionIdentity::parse(session)?)
        }
    };
    let row = journal.row(&key).await?;
    let row = row.with_context(|| {
        format!("there is no session {key}; planwright session list, or the dashboard, names them")
    })?;
    Ok((key, row))
}

/// Which node acts for a session, or why none does.
async fn drives(
    cluster: &ClusterConfig,
    session: &str,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let journal = PostgresJournal::open(database(cluster)?).await?;
    let (key, row) = named(&journal, session).await?;
    let now = SystemClock.now();
    let nodes = PostgresNodes::new(journal.pool()).alive(now).await?;
    let bus = cluster.nats.as_deref().context("name the message bus in cluster.nats")?;
    let heard = who_drives(bus, &cluster.subjects, &cluster.bus(), &key, nodes.len()).await?;
    let acts = heard.iter().find_map(|said| said.seconds.map(|seconds| (&said.node, seconds)));
    if let Some((node, seconds)) = acts {
        terminal.row(
            &format!("{node} acts for {key}, with one effect for {seconds:.1} s"),
            || json!({"type": "where", "session": key, "node": node, "seconds": seconds}),
        );
        return Ok(Exit::Fine);
    }
    let silent: Vec<_> = nodes
        .iter()
        .map(|node| node.name.as_str())
        .filter(|name| !heard.iter().any(|said| said.node == *name))
        .collect();
    let why = match (&row.parked, &row.waiting) {
        (Some(why), _) => format!("it is parked: {why}; run: planwright cluster release {key}"),
        (None, Some(_)) => "it waits for a person".into(),
        (None, None) if row.running => "its turn waits for its time or for a node".into(),
        (None, None) => "nothing is under way in it".into(),
    };
    let silence = match silent.as_slice() {
        [] => String::new(),
        names => format!("; these nodes did not answer: {}", names.join(", ")),
    };
    terminal.row(
        &format!("no node acts for {key} now: {why}{silence}"),
        || json!({"type": "where", "session": key, "node": null, "why": why, "silent": silent}),
    );
    Ok(if silent.is_empty() { Exit::Fine } else { Exit::Failed })
}

/// Lets a parked session go on: it is due now, and the next node that looks takes it up.
async fn release(
    cluster: &ClusterConfig,
    session: &str,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let journal = PostgresJournal::open(database(cluster)?).await?;
    let (key, row) = named(&journal, session).await?;
    let Some(why) = row.parked else {
        bail!("{key} is not parked; planwright cluster where {key} says what happens in it")
    };
    journal.unpark(&key, SystemClock.now()).await?;
    terminal.row(
        &format!("{key} goes on with the next node that looks; it was parked because {why}"),
        || json!({"type": "released", "session": key, "why": why}),
    );
    Ok(Exit::Fine)
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
    force: bool,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let admin = admin(cluster)?;
    let begun = Instant::now();
    loop {
        let left = admin.unfinished(id).await?;
        if left == 0 || force {
            break;
        }
        if begun.elapsed() > Duration::from_secs(wait) {
            bail!(
                "{left} calls still run at {id}; nothing was taken away: try again later, or with --force, which has them begin again elsewhere"
            );
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    admin.remove(id).await?;
    let words = if force { "what ran there begins again" } else { "nothing ran there any more" };
    terminal.line(&format!("{id} is taken away; {words}"));
    Ok(Exit::Fine)
}

fn admin(cluster: &ClusterConfig) -> anyhow::Result<RestateAdmin> {
    let address = cluster.admin.as_deref();
    Ok(RestateAdmin::new(address.context("name the engine's administration in cluster.admin")?)?)
}
