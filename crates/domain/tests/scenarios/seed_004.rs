//! Every rule of seed 004 that needs no file: sections, completion, archives, and the page that the plan stands in for.

use planwright_domain::{
    command::PersonCommand,
    effect::Effect,
    next::{Next, next},
    notebook::{
        NotebookTool, Page, archive_name, completion::is_complete, minute, section::replaced,
        template::fresh, with_line,
    },
    plan::Strategy,
    time::Time,
    turn::{CallKind, ToolReply},
};
use serde_json::json;

use crate::given::*;

const PAGE: &str = "# Task\n\nintro\n\n## Goal\n\nold goal\n\n## Phases\n\n### Phase 1\n\none\n\n### Phase 2\n\ntwo\n";

#[test]
fn a_section_is_replaced_and_nothing_else() {
    assert_eq!(
        replaced(PAGE, "Goal", "new goal").unwrap(),
        "# Task\n\nintro\n\n## Goal\n\nnew goal\n\n## Phases\n\n### Phase 1\n\none\n\n### Phase 2\n\ntwo\n"
    );
    assert_eq!(
        replaced(PAGE, "### Phase 2", "2").unwrap(),
        "# Task\n\nintro\n\n## Goal\n\nold goal\n\n## Phases\n\n### Phase 1\n\none\n\n### Phase 2\n\n2\n"
    );
}

#[test]
fn words_leave_the_sub_sections_and_headings_replace_them() {
    assert_eq!(
        replaced(PAGE, "Phases", "two of them").unwrap(),
        "# Task\n\nintro\n\n## Goal\n\nold goal\n\n## Phases\n\ntwo of them\n\n### Phase 1\n\none\n\n### Phase 2\n\ntwo\n"
    );
    assert_eq!(
        replaced(PAGE, "Phases", "### Phase 9\n\nnine").unwrap(),
        "# Task\n\nintro\n\n## Goal\n\nold goal\n\n## Phases\n\n### Phase 9\n\nnine\n"
    );
    assert_eq!(
        replaced(PAGE, "Task", "other words").unwrap(),
        PAGE.replacen("intro", "other words", 1)
    );
}

#[test]
fn what_only_looks_like_a_heading_is_none() {
    let page = "---\ntitle: x\n# Log\n---\n# A\n\n```sh\n# Log\n```\n\n> # Log\n\n- # Log\n\nLog\n===\n\nold\r\n";
    let after = replaced(page, "Log", "new").unwrap();
    assert_eq!(after, page.replace("old\r\n", "new\n"));
    let missing = replaced("# A\n\n~~~\n# Log\n~~~\n", "Log", "x").unwrap_err().to_string();
    assert_eq!(missing, "there is no section \"Log\"; there are \"A\"");
}

#[test]
fn line_ends_and_duplicates_are_kept_apart() {
    let page = "# A\r\n\r\n## Log\r\n\r\n1\r\n\r\n# B\r\n\r\n## Log\r\n\r\n2\r\n";
    let refused = replaced(page, "Log", "x").unwrap_err().to_string();
    assert!(refused.starts_with("2 sections are called \"Log\""), "{refused}");
    assert_eq!(
        replaced(page, "A > Log", "x\ny").unwrap(),
        "# A\r\n\r\n## Log\r\n\r\nx\r\ny\r\n\r\n# B\r\n\r\n## Log\r\n\r\n2\r\n"
    );
}

#[test]
fn content_cannot_reach_beyond_its_section() {
    for content in ["```\nnever closed", "<!-- never closed", "# Other\n\ntext", "## Same"] {
        assert!(replaced(PAGE, "Goal", content).is_err(), "{content:?}");
    }
    assert!(replaced(PAGE, "Goal", "```\n# in a fence\n```").is_ok());
}

#[test]
fn a_task_plan_is_complete_when_it_says_so_or_all_its_phases_do() {
    let phase =
        |number: u32, status: &str| format!("### Phase {number}: x\n\n- **Status:** {status}\n\n");
    let of = |statuses: [&str; 2]| {
        format!("# T\n\n## Phases\n\n{}{}", phase(1, statuses[0]), phase(2, statuses[1]))
    };
    assert!(is_complete("# T\n\nStatus: complete\n"));
    assert!(is_complete("# T\n\n**Status:** Complete\n\n### Phase 1\n\nStatus: pending\n"));
    assert!(is_complete(&of(["complete", "done"])));
    assert!(!is_complete(&of(["complete", "in_progress"])));
    assert!(!is_complete("# T\n\n```\nStatus: complete\n```\n"), "code says nothing");
    assert!(!is_complete("# T\n\n### Phase 1\n\nno status\n"));
    assert!(!is_complete("# T\n\n### Phase 1\n\nStatus: complete\n\n### Phase 2\n\nno status\n"));
    assert!(!is_complete(&fresh(Page::TaskPlan, "Move the photos", "2026-11-15 21:45")));
}

#[test]
fn archives_are_named_by_their_minute_and_numbered_within_it() {
    let minute = minute(Time(1_768_530_000_000_000));
    assert_eq!(minute, "20260116-0220");
    let names: Vec<String> = (0..3).fold(Vec::new(), |mut names, _| {
        names.push(archive_name(&minute, &names));
        names
    });
    assert_eq!(names, ["plan-20260116-0220", "plan-20260116-0220-2", "plan-20260116-0220-3"]);
}

#[test]
fn a_line_is_added_once_and_changes_nothing_before_it() {
    let once = with_line("# F\n\n## Notes", "- a");
    assert_eq!(once, "# F\n\n## Notes\n- a\n");
    assert_eq!(with_line(&once, "- a"), once);
}

fn page_call(name: &'static str, arguments: serde_json::Value) -> Asks {
    Asks(name, arguments.to_string(), CallKind::Tool(NotebookTool::named(name).unwrap().facts()))
}

fn last_told(world: &World) -> ToolReply {
    world.reply().pop().unwrap()
}

fn write_page(content: &str) -> Asks {
    page_call("write_plan", json!({"which": "task_plan", "content": content}))
}

#[test]
fn while_a_document_is_drafted_writing_task_plan_is_saving_the_plan() {
    let world = a_session().plan_on().says("plan it").turn_starts();
    let world = world.model_is_asked().answers("", vec![write_page(FIRST)]).plan_tools_run();
    assert_eq!(
        (world.status().as_str(), world.plan().current.as_ref().unwrap().number),
        ("ready", 1)
    );
    let world = world
        .model_is_asked()
        .answers("", vec![page_call("read_plan", json!({}))])
        .plan_tools_run();
    assert!(matches!(last_told(&world), ToolReply::Revision { .. }), "{:?}", last_told(&world));
}

#[test]
fn while_a_plan_executes_task_plan_is_read_and_not_written() {
    let world = running();
    let before = world.plan().clone();
    let world = world.model_is_asked().answers("", vec![write_page("# Other\n")]).plan_tools_run();
    let ToolReply::Refused { kind, words } = last_told(&world) else {
        panic!("{:?}", last_told(&world))
    };
    assert_eq!(kind, "policy_denied");
    assert!(words.contains("progress"), "{words}");
    assert_eq!(world.plan().current, before.current);
}

#[test]
fn under_another_strategy_task_plan_is_not_written() {
    let world = a_session().plan_on_with(Strategy::Build).says("plan it").turn_starts();
    let world = world.model_is_asked().answers("", vec![write_page(FIRST)]).plan_tools_run();
    assert!(
        matches!(last_told(&world), ToolReply::Refused { kind, .. } if kind == "policy_denied")
    );
}

#[test]
fn without_plan_work_and_on_other_pages_the_notebook_itself_is_used() {
    let runs = |world: &World| matches!(next(&world.session), Next::RunCalls(_));
    let plain = a_session()
        .says("hello")
        .turn_starts()
        .model_is_asked()
        .answers("", vec![write_page(FIRST)]);
    assert!(runs(&plain));
    let other = page_call("write_plan", json!({"which": "progress", "content": "x"}));
    let planned = a_session()
        .plan_on()
        .says("plan it")
        .turn_starts()
        .model_is_asked()
        .answers("", vec![other]);
    assert!(runs(&planned));
}

#[test]
fn a_notebook_call_is_never_a_step_and_an_export_is() {
    let collects = || a_session().plan_on_with(Strategy::Collect).says("plan it").turn_starts();
    let note = page_call("write_plan", json!({"which": "findings", "content": "x"}));
    let noted = collects().model_is_asked().answers("", vec![note]);
    assert!(matches!(next(&noted.session), Next::RunCalls(_)));
    let export = page_call("export_plan", json!({"which": "findings"}));
    let planned = collects().model_is_asked().answers("", vec![export]).plan_tools_run();
    assert_eq!(last_told(&planned), ToolReply::Planned);
    assert_eq!(NotebookTool::Export.facts().effect, Effect::Write);
}

#[test]
fn the_notebook_is_turned_on_and_off_by_a_person() {
    let mut world = a_session();
    assert!(!world.session.notebook.is_on(false) && world.session.notebook.is_on(true));
    world.person(PersonCommand::Notebook { on: true }).unwrap();
    assert!(world.session.notebook.is_on(false));
    let version = world.session.version;
    world.person(PersonCommand::Notebook { on: true }).unwrap();
    assert_eq!(world.session.version, version, "said twice, it holds once");
    world.person(PersonCommand::Notebook { on: false }).unwrap();
    assert!(!world.session.notebook.is_on(true));
}
