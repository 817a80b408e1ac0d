//! The stories, on the local deployment.

use std::{sync::Arc, time::Duration};

use planwright_domain::{actor::Standing, id::Seq, identity::SessionKey};
use planwright_runtime::commands::reply::Reply;
use planwright_testkit::people::person;
use planwright_testkit::{
    house::{House, session},
    scripted_model::{ScriptedReply, SeenRequest, worker::worker},
    stories,
};

planwright_testkit::stories!(House::local);
planwright_testkit::work_stories!(House::local);
planwright_testkit::notebook_stories!(House::local);
planwright_testkit::lane_stories!(House::local);
planwright_testkit::list_stories!(House::local);
planwright_testkit::quota_stories!(House::local);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_does_not_fit_is_refused_in_words() {
    stories::a_conversation_that_does_not_fit_is_refused_in_words(
        House::with_window(worker(300, 1), 6_000).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_asked_twice_is_answered_the_same() {
    stories::a_decision_asked_twice_is_answered_the_same(House::local(worker(300, 1)).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_is_summed_up_and_the_plan_stays() {
    stories::what_was_said_is_summed_up_and_the_plan_stays(
        House::with_window(stories::talkative(), 6_000).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shortened_result_is_read_again_by_its_key() {
    stories::a_shortened_result_is_read_again_by_its_key(
        House::with_window(stories::forgetful(), 12_000).await,
    )
    .await;
}

/// Six hundred of one owner's sessions ask a model that takes a minute; another owner's is answered at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_with_many_sessions_does_not_keep_another_owner_waiting() {
    let house = House::local(Arc::new(|seen: &SeenRequest| {
        let thinks = if seen.last_message == "slowly" { 60 } else { 0 };
        ScriptedReply { thinks: Duration::from_secs(thinks), ..ScriptedReply::text("there") }
    }))
    .await;
    for number in 0..600 {
        house.says(&session(&format!("alpha-{number:04}")), "slowly").await;
    }
    while house.model.thinking() < 600 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let bea = person("bea", "story", Standing::Speaks);
    let late = SessionKey::named("cli:zulu-0001", bea.owner).unwrap();
    let heard = house.hears(bea, &late, "quickly").await;
    assert!(matches!(heard, Reply::Accepted { .. }), "{heard:?}");
    assert!(house.rests(&late).await.version > Seq(2), "her turn was taken");
    assert_eq!(house.model.thinking(), 600, "none of the first owner's was given up");
}
