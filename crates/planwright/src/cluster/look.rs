//! How each part of a cluster is, as this process finds it now, and as its nodes say.

use std::sync::Arc;

use planwright_domain::time::Time;
use planwright_outbound::{
    access_postgres::PostgresAccess,
    broadcast_nats::check_bus,
    clock_system::SystemClock,
    cluster_postgres::{NodeRow, Parked, PostgresNodes},
    ids_random::RandomIds,
    journal_postgres::PostgresJournal,
    lane_restate::{RestateAdmin, Snapshots, check_ingress},
};
use planwright_runtime::{
    commands::accounts::Accounts,
    ports::{
        Clock as _,
        journal::{Journal as _, JournalError},
    },
};

use crate::{
    config::cluster::{ClusterConfig, without_secret},
    terminal::Finding,
};

/// How long a session may be due before it counts as overdue.
const OVERDUE_MICROS: i64 = 10_000_000;
/// How many sessions that are overdue are counted.
const OVERDUE_MAX: usize = 1_000;
/// After so many records a server of the engine has taken snapshots, if it takes any as `deploy/restate.toml` says: twice for every
/// partition.
const RECORDS_WITHOUT_SNAPSHOT: u64 = 100_000;
/// How many parked sessions are named.
const PARKED_NAMED: i64 = 20;

/// Everything that was found.
pub struct Looked {
    /// Part by part.
    pub parts: Vec<(&'static str, Finding)>,
    /// The nodes, and what they say.
    pub nodes: Vec<NodeRow>,
    /// The level of events that is written.
    pub level: u32,
    /// How many sessions are overdue, and how many parked, with the first of these.
    pub overdue: usize,
    /// How many are parked.
    pub parked: u64,
    /// The first of them.
    pub first_parked: Vec<Parked>,
    /// When.
    pub at: Time,
}

impl Looked {
    /// Whether nothing is wrong anywhere.
    pub fn is_well(&self) -> bool {
        let quiet = |node: &NodeRow| node.trouble.is_empty() && !node.is_late(self.at);
        self.parts.iter().all(|(_, finding)| finding.is_ok())
            && !self.nodes.is_empty()
            && self.nodes.iter().all(quiet)
            && (self.overdue, self.parked) == (0, 0)
    }
}

/// Looks at every part.
pub async fn look(cluster: &ClusterConfig) -> Looked {
    let at = SystemClock.now();
    let mut looked = Looked {
        parts: Vec::new(),
        nodes: Vec::new(),
        level: 0,
        overdue: 0,
        parked: 0,
        first_parked: Vec::new(),
        at,
    };
    let (database, engine, registration, snapshots, bus) = tokio::join!(
        read_database(cluster, &mut looked),
        engine(cluster),
        registration(cluster),
        snapshots(cluster),
        bus(cluster)
    );
    looked.parts = vec![("database", database), ("engine", engine)];
    looked.parts.extend(registration.map(|finding| ("registration", finding)));
    looked.parts.extend(snapshots.map(|finding| ("snapshots", finding)));
    looked.parts.push(("bus", bus));
    looked
}

async fn read_database(cluster: &ClusterConfig, looked: &mut Looked) -> Finding {
    let Some(address) = cluster.database.as_deref() else { return not_named("database") };
    let words = |error: JournalError| format!("{}: {error}", without_secret(address));
    let journal = PostgresJournal::open(address).await.map_err(words)?;
    let nodes = PostgresNodes::new(journal.pool());
    looked.nodes = nodes.all(looked.at).await.map_err(words)?;
    looked.level = nodes.level().await.map_err(words)?;
    (looked.parked, looked.first_parked) = nodes.parked(PARKED_NAMED).await.map_err(words)?;
    let overdue = Some(looked.at.plus_micros(-OVERDUE_MICROS));
    looked.overdue = journal.due(overdue, OVERDUE_MAX).await.map_err(words)?.len();
    Ok(format!("{} answers", without_secret(address)))
}

/// Whether the owner's passphrase was chosen.
pub async fn passphrase(cluster: &ClusterConfig) -> Finding {
    let Some(address) = cluster.database.as_deref() else { return not_named("database") };
    let chosen = async {
        let journal = Arc::new(PostgresJournal::open(address).await?);
        let access = Arc::new(PostgresAccess::new(journal.pool()));
        let accounts = Accounts::new(journal, access, Arc::new(SystemClock), Arc::new(RandomIds));
        anyhow::Ok(accounts.is_chosen().await?)
    };
    match chosen.await {
        Ok(true) => Ok("chosen".into()),
        Ok(false) => {
            Err("not chosen yet, so nothing can be approved; run: planwright cluster passphrase"
                .into())
        }
        Err(error) => Err(format!("not known: {error:#}")),
    }
}

async fn engine(cluster: &ClusterConfig) -> Finding {
    let Some(address) = cluster.ingress.as_deref() else { return not_named("ingress") };
    check_ingress(address).await.map_err(|error| error.to_string())?;
    Ok(format!("Restate at {address} takes calls and knows where the nodes are"))
}

/// Where the engine was told that the nodes are. Without its administration only that it was told is known, which its ingress says.
async fn registration(cluster: &ClusterConfig) -> Option<Finding> {
    let address = cluster.admin.as_deref()?;
    let found = async {
        let admin = RestateAdmin::new(address).map_err(|error| error.to_string())?;
        match admin.current().await.map_err(|error| error.to_string())? {
            Some(current) => Ok(format!("the engine calls {} ({})", current.uri, current.id)),
            None => Err(
                "the engine was not told where the nodes are; run: planwright cluster register URL"
                    .into(),
            ),
        }
    };
    Some(found.await)
}

/// Whether the engine's log is trimmed; nothing, where it is one server, which trims its own, or its administration does
/// not answer, which the registration says.
async fn snapshots(cluster: &ClusterConfig) -> Option<Finding> {
    let admin = RestateAdmin::new(cluster.admin.as_deref()?).ok()?;
    let servers = admin.servers().await.ok().filter(|many| *many > 1)?;
    let Some(address) = cluster.engine_metrics.as_deref() else {
        return Some(Err(format!(
            "the engine is {servers} servers, and whether they take snapshots is not known; name the port 5122 of one of them in cluster.engine_metrics"
        )));
    };
    Some(match Snapshots::of(address).await {
        Err(error) => Err(error.to_string()),
        Ok(Snapshots { age_seconds: Some(age), .. }) => {
            Ok(format!("the oldest of the server at {address} is {age:.0} s old"))
        }
        Ok(Snapshots { age_seconds: None, records }) if records < RECORDS_WITHOUT_SNAPSHOT => {
            Ok(format!("none yet, after {records} records of the server at {address}"))
        }
        Ok(Snapshots { age_seconds: None, records }) => Err(format!(
            "none after {records} records of the server at {address}, so no server trims the log and whoever takes over reads all of it; set worker.snapshots as deploy/restate.toml says"
        )),
    })
}

async fn bus(cluster: &ClusterConfig) -> Finding {
    let Some(address) = cluster.nats.as_deref() else { return not_named("nats") };
    check_bus(address, &cluster.bus()).await.map_err(|error| error.to_string())?;
    Ok(format!("{} answers", without_secret(address)))
}

fn not_named(setting: &str) -> Finding {
    Err(format!("not named; set cluster.{setting}, or PLANWRIGHT_{}", setting.to_uppercase()))
}
