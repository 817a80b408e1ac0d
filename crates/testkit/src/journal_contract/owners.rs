//! What belongs to an owner, to the installation, and to neither.

use super::{Place, ask, by_ada, identity, key_of, say};
use crate::people::{introduce, owner_id, person};
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    command::{Issued, LifeCommand, PersonCommand, SessionCommand},
    digest::Digest,
    id::{OwnerId, Seq},
    identity::{ChannelType, ConversationKey, SessionKey, Transport},
    installation::{
        self, Installation, InstallationCommand, InstallationEvent, Invitation, Requester, Role,
    },
    log::{SessionHead, beginning},
    owner::{self, Moved, Owner, OwnerCommand},
    time::Time,
};
use planwright_runtime::{commands::dispatch::dispatch, ports::journal::InstallationRecorded};
use uuid::Uuid;

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
