//! Appends: what is stored, what is answered, and what is refused.

use std::sync::{Arc, Mutex};

use super::{Place, ada, ask, identity, kinds, say};
use crate::people::{introduce, owner_id};
use planwright_domain::{
    command::{Issued, PersonCommand, SessionCommand, SystemCommand},
    id::Seq,
    identity::{ChannelType, ConversationKey, Transport},
    owner::{self, Moved, Owner, OwnerCommand},
    session::{CorruptJournal, Session, SessionEvent},
    time::Time,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::journal::{Answer, Append, JournalError, Undecided},
};
use uuid::Uuid;

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
