//! What is said of a session: to the model, to people, and in lists.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::Standing,
    command::{Ending, PersonCommand, SessionCommand, Start, SystemCommand},
    digest::Digest,
    effect::{Aim, Declared, Effect, Envelope, PathLease},
    id::Seq,
    identity::ConversationKey,
    next::{Next, Waiting, next, waiting},
    outcome::{PlanCard, TurnOutcome, quick_commands},
    plan::{Strategy, step::StepWork},
    policy::Policy,
    prompt::{plan_line, step_opening, turn_note},
    refusal::Refusal,
    session::SessionEvent,
    tools::{self, ToolSpec},
    turn::{
        Usage,
        event::{TurnEnd, TurnEvent},
    },
};

use crate::given::*;

/// What stands after the words of the turn that began last.
fn note(world: &World) -> String {
    let started = world.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnStarted { stage, recalled, .. }) => {
            Some(turn_note(*stage, recalled))
        }
        _ => None,
    });
    started.unwrap()
}

#[test]
fn a_turn_opens_with_how_the_plan_stands() {
    assert_eq!(note(&a_session().says("hm").turn_starts()), "");
    assert_eq!(note(&collecting().says("hm").turn_starts()), "\n\n[The plan is Drafting.]");
    assert_eq!(note(&ready().says("hm").turn_starts()), "\n\n[The plan is Ready.]");
    assert_eq!(note(&held().says("hm").turn_starts()), "\n\n[The plan is Approved.]");
    assert_eq!(note(&running()), "\n\n[The plan is Running.]");
    assert_eq!(note(&building()), "\n\n[The plan is Running.]");
    let paused = replaying().calls_start().the_process_dies().says("and?").turn_starts();
    assert_eq!(note(&paused), "\n\n[The plan is Paused.]");
    assert_eq!(note(&failed().says("and?").turn_starts()), "\n\n[The plan is Failed.]");
}

#[test]
fn a_step_opens_with_what_was_done_before_it_and_its_own_words() {
    let results: BTreeMap<_, _> = [(1, "copied".to_owned())].into();
    let text = step_opening(&a_task(2, "writer"), &results);
    assert_eq!(
        text,
        "Step 1: copied\nDo step 2 now, and no other: do it\n\nwith care\n\nThen call plan_report.\n"
    );
}

#[test]
fn a_plan_is_one_line_in_a_list() {
    assert_eq!(plan_line(collecting().plan()), "Drafting · nothing written yet");
    let world = ready();
    let line = format!("Ready · rev 1 · {} · Move the photos", world.digest().short());
    assert_eq!(plan_line(world.plan()), line);
}

#[test]
fn a_card_says_how_each_step_came_out_and_which_is_in_doubt() {
    let rows = |world: &World| -> Vec<_> {
        let card = PlanCard::of(&world.session, &Envelope::default()).unwrap();
        card.steps.into_iter().map(|step| (step.number, step.words, step.came_out)).collect()
    };
    let row = |number, came_out: Option<&str>| {
        (number, "write_file".to_owned(), came_out.map(str::to_owned))
    };
    let first = replaying().calls_start().calls_give(&wrote("a.txt"));
    assert_eq!(rows(&first), [row(1, Some("done")), row(2, None)]);
    let second = first.calls_start().the_process_dies();
    assert_eq!(rows(&second), [row(1, Some("done")), row(2, Some("in doubt"))]);
}

#[test]
fn what_a_person_can_say_next_fits_where_the_plan_stands() {
    let offers = |world: World| quick_commands(&world.session).join(" ");
    assert_eq!(offers(withdrawn()), "/plan status /plan off");
    assert_eq!(offers(held()), "/plan resume /plan off");
    let steps = collected().shown();
    let hold = steps.approve_command(steps.digest(), Start::Hold);
    assert_eq!(offers(steps.does(hold)), "/plan resume /plan skip <step> /plan off");
    assert_eq!(offers(running()), "/plan stop /stop");
}

#[test]
fn only_an_open_revision_waits_for_a_decision() {
    assert_eq!(waiting(&ready().session), Some(Waiting::Decision));
    assert_eq!(waiting(&withdrawn().session), None);
}

#[test]
fn a_session_rests_when_only_a_person_can_move_it() {
    let asks = a_session().says("x").turn_starts().answers("", vec![write("a")]).calls_start();
    for rests in [a_session(), ready(), held(), in_doubt(), asks] {
        assert!(next(&rests.session).is_rest(), "{:?}", next(&rests.session));
    }
    let opens = running().answers("", vec![write("a"), get()]);
    let moves = [
        a_session().says("x"),
        running(),
        running().model_is_asked(),
        opens.clone(),
        opens.calls_start(),
        collecting().says("x").turn_starts().answers("", vec![get()]),
    ];
    for moving in moves {
        assert!(!next(&moving.session).is_rest(), "{:?}", next(&moving.session));
    }
}

#[test]
fn a_turn_that_planned_tells_of_its_own_plan_and_no_other() {
    let status = |world: &World, plan| {
        let outcome = TurnOutcome::of(&TurnEnd::Planned { plan }, &world.session, "");
        let TurnOutcome::Plan { status, .. } = outcome else { panic!("{outcome:?}") };
        status
    };
    let first = ready();
    let plan = first.plan().id;
    let ended = first.ends(Ending::Off);
    assert_eq!(status(&ended, plan), "Cancelled");
    let second = ended.plan_on();
    assert_eq!(status(&second, plan), "Cancelled");
    let third = second.ends(Ending::Off).plan_on();
    assert_eq!(status(&third, plan), "Superseded");
}

#[test]
fn what_was_only_too_late_is_not_kept_as_an_answer() {
    assert!(!Refusal::MovedOn { what: "x".into() }.is_final());
    assert!(Refusal::EmptyMessage.is_final() && Refusal::DoubtTooFresh.is_final());
}

#[test]
fn revisions_are_found_by_their_numbers() {
    let world = new_content(ready());
    let seqs: Vec<_> = (0..4).map(|number| world.plan().revision_seq(number)).collect();
    assert!(matches!(&seqs[..], [None, Some(first), Some(second), None] if first < second));
    let at = |seq: Seq| world.events[seq.0 as usize - 1].kind();
    assert_eq!(seqs[1].map(at), Some("revision_added"));
}

#[test]
fn names_are_written_as_they_are_read() {
    assert_eq!(
        (Seq(7).to_string(), format!("{:?}", Digest([0xab; 32]))),
        ("7".into(), "Digest(abababab)".into())
    );
    assert_eq!(ConversationKey::new("talk-0001").unwrap().as_str(), "talk-0001");
    let aim = Aim { paths: ["a/b".to_owned()].into(), hosts: ["example.org".to_owned()].into() };
    assert_eq!(aim.in_words(), "a/b, example.org");
}

#[test]
fn a_lease_of_no_paths_is_a_lease_of_none() {
    let paths = |paths: &[&str]| {
        let paths: BTreeSet<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        let declared = Declared { paths, ..Declared::default() };
        declared.lease(&schemas(), planwright_domain::time::Time(0)).paths
    };
    assert_eq!(paths(&[]), PathLease::Nothing);
    assert_eq!(paths(&["./", "a"]), PathLease::Workspace);
    assert_eq!(paths(&["a/"]), PathLease::Under(["a/".to_owned()].into()));
}

#[test]
fn the_digest_of_a_tool_is_that_of_all_it_says_whatever_the_order_of_its_keys() {
    let digest = |name: &str, description: &str, parameters: &str| {
        let parameters = serde_json::from_str(parameters).unwrap();
        let (name, description) = (name.into(), description.into());
        ToolSpec { name, description, parameters, effect: Effect::Read }.schema_digest()
    };
    let plain =
        r#"{"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "y"]}}}"#;
    let turned =
        r#"{"properties": {"a": {"enum": ["x", "y"], "type": "string"}}, "type": "object"}"#;
    assert_eq!(digest("t", "d", plain), digest("t", "d", turned));
    let others = [
        digest("t", "d", plain),
        digest("u", "d", plain),
        digest("t", "e", plain),
        digest("t", "d", &plain.replace("\"y\"", "\"z\"")),
        digest("t", "d", &plain.replace("[\"x\", \"y\"]", "[\"y\", \"x\"]")),
        digest("t", "d", &plain.replace("\"a\"", "\"b\"")),
        digest("t", "d", "null"),
    ];
    assert_eq!(others.into_iter().collect::<BTreeSet<_>>().len(), 7);
}

#[test]
fn plan_tools_are_known_by_their_names() {
    for (name, known) in
        [("plan_get", true), ("plan_submit", true), ("plan_approve", false), ("", false)]
    {
        assert_eq!(tools::is_plan_tool(name), known, "{name}");
    }
}

#[test]
fn usage_adds_up_and_nothing_is_not_written_down() {
    let some = Usage { input: 3, output: 5, cached: 1, cache_written: 1, cost_micros: 7 };
    let plain = Usage { cost_micros: 0, cached: 0, cache_written: 0, ..some };
    assert_eq!(Usage::tokens(3, 5), plain);
    let more = Usage { input: 10, output: 20, cached: 2, cache_written: 4, cost_micros: 30 };
    let both = Usage { input: 13, output: 25, cached: 3, cache_written: 5, cost_micros: 37 };
    assert_eq!(some.plus(more), both);
    let written = |usage| serde_json::to_value(usage).unwrap();
    let all = serde_json::json!({
        "input": 3, "output": 5, "cached": 1, "cache_written": 1, "cost_micros": 7
    });
    assert_eq!(written(some), all);
    assert_eq!(written(Usage::tokens(3, 5)), serde_json::json!({"input": 3, "output": 5}));
}

#[test]
fn a_step_that_is_updated_keeps_what_was_not_given_of_its_own() {
    let update = tool("plan_update_step", serde_json::json!({"step": 2, "title": "look"}));
    let world = a_session().plan_on_with(Strategy::Build).says("plan it").turn_starts();
    let calls = vec![create(), add_step("copy", "coder"), add_step("check", "writer"), update];
    let world = world.answers("", calls).plan_tools_run();
    let draft = world.plan().draft.as_ref().unwrap();
    let (title, instructions) = ("look".to_owned(), "check, well".to_owned());
    let profile = "writer".to_owned();
    assert_eq!(draft.steps[1].work, StepWork::Task { title, instructions, profile });
}

#[test]
fn showing_the_same_revision_again_is_no_event_and_to_another_person_it_is() {
    let mut world = ready().shown();
    let shown = PersonCommand::RecordShown { digest: world.digest() };
    assert_eq!(world.person(shown.clone()), Ok(vec![]));
    let foreign = world.ask(SessionCommand::Person(a_guest(), shown.clone())).unwrap_err();
    assert_eq!(foreign.kind(), "not_yours", "who may not decide reviews nothing of others");
    let reviewer = person("cara", "cli", Standing::Decides);
    let reply = world.ask(SessionCommand::Person(reviewer, shown)).unwrap();
    assert_eq!(reply.iter().map(SessionEvent::kind).next(), Some("revision_shown"));
}

#[test]
fn a_revision_that_may_expire_is_reminded_of_until_it_does() {
    let hour = 3_600_000_000;
    let policy =
        Policy { remind_micros: Some(hour), expires_micros: Some(3 * hour), ..Policy::default() };
    let mut world = new_content(ready().under(policy)).answers("there", vec![]);
    let mut rings = Vec::new();
    while let Next::AwaitDecision { at } = next(&world.session) {
        world.now = at;
        let rung = world.system(SystemCommand::RingDecision).unwrap();
        rings.extend(rung.iter().map(SessionEvent::kind));
    }
    assert_eq!(rings, ["decision_reminded", "decision_reminded", "decision_expired"]);
}

#[test]
fn a_reader_compares_with_what_they_saw_before_however_often_they_look() {
    let world = new_content(ready().shown()).shown();
    let against = |world: &World| world.plan().read_against(&ada().id);
    assert_eq!(against(&ready().shown()), 0, "nothing was seen before it");
    assert_eq!(against(&world), 1);
    let elsewhere = person("ada", "cli-2", Standing::Speaks);
    let shown = PersonCommand::RecordShown { digest: world.digest() };
    let mut world = world;
    world.ask(SessionCommand::Person(elsewhere, shown)).unwrap();
    assert_eq!(against(&world), 1, "another look at the same revision");
}

#[test]
fn nobody_is_reminded_of_what_was_decided() {
    let policy = Policy { remind_micros: Some(1_000_000), ..Policy::default() };
    let world = new_content(ready().under(policy)).answers("there", vec![]).shown();
    let hold = world.approve_command(world.digest(), Start::Hold);
    assert_eq!(next(&world.does(hold).session), Next::WaitForPerson(Waiting::Resume));
}

proptest::proptest! {
    #[test]
    fn nothing_that_can_be_written_breaks_a_decision_down(
        text in "(.|\n|---|: |# |```|- |1\\. |[0-9]{1,12}[mhd時]){0,60}",
        key in "(tools|paths|hosts|spend|calls|expires|colour)",
        value in "[0-9]{0,12}[mhdé時 ]{0,2}.{0,4}",
        verb in "(approve|changes|skip|settle|show|diff|on|edit|replan|reject)",
    ) {
        let front = format!("---\n{key}: {value}\n---\n{text}");
        for markdown in [&text, &front] {
            let world = collecting().says("plan it").turn_starts();
            let world = world.answers("", vec![set_content(markdown)]).plan_tools_run();
            let _ = planwright_domain::diff::parts(FIRST, markdown);
            let _ = planwright_domain::diff::rows(markdown, FIRST);
            let goes_on = matches!(next(&world.session), Next::CallModel { .. });
            proptest::prop_assert!(goes_on);
        }
        let _ = planwright_domain::chat::parse(&text);
        let _ = planwright_domain::chat::parse(&format!("/plan {verb} {text}"));
        let _ = planwright_domain::chat::parse(&format!("/plan {verb} {key}={value}"));
    }
}
