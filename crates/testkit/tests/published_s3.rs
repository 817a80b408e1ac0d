//! The contract of notebooks, on a bucket of a server that speaks S3.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_outbound::notebook_object_store::{Bucket, ObjectStoreNotebooks};
use planwright_runtime::ports::notebook::Notebooks as _;
use planwright_testkit::people::ada_key;
use planwright_testkit::{notebook_contract as contract, servers::S3};

async fn bucket(server: &S3) -> ObjectStoreNotebooks {
    server.make_bucket("notes").await;
    let key = |name: &str| Some(name.to_owned());
    let bucket = Bucket {
        name: "notes".into(),
        endpoint: Some(server.address()),
        region: key("us-east-1"),
        access_key: key("a-key"),
        secret_key: key("a-secret"),
    };
    ObjectStoreNotebooks::in_bucket(bucket).unwrap()
}

#[tokio::test]
async fn a_bucket_keeps_the_contract() {
    let server = S3::start();
    let store = bucket(&server).await;
    contract::a_page_is_replaced_only_by_who_has_seen_it(&store).await;
    contract::each_session_has_its_own_pages(&store).await;
    contract::nobody_loses_what_another_wrote(&store).await;
}

/// A server that takes every write would let two people lose each other's: it is refused before the first page.
#[tokio::test]
async fn a_bucket_that_ignores_conditions_is_refused_in_words() {
    let server = S3::start_careless();
    let store = bucket(&server).await;
    let here = ada_key("cli:talk-0001").unwrap();
    let refused = store.write(&here, "progress.md", "one", None).await.unwrap_err().to_string();
    assert!(refused.contains("ignores conditions"), "{refused}");
    assert_eq!(store.list(&here).await.unwrap(), Vec::<String>::new());
}
