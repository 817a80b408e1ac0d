//! What is kept of a conversation after it was summed up, and what becomes of one that cannot be used.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::sync::Arc;

use planwright_domain::id::Seq;
use planwright_runtime::ports::journal::KeptView;
use planwright_testkit::{
    house::{House, session},
    scripted_model::{ScriptedReply, SeenRequest},
};
use serde_json::Value;

fn messages(house: &House) -> Vec<Value> {
    house.model.requests().last().unwrap()["messages"].as_array().unwrap().clone()
}

/// After a restart a request goes on where the one before ended: from what was kept, and where that has another form, is
/// damaged, or is further than the session, from the events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_goes_on_alike_from_what_was_kept_and_from_the_events() {
    let conduct = |seen: &SeenRequest| {
        let system = seen.body["messages"][0]["content"].as_str().unwrap_or_default();
        let is_summary = system.starts_with("You keep the memory");
        ScriptedReply::text(if is_summary { "It is about a valve." } else { "Noted." })
    };
    let mut house = House::local(Arc::new(conduct)).await;
    let talk = session("kept-0001");
    for number in 0..60 {
        house.does(&talk, &format!("thing {number}")).await;
    }
    house.does(&talk, "/compact").await;
    house.does(&talk, "the first after it").await;
    let good = house.ports.journal.kept_view(&talk).await.unwrap().expect("it is kept");
    assert!(good.upto > Seq(256) && good.text.contains("It is about a valve."));
    let mut before = messages(&house);
    let upto = Seq(good.upto.0 + 1_000_000);
    let unusable = [
        good.clone(),
        KeptView { form: good.form + 1, ..good.clone() },
        KeptView { text: "{}".into(), ..good.clone() },
        KeptView { text: good.text.replace("valve", "VALVE"), upto, ..good.clone() },
    ];
    for view in unusable {
        house.ports.journal.keep_view(&talk, view.clone()).await.unwrap();
        house.dies_and_starts_again().await;
        house.does(&talk, "and again").await;
        let now = messages(&house);
        assert_eq!(now[..before.len()], before, "from {view:?}");
        before = now;
    }
    // One that is whole is used, and no event before it is read.
    let changed = KeptView { text: good.text.replace("valve", "VALVE"), ..good };
    house.ports.journal.keep_view(&talk, changed).await.unwrap();
    house.dies_and_starts_again().await;
    house.does(&talk, "and again").await;
    assert!(format!("{:?}", messages(&house)).contains("It is about a VALVE."));
}
