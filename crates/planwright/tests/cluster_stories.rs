//! The stories, on the cluster deployment: the same source, other engines.

use planwright_testkit::{house::House, scripted_model::worker::worker, stories};

planwright_testkit::stories!(House::cluster);
planwright_testkit::work_stories!(House::cluster);
planwright_testkit::notebook_stories!(House::cluster);
planwright_testkit::lane_stories!(House::cluster);
planwright_testkit::list_stories!(House::cluster);
planwright_testkit::quota_stories!(House::cluster);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_does_not_fit_is_refused_in_words() {
    stories::a_conversation_that_does_not_fit_is_refused_in_words(
        House::cluster_with_window(worker(300, 1), 6_000).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_asked_twice_is_answered_the_same() {
    stories::a_decision_asked_twice_is_answered_the_same(House::cluster(worker(300, 1)).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_is_summed_up_and_the_plan_stays() {
    stories::what_was_said_is_summed_up_and_the_plan_stays(
        House::cluster_with_window(stories::talkative(), 6_000).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shortened_result_is_read_again_by_its_key() {
    stories::a_shortened_result_is_read_again_by_its_key(
        House::cluster_with_window(stories::forgetful(), 12_000).await,
    )
    .await;
}
