//! Lists: what waits, pages, what is found by its words, and what was decided.

use super::{Place, ask, by_ada, identity, key_of, ready, remove_pages, say};
use crate::people::{introduce, owner_id, person};
use planwright_domain::{
    actor::Standing,
    command::{Issued, LifeCommand, PersonCommand, SessionCommand},
    id::OwnerId,
    next::Waiting,
    session::{Session, SessionEvent},
    time::Time,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::journal::{
        Append, DecisionPage, DecisionQuery, DecisionRow, ListPlace, SessionPage, SessionQuery,
        SessionRow,
    },
    ports::memory::Store,
};
use uuid::Uuid;

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

/// What moves is moved to the front once a minute, so that its row is written and no index is. On a page what moved last is first.
pub async fn a_session_that_moves_keeps_its_place_in_lists_for_a_minute(place: &dyn Place) {
    let journal = place.open().await;
    for (id, key) in (1..=3).zip(["talk-0001", "talk-0002", "talk-0003"]) {
        say_at(&*journal, key, id, id as i64).await;
    }
    say_at(&*journal, "talk-0001", 4, 30).await;
    assert_eq!(paged(&*journal, 1).await, ["talk-0003", "talk-0002", "talk-0001"], "as it was");
    assert_eq!(paged(&*journal, 3).await, ["talk-0001", "talk-0003", "talk-0002"], "what moved");
    let newest = journal.newest(owner_id("ada"), identity("talk-0001").identity.channel).await;
    assert_eq!(newest.expect("a session"), Some(identity("talk-0001")), "wherever it is listed");
    say_at(&*journal, "talk-0001", 5, 61).await;
    assert_eq!(
        paged(&*journal, 1).await,
        ["talk-0001", "talk-0003", "talk-0002"],
        "a minute later"
    );
    drop(journal);
    let journal = place.open().await;
    say_at(&*journal, "talk-0002", 6, 61).await;
    assert_eq!(paged(&*journal, 1).await, ["talk-0001", "talk-0003", "talk-0002"], "not yet");
    say_at(&*journal, "talk-0002", 7, 62).await;
    assert_eq!(paged(&*journal, 1).await, ["talk-0002", "talk-0001", "talk-0003"]);
}

/// Ada says something in this second.
async fn say_at(journal: &dyn Store, key: &str, id: u128, second: i64) {
    let by = person("ada", "cli", Standing::Speaks);
    let command = SessionCommand::Person(by, PersonCommand::Say { text: "hello".into() });
    let asked = Issued::new(Uuid::from_u128(id), Time(second * 1_000_000), command);
    dispatch(journal, &identity(key), asked).await.expect("an answer");
}

/// The keys of ada's sessions, in pages of so many.
async fn paged(journal: &dyn Store, limit: usize) -> Vec<String> {
    let (owner, text) = (Some(owner_id("ada")), String::new());
    let mut query = SessionQuery { owner, waiting: false, text, after: None, limit };
    let mut listed = Vec::new();
    loop {
        let SessionPage { rows, next, .. } = journal.session_page(&query).await.expect("rows");
        listed.extend(rows.into_iter().map(|row| row.session.identity.key.as_str().to_owned()));
        match next {
            Some(next) => query.after = Some(next),
            None => return listed,
        }
    }
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
    let page = async |owner, since, after, limit| {
        let query = DecisionQuery { owner, since: Time(since), after, limit };
        let DecisionPage { rows, next } = journal.decisions(&query).await.expect("a page");
        let row = |row: DecisionRow| {
            assert_eq!(row.recorded.event.kind(), "session_deleted");
            (row.session.identity.key.as_str().to_owned(), row.title, row.recorded.at)
        };
        (rows.into_iter().map(row).collect::<Vec<_>>(), next)
    };
    let decided = async |owner, since, limit| page(owner, since, None, limit).await.0;
    let of = |owner: &str, id: i64| {
        (format!("talk-{id:04}"), format!("{owner} speaks"), Time(1_010 + id))
    };
    assert_eq!(decided(Some(owner_id("ada")), 0, 10).await, [of("ada", 4), of("ada", 1)]);
    assert_eq!(decided(Some(owner_id("bea")), 1_013, 2).await, [of("bea", 6), of("bea", 5)]);
    assert_eq!(decided(None, 1_014, 10).await, [of("bea", 6), of("bea", 5), of("ada", 4)]);
    assert_eq!(decided(None, 2_000, 10).await, []);
    let (mut place, mut pages) = (None, Vec::new());
    loop {
        let (rows, next) = page(None, 0, place, 4).await;
        pages.push(rows);
        // What is decided meanwhile does not move the next page.
        ask(&*journal, &format!("talk-{:04}", 10 + pages.len()), 500, say("one more")).await;
        ask(&*journal, &format!("talk-{:04}", 10 + pages.len()), 501, delete("ada")).await;
        // As a caller names it.
        place = next.map(|next| next.to_string().parse().expect("a place"));
        if place.is_none() {
            break;
        }
    }
    let all = [6, 5, 4, 3, 2, 1].map(|id| of(if id % 3 == 1 { "ada" } else { "bea" }, id));
    assert_eq!(pages, [all[..4].to_vec(), all[4..].to_vec()]);
}
