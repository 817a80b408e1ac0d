//! What is said of a session: to the model, to people, and in lists.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::{Person, Standing},
    command::{
        Approving, Decision, Ending, PersonCommand, SessionCommand, Start, SystemCommand, Verdict,
    },
    digest::Digest,
    effect::{Aim, Declared, Effect, Envelope, PathLease},
    id::Seq,
    identity::ConversationKey,
    limits,
    next::{Next, Waiting, next, waiting},
    outcome::{PlanCard, TurnOutcome, quick_commands},
    plan::{Strategy, review::Comment, step::StepWork},
    policy::Policy,
    prompt::{plan_line, plan_paragraph, step_opening},
    refusal::Refusal,
    session::SessionEvent,
    tools::{self, ToolSpec},
    turn::{
        Usage,
        event::{TurnEnd, TurnEvent},
    },
};

use crate::given::*;

fn paragraph(world: &World) -> String {
    plan_paragraph(&world.session, world.session.turn.as_ref().unwrap()).unwrap()
}

#[test]
fn the_paragraph_says_what_this_turn_may_do_with_the_plan() {
    assert!(paragraph(&running()).starts_with("You are executing an approved plan"));
    assert!(paragraph(&building()).starts_with("You do step 1 of an approved plan"));
    // A talk beside a held plan executes nothing.
    let beside = held().says("how is it going?").turn_starts();
    assert!(paragraph(&beside).starts_with("Plan work is active; the plan is Approved."));
    let collects = a_session().plan_on_with(Strategy::Collect).says("plan it").turn_starts();
    assert!(paragraph(&collects).contains("they are recorded, not run"));
    let waits = collected().says("and?").turn_starts();
    assert!(paragraph(&waits).contains("the plan is Ready; plan_get loads it. Propose steps"));
    let failed = replaying().calls_start().the_process_dies().says("and?").turn_starts();
    assert_eq!(paragraph(&failed), "Plan work is active; the plan is Paused; plan_get loads it.");
}

#[test]
fn a_step_opens_with_what_was_done_before_it_and_its_own_words() {
    let results: BTreeMap<_, _> = [(1, "copied".to_owned())].into();
    let text = step_opening(&a_task(2, "writer"), &results);
    assert_eq!(text, "Step 1: copied\nDo step 2 now, and no other: do it\n\nwith care\n");
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
fn a_turn_beside_the_execution_did_not_plan() {
    // The execution waits in the queue while a talk is open.
    let beside = ready().says("hm").turn_starts().shown();
    let command = beside.approve_command(beside.digest(), Start::AtOnce);
    let beside = beside.does(command);
    let planned = |world: &World| world.session.turn.as_ref().and_then(|turn| turn.planned);
    assert_eq!(planned(&beside.clone().does(PersonCommand::PausePlan)), None);
    assert_eq!(planned(&beside.ends(Ending::Done)), None);
    // An empty draft ends by the model's word, in a turn that executes nothing.
    let empty = a_session()
        .plan_on_with(Strategy::Collect)
        .says("plan it")
        .turn_starts()
        .answers("", vec![finalize()])
        .plan_tools_run()
        .answers("nothing to do", vec![]);
    let end = empty.events.iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end.clone()),
        _ => None,
    });
    assert!(matches!(end, Some(TurnEnd::Planned { .. })), "{end:?}");
}

#[test]
fn a_doubt_can_be_denied_from_its_deadline_on() {
    let settled = |early: i64| {
        let mut world = in_doubt();
        let (call, doubt) = world.session.doubts.iter().next().unwrap();
        let (call, deadline) = (*call, doubt.deadline);
        // Asking takes one thousandth of a second in every scenario.
        world.now = deadline.plus_micros(-1_000 - early);
        let settle = Decision::SettleDoubt { call, verdict: Verdict::DidNotHappen };
        world.person(PersonCommand::Decide(settle)).map(drop)
    };
    assert_eq!(settled(1), Err(Refusal::DoubtTooFresh));
    assert_eq!(settled(0), Ok(()));
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
fn the_limits_are_those_that_are_published() {
    const KIB: usize = 1_024;
    let bytes = [
        (limits::PLAN_MARKDOWN_BYTES_MAX, 256 * KIB),
        (limits::MESSAGE_BYTES_MAX, 256 * KIB),
        (limits::COMMENT_BYTES_MAX, 8 * KIB),
        (limits::STEP_BYTES_MAX, 64 * KIB),
        (limits::METADATA_BYTES_MAX, 2 * KIB),
        (limits::SUMMARY_BYTES_MAX, 8 * KIB),
        (limits::TOOL_OUTPUT_BYTES_MAX, 64 * KIB),
        (limits::KEPT_OUTPUT_BYTES_MAX, 16 * KIB * KIB),
    ];
    for (limit, published) in bytes {
        assert_eq!(limit, published);
    }
    assert_eq!(limits::RETRY_WAIT_MICROS_MAX, 60_000_000);
    assert!(matches!(next(&a_session().session), Next::Nothing));
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
    let some = Usage { input: 3, output: 5, cost_micros: 7 };
    assert_eq!(Usage::tokens(3, 5), Usage { cost_micros: 0, ..some });
    let more = Usage { input: 10, output: 20, cost_micros: 30 };
    assert_eq!(some.plus(more), Usage { input: 13, output: 25, cost_micros: 37 });
    let written = |usage| serde_json::to_value(usage).unwrap();
    assert_eq!(written(some), serde_json::json!({"input": 3, "output": 5, "cost_micros": 7}));
    assert_eq!(written(Usage::tokens(3, 5)), serde_json::json!({"input": 3, "output": 5}));
}

#[test]
fn a_list_of_metadata_may_have_fifty_entries_and_no_more() {
    let answer = |many: usize| {
        let entries = vec!["an entry"; many];
        let risks = tool("plan_set_metadata", serde_json::json!({"risks": entries}));
        let world = a_session().plan_on_with(Strategy::Build).says("plan it").turn_starts();
        let world = world.answers("", vec![create(), risks]).plan_tools_run();
        world.plan().draft.as_ref().map(|draft| draft.brief.risks.len())
    };
    assert_eq!((answer(50), answer(51)), (Some(50), Some(0)));
}

#[test]
fn a_title_is_cut_at_a_letter_and_never_empty() {
    let title = |markdown: &str| {
        let world = collecting().says("plan it").turn_starts();
        let world = world.answers("", vec![set_content(markdown)]).plan_tools_run();
        world.plan().current.as_ref().unwrap().title.clone()
    };
    assert_eq!(title(&format!("# a{}", "ä".repeat(150))), format!("a{}", "ä".repeat(99)));
    assert_eq!(
        (title("words\n# Heading\n"), title("words\nmore\n")),
        ("Heading".into(), "words".into())
    );
    assert_eq!(title("#\n"), "Plan");
}

#[test]
fn a_draft_has_room_for_two_hundred_steps() {
    let steps = limits::STEPS_MAX;
    let mut world = a_session().plan_on_with(Strategy::Build).says("plan it").turn_starts();
    world = world.answers("", vec![create()]).plan_tools_run();
    for _ in 0..4 {
        let fifty = (0..steps / 4).map(|_| add_step("copy", "coder")).collect();
        world = world.answers("", fifty).plan_tools_run();
    }
    assert_eq!(world.plan().draft.as_ref().unwrap().steps.len(), steps);
    let world = world.answers("", vec![add_step("one more", "coder")]).plan_tools_run();
    assert!(world.last_refusal().contains("201, and the limit is 200"), "{}", world.last_refusal());
    let mut calls: Vec<_> = (0..steps).map(|at| write(&format!("{at}.txt"))).collect();
    let mut world = a_session().plan_on_with(Strategy::Collect).says("plan it").turn_starts();
    while !calls.is_empty() {
        let some = calls.drain(..50).collect();
        world = world.answers("", some).plan_tools_run();
    }
    let world = world.answers("", vec![write("one-more.txt")]).plan_tools_run();
    assert_eq!(world.plan().draft.as_ref().unwrap().steps.len(), steps);
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
    let told = world.ask(SessionCommand::Person(a_guest(), shown)).unwrap();
    assert_eq!(told.iter().map(SessionEvent::kind).next(), Some("revision_shown"));
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
fn an_approval_may_carry_two_hundred_notes() {
    let approve = |many: usize| {
        let mut world = ready().shown();
        let plain = Approving::of(world.digest(), terms());
        let approving = Approving { notes: vec!["mind it".into(); many], ..plain };
        let refusal = world.person(PersonCommand::Decide(Decision::Approve(approving))).err();
        refusal.map(|refusal| refusal.to_string())
    };
    assert_eq!(approve(200), None);
    let words = "the list of notes is too long: 201, and the limit is 200";
    assert_eq!(approve(201).as_deref(), Some(words));
}

#[test]
fn a_plan_remembers_sixty_four_readers_and_then_begins_anew() {
    let mut world = ready();
    let digest = world.digest();
    let show = |world: &mut World, name: &str| {
        let reader = Person::new(name, "cli", Standing::Speaks);
        let shown = PersonCommand::RecordShown { digest };
        world.ask(SessionCommand::Person(reader, shown)).unwrap();
        world.plan().shown.len()
    };
    let known: Vec<_> =
        (0..=limits::SHOWN_MAX).map(|at| show(&mut world, &format!("reader-{at}"))).collect();
    assert_eq!(known[limits::SHOWN_MAX - 1..], [limits::SHOWN_MAX, 1]);
}

#[test]
fn a_reader_compares_with_what_they_saw_before_however_often_they_look() {
    let world = new_content(ready().shown()).shown();
    let against = |world: &World| world.plan().read_against(&ada().id);
    assert_eq!(against(&world), 1);
    let elsewhere = Person::new("ada", "web 1", Standing::Speaks);
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

#[test]
fn comments_may_be_two_hundred_and_stand_on_the_last_line() {
    let request = |comments: Vec<Comment>| {
        let mut world = ready().shown();
        let digest = world.digest();
        let asked = Decision::RequestChanges { digest, comments };
        world.person(PersonCommand::Decide(asked)).map(drop).map_err(|refusal| refusal.kind())
    };
    let lines = FIRST.lines().count() as u32;
    assert_eq!(request(vec![Comment::on_line(lines, "here"); 200]), Ok(()));
    assert_eq!(request(vec![Comment::on_line(lines, "here"); 201]), Err("too_long"));
    assert_eq!(request(vec![Comment::on_line(lines + 1, "here")]), Err("no_such_line"));
    let written = |number| {
        let comment = Comment { number, ..Comment::on_the_whole("x") };
        serde_json::to_value(comment).unwrap().get("number").cloned()
    };
    assert_eq!((written(0), written(1)), (None, Some(1.into())));
}
