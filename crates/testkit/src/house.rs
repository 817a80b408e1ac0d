//! A whole Planwright in this process: runtime, journal, lane and tools, with a scripted model.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use planwright_domain::{
    actor::{Person, Standing},
    id::Seq,
    identity::SessionIdentity,
    next::{Next, next},
    session::{Session, SessionEvent},
};
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    clock_system::SystemClock,
    journal_sqlite::SqliteJournal,
    lane_in_process::{Scope, in_process},
    model_openai::{OpenAiModel, OpenAiSettings},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    inbound::{Reply, Spoken},
    ports::Recorded,
    runtime::{Ports, Runtime, Settings, fresh_id},
};
use tokio::{sync::watch, task::JoinHandle};

use crate::scripted_model::{Conduct, ScriptedModel};

/// How long anything may take to come to rest.
const REST_MAX: Duration = Duration::from_secs(20);

/// A whole Planwright in this process.
pub struct House {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// The model's server.
    pub model: ScriptedModel,
    home: tempfile::TempDir,
    window_tokens: usize,
    stopping: watch::Sender<bool>,
    working: JoinHandle<()>,
}

/// A person who may decide.
#[must_use]
pub fn ada() -> Person {
    Person::new("ada", "story", Standing::Decides)
}

/// A session by its key.
#[must_use]
pub fn session(key: &str) -> SessionIdentity {
    SessionIdentity::parse(&format!("cli:{key}")).expect("a key")
}

impl House {
    /// The local deployment, with a model that behaves so.
    pub async fn local(conduct: Conduct) -> Self {
        Self::with_window(conduct, 128_000).await
    }

    /// The same, with a model whose window holds so many tokens.
    pub async fn with_window(conduct: Conduct, window_tokens: usize) -> Self {
        let model = ScriptedModel::start(conduct).await.expect("a server");
        let home =
            tempfile::Builder::new().prefix("planwright-house-").tempdir().expect("a directory");
        fs::create_dir(home.path().join("data")).expect("a directory");
        let (runtime, stopping, working) = Self::wire(&home, &model, window_tokens);
        Self { runtime, model, home, window_tokens, stopping, working }
    }

    fn wire(
        home: &tempfile::TempDir,
        model: &ScriptedModel,
        window_tokens: usize,
    ) -> (Arc<Runtime>, watch::Sender<bool>, JoinHandle<()>) {
        let settings = OpenAiSettings {
            base_url: model.base_url(),
            model: "scripted".into(),
            api_key: None,
            window_tokens,
        };
        let data = home.path().join("data");
        let (lane, worker) = in_process();
        let ports = Ports {
            journal: Arc::new(
                SqliteJournal::open(&data.join("journal.sqlite")).expect("a journal"),
            ),
            lane,
            broadcast: Arc::new(InProcessBroadcast::default()),
            model: Arc::new(OpenAiModel::new(settings).expect("a model")),
            toolbox: Arc::new(
                FileToolbox::open(&home.path().join("workspace"), &data).expect("a workspace"),
            ),
            clock: Arc::new(SystemClock),
        };
        let runtime = Arc::new(Runtime::new(ports, Settings::default()));
        let stopping = watch::Sender::new(false);
        let working =
            tokio::spawn(worker.run(runtime.clone(), Scope::Everything, stopping.subscribe()));
        (runtime, stopping, working)
    }

    /// Ends this life at once, effects and all, and begins the next over the same data.
    pub fn dies_and_starts_again(&mut self) {
        self.working.abort();
        let (runtime, stopping, working) = Self::wire(&self.home, &self.model, self.window_tokens);
        self.runtime = runtime;
        self.stopping = stopping;
        self.working = working;
    }

    /// A path in the workspace.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("workspace").join(name)
    }

    /// Ada says a line.
    pub async fn says(&self, identity: &SessionIdentity, line: &str) -> Reply {
        let spoken =
            Spoken { identity: identity.clone(), person: ada(), id: fresh_id(), line: line.into() };
        let reply = self.runtime.hear(spoken).await.expect("an answer");
        if let Reply::Revision(view) = &reply
            && view.current
        {
            self.runtime.shown(identity, &ada(), view.digest).await.expect("an answer");
        }
        reply
    }

    /// Ada says a line that is accepted, and waits until nothing is under way.
    pub async fn does(&self, identity: &SessionIdentity, line: &str) -> Arc<Session> {
        let reply = self.says(identity, line).await;
        let fine = matches!(reply, Reply::Accepted { .. } | Reply::Revision(_));
        assert!(fine, "{line}: {reply:?}");
        self.rests(identity).await
    }

    /// Waits until nothing is under way.
    pub async fn rests(&self, identity: &SessionIdentity) -> Arc<Session> {
        self.until(identity, |session| {
            matches!(next(session), Next::Nothing | Next::WaitForPerson(_))
        })
        .await
    }

    /// Waits until the session is so.
    pub async fn until(
        &self,
        identity: &SessionIdentity,
        is_so: impl Fn(&Session) -> bool,
    ) -> Arc<Session> {
        let mut ear = self.runtime.ports.broadcast.subscribe(identity);
        let begun = Instant::now();
        loop {
            let session = self.runtime.session(identity).await.expect("a session");
            if is_so(&session) {
                return session;
            }
            assert!(begun.elapsed() < REST_MAX, "it does not come to rest: {session:?}");
            let _ = tokio::time::timeout(Duration::from_millis(200), ear.next()).await;
        }
    }

    /// Everything that was recorded.
    pub async fn events(&self, identity: &SessionIdentity) -> Vec<SessionEvent> {
        let events =
            self.runtime.ports.journal.events(identity, Seq(0), usize::MAX).await.expect("events");
        events.into_iter().map(|recorded: Recorded| recorded.event).collect()
    }

    /// The kinds of everything that was recorded.
    pub async fn kinds(&self, identity: &SessionIdentity) -> Vec<&'static str> {
        self.events(identity).await.iter().map(SessionEvent::kind).collect()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        self.working.abort();
    }
}
