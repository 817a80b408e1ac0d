//! The contract of a journal: every adapter passes this suite.
//!
//! A [`Place`] is somewhere a journal lives; opening it twice gives the same journal again, as a
//! restart would.

use std::sync::{Arc, Mutex};

use crate::people::{introduce, owner_id, person};
use async_trait::async_trait;
use planwright_domain::{
    actor::{OWNER, Person, PersonId, Standing},
    attempt::ModelAttempt,
    command::{Given, Issued, LifeCommand, PersonCommand, SessionCommand, SystemCommand},
    digest::Digest,
    effect::Bracket,
    id::{Incarnation, MemoryId, OwnerId, Seq},
    identity::{ChannelType, ConversationKey, SessionKey, Transport},
    installation::{
        self, Installation, InstallationCommand, InstallationEvent, Invitation, Requester, Role,
    },
    log::{Erased, SessionHead, beginning},
    memory::{Chain, ItemKind, MemoryCommand, Question, Scope},
    next::{Next, Waiting, next},
    owner::{self, Moved, Owner, OwnerCommand},
    plan::event::PlanEvent,
    quota::{Day, Quota, QuotaUse, Used},
    refusal::Refusal,
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
    turn::{
        Answer as ModelSaid, CallKind, RequestedCall, Usage,
        event::{Arrival, TurnEvent},
    },
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        journal::{
            Answer, Append, BackedOff, DecisionRow, InstallationRecorded, Journal, JournalError,
            KeptView, ListPlace, SessionPage, SessionQuery, SessionRow, Since, Undecided,
        },
        memory::Store,
    },
};
use uuid::Uuid;

/// Somewhere a journal lives.
#[async_trait]
pub trait Place: Send + Sync {
    /// The journal that lives there, as a process that just started finds it.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Makes one test of each part of the contract, for a place that this expression makes.
#[macro_export]
macro_rules! journal_contract {
    ($place:expr) => {
        $crate::journal_contract!(@each $place;
            what_was_appended_is_there_after_a_restart
            a_deleted_session_is_erased_once_and_its_key_is_not_used_again
            what_belongs_to_an_owner_is_erased
            heads_are_taken_up_once_and_in_order
            the_same_command_gets_the_same_answer
            of_a_command_that_comes_twice_at_once_one_was_decided_last_as_it_is_stored
            answers_are_kept_for_their_time_and_only_where_they_can_be_asked_for
            a_refusal_is_kept_and_stores_no_event
            a_refusal_that_is_only_too_late_is_not_kept
            a_decision_that_finds_corruption_stores_nothing
            a_decision_that_breaks_down_harms_nobody_else
            a_decision_on_an_owner_that_panics_affects_nobody_else
            events_are_numbered_from_one_without_a_gap
            the_session_is_the_fold_of_its_events_across_snapshots
            a_session_that_was_read_is_not_folded_again
            appends_to_one_session_happen_one_after_the_other
            appends_to_many_sessions_do_not_mix
            what_is_due_is_stored_with_what_happened
            what_waits_for_a_person_is_listed
            what_waits_is_listed_for_its_owner_page_by_page
            no_owner_fills_the_page_of_what_is_due
            what_happened_since_is_found_wherever_it_stands
            a_session_that_fails_backs_off_and_is_parked
            failures_are_counted_in_a_row
            a_revision_can_be_read_again_at_its_place
            what_belongs_to_an_owner_is_kept
            what_belongs_to_the_installation_is_kept
            sessions_belong_to_their_owner_and_two_owners_may_use_one_key
            an_owners_sessions_come_in_pages_and_are_found_by_title_and_key
            what_was_said_is_found_by_its_words
            what_people_decided_is_listed_for_its_owner_newest_first
            a_conversation_that_is_kept_is_read_until_another_is_kept
            what_is_remembered_is_found_in_its_own_scope_alone
            of_many_memories_those_with_rare_words_are_found
            an_output_is_kept_once_and_for_its_session_alone
            no_more_turns_begin_than_an_owner_has_room_for
            what_models_were_used_is_counted_once_whoever_counts
        );
    };
    (@each $place:expr; $($name:ident)*) => {$(
        #[tokio::test]
        async fn $name() {
            let place = $place;
            $crate::journal_contract::$name(&place).await;
        }
    )*};
}

fn identity(key: &str) -> SessionKey {
    key_of(owner_id("ada"), key)
}

async fn keep_canary(journal: &dyn Journal, session: &SessionKey) {
    let view = KeptView { upto: Seq(1), form: 1, text: "canary".into() };
    journal.keep_view(session, view).await.expect("an answer");
}

fn key_of(owner: OwnerId, key: &str) -> SessionKey {
    SessionKey::named(&format!("cli:{key}"), owner).expect("a key")
}

fn ada() -> Person {
    person("ada", "cli", Standing::Decides)
}

fn say(text: &str) -> SessionCommand {
    SessionCommand::Person(ada(), PersonCommand::Say { text: text.into() })
}

async fn ask(journal: &dyn Journal, key: &str, id: u128, command: SessionCommand) -> Answer {
    let owner = match &command {
        SessionCommand::Person(person, _) => person.owner,
        SessionCommand::Model(..) | SessionCommand::Agent(_) | SessionCommand::System(_) => {
            owner_id("ada")
        }
    };
    let asked = Issued::new(Uuid::from_u128(id), Time(1_000 + id as i64), command);
    dispatch(journal, &key_of(owner, key), asked).await.expect("the journal answers")
}

async fn kinds(journal: &dyn Journal, key: &str) -> Vec<&'static str> {
    let events = journal.events(&identity(key), Seq(0), usize::MAX).await.expect("events");
    events.iter().map(|recorded| recorded.event.kind()).collect()
}

/// An acknowledged append is there when the journal is opened again.
pub async fn what_was_appended_is_there_after_a_restart(place: &dyn Place) {
    let journal = place.open().await;
    let answer = ask(&*journal, "talk-0001", 1, say("hello")).await;
    assert_eq!(answer, Answer::Accepted { before: Seq(0), version: Seq(1) });
    drop(journal);
    let journal = place.open().await;
    let events = journal.events(&identity("talk-0001"), Seq(0), 10).await.expect("events");
    let event = SessionEvent::MessageQueued { text: "hello".into(), by: ada() };
    assert_eq!(
        events
            .into_iter()
            .map(|recorded| (recorded.seq, recorded.at, recorded.event))
            .collect::<Vec<_>>(),
        [(Seq(1), Time(1_001), event)]
    );
}

/// Asking twice has one effect and one answer, in this life and in the next.
pub async fn the_same_command_gets_the_same_answer(place: &dyn Place) {
    let journal = place.open().await;
    let first = ask(&*journal, "talk-0001", 1, say("hello")).await;
    ask(&*journal, "talk-0001", 2, say("more")).await;
    assert_eq!(ask(&*journal, "talk-0001", 1, say("hello")).await, first);
    drop(journal);
    let journal = place.open().await;
    assert_eq!(ask(&*journal, "talk-0001", 1, say("something else")).await, first);
    assert_eq!(kinds(&*journal, "talk-0001").await.len(), 2);
}

/// A refusal is an answer too.
pub async fn a_refusal_is_kept_and_stores_no_event(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let refused =
        ask(&*journal, "talk-0001", 2, SessionCommand::Person(ada(), PersonCommand::Stop)).await;
    assert!(refused.is_refused());
    assert_eq!(ask(&*journal, "talk-0001", 2, say("now allowed")).await, refused);
    assert_eq!(kinds(&*journal, "talk-0001").await, ["message_queued"]);
}

/// What was refused because the session had moved on may be asked again.
pub async fn a_refusal_that_is_only_too_late_is_not_kept(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let early = SystemCommand::StartTurn {
        turn: Uuid::from_u128(9).into(),
        queued: Seq(2),
        profile: None,
        recalled: Default::default(),
        call: None,
    };
    assert!(ask(&*journal, "talk-0001", 2, SessionCommand::System(early)).await.is_refused());
    let due = SystemCommand::StartTurn {
        turn: Uuid::from_u128(9).into(),
        queued: Seq(1),
        profile: None,
        recalled: Default::default(),
        call: None,
    };
    assert!(!ask(&*journal, "talk-0001", 2, SessionCommand::System(due)).await.is_refused());
}

/// A decision that finds corruption is an error, and nothing is stored.
pub async fn a_decision_that_finds_corruption_stores_nothing(place: &dyn Place) {
    let journal = place.open().await;
    let decide =
        Box::new(|_: &Session| Err(Undecided::Corrupt(CorruptJournal::new(Seq(1), "for a test"))));
    let error = journal
        .append(&identity("talk-0001"), Some(Uuid::from_u128(1).into()), Time(1), decide)
        .await;
    assert!(matches!(error, Err(JournalError::Corrupt(_))));
    assert_eq!(kinds(&*journal, "talk-0001").await.len(), 0);
    assert_eq!(
        ask(&*journal, "talk-0001", 1, say("hello")).await,
        Answer::Accepted { before: Seq(0), version: Seq(1) }
    );
}

/// Pages of events continue each other.
pub async fn events_are_numbered_from_one_without_a_gap(place: &dyn Place) {
    let journal = place.open().await;
    for at in 1..=10 {
        ask(&*journal, "talk-0001", at, say(&format!("message {at}"))).await;
    }
    let (mut seen, mut after) = (Vec::new(), Seq(0));
    loop {
        let page = journal.events(&identity("talk-0001"), after, 3).await.expect("events");
        let Some(last) = page.last() else { break };
        after = last.seq;
        seen.extend(page.iter().map(|recorded| recorded.seq.0));
    }
    assert_eq!(seen, (1..=10).collect::<Vec<_>>());
}

/// The stored session, warm or cold, is what folding the events gives.
pub async fn the_session_is_the_fold_of_its_events_across_snapshots(place: &dyn Place) {
    let journal = place.open().await;
    for at in 1..=300 {
        ask(&*journal, "talk-0001", at, say("x")).await;
        if at % 50 == 0 {
            ask(
                &*journal,
                "talk-0001",
                1_000 + at,
                SessionCommand::Person(ada(), PersonCommand::Reset),
            )
            .await;
        }
    }
    let warm = journal.session(&identity("talk-0001")).await.expect("a session");
    drop(journal);
    let journal = place.open().await;
    let cold = journal.session(&identity("talk-0001")).await.expect("a session");
    let events = journal.events(&identity("talk-0001"), Seq(0), usize::MAX).await.expect("events");
    let events = events.iter().map(|recorded| (recorded.at, &recorded.event));
    let folded = Session::new(identity("talk-0001")).fold_all(events).expect("it folds");
    assert_eq!((&*warm, &*cold), (&folded, &folded));
}

/// Reading an idle session twice folds it once, and the second read is not older than the last append.
pub async fn a_session_that_was_read_is_not_folded_again(place: &dyn Place) {
    let journal = place.open().await;
    for at in 1..=100 {
        ask(&*journal, "talk-0001", at, say("x")).await;
    }
    drop(journal);
    let journal = place.open().await;
    let read = async || journal.session(&identity("talk-0001")).await.expect("a session");
    let (first, second) = (read().await, read().await);
    assert_eq!(first.version, Seq(100));
    assert!(Arc::ptr_eq(&first, &second), "it was folded twice");
    let answer = ask(&*journal, "talk-0001", 101, say("more")).await;
    assert_eq!(answer, Answer::Accepted { before: Seq(100), version: Seq(101) });
    assert_eq!(read().await.version, Seq(101));
    let news = journal.events(&identity("talk-0001"), Seq(99), 10).await.expect("events");
    assert_eq!(news.iter().map(|recorded| recorded.seq.0).collect::<Vec<_>>(), [100, 101]);
}

/// Many at once on one session: each sees what the one before it did.
pub async fn appends_to_one_session_happen_one_after_the_other(place: &dyn Place) {
    let journal = place.open().await;
    let asks = (1..=64_u128).map(|at| {
        let journal = journal.clone();
        tokio::spawn(
            async move { ask(&*journal, "talk-0001", at, say(&format!("message {at}"))).await },
        )
    });
    let mut versions = Vec::new();
    for asked in asks.collect::<Vec<_>>() {
        match asked.await.expect("it answers") {
            Answer::Accepted { before, version } => {
                assert_eq!(version, before.following());
                versions.push(version.0);
            }
            Answer::Refused(refusal) => panic!("{refusal}"),
        }
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=64).collect::<Vec<_>>());
}

/// Many sessions at once: each holds its own and nothing else.
pub async fn appends_to_many_sessions_do_not_mix(place: &dyn Place) {
    let journal = place.open().await;
    let asks = (0..200_u128).map(|at| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let key = format!("talk-{:04}", at % 20);
            ask(&*journal, &key, at, say(&key)).await
        })
    });
    for asked in asks.collect::<Vec<_>>() {
        assert!(!asked.await.expect("it answers").is_refused());
    }
    for at in 0..20 {
        let key = format!("talk-{at:04}");
        let events = journal.events(&identity(&key), Seq(0), usize::MAX).await.expect("events");
        assert_eq!(events.len(), 10);
        assert!(events.iter().all(|recorded| matches!(&recorded.event, SessionEvent::MessageQueued { text, .. } if *text == key)));
    }
}

/// What is kept of a conversation replaces what was kept of it, and is there for whoever opens the journal next.
pub async fn a_conversation_that_is_kept_is_read_until_another_is_kept(place: &dyn Place) {
    let journal = place.open().await;
    let (here, there) = (identity("talk-0001"), identity("talk-0002"));
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let view = |upto, form, text: &str| KeptView { upto: Seq(upto), form, text: text.into() };
    let (first, second) = (view(1, 1, "said"), view(7, 2, &"more was said ".repeat(9_000)));
    assert_eq!(journal.kept_view(&here).await.expect("an answer"), None);
    for view in [first, second.clone()] {
        journal.keep_view(&here, view.clone()).await.expect("it is kept");
        assert_eq!(journal.kept_view(&here).await.expect("an answer"), Some(view));
    }
    journal.keep_view(&there, second.clone()).await.expect("there is no such session");
    drop(journal);
    let journal = place.open().await;
    assert_eq!(journal.kept_view(&here).await.expect("an answer"), Some(second));
    assert_eq!(journal.kept_view(&there).await.expect("an answer"), None);
}

/// What is due is a row that no crash can lose.
pub async fn what_is_due_is_stored_with_what_happened(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    ask(&*journal, "talk-0002", 2, say("hello")).await;
    ask(&*journal, "talk-0002", 3, SessionCommand::Person(ada(), PersonCommand::Reset)).await;
    drop(journal);
    let journal = place.open().await;
    let due = journal.due(None, 10).await.expect("rows");
    assert_eq!(
        due.iter().map(|row| (row.session.clone(), row.version, row.at)).collect::<Vec<_>>(),
        [(identity("talk-0001"), Seq(1), None)]
    );
    assert_eq!(journal.due(Some(Time(1_000)), 10).await.expect("rows"), [], "not yet");
    assert_eq!(journal.due(Some(Time(1_001)), 10).await.expect("rows"), due);
}

/// Whoever decided in vain decides again before the answer comes, or never did: what is told outside of the journal goes by
/// what was decided last.
pub async fn of_a_command_that_comes_twice_at_once_one_was_decided_last_as_it_is_stored(
    place: &dyn Place,
) {
    let journal = place.open().await;
    for round in 0..20 {
        ask(&*journal, "talk-0001", 100 + round, say("hello")).await;
        let before = journal.session(&identity("talk-0001")).await.expect("a session").version;
        let append = |last: Arc<Mutex<Option<Seq>>>| {
            let decide = Box::new(move |session: &Session| {
                *last.lock().expect("a lock") = Some(session.version);
                let event = SessionEvent::MessageQueued { text: "once".into(), by: ada() };
                let events = vec![event];
                let after = session.fold(Time(9_000), &events)?;
                let due = planwright_domain::next::Due::Never;
                Ok(Append { events, after, due, waiting: None, turns: None })
            });
            let (journal, id) = (journal.clone(), Uuid::from_u128(round).into());
            async move { journal.append(&identity("talk-0001"), Some(id), Time(9_000), decide).await }
        };
        let (first, second) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<_>>::default());
        let (one, other) = tokio::join!(append(first.clone()), append(second.clone()));
        let accepted = Answer::Accepted { before, version: before.following() };
        assert_eq!(
            (one.expect("an answer"), other.expect("an answer")),
            (accepted.clone(), accepted)
        );
        let last = [first, second].map(|last| *last.lock().expect("a lock"));
        let on_it = last.iter().filter(|last| **last == Some(before)).count();
        assert_eq!(on_it, 1, "round {round}: {last:?} from {before}");
    }
}

/// An answer is there as long as answers are kept; what nobody can ask for again is not kept at all.
pub async fn answers_are_kept_for_their_time_and_only_where_they_can_be_asked_for(
    place: &dyn Place,
) {
    let journal = place.open().await;
    let accepted =
        |before, version| Answer::Accepted { before: Seq(before), version: Seq(version) };
    assert_eq!(ask(&*journal, "talk-0001", 1, say("first")).await, accepted(0, 1));
    assert_eq!(journal.forget_answers(Time(1_001), 10).await.expect("it answers"), 0, "its time");
    assert_eq!(ask(&*journal, "talk-0001", 1, say("first")).await, accepted(0, 1), "the same");
    for (before, version) in [(1, 2), (2, 3)] {
        let once = Issued::once(Time(1_005), say("again"));
        let answer = dispatch(&*journal, &identity("talk-0001"), once).await.expect("it answers");
        assert_eq!(answer, accepted(before, version));
    }
    assert_eq!(journal.forget_answers(Time(9_000), 10).await.expect("it answers"), 1);
    assert_eq!(ask(&*journal, "talk-0001", 1, say("first")).await, accepted(3, 4), "anew");
}

/// A list of sessions says which of them need a person.
pub async fn what_waits_for_a_person_is_listed(place: &dyn Place) {
    let journal = place.open().await;
    ready(&*journal, "talk-0001").await;
    ask(&*journal, "talk-0002", 90, say("hello")).await;
    let rows = journal.sessions(None, 10).await.expect("rows");
    let rows: Vec<_> = rows.into_iter().map(|row| (row.session, row.waiting, row.parked)).collect();
    assert!(rows.contains(&(identity("talk-0001"), Some(Waiting::Decision), None)));
    assert!(rows.contains(&(identity("talk-0002"), None, None)));
    let all =
        SessionQuery { owner: None, waiting: true, text: String::new(), after: None, limit: 10 };
    let waiting = journal.session_page(&all).await.expect("rows");
    assert_eq!(
        waiting.rows.into_iter().map(|row| row.session).collect::<Vec<_>>(),
        [identity("talk-0001")]
    );
}

/// An owner's list holds all of what waits for that owner, whatever waits for others, and pages continue each other.
pub async fn what_waits_is_listed_for_its_owner_page_by_page(place: &dyn Place) {
    let journal = place.open().await;
    for (id, owner) in (0..9).zip(["ada", "bea", "bea"].into_iter().cycle()) {
        let (key, by) = (format!("talk-{id:04}"), person(owner, "cli", Standing::Speaks));
        let at = Time(1_000 + id as i64);
        let decide = Box::new(move |session: &Session| {
            let event = SessionEvent::MessageQueued { text: "hello".into(), by: by.clone() };
            let (events, due) = (vec![event], planwright_domain::next::Due::Never);
            let after = session.fold(at, &events)?;
            Ok(Append { events, after, due, waiting: Some(Waiting::Decision), turns: None })
        });
        let asked = Some(Uuid::from_u128(id).into());
        journal.append(&key_of(owner_id(owner), &key), asked, at, decide).await.expect("stored");
    }
    let (ada, bea) = (owner_id("ada"), owner_id("bea"));
    let listed = async |owner: Option<OwnerId>, limit| -> Vec<Vec<String>> {
        let (mut after, mut pages) = (None, Vec::new());
        loop {
            let query = SessionQuery { owner, waiting: true, text: String::new(), after, limit };
            let SessionPage { rows, next, total } =
                journal.session_page(&query).await.expect("rows");
            assert_eq!(
                total,
                if owner.is_none() {
                    9
                } else if owner == Some(ada) {
                    3
                } else {
                    6
                }
            );
            let keys = rows.into_iter().map(|row| row.session.identity.key.as_str().to_owned());
            pages.push(keys.collect());
            match next {
                Some(next) => after = Some(next.to_string().parse().expect("a place")),
                None => return pages,
            }
        }
    };
    let of_ada = ["talk-0006", "talk-0003", "talk-0000"];
    assert_eq!(listed(Some(ada), 3).await, [of_ada], "newest first");
    assert_eq!(listed(Some(ada), 2).await, [&of_ada[..2], &of_ada[2..]]);
    assert_eq!(listed(Some(bea), 5).await.concat().len(), 6);
    let all: Vec<_> = (0..9).rev().map(|at| format!("talk-{at:04}")).collect();
    assert_eq!(listed(None, 4).await.concat(), all);
    let active = async |owner: Option<OwnerId>, since, after: Option<&str>| -> Vec<String> {
        let after = after.map(identity);
        let rows = journal.active(owner, Time(since), after.as_ref(), 2).await.expect("rows");
        rows.into_iter().map(|row| row.session.identity.key.as_str().to_owned()).collect()
    };
    assert_eq!(active(Some(ada), 0, None).await, ["talk-0000", "talk-0003"], "by name");
    assert_eq!(active(Some(ada), 0, Some("talk-0003")).await, ["talk-0006"]);
    assert_eq!(active(Some(ada), 1_004, None).await, ["talk-0006"]);
    let mut of_all = journal.active(None, Time(1_006), None, 9).await.expect("rows");
    let listed: Vec<_> = of_all.iter().map(|row| row.session.clone()).collect();
    of_all.sort_by_key(|row| row.session.clone());
    assert_eq!(listed, of_all.iter().map(|row| row.session.clone()).collect::<Vec<_>>(), "by key");
    let next = journal.active(None, Time(1_006), listed.first(), 9).await.expect("rows");
    assert_eq!(next.len(), 2, "after the first of {listed:?}");
}

/// However much of one owner is due, and since when: what is due of another is in the same page.
pub async fn no_owner_fills_the_page_of_what_is_due(place: &dyn Place) {
    let journal = place.open().await;
    for (id, owner) in (0..9).zip(["ada"; 8].into_iter().chain(["bea"])) {
        let (key, by) = (format!("talk-{id:04}"), person(owner, "cli", Standing::Speaks));
        let decide = Box::new(move |session: &Session| {
            let event = SessionEvent::MessageQueued { text: "hello".into(), by: by.clone() };
            let (events, due) = (vec![event], planwright_domain::next::Due::Now);
            let after = session.fold(Time(1_000), &events)?;
            Ok(Append { events, after, due, waiting: None, turns: None })
        });
        let asked = Some(Uuid::from_u128(id).into());
        journal
            .append(&key_of(owner_id(owner), &key), asked, Time(1_000), decide)
            .await
            .expect("stored");
    }
    for by in [None, Some(Time(2_000))] {
        let rows = journal.due(by, 3).await.expect("rows");
        let owners: Vec<_> = rows.iter().map(|row| row.session.owner).collect();
        let of_bea = owners.iter().filter(|owner| **owner == owner_id("bea")).count();
        assert_eq!(of_bea, 1, "{owners:?}");
    }
}

/// Times need not rise from event to event: clocks differ. What was recorded since then is found all the same.
pub async fn what_happened_since_is_found_wherever_it_stands(place: &dyn Place) {
    let journal = place.open().await;
    for (id, at) in (1..).zip([10, 50, 20, 60, 30, 70]) {
        let asked = Issued::new(Uuid::from_u128(id), Time(at), say("hello"));
        dispatch(&*journal, &identity("talk-0001"), asked).await.expect("the journal answers");
    }
    let since = async |since, after, limit| -> Vec<u64> {
        let id = identity("talk-0001");
        let found = journal
            .events_since(&id, Since { time: Time(since), kinds: &[] }, Seq(after), limit)
            .await;
        found.expect("events").iter().map(|recorded| recorded.seq.0).collect()
    };
    assert_eq!(since(50, 0, 10).await, [2, 4, 6]);
    assert_eq!(since(50, 0, 2).await, [2, 4]);
    assert_eq!(since(50, 4, 2).await, [6]);
    assert_eq!(since(71, 0, 10).await, [0_u64; 0]);
}

/// Failures back off further and further; after the eighth the session is left alone until taken up.
pub async fn a_session_that_fails_backs_off_and_is_parked(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let mut last = Time(0);
    for _ in 1..8 {
        match journal
            .back_off(&identity("talk-0001"), Time(1_000), "no luck")
            .await
            .expect("it backs off")
        {
            BackedOff::Until(time) => {
                assert!(time > last);
                last = time;
            }
            BackedOff::Parked => panic!("parked too early"),
        }
    }
    assert_eq!(
        journal.back_off(&identity("talk-0001"), Time(1_000), "no luck").await.expect("it parks"),
        BackedOff::Parked
    );
    assert!(journal.due(None, 10).await.expect("rows").is_empty());
    assert_eq!(
        journal.sessions(None, 10).await.expect("rows")[0].parked.as_deref(),
        Some("no luck")
    );
    journal.unpark(&identity("talk-0001"), Time(2_000)).await.expect("it is taken up");
    assert_eq!(journal.due(None, 10).await.expect("rows").len(), 1);
    assert_eq!(journal.sessions(None, 10).await.expect("rows")[0].parked, None);
}

/// A session that got on meanwhile begins anew; one that was only spoken to does not.
pub async fn failures_are_counted_in_a_row(place: &dyn Place) {
    let journal = place.open().await;
    let fails = async || {
        let failed = journal.back_off(&identity("talk-0001"), Time(1_000), "no luck").await;
        match failed.expect("it backs off") {
            BackedOff::Until(time) => time,
            BackedOff::Parked => panic!("parked too early"),
        }
    };
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let first = fails().await;
    ask(&*journal, "talk-0001", 2, say("are you there")).await;
    assert!(fails().await > first);
    ready(&*journal, "talk-0002").await;
    let second = async || {
        let failed = journal.back_off(&identity("talk-0002"), Time(1_000), "no luck").await;
        failed.expect("it backs off")
    };
    assert_eq!(second().await, BackedOff::Until(first));
    for id in 100..120 {
        ended_turn(&*journal, "talk-0002", id * 10).await;
        assert_eq!(second().await, BackedOff::Until(first));
    }
}

/// The open turn is answered, or one is begun and answered.
async fn ended_turn(journal: &dyn Journal, key: &str, id: u128) {
    ask(journal, key, id, say("go on")).await;
    let system = SessionCommand::System;
    if let Next::StartTurn(queued) = next(&journal.session(&identity(key)).await.expect("it")) {
        let turn = Uuid::from_u128(id).into();
        let (profile, recalled, call) = (None, Default::default(), None);
        let start = SystemCommand::StartTurn { turn, queued, profile, recalled, call };
        ask(journal, key, id + 1, system(start)).await;
    }
    let Next::CallModel { attempt, .. } = next(&journal.session(&identity(key)).await.expect("it"))
    else {
        panic!("no model call is due")
    };
    let bracket = planwright_domain::effect::Bracket {
        incarnation: planwright_domain::id::Incarnation(Uuid::from_u128(52)),
        start_by: Time(5),
        deadline: Time(6),
    };
    let start = SystemCommand::StartModelCall { attempt, bracket };
    ask(journal, key, id + 2, system(start)).await;
    let answer = ModelSaid { text: "there".into(), ..ModelSaid::default() };
    let answered = SystemCommand::RecordAnswer { attempt, answer, others: 0 };
    ask(journal, key, id + 3, system(answered)).await;
}

/// A revision is read back, at the place that the session names, as it was written.
pub async fn a_revision_can_be_read_again_at_its_place(place: &dyn Place) {
    let journal = place.open().await;
    ready(&*journal, "talk-0001").await;
    let session = journal.session(&identity("talk-0001")).await.expect("a session");
    let plan = session.plan().expect("a plan");
    let seq = plan.revision_seq(1).expect("a revision");
    let found = journal.events(&identity("talk-0001"), Seq(seq.0 - 1), 1).await.expect("events");
    let SessionEvent::Plan(PlanEvent::RevisionAdded { revision, digest, .. }) = &found[0].event
    else {
        panic!("{found:?}")
    };
    assert_eq!(Some(*digest), plan.current.as_ref().map(|head| head.digest));
    assert_eq!(
        (revision.digest(&identity("talk-0001")), revision.markdown.as_str()),
        (*digest, "# A plan\n")
    );
}

/// What belongs to an owner is a stream of its own: kept, refused whole, and nobody else's.
pub async fn what_belongs_to_an_owner_is_kept(place: &dyn Place) {
    let journal = place.open().await;
    let (ada, bea) = (owner_id("ada"), owner_id("bea"));
    let terminal = Transport::new(ChannelType::Cli, "terminal");
    let key = |key: &str| ConversationKey::new(key).expect("a key");
    let bind = |named: &str| {
        let (transport, key) = (terminal.clone(), key(named));
        let command = OwnerCommand::Bind { transport, key, why: Moved::Requested };
        Box::new(move |owner: &Owner| owner::decide(owner, &command))
    };
    assert_eq!(journal.owner(ada).await.expect("it answers"), Owner::new(ada));
    let unknown = journal.append_owner(ada, Time(1), bind("talk-0001")).await;
    assert!(unknown.is_err(), "nothing is kept for an owner whom nobody knows: {unknown:?}");
    introduce(&*journal, &["ada", "bea"]).await.expect("they are known");
    let again = journal.owner_of(&PersonId("ada".into()), owner_id("somebody else")).await;
    assert_eq!(again.expect("it answers"), ada, "an owner keeps the id that was made first");
    let taken = journal.owner_of(&PersonId("carol".into()), ada).await;
    assert!(taken.is_err(), "an id belongs to one person: {taken:?}");
    for named in ["talk-0001", "talk-0002", "talk-0002"] {
        journal.append_owner(ada, Time(1), bind(named)).await.expect("stored").expect("allowed");
    }
    let forget = OwnerCommand::Forget { id: Uuid::from_u128(1).into() };
    let forget = Box::new(move |owner: &Owner| owner::decide(owner, &forget));
    let refused = journal.append_owner(ada, Time(1), forget).await.expect("it answers");
    assert_eq!(refused.expect_err("nothing to forget").kind(), "not_there");
    drop(journal);
    let journal = place.open().await;
    let kept = journal.owner(ada).await.expect("it answers");
    assert_eq!((kept.version, kept.pointers.get(&terminal)), (Seq(2), Some(&key("talk-0002"))));
    assert_eq!(journal.owner(bea).await.expect("it answers").pointers.len(), 0);
}

/// What belongs to the installation is a stream of its own: kept, refused whole, and seen by everyone who opens it.
pub async fn what_belongs_to_the_installation_is_kept(place: &dyn Place) {
    let journal = place.open().await;
    let asks = |command: InstallationCommand| {
        Box::new(move |before: &Installation| installation::decide(before, &command))
    };
    let hash = |of: &str| Digest::of(of.as_bytes());
    let chooses = |of: &str| {
        let person = PersonId(OWNER.into());
        asks(InstallationCommand::ChooseFirst { person, hash: hash(of) })
    };
    assert_eq!(*journal.installation().await.expect("it answers"), Installation::default());
    let first = chooses("first");
    let stored = journal.append_installation(Time(1), first).await.expect("stored");
    let stored = stored.expect("allowed");
    let second = chooses("second");
    let refused = journal.append_installation(Time(2), second).await.expect("it answers");
    assert_eq!(refused.expect_err("once").kind(), "already_chosen");
    let nothing = Box::new(|_: &Installation| Ok(Vec::new()));
    let current = journal.append_installation(Time(3), nothing).await.expect("it answers");
    assert_eq!(current.expect("allowed"), stored);
    let person = PersonId("bea".into());
    let by = Requester { person: PersonId(OWNER.into()), age_micros: Some(0), age_micros_max: 1 };
    let invitation = Invitation { secret: hash("link"), until: Time(9) };
    let roles = [Role::Decide].into();
    let add = asks(InstallationCommand::Add { person, roles, invitation, by });
    let added = journal.append_installation(Time(4), add).await.expect("stored").expect("allowed");
    assert_eq!((added.version, added.people.len()), (Seq(3), 2));
    let seen = journal.installation().await.expect("it answers");
    assert_eq!(seen, added, "who stored it sees it at once");
    drop(journal);
    let again = place.open().await.installation().await.expect("it answers");
    assert_eq!(again, added);
}

/// Every session is on one of the pages, each once; a search finds titles and keys, whatever their case.
pub async fn an_owners_sessions_come_in_pages_and_are_found_by_title_and_key(place: &dyn Place) {
    let journal = place.open().await;
    let person = |name: &str| person(name, "cli", Standing::Speaks);
    let says = |name: &str, text: &str| {
        SessionCommand::Person(person(name), PersonCommand::Say { text: text.into() })
    };
    for at in 1..=25_u128 {
        let text = if at % 5 == 0 { "100%_Cellar" } else { "hello" };
        ask(&*journal, &format!("talk-{at:04}"), at, says("ada", text)).await;
    }
    ask(&*journal, "talk-9999", 99, says("bea", "100%_cellar")).await;
    let delete = SessionCommand::Person(person("ada"), PersonCommand::Life(LifeCommand::Delete));
    ask(&*journal, "talk-0025", 100, delete).await;
    let page = async |text: &str, after: Option<ListPlace>, limit: usize| {
        let (owner, text) = (Some(person("ada").owner), text.to_owned());
        let query = SessionQuery { owner, waiting: false, text, after, limit };
        journal.session_page(&query).await.expect("a page")
    };
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let SessionPage { rows, next, total } = page("", after, 10).await;
        assert_eq!(total, 24);
        listed.extend(rows);
        // What moves to the front is not met again, and moves nothing out of sight.
        if after.is_none() {
            ask(&*journal, "talk-0024", 200, says("ada", "once more")).await;
        }
        let Some(next) = next else { break };
        after = Some(next);
    }
    let keys: Vec<_> = listed.iter().map(|row| row.session.clone()).collect();
    let newest_first: Vec<_> =
        (1..=24).rev().map(|at| identity(&format!("talk-{at:04}"))).collect();
    assert_eq!(keys, newest_first);
    for row in &listed {
        let session = journal.session(&row.session).await.expect("a session");
        let same = SessionRow { waiting: row.waiting, ..SessionRow::of(&session, row.updated) };
        let is_moved = row.session == identity("talk-0024");
        assert!(is_moved || *row == same, "what a row says is what its session says: {row:?}");
    }
    while journal.index_words().await.expect("it is indexed") > 0 {}
    let found = page("%_cell", None, 3).await;
    assert_eq!((found.rows.len(), found.total), (3, 4), "what is looked for is no pattern");
    assert!(found.rows.iter().all(|row| row.title == "100%_Cellar"), "{found:?}");
    let rest = page("%_cell", found.next, 3).await;
    assert_eq!((rest.rows.len(), rest.next), (1, None));
    let found = page("TALK-0007", None, 10).await;
    assert_eq!(
        found.rows.into_iter().map(|row| row.session).collect::<Vec<_>>(),
        [identity("talk-0007")]
    );
    let nothing = SessionPage { rows: Vec::new(), next: None, total: 0 };
    assert_eq!(page("nowhere", None, 10).await, nothing);
    assert_eq!(page("?!", None, 10).await, nothing, "no word is looked for");
}

/// What was said and what a plan says is found by how its words begin, all of them in one place, in the sessions of its owner
/// or in everyone's; not before it is taken up, and not after its session was erased.
pub async fn what_was_said_is_found_by_its_words(place: &dyn Place) {
    let journal = place.open().await;
    introduce(&*journal, &["ada", "bea"]).await.expect("they are known");
    let found = async |owner: Option<OwnerId>, text: &str| {
        let query =
            SessionQuery { owner, waiting: false, text: text.to_owned(), after: None, limit: 10 };
        let SessionPage { rows, total, .. } = journal.session_page(&query).await.expect("a page");
        assert_eq!(rows.len() as u64, total);
        rows.into_iter().map(|row| row.session.identity.key.as_str().to_owned()).collect::<Vec<_>>()
    };
    let (ada, bea) = (Some(owner_id("ada")), Some(owner_id("bea")));
    ready(&*journal, "talk-0001").await;
    for id in 0..300 {
        ask(&*journal, "talk-0002", 1_000 + id, say("a lot of it")).await;
    }
    ask(&*journal, "talk-0002", 2_000, say("Übersicht der Überschüsse; 把照片移到备份盘")).await;
    let hers = SessionCommand::Person(
        person("bea", "cli", Standing::Speaks),
        PersonCommand::Say { text: "an overview of surplus".into() },
    );
    ask(&*journal, "talk-0003", 3_000, hers).await;
    assert_eq!(found(ada, "übersch").await, [""; 0], "nobody took it up");
    while journal.index_words().await.expect("it is indexed") > 0 {}
    assert_eq!(found(ada, "übersch").await, ["talk-0002"]);
    assert_eq!(found(ada, "LOT of").await, ["talk-0002"]);
    assert_eq!(found(ada, "照片 übers").await, ["talk-0002"]);
    assert_eq!(found(ada, "lot übers").await, [""; 0], "not in one place");
    assert_eq!(found(ada, "surplus").await, [""; 0], "another's");
    assert_eq!(found(bea, "surplus").await, ["talk-0003"]);
    assert_eq!(found(None, "surplus").await, ["talk-0003"]);
    assert_eq!(found(ada, "a plan").await, ["talk-0001"], "a plan says it");
    let rename = by_ada(PersonCommand::Life(LifeCommand::Rename { title: "Cellar".into() }));
    ask(&*journal, "talk-0002", 4_000, rename).await;
    let delete = by_ada(PersonCommand::Life(LifeCommand::Delete));
    ask(&*journal, "talk-0001", 4_001, delete).await;
    remove_pages(&*journal, &identity("talk-0001"), "talk-0001").await;
    assert!(journal.erase(&identity("talk-0001"), Time(9_001)).await.expect("an answer"));
    while journal.index_words().await.expect("it is indexed") > 0 {}
    assert_eq!(found(None, "a plan").await, [""; 0], "it was erased");
    assert_eq!(found(ada, "cellar").await, ["talk-0002"], "it is called something else now");
}

/// What people decided is listed newest first, for its owner or for all, and nothing that was only looked at.
pub async fn what_people_decided_is_listed_for_its_owner_newest_first(place: &dyn Place) {
    let journal = place.open().await;
    let delete = |name| {
        let by = person(name, "cli", Standing::Speaks);
        SessionCommand::Person(by, PersonCommand::Life(LifeCommand::Delete))
    };
    for (id, owner) in (1..=6).zip(["ada", "bea", "bea"].into_iter().cycle()) {
        let (key, by) = (format!("talk-{id:04}"), person(owner, "cli", Standing::Speaks));
        let say = PersonCommand::Say { text: format!("{owner} speaks") };
        ask(&*journal, &key, id, SessionCommand::Person(by, say)).await;
        ask(&*journal, &key, id + 10, delete(owner)).await;
    }
    let decided = async |owner, since, limit| -> Vec<(String, String, Time)> {
        let rows = journal.decisions(owner, Time(since), limit).await.expect("rows");
        let row = |row: DecisionRow| {
            assert_eq!(row.recorded.event.kind(), "session_deleted");
            (row.session.identity.key.as_str().to_owned(), row.title, row.recorded.at)
        };
        rows.into_iter().map(row).collect()
    };
    let of = |owner: &str, id: i64| {
        (format!("talk-{id:04}"), format!("{owner} speaks"), Time(1_010 + id))
    };
    assert_eq!(decided(Some(owner_id("ada")), 0, 10).await, [of("ada", 4), of("ada", 1)]);
    assert_eq!(decided(Some(owner_id("bea")), 1_013, 2).await, [of("bea", 6), of("bea", 5)]);
    assert_eq!(decided(None, 1_014, 10).await, [of("bea", 6), of("bea", 5), of("ada", 4)]);
    assert_eq!(decided(None, 2_000, 10).await, []);
}

/// Lists hold the sessions of their owner alone, and none that were deleted. Two owners may use the same key.
/// Invariant: `session-isolation`.
pub async fn sessions_belong_to_their_owner_and_two_owners_may_use_one_key(place: &dyn Place) {
    let journal = place.open().await;
    let person = |name: &str| person(name, "cli", Standing::Speaks);
    let says = |name: &str| {
        let say = PersonCommand::Say { text: format!("{name} speaks") };
        SessionCommand::Person(person(name), say)
    };
    ask(&*journal, "talk-0001", 1, says("ada")).await;
    ask(&*journal, "talk-0002", 2, says("bea")).await;
    ask(&*journal, "talk-0003", 3, says("ada")).await;
    // The same key and the same id of the command, and still another session.
    ask(&*journal, "talk-0001", 1, says("bea")).await;
    let (ada, bea) = (person("ada").owner, person("bea").owner);
    let listed = async |owner: OwnerId| -> Vec<(SessionKey, String)> {
        let rows = journal.sessions(Some(owner), 10).await.expect("rows");
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row.session, row.title)).collect();
        rows.sort();
        rows
    };
    let title = |owner, key: &str, title: &str| (key_of(owner, key), title.to_owned());
    let both = [title(ada, "talk-0001", "ada speaks"), title(ada, "talk-0003", "ada speaks")];
    assert_eq!(listed(ada).await, both);
    let both = [title(bea, "talk-0001", "bea speaks"), title(bea, "talk-0002", "bea speaks")];
    assert_eq!(listed(bea).await, both);
    let events = async |owner| {
        let events = journal.events(&key_of(owner, "talk-0001"), Seq(0), 10).await;
        events.expect("events").into_iter().map(|recorded| recorded.event).collect::<Vec<_>>()
    };
    assert_ne!(events(ada).await, events(bea).await);
    let asked = Issued::new(Uuid::from_u128(4), Time(1_004), says("ada"));
    let foreign = dispatch(&*journal, &key_of(bea, "talk-0002"), asked).await;
    assert!(foreign.expect("the journal answers").is_refused(), "it is bea's");
    let delete = PersonCommand::Life(LifeCommand::Delete);
    let delete = SessionCommand::Person(person("ada"), delete);
    assert!(!ask(&*journal, "talk-0003", 5, delete).await.is_refused());
    assert_eq!(listed(ada).await, [title(ada, "talk-0001", "ada speaks")]);
    let newest = journal.newest(ada, ChannelType::Cli).await.expect("it answers");
    assert_eq!(newest, Some(identity("talk-0001")));
    assert_eq!(journal.newest(ada, ChannelType::Web).await.expect("it answers"), None);
}

/// Of more memories than are looked at, those with the rarest words of a question are found.
pub async fn of_many_memories_those_with_rare_words_are_found(place: &dyn Place) {
    let journal = place.open().await;
    let ada = person("ada", "cli", Standing::Speaks);
    for (number, text) in [(1_u128, "common rare"), (2, "common one"), (3, "common two")] {
        let (id, kind) = (Uuid::from_u128(number).into(), ItemKind::Fact);
        let save = PersonCommand::Memory(MemoryCommand::Save { id, kind, text: text.into() });
        ask(&*journal, "talk-0001", number, SessionCommand::Person(ada.clone(), save)).await;
    }
    let chain = Chain::of(ada.owner, &identity("talk-0001").identity, None);
    let found = async |question: &str| -> Vec<String> {
        let found = journal.candidates(&chain, &Question::new(question), 2).await;
        let items = found.expect("it answers").into_iter().flat_map(|found| found.items);
        items.map(|item| item.text).collect()
    };
    assert_eq!(found("common rare").await, ["common rare"]);
    assert_eq!(found("common").await, ["common two", "common one"], "the newest");
    assert_eq!(found("nothing").await, Vec::<String>::new());
}

/// What is remembered is found by scope first, changed, forgotten, and gone with its session.
/// Invariant: `strict-scope`.
pub async fn what_is_remembered_is_found_in_its_own_scope_alone(place: &dyn Place) {
    let journal = place.open().await;
    let ada = ada();
    let save = |number: u128, text: &str| {
        let (id, kind) = (Uuid::from_u128(number).into(), ItemKind::Fact);
        let save = MemoryCommand::Save { id, kind, text: text.into() };
        SessionCommand::Person(ada.clone(), PersonCommand::Memory(save))
    };
    ask(&*journal, "talk-0001", 0, say("hello")).await;
    ask(&*journal, "talk-0002", 0, say("hello")).await;
    ask(&*journal, "talk-0001", 1, save(1, "Backups live in /backup, née \u{1F4BE} café")).await;
    ask(&*journal, "talk-0001", 2, save(2, "The service is called photos")).await;
    ask(&*journal, "talk-0002", 3, save(3, "Backups are none of your business")).await;
    let chain = |key: &str| Chain::of(ada.owner, &identity(key).identity, None);
    let found = async |key: &str, question: &str| -> Vec<String> {
        let asked = Question::new(question);
        let found = journal.candidates(&chain(key), &asked, 10).await.expect("it answers");
        found.into_iter().flat_map(|found| found.items).map(|item| item.text).collect()
    };
    assert_eq!(found("talk-0001", "where are backups?").await.len(), 1);
    assert_eq!(found("talk-0001", "CAFÉ").await.len(), 1, "in any letters");
    assert_eq!(found("talk-0002", "backups").await, ["Backups are none of your business"]);
    assert!(found("talk-0002", "photos").await.is_empty());
    let counted = journal.candidates(&chain("talk-0001"), &Question::new("photos"), 10).await;
    let counted = &counted.expect("it answers")[0];
    assert_eq!((counted.items.len(), counted.count), (1, 2), "counts are of the scope alone");
    let id = |number: u128| MemoryId(Uuid::from_u128(number));
    let item = async |key: &str, number| {
        journal.item(&chain(key), id(number)).await.expect("it answers").map(|item| item.text)
    };
    assert_eq!(item("talk-0002", 1).await, None, "a foreign id finds nothing");
    let foreign = PersonCommand::Memory(MemoryCommand::Forget { id: id(1) });
    ask(&*journal, "talk-0002", 4, SessionCommand::Person(ada.clone(), foreign)).await;
    assert_eq!(found("talk-0001", "backups").await.len(), 1, "a foreign id forgets nothing");
    let change = MemoryCommand::Change { id: id(1), text: "Backups live in /vault".into() };
    let change = SessionCommand::Person(ada.clone(), PersonCommand::Memory(change));
    ask(&*journal, "talk-0001", 5, change).await;
    assert_eq!(found("talk-0001", "vault").await, ["Backups live in /vault"]);
    assert!(found("talk-0001", "café").await.is_empty());
    let own = PersonCommand::Memory(MemoryCommand::Forget { id: id(2) });
    ask(&*journal, "talk-0001", 6, SessionCommand::Person(ada.clone(), own)).await;
    assert!(found("talk-0001", "photos").await.is_empty());
    let promoted = journal.item(&chain("talk-0001"), id(1)).await.expect("it answers");
    let promoted = Box::new(promoted.expect("it is there"));
    let text = promoted.text.clone();
    let promote = OwnerCommand::Promote { item: promoted, text, id: id(9), by: ada.id.clone() };
    let promote = Box::new(move |owner: &Owner| owner::decide(owner, &promote));
    introduce(&*journal, &["ada"]).await.expect("ada is known");
    journal.append_owner(ada.owner, Time(9), promote).await.expect("stored").expect("allowed");
    assert_eq!(found("talk-0002", "vault").await, ["Backups live in /vault"], "known everywhere");
    let bea = Chain::of(owner_id("bea"), &identity("talk-0002").identity, None);
    let foreign = journal.candidates(&bea, &Question::new("vault"), 10).await.expect("it answers");
    assert!(foreign.iter().all(|found| found.items.is_empty()), "for its owner alone");
    let elsewhere = journal.elsewhere(&chain("talk-0002")).await.expect("it answers");
    assert!(elsewhere >= 1, "the items of the owner's other sessions are counted");
    assert_eq!(journal.elsewhere(&bea).await.expect("it answers"), 0, "to nobody else");
    drop(journal);
    let journal = place.open().await;
    let delete = PersonCommand::Life(LifeCommand::Delete);
    ask(&*journal, "talk-0001", 7, SessionCommand::Person(ada.clone(), delete)).await;
    let left = journal.everything(&chain("talk-0001"), 10).await.expect("it answers");
    let left: Vec<_> = left.into_iter().map(|item| (item.id, item.scope)).collect();
    assert_eq!(left, [(id(9), Scope::Global)], "gone with its session, but for what was promoted");
    let kept = journal.candidates(&chain("talk-0002"), &Question::new("vault"), 10).await;
    let kept: usize = kept.expect("it answers").iter().map(|found| found.items.len()).sum();
    assert_eq!(kept, 1, "what was promoted stays");
}

/// Brings a session to a plan that waits for a decision.
async fn ready(journal: &dyn Journal, key: &str) {
    let plan = PersonCommand::StartPlan {
        plan: Uuid::from_u128(50).into(),
        strategy: planwright_domain::plan::Strategy::Document,
        reads: planwright_domain::plan::Reads::Record,
    };
    ask(journal, key, 10, SessionCommand::Person(ada(), plan)).await;
    ask(journal, key, 11, say("plan it")).await;
    let turn = Uuid::from_u128(51).into();
    let bracket = planwright_domain::effect::Bracket {
        incarnation: planwright_domain::id::Incarnation(Uuid::from_u128(52)),
        start_by: Time(5),
        deadline: Time(6),
    };
    let start = SystemCommand::StartTurn {
        turn,
        queued: Seq(2),
        profile: None,
        recalled: Default::default(),
        call: Some(bracket),
    };
    ask(journal, key, 12, SessionCommand::System(start)).await;
    let call = RequestedCall {
        id: Uuid::from_u128(53).into(),
        wire_id: "w".into(),
        tool: "plan_set_content".into(),
        arguments: "{\"plan_markdown\":\"# A plan\\n\"}".into(),
        kind: CallKind::Plan,
    };
    let answer = ModelSaid { text: String::new(), calls: vec![call], ..ModelSaid::default() };
    ask(
        journal,
        key,
        14,
        SessionCommand::System(SystemCommand::RecordAnswer {
            attempt: ModelAttempt { turn, round: 1, number: 1 },
            answer,
            others: 0,
        }),
    )
    .await;
    let tool = planwright_domain::command::ModelCommand::UsePlanTool {
        call: Uuid::from_u128(53).into(),
        given: Given {
            fresh: Uuid::from_u128(54).into(),
            profiles: [].into(),
            memory: None,
            markdown: None,
        },
    };
    ask(journal, key, 15, SessionCommand::Model(turn, tool)).await;
    let events = journal.events(&identity(key), Seq(0), 100).await.expect("events");
    assert!(events.iter().any(|recorded| matches!(
        &recorded.event,
        SessionEvent::Turn(TurnEvent::CallAnswered { .. })
    )));
}

/// A panic in one decision is that command's alone.
pub async fn a_decision_that_breaks_down_harms_nobody_else(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let theirs = journal.clone();
    let broken = tokio::spawn(async move {
        let decide = |_: &Session| panic!("on purpose");
        let id = Uuid::from_u128(2).into();
        theirs.append(&identity("talk-0001"), Some(id), Time(2_000), Box::new(decide)).await
    });
    assert!(!matches!(broken.await, Ok(Ok(_))), "it has no answer");
    assert_eq!(
        ask(&*journal, "talk-0001", 3, say("more")).await,
        Answer::Accepted { before: Seq(1), version: Seq(2) }
    );
    ask(&*journal, "talk-0002", 4, say("hello")).await;
    assert_eq!(kinds(&*journal, "talk-0001").await, ["message_queued", "message_queued"]);
}

/// A panic in a decision on an owner is that caller's alone, and the owner's lock is free afterwards.
pub async fn a_decision_on_an_owner_that_panics_affects_nobody_else(place: &dyn Place) {
    let journal = place.open().await;
    introduce(&*journal, &["ada"]).await.expect("ada is known");
    let (theirs, id) = (journal.clone(), owner_id("ada"));
    let broken = tokio::spawn(async move {
        let decide = |_: &Owner| panic!("on purpose");
        theirs.append_owner(id, Time(2_000), Box::new(decide)).await
    });
    assert!(!matches!(broken.await, Ok(Ok(_))), "it has no answer");
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    let transport = Transport::new(ChannelType::Cli, "terminal");
    let key = ConversationKey::new("talk-0001").expect("a key");
    let bind = OwnerCommand::Bind { transport, key, why: Moved::Requested };
    let bind = Box::new(move |owner: &Owner| owner::decide(owner, &bind));
    let bound = journal.append_owner(id, Time(2_001), bind).await;
    assert_eq!(bound.expect("stored").expect("allowed").version, Seq(1));
}

/// A long output is there under its digest after a restart, and not in another session.
pub async fn an_output_is_kept_once_and_for_its_session_alone(place: &dyn Place) {
    let journal = place.open().await;
    ask(&*journal, "talk-0001", 1, say("hello")).await;
    ask(&*journal, "talk-0002", 2, say("hello")).await;
    let text = "zeile ä\n".repeat(40_000);
    let digest = journal.keep_output(&identity("talk-0001"), &text).await.expect("it is kept");
    assert_eq!(digest, Digest::of(text.as_bytes()));
    let again = journal.keep_output(&identity("talk-0001"), &text).await.expect("it is there");
    assert_eq!(again, digest);
    drop(journal);
    let journal = place.open().await;
    let found = journal.output(&identity("talk-0001"), digest).await.expect("an answer");
    assert_eq!(found.as_deref(), Some(text.as_str()));
    let elsewhere = journal.output(&identity("talk-0002"), digest).await.expect("an answer");
    let unknown = journal.output(&identity("talk-0001"), Digest([7; 32])).await.expect("an answer");
    assert_eq!((elsewhere, unknown), (None, None));
}

/// Does what is due of a deleted session until it is erased.
async fn remove_pages(journal: &dyn Journal, gone: &SessionKey, key: &str) {
    let bracket = Bracket {
        incarnation: Incarnation(Uuid::from_u128(7)),
        start_by: Time(9_000),
        deadline: Time(9_000),
    };
    for id in 31.. {
        let session = journal.session(gone).await.expect("a session");
        let command = match next(&session) {
            Next::RemovePages { attempt, .. } => SystemCommand::StartRemoval { attempt, bracket },
            Next::AwaitRemoval { attempt, .. } => {
                SystemCommand::RecordPagesRemoved { attempt, pages: 0 }
            }
            due => return assert_eq!(due, Next::Erase { not_before: None }),
        };
        ask(journal, key, id, SessionCommand::System(command)).await;
    }
}

/// Everything of a session is gone, its key stays taken, and the audit log keeps that it was.
pub async fn a_deleted_session_is_erased_once_and_its_key_is_not_used_again(place: &dyn Place) {
    let journal = place.open().await;
    let (gone, other) = (identity("talk-0001"), identity("talk-0002"));
    for (id, key) in [(1, "talk-0001"), (2, "talk-0002")] {
        ask(&*journal, key, id, say("the canary sings")).await;
        let remember = MemoryCommand::Save {
            id: Uuid::from_u128(id + 100).into(),
            kind: ItemKind::Fact,
            text: "canaries sing".into(),
        };
        ask(&*journal, key, id + 10, by_ada(PersonCommand::Memory(remember))).await;
    }
    let output = journal.keep_output(&gone, &"canary\n".repeat(19_000)).await.expect("it is kept");
    keep_canary(&*journal, &gone).await;
    assert!(!journal.erase(&gone, Time(5_000)).await.expect("an answer"), "nobody deleted it");
    let delete = by_ada(PersonCommand::Life(LifeCommand::Delete));
    assert!(!ask(&*journal, "talk-0001", 3, delete).await.is_refused());
    remove_pages(&*journal, &gone, "talk-0001").await;
    let before = journal.session(&gone).await.expect("a session");
    let decided = journal.decisions(Some(owner_id("ada")), Time(0), 10).await.expect("rows");
    assert_eq!(decided.len(), 1, "it was deleted");
    let bytes = journal.used(owner_id("ada"), Day(0)).await.expect("a sum").1.bytes;
    assert!(journal.erase(&gone, Time(6_000)).await.expect("an answer"));
    assert!(!journal.erase(&gone, Time(6_001)).await.expect("an answer"), "once");
    keep_canary(&*journal, &gone).await;
    assert_eq!(journal.kept_view(&gone).await.expect("an answer"), None);
    assert!(journal.scrub().await.expect("an answer"));
    for journal in [journal, place.open().await] {
        assert_eq!(
            *journal.session(&gone).await.expect("a session"),
            Session::erased(gone.clone())
        );
        assert_eq!(journal.events(&gone, Seq(0), 100).await.expect("events"), []);
        assert_eq!(journal.decisions(None, Time(0), 10).await.expect("rows"), []);
        let left = journal.used(owner_id("ada"), Day(0)).await.expect("a sum").1.bytes;
        assert!(0 < left && left < bytes / 2, "{left} of {bytes}: the other session is left");
        assert_eq!(journal.output(&gone, output).await.expect("an answer"), None);
        let answer = ask(&*journal, "talk-0001", 99, say("is anybody there?")).await;
        let Answer::Refused(refusal) = answer else { panic!("{answer:?}") };
        assert_eq!(refusal.kind(), "session_deleted");
        let left = journal.everything(&Chain::of(owner_id("ada"), &other.identity, None), 10).await;
        assert_eq!(left.expect("memory").len(), 1);
        let none = journal.everything(&Chain::of(owner_id("ada"), &gone.identity, None), 10).await;
        assert_eq!(none.expect("memory"), []);
        assert_eq!(kinds(&*journal, "talk-0002").await, ["message_queued", "memory_saved"]);
        let log = journal.audit_log(Seq(0), 10).await.expect("the log");
        let of = SessionHead { session: beginning(&gone), seq: before.version, head: before.log };
        let erased = Erased { of, by: ada().id, asked: Time(1_003) };
        let last = log.last().map(|recorded| (recorded.at, recorded.event.clone()));
        assert_eq!(last, Some((Time(6_000), InstallationEvent::SessionErased(erased))));
    }
}

/// What belongs to an owner is gone, and to nobody else.
pub async fn what_belongs_to_an_owner_is_erased(place: &dyn Place) {
    let journal = place.open().await;
    introduce(&*journal, &["ada", "bea"]).await.expect("they are known");
    let transport = Transport::new(ChannelType::Cli, "terminal");
    let key = ConversationKey::new("talk-0001").expect("a key");
    let bind = OwnerCommand::Bind { transport, key, why: Moved::Requested };
    for owner in ["ada", "bea"] {
        let bind = bind.clone();
        let decide = Box::new(move |owner: &Owner| owner::decide(owner, &bind));
        journal
            .append_owner(owner_id(owner), Time(1), decide)
            .await
            .expect("stored")
            .expect("bound");
    }
    let by = PersonId(OWNER.into());
    journal.erase_owner(owner_id("ada"), &by, Time(2)).await.expect("it is erased");
    assert!(journal.scrub().await.expect("an answer"));
    for journal in [journal, place.open().await] {
        let pointers = async |owner: &str| {
            journal.owner(owner_id(owner)).await.expect("an owner").pointers.len()
        };
        assert_eq!((pointers("ada").await, pointers("bea").await), (0, 1));
        let log = journal.audit_log(Seq(0), 10).await.expect("the log");
        let erased = InstallationEvent::OwnerErased { owner: owner_id("ada"), by: by.clone() };
        assert_eq!(log.last().map(|recorded| recorded.event.clone()), Some(erased));
    }
}

/// What was decided is taken up once, in the order of its sessions, with the heads that stand there.
pub async fn heads_are_taken_up_once_and_in_order(place: &dyn Place) {
    let journal = place.open().await;
    for (id, key) in [(1, "talk-0001"), (2, "talk-0002"), (3, "talk-0003")] {
        ask(&*journal, key, id, say("hello")).await;
    }
    // Deleting is a decision; talking is none.
    for (id, key) in [(11, "talk-0003"), (12, "talk-0001")] {
        ask(&*journal, key, id, by_ada(PersonCommand::Life(LifeCommand::Delete))).await;
    }
    let first = journal.take_heads(Time(7), 0, 1).await.expect("an answer");
    let rest = journal.take_heads(Time(8), first.last.expect("one"), 10).await.expect("an answer");
    let again = journal.take_heads(Time(9), 0, 10).await.expect("an answer");
    assert_eq!((first.count, rest.count, again.count), (1, 1, 0));
    let log = journal.audit_log(Seq(0), 10).await.expect("the log");
    let mut expected = Vec::new();
    for (seq, (at, key)) in (1..).zip([(7, "talk-0001"), (8, "talk-0003")]) {
        let session = journal.session(&identity(key)).await.expect("a session");
        let last = journal.events(&identity(key), Seq(0), 100).await.expect("events");
        let logged = last.iter().rfind(|recorded| recorded.event.kind() == "logged");
        let of = SessionHead {
            session: beginning(&identity(key)),
            seq: logged.expect("a head").seq,
            head: session.log,
        };
        let event = InstallationEvent::HeadTaken(of);
        expected.push(InstallationRecorded { seq: Seq(seq), at: Time(at), event });
    }
    assert_eq!(log, expected);
}

fn by_ada(command: PersonCommand) -> SessionCommand {
    SessionCommand::Person(ada(), command)
}

/// Begins a turn in each of these sessions of ada's at once, on two nodes; in how many it began.
async fn turns_begun(nodes: &[Arc<dyn Store>; 2], keys: &[String], max: u64) -> usize {
    let quota = Quota { turns: Some(max), ..Quota::default() };
    let stands = QuotaUse { owner: PersonId("ada".into()), quota, used: Used::default() };
    let stands = Arc::new(stands);
    let beginning = keys.iter().zip(nodes.iter().cycle()).map(|(key, node)| {
        let (key, node, stands) = (identity(key), node.clone(), stands.clone());
        tokio::spawn(async move {
            let session = node.session(&key).await.expect("a session");
            let Next::StartTurn(queued) = next(&session) else { return false };
            let (turn, profile, recalled) = (Uuid::now_v7().into(), None, Default::default());
            let command = SystemCommand::StartTurn { turn, queued, profile, recalled, call: None };
            let command = SessionCommand::System(command);
            let issued = Issued::new(Uuid::now_v7(), Time(5_000), command).with_quota(Some(stands));
            let answer = dispatch(&*node, &key, issued).await.expect("the journal answers");
            assert!(matches!(
                answer,
                Answer::Accepted { .. } | Answer::Refused(Refusal::LimitReached(_))
            ));
            !answer.is_refused()
        })
    });
    let begun = futures_util::future::join_all(beginning).await;
    begun.into_iter().filter(|begun| *begun.as_ref().expect("it ran")).count()
}

/// However many turns of an owner are to begin at once, and on however many nodes: no more than they may have under way do.
pub async fn no_more_turns_begin_than_an_owner_has_room_for(place: &dyn Place) {
    let nodes = [place.open().await, place.open().await];
    introduce(&*nodes[0], &["ada", "bea"]).await.expect("they are known");
    let keys: Vec<_> = (0..12).map(|number| format!("talk-{number:04}")).collect();
    for (id, key) in (1..).zip(&keys) {
        ask(&*nodes[0], key, id, say("hello")).await;
    }
    assert_eq!(turns_begun(&nodes, &keys, 3).await, 3);
    let used = nodes[1].used(owner_id("ada"), Day(0)).await.expect("a sum").1;
    assert_eq!(used.turns, 3);
    assert_eq!(turns_begun(&nodes, &keys, 3).await, 0, "there is no more room");
    assert_eq!(turns_begun(&nodes, &keys, 5).await, 2);
    assert_eq!(nodes[0].used(owner_id("bea"), Day(0)).await.expect("a sum").1, Used::default());
}

/// What models were used is counted once, on the day on which it was recorded, though two nodes count it at the same time.
///
/// Invariant: `usage-counted-once`.
pub async fn what_models_were_used_is_counted_once_whoever_counts(place: &dyn Place) {
    let nodes = [place.open().await, place.open().await];
    introduce(&*nodes[0], &["ada"]).await.expect("she is known");
    let keys: Vec<_> = (0..20).map(|number| format!("talk-{number:04}")).collect();
    for (id, key) in (1..).zip(&keys) {
        let key = identity(key);
        let answered = move |session: &Session| {
            let usage = Usage { cost_micros: 7, ..Usage::tokens(2, 1) };
            let answer = ModelSaid { usage, ..ModelSaid::default() };
            let (turn, arrival) = (Uuid::from_u128(id).into(), Arrival::Late);
            let event = TurnEvent::ModelAnswered { turn, round: 1, answer, arrival };
            let (events, due) =
                (vec![SessionEvent::Turn(event)], planwright_domain::next::Due::Never);
            let after = session.fold(Time(1_000), &events)?;
            Ok(Append { events, after, due, waiting: None, turns: None })
        };
        for round in 0..2 {
            let command = Some(Uuid::from_u128(id + 100 * round).into());
            nodes[0].append(&key, command, Time(1_000), Box::new(answered)).await.expect("stored");
        }
    }
    // What comes with a stream's first event was paid for elsewhere: it is an import.
    let used = async |node: usize| nodes[node].used(owner_id("ada"), Day(0)).await.expect("a sum");
    let bytes = used(1).await.1.bytes;
    assert!(bytes > 0);
    let expected = Used { tokens: 60, cost_micros: 140, bytes, turns: 0 };
    assert_eq!(used(1).await.1, expected, "before anybody counts");
    let counting = nodes.each_ref().map(|node| node.count_use(Time(2_000), 256));
    let counted = futures_util::future::join_all(counting).await;
    let counted: usize = counted.into_iter().map(|counted| counted.expect("it counts")).sum();
    assert_eq!(counted, 20);
    for node in 0..2 {
        let (owner, used) = used(node).await;
        assert_eq!((used, owner.used_on(Day(0)).tokens), (expected, 60));
    }
    assert_eq!(nodes[1].count_use(Time(3_000), 256).await.expect("it counts"), 0);
}
