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
    ports::{
        model::{Model, default_profiles},
        signal::Lane,
    },
    runtime::{Ports, Runtime, Settings, fresh_id},
};
use planwright_testkit::{
    clock::ManualClock,
    scripted_model::{Said, ScriptedModel, Shape},
};
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
