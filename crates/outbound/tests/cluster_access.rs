//! Access on PostgreSQL: what one node gives, every node knows, and what has ended makes room.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
    time::Time,
};
use planwright_outbound::{access_postgres::PostgresAccess, journal_postgres::PostgresJournal};
use planwright_runtime::ports::access::{Access as _, Grant};
use planwright_testkit::servers::Postgres;
use uuid::Uuid;

fn grant(id: u128, created: i64, expires: Option<i64>) -> Grant {
    let (id, name, ada) = (Uuid::from_u128(id), format!("grant {id}"), PersonId("ada".into()));
    Grant {
        expires: expires.map(Time),
        ..Grant::new(id, &name, ada, Standing::Decides, Time(created))
    }
}

async fn node(server: &Postgres) -> PostgresAccess {
    PostgresAccess::new(PostgresJournal::open(&server.address()).await.unwrap().pool())
}

#[tokio::test]
async fn what_one_node_grants_every_node_knows_and_what_has_ended_is_cleared_away() {
    let server = Postgres::start();
    let (here, there) = (node(&server).await, node(&server).await);
    let secret = |text: &str| Digest::of(text.as_bytes());
    let (brief, lasting) = (grant(1, 10, Some(20)), grant(2, 11, None));
    here.keep(brief.clone(), secret("brief")).await.unwrap();
    here.keep(lasting.clone(), secret("lasting")).await.unwrap();
    assert_eq!(there.find(secret("brief")).await.unwrap(), Some(brief.clone()));
    assert_eq!(there.list().await.unwrap(), [brief, lasting.clone()]);
    let later = grant(3, 20, Some(90));
    there.keep(later.clone(), secret("later")).await.unwrap();
    assert_eq!(here.list().await.unwrap(), [lasting, later.clone()], "the brief one has ended");
    assert!(here.revoke(later.id).await.unwrap() && !here.revoke(later.id).await.unwrap());
    assert_eq!(here.find(secret("later")).await.unwrap(), None);
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
