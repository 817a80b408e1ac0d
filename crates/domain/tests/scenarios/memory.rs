//! What is remembered: its scopes, who sees what, and which of it is told.

use planwright_domain::{
    actor::PersonId,
    autonomy::AutoExecutionContext,
    id::{GoalId, MemoryId, OwnerId, RunId, TaskId},
    identity::{ChannelType, ConversationKey, SessionIdentity, SessionKey, Transport},
    memory::{
        Chain, Item, ItemKind, Provenance, Question, Scope, ScopeKind, digest,
        rank::{Candidates, rank, rarest},
        select::select,
        words,
    },
    owner::{Moved, Owner, OwnerCommand, OwnerEvent, Resolution, decide, resolve},
    session::{Session, life::Life},
    time::Time,
};
use proptest::prelude::*;
use uuid::Uuid;

use crate::given::owner_id;

const DAY: i64 = 86_400_000_000;

fn session(text: &str) -> SessionIdentity {
    SessionIdentity::parse(text).unwrap()
}

fn owner() -> OwnerId {
    owner_id("ada")
}

fn key_of(identity: &str) -> SessionKey {
    SessionKey::new(owner(), session(identity))
}

fn id(number: u128) -> MemoryId {
    Uuid::from_u128(number).into()
}

fn goal(number: u128) -> GoalId {
    Uuid::from_u128(number).into()
}

fn task(number: u128) -> TaskId {
    Uuid::from_u128(number).into()
}

fn context(of: &str, goal: Option<GoalId>, task: TaskId) -> AutoExecutionContext {
    AutoExecutionContext::new(session(of), RunId(Uuid::from_u128(5)), goal, task)
}

fn item(number: u128, scope: Scope, text: &str) -> Item {
    Item {
        id: id(number),
        kind: ItemKind::Fact,
        scope,
        text: text.into(),
        provenance: Provenance::Person { by: PersonId("ada".into()) },
        confidence: 100,
        at: Time(0),
    }
}

fn found(items: Vec<Item>) -> Candidates {
    let count = items.len() as u64;
    let words = items.iter().map(|item| item.words().len() as u64).sum();
    Candidates { items, count, words, ..Candidates::default() }
}

#[test]
fn scopes_have_their_published_texts() {
    let talk = session("web:talk-0001");
    assert_eq!(Scope::Global.to_string(), "global");
    assert_eq!(Scope::Session(talk.clone()).to_string(), "session:web:talk-0001");
    let of_goal = Scope::Goal(talk.clone(), goal(1)).to_string();
    assert_eq!(of_goal, format!("goal:web:talk-0001:{}", goal(1)));
    assert_eq!(Scope::Task(talk, task(2)).to_string(), format!("task:{}", task(2)));
}

#[test]
fn each_kind_of_work_sees_its_own_chain_nearest_first() {
    let talk = session("web:talk-0001");
    let kinds = |context: Option<&AutoExecutionContext>| -> Vec<&str> {
        let chain = Chain::of(owner(), &talk, context);
        chain.scopes().iter().map(|scope| scope.kind().name()).collect()
    };
    let of_goal = context("web:talk-0001", Some(goal(1)), task(2));
    let of_task = context("web:talk-0001", None, task(2));
    assert_eq!(kinds(Some(&of_goal)), ["task", "goal", "session", "global"]);
    assert_eq!(kinds(Some(&of_task)), ["task", "session", "global"]);
    assert_eq!(kinds(None), ["session", "global"]);
}

/// Invariant: `goal-shared-within-session`.
#[test]
fn a_context_of_another_session_adds_nothing_to_a_chain() {
    let foreign = context("web:talk-0002", Some(goal(1)), task(2));
    let chain = Chain::of(owner(), &session("web:talk-0001"), Some(&foreign));
    assert_eq!(chain, Chain::of(owner(), &session("web:talk-0001"), None));
}

/// Invariant: `task-private`.
#[test]
fn the_same_goal_or_task_id_in_another_session_is_another_scope() {
    let chain = Chain::of(
        owner(),
        &session("web:talk-0001"),
        Some(&context("web:talk-0001", Some(goal(1)), task(2))),
    );
    for foreign in ["web:talk-0002", "telegram:talk-0001"] {
        let foreign = session(foreign);
        for scope in [
            Scope::Session(foreign.clone()),
            Scope::Goal(foreign.clone(), goal(1)),
            Scope::Task(foreign.clone(), task(2)),
        ] {
            assert!(!chain.admits(&item(1, scope, "x")));
        }
    }
    assert!(chain.admits(&item(1, Scope::Goal(session("web:talk-0001"), goal(1)), "x")));
    assert!(!chain.admits(&item(1, Scope::Goal(session("web:talk-0001"), goal(9)), "x")));
    assert!(!chain.admits(&item(1, Scope::Task(session("web:talk-0001"), task(9)), "x")));
}

/// Invariant: `strict-scope`.
#[test]
fn what_an_engine_gives_of_another_scope_is_dropped_and_counted() {
    let chain = Chain::of(owner(), &session("web:talk-0001"), None);
    let own = item(1, Scope::Session(session("web:talk-0001")), "backups live in /backup");
    let foreign = item(2, Scope::Session(session("web:talk-0002")), "backups are secret");
    let given = vec![found(vec![own, foreign]), found(vec![])];
    let recalled = select(&chain, &words("backups"), given, Time(0), 800);
    assert_eq!((recalled.items.len(), recalled.blocked), (1, 1));
}

#[test]
fn what_fits_better_is_surer_or_newer_comes_first_and_says_why() {
    let talk = Scope::Session(session("web:talk-0001"));
    let best = item(1, talk.clone(), "backups: the backups live in /backup");
    let fits = item(2, talk.clone(), "somewhere there may be backups of many other things too");
    let unsure = Item { confidence: 10, ..item(3, talk.clone(), "backups live in /vault") };
    let newer = Item { at: Time(30 * DAY), ..item(4, talk.clone(), "backups live in /mirror") };
    let other = item(5, talk, "the service is called photos");
    let ranked =
        rank(&words("backups live"), found(vec![fits, unsure, newer, best, other]), Time(30 * DAY));
    let order: Vec<_> = ranked.iter().map(|ranked| ranked.item.id).collect();
    assert_eq!(order.len(), 4, "what holds no word is not found");
    assert_eq!(order, [id(4), id(1), id(3), id(2)]);
    assert_eq!(ranked[1].why.matched, ["backups", "live"]);
    assert_eq!((ranked[1].why.sure, ranked[1].why.fresh), (100, 500));
}

#[test]
fn a_legacy_item_never_comes_before_a_promoted_one() {
    let legacy = Item {
        provenance: Provenance::Legacy,
        ..item(1, Scope::Global, "tea tea tea tea with milk")
    };
    let from = session("web:talk-0001");
    let promoted = Item {
        provenance: Provenance::Promoted { by: PersonId("ada".into()), from, item: id(7) },
        confidence: 1,
        ..item(2, Scope::Global, "a long sentence in which tea is said only once in passing")
    };
    let ranked = rank(&words("tea"), found(vec![legacy, promoted]), Time(0));
    assert_eq!(ranked.iter().map(|ranked| ranked.item.id).collect::<Vec<_>>(), [id(2), id(1)]);
}

#[test]
fn a_near_scope_never_starves_a_far_one_and_nothing_is_told_twice() {
    let talk = session("web:talk-0001");
    let chain = Chain::of(owner(), &talk, None);
    let near: Vec<_> = (0..50)
        .map(|number| {
            item(number, Scope::Session(talk.clone()), &format!("tea fact number {number}"))
        })
        .collect();
    let far = vec![
        item(100, Scope::Global, "tea is drunk at four"),
        item(101, Scope::Global, "Tea  fact number 0"),
    ];
    let recalled = select(&chain, &words("tea"), vec![found(near), found(far)], Time(0), 200);
    assert!(recalled.items.iter().any(|ranked| ranked.item.id == id(100)), "{recalled:?}");
    assert!(!recalled.items.iter().any(|ranked| ranked.item.id == id(101)), "said already");
    assert!(recalled.of(ScopeKind::Session) > 5, "what is left over goes to the nearest");
    let cost: usize = recalled.items.iter().map(|ranked| ranked.item.text.len() / 4 + 8).sum();
    assert!(cost <= 200, "{cost}");
}

#[test]
fn kinds_have_homes() {
    let homes = [
        (ItemKind::Detail, ScopeKind::Task),
        (ItemKind::Decision, ScopeKind::Goal),
        (ItemKind::Constraint, ScopeKind::Goal),
        (ItemKind::Fact, ScopeKind::Session),
        (ItemKind::Preference, ScopeKind::Session),
    ];
    for (kind, home) in homes {
        assert_eq!(kind.home(), home);
    }
}

#[test]
fn a_word_is_found_by_its_other_forms_and_by_nothing_that_only_begins_alike() {
    for forms in [
        ["battery", "batteries"],
        ["repair", "repairing"],
        ["make", "making"],
        ["order", "ordered"],
        ["request", "requested"],
        ["listener", "listeners"],
        ["Kiste", "Kisten"],
        ["Haus", "Häuser"],
        ["Schlauch", "Schläuchen"],
        ["книга", "книги"],
    ] {
        let [one, other] = forms.map(words);
        assert_eq!(one, other, "{forms:?}");
    }
    for others in [["cat", "catalogue"], ["v2", "v20"], ["port", "portrait"], ["1", "10"]] {
        let [one, other] = others.map(words);
        assert_ne!(one, other, "{others:?}");
    }
}

#[test]
fn what_is_written_without_spaces_is_found_by_its_parts() {
    let remembered = words("李明每周三修理北温室的水泵。");
    for asked in ["水泵", "北边的温室", "谁修理水泵？"] {
        let found = words(asked).into_iter().any(|word| remembered.contains(&word));
        assert!(found, "{asked}");
    }
    assert_eq!(words("水"), ["ue6b0b4"]);
    assert_eq!(words("ต้นไม้").len(), 5, "each pair of Thai letters and signs");
    assert_eq!(words("v2水x"), ["v2", "ue6b0b4", "x"]);
    let shared = words("책을").into_iter().filter(|word| words("책은").contains(word)).count();
    assert_eq!(shared, 1, "what stands before a particle");
}

/// What is stored is found by these: whoever changes one changes the stored form.
#[test]
fn the_words_of_a_text_are_those_that_are_stored() {
    let text = "The connections of 3 Häuser were repaired; Ценности, Ἀθῆναι and 水泵.";
    let stored = [
        "the",
        "connect",
        "of",
        "3",
        "haus",
        "wer",
        "repair",
        "ud186d0b5d0bdd0bdd0bed181d182",
        "ue1bc80ceb8e1bf86cebdceb1",
        "and",
        "ue6b0b4e6b3b5",
        "ue6b0b4",
        "ue6b3b5",
    ];
    assert_eq!(words(text), stored);
}

#[test]
fn a_question_is_looked_up_by_its_first_words_each_once() {
    assert_eq!(Question::new("tea, Teas and the tea").words(), ["tea", "and", "the"]);
    let long: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(Question::new(&long.join(" ")).words(), &long[..64]);
}

#[test]
fn of_a_scope_with_many_items_the_rarest_words_are_looked_up() {
    let word = |word: &str, items| (word.to_owned(), items);
    let counted = [word("the", 513), word("pump", 3), word("north", 500), word("none", 0)].into();
    assert_eq!(rarest(&counted, 512), ["pump", "north"]);
    assert_eq!(rarest(&counted, 502), ["pump"]);
    let common = [word("the", 513), word("of", 600)].into();
    assert_eq!(rarest(&common, 512), ["the"], "at least one");
    assert_eq!(rarest(&[word("none", 0)].into(), 512), Vec::<String>::new());
}

#[test]
fn a_word_that_most_of_a_scope_has_weighs_little_though_few_candidates_have_it() {
    let here = Scope::Session(session("web:talk-0001"));
    let items = vec![item(1, here.clone(), "the the the gate"), item(2, here, "a rare pump gate")];
    let counted = [("the".to_owned(), 900), ("pump".to_owned(), 1)].into();
    let given = Candidates { count: 1_000, frequency: counted, ..found(items) };
    let ranked = rank(Question::new("the pump").words(), given, Time(0));
    assert_eq!(ranked[0].item.text, "a rare pump gate");
}

#[test]
fn why_something_was_found_is_told_in_its_own_spelling() {
    let here = Scope::Session(session("web:talk-0001"));
    let items =
        vec![item(1, here.clone(), "The Batteries are charged"), item(2, here, "北温室的水泵")];
    let told = |asked: &str| {
        let ranked = rank(Question::new(asked).words(), found(items.clone()), Time(0));
        ranked.into_iter().map(|ranked| ranked.why.matched).collect::<Vec<_>>()
    };
    assert_eq!(told("which battery"), [["batteries"]]);
    assert_eq!(told("水泵"), [["水泵"]]);
}

proptest! {
    #[test]
    fn words_are_letters_and_digits_that_every_engine_takes_alike(text in ".{0,80}") {
        for word in words(&text) {
            prop_assert!(!word.is_empty() && word.len() <= 41, "{word:?}");
            prop_assert!(word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()), "{word:?}");
        }
        prop_assert_eq!(words(&text.to_uppercase().to_lowercase()).is_empty(), words(&text).is_empty());
    }

    /// Invariant: `strict-scope`.
    #[test]
    fn nothing_outside_the_chain_is_ever_selected(texts in prop::collection::vec("[a-c ]{1,12}", 0..12), budget in 0_usize..400) {
        let (own, foreign) = (session("web:talk-0001"), session("web:talk-0002"));
        let chain = Chain::of(owner(), &own, None);
        let items = texts.iter().enumerate().map(|(at, text)| {
            let scope = if at % 2 == 0 { Scope::Session(own.clone()) } else { Scope::Session(foreign.clone()) };
            item(at as u128, scope, text)
        });
        let given = vec![found(items.collect()), Candidates::default()];
        let recalled = select(&chain, &words("a b c"), given, Time(0), budget);
        prop_assert!(recalled.items.iter().all(|ranked| chain.admits(&ranked.item)));
        prop_assert_eq!(recalled.blocked, (texts.len() / 2) as u64);
    }
}

// What belongs to an owner.

fn promote(text: &str, of: &Item) -> OwnerCommand {
    OwnerCommand::Promote {
        item: Box::new(of.clone()),
        text: text.into(),
        id: id(77),
        by: PersonId("ada".into()),
    }
}

/// Invariant: `promotion-only-global`.
#[test]
fn a_promotion_names_the_text_keeps_where_it_came_from_and_happens_once() {
    let ada = Owner::new(owner());
    let said = item(1, Scope::Session(session("web:talk-0001")), "tea at four");
    let refused = decide(&ada, &promote("coffee at four", &said)).unwrap_err();
    assert_eq!(refused.kind(), "other_text");
    let events = decide(&ada, &promote("tea at four", &said)).unwrap();
    let OwnerEvent::MemoryPromoted { item: promoted } = &events[0] else { panic!("{events:?}") };
    assert_eq!((promoted.scope.clone(), promoted.id), (Scope::Global, id(77)));
    let from = session("web:talk-0001");
    assert_eq!(
        promoted.provenance,
        Provenance::Promoted { by: PersonId("ada".into()), from, item: id(1) }
    );
    let ada = ada.fold(&events).unwrap();
    assert_eq!(decide(&ada, &promote("tea at four", &said)).unwrap(), []);
    let again = decide(&ada, &promote("tea at four", promoted)).unwrap_err();
    assert_eq!(again.kind(), "already_global");
    let gone = ada.fold(&decide(&ada, &OwnerCommand::Forget { id: id(77) }).unwrap()).unwrap();
    assert!(gone.promoted.is_empty());
    assert_eq!(
        decide(&gone, &OwnerCommand::Forget { id: id(77) }).unwrap_err().kind(),
        "not_there"
    );
}

#[test]
fn what_is_known_everywhere_is_bounded_and_what_is_brought_in_is_marked() {
    let mut ada = Owner::new(owner());
    for number in 0..2_000 {
        let import = OwnerCommand::Import { item: Box::new(item(number, Scope::Global, "old")) };
        let events = decide(&ada, &import).unwrap();
        let OwnerEvent::MemoryPromoted { item } = &events[0] else { panic!("{events:?}") };
        assert_eq!(item.provenance, Provenance::Legacy);
        ada = ada.fold(&events).unwrap();
    }
    let one_more = OwnerCommand::Import { item: Box::new(item(9_999, Scope::Global, "old")) };
    assert_eq!(decide(&ada, &one_more).unwrap_err().kind(), "too_many");
}

fn key(text: &str) -> ConversationKey {
    ConversationKey::new(text).unwrap()
}

fn of(person: &str, life: Life, version: u64) -> Session {
    let key = SessionKey::new(owner_id(person), session("web:talk-0001"));
    let mut session = Session::new(key);
    session.life = life;
    session.version = planwright_domain::id::Seq(version);
    session
}

/// Invariant: `pointer-repaired`.
#[test]
fn a_pointer_stands_while_its_session_is_there_and_its_owners() {
    let (named, fresh) = (key("talk-0001"), key("talk-new1"));
    let newest = session("web:talk-0009");
    let repaired = |session: &Session, newest: Option<&SessionIdentity>| {
        resolve(owner(), Some((&named, session)), newest.cloned(), fresh.clone())
    };
    let stands = Resolution::Stands(named.clone());
    assert_eq!(repaired(&of("ada", Life::Open, 3), Some(&newest)), stands);
    assert_eq!(repaired(&of("ada", Life::Archived, 3), Some(&newest)), stands);
    assert_eq!(repaired(&Session::new(key_of("web:talk-0001")), None), stands, "nothing said yet");
    let moved = Resolution::Repair(key("talk-0009"));
    assert_eq!(repaired(&of("ada", Life::Deleted, 3), Some(&newest)), moved);
    assert_eq!(repaired(&of("bea", Life::Open, 3), Some(&newest)), moved);
    assert_eq!(repaired(&of("ada", Life::Deleted, 3), None), Resolution::Repair(fresh.clone()));
    assert_eq!(resolve(owner(), None, None, fresh.clone()), Resolution::Repair(fresh));
    let legacy = Session::new(key_of("web:%3F"));
    let old = ConversationKey::legacy("?").unwrap();
    let repaired = resolve(owner(), Some((&old, &legacy)), None, key("talk-new1"));
    assert_eq!(repaired, Resolution::Repair(key("talk-new1")), "an old key makes no new session");
}

#[test]
fn moving_a_pointer_moves_that_chat_alone() {
    let ada = Owner::new(owner());
    let (phone, desk) =
        (Transport::new(ChannelType::Telegram, "1"), Transport::new(ChannelType::Telegram, "2"));
    let bind = |transport: &Transport, to: &str| OwnerCommand::Bind {
        transport: transport.clone(),
        key: key(to),
        why: Moved::Requested,
    };
    let ada = ada.fold(&decide(&ada, &bind(&phone, "talk-0001")).unwrap()).unwrap();
    let ada = ada.fold(&decide(&ada, &bind(&desk, "talk-0001")).unwrap()).unwrap();
    let ada = ada.fold(&decide(&ada, &bind(&phone, "talk-0002")).unwrap()).unwrap();
    assert_eq!(decide(&ada, &bind(&phone, "talk-0002")).unwrap(), [], "said twice, done once");
    let gone = OwnerCommand::Unbind { transport: phone.clone() };
    let ada = ada.fold(&decide(&ada, &gone).unwrap()).unwrap();
    assert_eq!(ada.pointers.into_iter().collect::<Vec<_>>(), [(desk, key("talk-0001"))]);
    let stored = serde_json::to_string(&Owner::new(owner())).unwrap();
    assert_eq!(serde_json::from_str::<Owner>(&stored).unwrap(), Owner::new(owner()));
}

#[test]
fn two_texts_that_say_the_same_have_one_digest() {
    assert_eq!(digest("Tea at  four"), digest("tea at four\n"));
    assert_ne!(digest("tea at four"), digest("tea at five"));
}
