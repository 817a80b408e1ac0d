//! The envelope: declared in a front matter or granted with the approval, kept at every call.

use std::collections::BTreeSet;

use planwright_domain::{
    command::{Approving, Decision, PersonCommand},
    digest::Digest,
    effect::{Declared, Effect, Envelope, PathLease, Repeat, ToolFacts},
    plan::{PauseReason, PlanStatus, Progress, front_matter::declared},
    session::leased_hosts,
    turn::Usage,
};

use crate::given::*;

const DECLARES: &str = "---\ntools: write_file, web_fetch\npaths: src/, README.md\nhosts: example.com, *.example.org\ncalls: 2\nexpires: 2h\n---\n# Move it\n";

fn written(markdown: &str) -> World {
    collecting().says("x").turn_starts().answers("", vec![set_content(markdown)]).plan_tools_run()
}

fn executing(markdown: &str, calls: Vec<Asks>) -> World {
    let world = written(markdown).answers("there", vec![]);
    world.approved().turn_starts().answers("", calls).calls_start()
}

fn why(world: &World) -> String {
    world.session.ask.as_ref().map(|ask| ask.why.clone()).unwrap_or_default()
}

#[test]
fn a_document_declares_what_it_asks_to_be_leased() {
    let world = written(DECLARES).answers("there", vec![]);
    let head = world.plan().current.as_ref().unwrap();
    assert_eq!(head.title, "Move it");
    let envelope = world.plan().envelope(&schemas(), world.now);
    insta::assert_debug_snapshot!(envelope.in_words(), @r#"
    [
        "change README.md, src/, without asking again",
        "use web_fetch, write_file",
        "reach *.example.org, example.com",
        "make at most 2 calls that change something",
        "until 1970-01-01T02:00:01.008Z",
    ]
    "#);
    let approval = world.approved().plan().status.approval().cloned().unwrap();
    assert_eq!(approval.envelope.calls_max, Some(2));
}

#[test]
fn what_a_front_matter_cannot_say_is_refused_in_words() {
    let refused = |lines: &str| written(&format!("---\n{lines}\n---\n# x\n")).last_refusal();
    assert_eq!(
        refused("colour: red"),
        "\"colour\" of the envelope is not known; there are tools, paths, hosts, spend, calls and expires"
    );
    assert_eq!(refused("spend: much"), "\"spend\" of the envelope needs dollars, as 2.50");
    assert_eq!(
        refused("expires: soon"),
        "\"expires\" of the envelope needs a time, as 30m, 2h or 1d"
    );
    for wrong in
        ["0h", "2", "h", "-1h", "2w", "2時", "時", "1.5h", "3651d", "4294967295d", "99999999999d"]
    {
        let words = "\"expires\" of the envelope needs a time, as 30m, 2h or 1d";
        assert_eq!(refused(&format!("expires: {wrong}")), words, "{wrong}");
    }
    assert_eq!(refused("calls: -1"), "\"calls\" of the envelope needs a number");
}

#[test]
fn a_lease_lasts_minutes_hours_or_days() {
    for (written, seconds) in
        [("30m", 1_800), ("2h", 7_200), ("1 d", 86_400), ("3650d", 315_360_000)]
    {
        let text = format!("---\nexpires: {written}\n---\n# x\n");
        let lasts = declared(&text).unwrap().unwrap().lasts_micros;
        assert_eq!(lasts, Some(seconds * 1_000_000), "{written}");
    }
}

#[test]
fn a_rule_at_the_top_is_no_front_matter() {
    assert_eq!(declared("---\n\n# Title\n"), Ok(None));
    assert_eq!(declared("# Title\n---\ntools: x\n---\n"), Ok(None));
}

#[test]
fn calls_inside_what_was_declared_run_and_others_ask() {
    assert_eq!(executing(DECLARES, vec![write("src/a.txt")]).session.open.len(), 1);
    assert_eq!(executing(DECLARES, vec![write("README.md")]).session.open.len(), 1);
    assert_eq!(executing(DECLARES, vec![fetch("example.com")]).session.open.len(), 1);
    assert_eq!(executing(DECLARES, vec![fetch("a.example.org")]).session.open.len(), 1);
    let outside = |asks| why(&executing(DECLARES, vec![asks]));
    assert_eq!(outside(write("docs/a.txt")), "the approval does not lease docs/a.txt");
    assert_eq!(outside(write("src/../key")), "the approval does not lease src/../key");
    assert_eq!(outside(fetch("example.net")), "the approval does not lease example.net");
    assert_eq!(outside(fetch("evilexample.org")), "the approval does not lease evilexample.org");
    assert_eq!(outside(mail()), "the approval does not lease send_mail");
}

#[test]
fn the_number_of_leased_calls_is_kept() {
    let world = executing(DECLARES, vec![write("src/a"), write("src/b"), write("src/c")]);
    let world = world.calls_give(&wrote("a")).calls_start().calls_give(&wrote("b")).calls_start();
    assert_eq!(why(&world), "the 2 calls that were leased are made");
}

#[test]
fn a_lease_that_has_expired_asks() {
    let mut world = written(DECLARES).answers("there", vec![]).approved();
    world.now = world.now.plus_micros(7_200_000_000);
    let world = world.turn_starts().answers("", vec![write("src/a")]).calls_start();
    assert_eq!(why(&world), "the lease has expired");
}

#[test]
fn only_a_tool_that_is_leased_as_it_is_reaches_the_leased_hosts_and_only_while_the_plan_runs() {
    let facts = |schema| ToolFacts { effect: Effect::External, repeat: Repeat::AskFirst, schema };
    let hosts = |world: &World, tool: &str, schema| {
        leased_hosts(&world.session, tool, &facts(schema), world.now)
    };
    let leased = ["example.com", "*.example.org"].map(str::to_owned).into();
    let runs = executing(DECLARES, vec![fetch("example.com")]);
    assert_eq!(hosts(&runs, "web_fetch", schema()), leased);
    // Another tool, and the same one after it has changed.
    assert_eq!(hosts(&runs, "send_mail", schema()), BTreeSet::new());
    assert_eq!(hosts(&runs, "web_fetch", Digest::of(b"changed")), BTreeSet::new());
    // Before the approval, without a plan, and after the end of the lease.
    let waits = written(DECLARES).answers("there", vec![]).says("x").turn_starts();
    assert_eq!(hosts(&waits, "web_fetch", schema()), BTreeSet::new());
    assert_eq!(hosts(&a_session(), "web_fetch", schema()), BTreeSet::new());
    let mut late = runs;
    late.now = late.now.plus_micros(7_200_000_000);
    assert_eq!(hosts(&late, "web_fetch", schema()), BTreeSet::new());
}

#[test]
fn the_approver_may_grant_something_else_and_it_is_in_the_record() {
    let mut world = written(DECLARES).answers("there", vec![]).shown();
    let grant = Declared {
        tools: ["write_file".to_owned()].into(),
        paths: ["./".to_owned()].into(),
        ..Declared::default()
    };
    let approving = Approving { grant: Some(grant), ..Approving::of(world.digest(), terms()) };
    world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap();
    let approval = world.plan().status.approval().unwrap();
    let expected = Envelope {
        tools: [("write_file".to_owned(), schema())].into(),
        paths: PathLease::Workspace,
        ..Envelope::default()
    };
    assert_eq!(approval.envelope, expected);
}

#[test]
fn what_cannot_be_leased_cannot_be_approved() {
    let mut world = written("---\ntools: fly\n---\n# x\n").answers("there", vec![]).shown();
    let command = world.approve_command(world.digest(), planwright_domain::command::Start::AtOnce);
    assert_eq!(world.person(command).unwrap_err().kind(), "tool_unknown");
    let mut world = written("---\nspend: 1\n---\n# x\n").answers("there", vec![]).shown();
    let mut approving = Approving::of(world.digest(), terms());
    approving.terms.priced = false;
    let refusal = world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap_err();
    assert_eq!(refusal.kind(), "price_unknown");
}

#[test]
fn an_execution_that_has_spent_what_was_leased_pauses_and_resuming_leases_as_much_again() {
    let world = written("---\nspend: 0.50\ntools: write_file\npaths: ./\n---\n# x\n")
        .answers("there", vec![]);
    let mut world = world.approved().turn_starts().model_is_asked();
    let attempt = world.open_model_call();
    let mut answer = world.answer("", vec![read("a")]);
    answer.usage = Usage { cost_micros: 500_000, ..Usage::tokens(1, 1) };
    let record =
        planwright_domain::command::SystemCommand::RecordAnswer { attempt, answer, others: 0 };
    world.system(record).unwrap();
    let world = world.calls_start().calls_give(&done("text")).model_is_asked();
    let reason = PauseReason::OutOfBudget { micros: 500_000 };
    assert!(
        matches!(&world.plan().status, PlanStatus::Executing(_, Progress::Paused(why)) if *why == reason)
    );
    let command = world.resume_command();
    let world = world.does(command).turn_starts().model_is_asked();
    assert_eq!((world.plan().spent_micros, world.status().as_str()), (0, "executing"));
}
