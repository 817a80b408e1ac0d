//! Seed 002: sessions that never mix, and the memory tools inside a turn.

use planwright_domain::{
    actor::{Person, Standing},
    autonomy::budget::Budget,
    command::{
        AutoCommand, Given, LifeCommand, ModelCommand, PersonCommand, SessionCommand,
        SystemCommand, Target,
    },
    identity::SessionIdentity,
    log::{Erased, SessionHead, beginning},
    memory::{Item, ItemKind, MemoryCommand, MemoryEvent, Provenance, Scope, ScopeKind},
    next::{Next, next},
    owner::is_reachable,
    session::{
        Session, SessionEvent, erasure,
        life::{Life, may_see},
    },
    time::Time,
};
use uuid::Uuid;

use crate::given::{World, a_session, ada, ada_key, person, ready, tool};

fn bea() -> Person {
    person("bea", "web", Standing::Speaks)
}

fn life(command: LifeCommand) -> PersonCommand {
    PersonCommand::Life(command)
}

fn saved(events: &[SessionEvent]) -> Vec<Item> {
    let item = |event: &SessionEvent| match event {
        SessionEvent::Memory(MemoryEvent::Saved { item }) => Some((**item).clone()),
        _ => None,
    };
    events.iter().filter_map(item).collect()
}

/// A turn of a run, of a goal or of one task alone.
fn a_run(of_goal: bool) -> World {
    let (goal, task) = (Uuid::from_u128(70).into(), Uuid::from_u128(80).into());
    let mut world = a_session();
    if of_goal {
        let title = "the goal".into();
        world = world.does(PersonCommand::Auto(AutoCommand::AddGoal { goal, title }));
    }
    let (of, title) = (of_goal.then_some(goal), "the task".into());
    let world = world.does(PersonCommand::Auto(AutoCommand::AddTask { task, goal: of, title }));
    let (run, budget, drafts) = (Uuid::from_u128(90).into(), Budget::default(), false);
    let target = Target::Task(task);
    world.does(PersonCommand::Auto(AutoCommand::On { run, target, budget, drafts })).turn_starts()
}

#[test]
fn a_session_belongs_to_its_owner_and_nobody_else_speaks_in_it() {
    let mut world = a_session();
    let first = PersonCommand::Say { text: "mine?".into() };
    let refused = world.ask(SessionCommand::Person(bea(), first)).unwrap_err();
    assert_eq!(refused.kind(), "not_yours", "nobody takes a session by speaking in it first");
    let mut world = world.says("mine");
    for command in [
        PersonCommand::Say { text: "mine too?".into() },
        PersonCommand::Reset,
        PersonCommand::Stop,
        life(LifeCommand::Delete),
        crate::given::start_plan(Uuid::from_u128(3).into(), Default::default()),
    ] {
        let refused = world.ask(SessionCommand::Person(bea(), command)).unwrap_err();
        assert_eq!(refused.kind(), "not_yours");
    }
    assert!(may_see(&world.session, &ada()) && !may_see(&world.session, &bea()));
}

#[test]
fn who_may_decide_reviews_and_decides_in_the_sessions_of_others() {
    let mut world = ready();
    let reviewer = person("cara", "cli", Standing::Decides);
    assert!(may_see(&world.session, &reviewer));
    let shown = PersonCommand::RecordShown { digest: world.digest() };
    world.ask(SessionCommand::Person(reviewer.clone(), shown)).unwrap();
    let reject = world.reject_command(world.digest());
    world.ask(SessionCommand::Person(reviewer.clone(), reject)).unwrap();
    assert_eq!(world.status(), "rejected");
    let say = PersonCommand::Say { text: "and now?".into() };
    let refused = world.ask(SessionCommand::Person(reviewer, say)).unwrap_err();
    assert_eq!(refused.kind(), "not_yours");
}

#[test]
fn a_session_is_named_by_its_first_words_until_someone_names_it() {
    let world = a_session().says("\n  move the photos to the new server, please\nsoon");
    assert_eq!(world.session.title, "move the photos to the new server, please");
    let world = world.does(life(LifeCommand::Rename { title: " Photos ".into() })).says("and more");
    assert_eq!(world.session.title, "Photos");
    let refused =
        world.clone().person(life(LifeCommand::Rename { title: " ".into() })).unwrap_err();
    assert_eq!(refused.kind(), "empty_message");
}

#[test]
fn what_is_said_in_an_archived_session_brings_it_back() {
    let world = a_session().says("hello").does(life(LifeCommand::Archive));
    assert_eq!(world.session.life, Life::Archived);
    let world = world.says("still there?");
    assert_eq!(world.session.life, Life::Open);
    let restored = world.does(life(LifeCommand::Archive)).does(life(LifeCommand::Restore));
    assert_eq!(restored.session.life, Life::Open);
    let mut running = a_run(false);
    assert_eq!(running.person(life(LifeCommand::Archive)).unwrap_err().kind(), "runs_go_on");
}

#[test]
fn a_deleted_session_ends_everything_and_is_never_made_again() {
    let mut world = ready().says("one more").does(life(LifeCommand::Delete));
    assert_eq!((world.session.life, world.status().as_str()), (Life::Deleted, "cancelled"));
    assert!(world.session.queue.is_empty());
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 1, not_before: None });
    let (attempt, bracket) = (1, world.bracket());
    let unstarted = world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 3 });
    assert_eq!(unstarted.unwrap_err().kind(), "moved_on");
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    assert_eq!(next(&world.session), Next::AwaitRemoval { attempt, bracket });
    assert_eq!(erasure(&world.session, Time(i64::MAX)), None, "its pages are there");
    let asked = world.session.deletion.clone().unwrap().at;
    world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 3 }).unwrap();
    assert_eq!(next(&world.session), Next::Erase { not_before: None });
    let of = SessionHead {
        session: beginning(&world.session.key()),
        seq: world.session.version,
        head: world.session.log,
    };
    let erased = Some(Erased { of, by: ada().id, asked });
    assert_eq!(erasure(&world.session, world.now), erased);
    for command in [
        PersonCommand::Say { text: "again".into() },
        life(LifeCommand::Restore),
        crate::given::start_plan(Uuid::from_u128(3).into(), Default::default()),
    ] {
        assert_eq!(world.person(command).unwrap_err().kind(), "session_deleted");
    }
}

#[test]
fn of_an_erased_session_nothing_is_left_but_that_its_key_is_taken() {
    let mut world = World { session: Session::erased(ada_key("cli:talk-0001")), ..a_session() };
    assert_eq!((next(&world.session), erasure(&world.session, world.now)), (Next::Nothing, None));
    let refused = world.person(PersonCommand::Say { text: "again".into() }).unwrap_err();
    assert_eq!(refused.kind(), "session_deleted");
    assert!(!is_reachable(ada().owner, &world.session));
    assert!(is_reachable(ada().owner, &Session::new(ada_key("cli:talk-0001"))));
}

/// Invariant: `effects-bracketed`.
#[test]
fn a_removal_of_pages_that_nobody_finished_is_made_again_under_the_next_number() {
    let mut world = a_session().says("hi").does(life(LifeCommand::Delete));
    let (attempt, bracket) = (1, world.bracket());
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    let twice = world.system(SystemCommand::StartRemoval { attempt: 2, bracket });
    assert_eq!(twice.unwrap_err().kind(), "moved_on", "one is under way");
    world.system(SystemCommand::OrphanRemoval { attempt }).unwrap();
    let retry = world.now.plus_micros(1_000_000);
    let due = Next::RemovePages { attempt: 2, not_before: Some(retry) };
    assert_eq!(next(&world.session), due, "after a wait of its own");
    let late = world.system(SystemCommand::RecordPagesRemoved { attempt, pages: 3 });
    assert_eq!(late.unwrap_err().kind(), "moved_on");
    let attempt = 2;
    let early = world.system(SystemCommand::StartRemoval { attempt, bracket });
    assert_eq!(early.unwrap_err().kind(), "moved_on");
    world.now = retry;
    world.system(SystemCommand::StartRemoval { attempt, bracket }).unwrap();
    let why = "the disk is gone".to_owned();
    world.system(SystemCommand::RecordRemovalFailure { attempt, why }).unwrap();
    let retry = Some(world.now.plus_micros(2_000_000));
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 3, not_before: retry });
}

#[test]
fn a_late_result_of_a_deleted_session_is_recorded_and_moves_nothing() {
    let world = a_session()
        .says("read it")
        .turn_starts()
        .answers("", vec![crate::given::read("a.txt")])
        .calls_start()
        .does(life(LifeCommand::Delete));
    let world = world.calls_give(&crate::given::done("late"));
    assert_eq!(world.events.last().map(SessionEvent::kind), Some("call_finished"));
    assert_eq!(next(&world.session), Next::RemovePages { attempt: 1, not_before: None });
}

#[test]
fn plan_mode_in_one_session_leaves_the_same_key_of_another_channel_alone() {
    let on = a_session().plan_on();
    let other = Session::new(ada_key("web:talk-0001"));
    assert!(on.session.plan().is_some() && other.plan().is_none());
    assert_ne!(on.session.identity, other.identity);
    assert_eq!(on.session.identity.key, other.identity.key);
}

#[test]
fn an_old_key_is_readable_and_makes_no_new_session() {
    let mut world = a_session();
    world.session = Session::new(ada_key("telegram:-100%2F7"));
    let refused = world.person(PersonCommand::Say { text: "hello".into() }).unwrap_err();
    assert_eq!(refused.kind(), "legacy_key_is_not_new");
}

// The memory tools.

fn save(arguments: serde_json::Value) -> crate::given::Asks {
    tool("memory_save", arguments)
}

#[test]
fn what_is_saved_goes_home_by_its_kind() {
    let in_run = |of_goal| {
        let calls = ["detail", "constraint", "fact"];
        let calls =
            calls.map(|kind| save(serde_json::json!({"text": format!("a {kind}"), "kind": kind})));
        saved(&a_run(of_goal).answers("", calls.into()).plan_tools_run().events)
    };
    let kinds = |items: Vec<Item>| -> Vec<&'static str> {
        items.iter().map(|item| item.scope.kind().name()).collect()
    };
    assert_eq!(kinds(in_run(true)), ["task", "goal", "session"]);
    assert_eq!(
        kinds(in_run(false)),
        ["task", "session", "session"],
        "no goal scope without a goal"
    );
    let talk = a_session().says("hi").turn_starts();
    let calls = vec![save(serde_json::json!({"text": "a detail", "kind": "detail"}))];
    assert_eq!(kinds(saved(&talk.answers("", calls).plan_tools_run().events)), ["session"]);
}

/// Invariant: `task-private`.
#[test]
fn what_a_run_saves_without_a_kind_is_its_task_s() {
    for of_goal in [true, false] {
        let calls = vec![save(serde_json::json!({"text": "half way through"}))];
        let items = saved(&a_run(of_goal).answers("", calls).plan_tools_run().events);
        let homes: Vec<_> = items.iter().map(|item| (item.kind, item.scope.kind())).collect();
        assert_eq!(homes, [(ItemKind::Detail, ScopeKind::Task)]);
    }
    let calls = vec![save(serde_json::json!({"text": "ada likes tea"}))];
    let talk = a_session().says("hi").turn_starts().answers("", calls).plan_tools_run();
    let homes: Vec<_> = saved(&talk.events).iter().map(|item| item.scope.kind()).collect();
    assert_eq!(homes, [ScopeKind::Session]);
}

/// Invariant: `promotion-only-global`.
#[test]
fn a_model_reaches_no_scope_but_its_own_and_never_global() {
    for scope in ["global", "session:cli:talk-0002", "goal", "task", "everything"] {
        let arguments = serde_json::json!({"text": "x", "scope": scope});
        let world = a_session()
            .says("hi")
            .turn_starts()
            .answers("", vec![save(arguments)])
            .plan_tools_run();
        assert_eq!(saved(&world.events), [], "{scope}");
        let reply = serde_json::to_string(&world.events.last()).unwrap();
        assert!(reply.contains("policy_denied"), "{reply}");
    }
}

#[test]
fn what_is_saved_says_where_it_came_from() {
    let calls = vec![save(serde_json::json!({"text": " tea at four ", "confidence": 200}))];
    let world = a_session().says("hi").turn_starts();
    let turn = world.session.turn.as_ref().unwrap().id;
    let items = saved(&world.answers("", calls).plan_tools_run().events);
    assert_eq!(items[0].provenance, Provenance::Model { turn });
    assert_eq!((items[0].text.as_str(), items[0].confidence), ("tea at four", 100));
}

#[test]
fn memory_that_is_turned_off_is_refused_in_words() {
    let mut world = a_session().says("hi").turn_starts();
    world = world.answers("", vec![save(serde_json::json!({"text": "x"}))]);
    let Next::UsePlanTool { turn, call } = next(&world.session) else { panic!("a tool is due") };
    let given = Given {
        fresh: Uuid::from_u128(1).into(),
        profiles: [].into(),
        memory: None,
        markdown: None,
    };
    world.ask(SessionCommand::Model(turn, ModelCommand::UsePlanTool { call, given })).unwrap();
    let reply = serde_json::to_string(&world.events.last()).unwrap();
    assert!(reply.contains("turned off"), "{reply}");
}

#[test]
fn only_what_was_found_in_the_own_scopes_is_told_or_forgotten() {
    let id = Uuid::from_u128(33);
    let own = Item {
        id: id.into(),
        kind: ItemKind::Fact,
        scope: Scope::Session(SessionIdentity::parse("cli:talk-0001").unwrap()),
        text: "tea at four".into(),
        provenance: Provenance::Legacy,
        confidence: 50,
        at: Time(0),
    };
    let global = Item { scope: Scope::Global, ..own.clone() };
    let forget = |found: Vec<Item>| {
        let arguments = serde_json::json!({"id": id});
        let mut world = a_session().says("hi").turn_starts();
        world = world.answers("", vec![tool("memory_forget", arguments)]);
        let Next::UsePlanTool { turn, call } = next(&world.session) else { panic!("due") };
        let given = Given {
            fresh: Uuid::from_u128(1).into(),
            profiles: [].into(),
            memory: Some(found),
            markdown: None,
        };
        world.ask(SessionCommand::Model(turn, ModelCommand::UsePlanTool { call, given })).unwrap()
    };
    assert_eq!(forget(vec![own])[0].kind(), "memory_forgotten");
    assert_eq!(
        forget(vec![global])[0].kind(),
        "call_answered",
        "a model forgets nothing everywhere"
    );
    assert_eq!(forget(vec![])[0].kind(), "call_answered");
}

#[test]
fn a_person_saves_changes_and_forgets_in_their_session() {
    let id = Uuid::from_u128(44).into();
    let memory = PersonCommand::Memory;
    let save = |text: &str| {
        memory(MemoryCommand::Save { id, kind: ItemKind::Preference, text: text.into() })
    };
    let world = a_session().says("hi").does(save("tea at four"));
    assert_eq!(saved(&world.events)[0].provenance, Provenance::Person { by: ada().id });
    let world = world.does(memory(MemoryCommand::Change { id, text: "tea at five".into() }));
    let world = world.does(memory(MemoryCommand::Forget { id }));
    assert_eq!(world.events.last().map(SessionEvent::kind), Some("memory_forgotten"));
    let long = "x".repeat(5_000);
    assert_eq!(world.clone().person(save(&long)).unwrap_err().kind(), "message_too_long");
}
