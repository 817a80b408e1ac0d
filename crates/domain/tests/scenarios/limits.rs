//! Every limit holds at the limit, and one above.

use planwright_domain::{
    actor::Standing,
    command::{Approving, Decision, Ending, Permit, PersonCommand, SessionCommand},
    limits,
    next::{Next, next},
    plan::{Strategy, review::Comment},
};

use crate::given::*;

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
    assert_eq!(limits::SUSPENDED_MICROS_MAX, 21_600_000_000);
    assert!(matches!(next(&a_session().session), Next::Nothing));
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
        let reader = person(name, "cli", Standing::Decides);
        let shown = PersonCommand::RecordShown { digest };
        world.ask(SessionCommand::Person(reader, shown)).unwrap();
        world.plan().shown.len()
    };
    let known: Vec<_> =
        (0..=limits::SHOWN_MAX).map(|at| show(&mut world, &format!("reader-{at}"))).collect();
    assert_eq!(known[limits::SHOWN_MAX - 1..], [limits::SHOWN_MAX, 1]);
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

#[test]
fn an_answer_may_ask_for_sixty_four_calls() {
    let answered = |many: usize| {
        let calls = (0..many).map(|at| read(&format!("{at}.txt"))).collect();
        let world = a_session().says("x").turn_starts().answers("", calls);
        matches!(next(&world.session), Next::RunCalls(_))
    };
    assert_eq!((answered(64), answered(65)), (true, false));
}

#[test]
fn a_plan_keeps_sixty_four_grants() {
    let mut world = running();
    let declares = "---\ntools: write_file\npaths: src/\n---\n# Move it\n";
    world = world.ends(Ending::Off).plan_on().says("plan it").turn_starts();
    world = world.answers("", vec![set_content(declares)]).plan_tools_run().answers("", vec![]);
    world = world.approved().turn_starts();
    for at in 0..=limits::GRANTS_MAX {
        if at % 40 == 39 {
            world = world.answers("", vec![report("blocked")]).plan_tools_run().answers("", vec![]);
            let command = world.resume_command();
            world = world.does(command).turn_starts();
        }
        world = world.answers("", vec![write(&format!("d{at}/a.txt"))]).calls_start();
        let permitted = world.permit(Permit::UntilPlanEnds).map(drop);
        if at < limits::GRANTS_MAX {
            assert_eq!(permitted, Ok(()));
            world = world.calls_start().calls_give(&wrote("a.txt"));
        } else {
            let words = permitted.unwrap_err().to_string();
            assert_eq!(words, "the list of grants is too long: 65, and the limit is 64");
        }
    }
}
