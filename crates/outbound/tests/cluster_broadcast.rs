//! What nodes tell each other over NATS.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::time::Duration;

use planwright_domain::{session::Session, time::Time};
use planwright_outbound::broadcast_nats::{NatsBroadcast, NatsSecurity};
use planwright_runtime::ports::signal::{Broadcast as _, Hint, Hints, ListChange};
use planwright_testkit::{people::ada_key, servers::Nats};

fn change(at: i64) -> ListChange {
    let session = Session::new(ada_key("cli:talk-0001").unwrap());
    ListChange::of(&session, &session, &[], Time(at))
}

/// How often this is heard within a second.
async fn heard(hints: &mut dyn Hints, change: &ListChange) -> usize {
    let until = tokio::time::Instant::now() + Duration::from_secs(1);
    let (mut count, expected) = (0, Hint::Changed(Box::new(change.clone())));
    while let Ok(Some(hint)) = tokio::time::timeout_at(until, hints.next()).await {
        count += usize::from(hint == expected);
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_and_goes_hears_each_hint_of_another_node_once() {
    let server = Nats::start();
    let connect = async || {
        NatsBroadcast::connect(&server.address(), "test", &NatsSecurity::default()).await.unwrap()
    };
    let (here, there) = (connect().await, connect().await);
    let owner = change(0).row.session.owner;
    for at in 1..=5 {
        // A tab that was closed, a hint that nobody is there for, and the tab opened again.
        drop((here.hints(Some(owner)), here.hints(None)));
        here.hint(change(-at));
        let (mut own, mut all) = (here.hints(Some(owner)), here.hints(None));
        tokio::time::sleep(Duration::from_millis(300)).await;
        there.hint(change(at));
        let told = change(at);
        let both = tokio::join!(heard(&mut *own, &told), heard(&mut *all, &told));
        assert_eq!(both, (1, 1), "at {at}");
    }
}
