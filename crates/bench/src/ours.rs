//! Our arm: the real runtime, journal, lane and tools in this process, with a model that answers at once.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use planwright_domain::{
    actor::Standing,
    identity::SessionKey,
    next::next,
    turn::{ModelFailure, Usage},
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    broadcast_nats::{NatsBroadcast, NatsSecurity},
    clock_system::SystemClock,
    journal_postgres::PostgresJournal,
    journal_sqlite::SqliteJournal,
    lane_in_process::{Scope, in_process},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::Ports,
    ports::{
        memory::Store,
        model::{Message, Model, ModelAnswer, ModelRequest, OnPreview, WireCall, default_profiles},
        signal::Broadcast,
        toolbox::Toolbox,
    },
    runtime::Runtime,
    settings::{NotebookSettings, Settings},
};
use planwright_testkit::people::person;
use serde_json::json;
use tokio::sync::watch;

use crate::payload::{PLANS, TURNS, nth};

/// Who acts on what is due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// The lane, as in the program.
    ByItsLane,
    /// Nobody: only commands are measured.
    ByNobody,
}

fn home() -> anyhow::Result<(tempfile::TempDir, PathBuf)> {
    let home = tempfile::Builder::new().prefix("planwright-bench-").tempdir()?;
    let data = home.path().join("data");
    std::fs::create_dir(&data)?;
    Ok((home, data))
}

fn files(home: &tempfile::TempDir, data: &Path) -> anyhow::Result<Arc<dyn Toolbox>> {
    Ok(Arc::new(FileToolbox::open(&home.path().join("workspace"), data)?))
}

/// What differs from one arm to the other.
struct Parts {
    journal: Arc<dyn Store>,
    broadcast: Arc<dyn Broadcast>,
    model: Arc<dyn Model>,
    toolbox: Arc<dyn Toolbox>,
    notebook: bool,
    driven: Driven,
}

/// A whole Planwright in this process.
pub(crate) struct Ours {
    pub(crate) runtime: Runtime,
    home: tempfile::TempDir,
    _stopping: watch::Sender<bool>,
}

impl Ours {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::driven(Driven::ByItsLane)
    }

    /// The same, with or without someone who acts on what is due.
    pub(crate) fn driven(driven: Driven) -> anyhow::Result<Self> {
        Self::with(Arc::new(AtOnce::default()), driven)
    }

    /// The same over a journal that was filled before.
    pub(crate) fn over(fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        let (home, data) = home()?;
        fill(&data.join("journal.sqlite"))?;
        Self::in_home(home, &data, Arc::new(AtOnce::default()), Driven::ByItsLane)
    }

    /// The same with a model that keeps what it was asked.
    pub(crate) fn keeping() -> anyhow::Result<(Self, Arc<AtOnce>)> {
        let model = Arc::new(AtOnce { keeps: true, ..AtOnce::default() });
        Ok((Self::with(model.clone(), Driven::ByItsLane)?, model))
    }

    /// The same over a database and a bus, and nobody acts on what is due.
    pub(crate) async fn on_cluster(database: &str, bus: &str) -> anyhow::Result<Self> {
        let (home, data) = home()?;
        let journal = Arc::new(PostgresJournal::open(database).await?);
        let broadcast =
            Arc::new(NatsBroadcast::connect(bus, "bench", &NatsSecurity::default()).await?);
        let model = Arc::new(AtOnce::default());
        let parts = Parts {
            journal,
            broadcast,
            model,
            toolbox: files(&home, &data)?,
            notebook: true,
            driven: Driven::ByNobody,
        };
        Self::of(home, &data, parts)
    }

    /// The same with this model and these tools, and nobody who acts on what is due.
    pub(crate) fn by_hand(
        model: Arc<dyn Model>,
        toolbox: Arc<dyn Toolbox>,
    ) -> anyhow::Result<Self> {
        let (home, data) = home()?;
        let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite"))?);
        let broadcast = Arc::new(InProcessBroadcast::default());
        let driven = Driven::ByNobody;
        let parts = Parts { journal, broadcast, model, toolbox, notebook: false, driven };
        Self::of(home, &data, parts)
    }

    /// The same with this model and files, driven by its lane.
    pub(crate) fn over_files(model: Arc<dyn Model>) -> anyhow::Result<Self> {
        let (home, data) = home()?;
        let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite"))?);
        let broadcast = Arc::new(InProcessBroadcast::default());
        let toolbox = files(&home, &data)?;
        let driven = Driven::ByItsLane;
        let parts = Parts { journal, broadcast, model, toolbox, notebook: false, driven };
        Self::of(home, &data, parts)
    }

    /// Where the files of sessions are.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace")
    }

    fn with(model: Arc<AtOnce>, driven: Driven) -> anyhow::Result<Self> {
        let (home, data) = home()?;
        Self::in_home(home, &data, model, driven)
    }

    fn in_home(
        home: tempfile::TempDir,
        data: &Path,
        model: Arc<AtOnce>,
        driven: Driven,
    ) -> anyhow::Result<Self> {
        let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite"))?);
        let broadcast = Arc::new(InProcessBroadcast::default());
        let (toolbox, notebook) = (files(&home, data)?, !model.keeps);
        Self::of(home, data, Parts { journal, broadcast, model, toolbox, notebook, driven })
    }

    fn of(home: tempfile::TempDir, data: &Path, parts: Parts) -> anyhow::Result<Self> {
        let Parts { journal, broadcast, model, toolbox, notebook, driven } = parts;
        let (lane, worker) = in_process();
        let ports = Ports {
            journal: journal.clone(),
            memory: journal,
            lane,
            broadcast,
            profiles: default_profiles(&model),
            model,
            toolbox,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            policy: Arc::default(),
            handover: None,
            session_label: false,
            notebook: Arc::new(
                planwright_outbound::notebook_object_store::ObjectStoreNotebooks::in_directory(
                    data,
                )?,
            ),
            roles: planwright_runtime::ports::model::Roles::default(),
        };
        let notebook = NotebookSettings { enabled: notebook, note_every: 2 };
        let settings = Settings { notebook, ..Settings::default() };
        let runtime = Runtime::new(&ports, &settings);
        let stopping = watch::Sender::new(false);
        if driven == Driven::ByItsLane {
            tokio::spawn(runtime.housekeeping.clone().run(stopping.subscribe()));
            tokio::spawn(worker.run(
                runtime.engine.clone(),
                Scope::Everything,
                stopping.subscribe(),
            ));
        }
        Ok(Self { runtime, home, _stopping: stopping })
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.home.path().join("data/journal.sqlite")
    }

    /// Says a line and waits until nothing is under way.
    pub(crate) async fn does(&self, identity: &SessionKey, line: &str) -> anyhow::Result<()> {
        let person = person("ada", "bench", Standing::Decides);
        let mut subscription = self.runtime.queries.subscribe(identity);
        let spoken = Spoken {
            identity: identity.clone(),
            transport: None,
            person: person.clone(),
            id: fresh_id(),
            line: line.into(),
        };
        match self.runtime.commands.handle_line(spoken).await? {
            Reply::Accepted { .. } => {}
            Reply::Revision(view) => {
                self.runtime.commands.shown(identity, &person, view.digest).await?;
            }
            other @ (Reply::Refused(_)
            | Reply::Unreadable(_)
            | Reply::Status(_)
            | Reply::Diff(_)
            | Reply::Plans(_)
            | Reply::Comments(_)
            | Reply::Moved { .. }
            | Reply::Sessions(_)
            | Reply::Work(_)
            | Reply::Memory(_)
            | Reply::Notebook(_)
            | Reply::Nothing(_)
            | Reply::Help) => anyhow::bail!("{line}: {other:?}"),
        }
        loop {
            let session = self.runtime.queries.session(identity).await?;
            if next(&session).is_rest() {
                return Ok(());
            }
            subscription.next().await;
        }
    }
}

/// A model that answers at once: plans when planning, reports when executing, else says a sentence.
/// It keeps the requests that began a turn.
#[derive(Default)]
pub(crate) struct AtOnce {
    keeps: bool,
    /// How often it was asked.
    requests: AtomicU64,
    openings: Mutex<Vec<ModelRequest>>,
}

impl AtOnce {
    /// The requests that began a turn, in order.
    pub(crate) fn openings(&self) -> Vec<ModelRequest> {
        self.openings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How much it takes at once, where that is measured too.
const WINDOW_TOKENS: usize = 32_000;

#[async_trait]
impl Model for AtOnce {
    async fn answer(
        &self,
        request: &ModelRequest,
        _preview: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let at = request
            .messages
            .iter()
            .rposition(|message| matches!(message, Message::User(_)))
            .unwrap_or(0);
        let since = &request.messages[at..];
        let is_first = !since.iter().any(|message| matches!(message, Message::Assistant { .. }));
        if self.keeps && is_first {
            self.openings.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        }
        let said = match since.first() {
            Some(Message::User(text)) => text.as_str(),
            Some(Message::Assistant { .. } | Message::Tool { .. }) | None => "",
        };
        let requests = self.requests.fetch_add(1, Ordering::Relaxed);
        let planning = request.tools.iter().any(|tool| tool.name == "plan_set_content");
        let call = |tool: &str, arguments: serde_json::Value| {
            vec![WireCall {
                wire_id: "call_0".into(),
                tool: tool.into(),
                arguments: arguments.to_string(),
            }]
        };
        let calls = if is_first && said.starts_with("Execute") {
            call("plan_report", json!({"status": "done", "summary": "written as planned"}))
        } else if is_first && planning {
            call("plan_set_content", json!({"plan_markdown": nth(&PLANS, requests)}))
        } else {
            Vec::new()
        };
        let text =
            if calls.is_empty() { nth(&TURNS, requests + 1).to_owned() } else { String::new() };
        let size = |message: &Message| match message {
            Message::User(text) | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls, .. } => {
                text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>()
            }
        };
        let read = request.system.len() + request.messages.iter().map(size).sum::<usize>();
        let usage = Some(Usage::tokens(read as u64 / 4 + 500, 10));
        Ok(ModelAnswer { text, calls, usage, kept: Vec::new() })
    }

    fn window_tokens(&self) -> usize {
        // Those who look at requests want them whole; the others have what fits summed up, as people have.
        if self.keeps { 100_000_000 } else { WINDOW_TOKENS }
    }

    fn soft_tokens(&self) -> usize {
        self.window_tokens()
    }

    fn name(&self) -> String {
        "at once".into()
    }
}
