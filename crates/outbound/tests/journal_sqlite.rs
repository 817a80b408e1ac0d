//! The journal on SQLite passes the contract, and notices what was changed at rest.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, mpsc},
};

use async_trait::async_trait;
use planwright_domain::{
    actor::Standing,
    command::{Issued, LifeCommand, PersonCommand, SessionCommand},
    id::Seq,
    identity::{ChannelType, ConversationKey, SessionKey, Transport},
    memory::{ItemKind, MemoryCommand},
    owner::{self, Moved, Owner, OwnerCommand},
    session::{CorruptJournal, FOLD_VERSION, Session},
    time::Time,
};
use planwright_format::body;
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        journal::{Answer, DecideOwner, JournalError, Undecided},
        memory::Store,
    },
};
use planwright_testkit::people::{ada_key, introduce, owner_id, person};
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

/// The same contract where whoever asks writes, without a thread beside them.
mod inline {
    use super::*;

    struct Inline(Directory);

    #[async_trait]
    impl Place for Inline {
        async fn open(&self) -> Arc<dyn Store> {
            Arc::new(SqliteJournal::open_inline(&self.0.file()).unwrap())
        }
    }

    journal_contract!(Inline(Directory::new()));
}

fn identity() -> SessionKey {
    ada_key("cli:talk-0001").unwrap()
}

async fn two_messages(place: &Directory) {
    let journal = place.open().await;
    for (id, text) in [(1, "one"), (2, "two")] {
        let person = person("ada", "cli", Standing::Speaks);
        let command = SessionCommand::Person(person, PersonCommand::Say { text: text.into() });
        dispatch(&*journal, &identity(), Issued::new(uuid::Uuid::from_u128(id), Time(1), command))
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
    let text = identity().to_string();
    let dream = body::Place::Event { session: &text, seq: 2, kind: "dream_dreamt", at: 1 };
    let body = body::Packer::new().unwrap().seal(&dream, 1, &"dream").unwrap();
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let sql = "UPDATE events SET kind = 'dream_dreamt', body = ?1 WHERE seq = 2";
    assert_eq!(connection.execute(sql, [body]).unwrap(), 1);
    let journal = place.open().await;
    let error = journal.session(&identity()).await.unwrap_err();
    assert!(error.is_newer(), "{error}");
    let person = person("ada", "cli", Standing::Speaks);
    let command = SessionCommand::Person(person, PersonCommand::Say { text: "three".into() });
    let asked = Issued::new(uuid::Uuid::from_u128(3), Time(1), command);
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
    assert!(place.open().await.session(&identity()).await.unwrap_err().is_corrupt());
}

#[tokio::test]
async fn a_snapshot_of_another_fold_is_discarded() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "INSERT INTO snapshots SELECT id, 2, 999, X'00' FROM streams");
    assert_eq!(place.open().await.session(&identity()).await.unwrap().version, Seq(2));
}

#[tokio::test]
async fn a_snapshot_of_another_fold_is_renewed_by_the_next_append() {
    let place = Directory::new();
    let journal = place.open().await;
    for id in 1..=70 {
        say(&*journal, "talk-0001", id).await.unwrap();
    }
    drop(journal);
    change(&place, "UPDATE snapshots SET body = X'00', fold_version = 999");
    let journal = place.open().await;
    assert_eq!(journal.session(&identity()).await.unwrap().version, Seq(70));
    say(&*journal, "talk-0001", 71).await.unwrap();
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let sql = "SELECT version, fold_version, length(body) > 1 FROM snapshots";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let kept: (i64, u32, bool) = connection.query_row(sql, [], row).unwrap();
    assert_eq!(kept, (71, FOLD_VERSION, true));
}

/// Whoever only reads a long session has it folded from its beginning once.
#[tokio::test]
async fn a_session_that_was_folded_without_a_snapshot_is_kept_for_the_next_who_reads_it() {
    let place = Directory::new();
    let journal = place.open().await;
    for id in 1..=300 {
        say(&*journal, "talk-0001", id).await.unwrap();
    }
    drop(journal);
    change(&place, "UPDATE snapshots SET body = X'00', fold_version = 999");
    let journal = place.open().await;
    assert_eq!(journal.session(&identity()).await.unwrap().version, Seq(300));
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let sql = "SELECT version FROM snapshots WHERE fold_version = ?1";
    let kept = || connection.query_row(sql, [FOLD_VERSION], |row| row.get::<_, i64>(0)).ok();
    let renewed = || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        kept() == Some(300)
    };
    assert!((0..500).any(|_| renewed()), "nothing was kept");
    drop(journal);
    assert_eq!(place.open().await.session(&identity()).await.unwrap().version, Seq(300));
}

#[tokio::test]
async fn a_database_with_a_newer_schema_is_refused_in_a_sentence_and_left_as_it_is() {
    let place = Directory::new();
    two_messages(&place).await;
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    // The journal's own thread may still be about to close the file.
    let alone = || connection.pragma_update(None, "journal_mode", "DELETE").is_ok();
    assert!(
        (0..200).any(|_| alone() || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            false
        }),
        "the file is still open"
    );
    drop(connection);
    let before = std::fs::read(place.file()).unwrap();
    let error = SqliteJournal::open(&place.file()).unwrap_err();
    assert!(matches!(error, JournalError::NewerSchema { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("start that version or a newer one"), "{error}");
    assert!(std::fs::read(place.file()).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn data_from_before_the_first_release_is_refused_in_a_sentence_and_left_as_it_is() {
    let place = Directory::new();
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch("CREATE TABLE streams (id); PRAGMA user_version = 3;").unwrap();
    // As a process leaves it that was killed: what it wrote last is beside the file.
    let left = Directory::new();
    for beside in ["", "-wal"] {
        let name = |file: std::path::PathBuf| format!("{}{beside}", file.display());
        std::fs::copy(name(place.file()), name(left.file())).unwrap();
    }
    drop(connection);
    let place = left;
    let wal = format!("{}-wal", place.file().display());
    let all = || (std::fs::read(place.file()).unwrap(), std::fs::read(&wal).unwrap());
    let before = all();
    for error in [SqliteJournal::open(&place.file()), SqliteJournal::open_read_only(&place.file())]
    {
        let error = error.unwrap_err();
        assert!(matches!(error, JournalError::DevelopmentData), "{error}");
        assert!(error.to_string().contains("begin with an empty data directory"), "{error}");
    }
    assert!(all() == before, "the files were changed");
}

#[tokio::test]
async fn the_last_event_that_is_missing_is_noticed() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "DELETE FROM events WHERE seq = 2");
    let journal = place.open().await;
    let missing = |error: JournalError| {
        assert!(
            matches!(&error, JournalError::Corrupt(corrupt) if corrupt.what == "the events after 1 are missing"),
            "{error}"
        );
    };
    missing(journal.events(&identity(), Seq(0), 10).await.unwrap_err());
    missing(journal.session(&identity()).await.unwrap_err());
    assert_eq!(journal.events(&identity(), Seq(0), 1).await.unwrap().len(), 1);
}

async fn say(journal: &dyn Store, key: &str, id: u128) -> Result<Answer, JournalError> {
    let person = person("ada", "cli", Standing::Speaks);
    let command = SessionCommand::Person(person, PersonCommand::Say { text: "hello".into() });
    let asked = Issued::new(uuid::Uuid::from_u128(id), Time(1), command);
    dispatch(journal, &ada_key(&format!("cli:{key}")).unwrap(), asked).await
}

fn bind() -> DecideOwner {
    let transport = Transport::new(ChannelType::Cli, "terminal");
    let key = ConversationKey::new("talk-0001").unwrap();
    let command = OwnerCommand::Bind { transport, key, why: Moved::Requested };
    Box::new(move |owner: &Owner| owner::decide(owner, &command))
}

/// Writes a bad job and two good ones in one group, and says what each was answered: a decision
/// before them holds the writer until all three are queued.
async fn in_one_group<T>(
    journal: &dyn Store,
    bad: impl Future<Output = Result<T, JournalError>>,
) -> (Result<T, JournalError>, [Result<Answer, JournalError>; 2]) {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let hold = Box::new(move |_: &Session| {
        wait.lock().unwrap().recv().unwrap();
        Err(Undecided::Corrupt(CorruptJournal::new(Seq(1), "for a test")))
    });
    let key = ada_key("cli:talk-0099").unwrap();
    let held = journal.append(&key, None, Time(1), hold);
    let (_, first, bad, last, ()) = tokio::join!(
        held,
        say(journal, "talk-0002", 91),
        bad,
        say(journal, "talk-0003", 92),
        async { go.send(()).unwrap() }
    );
    (bad, [first, last])
}

fn both_are_stored(good: &[Result<Answer, JournalError>; 2]) -> bool {
    let stored = Answer::Accepted { before: Seq(0), version: Seq(1) };
    good.iter().all(|answer| matches!(answer, Ok(answer) if *answer == stored))
}

#[tokio::test]
async fn an_owner_event_that_cannot_be_read_fails_its_own_job_alone() {
    let place = Directory::new();
    let (ada, journal) = (owner_id("ada"), place.open().await);
    introduce(&*journal, &["ada"]).await.unwrap();
    journal.append_owner(ada, Time(1), bind()).await.unwrap().unwrap();
    drop(journal);
    change(&place, "UPDATE owner_events SET body = X'00'");
    change(&place, "UPDATE owners SET fold_version = 999");
    let journal = place.open().await;
    let (bad, good) = in_one_group(&*journal, journal.append_owner(ada, Time(2), bind())).await;
    assert!(bad.is_err() && both_are_stored(&good), "{bad:?} {good:?}");
}

#[tokio::test]
async fn a_stored_refusal_that_cannot_be_read_fails_its_own_job_alone() {
    let place = Directory::new();
    two_messages(&place).await;
    change(&place, "UPDATE answers SET refusal = 'no such thing' WHERE version = 2");
    let journal = place.open().await;
    let (bad, good) = in_one_group(&*journal, say(&*journal, "talk-0001", 2)).await;
    assert!(bad.is_err() && both_are_stored(&good), "{bad:?} {good:?}");
}

#[tokio::test]
async fn a_decision_on_an_owner_that_panics_fails_its_own_job_alone() {
    let place = Directory::new();
    let journal = place.open().await;
    introduce(&*journal, &["ada"]).await.unwrap();
    let (ada, panics) = (owner_id("ada"), Box::new(|_: &Owner| panic!("on purpose")));
    let (bad, good) = in_one_group(&*journal, journal.append_owner(ada, Time(2), panics)).await;
    assert!(bad.is_err() && both_are_stored(&good), "{bad:?} {good:?}");
}

/// The index of memories is broken after the session's row and its events were written.
#[tokio::test]
async fn a_job_that_fails_half_way_leaves_nothing_behind() {
    let place = Directory::new();
    two_messages(&place).await;
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    connection.execute_batch("ALTER TABLE memory RENAME TO memory_away").unwrap();
    let journal = place.open().await;
    let person = person("ada", "cli", Standing::Speaks);
    let save = MemoryCommand::Save {
        id: uuid::Uuid::from_u128(7).into(),
        kind: ItemKind::Fact,
        text: "backups live in /backup".into(),
    };
    let command = SessionCommand::Person(person, PersonCommand::Memory(save));
    let asked = Issued::new(uuid::Uuid::from_u128(7), Time(1), command);
    let session = identity();
    let (bad, good) = in_one_group(&*journal, dispatch(&*journal, &session, asked)).await;
    assert!(bad.is_err() && both_are_stored(&good), "{bad:?} {good:?}");
    let events = journal.events(&identity(), Seq(0), 10).await.unwrap();
    assert_eq!(events.len(), 2);
    let stored = say(&*journal, "talk-0001", 8).await.unwrap();
    assert_eq!(stored, Answer::Accepted { before: Seq(2), version: Seq(3) });
}

#[tokio::test]
async fn the_files_of_a_journal_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Directory::new();
    std::fs::write(place.file(), "").unwrap();
    std::fs::set_permissions(place.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let journal = place.open().await;
    say(&*journal, "talk-0001", 1).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(place.file().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("journal.sqlite"))
        .collect();
    assert_eq!(files.len(), 3, "the journal, and two files beside it: {files:?}");
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

/// The files with long outputs in this directory.
fn outputs_in(place: &Directory) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(place.0.path().join("outputs")).into_iter().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn a_long_output_lies_beside_the_journal_and_a_broken_or_lost_one_is_corrupt() {
    let place = Directory::new();
    let journal = place.open().await;
    say(&*journal, "talk-0001", 1).await.unwrap();
    let (short, long) = ("x".repeat(64 * 1024), "y".repeat(64 * 1024 + 1));
    let kept = [
        journal.keep_output(&identity(), &short).await.unwrap(),
        journal.keep_output(&identity(), &long).await.unwrap(),
    ];
    let [file] = &outputs_in(&place)[..] else { panic!("one file") };
    assert!(file.ends_with(kept[1].to_string()), "{}", file.display());
    let whole = std::fs::read(file).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut broken = whole.clone();
        broken[at] ^= 1;
        std::fs::write(file, broken).unwrap();
        assert!(
            journal.output(&identity(), kept[1]).await.unwrap_err().is_corrupt(),
            "bit of {at}"
        );
    }
    std::fs::write(file, whole).unwrap();
    assert_eq!(journal.output(&identity(), kept[1]).await.unwrap(), Some(long));
    std::fs::remove_file(file).unwrap();
    assert!(journal.output(&identity(), kept[1]).await.unwrap_err().is_corrupt(), "it is gone");
    assert_eq!(journal.output(&identity(), kept[0]).await.unwrap(), Some(short));
}

/// A bucket that cannot be reached, or here a directory that cannot be made.
#[tokio::test]
async fn a_long_output_that_cannot_lie_beside_the_journal_lies_in_it() {
    let place = Directory::new();
    let journal = place.open().await;
    say(&*journal, "talk-0001", 1).await.unwrap();
    std::fs::write(place.0.path().join("outputs"), "in the way").unwrap();
    let text = "y".repeat(100_000);
    let kept = journal.keep_output(&identity(), &text).await.unwrap();
    assert_eq!(journal.output(&identity(), kept).await.unwrap(), Some(text));
}

/// What was written before a kill, or for a session that is not there, has no row.
#[tokio::test]
async fn an_output_that_nothing_names_is_swept_once_it_is_old() {
    let place = Directory::new();
    let journal = place.open().await;
    say(&*journal, "talk-0001", 1).await.unwrap();
    let text = "y".repeat(100_000);
    let named = journal.keep_output(&identity(), &text).await.unwrap();
    let elsewhere = ada_key("cli:talk-0009").unwrap();
    journal.keep_output(&elsewhere, &text).await.unwrap();
    let [file] = &outputs_in(&place)[..] else { panic!("nothing is kept of what is not there") };
    let beside = file.with_file_name("0".repeat(64));
    std::fs::copy(file, &beside).unwrap();
    // As it is called while it is written, by a process that was killed.
    let unfinished = file.with_file_name(format!("{}#1", "1".repeat(64)));
    std::fs::copy(file, &unfinished).unwrap();
    std::fs::write(place.0.path().join("outputs").join("readme"), "not ours").unwrap();
    assert_eq!(journal.sweep_outputs(Time(0)).await.unwrap(), 0, "they are younger");
    assert_eq!(journal.sweep_outputs(Time(i64::MAX)).await.unwrap(), 1);
    assert!(!beside.exists() && !unfinished.exists() && file.exists());
    assert_eq!(journal.output(&identity(), named).await.unwrap(), Some(text));
}

/// Not what a killed process had half written, and not the folder, whose name is the key of the session.
#[tokio::test]
async fn nothing_of_an_erased_session_lies_beside_the_journal() {
    let place = Directory::new();
    let journal = place.open().await;
    say(&*journal, "talk-0001", 1).await.unwrap();
    journal.keep_output(&identity(), &"y".repeat(100_000)).await.unwrap();
    let [file] = &outputs_in(&place)[..] else { panic!("one file") };
    std::fs::copy(file, file.with_file_name(format!("{}#1", "1".repeat(64)))).unwrap();
    let delete = PersonCommand::Life(LifeCommand::Delete);
    let command = SessionCommand::Person(person("ada", "cli", Standing::Decides), delete);
    let asked = Issued::new(uuid::Uuid::from_u128(2), Time(2), command);
    assert!(!dispatch(&*journal, &identity(), asked).await.unwrap().is_refused());
    journal_contract::remove_pages(&*journal, &identity(), "talk-0001").await;
    assert!(journal.erase(&identity(), Time(9_001)).await.unwrap());
    let left = std::fs::read_dir(place.0.path().join("outputs")).unwrap().count();
    assert_eq!(left, 0);
}
