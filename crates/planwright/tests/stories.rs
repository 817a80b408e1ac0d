//! The stories, on the local deployment.

use planwright_testkit::{house::House, scripted_model::worker::worker, stories};

planwright_testkit::stories!(House::local);
planwright_testkit::work_stories!(House::local);
planwright_testkit::notebook_stories!(House::local);

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
