//! What earlier versions stored in PostgreSQL is read as it was meant.

use planwright_testkit::golden;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_golden_journal_on_postgresql_folds_to_the_recorded_states() {
    assert_eq!(golden::postgres().await.unwrap(), golden::recorded().unwrap());
}
