//! What is remembered.

use super::{Place, ada, ask, identity, say};
use crate::people::{introduce, owner_id, person};
use planwright_domain::{
    actor::Standing,
    command::{LifeCommand, PersonCommand, SessionCommand},
    id::MemoryId,
    memory::{Chain, ItemKind, MemoryCommand, Question, Scope},
    owner::{self, Owner, OwnerCommand},
    time::Time,
};
use uuid::Uuid;

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
