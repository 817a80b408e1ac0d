//! One step at a time, with a clock that moves only when the test says so.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::sync::Arc;

use planwright_domain::{
    actor::{Person, Standing},
    command::{PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, Seq},
    identity::SessionIdentity,
    next::{Due, Next, next},
    time::Time,
};
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    journal_sqlite::SqliteJournal,
    model_http::{HttpModel, HttpSettings, Wire},
    toolbox_files::FileToolbox,
};
use planwright_runtime::{
    inbound::{Reply, Spoken},
    ports::{
        model::{Model, Price, default_profiles},
        signal::Lane,
    },
    runtime::{Ports, Runtime, Settings, fresh_id},
};
use planwright_testkit::{
    clock::ManualClock,
    house::ada,
    scripted_model::{Said, ScriptedModel, Shape},
};
use serde_json::json;
use uuid::Uuid;

/// A lane that nobody drives: the test does.
struct ByHand;

impl Lane for ByHand {
    fn wake(&self, _: &SessionIdentity, _: Seq, _: Due) {}
}

struct Bench {
    runtime: Runtime,
    clock: Arc<ManualClock>,
    model: ScriptedModel,
    _home: tempfile::TempDir,
}

fn talk() -> SessionIdentity {
    SessionIdentity::parse("cli:talk-0001").unwrap()
}

impl Bench {
    async fn new(said: Vec<Said>) -> Self {
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
            policy: Arc::default(),
            session_label: false,
            notebook: Arc::new(
                planwright_outbound::notebook_object_store::ObjectStoreNotebooks::in_directory(
                    &data,
                )
                .unwrap(),
            ),
            roles: planwright_runtime::ports::model::Roles::default(),
        };
        Self { runtime: Runtime::new(ports, Settings::default()), clock, model, _home: home }
    }

    async fn says(&self, text: &str) {
        let person = Person::new("ada", "cli", Standing::Speaks);
        let command = SessionCommand::Person(person, PersonCommand::Say { text: text.into() });
        self.runtime.dispatch(&talk(), fresh_id(), command).await.unwrap();
    }

    async fn advance(&self) -> Due {
        self.runtime.advance(&talk()).await.unwrap().due
    }

    async fn next(&self) -> Next {
        next(&self.runtime.session(&talk()).await.unwrap())
    }
}

#[tokio::test]
async fn one_advance_does_one_thing() {
    let bench = Bench::new(vec![Said::text("hi")]).await;
    bench.says("hello").await;
    assert_eq!(bench.advance().await, Due::Now, "the turn has started");
    assert_eq!(bench.model.requests().len(), 0);
    assert_eq!(bench.advance().await, Due::Never, "the model has answered");
    assert_eq!((bench.model.requests().len(), bench.next().await), (1, Next::Nothing));
    assert_eq!(bench.advance().await, Due::Never, "a spare wake-up finds nothing to do");
    assert_eq!(bench.model.requests().len(), 1);
}

#[tokio::test]
async fn a_retry_waits_for_its_time_and_not_longer() {
    let bench =
        Bench::new(vec![Said::text("").shaped(Shape::TooManyRequests), Said::text("hi")]).await;
    bench.says("hello").await;
    bench.advance().await;
    let due = bench.advance().await;
    let Due::At(time) = due else { panic!("{due:?}") };
    assert_eq!(time, Time(1_020_000), "the server asked for 20 ms");
    assert_eq!((bench.advance().await, bench.model.requests().len()), (due, 1), "too early");
    bench.clock.pass_micros(20_000);
    assert_eq!((bench.advance().await, bench.model.requests().len()), (Due::Never, 2));
}

#[tokio::test]
async fn an_effect_of_this_process_is_awaited_until_its_deadline() {
    let bench = Bench::new(vec![Said::text("hi")]).await;
    bench.says("hello").await;
    bench.advance().await;
    let Next::CallModel { turn, round, attempt, .. } = bench.next().await else {
        panic!("no model call is due")
    };
    let deadline = Time(9_000_000);
    let bracket = Bracket { incarnation: bench.runtime.incarnation, start_by: deadline, deadline };
    let start = SystemCommand::StartModelCall { turn, round, attempt, bracket };
    bench.runtime.dispatch(&talk(), fresh_id(), SessionCommand::System(start)).await.unwrap();
    assert_eq!(bench.advance().await, Due::At(deadline), "someone may still be at it");
    bench.clock.pass_micros(8_000_000);
    assert_eq!(bench.advance().await, Due::Now, "nobody can be at it any more");
    assert_eq!(bench.advance().await, Due::Never);
    assert_eq!(bench.model.requests().len(), 1);
}

#[tokio::test]
async fn an_effect_of_another_process_is_orphaned_at_once() {
    let bench = Bench::new(vec![Said::text("hi")]).await;
    bench.says("hello").await;
    bench.advance().await;
    let Next::CallModel { turn, round, attempt, .. } = bench.next().await else {
        panic!("no model call is due")
    };
    let deadline = Time(i64::MAX);
    let incarnation = Incarnation(Uuid::from_u128(1));
    let bracket = Bracket { incarnation, start_by: deadline, deadline };
    let start = SystemCommand::StartModelCall { turn, round, attempt, bracket };
    bench.runtime.dispatch(&talk(), fresh_id(), SessionCommand::System(start)).await.unwrap();
    assert_eq!(bench.advance().await, Due::Now);
    assert!(matches!(bench.next().await, Next::CallModel { attempt: 2, .. }));
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
    let price = Price { input_micros: 1, output_micros: 1, cached_micros: 1 };
    let priced = model(Some(price));
    bench.runtime.ports.profiles = default_profiles(&priced);
    bench.runtime.ports.model = priced.clone();
    assert!(bench.runtime.terms().priced);
    bench.runtime.ports.roles.fallbacks = vec![priced];
    assert!(bench.runtime.terms().priced);
    bench.runtime.ports.roles.execute = Some(model(None));
    assert!(!bench.runtime.terms().priced);
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
        let reply = self.runtime.hear(spoken).await.unwrap();
        if let Reply::Revision(view) = &reply {
            self.runtime.shown(&talk(), &ada(), view.digest).await.unwrap();
        }
        while !self.next().await.is_rest() {
            if let Due::At(time) = self.advance().await {
                self.clock.pass_micros(time.0 - self.runtime.ports.clock.now().0);
            }
        }
    }
}

#[tokio::test]
async fn one_model_talks_another_plans_and_a_third_executes() {
    let plan = Said::call("plan_set_content", &json!({"plan_markdown": "# P\n\n1. a\n"}));
    let report = Said::call("plan_report", &json!({"status": "done", "summary": "done"}));
    let planner = ScriptedModel::saying(vec![plan, Said::text("written")]).await.unwrap();
    let worker = ScriptedModel::saying(vec![report, Said::text("done")]).await.unwrap();
    let mut bench = Bench::new(vec![Said::text("hello"), Said::text("and again")]).await;
    bench.runtime.ports.roles.plan = Some(at(&planner));
    bench.runtime.ports.roles.execute = Some(at(&worker));
    for line in ["hi", "/plan on", "plan it", "/plan show", "/plan approve", "thanks"] {
        bench.does(line).await;
    }
    let asked = [&bench.model, &planner, &worker].map(|server| server.requests().len());
    assert_eq!(asked, [2, 2, 2]);
}

#[tokio::test]
async fn another_model_stands_in_for_one_that_stays_busy_and_the_next_turn_begins_with_the_first() {
    let busy = || Said::text("").shaped(Shape::ServerError);
    let other = ScriptedModel::saying(vec![Said::text("I stand in")]).await.unwrap();
    let mut bench = Bench::new(vec![busy(), busy(), Said::text("I am back")]).await;
    bench.runtime.ports.roles.fallbacks = vec![at(&other)];
    bench.does("hello").await;
    assert_eq!((bench.model.requests().len(), other.requests().len()), (2, 1));
    bench.does("hello again").await;
    assert_eq!((bench.model.requests().len(), other.requests().len()), (3, 1));
    let rows = bench.runtime.requests(&talk()).await.unwrap();
    let came: Vec<_> = rows.iter().map(|row| row.came.split(':').next().unwrap()).collect();
    assert_eq!(came, ["failed", "failed", "answered", "answered"]);
}
