//! What is due, and what backs off.

use super::{Place, ada, ask, identity, key_of, ready, say};
use crate::people::{owner_id, person};
use planwright_domain::{
    actor::Standing,
    command::{PersonCommand, SessionCommand, SystemCommand},
    id::Seq,
    next::{Next, next},
    session::{Session, SessionEvent},
    time::Time,
    turn::Answer as ModelSaid,
};
use planwright_runtime::ports::journal::{Append, BackedOff, Journal};
use uuid::Uuid;

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
