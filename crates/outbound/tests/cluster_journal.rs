//! The journal on PostgreSQL passes the contract, also where nodes get in each other's way.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use planwright_domain::{
    actor::{Person, Standing},
    command::{Issued, PersonCommand, SessionCommand},
    digest::Digest,
    id::{Incarnation, Seq},
    identity::{ChannelType, ConversationKey, SessionKey, Transport},
    next::Due,
    owner::{self, Moved, Owner, OwnerCommand},
    plan::{Reads, Strategy},
    session::{FOLD_VERSION, Session, SessionEvent},
    time::Time,
};
use planwright_format::body;
use planwright_outbound::{
    journal_postgres::PostgresJournal,
    journal_sqlite::SqliteJournal,
    notebook_object_store::{NoNotebooks, ObjectStoreNotebooks},
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        journal::{Answer, Append, Archive, Journal, JournalError, Reserved},
        memory::Store,
        notebook::Notebooks as _,
    },
    transfer::archive::{self, ArchiveError, Totals, Trust},
};
use planwright_testkit::people::{self, ada_key};
use planwright_testkit::{journal_contract, journal_contract::Place, servers::Postgres};

struct Server(Postgres);

#[async_trait]
impl Place for Server {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(PostgresJournal::open(&self.0.address()).await.unwrap())
    }
}

journal_contract!(Server(Postgres::start()));

fn identity(key: &str) -> SessionKey {
    ada_key(&format!("cli:{key}")).unwrap()
}

fn person() -> Person {
    people::person("ada", "cli", Standing::Decides)
}

async fn ask(journal: &dyn Journal, key: &str, id: u128, command: PersonCommand) -> Answer {
    let command = SessionCommand::Person(person(), command);
    let asked = Issued::new(uuid::Uuid::from_u128(id), Time(1_000 + id as i64), command);
    dispatch(journal, &identity(key), asked).await.unwrap()
}

fn say(text: &str) -> PersonCommand {
    PersonCommand::Say { text: text.into() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_append_to_one_session_at_once_take_turns() {
    let place = Server(Postgres::start());
    let nodes = [place.open().await, place.open().await, place.open().await];
    let asks = (0..90_u128).map(|at| {
        let node = nodes[at as usize % 3].clone();
        tokio::spawn(async move { ask(&*node, "talk-0001", at, say(&at.to_string())).await })
    });
    let mut versions = Vec::new();
    for asked in asks.collect::<Vec<_>>() {
        match asked.await.unwrap() {
            Answer::Accepted { before, version } => {
                assert_eq!(version, before.following());
                versions.push(version.0);
            }
            Answer::Refused(refusal) => panic!("{refusal}"),
        }
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=90).collect::<Vec<_>>());
    let sessions = all_see(&nodes).await;
    assert!(sessions.iter().all(|session| session.version == Seq(90)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_due_goes_to_one_node_and_to_another_when_its_time_is_over() {
    let place = Server(Postgres::start());
    let nodes = [place.open().await, place.open().await, place.open().await];
    let key = |number: usize| format!("talk-{number:04}");
    for number in 0..120 {
        ask(&*nodes[0], &key(number), number as u128, say("go on")).await;
    }
    let by = |node: usize| Incarnation(uuid::Uuid::from_u128(node as u128));
    let reserved =
        |node, from| Reserved { by: by(node), from: Time(from), until: Time(from + 6_000) };
    let takes = |from: i64, limit: usize| {
        let all = nodes.iter().enumerate().map(|(number, node)| {
            let (node, reserved) = (node.clone(), reserved(number, from));
            let take = async move { node.take_due(Time(9_000), reserved, limit).await.unwrap() };
            tokio::spawn(take)
        });
        futures_util::future::join_all(all.collect::<Vec<_>>())
    };
    let mut taken = Vec::new();
    while taken.len() < 120 {
        let rows: Vec<_> = takes(10_000, 32).await.into_iter().flat_map(Result::unwrap).collect();
        assert!(!rows.is_empty(), "{} of 120 were found", taken.len());
        taken.extend(rows.into_iter().map(|row| row.session));
    }
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 120, "each is taken once");
    let again =
        async |from| nodes[1].take_due(Time(9_000), reserved(9, from), 500).await.unwrap().len();
    assert_eq!(again(15_999).await, 0, "whoever has them is left alone with them");
    assert_eq!(again(16_000).await, 120, "whoever had them is frozen or gone");
    assert_eq!(again(12_000).await, 0, "a clock that is a little behind takes nothing away");
    ask(&*nodes[2], &key(7), 500, say("and?")).await;
    assert_eq!(again(17_000).await, 1, "somebody acted on it, and it is due again");
    assert_eq!(again(9_000).await, 120, "a clock that was far ahead holds nothing");
    let few = async || nodes[0].take_due(Time(9_000), reserved(8, 90_000), 10).await.unwrap().len();
    let counts = [few().await, few().await, few().await];
    assert_eq!(counts, [10, 10, 0], "no more than it can have acted on in time");
    assert_eq!(nodes[0].due(None, 500).await.unwrap().len(), 120, "all of them are still due");
}

async fn all_see(nodes: &[Arc<dyn Store>]) -> Vec<Arc<planwright_domain::session::Session>> {
    let mut sessions = Vec::new();
    for node in nodes {
        sessions.push(node.session(&identity("talk-0001")).await.unwrap());
    }
    sessions
}

#[tokio::test]
async fn nothing_is_decided_on_what_another_node_has_changed() {
    let place = Server(Postgres::start());
    let (here, there) = (place.open().await, place.open().await);
    let start = |plan: u128| PersonCommand::StartPlan {
        plan: uuid::Uuid::from_u128(plan).into(),
        strategy: Strategy::Document,
        reads: Reads::Record,
    };
    ask(&*here, "talk-0001", 1, say("hello")).await;
    ask(&*there, "talk-0001", 2, start(50)).await;
    // Here the session is still warm without plan work.
    assert!(ask(&*here, "talk-0001", 3, start(51)).await.is_refused());
    let end = PersonCommand::EndPlan(planwright_domain::command::Ending::Off);
    assert!(!ask(&*here, "talk-0001", 4, end).await.is_refused());
    // There it is still warm with plan work.
    assert!(!ask(&*there, "talk-0001", 5, start(52)).await.is_refused());
    // The same command at another node has the same answer, whatever has happened since.
    assert_eq!(
        ask(&*there, "talk-0001", 1, start(53)).await,
        Answer::Accepted { before: Seq(0), version: Seq(1) }
    );
    assert!(ask(&*there, "talk-0001", 3, start(54)).await.is_refused());
}

#[tokio::test]
async fn events_that_are_gone_are_noticed() {
    let place = Server(Postgres::start());
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let _ = place.0.psql("DELETE FROM events");
    let error = place.open().await.session(&identity("talk-0001")).await;
    assert!(matches!(&error, Err(JournalError::Corrupt(_))), "{error:?}");
}

#[tokio::test]
async fn the_row_of_a_session_that_moves_is_written_and_no_index_over_it_is() {
    const MOVES: u64 = 200;
    let place = Server(Postgres::start());
    let journal = place.open().await;
    for id in 0..MOVES {
        let key = format!("talk-{:04}", id % 5);
        let at = Time(1_000 + id as i64);
        let decide = Box::new(move |session: &Session| {
            let events = vec![SessionEvent::MessageQueued { text: "hello".into(), by: person() }];
            let after = session.fold(at, &events)?;
            let due = [Due::Now, Due::At(Time(9_000)), Due::Never][id as usize % 3];
            Ok(Append { events, after, due, waiting: None, turns: None })
        });
        journal.append(&identity(&key), None, at, decide).await.unwrap();
    }
    // The server counts when a connection has nothing to do.
    let counted = "SELECT n_tup_hot_upd || ' of ' || n_tup_upd FROM pg_stat_user_tables WHERE relname = 'streams'";
    let mut of_all = String::new();
    for _ in 0..150 {
        of_all = place.0.psql(counted);
        if of_all.ends_with(&format!(" of {}", MOVES - 5)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(of_all, format!("{0} of {0}", MOVES - 5));
}

#[tokio::test]
async fn a_snapshot_of_another_fold_is_renewed_by_the_next_append() {
    let place = Server(Postgres::start());
    let journal = place.open().await;
    for id in 1..=70 {
        ask(&*journal, "talk-0001", id, say("x")).await;
    }
    drop(journal);
    let _ = place.0.psql("UPDATE snapshots SET body = '\\x00', fold_version = 999");
    let journal = place.open().await;
    assert_eq!(journal.session(&identity("talk-0001")).await.unwrap().version, Seq(70));
    ask(&*journal, "talk-0001", 71, say("x")).await;
    let sql = "SELECT version || ' ' || fold_version || ' ' || (length(body) > 1) FROM snapshots";
    assert_eq!(place.0.psql(sql), format!("71 {FOLD_VERSION} true"));
}

#[tokio::test]
async fn a_long_session_without_a_snapshot_that_fits_is_folded_whole_once() {
    let place = Server(Postgres::start());
    let journal = place.open().await;
    for id in 1..=300 {
        ask(&*journal, "talk-0001", id, say("x")).await;
    }
    drop(journal);
    let sql = "SELECT version || ' ' || fold_version || ' ' || (length(body) > 1) FROM snapshots";
    for (fold, kept) in [(0, format!("300 {FOLD_VERSION} true")), (999, "256 999 false".into())] {
        let change =
            format!("UPDATE snapshots SET body = '\\x00', version = 256, fold_version = {fold}");
        let _ = place.0.psql(&change);
        let journal = place.open().await;
        assert_eq!(journal.session(&identity("talk-0001")).await.unwrap().version, Seq(300));
        assert_eq!(place.0.psql(sql), kept, "what a newer program keeps stays");
    }
}

#[tokio::test]
async fn a_database_with_a_newer_schema_is_refused_in_a_sentence() {
    let place = Server(Postgres::start());
    drop(place.open().await);
    let _ = place.0.psql("UPDATE planwright_schema SET version = 99");
    let Err(error) = PostgresJournal::open(&place.0.address()).await else { panic!("opened") };
    assert!(matches!(error, JournalError::NewerSchema { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("start that version or a newer one"), "{error}");
}

#[tokio::test]
async fn a_stream_with_more_events_than_it_says_is_called_corrupt_at_once() {
    let place = Server(Postgres::start());
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("one")).await;
    ask(&*journal, "talk-0001", 2, say("two")).await;
    let _ = place.0.psql("UPDATE streams SET version = 1");
    let journal = place.open().await;
    let command = SessionCommand::Person(person(), say("three"));
    let asked = Issued::new(uuid::Uuid::from_u128(3), Time(3), command);
    let talk = identity("talk-0001");
    let asking = dispatch(&*journal, &talk, asked);
    let answer = tokio::time::timeout(std::time::Duration::from_secs(3), asking).await.unwrap();
    assert!(answer.as_ref().is_err_and(JournalError::is_corrupt), "{answer:?}");
}

#[tokio::test]
async fn a_database_from_before_the_first_release_is_refused_in_a_sentence() {
    for sql in ["DROP TABLE planwright_schema", "UPDATE planwright_schema SET form = 0"] {
        let place = Server(Postgres::start());
        drop(place.open().await);
        let _ = place.0.psql(sql);
        let Err(error) = PostgresJournal::open(&place.0.address()).await else { panic!("opened") };
        assert!(matches!(error, JournalError::DevelopmentData), "{error}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn an_installation_moves_into_a_cluster_and_back_unchanged() {
    let place = Server(Postgres::start());
    let home = tempfile::tempdir().unwrap();
    let local = SqliteJournal::open(&home.path().join("a.sqlite")).unwrap();
    for key in ["talk-0001", "talk-0002"] {
        for at in 1..=150 {
            ask(&local, key, at, say(&format!("{key} says {at}"))).await;
        }
        assert!(ask(&local, key, 900, PersonCommand::Stop).await.is_refused());
    }
    let long = "what a tool said\n".repeat(9_000);
    let digest = local.keep_output(&identity("talk-0002"), &long).await.unwrap();
    let (transport, owner) =
        (Transport::new(ChannelType::Cli, "terminal"), people::owner_id("ada"));
    people::introduce(&local, &["ada"]).await.unwrap();
    let key = ConversationKey::new("talk-0002").unwrap();
    let bind = OwnerCommand::Bind { transport, key, why: Moved::Requested };
    let bind = Box::new(move |owner: &Owner| owner::decide(owner, &bind));
    local.append_owner(owner, Time(7), bind).await.unwrap().unwrap();

    let (there, back) = (
        PostgresJournal::open(&place.0.address()).await.unwrap(),
        SqliteJournal::open(&home.path().join("b.sqlite")).unwrap(),
    );
    let mut first = Vec::new();
    let home_pages: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let pages_of =
        |home: &tempfile::TempDir| ObjectStoreNotebooks::in_directory(home.path()).unwrap();
    let noted = pages_of(&home_pages[0]);
    for name in ["task_plan.md", "archive/plan-20260116-0220.md"] {
        noted.write(&identity("talk-0002"), name, "# Noted\n", None).await.unwrap();
    }
    let totals = archive::export(&local, &pages_of(&home_pages[0]), &mut first).await.unwrap();
    assert_eq!((totals.sessions, totals.events), (2, 300));
    let pages = pages_of(&home_pages[1]);
    let verified = archive::verify(&first[..]).unwrap();
    // One that fails at its end leaves nothing, nor does one that is given up half way.
    let other = Totals { digest: Digest([7; 32]), ..verified };
    let staged = there.stage(&place.0.address()).await.unwrap();
    let failed = archive::import(&staged, &pages, &first[..], other, Trust::Vouched).await;
    assert!(matches!(failed, Err(ArchiveError::Differs { .. })), "{failed:?}");
    archive::check_empty(&there).await.unwrap();
    assert_eq!(pages.list(&identity("talk-0002")).await.unwrap().len(), 2);
    archive::remove_pages(&staged, &pages).await.unwrap();
    assert_eq!(pages.list(&identity("talk-0002")).await.unwrap(), [""; 0]);
    let staged = there.stage(&place.0.address()).await.unwrap();
    archive::check_empty(&staged).await.unwrap();
    archive::import(&staged, &pages, &first[..], verified, Trust::Vouched).await.unwrap();
    archive::check_empty(&there).await.unwrap();
    there.put_staged_in_place().await.unwrap();
    let there = PostgresJournal::open(&place.0.address()).await.unwrap();
    assert!(matches!(archive::check_empty(&there).await, Err(ArchiveError::Exists(_))));
    let mut second = Vec::new();
    archive::export(&there, &pages_of(&home_pages[1]), &mut second).await.unwrap();
    archive::import(
        &back,
        &pages_of(&home_pages[2]),
        &second[..],
        archive::verify(&second[..]).unwrap(),
        Trust::Vouched,
    )
    .await
    .unwrap();
    let mut third = Vec::new();
    archive::export(&back, &pages_of(&home_pages[2]), &mut third).await.unwrap();
    assert!(first == second && second == third, "byte for byte");
    let noted = pages_of(&home_pages[2]).list(&identity("talk-0002")).await.unwrap();
    assert_eq!(noted, ["archive/plan-20260116-0220.md", "task_plan.md"]);

    // What was asked before the move has the same answer after it, and what was due still is.
    let again = ask(&there, "talk-0001", 7, say("something else")).await;
    assert_eq!(again, Answer::Accepted { before: Seq(6), version: Seq(7) });
    assert!(ask(&there, "talk-0001", 900, say("now allowed")).await.is_refused());
    assert_eq!(there.due(None, 10).await.unwrap().len(), 2);
    assert_eq!(back.output(&identity("talk-0002"), digest).await.unwrap(), Some(long));
    let warm = back.session(&identity("talk-0001")).await.unwrap();
    assert_eq!(*warm, *there.session(&identity("talk-0001")).await.unwrap());

    let twice = archive::import(&there, &NoNotebooks, &first[..], totals, Trust::Vouched).await;
    assert!(matches!(twice, Err(ArchiveError::Exists(_))), "{twice:?}");
    let text = String::from_utf8(first).unwrap();
    let damaged = text.replacen("talk-0001 says 7\"", "talk-0001 says 8\"", 1);
    assert!(matches!(archive::verify(damaged.as_bytes()), Err(ArchiveError::Damaged { .. })));
    let cut = &text[..text.len() / 2];
    assert!(archive::verify(cut.as_bytes()).is_err());
    let _: &dyn Archive = &there;
    let connection = rusqlite::Connection::open(home.path().join("b.sqlite")).unwrap();
    // Another text with a checksum of its own: the digest is what finds it.
    let session = identity("talk-0002").to_string();
    let place = body::Place::Output { session: &session, digest: &digest.0 };
    let other = body::Packer::new().unwrap().seal(&place, 1, &"a").unwrap();
    connection.execute("UPDATE outputs SET body = ?1", [other]).unwrap();
    let lost = archive::export(&back, &NoNotebooks, &mut Vec::new()).await;
    assert!(matches!(lost, Err(ArchiveError::Output(_, named)) if named == digest), "{lost:?}");
}

#[tokio::test]
async fn a_backup_that_is_restored_elsewhere_holds_the_same_to_the_byte() {
    let place = Server(Postgres::start());
    let journal = PostgresJournal::open(&place.0.address()).await.unwrap();
    for at in 1..=100 {
        ask(&journal, &format!("talk-{:04}", at % 7), at, say(&format!("message {at}"))).await;
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("backup");
    place.0.dump(&file);
    let elsewhere = Postgres::start();
    elsewhere.restore(&file);
    let restored = PostgresJournal::open(&elsewhere.address()).await.unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    archive::export(&journal, &NoNotebooks, &mut before).await.unwrap();
    archive::export(&restored, &NoNotebooks, &mut after).await.unwrap();
    assert!(!before.is_empty() && before == after);
    let again = ask(&restored, "talk-0001", 1, say("something else")).await;
    assert_eq!(again, ask(&journal, "talk-0001", 1, say("something else")).await);
    assert!(!ask(&restored, "talk-0001", 200, say("it goes on")).await.is_refused());
}
