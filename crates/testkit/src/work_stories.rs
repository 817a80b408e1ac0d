//! Stories of work that goes on by itself, told once for every deployment.

use std::sync::{Arc, Mutex, PoisonError};

use planwright_domain::{
    identity::{ChannelType, SessionKey, Transport},
    next::{Waiting, waiting},
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::commands::reply::{Reply, Spoken};
use serde_json::json;

use crate::{
    house::{House, ada, session},
    scripted_model::{Conduct, ScriptedReply, SeenRequest},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! work_stories {
    ($build:expr) => {
        $crate::work_stories!(@each $build;
            a_goal_is_worked_through_and_its_tasks_share_what_it_keeps
            tasks_that_stand_alone_see_nothing_of_each_other
            a_run_whose_process_died_goes_on_in_the_next
            a_run_stops_at_its_budget_and_goes_on_when_it_is_told
            a_person_is_answered_while_a_run_goes_on
            what_is_remembered_is_told_in_a_later_turn_and_everywhere_once_promoted
            a_chat_is_moved_and_a_deleted_session_repaired
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::work_stories::$name($build).await;
        }
    )*};
}

fn talk() -> SessionKey {
    session("talk-0001")
}

/// What the model was given, in the order of its requests.
type Given = Arc<Mutex<Vec<String>>>;

/// A model that, in a run, saves a detail and a decision and reports; and otherwise says a word.
fn diligent(given: Given) -> Conduct {
    Arc::new(move |seen: &SeenRequest| {
        given
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(seen.body["messages"].to_string());
        let task = seen.last_message.rsplit("task: ").next().unwrap_or_default().trim().to_owned();
        let runs = seen.tools.iter().any(|tool| tool == "task_report");
        let save = |text: &str, kind: &str| {
            ScriptedReply::call("memory_save", &json!({"text": text, "kind": kind}))
        };
        match (runs, seen.rounds) {
            (true, 0) => save(&format!("detail of {task}"), "detail").and(
                "memory_save",
                &json!({"text": format!("decision of {task}"), "kind": "decision"}),
            ),
            (true, 1) => ScriptedReply::call(
                "task_report",
                &json!({"status": "done", "summary": format!("{task} is done")}),
            ),
            (_, _) => ScriptedReply::text("Very well."),
        }
    })
}

fn requests(given: &Given) -> Vec<String> {
    given.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Tasks of one goal see what the goal keeps, and not each other's details.
/// Invariant: `goal-shared-within-session`.
pub async fn a_goal_is_worked_through_and_its_tasks_share_what_it_keeps(
    build: impl AsyncFn(Conduct) -> House,
) {
    let given = Given::default();
    let house = build(diligent(given.clone())).await;
    for line in [
        "/goal add move the photos",
        "/task add g1 list the photos",
        "/task add g1 copy the photos",
    ] {
        house.does(&talk(), line).await;
    }
    let session = house.does(&talk(), "/auto on g1").await;
    assert!(session.auto.runs.is_empty() && session.auto.goals.is_empty(), "{:?}", session.auto);
    let second: Vec<_> =
        requests(&given).into_iter().filter(|body| body.contains("Your task: copy")).collect();
    assert!(second[0].contains("decision of list the photos"), "{}", second[0]);
    assert!(second[0].contains("list the photos is done"), "what was done before is told");
    assert!(!second[0].contains("detail of list the photos"), "details stay with their task");
    let kinds = house.kinds(&talk()).await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "task_ended").count(), 2);
}

/// A task that stands alone sees neither the words nor the details of another.
/// Invariant: `task-private`.
pub async fn tasks_that_stand_alone_see_nothing_of_each_other(
    build: impl AsyncFn(Conduct) -> House,
) {
    let given = Given::default();
    let house = build(diligent(given.clone())).await;
    house.does(&talk(), "/task add look at alpha").await;
    house.does(&talk(), "/task add look at beta").await;
    house.does(&talk(), "/auto on").await;
    house.does(&talk(), "/auto on").await;
    let beta: Vec<_> = requests(&given)
        .into_iter()
        .filter(|body| body.contains("Your task: look at beta"))
        .collect();
    assert!(!beta.is_empty());
    for body in &beta {
        assert!(!body.contains("detail of look at alpha"), "{body}");
        assert!(!body.contains("Your task: look at alpha"), "{body}");
    }
    house.does(&talk(), "what was done?").await;
    let last = requests(&given).pop().unwrap_or_default();
    assert!(
        last.contains("look at alpha is done") && last.contains("look at beta is done"),
        "{last}"
    );
    assert!(!last.contains("detail of look at alpha"), "a person's turn is told what came out");
}

/// A run is state of its session: another process takes it up.
pub async fn a_run_whose_process_died_goes_on_in_the_next(build: impl AsyncFn(Conduct) -> House) {
    let slow: Conduct = Arc::new(|seen: &SeenRequest| {
        let mut said = match seen.rounds {
            0 => ScriptedReply::call("list_files", &json!({"path": "."})),
            1 => {
                ScriptedReply::call("task_report", &json!({"status": "done", "summary": "looked"}))
            }
            _ => ScriptedReply::text("So be it."),
        };
        if seen.earlier == 0 {
            said.thinks = std::time::Duration::from_secs(60);
        }
        said
    });
    let mut house = build(slow).await;
    house.does(&talk(), "/task add look around").await;
    assert!(matches!(house.says(&talk(), "/auto on").await, Reply::Accepted { .. }));
    house.until(&talk(), |session| session.turn.is_some()).await;
    while house.model.thinking() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    house.dies_and_starts_again().await;
    let session = house.until(&talk(), |session| session.auto.runs.is_empty()).await;
    assert!(session.auto.tasks.is_empty(), "its task is done: {:?}", session.auto);
}

/// All of a budget pauses and asks; as much again goes on.
pub async fn a_run_stops_at_its_budget_and_goes_on_when_it_is_told(
    build: impl AsyncFn(Conduct) -> House,
) {
    let looks: Conduct = Arc::new(|seen: &SeenRequest| {
        if seen.earlier < 4 {
            let path = format!("{}", seen.earlier);
            return ScriptedReply::call("grep_files", &json!({"pattern": path}));
        }
        match seen.earlier {
            4 => ScriptedReply::call("task_report", &json!({"status": "done", "summary": "found"})),
            _ => ScriptedReply::text("So be it."),
        }
    });
    let house = build(looks).await;
    house.does(&talk(), "/task add find it").await;
    let session = house.does(&talk(), "/auto on calls=3").await;
    assert_eq!(waiting(&session), Some(Waiting::Run));
    let Reply::Work(view) = house.says(&talk(), "/auto status").await else { panic!("the work") };
    let waits = view.runs[0].waits.clone().unwrap_or_default();
    assert!(waits.starts_with("its budget of model calls is used up"), "{waits}");
    let session = house.does(&talk(), "/auto resume").await;
    assert!(session.auto.runs.is_empty(), "{:?}", session.auto);
}

/// A person's message goes first, and the run goes on after it.
pub async fn a_person_is_answered_while_a_run_goes_on(build: impl AsyncFn(Conduct) -> House) {
    let house = build(Arc::new(|seen: &SeenRequest| {
        let runs = seen.tools.iter().any(|tool| tool == "task_report");
        let mut said = match (runs, seen.rounds) {
            (true, round @ 0..6) => {
                let path = format!("{round}");
                ScriptedReply::call("grep_files", &json!({"pattern": path}))
            }
            (true, 6) => {
                ScriptedReply::call("task_report", &json!({"status": "done", "summary": "seen"}))
            }
            (_, _) => ScriptedReply::text("An answer for you."),
        };
        said.thinks = std::time::Duration::from_millis(if runs { 80 } else { 0 });
        said
    }))
    .await;
    house.does(&talk(), "/task add look long").await;
    house.says(&talk(), "/auto on").await;
    house.until(&talk(), |session| session.turn.is_some()).await;
    house.says(&talk(), "a question").await;
    house.until(&talk(), |session| session.auto.runs.is_empty() && session.turn.is_none()).await;
    let kinds = house.kinds(&talk()).await;
    let done = kinds.iter().position(|kind| *kind == "task_ended").unwrap_or(0);
    let turns = kinds[..done].iter().filter(|kind| **kind == "turn_started").count();
    assert!(turns >= 3, "the run made way and went on: {kinds:?}");
}

/// What a person or the model saves is told when it fits, here; and elsewhere only once it was promoted.
pub async fn what_is_remembered_is_told_in_a_later_turn_and_everywhere_once_promoted(
    build: impl AsyncFn(Conduct) -> House,
) {
    let given = Given::default();
    let house = build(diligent(given.clone())).await;
    house.does(&talk(), "hello").await;
    house.does(&talk(), "/memory save the backups live in the vault").await;
    house.does(&talk(), "where are the backups?").await;
    assert!(requests(&given).pop().unwrap_or_default().contains("the backups live in the vault"));
    let other = session("talk-0002");
    house.does(&other, "where are the backups?").await;
    assert!(!requests(&given).pop().unwrap_or_default().contains("vault"), "not from elsewhere");
    let Reply::Memory(view) = house.says(&talk(), "/memory").await else { panic!("the memory") };
    let id = view.items[0].item.id.to_string();
    let foreign = house.says(&other, &format!("/memory promote {id}")).await;
    assert!(matches!(foreign, Reply::Refused(_)), "only where it is remembered: {foreign:?}");
    house.does(&talk(), &format!("/memory promote {id}")).await;
    house.does(&other, "and now, the backups?").await;
    assert!(requests(&given).pop().unwrap_or_default().contains("vault"), "known everywhere");
    let Reply::Memory(view) = house.says(&other, "/memory backups").await else { panic!("memory") };
    assert_eq!(view.blocked, 0);
    assert!(view.items.iter().all(|ranked| ranked.why.matched == ["backups"]), "{view:?}");
}

/// `/new` and `/switch` move one chat; a chat whose session is deleted talks to the newest that is left.
/// Invariant: `pointer-repaired`.
pub async fn a_chat_is_moved_and_a_deleted_session_repaired(build: impl AsyncFn(Conduct) -> House) {
    let house = build(diligent(Given::default())).await;
    let chat = Transport::new(ChannelType::Cli, "terminal");
    let hears = async |line: &str| {
        let identity = house.runtime.commands.resolve(ada().owner, &chat).await.expect("a session");
        let spoken = Spoken {
            identity: identity.clone(),
            transport: Some(chat.clone()),
            person: ada(),
            id: fresh_id(),
            line: line.into(),
        };
        let reply = house.runtime.commands.handle_line(spoken).await.expect("an answer");
        house.rests(&identity).await;
        (identity.identity.to_string(), reply)
    };
    let (first, _) = hears("the first talk").await;
    let (_, moved) = hears("/new").await;
    let Reply::Moved { session: second, .. } = moved else { panic!("{moved:?}") };
    assert_ne!(first, second);
    assert_eq!(hears("the second talk").await.0, second);
    let (_, back) = hears(&format!("/switch {first}")).await;
    assert!(matches!(back, Reply::Moved { session, .. } if session == first));
    let (_, nowhere) = hears("/switch talk-nowhere").await;
    assert!(matches!(&nowhere, Reply::Nothing(words) if words.contains("/new")), "{nowhere:?}");
    let (_, listed) = hears("/sessions").await;
    let Reply::Sessions(rows) = listed else { panic!("{listed:?}") };
    assert_eq!(
        rows.iter().map(|row| row.title.as_str()).collect::<Vec<_>>(),
        ["the second talk", "the first talk"]
    );
    let (_, shown) = hears("/delete").await;
    assert!(
        matches!(&shown, Reply::Nothing(words) if words.starts_with(&format!("deleting {first} ends"))),
        "{shown:?}"
    );
    let (_, gone) = hears("/delete yes").await;
    assert!(matches!(gone, Reply::Accepted { session, .. } if session == first));
    assert_eq!(hears("are you there?").await.0, second, "the newest that is left");
}
