//! What a lane owes its sessions, told once and run on every deployment.

use std::time::{Duration, Instant};

use planwright_domain::{
    command::{Issued, PersonCommand, SessionCommand},
    time::Time,
};
use planwright_format::body::{Packer, Place};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::commands::dispatch::dispatch;

use crate::{
    house::{House, ada, session},
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! lane_stories {
    ($build:expr) => {
        $crate::lane_stories!(@each $build;
            a_timer_fires_beside_sessions_that_this_version_cannot_read
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::lane_stories::$name($build).await;
        }
    )*};
}

/// More sessions than one sweep takes.
const UNREADABLE: u64 = 1_100;
/// How long a timer may take to fire beside them.
const FIRE_MAX: Duration = Duration::from_secs(300);
/// How long all of them may take to back off once.
const BACK_OFF_MAX: Duration = Duration::from_secs(300);

/// Sessions that hold an event of a newer version are due before everything else. They back off, so that the sweep
/// finds a timer that passed after them and that nobody woke.
pub async fn a_timer_fires_beside_sessions_that_this_version_cannot_read(
    build: impl AsyncFn(Conduct) -> House,
) {
    let house = build(std::sync::Arc::new(|_: &SeenRequest| ScriptedReply::text("there"))).await;
    let (talk, journal) = (session("talk-0001"), house.ports.journal.clone());
    house.does(&talk, "hello").await;
    house.sql(&format!(
        "INSERT INTO streams (owner, identity, version, updated_at, listed_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {UNREADABLE})
         SELECT (SELECT owner FROM streams LIMIT 1), 'cli:unreadable-' || n, 1, 1, 1 FROM numbers"
    ));
    house.set_due("identity LIKE 'cli:unreadable-%'", Time(0));
    let dreams: Vec<_> = (1..=UNREADABLE).map(|number| dream(&house, number)).collect();
    let (columns, first) = house.event_columns();
    house.sql(&format!(
        "INSERT INTO events ({columns}, at, kind, body)
         SELECT {first}, 1, '{DREAM}', dreams.column2 FROM streams, (VALUES {}) AS dreams
         WHERE streams.identity = dreams.column1",
        dreams.join(", ")
    ));
    let now = house.runtime.queries.now();
    let say = SessionCommand::Person(ada(), PersonCommand::Say { text: "and now?".into() });
    dispatch(&*journal, &talk, Issued::new(fresh_id(), now, say)).await.expect("an answer");
    house.set_due(&format!("identity = '{}'", talk.identity), now);
    let begun = Instant::now();
    while house.model.request_count() < 2 {
        assert!(begun.elapsed() < FIRE_MAX, "the second message is not answered");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let failed =
        "SELECT COUNT(*) FROM streams WHERE identity LIKE 'cli:unreadable-%' AND failures > 0";
    let begun = Instant::now();
    while house.sql(failed) != UNREADABLE.to_string() {
        assert!(begun.elapsed() < BACK_OFF_MAX, "{} backed off", house.sql(failed));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A kind of event that no version knows.
const DREAM: &str = "dream_dreamt";

/// A session's identity and such an event, as values of a statement.
fn dream(house: &House, number: u64) -> String {
    let key = session(&format!("unreadable-{number}"));
    let place = Place::Event { session: &key.to_string(), seq: 1, kind: DREAM, at: 1 };
    let body = Packer::new().expect("a packer").seal(&place, 1, &"dream").expect("a body");
    format!("('{}', {})", key.identity, house.bytes(&body))
}
