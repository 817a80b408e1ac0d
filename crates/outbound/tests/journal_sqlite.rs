//! The journal on SQLite passes the contract, and notices what was changed at rest.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use planwright_domain::{
    actor::{Person, Standing},
    command::{Asked, PersonCommand, SessionCommand},
    id::Seq,
    identity::SessionIdentity,
    time::Time,
};
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    dispatch::dispatch,
    ports::{journal::JournalError, memory::Store},
};
use planwright_testkit::{journal_contract, journal_contract::Place};

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("journal.sqlite")
    }
}

#[async_trait]
impl Place for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteJournal::open(&self.file()).unwrap())
    }
}

journal_contract!(Directory::new());

fn identity() -> SessionIdentity {
    SessionIdentity::parse("cli:talk-0001").unwrap()
}

async fn two_messages(place: &Directory) {
    let journal = place.open().await;
    for (id, text) in [(1, "one"), (2, "two")] {
        let person = Person::new("ada", "cli", Standing::Speaks);
        let command = SessionCommand::Person(person, PersonCommand::Say { text: text.into() });
        dispatch(&*journal, &identity(), Asked::new(uuid::Uuid::from_u128(id), Time(1), command))
            .await
            .unwrap();
    }
}

fn change(place: &Directory, sql: &str) {
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0);
}

#[tokio::test]
async fn an_event_that_is_missing_is_noticed() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "DELETE FROM events WHERE seq = 1");
    let error = place.open().await.events(&identity(), Seq(0), 10).await.unwrap_err();
    assert!(
        matches!(&error, JournalError::Corrupt(corrupt) if corrupt.what == "event 1 is missing"),
        "{error}"
    );
}

#[tokio::test]
async fn an_event_of_a_kind_that_this_version_does_not_know_leaves_the_session_alone() {
    let place = Directory::new();
    two_messages(&place).await;
    change(
        &place,
        "UPDATE events SET kind = 'dream_dreamt', body = X'007B22647265616D223A317D' WHERE seq = 2",
    );
    let journal = place.open().await;
    let error = journal.session(&identity()).await.unwrap_err();
    assert!(matches!(error, JournalError::UnknownEvent { .. }), "{error}");
    let person = Person::new("ada", "cli", Standing::Speaks);
    let command = SessionCommand::Person(person, PersonCommand::Say { text: "three".into() });
    let asked = Asked::new(uuid::Uuid::from_u128(3), Time(1), command);
    assert!(
        dispatch(&*journal, &identity(), asked).await.is_err(),
        "nothing is written on top of it"
    );
}

#[tokio::test]
async fn a_body_in_the_row_of_another_kind_is_noticed() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "UPDATE events SET kind = 'view_reset' WHERE seq = 2");
    assert!(matches!(
        place.open().await.session(&identity()).await.unwrap_err(),
        JournalError::Corrupt(_)
    ));
}

#[tokio::test]
async fn a_snapshot_of_another_fold_is_discarded() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "UPDATE streams SET snapshot = X'00', snapshot_version = 2, fold_version = 999");
    assert_eq!(place.open().await.session(&identity()).await.unwrap().version, Seq(2));
}

#[tokio::test]
async fn the_last_event_that_is_missing_is_noticed() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "DELETE FROM events WHERE seq = 2");
    let error = place.open().await.session(&identity()).await.unwrap_err();
    assert!(
        matches!(&error, JournalError::Corrupt(corrupt) if corrupt.what == "the events after 1 are missing"),
        "{error}"
    );
}
