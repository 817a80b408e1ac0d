//! The contract of notebooks, on a directory.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_outbound::notebook_object_store::ObjectStoreNotebooks;
use planwright_testkit::notebook_contract as contract;

fn directory() -> (tempfile::TempDir, ObjectStoreNotebooks) {
    let home = tempfile::tempdir().unwrap();
    let store = ObjectStoreNotebooks::in_directory(home.path()).unwrap();
    (home, store)
}

#[tokio::test]
async fn a_page_is_replaced_only_by_who_has_seen_it() {
    let (_home, store) = directory();
    contract::a_page_is_replaced_only_by_who_has_seen_it(&store).await;
}

#[tokio::test]
async fn each_session_has_its_own_pages() {
    let (_home, store) = directory();
    contract::each_session_has_its_own_pages(&store).await;
}

#[tokio::test]
async fn nobody_loses_what_another_wrote() {
    let (_home, store) = directory();
    contract::nobody_loses_what_another_wrote(&store).await;
}
