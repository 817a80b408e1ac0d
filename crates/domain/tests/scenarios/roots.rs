//! The directory in which a session works.

use std::sync::Arc;

use planwright_domain::{
    command::{Issued, LifeCommand, PersonCommand, SessionCommand, Start},
    id::Seq,
    identity::Root,
    memory::MemoryCommand,
    plan::Strategy,
    policy::Policy,
    refusal::Refusal,
    session::{Session, SessionEvent, decide, life::LifeEvent},
    time::Time,
};

use crate::given::*;

fn root(path: &str) -> Root {
    Root(path.into())
}

fn under(roots: &[&str]) -> World {
    let roots = roots.iter().map(|path| root(path)).collect();
    a_session().under(Policy { roots, ..Policy::default() })
}

fn open(path: &str) -> PersonCommand {
    PersonCommand::Life(LifeCommand::Open { root: root(path) })
}

fn opened(path: &str) -> SessionEvent {
    SessionEvent::Life(LifeEvent::Opened { root: root(path) })
}

#[test]
fn a_session_begins_in_the_first_root_unless_another_is_chosen_first() {
    let world = under(&["/home", "/src"]).says("hello");
    assert_eq!(world.events[0], opened("/home"));
    assert_eq!((world.session.version, &world.session.root), (Seq(2), &Some(root("/home"))));
    let world = under(&["/home", "/src"]).does(open("/src")).says("hello");
    assert_eq!(world.events[0], opened("/src"));
    assert_eq!(world.events.iter().filter(|event| event.kind() == "session_opened").count(), 1);
    assert_eq!(world.session.root, Some(root("/src")));
    assert_eq!(a_session().says("hello").session.root, None, "where the operator names none");
}

#[test]
fn only_a_root_that_is_allowed_can_be_chosen_and_only_before_the_session_begins() {
    let mut world = under(&["/home", "/src"]);
    let refused = world.person(open("/etc")).unwrap_err();
    let allowed = vec!["/home".into(), "/src".into()];
    assert_eq!(refused, Refusal::RootNotAllowed { root: "/etc".into(), allowed });
    assert_eq!(world.session.version, Seq(0), "nothing began");
    let mut world = world.says("hello");
    let stands = Refusal::RootStands { identity: "cli:talk-0001".into(), root: "/home".into() };
    assert_eq!(world.person(open("/src")), Err(stands));
}

#[test]
fn what_changes_nothing_begins_no_session() {
    let mut world = under(&["/home"]);
    assert_eq!(world.person(PersonCommand::Life(LifeCommand::Restore)), Ok(vec![]));
    let forget = MemoryCommand::Forget { id: uuid::Uuid::from_u128(1).into() };
    assert_eq!(world.person(PersonCommand::Memory(forget)).unwrap_err().kind(), "not_there");
    assert_eq!(world.person(PersonCommand::Compact), Err(Refusal::NothingToCompact));
    assert_eq!(world.session.version, Seq(0));
    let mut world = world.does(open("/home"));
    assert_eq!(world.person(PersonCommand::Compact), Err(Refusal::NothingToCompact));
    let session = Session::new(ada_key("mcp:window-0001"));
    let mut agents = World { session, ..under(&["/home"]) };
    assert_eq!(agents.person(open("/home")).unwrap_err().kind(), "agent_elsewhere");
}

#[test]
fn an_approval_is_bound_to_the_root_and_a_changed_root_does_not_fold() {
    let in_root = |path: &str| {
        let world = under(&[path]).plan_on().says("plan it").turn_starts();
        let world = world.answers("", vec![set_content(FIRST)]).plan_tools_run();
        world.answers("there", vec![]).shown().approved()
    };
    let (home, src) = (in_root("/home"), in_root("/src"));
    let approval = |world: &World| world.session.plan().unwrap().status.approval().unwrap().clone();
    assert_eq!(approval(&home).root, Some(root("/home")));
    assert_ne!(approval(&home).digest(), approval(&src).digest());
    let text = serde_json::to_string(&home.events).unwrap();
    let (was, is) = ("\"root\":\"/home\"", "\"root\":\"/etc\"");
    assert_eq!(text.matches(was).count(), 2, "when it began, and when it was approved");
    let at = text.find(was).unwrap() + was.len();
    let opened_elsewhere = text.replacen(was, is, 1);
    let approved_elsewhere = format!("{}{}", &text[..at], text[at..].replace(was, is));
    for changed in [opened_elsewhere, approved_elsewhere, text.replace(was, is)] {
        let changed: Vec<SessionEvent> = serde_json::from_str(&changed).unwrap();
        assert!(home.folded(&changed).is_err(), "{changed:?}");
    }
    let events: Vec<SessionEvent> = serde_json::from_str(&text).unwrap();
    assert_eq!(home.folded(&events).unwrap(), home.session);
}

#[test]
fn a_foreign_agents_session_begins_in_its_project_whatever_begins_it() {
    let policy = || Arc::new(Policy { roots: vec![root("/home")], ..Policy::default() });
    let session = Session::new(ada_key("mcp:window-0001"));
    let start = start_plan(uuid::Uuid::from_u128(1).into(), Strategy::Document);
    let command = SessionCommand::Person(ada(), start);
    let asked = Issued::new(uuid::Uuid::from_u128(2), Time(1), command)
        .under(policy())
        .of_project(Some(root("/project")));
    assert_eq!(decide(&session, &asked).unwrap()[0], opened("/project"));
}

#[test]
fn nothing_is_approved_or_said_where_its_directory_is_not_configured() {
    let world = under(&["/home"]).plan_on().says("plan it").turn_starts();
    let world = world.answers("", vec![set_content(FIRST)]).plan_tools_run();
    let elsewhere = world.answers("there", vec![]).shown();
    let mut elsewhere = elsewhere.under(Policy { roots: vec![root("/src")], ..Policy::default() });
    let refused = Refusal::RootNotAllowed { root: "/home".into(), allowed: vec!["/src".into()] };
    let approve = elsewhere.approve_command(elsewhere.digest(), Start::AtOnce);
    assert_eq!(elsewhere.person(approve), Err(refused.clone()));
    assert_eq!(elsewhere.person(PersonCommand::Say { text: "go on".into() }), Err(refused));
    let reject = elsewhere.reject_command(elsewhere.digest());
    assert!(elsewhere.person(reject).is_ok(), "what needs no directory works anywhere");
}
