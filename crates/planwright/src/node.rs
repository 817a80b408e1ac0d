//! `planwright node`: one of many, over a database, an engine and a bus that all of them share.

use std::{
    fs,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use planwright_format::event::known_level;
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::{
    access_postgres::PostgresAccess,
    broadcast_nats::NatsBroadcast,
    clock_system::SystemClock,
    cluster_postgres::{ALIVE, BEAT, NodeRow, PostgresNodes},
    data_directory::DataDirectory,
    journal_postgres::PostgresJournal,
    lane_restate::{RestateLane, RestateSettings, RestateWorker, restate},
};
use planwright_runtime::{
    commands::accounts::Accounts, ports::Clock, ports::Ports, queries::Queries, runtime::Runtime,
    settings::Settings,
};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    args::{Args, ClusterArgs},
    config::{Config, audit::AuditParts, cluster::ClusterConfig},
    data_path::data_path,
    exit::Exit,
    installation::{Agents, WrapToolbox, agents},
    known_secrets::known_secrets,
    logging::known_as,
    server::ServerFile,
    terminal::Terminal,
    tools::Tools,
    up::{self, Api, Deployment, Stops},
};

/// How long what counts and takes up may take to end with the node.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

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
    let bus = Arc::new(NatsBroadcast::connect(bus, &cluster.subjects, &cluster.bus()).await?);
    let (lane, worker) = lane(&cluster, bus.clone())?;
    let Agents { model, profiles, .. } = agents(args, config)?;
    let Tools { toolbox: tools, roots, .. } =
        Tools::open(config, &args.workspace, directory.path())?;
    let toolbox = wrap.map_or_else(|| tools.clone(), |wrap| wrap(tools.clone()));
    let AuditParts { sequencer, handover } = config.audit.parts(journal.clone(), &data)?;
    let settings = config.security_settings(&roots);
    let ports = Ports {
        journal: journal.clone(),
        memory: journal.clone(),
        lane: lane.clone(),
        broadcast: bus.clone(),
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
    known_as(&name);
    beat(&nodes, &journal, &runtime.queries, &name).await?;
    let queries = runtime.queries.clone();
    let beaten = watch::Sender::new(Instant::now());
    let beats = beaten.subscribe();
    let beating = tokio::spawn(keep_beating(nodes.clone(), journal, queries, name.clone(), beaten));
    let answering = tokio::spawn(answer_who_drives(bus, name.clone(), lane, beats));
    let stops = Stops::after(Duration::from_secs(cluster.unready_seconds));
    let stopping = || stops.stopping.clone();
    let working = tokio::spawn(worker.run(runtime.engine.clone(), endpoint, stopping()));
    sequencer.begin(settings).await?;
    let sequencing = tokio::spawn(sequencer.run(stopping()));
    let housekeeping = tokio::spawn(runtime.housekeeping.clone().run(stopping()));
    api.announce(terminal, &data, true)?;
    say_if_nobody_decides(&accounts, terminal).await?;
    let served = api.serve(runtime, access, None, &server, Deployment::Node, stops).await;
    let worked = working.await;
    // What they leave, another node does.
    let _ =
        tokio::time::timeout(ENDS_WITHIN, async { tokio::join!(sequencing, housekeeping) }).await;
    beating.abort();
    answering.abort();
    let _ = nodes.leave(&name).await;
    let _ = fs::remove_file(ServerFile::path(&data));
    terminal.line("stopped; everything is kept");
    served?;
    worked??;
    Ok(Exit::Fine)
}

/// Says that no passphrase was chosen, if that is so.
async fn say_if_nobody_decides(accounts: &Accounts, terminal: &mut Terminal) -> anyhow::Result<()> {
    if !accounts.is_chosen().await? {
        terminal.line("no passphrase was chosen yet, so nothing can be approved; run: planwright cluster passphrase");
    }
    Ok(())
}

/// Where the engine calls this node.
async fn listen(cluster: &ClusterConfig) -> anyhow::Result<TcpListener> {
    TcpListener::bind(cluster.endpoint).await.with_context(|| {
        format!("{} cannot be listened at; set cluster.endpoint to another", cluster.endpoint)
    })
}

/// The lane through the engine that the nodes share.
fn lane(
    cluster: &ClusterConfig,
    bus: Arc<NatsBroadcast>,
) -> anyhow::Result<(Arc<RestateLane>, RestateWorker)> {
    let ingress = cluster.ingress.clone();
    let settings = RestateSettings {
        ingress: ingress.context("name the engine's ingress in cluster.ingress")?,
        identity_key: cluster.identity_key.clone(),
        drain: Duration::from_secs(cluster.drain_seconds),
    };
    Ok(restate(settings, bus, Arc::new(SystemClock))?)
}

/// The database that the nodes share.
pub fn database(cluster: &ClusterConfig) -> anyhow::Result<&str> {
    cluster.database.as_deref().context("name the database in cluster.database")
}

/// Answers who asks on the bus which node acts for a session.
async fn answer_who_drives(
    bus: Arc<NatsBroadcast>,
    name: String,
    lane: Arc<RestateLane>,
    beats: watch::Receiver<Instant>,
) {
    let records = || beats.borrow().elapsed() < ALIVE;
    bus.answer_who_drives(&name, |session| lane.drives(session), records).await;
}

async fn keep_beating(
    nodes: PostgresNodes,
    journal: Arc<PostgresJournal>,
    queries: Arc<Queries>,
    name: String,
    beaten: watch::Sender<Instant>,
) {
    loop {
        tokio::time::sleep(BEAT).await;
        match beat(&nodes, &journal, &queries, &name).await {
            Ok(()) => drop(beaten.send_replace(Instant::now())),
            Err(error) => tracing::warn!(%error, event = "no_beat"),
        }
    }
}

/// Says that this node runs and how it finds everything, and looks what the others agreed on.
async fn beat(
    nodes: &PostgresNodes,
    journal: &PostgresJournal,
    queries: &Queries,
    name: &str,
) -> anyhow::Result<()> {
    let parts = queries.parts().await?;
    let node = NodeRow {
        name: name.to_owned(),
        seen: SystemClock.now(),
        version: env!("CARGO_PKG_VERSION").into(),
        level: known_level(),
        trouble: parts.into_iter().filter_map(|part| part.trouble).collect(),
    };
    nodes.beat(&node).await?;
    journal.write_up_to(nodes.level().await?);
    Ok(())
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
