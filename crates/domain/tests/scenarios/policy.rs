//! Who may decide, how long a plan waits, and the log in which every decision stands.

use std::collections::BTreeMap;

use planwright_domain::{
    actor::Standing,
    command::{Decision, Permit, PersonCommand, SessionCommand, Start, SystemCommand, Verdict},
    id::Seq,
    log::{Entry, beginning, head_after},
    next::{Due, Next, next},
    plan::{event::PlanEvent, review::Comment},
    policy::Policy,
    session::SessionEvent,
    time::Time,
};

use crate::given::*;

const HOUR: i64 = 3_600_000_000;

fn only(person: &str, surface: &str) -> Policy {
    Policy {
        people: [person.to_owned()].into(),
        surfaces: [surface.to_owned()].into(),
        ..Policy::default()
    }
}

#[test]
fn nobody_decides_whom_the_policy_does_not_admit() {
    let by = |id, surface| person(id, surface, Standing::Decides);
    for (person, admitted) in
        [(by("ada", "cli"), true), (by("bob", "cli"), false), (by("ada", "web 1"), false)]
    {
        let mut world = ready().under(only("ada", "cli"));
        let digest = world.digest();
        let blocks = world.plan().current.as_ref().unwrap().blocks.0.iter().copied().collect();
        let shown = PersonCommand::MarkSeen { digest, blocks };
        world.ask(SessionCommand::Person(person.clone(), shown)).unwrap();
        let approve = world.approve_command(digest, Start::AtOnce);
        let answer = world.ask(SessionCommand::Person(person, approve));
        assert_eq!(
            answer.as_ref().err().map(|refusal| refusal.kind()),
            (!admitted).then_some("not_an_approver")
        );
    }
}

#[test]
fn every_decision_passes_the_policy() {
    let nobody = only("nobody", "cli");
    let refused = |world: World, command: PersonCommand| {
        world.under(nobody.clone()).person(command).unwrap_err().kind()
    };
    let digest = ready().digest();
    assert_eq!(refused(ready(), ready().changes_command(digest)), "not_an_approver");
    assert_eq!(refused(ready(), ready().reject_command(digest)), "not_an_approver");
    assert_eq!(refused(held(), held().resume_command()), "not_an_approver");
    let doubt = in_doubt();
    let call = *doubt.session.doubts.keys().next().unwrap();
    let settle = doubt.settle_command(call, Verdict::Happened);
    assert_eq!(refused(doubt, settle), "not_an_approver");
    let asks = a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    let permit = Decision::Permit { digest: asks.asks(), permit: Permit::Once };
    assert_eq!(refused(asks, PersonCommand::Decide(permit)), "not_an_approver");
    let edit = PersonCommand::EditPlan {
        suggested: false,
        base: Some(digest),
        markdown: "# x".into(),
        fresh: uuid::Uuid::from_u128(9).into(),
    };
    assert_eq!(refused(ready(), edit), "not_an_approver");
}

#[test]
fn the_record_of_an_approval_names_the_rules_it_was_made_under() {
    let rules = |world: &World| world.plan().status.approval().unwrap().rules;
    assert_eq!(rules(&ready().approved()), None);
    let policy = only("ada", "cli");
    let world = ready().under(policy.clone()).approved();
    assert_eq!(rules(&world), policy.digest());
}

#[test]
fn a_person_is_reminded_of_a_plan_that_waits_again_and_again() {
    let policy = Policy { remind_micros: Some(HOUR), ..Policy::default() };
    let mut world = new_content(ready().under(policy)).answers("there", vec![]);
    let Next::AwaitDecision { at } = next(&world.session) else { panic!("it waits") };
    assert_eq!(next(&world.session).due(), Due::At(at));
    assert_eq!(world.system(SystemCommand::RingDecision).unwrap_err().kind(), "moved_on");
    world.now = at;
    let rung = world.system(SystemCommand::RingDecision).unwrap();
    assert_eq!(rung.iter().map(SessionEvent::kind).collect::<Vec<_>>(), ["decision_reminded"]);
    let Next::AwaitDecision { at: again } = next(&world.session) else { panic!("it waits on") };
    assert!(again > at);
    assert_eq!(next(&world.approved().session).due(), Due::Now, "a decision ends it");
}

#[test]
fn a_revision_that_nobody_decided_on_in_time_cannot_be_approved_and_a_newer_one_can() {
    let policy = Policy { expires_micros: Some(HOUR), ..Policy::default() };
    let mut world = new_content(ready().under(policy)).answers("there", vec![]).shown();
    world.now = world.now.plus_micros(HOUR);
    world.system(SystemCommand::RingDecision).unwrap();
    let command = world.approve_command(world.digest(), Start::AtOnce);
    assert_eq!(world.person(command).unwrap_err().kind(), "revision_expired");
    assert_eq!(new_content(world).answers("there", vec![]).approved().status(), "executing");
}

#[test]
fn decisions_are_chained_and_a_journal_that_was_changed_does_not_fold() {
    let world = running().answers("", vec![write("a")]).calls_start().calls_give(&wrote("a"));
    let world = world.answers("", vec![mail()]).calls_start().permitted(Permit::Deny);
    let key = world.session.key();
    let recorded = (1..).map(Seq).zip(world.times.iter().zip(&world.events));
    let entries = recorded.filter_map(|(seq, (at, event))| Some((seq, *at, Entry::of(event)?)));
    let chain = |head, (seq, at, entry): (Seq, Time, Entry)| head_after(head, seq, at, &entry);
    let head = entries.fold(beginning(&key), chain);
    assert_eq!(head, world.session.log);
    let text = serde_json::to_string(&world.events).unwrap();
    let folds = |text: &str| {
        let events: Vec<SessionEvent> = serde_json::from_str(text).unwrap();
        world.folded(&events)
    };
    assert!(folds(&text).is_ok());
    let shown_to =
        |owner: &str, id: &str| format!("\"to\":{{\"owner\":\"{owner}\",\"id\":\"{id}\"");
    let (ada, eve) = (owner_id("ada").to_string(), owner_id("eve").to_string());
    for (was, is) in [
        ("\"deny\"".to_owned(), "\"once\"".to_owned()),
        (shown_to(&ada, "ada"), shown_to(&ada, "eve")),
        (shown_to(&ada, "ada"), shown_to(&eve, "ada")),
    ] {
        assert!(text.contains(&was), "{was}");
        assert!(folds(&text.replacen(&was, &is, 1)).is_err(), "{was} became {is}");
    }
}

/// Each text, number and choice of a value, changed by itself; only what can still be read.
fn changed(value: &serde_json::Value) -> Vec<serde_json::Value> {
    use serde_json::Value;
    match value {
        Value::String(text) => vec![
            format!("{text}x").into(),
            text.replacen(|c: char| c.is_ascii_hexdigit(), "e", 1).into(),
            "decides".into(),
        ],
        Value::Number(number) => vec![(number.as_i64().unwrap_or(0) + 1).into()],
        Value::Array(all) => all
            .iter()
            .enumerate()
            .flat_map(|(at, one)| {
                changed(one).into_iter().map(move |other| {
                    let mut all = all.clone();
                    all[at] = other;
                    all.into()
                })
            })
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, one)| {
                changed(one).into_iter().map(move |other| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), other);
                    fields.into()
                })
            })
            .collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}

#[test]
fn every_word_of_a_decision_is_part_of_the_chain() {
    let asks = || a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    let mails = running().answers("", vec![mail()]).calls_start();
    let revised = mails.permitted(Permit::Replan { text: "another way".into() });
    let comments = ["shorter", "and louder"].map(Comment::on_the_whole).to_vec();
    let digest = ready().digest();
    let decided = |decision| ready().person(PersonCommand::Decide(decision)).unwrap();
    let changes = decided(Decision::RequestChanges { digest, comments });
    let rejected = decided(Decision::Reject { digest, why: Some("not now".into()) });
    let mut kinds = BTreeMap::<&str, usize>::new();
    for events in [revised.events, changes, rejected, asks().permitted(Permit::Deny).events] {
        for event in &events {
            let Some(entry) = Entry::of(event).filter(|entry| entry.who.is_some()) else {
                continue;
            };
            for other in changed(&serde_json::to_value(event).unwrap()) {
                let Ok(other) = serde_json::from_value::<SessionEvent>(other) else { continue };
                // What an approval allows has a digest of its own, and does not fold without it.
                let is_bound = matches!(&other, SessionEvent::Plan(PlanEvent::PlanApproved { approval, digest, .. })
                    if approval.digest() != *digest);
                if other != *event && !is_bound {
                    assert_ne!(
                        Entry::of(&other),
                        Some(entry.clone()),
                        "{event:?} became {other:?}"
                    );
                    *kinds.entry(event.kind()).or_default() += 1;
                }
            }
        }
    }
    for kind in ["changes_requested", "permission_decided", "plan_ended"] {
        assert!(kinds.get(kind).is_some_and(|many| *many > 5), "{kinds:?}");
    }
}

#[test]
fn the_log_says_who_where_on_what_and_how_the_gate_ruled() {
    let world = running().answers("", vec![write("a")]).calls_start().calls_give(&wrote("a"));
    let world = world.answers("", vec![mail()]).calls_start().permitted(Permit::Once);
    let lines: Vec<_> = world.events.iter().filter_map(Entry::of).collect();
    let words: Vec<_> = lines
        .iter()
        .map(|entry| {
            let who = entry.who.as_deref().unwrap_or("-");
            format!("{} {who} {}", entry.kind, entry.verdict)
        })
        .collect();
    let plan = world.plan().id;
    assert_eq!(
        words,
        [
            "revision_shown ada shown".to_owned(),
            "plan_approved ada approved".to_owned(),
            "execution_started - started".to_owned(),
            "call_started - leased".to_owned(),
            "permission_asked - asked".to_owned(),
            "permission_decided ada allowed_once".to_owned(),
        ]
    );
    let texts: Vec<_> = lines.iter().map(|entry| entry.text()).collect();
    assert_eq!(texts[2], "execution 1");
    assert_eq!(texts[3], format!("allowed by the approval of plan {plan}"));
    assert_eq!(texts[5], "allowed once");
}

#[test]
fn every_rule_of_a_policy_is_in_its_digest() {
    let plain = Policy::default();
    let rules = [
        Policy { people: ["ada".to_owned()].into(), ..plain.clone() },
        Policy { surfaces: ["ada".to_owned()].into(), ..plain.clone() },
        Policy { remind_micros: Some(HOUR), ..plain.clone() },
        Policy { expires_micros: Some(HOUR), ..plain.clone() },
    ];
    let digests: std::collections::BTreeSet<_> = rules.iter().map(Policy::digest).collect();
    assert_eq!((plain.digest(), digests.len()), (None, 4));
    assert!(!digests.contains(&None));
}

#[test]
fn a_question_is_anchored_in_the_log_and_a_leased_call_waits_for_the_next_decision() {
    let is_anchored =
        |world: &World| matches!(world.events.last(), Some(SessionEvent::Logged { .. }));
    let asks = a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    assert!(is_anchored(&asks));
    let leased = running().answers("", vec![write("a")]).calls_start();
    assert_eq!((leased.session.open.len(), is_anchored(&leased)), (1, false));
}

#[test]
fn the_log_tells_a_denial_from_a_question_that_nobody_answered() {
    let asks = || a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    let verdicts = |world: &World| -> Vec<String> {
        let entries = world.events.iter().filter_map(Entry::of);
        entries
            .filter(|entry| entry.kind == "permission_decided")
            .map(|entry| entry.verdict)
            .collect()
    };
    assert_eq!(verdicts(&asks().permitted(Permit::Deny)), ["denied"]);
    let mut world = asks();
    let call = world.session.ask.as_ref().unwrap().call;
    world.now = world.now.plus_micros(2 * ASK_MICROS);
    world.system(SystemCommand::ExpireAsk { call }).unwrap();
    assert_eq!(verdicts(&world), ["denied_by_nobody"]);
}
