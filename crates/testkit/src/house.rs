//! A whole Planwright in this process: runtime, journal, lane and tools, with a scripted model.

use crate::people::{ada_key, introduce, person};
use planwright_domain::actor::OWNER;
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::ids_random::fresh_id;
use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use planwright_domain::{
    actor::{Person, Standing},
    id::Seq,
    identity::SessionKey,
    next::next,
    policy::Policy,
    session::{Session, SessionEvent},
    time::Time,
};
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    broadcast_nats::{NatsBroadcast, NatsSecurity},
    clock_system::SystemClock,
    journal_postgres::PostgresJournal,
    journal_sqlite::SqliteJournal,
    lane_in_process::{Scope, in_process},
    lane_restate::{RestateAdmin, RestateSettings, restate},
    model_http::{HttpModel, HttpSettings, Wire},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::Ports,
    ports::{
        audit::Handover,
        journal::Recorded,
        memory::Store,
        model::{AgentProfile, Model, Price, Profiles, default_profiles},
        signal::{Broadcast, Lane},
    },
    runtime::Runtime,
    settings::Settings,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    scratch,
    scripted_model::{Conduct, ScriptedModel},
    servers::{Nats, Postgres, Restate, free_port, loopback},
};

/// How long anything may take to come to rest.
const REST_MAX: Duration = Duration::from_secs(20);

/// A whole Planwright in this process.
pub struct House {
    /// The runtime.
    pub runtime: Runtime,
    /// What it was made of.
    pub ports: Ports,
    /// The model's server.
    pub model: ScriptedModel,
    home: tempfile::TempDir,
    window_tokens: usize,
    settings: Settings,
    deployment: Deployment,
    stopping: watch::Sender<bool>,
    working: JoinHandle<()>,
}

/// What carries it.
enum Deployment {
    Local,
    Cluster(Box<Servers>),
}

/// The servers of a cluster, and where this node is called.
struct Servers {
    postgres: Postgres,
    nats: Nats,
    restate: Restate,
    node: u16,
}

/// A person who may decide.
#[must_use]
pub fn ada() -> Person {
    person("ada", "story", Standing::Decides)
}

/// A session by its key.
#[must_use]
pub fn session(key: &str) -> SessionKey {
    ada_key(&format!("cli:{key}")).expect("a key")
}

/// How this model is asked.
fn settings(model: &ScriptedModel, window_tokens: usize) -> HttpSettings {
    let price = Price {
        input_micros: 1_000_000,
        output_micros: 2_000_000,
        cached_micros: 1_000_000,
        cache_write_micros: 1_000_000,
    };
    HttpSettings {
        window_tokens,
        price: Some(price),
        ..HttpSettings::new(Wire::Chat, &model.base_url(), "scripted")
    }
}

/// The default profile, and a scribe that may only read and write files.
fn profiles(model: &Arc<dyn Model>) -> Profiles {
    let mut profiles = (*default_profiles(model)).clone();
    let tools = ["read_file", "write_file"].map(str::to_owned);
    let scribe =
        AgentProfile::new("scribe", "You are a scribe.", model.clone(), Some(tools.into()), None);
    profiles.insert("scribe".into(), scribe);
    Arc::new(profiles)
}

impl House {
    /// The local deployment, with a model that behaves so.
    pub async fn local(conduct: Conduct) -> Self {
        Self::with_window(conduct, 128_000).await
    }

    /// The same, where this policy holds for what people ask.
    #[must_use]
    pub fn under(mut self, policy: Policy) -> Self {
        self.ports.policy = Arc::new(policy);
        self.runtime = Runtime::new(&self.ports, &self.settings);
        self
    }

    /// The same, begun anew with these settings.
    #[must_use]
    pub async fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self.dies_and_starts_again().await;
        self
    }

    /// The same, where a decision counts only once its head was handed over.
    #[must_use]
    pub fn handing_over(mut self, handover: Handover) -> Self {
        self.ports.handover = Some(handover);
        self.runtime = Runtime::new(&self.ports, &self.settings);
        self
    }

    /// The same, with a model whose window holds so many tokens.
    pub async fn with_window(conduct: Conduct, window_tokens: usize) -> Self {
        Self::build(conduct, window_tokens, Deployment::Local).await
    }

    /// The cluster deployment: one node of it in this process, over real servers of its own.
    pub async fn cluster(conduct: Conduct) -> Self {
        Self::cluster_with_window(conduct, 128_000).await
    }

    /// The same, with a model whose window holds so many tokens.
    pub async fn cluster_with_window(conduct: Conduct, window_tokens: usize) -> Self {
        let servers = Servers {
            postgres: Postgres::start(),
            nats: Nats::start(),
            restate: Restate::start(),
            node: free_port(),
        };
        let admin = RestateAdmin::new(&servers.restate.admin(0)).expect("an administration");
        let endpoint = format!("http://{}", loopback(servers.node));
        let house =
            Self::build(conduct, window_tokens, Deployment::Cluster(Box::new(servers))).await;
        admin.register(&endpoint, false).await.expect("a deployment");
        house
    }

    async fn build(conduct: Conduct, window_tokens: usize, deployment: Deployment) -> Self {
        let model = ScriptedModel::start(conduct).await.expect("a server");
        let home = scratch::directory("house").expect("a directory");
        fs::create_dir(home.path().join("data")).expect("a directory");
        let settings = Settings::default();
        let life = Self::wire(&home, &model, window_tokens, &settings, &deployment).await;
        let (runtime, ports, stopping, working) = life;
        Self { runtime, ports, model, home, window_tokens, settings, deployment, stopping, working }
    }

    async fn wire(
        home: &tempfile::TempDir,
        model: &ScriptedModel,
        window_tokens: usize,
        chosen: &Settings,
        deployment: &Deployment,
    ) -> (Runtime, Ports, watch::Sender<bool>, JoinHandle<()>) {
        let settings = settings(model, window_tokens);
        let data = home.path().join("data");
        let wired = |journal: Arc<dyn Store>, lane: Arc<dyn Lane>, broadcast| {
            let model: Arc<dyn Model> = Arc::new(HttpModel::new(settings).expect("a model"));
            let ports = Ports {
                journal: journal.clone(),
                memory: journal,
                lane,
                broadcast,
                profiles: profiles(&model),
                model,
                toolbox: Arc::new(
                    FileToolbox::open(&home.path().join("workspace"), &data).expect("a workspace"),
                ),
                clock: Arc::new(SystemClock),
                ids: Arc::new(RandomIds),
                policy: Arc::default(),
                handover: None,
                session_label: false,
                notebook: Arc::new(
                    planwright_outbound::notebook_object_store::ObjectStoreNotebooks::in_directory(
                        &data,
                    )
                    .expect("pages"),
                ),
                roles: planwright_runtime::ports::model::Roles::default(),
            };
            (Runtime::new(&ports, chosen), ports)
        };
        let stopping = watch::Sender::new(false);
        let told = stopping.subscribe();
        match deployment {
            Deployment::Local => {
                let (lane, worker) = in_process();
                let journal = SqliteJournal::open(&data.join("journal.sqlite"));
                let broadcast: Arc<dyn Broadcast> = Arc::new(InProcessBroadcast::default());
                let journal = Arc::new(journal.expect("a journal"));
                introduce(&*journal, &["ada", OWNER]).await.expect("ada is known");
                let (runtime, ports) = wired(journal, lane, broadcast);
                let working =
                    tokio::spawn(worker.run(runtime.engine.clone(), Scope::Everything, told));
                (runtime, ports, stopping, working)
            }
            Deployment::Cluster(servers) => {
                let settings = RestateSettings {
                    ingress: servers.restate.ingress(0),
                    identity_key: None,
                    drain: Duration::from_secs(1),
                };
                let journal = PostgresJournal::open(&servers.postgres.address()).await;
                let security = NatsSecurity::default();
                let bus = servers.nats.address();
                let broadcast = NatsBroadcast::connect(&bus, "test", &security).await;
                let broadcast = Arc::new(broadcast.expect("a bus"));
                let lane = restate(settings, broadcast.clone(), Arc::new(SystemClock));
                let (lane, worker) = lane.expect("a lane");
                let journal = Arc::new(journal.expect("a journal"));
                introduce(&*journal, &["ada", OWNER]).await.expect("ada is known");
                let (runtime, ports) = wired(journal, lane, broadcast);
                let listener = TcpListener::bind(loopback(servers.node)).await.expect("a port");
                let serving = worker.run(runtime.engine.clone(), listener, told);
                let working = tokio::spawn(async { serving.await.expect("it serves") });
                (runtime, ports, stopping, working)
            }
        }
    }

    /// Ends this life at once, effects and all, and begins the next over the same data.
    pub async fn dies_and_starts_again(&mut self) {
        self.working.abort();
        let _ = (&mut self.working).await;
        let Self { home, model, window_tokens, settings, deployment, .. } = self;
        let life = Self::wire(home, model, *window_tokens, settings, deployment).await;
        (self.runtime, self.ports, self.stopping, self.working) = life;
    }

    /// A path in the workspace.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("workspace").join(name)
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Changes or asks the database behind the journal's back, as another program would; the first column of the
    /// first row, if there is one.
    ///
    /// # Panics
    /// If the database refuses it.
    pub fn sql(&self, sql: &str) -> String {
        match &self.deployment {
            Deployment::Local => {
                let file = self.data().join("journal.sqlite");
                let connection = rusqlite::Connection::open(file).expect("a database");
                let mut statement = connection.prepare(sql).expect("a statement");
                if statement.column_count() == 0 {
                    statement.execute([]).expect("it is done");
                    return String::new();
                }
                let first = statement.query_row([], |row| row.get::<_, rusqlite::types::Value>(0));
                match first.expect("a row") {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                }
            }
            Deployment::Cluster(servers) => servers.postgres.psql(sql),
        }
    }

    /// The sessions whose rows are so are due then.
    pub fn set_due(&self, which: &str, at: Time) {
        let at = at.0;
        drop(self.sql(&match &self.deployment {
            Deployment::Local => format!("UPDATE streams SET due_at = {at} WHERE {which}"),
            Deployment::Cluster(_) => format!(
                "INSERT INTO due (stream, owner, due_at, moved_at, takes_room)
                 SELECT id, owner, {at}, updated_at, takes_room FROM streams WHERE {which}
                 ON CONFLICT (stream) DO UPDATE SET due_at = excluded.due_at, parked = false"
            ),
        }));
    }

    /// The columns by which this journal's SQL finds an event, and what they are for the first event of a row of `streams`.
    #[must_use]
    pub fn event_columns(&self) -> (&'static str, &'static str) {
        match &self.deployment {
            Deployment::Local => ("id", "streams.id << 32 | 1"),
            Deployment::Cluster(_) => ("stream, seq", "streams.id, 1"),
        }
    }

    /// These bytes as this journal's SQL writes them.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> String {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match &self.deployment {
            Deployment::Local => format!("x'{digits}'"),
            Deployment::Cluster(_) => format!(r"'\x{digits}'::bytea"),
        }
    }

    /// Makes the bodies of events of this kind unreadable.
    pub fn damage(&self, kind: &str) {
        let body = self.bytes(&[9]);
        drop(self.sql(&format!("UPDATE events SET body = {body} WHERE kind = '{kind}'")));
    }

    /// Ada says a line.
    pub async fn says(&self, identity: &SessionKey, line: &str) -> Reply {
        self.hears(ada(), identity, line).await
    }

    /// Somebody says a line.
    pub async fn hears(&self, person: Person, identity: &SessionKey, line: &str) -> Reply {
        let spoken = Spoken {
            identity: identity.clone(),
            transport: None,
            person: person.clone(),
            id: fresh_id(),
            line: line.into(),
        };
        let reply = self.runtime.commands.handle_line(spoken).await.expect("an answer");
        if let Reply::Revision(view) = &reply
            && view.current
        {
            self.runtime.commands.shown(identity, &person, view.digest).await.expect("an answer");
        }
        reply
    }

    /// Ada says a line that is accepted, and waits until nothing is under way.
    pub async fn does(&self, identity: &SessionKey, line: &str) -> Arc<Session> {
        let reply = self.says(identity, line).await;
        let fine = matches!(reply, Reply::Accepted { .. } | Reply::Revision(_));
        assert!(fine, "{line}: {reply:?}");
        self.rests(identity).await
    }

    /// Waits until nothing is under way.
    pub async fn rests(&self, identity: &SessionKey) -> Arc<Session> {
        self.until(identity, |session| next(session).is_rest()).await
    }

    /// Waits until the session is so.
    pub async fn until(
        &self,
        identity: &SessionKey,
        is_so: impl Fn(&Session) -> bool,
    ) -> Arc<Session> {
        let mut subscription = self.runtime.queries.subscribe(identity);
        let begun = Instant::now();
        loop {
            let session = self.runtime.queries.session(identity).await.expect("a session");
            if is_so(&session) {
                return session;
            }
            assert!(begun.elapsed() < REST_MAX, "it does not come to rest: {session:?}");
            let _ = tokio::time::timeout(Duration::from_millis(200), subscription.next()).await;
        }
    }

    /// Everything that was recorded.
    pub async fn events(&self, identity: &SessionKey) -> Vec<SessionEvent> {
        let events =
            self.runtime.queries.events(identity, Seq(0), usize::MAX).await.expect("events");
        events.into_iter().map(|recorded: Recorded| recorded.event).collect()
    }

    /// The kinds of everything that was recorded.
    pub async fn kinds(&self, identity: &SessionKey) -> Vec<&'static str> {
        self.events(identity).await.iter().map(SessionEvent::kind).collect()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Before the work of this life is cut off: what is under way now may be dropped.
        let dropped = self.runtime.engine.take_dropped_attempts();
        self.stopping.send_replace(true);
        self.working.abort();
        if !std::thread::panicking() {
            assert!(dropped.is_empty(), "attempts were dropped open: {dropped:?}");
        }
    }
}
