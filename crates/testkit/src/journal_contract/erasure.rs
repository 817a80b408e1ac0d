//! Erasure.

use super::{Place, ada, ask, by_ada, identity, keep_canary, kinds, remove_pages, say};
use crate::people::{introduce, owner_id};
use planwright_domain::{
    actor::{OWNER, PersonId},
    command::{LifeCommand, PersonCommand},
    id::Seq,
    identity::{ChannelType, ConversationKey, Transport},
    installation::InstallationEvent,
    log::{Erased, SessionHead, beginning},
    memory::{Chain, ItemKind, MemoryCommand},
    owner::{self, Moved, Owner, OwnerCommand},
    quota::Day,
    session::Session,
    time::Time,
};
use planwright_runtime::ports::journal::{Answer, DecisionQuery};
use uuid::Uuid;

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
    let decisions = DecisionQuery { owner: None, since: Time(0), after: None, limit: 10 };
    let decided = journal.decisions(&decisions).await.expect("a page").rows;
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
        assert_eq!(journal.decisions(&decisions).await.expect("a page").rows, []);
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
