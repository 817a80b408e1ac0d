//! Access on PostgreSQL: what one node gives, every node knows, and what has ended makes room.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_domain::{digest::Digest, time::Time};
use planwright_outbound::{access_postgres::PostgresAccess, journal_postgres::PostgresJournal};
use planwright_runtime::ports::access::{Access as _, GrantDetails};
use planwright_testkit::servers::Postgres;
use uuid::Uuid;

fn details(id: u128, created: i64) -> GrantDetails {
    let (id, name) = (Uuid::from_u128(id).into(), format!("grant {id}"));
    GrantDetails { id, name, created: Time(created), page_key: None, agent: None }
}

async fn node(server: &Postgres) -> PostgresAccess {
    PostgresAccess::new(PostgresJournal::open(&server.address()).await.unwrap().pool())
}

#[tokio::test]
async fn what_one_node_tells_of_a_grant_every_node_knows_and_what_has_ended_is_cleared_away() {
    let server = Postgres::start();
    let (here, there) = (node(&server).await, node(&server).await);
    let secret = |text: &str| Digest::of(text.as_bytes());
    let (first, second) = (details(1, 10), details(2, 11));
    here.keep(first.clone(), secret("first")).await.unwrap();
    here.keep(second.clone(), secret("second")).await.unwrap();
    assert_eq!(there.find(secret("first")).await.unwrap(), Some(first.clone()));
    assert_eq!(there.list().await.unwrap(), [first.clone(), second.clone()]);
    there.keep_only(&[second.id].into(), Time(10)).await.unwrap();
    assert_eq!(here.list().await.unwrap().len(), 2, "it may be about to be good");
    there.keep_only(&[second.id].into(), Time(11)).await.unwrap();
    assert_eq!(here.list().await.unwrap(), [second]);
    assert_eq!(here.find(secret("first")).await.unwrap(), None);
    assert_eq!(here.find(secret("never")).await.unwrap(), None);
}

#[tokio::test]
async fn the_passphrase_is_one_for_all_nodes() {
    let server = Postgres::start();
    let (here, there) = (node(&server).await, node(&server).await);
    assert!(here.keep_passphrase("short").await.is_err());
    let hash = here.keep_passphrase("correct horse battery").await.unwrap();
    assert!(there.fits(Some(hash), "correct horse battery").await.unwrap());
    assert!(!there.fits(Some(hash), "wrong horse battery").await.unwrap());
    assert!(!there.fits(None, "correct horse battery").await.unwrap());
    there.forget_passphrase(hash).await.unwrap();
    assert!(here.fits(Some(hash), "correct horse battery").await.is_err(), "it is gone");
}
