//! One step at a time, with a clock that moves only when the test says so.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use planwright_domain::{
    actor::Standing,
    attempt::ModelAttempt,
    command::{PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, Seq},
    identity::SessionKey,
    next::{Due, Next, next},
    quota::Quota,
    time::Time,
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    journal_sqlite::SqliteJournal,
    model_http::{HttpModel, HttpSettings, Wire},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    engine::Engine,
    engine::{advance::Driver, attempt::Attempt},
    ports::Ports,
    ports::{
        model::{Model, Price, default_profiles},
        notebook::{Kept, NotebookError, Notebooks, Put},
        signal::{Lane, Signal},
        toolbox::{Ran, Tool, ToolRun, Toolbox},
    },
    runtime::Runtime,
    settings::{Limits, Settings},
};
use planwright_testkit::people::{ada_key, person};
use planwright_testkit::{
    clock::ManualClock,
    house::ada,
    scripted_model::{ScriptedModel, ScriptedReply, Shape},
};
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

/// A lane that nobody drives: the test does.
struct ByHand;

impl Lane for ByHand {
    fn wake(&self, _: &SessionKey, _: Seq, _: Due) {}
}

struct Bench {
    ports: Ports,
    runtime: Runtime,
    clock: Arc<ManualClock>,
    model: ScriptedModel,
    _home: tempfile::TempDir,
}

fn talk() -> SessionKey {
    ada_key("cli:talk-0001").unwrap()
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.runtime.engine.take_dropped_attempts(), [], "dropped open");
        }
    }
}

impl Bench {
    async fn new(said: Vec<ScriptedReply>) -> Self {
        let model = ScriptedModel::saying(said).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let settings = HttpSettings {
            window_tokens: 100_000,
            price: None,
            ..HttpSettings::new(Wire::Chat, &model.base_url(), "m")
        };
        let clock = Arc::new(ManualClock::at(Time(1_000_000)));
        let asked: Arc<dyn Model> = Arc::new(HttpModel::new(settings).unwrap());
        let journal = Arc::new(SqliteJournal::open(&data.join("journal.sqlite")).unwrap());
        let ports = Ports {
            journal: journal.clone(),
            memory: journal,
            lane: Arc::new(ByHand),
            broadcast: Arc::new(InProcessBroadcast::default()),
            profiles: default_profiles(&asked),
            model: asked,
            toolbox: Arc::new(FileToolbox::open(&home.path().join("workspace"), &data).unwrap()),
            clock: clock.clone(),
            ids: Arc::new(RandomIds),
            policy: Arc::default(),
            handover: None,
            session_label: false,
            notebook: Arc::new(
                planwright_outbound::notebook_object_store::ObjectStoreNotebooks::in_directory(
                    &data,
                )
                .unwrap(),
            ),
            roles: planwright_runtime::ports::model::Roles::default(),
        };
        let runtime = Runtime::new(&ports, &Settings::default());
        Self { ports, runtime, clock, model, _home: home }
    }

    /// A new life over other ports, before anything has happened.
    fn rewire(&mut self, change: impl FnOnce(&mut Ports)) {
        change(&mut self.ports);
        assert_eq!(self.runtime.engine.take_dropped_attempts(), [], "dropped open");
        self.runtime = Runtime::new(&self.ports, &Settings::default());
    }

    /// A new life in which an effect must begin within this time.
    fn start_within(&mut self, start_by_ms: i64) {
        let settings = Settings { start_by_ms, ..Settings::default() };
        assert_eq!(self.runtime.engine.take_dropped_attempts(), [], "dropped open");
        self.runtime = Runtime::new(&self.ports, &settings);
    }

    async fn says(&self, text: &str) {
        let person = person("ada", "cli", Standing::Speaks);
        let command = SessionCommand::Person(person, PersonCommand::Say { text: text.into() });
        self.runtime.engine.dispatch(&talk(), fresh_id(), command).await.unwrap();
    }

    /// Somebody began the turn that is due, and its first model call, and has not come back since.
    async fn begins(&self, incarnation: Incarnation, deadline: Time) {
        let Next::StartTurn(queued) = self.next().await else { panic!("no turn is due") };
        let (turn, profile, recalled) = (fresh_id().0.into(), None, Default::default());
        let call = Some(Bracket { incarnation, start_by: deadline, deadline });
        let start = SystemCommand::StartTurn { turn, queued, profile, recalled, call };
        let start = SessionCommand::System(start);
        self.runtime.engine.dispatch(&talk(), fresh_id(), start).await.unwrap();
        assert!(matches!(self.next().await, Next::AwaitModel { .. }));
    }

    async fn advance(&self) -> Due {
        self.runtime.engine.advance(&talk()).await.unwrap().due
    }

    async fn next(&self) -> Next {
        next(&self.runtime.queries.session(&talk()).await.unwrap())
    }
}

#[tokio::test]
async fn one_advance_does_one_thing() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    assert_eq!(bench.advance().await, Due::Never, "the turn has begun, and the model answered");
    assert_eq!((bench.model.requests().len(), bench.next().await), (1, Next::Nothing));
    assert_eq!(bench.advance().await, Due::Never, "a spare wake-up finds nothing to do");
    assert_eq!(bench.model.requests().len(), 1);
}

#[tokio::test]
async fn a_retry_waits_for_its_time_and_not_longer() {
    let bench = Bench::new(vec![
        ScriptedReply::text("").shaped(Shape::TooManyRequests),
        ScriptedReply::text("hi"),
    ])
    .await;
    bench.says("hello").await;
    let due = bench.advance().await;
    let Due::At(time) = due else { panic!("{due:?}") };
    assert_eq!(time, Time(1_020_000), "the server asked for 20 ms");
    assert_eq!((bench.advance().await, bench.model.requests().len()), (due, 1), "too early");
    bench.clock.pass_micros(20_000);
    assert_eq!((bench.advance().await, bench.model.requests().len()), (Due::Never, 2));
}

#[tokio::test]
async fn an_effect_of_this_process_is_awaited_until_its_deadline() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    let (deadline, life) = (Time(9_000_000), Incarnation(Uuid::from_u128(7)));
    bench.begins(life, deadline).await;
    let advance = async || {
        bench.runtime.engine.advance_as(&talk(), Driver::TakesOver(life)).await.unwrap().due
    };
    assert_eq!(advance().await, Due::At(deadline), "someone may still be at it");
    bench.clock.pass_micros(8_000_000);
    assert_eq!(advance().await, Due::Now, "nobody can be at it any more");
    assert_eq!(bench.advance().await, Due::Never);
    assert_eq!(bench.model.requests().len(), 1);
}

/// A wake-up that came later has begun it, on another node: who was there before leaves it alone.
#[tokio::test]
async fn whoever_goes_on_does_not_take_over_what_somebody_else_has_begun() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    let (deadline, other) = (Time(9_000_000), Incarnation(Uuid::from_u128(7)));
    bench.begins(other, deadline).await;
    let earlier = Incarnation(Uuid::from_u128(6));
    let advance = async |driver| bench.runtime.engine.advance_as(&talk(), driver).await.unwrap();
    let left = advance(Driver::GoesOn(earlier)).await;
    assert_eq!((left.due, left.lost), (Due::At(deadline), None), "somebody is at it");
    assert!(
        left.begun_by_another,
        "who may be one that the lane has given up: the session is woken once more"
    );
    assert!(matches!(bench.next().await, Next::AwaitModel { .. }));
    let taken = advance(Driver::TakesOver(earlier)).await;
    assert_eq!((taken.due, taken.lost.is_some()), (Due::Now, true), "nobody else is left");
}

/// An error, a panic or a caller that went away left it open: nobody waits ten minutes for that.
#[tokio::test]
async fn an_effect_of_this_process_that_nobody_works_on_is_orphaned_at_once() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    let (deadline, incarnation) = (Time(i64::MAX), bench.runtime.engine.incarnation());
    bench.begins(incarnation, deadline).await;
    let advanced = bench.runtime.engine.advance(&talk()).await.unwrap();
    assert_eq!((advanced.due, advanced.lost.is_some()), (Due::Now, true), "the lane backs off");
    assert_eq!(bench.advance().await, Due::Never);
    assert_eq!(bench.model.requests().len(), 1);
}

/// What kinds of events there are.
async fn kinds(bench: &Bench) -> Vec<&'static str> {
    let events = bench.runtime.queries.events(&talk(), Seq(0), 500).await.unwrap();
    events.iter().map(|recorded| recorded.event.kind()).collect()
}

#[tokio::test]
async fn a_write_that_could_not_begin_in_time_is_no_doubt_and_is_made_once() {
    let write = ScriptedReply::call("write_file", &json!({"path": "a.txt", "content": "a"}));
    let mut bench = Bench::new(vec![write, ScriptedReply::text("done")]).await;
    bench.says("write").await;
    while !matches!(bench.next().await, Next::AwaitPermission { .. }) {
        bench.advance().await;
    }
    let ask = bench.runtime.queries.session(&talk()).await.unwrap().ask.clone().unwrap();
    let spoken = Spoken {
        identity: talk(),
        transport: None,
        person: ada(),
        id: fresh_id(),
        line: format!("/allow {}", ask.digest.short()),
    };
    bench.runtime.commands.handle_line(spoken).await.unwrap();
    bench.start_within(0);
    let advanced = bench.runtime.engine.advance(&talk()).await.unwrap();
    assert_eq!((advanced.due, advanced.lost.is_some()), (Due::Now, true));
    let session = bench.runtime.queries.session(&talk()).await.unwrap();
    assert!(session.doubts.is_empty() && session.open.is_empty());
    assert_eq!(kinds(&bench).await.iter().filter(|kind| **kind == "call_abandoned").count(), 1);
    bench.start_within(30_000);
    while !bench.next().await.is_rest() {
        bench.advance().await;
    }
    let kinds = kinds(&bench).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "call_finished").count(), 1);
    assert!(!kinds.contains(&"call_in_doubt"));
}

/// A disconnected client drops the future in mid-commit; the watchers learn of the commit all the same.
#[tokio::test]
async fn a_command_whose_caller_goes_away_is_told_to_those_who_watch() {
    let bench = Bench::new(vec![]).await;
    let identity = talk();
    let mut watching = bench.runtime.queries.subscribe(&identity);
    for number in 0..20_u64 {
        let person = person("ada", "cli", Standing::Speaks);
        let command = SessionCommand::Person(person, PersonCommand::Say { text: "hi".into() });
        let mut asking = Box::pin(bench.runtime.engine.dispatch(&identity, fresh_id(), command));
        assert!(futures_util::poll!(&mut asking).is_pending(), "it takes a commit");
        drop(asking);
        let moved = tokio::time::timeout(Duration::from_secs(10), watching.next()).await;
        assert_eq!(moved.unwrap(), Some(Signal::Moved(Seq(number + 1))));
    }
}

#[tokio::test]
async fn an_effect_of_another_process_is_orphaned_at_once() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    let deadline = Time(i64::MAX);
    let incarnation = Incarnation(Uuid::from_u128(1));
    bench.begins(incarnation, deadline).await;
    assert_eq!(bench.advance().await, Due::Now);
    assert!(matches!(
        bench.next().await,
        Next::CallModel { attempt: ModelAttempt { number: 2, .. }, .. }
    ));
}

/// Whoever may stand in may cost: without a price of theirs, no amount can be leased.
#[tokio::test]
async fn an_amount_can_be_leased_only_if_every_model_that_may_be_asked_has_a_price() {
    let mut bench = Bench::new(vec![]).await;
    let model = |price| -> Arc<dyn Model> {
        let settings = HttpSettings {
            price,
            ..HttpSettings::new(Wire::Chat, "http://127.0.0.1:9/v1", "other")
        };
        Arc::new(HttpModel::new(settings).unwrap())
    };
    let price =
        Price { input_micros: 1, output_micros: 1, cached_micros: 1, cache_write_micros: 1 };
    let priced = model(Some(price));
    bench.rewire(|ports| ports.profiles = default_profiles(&priced));
    bench.rewire(|ports| ports.model = priced.clone());
    assert!(bench.runtime.queries.terms().priced);
    bench.rewire(|ports| ports.roles.fallbacks = vec![priced]);
    assert!(bench.runtime.queries.terms().priced);
    bench.rewire(|ports| ports.roles.execute = Some(model(None)));
    assert!(!bench.runtime.queries.terms().priced);
}

fn at(server: &ScriptedModel) -> Arc<dyn Model> {
    let settings = HttpSettings::new(Wire::Chat, &server.base_url(), "m");
    Arc::new(HttpModel::new(settings).unwrap())
}

impl Bench {
    /// Ada says a line; everything that is due is done, however long it has to be waited for.
    async fn does(&self, line: &str) {
        let spoken = Spoken {
            identity: talk(),
            transport: None,
            person: ada(),
            id: fresh_id(),
            line: line.into(),
        };
        let reply = self.runtime.commands.handle_line(spoken).await.unwrap();
        if let Reply::Revision(view) = &reply {
            self.runtime.commands.shown(&talk(), &ada(), view.digest).await.unwrap();
        }
        while !self.next().await.is_rest() {
            if let Due::At(time) = self.advance().await {
                self.clock.pass_micros(time.0 - self.runtime.queries.now().0);
            }
        }
    }
}

#[tokio::test]
async fn one_model_talks_another_plans_and_a_third_executes() {
    let plan = ScriptedReply::call("plan_set_content", &json!({"plan_markdown": "# P\n\n1. a\n"}));
    let report = ScriptedReply::call("plan_report", &json!({"status": "done", "summary": "done"}));
    let planner = ScriptedModel::saying(vec![plan, ScriptedReply::text("written")]).await.unwrap();
    let worker = ScriptedModel::saying(vec![report, ScriptedReply::text("done")]).await.unwrap();
    let mut bench =
        Bench::new(vec![ScriptedReply::text("hello"), ScriptedReply::text("and again")]).await;
    bench.rewire(|ports| ports.roles.plan = Some(at(&planner)));
    bench.rewire(|ports| ports.roles.execute = Some(at(&worker)));
    for line in ["hi", "/plan on", "plan it", "/plan show", "/plan approve", "thanks"] {
        bench.does(line).await;
    }
    let asked = [&bench.model, &planner, &worker].map(|server| server.requests().len());
    assert_eq!(asked, [2, 2, 2]);
}

#[tokio::test]
async fn another_model_stands_in_for_one_that_stays_busy_and_the_next_turn_begins_with_the_first() {
    let busy = || ScriptedReply::text("").shaped(Shape::ServerError);
    let other = ScriptedModel::saying(vec![ScriptedReply::text("I stand in")]).await.unwrap();
    let mut bench = Bench::new(vec![busy(), busy(), ScriptedReply::text("I am back")]).await;
    bench.rewire(|ports| ports.roles.fallbacks = vec![at(&other)]);
    bench.does("hello").await;
    assert_eq!((bench.model.requests().len(), other.requests().len()), (2, 1));
    bench.does("hello again").await;
    assert_eq!((bench.model.requests().len(), other.requests().len()), (3, 1));
    let rows = bench.runtime.queries.requests(&talk()).await.unwrap();
    let came: Vec<_> = rows.iter().map(|row| row.came.split(':').next().unwrap()).collect();
    assert_eq!(came, ["failed", "failed", "answered", "answered"]);
}

/// A store that fails to remove a page this often.
struct Failing(Arc<dyn Notebooks>, AtomicU32);

#[async_trait::async_trait]
impl Notebooks for Failing {
    async fn read(&self, of: &SessionKey, name: &str) -> Result<Option<Kept>, NotebookError> {
        self.0.read(of, name).await
    }

    async fn write(
        &self,
        of: &SessionKey,
        name: &str,
        text: &str,
        expected: Option<&str>,
    ) -> Result<Put, NotebookError> {
        self.0.write(of, name, text, expected).await
    }

    async fn list(&self, of: &SessionKey) -> Result<Vec<String>, NotebookError> {
        self.0.list(of).await
    }

    async fn remove(&self, of: &SessionKey, name: &str) -> Result<(), NotebookError> {
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        let left = self.1.fetch_update(set, fetch, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(NotebookError("the store is away".into())),
            Err(_) => self.0.remove(of, name).await,
        }
    }
}

#[tokio::test]
async fn the_pages_of_a_deleted_session_are_removed_however_often_that_fails_first_and_then_it_is_erased()
 {
    let mut bench = Bench::new(vec![]).await;
    let store = bench.ports.notebook.clone();
    let failing = Arc::new(Failing(store.clone(), 20.into()));
    bench.rewire(|ports| ports.notebook = failing.clone());
    bench.does("/notebook on").await;
    store.write(&talk(), "findings.md", "secret", None).await.unwrap();
    bench.does("/delete yes").await;
    assert_eq!(store.list(&talk()).await.unwrap(), Vec::<String>::new());
    assert_eq!(failing.1.load(Ordering::SeqCst), 0, "each failure was tried again");
    assert_eq!(kinds(&bench).await, Vec::<&str>::new());
    assert_eq!(
        *bench.runtime.queries.session(&talk()).await.unwrap(),
        planwright_domain::session::Session::erased(talk())
    );
    assert_eq!(bench.next().await, Next::Nothing);
}

/// Invariant: `effects-bracketed`.
#[tokio::test]
async fn an_attempt_that_is_cut_off_is_noticed_and_then_called_an_orphan() {
    let bench = Bench::new(vec![ScriptedReply::text("hi")]).await;
    bench.says("hello").await;
    let (key, is_open) = (talk(), async || matches!(bench.next().await, Next::AwaitModel { .. }));
    tokio::select! {
        biased;
        () = async { while !is_open().await { tokio::task::yield_now().await } } => {}
        advanced = bench.runtime.engine.advance(&key) => panic!("it was not cut off: {advanced:?}"),
    }
    let Next::AwaitModel { attempt, .. } = bench.next().await else { panic!("it is open") };
    assert_eq!(bench.runtime.engine.take_dropped_attempts(), [Attempt::Model(attempt)]);
    let advanced = bench.runtime.engine.advance(&talk()).await.unwrap();
    assert_eq!((advanced.due, advanced.lost.is_some()), (Due::Now, true), "the lane backs off");
    assert_eq!(bench.advance().await, Due::Never, "it was made again");
}

/// A lane that nobody drives, and that remembers whom it was to wake.
#[derive(Default)]
struct Remembers(std::sync::Mutex<Vec<SessionKey>>);

impl Lane for Remembers {
    fn wake(&self, identity: &SessionKey, _: Seq, _: Due) {
        self.0.lock().unwrap().push(identity.clone());
    }
}

/// A turn that is begun and ended by one advance leaves its room to the next, and tells it at once.
#[tokio::test]
async fn a_turn_that_waits_for_room_is_woken_when_one_of_a_single_call_ends() {
    let thinks = Duration::from_millis(400);
    let mut bench = Bench::new(vec![ScriptedReply { thinks, ..ScriptedReply::text("hi") }]).await;
    let lane = Arc::new(Remembers::default());
    bench.rewire(|ports| ports.lane = lane.clone());
    let quota = Quota { turns: Some(1), ..Quota::default() };
    let limits = Limits { everyone: quota, ..Limits::default() };
    let settings = Settings { limits: Arc::new(limits), ..Settings::default() };
    bench.runtime = Runtime::new(&bench.ports, &settings);
    let other = ada_key("cli:talk-0002").unwrap();
    bench.says("hello").await;
    let person = person("ada", "cli", Standing::Speaks);
    let command = SessionCommand::Person(person, PersonCommand::Say { text: "and I?".into() });
    bench.runtime.engine.dispatch(&other, fresh_id(), command).await.unwrap();
    let (engine, first) = (bench.runtime.engine.clone(), talk());
    let advancing = tokio::spawn(async move { engine.advance(&first).await });
    while bench.model.thinking() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let held = bench.runtime.engine.advance(&other).await.unwrap().due;
    assert!(matches!(held, Due::At(_)), "{held:?}");
    lane.0.lock().unwrap().clear();
    assert_eq!(advancing.await.unwrap().unwrap().due, Due::Never);
    assert!(lane.0.lock().unwrap().contains(&other), "who waits is woken");
}

/// A toolbox in which another delivery starts the same calls, just before they are started here.
struct Overtaken {
    inner: Arc<dyn Toolbox>,
    engine: OnceLock<Weak<Engine>>,
    is_armed: AtomicBool,
    begun: Notify,
    may_end: Notify,
    ran: AtomicU32,
}

#[async_trait::async_trait]
impl Toolbox for Overtaken {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.inner.tools()
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        self.inner.check(tool, arguments)
    }

    async fn refresh(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            let engine = self.engine.get().and_then(Weak::upgrade).unwrap();
            let other = Incarnation(Uuid::from_u128(9));
            tokio::spawn(async move { engine.advance_as(&talk(), Driver::TakesOver(other)).await });
            self.begun.notified().await;
        }
    }

    async fn run(&self, run: ToolRun) -> Ran {
        self.ran.fetch_add(1, Ordering::SeqCst);
        self.begun.notify_one();
        self.may_end.notified().await;
        self.inner.run(run).await
    }
}

/// The engine delivered a session to two nodes: only the one whose start was accepted makes the call.
#[tokio::test]
async fn calls_that_another_delivery_started_are_not_made_here() {
    let list = ScriptedReply::call("list_files", &json!({"path": "."}));
    let mut bench = Bench::new(vec![list, ScriptedReply::text("done")]).await;
    let toolbox = Arc::new(Overtaken {
        inner: bench.ports.toolbox.clone(),
        engine: OnceLock::new(),
        is_armed: AtomicBool::new(false),
        begun: Notify::new(),
        may_end: Notify::new(),
        ran: AtomicU32::new(0),
    });
    bench.rewire(|ports| ports.toolbox = toolbox.clone());
    bench.says("list").await;
    while !matches!(bench.next().await, Next::RunCalls(_)) {
        bench.advance().await;
    }
    let engine = bench.runtime.engine.clone();
    toolbox.engine.set(Arc::downgrade(&engine)).unwrap();
    toolbox.is_armed.store(true, Ordering::SeqCst);
    let identity = talk();
    let advancing =
        engine.advance_as(&identity, Driver::TakesOver(Incarnation(Uuid::from_u128(8))));
    let advanced = tokio::time::timeout(Duration::from_secs(5), advancing).await;
    assert_eq!(toolbox.ran.load(Ordering::SeqCst), 1, "one attempt, one effect");
    assert!(advanced.is_ok(), "who did not start it does not wait for it");
    toolbox.may_end.notify_one();
}
