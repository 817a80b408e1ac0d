//! The contract of notebooks, on a bucket of a server that speaks S3.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::sync::Arc;

use async_trait::async_trait;
use planwright_domain::{digest::Digest, time::Time};
use planwright_outbound::{
    journal_postgres::PostgresJournal,
    notebook_object_store::{Bucket, ObjectStoreNotebooks},
};
use planwright_runtime::ports::{journal::Journal as _, memory::Store, notebook::Notebooks as _};
use planwright_testkit::{
    journal_contract::{self, Place},
    notebook_contract as contract,
    people::ada_key,
    servers::{Postgres, S3},
};

async fn bucket(server: &S3) -> ObjectStoreNotebooks {
    server.make_bucket("notes");
    ObjectStoreNotebooks::in_bucket(named(server).open().unwrap())
}

fn named(server: &S3) -> Bucket {
    let key = |name: &str| Some(name.to_owned());
    Bucket {
        name: "notes".into(),
        endpoint: Some(server.address()),
        region: key("us-east-1"),
        access_key: key("a-key"),
        secret_key: key("a-secret"),
    }
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

/// A journal on PostgreSQL whose long outputs lie in a bucket.
struct WithBucket(Postgres, S3);

#[async_trait]
impl Place for WithBucket {
    async fn open(&self) -> Arc<dyn Store> {
        let journal = PostgresJournal::open(&self.0.address()).await.unwrap();
        Arc::new(journal.with_outputs_in(named(&self.1).open().unwrap()))
    }
}

#[tokio::test]
async fn long_outputs_of_a_cluster_lie_in_its_bucket() {
    let place = WithBucket(Postgres::start(), S3::start());
    place.1.make_bucket("notes");
    journal_contract::reads::an_output_is_kept_once_and_for_its_session_alone(&place).await;
    assert_eq!(place.0.psql("SELECT count(*) || ' ' || count(body) FROM outputs"), "1 0");
    let journal = place.open().await;
    assert_eq!(journal.sweep_outputs(Time(i64::MAX)).await.unwrap(), 0, "it is named");
    // A node that was given no bucket says so.
    let here = ada_key("cli:talk-0001").unwrap();
    let digest = Digest::of("zeile ä\n".repeat(40_000).as_bytes());
    assert!(journal.output(&here, digest).await.unwrap().is_some());
    let other = PostgresJournal::open(&place.0.address()).await.unwrap();
    let refused = other.output(&here, digest).await.unwrap_err().to_string();
    assert!(refused.contains("notebook.bucket"), "{refused}");
    let refused = other.erase(&here, Time(9)).await.unwrap_err().to_string();
    assert!(refused.contains("notebook.bucket"), "nothing may be left there: {refused}");
    let _ = place.0.psql("DELETE FROM outputs");
    assert_eq!(journal.sweep_outputs(Time(i64::MAX)).await.unwrap(), 1, "nothing names it");
}

#[tokio::test]
async fn nothing_of_an_erased_session_is_left_in_the_bucket() {
    let place = WithBucket(Postgres::start(), S3::start());
    place.1.make_bucket("notes");
    journal_contract::erasure::a_deleted_session_is_erased_once_and_its_key_is_not_used_again(
        &place,
    )
    .await;
    let journal = place.open().await;
    assert_eq!(journal.sweep_outputs(Time(i64::MAX)).await.unwrap(), 0);
}
