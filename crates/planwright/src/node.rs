//! `planwright node`: one of many, over a database, an engine and a bus that all of them share.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use planwright_format::event::known_level;
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::{
    access_postgres::PostgresAccess,
    broadcast_nats::NatsBroadcast,
    clock_system::SystemClock,
    cluster_postgres::{NodeRow, PostgresNodes},
    data_directory::DataDirectory,
    journal_postgres::PostgresJournal,
    lane_restate::{RestateLane, RestateSettings, RestateWorker, restate},
};
use planwright_runtime::{ports::Clock, ports::Ports, runtime::Runtime, settings::Settings};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    args::{Args, ClusterArgs},
    config::{Config, audit::AuditParts, cluster::ClusterConfig},
    data_path::data_path,
    exit::Exit,
    installation::{Agents, WrapToolbox, agents},
    known_secrets::known_secrets,
    server::ServerFile,
    terminal::Terminal,
    tools::Tools,
    up::{self, Api, Deployment, told_to_stop},
};

/// How long what counts and takes up may take to end with the node.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How often a node says that it runs, and looks what the others agreed on.
const BEAT: Duration = Duration::from_secs(2);

/// Runs a node until it is told to stop; then what has started is let to end.
pub async fn run(
    args: &Args,
    config: &Config,
    bind: Option<SocketAddr>,
    options: &ClusterArgs,
    terminal: &mut Terminal,
    wrap: Option<WrapToolbox>,
) -> anyhow::Result<Exit> {
    let cluster = config.cluster.with(options);
    cluster.check()?;
    let server = config.server.at(bind);
    server.check()?;
    let data = data_path(args)?;
    let directory = DataDirectory::own_for_node(&data, "planwright node")?;
    let journal = Arc::new(config.notebook.cluster_journal(database(&cluster)?).await?);
    let bus = cluster.nats.as_deref().context("name the message bus in cluster.nats")?;
    let broadcast = NatsBroadcast::connect(bus, &cluster.subjects, &cluster.bus()).await?;
    let (lane, worker) = lane(&cluster)?;
    let Agents { model, profiles, .. } = agents(args, config)?;
    let Tools { toolbox: tools, roots, .. } =
        Tools::open(config, &args.workspace, directory.path())?;
    let toolbox = wrap.map_or_else(|| tools.clone(), |wrap| wrap(tools.clone()));
    let AuditParts { sequencer, handover } = config.audit.parts(journal.clone(), &data)?;
    let settings = config.security_settings(&roots);
    let ports = Ports {
        journal: journal.clone(),
        memory: journal.clone(),
        lane,
        broadcast: Arc::new(broadcast),
        notebook: config.notebook.shared()?,
        roles: crate::models::roles(config)?,
        model,
        profiles,
        toolbox,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        policy: Arc::new(config.approval.policy(&config.auto, roots)),
        handover,
        session_label: config.metrics.session_label,
    };
    let secrets = Arc::new(known_secrets(config, &data)?);
    let runtime = Runtime::new(&ports, &Settings { secrets, ..config.settings() });
    let access = Arc::new(PostgresAccess::new(journal.pool()));
    let accounts = runtime.commands.accounts(access.clone());
    up::first_token(&accounts, &data).await?;
    let endpoint = listen(&cluster).await?;
    let mut api = Api::bind(&server).await?;
    let name = format!("{}/{}", host(), endpoint.local_addr()?);
    let nodes = PostgresNodes::new(journal.pool());
    beat(&nodes, &journal, &name).await?;
    let beating = tokio::spawn(keep_beating(nodes.clone(), journal, name.clone()));
    let stopping = watch::Sender::new(false);
    let working = tokio::spawn(worker.run(runtime.engine.clone(), endpoint, stopping.subscribe()));
    sequencer.begin(settings).await?;
    let sequencing = tokio::spawn(sequencer.run(stopping.subscribe()));
    let housekeeping = tokio::spawn(runtime.housekeeping.clone().run(stopping.subscribe()));
    api.announce(terminal, &data, true)?;
    if !accounts.is_chosen().await? {
        terminal.line("no passphrase was chosen yet, so nothing can be approved; run: planwright cluster passphrase");
    }
    // The engine's calls drain while the API still answers.
    let draining = async {
        told_to_stop().await;
        stopping.send_replace(true);
    };
    let (served, ()) =
        tokio::join!(api.serve(runtime, access, None, &server, Deployment::Node), draining);
    let worked = working.await;
    // What they leave, another node does.
    let _ = tokio::time::timeout(ENDS_WITHIN, sequencing).await;
    let _ = tokio::time::timeout(ENDS_WITHIN, housekeeping).await;
    beating.abort();
    let _ = nodes.leave(&name).await;
    let _ = fs::remove_file(ServerFile::path(&data));
    terminal.line("stopped; everything is kept");
    served?;
    worked??;
    Ok(Exit::Fine)
}

/// Where the engine calls this node.
async fn listen(cluster: &ClusterConfig) -> anyhow::Result<TcpListener> {
    TcpListener::bind(cluster.endpoint).await.with_context(|| {
        format!("{} cannot be listened at; set cluster.endpoint to another", cluster.endpoint)
    })
}

/// The lane through the engine that the nodes share.
fn lane(cluster: &ClusterConfig) -> anyhow::Result<(Arc<RestateLane>, RestateWorker)> {
    let ingress = cluster.ingress.clone();
    let settings = RestateSettings {
        ingress: ingress.context("name the engine's ingress in cluster.ingress")?,
        identity_key: cluster.identity_key.clone(),
        drain: Duration::from_secs(cluster.drain_seconds),
    };
    Ok(restate(settings, Arc::new(SystemClock))?)
}

/// The database that the nodes share.
pub fn database(cluster: &ClusterConfig) -> anyhow::Result<&str> {
    cluster.database.as_deref().context("name the database in cluster.database")
}

async fn keep_beating(nodes: PostgresNodes, journal: Arc<PostgresJournal>, name: String) {
    loop {
        tokio::time::sleep(BEAT).await;
        if let Err(error) = beat(&nodes, &journal, &name).await {
            tracing::warn!(%error, event = "no_beat");
        }
    }
}

async fn beat(nodes: &PostgresNodes, journal: &PostgresJournal, name: &str) -> anyhow::Result<()> {
    let node = NodeRow {
        name: name.to_owned(),
        seen: SystemClock.now(),
        version: env!("CARGO_PKG_VERSION").into(),
        level: known_level(),
    };
    nodes.beat(&node).await?;
    journal.write_up_to(nodes.level().await?);
    Ok(())
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
