//! Stories of the notebook: the acceptance criteria of seed 004, told once for every deployment.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use planwright_domain::{
    identity::SessionKey,
    notebook::NotebookTool,
    plan::event::PlanEvent,
    session::SessionEvent,
    turn::{CallStatus, event::TurnEvent},
};
use planwright_runtime::commands::reply::Reply;
use serde_json::{Value, json};

use crate::{
    house::{House, session},
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! notebook_stories {
    ($build:expr) => {
        $crate::notebook_stories!(@each $build;
            pages_are_made_in_the_sessions_own_place_and_files_stay_as_they_were
            a_complete_plan_is_archived_and_replaced_cleanly
            a_section_is_updated_and_the_rest_of_the_page_stays
            the_notebook_is_off_until_a_person_turns_it_on
            task_plan_is_the_plan_while_plan_work_is_active
            every_second_finding_and_every_error_is_noted_and_no_note_is
            an_export_is_a_write_that_a_person_allows
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::notebook_stories::$name($build).await;
        }
    )*};
}

fn talk() -> SessionKey {
    session("Note-0001")
}

/// A model that makes these calls, one answer after the other, and then says a word; again at every message.
fn caller(calls: Vec<ScriptedReply>) -> Conduct {
    Arc::new(move |seen: &SeenRequest| {
        calls.get(seen.earlier).cloned().unwrap_or_else(|| ScriptedReply::text("Very well."))
    })
}

fn call(tool: &str, arguments: Value) -> ScriptedReply {
    ScriptedReply::call(tool, &arguments)
}

/// Everything under a directory, by path.
fn tree(path: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).into_iter().flatten() {
        let inside = entry.expect("an entry").path();
        if inside.is_dir() {
            found.extend(tree(&inside));
        } else {
            let text = fs::read_to_string(&inside).expect("text");
            found.insert(inside.display().to_string(), text);
        }
    }
    found
}

/// What the tools gave, in order.
async fn outputs(house: &House) -> Vec<(CallStatus, String)> {
    let given = house.events(&talk()).await.into_iter().filter_map(|event| match event {
        SessionEvent::Turn(TurnEvent::CallFinished { result, .. }) => {
            Some((result.status, result.output))
        }
        _ => None,
    });
    given.collect()
}

fn page(house: &House, name: &str) -> String {
    let place = house.data().join("users").join(talk().path_segment()).join("plan").join(name);
    fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()))
}

/// Pages are created under `data/users/{thread_id}/plan/`; user files remain unchanged and separate, and the user
/// file tools see no page.
/// Invariant: `notebook-private`.
pub async fn pages_are_made_in_the_sessions_own_place_and_files_stay_as_they_were(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "Move the photos"})),
        call("list_files", json!({})),
        call("glob_files", json!({"pattern": "**/*.md"})),
        call("grep_files", json!({"pattern": "Move the photos"})),
        call(
            "read_file",
            json!({"path": format!("../data/users/{}/plan/task_plan.md", talk().path_segment())}),
        ),
        call("read_plan", json!({"which": "findings"})),
        call("list_plans", json!({})),
    ]))
    .await;
    fs::create_dir_all(house.file("notes")).expect("a directory");
    fs::write(house.file("notes/mine.md"), "# Mine\n").expect("a file");
    let before = tree(&house.file(""));
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "begin").await;
    assert_eq!(tree(&house.file("")), before, "the person's files are as they were");
    assert!(page(&house, "task_plan.md").starts_with("# Move the photos\n"));
    let given = outputs(&house).await;
    let texts: Vec<_> = given.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts[0], "Made task_plan, findings, progress.");
    assert_eq!(texts[1], "notes/mine.md (7 bytes)");
    assert_eq!(texts[2], "notes/mine.md");
    assert_eq!(texts[3], "no match");
    assert_eq!(given[4].0, CallStatus::Failed, "{given:?}");
    assert!(texts[5].starts_with("# Findings: Move the photos\n"), "{}", texts[5]);
    assert_eq!(texts[6], "current: findings, progress, task_plan\narchive: none");
}

/// A completed plan is archived, and the next one begins fresh; the archive outlives `clear_plan`.
pub async fn a_complete_plan_is_archived_and_replaced_cleanly(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let finished = "# First\n\nStatus: complete\n";
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "First"})),
        call("write_plan", json!({"which": "task_plan", "content": finished})),
        call("init_plan", json!({"task_title": "Second"})),
        call("init_plan", json!({"task_title": "Second"})),
        call("init_plan", json!({"task_title": "Third", "force_new": true})),
        call("clear_plan", json!({})),
        call("clear_plan", json!({"confirm": true})),
        call("list_plans", json!({})),
    ]))
    .await;
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "begin").await;
    let texts: Vec<_> = outputs(&house).await.into_iter().map(|(_, text)| text).collect();
    assert!(texts[2].starts_with("The last one is archived as plan-2"), "{}", texts[2]);
    assert_eq!(texts[3], "The pages are there already; nothing was changed.");
    assert!(texts[4].starts_with("The last one is archived as plan-2"), "{}", texts[4]);
    let seen = house.model.requests().last().expect("a request").to_string();
    assert!(seen.contains("nothing was cleared"), "{seen}");
    let (current, archive) = texts[6].split_once('\n').expect("two lines");
    assert_eq!((current, archive.matches("plan-").count()), ("current: none", 2), "{archive}");
    let Reply::Notebook(view) = house.says(&talk(), "/notebook").await else { panic!("pages") };
    let name = view.archive.iter().min_by_key(|name| name.len()).expect("an archive").clone();
    let shown = house.says(&talk(), &format!("/notebook show {name}")).await;
    let Reply::Notebook(shown) = shown else { panic!("a page") };
    assert!(shown.pages[0].text.starts_with(&format!("<!-- task_plan.md -->\n{finished}")));
    house.does(&talk(), "/delete yes").await;
    assert_eq!(tree(&house.data().join("users")), BTreeMap::new(), "deleted, it keeps nothing");
}

/// The agent updates its pages without exposing them.
pub async fn a_section_is_updated_and_the_rest_of_the_page_stays(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "Move"})),
        call(
            "update_plan",
            json!({"which": "task_plan", "section": "Goal", "content": "Photos on the new disk."}),
        ),
        call("update_plan", json!({"which": "progress", "section": "Nowhere", "content": "x"})),
    ]))
    .await;
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "begin").await;
    let (before, after) =
        ("## Goal\n\nWhat is true when this is done.\n", "## Goal\n\nPhotos on the new disk.\n");
    let now = page(&house, "task_plan.md");
    assert!(now.contains(after) && !now.contains(before) && now.contains("### Phase 3: Check\n"));
    let given = outputs(&house).await;
    assert_eq!(given[2].0, CallStatus::Failed);
    assert!(given[2].1.contains("there are \"Progress: Move\", \"Log\""), "{}", given[2].1);
}

/// Off, its tools are not told of and refuse; on, they are told of and work.
pub async fn the_notebook_is_off_until_a_person_turns_it_on(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let house = build(Arc::new(|seen: &SeenRequest| match seen.rounds {
        0 => call("init_plan", json!({"task_title": "Move"})),
        _ => ScriptedReply::text("Very well."),
    }))
    .await;
    let tools = |at: usize| {
        let request = house.model.requests()[at].clone();
        let names = request["tools"].as_array().cloned().unwrap_or_default();
        let is_ours = |tool: &&Value| {
            tool["function"]["name"].as_str().and_then(NotebookTool::named).is_some()
        };
        names.iter().filter(is_ours).count()
    };
    house.does(&talk(), "begin").await;
    assert_eq!((tools(0), house.data().join("users").exists()), (0, false));
    let last = house.model.requests().last().expect("a request").to_string();
    assert!(last.contains("the notebook is off here"), "{last}");
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "again").await;
    assert_eq!(tools(2), 7);
    assert!(page(&house, "progress.md").starts_with("# Progress: Move\n"));
    house.does(&talk(), "/notebook off").await;
    house.does(&talk(), "once more").await;
    assert_eq!(tools(4), 0);
}

/// While a document is drafted, `task_plan` is the plan; the page keeps what it held before.
pub async fn task_plan_is_the_plan_while_plan_work_is_active(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "Before"})),
        ScriptedReply::text("ready"),
        call(
            "write_plan",
            json!({"which": "task_plan", "content": "# Plan\n\n## Steps\n\n1. a\n"}),
        ),
        call("update_plan", json!({"which": "task_plan", "section": "Steps", "content": "1. b"})),
        call("read_plan", json!({})),
        ScriptedReply::text("written"),
        call("write_plan", json!({"which": "task_plan", "content": "# Sneaked in\n"})),
        call("write_plan", json!({"which": "progress", "content": "# Progress\n\ndone\n"})),
        call("plan_report", json!({"status": "done", "summary": "all done"})),
    ]))
    .await;
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "begin").await;
    let before = page(&house, "task_plan.md");
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "plan it").await;
    house.does(&talk(), "/plan show").await;
    house.does(&talk(), "/plan approve").await;
    let revisions: Vec<_> = house
        .events(&talk())
        .await
        .into_iter()
        .filter_map(|event| match event {
            SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => {
                Some(revision.markdown)
            }
            _ => None,
        })
        .collect();
    assert_eq!(revisions, ["# Plan\n\n## Steps\n\n1. a\n", "# Plan\n\n## Steps\n\n1. b\n"]);
    let seen = house.model.requests().iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    assert!(seen.contains("1. b\\n\""), "reading the page reads the plan");
    assert!(seen.contains("write to progress, or report with plan_report"));
    assert_eq!(page(&house, "task_plan.md"), before, "the page is as it was");
    assert_eq!(page(&house, "progress.md"), "# Progress\n\ndone\n");
}

/// Findings and errors are noted after the call, and the notebook's own calls never are.
pub async fn every_second_finding_and_every_error_is_noted_and_no_note_is(
    build: impl AsyncFnOnce(Conduct) -> House,
) {
    let read = |path: &str| call("read_file", json!({"path": path}));
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "Look"})),
        read("one.txt"),
        read("two.txt"),
        read("gone.txt"),
        read("three.txt").and("read_file", &json!({"path": "four.txt"})),
        call("read_plan", json!({"which": "progress"})),
        call("update_plan", json!({"which": "findings", "section": "Nowhere", "content": "x"})),
    ]))
    .await;
    for name in ["one", "two", "three", "four"] {
        fs::create_dir_all(house.file("")).expect("a directory");
        fs::write(house.file(&format!("{name}.txt")), format!("{name} is here\n")).expect("a file");
    }
    house.does(&talk(), "/notebook on").await;
    house.does(&talk(), "look").await;
    let (findings, progress) = (page(&house, "findings.md"), page(&house, "progress.md"));
    let notes = |page: &str| page.lines().filter(|line| line.starts_with("- 2")).count();
    assert_eq!((notes(&findings), notes(&progress)), (2, 1), "{findings}\n{progress}");
    assert!(findings.contains("→ two is here") && !findings.contains("one is here"), "{findings}");
    assert!(progress.contains("gone.txt") && progress.contains("failed:"), "{progress}");
}

/// A copy among the person's files is a write like any other: it waits for them, and the page stays where it is.
pub async fn an_export_is_a_write_that_a_person_allows(build: impl AsyncFnOnce(Conduct) -> House) {
    let house = build(caller(vec![
        call("init_plan", json!({"task_title": "Export"})),
        call("export_plan", json!({"which": "progress"})),
    ]))
    .await;
    house.does(&talk(), "/notebook on").await;
    let waits = house.does(&talk(), "begin").await;
    let ask = waits.ask.as_ref().expect("it asks");
    assert_eq!(ask.aim.paths.iter().cloned().collect::<Vec<_>>(), ["planning/progress.md"]);
    assert!(!house.file("planning").exists());
    let id = ask.digest.to_string();
    house.does(&talk(), &format!("/allow {}", &id[..12])).await;
    let copied = fs::read_to_string(house.file("planning/progress.md")).expect("a copy");
    assert_eq!(copied, page(&house, "progress.md"));
}
