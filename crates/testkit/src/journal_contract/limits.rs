//! What an owner may use.

use std::sync::Arc;

use super::{Place, ask, identity, say};
use crate::people::{introduce, owner_id};
use planwright_domain::{
    actor::PersonId,
    command::{Issued, SessionCommand, SystemCommand},
    next::{Next, next},
    quota::{Day, Quota, QuotaUse, Used},
    refusal::Refusal,
    session::{Session, SessionEvent},
    time::Time,
    turn::{
        Answer as ModelSaid, Usage,
        event::{Arrival, TurnEvent},
    },
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{
        journal::{Answer, Append},
        memory::Store,
    },
};
use uuid::Uuid;

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
