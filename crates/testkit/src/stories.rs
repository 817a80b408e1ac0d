//! Stories from the first word to the last file, told once for every deployment.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use planwright_domain::{
    command::{Approving, Decision, PersonCommand, SessionCommand},
    digest::Digest,
    effect::FileChange,
    identity::SessionKey,
    plan::{PlanStatus, Progress, event::PlanEvent},
    session::SessionEvent,
    turn::{
        FailureKind, ToolReply,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};
use planwright_outbound::ids_random::fresh_id;
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::signal::{Hint, Signal},
};
use serde_json::{Value, json};

use crate::{
    house::{House, ada, session},
    scripted_model::{Conduct, ScriptedReply, SeenRequest, Shape, worker::worker},
};

/// Makes one test of each story, for houses that this function builds from a model's conduct.
#[macro_export]
macro_rules! stories {
    ($build:expr) => {
        $crate::stories!(@each $build;
            a_message_is_answered_and_streamed
            a_plan_is_written_read_approved_and_executed
            comments_and_notes_reach_the_model
            a_stale_approval_runs_nothing
            an_error_before_the_request_is_sent_parks_the_session
            an_approval_that_names_something_else_runs_nothing
            a_write_without_an_approved_plan_asks_and_runs_only_if_allowed
            a_call_outside_the_envelope_waits_through_a_restart_and_is_allowed_until_the_plan_ends
            a_busy_server_is_asked_again
            an_answer_that_broke_off_is_asked_for_again
            a_stop_aborts_the_model_call_and_the_queue_goes_on
            the_same_message_twice_is_answered_once
            the_same_decision_twice_is_answered_alike_though_what_it_names_is_gone
            a_person_can_steer_a_turn_that_is_under_way
            a_turn_whose_process_died_goes_on_in_the_next
            two_conversations_do_not_mix
            calls_that_cannot_be_made_are_answered_to_the_model
            results_return_in_the_order_of_the_calls
            a_reset_begins_a_new_view
            a_model_that_tries_to_decide_decides_nothing
            recorded_calls_are_approved_and_made_byte_for_byte_without_the_model
            a_recorded_call_that_fails_stops_the_rest_until_it_is_resumed_or_skipped
            a_built_plan_is_done_step_by_step_by_its_profiles
            a_draft_goes_on_where_a_process_that_died_left_it
            a_long_output_is_shortened_for_the_model_and_kept_whole
        );
    };
    (@each $build:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::stories::$name($build).await;
        }
    )*};
}

fn script(said: Vec<ScriptedReply>) -> Conduct {
    Arc::new(move |seen: &SeenRequest| {
        said.get(seen.earlier)
            .cloned()
            .unwrap_or_else(|| ScriptedReply::text("the script has ended"))
    })
}

fn plan(markdown: &str) -> ScriptedReply {
    ScriptedReply::call("plan_set_content", &json!({"plan_markdown": markdown}))
}

fn write(path: &str) -> ScriptedReply {
    ScriptedReply::call("write_file", &json!({"path": path, "content": "made by the plan\n"}))
}

fn report_done() -> ScriptedReply {
    ScriptedReply::call("plan_report", &json!({"status": "done", "summary": "written"}))
}

/// The messages of the last request that the model had.
fn last_messages(house: &House) -> Vec<Value> {
    let requests = house.model.requests();
    requests.last().and_then(|request| request["messages"].as_array().cloned()).unwrap_or_default()
}

fn contents(messages: &[Value], role: &str) -> Vec<String> {
    let of_role = messages.iter().filter(|message| message["role"] == role);
    of_role.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

fn talk() -> SessionKey {
    session("talk-0001")
}

/// What is streamed is what is then committed.
pub async fn a_message_is_answered_and_streamed(build: impl AsyncFn(Conduct) -> House) {
    let house =
        build(script(vec![ScriptedReply::text("Good evening to you.").shaped(Shape::ByteSplit)]))
            .await;
    let mut subscription = house.runtime.queries.subscribe(&talk());
    house.does(&talk(), "good evening").await;
    let mut heard = String::new();
    while let Ok(Some(signal)) =
        tokio::time::timeout(Duration::from_millis(100), subscription.next()).await
    {
        if let Signal::Preview(piece) = signal {
            assert_eq!(piece.offset, heard.len());
            heard.push_str(&piece.text);
        }
    }
    let events = house.events(&talk()).await;
    let said = events.iter().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. }) => Some(answer.text.clone()),
        _ => None,
    });
    assert_eq!(
        (said.as_deref(), heard.as_str()),
        (Some("Good evening to you."), "Good evening to you.")
    );
}

/// From the first word to the file.
pub async fn a_plan_is_written_read_approved_and_executed(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![
        plan("# Write it\n\n1. Write `made.txt`.\n"),
        ScriptedReply::text("There is the plan."),
        write("made.txt"),
        report_done(),
        ScriptedReply::text("All done."),
    ]))
    .await;
    house.does(&talk(), "/plan on").await;
    let ready = house.does(&talk(), "write it").await;
    assert_eq!(ready.plan().map(|plan| plan.status.label()), Some("Ready"));
    assert!(!house.file("made.txt").exists());
    house.does(&talk(), "/plan show").await;
    let done = house.does(&talk(), "/plan approve").await;
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert_eq!(fs::read_to_string(house.file("made.txt")).expect("the file"), "made by the plan\n");
    let opening = contents(&last_messages(&house), "user").pop().unwrap_or_default();
    let digest = ready
        .plan()
        .and_then(|plan| plan.current.as_ref())
        .map(|head| head.digest.to_string())
        .unwrap_or_default();
    assert!(
        opening.contains("# Write it\n\n1. Write `made.txt`.\n") && opening.contains(&digest),
        "{opening}"
    );
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.touched.len()), Some(1));
    let receipt =
        house.runtime.queries.receipt(&talk()).await.expect("a query").expect("a receipt");
    let changes: Vec<_> = receipt.files.iter().map(|row| row.change.clone()).collect();
    let (path, before) = ("made.txt".to_owned(), None);
    let after = Digest::of(b"made by the plan\n");
    let diff = Some("@@ -0,0 +1 @@\n+made by the plan\n".to_owned());
    assert_eq!(changes, [FileChange { path, before, after, diff }]);
    assert!(receipt.begun.is_some() && receipt.begun <= receipt.ended, "{receipt:?}");
}

/// What the reviewer says arrives, word for word.
pub async fn comments_and_notes_reach_the_model(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![
        plan("# One\n"),
        ScriptedReply::text("one"),
        ScriptedReply::call(
            "plan_set_content",
            &json!({"plan_markdown": "# Two\n", "replies": [{"comment": 1}]}),
        ),
        ScriptedReply::text("two"),
        report_done(),
        ScriptedReply::text("done"),
    ]))
    .await;
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "plan").await;
    house.does(&talk(), "/plan show").await;
    house.does(&talk(), "/plan changes 1: say what for").await;
    assert!(
        contents(&last_messages(&house), "user")
            .iter()
            .any(|text| text.contains("- comment 1, on line 1: say what for"))
    );
    house.does(&talk(), "/plan show").await;
    let ready = house.runtime.queries.session(&talk()).await.expect("a session");
    let digest = ready
        .plan()
        .and_then(|plan| plan.current.as_ref())
        .map(|head| head.digest)
        .expect("a revision");
    let notes = vec!["mind the cat".to_owned(), "and the dog".to_owned()];
    let plain = Approving::of(digest, house.runtime.queries.terms());
    let approve = PersonCommand::Decide(Decision::Approve(Approving { notes, ..plain }));
    house
        .runtime
        .engine
        .dispatch(&talk(), fresh_id(), SessionCommand::Person(ada(), approve))
        .await
        .expect("an answer");
    house.rests(&talk()).await;
    let seen = contents(&last_messages(&house), "user").join("\n");
    assert!(
        seen.contains("Note from the approver: mind the cat")
            && seen.contains("Note from the approver: and the dog")
    );
}

/// Read one revision, approve another: no.
pub async fn a_stale_approval_runs_nothing(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![
        plan("# One\n"),
        ScriptedReply::text("one"),
        plan("# Two\n"),
        ScriptedReply::text("two"),
    ]))
    .await;
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "plan").await;
    house.does(&talk(), "/plan show").await;
    house.does(&talk(), "and now differently").await;
    let Reply::Refused(refusal) = house.says(&talk(), "/plan approve").await else {
        panic!("it was accepted")
    };
    assert_eq!(refusal.kind(), "stale_decision");
    let kinds = house.kinds(&talk()).await;
    assert!(!kinds.contains(&"plan_approved") && !kinds.contains(&"execution_started"));
}

/// What cannot be read can never be sent: the attempt is abandoned, and the session parked after eight tries and shown,
/// in both deployments.
pub async fn an_error_before_the_request_is_sent_parks_the_session(
    build: impl AsyncFn(Conduct) -> House,
) {
    let house = build(script(vec![
        plan("# One\n"),
        ScriptedReply::text("one"),
        ScriptedReply::text("never"),
    ]))
    .await;
    for line in ["/plan on", "plan", "/plan show", "/plan approve hold"] {
        house.does(&talk(), line).await;
    }
    // The journal knows the session; the conversation was last read before this event, which is no longer warm.
    for number in 0..30 {
        house.does(&talk(), &format!("/rename title {number}")).await;
    }
    house.damage("revision_shown");
    let mut hints = house.ports.broadcast.hints(None);
    let requests = house.model.requests().len();
    assert!(matches!(house.says(&talk(), "/plan resume").await, Reply::Accepted { .. }));
    let abandoned = || {
        let many = "SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'model_call_abandoned'";
        house.sql(many).parse::<u32>().expect("a number")
    };
    let begun = Instant::now();
    while abandoned() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", abandoned());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The failure is counted after the attempt is recorded.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let failures = "SELECT CAST(failures AS TEXT) FROM streams";
    assert_eq!(house.sql(failures), "3", "tries are counted, and backed off from");
    drop(house.sql("UPDATE streams SET failures = 7"));
    let parked = async || {
        let rows = house.ports.journal.sessions(None, 10).await.expect("rows");
        rows[0].parked.clone()
    };
    while parked().await.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is parked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(abandoned(), 4);
    assert_eq!(house.model.requests().len(), requests, "nothing was sent");
    let heard = tokio::time::timeout(Duration::from_secs(5), async {
        loop {
            if let Some(Hint::Changed(change)) = hints.next().await
                && change.row.parked.is_some()
            {
                return change.row;
            }
        }
    });
    let row = async || house.ports.journal.row(&talk()).await.expect("a row");
    assert_eq!(Some(heard.await.expect("those who keep lists are told")), row().await);
    house.runtime.commands.unpark(&talk()).await.expect("it is released");
    let Some(Hint::Changed(change)) = hints.next().await else { panic!("nobody was told") };
    assert_eq!((change.row.parked.clone(), Some(change.row)), (None, row().await));
}

/// A word that names nothing, or another plan: nothing is approved, and nothing runs.
pub async fn an_approval_that_names_something_else_runs_nothing(
    build: impl AsyncFn(Conduct) -> House,
) {
    let house = build(script(vec![
        plan("# One\n"),
        ScriptedReply::text("one"),
        plan("# Two\n"),
        ScriptedReply::text("two"),
        ScriptedReply::text("running"),
    ]))
    .await;
    house.does(&talk(), "/plan on").await;
    let first = house.does(&talk(), "plan").await.plan().expect("a plan").id;
    house.does(&talk(), "/plan off").await;
    house.does(&talk(), "/plan on").await;
    let session = house.does(&talk(), "another").await;
    let plan = session.plan().expect("a plan");
    let (id, digest) = (plan.id, plan.current.as_ref().expect("a revision").digest);
    house.does(&talk(), "/plan show").await;
    let foreign = Digest::of(b"something else");
    for name in ["hodl".into(), first.to_string(), "2".into(), "yes".into(), foreign.to_string()] {
        let reply = house.says(&talk(), &format!("/plan approve {name}")).await;
        assert!(matches!(reply, Reply::Refused(_) | Reply::Unreadable(_)), "{name}: {reply:?}");
    }
    assert!(!house.kinds(&talk()).await.contains(&"plan_approved"));
    let again = house.says(&talk(), &format!("/plan approve {id} hold")).await;
    assert!(matches!(again, Reply::Accepted { .. }), "{again:?}");
    let short = digest.short();
    let decided = house.says(&talk(), &format!("/plan approve {short}0 hold")).await;
    assert!(matches!(&decided, Reply::Refused(_)), "{decided:?}");
}

/// Allowed, it runs once; denied, the model is told; nothing runs by itself.
pub async fn a_write_without_an_approved_plan_asks_and_runs_only_if_allowed(
    build: impl AsyncFn(Conduct) -> House,
) {
    let house = build(script(vec![
        write("asked.txt"),
        write("asked.txt"),
        ScriptedReply::text("I wrote once and was denied once."),
    ]))
    .await;
    let session = house.does(&talk(), "write something").await;
    assert!(!house.file("asked.txt").exists());
    let id = session.ask.as_ref().expect("it asks").digest.short();
    assert!(matches!(house.says(&talk(), "/allow").await, Reply::Refused(_)), "an id is needed");
    let session = house.does(&talk(), &format!("/allow {id}")).await;
    assert!(house.file("asked.txt").exists());
    let second = session.ask.as_ref().expect("it asks again").digest.short();
    assert!(matches!(house.says(&talk(), &format!("/allow {id}")).await, Reply::Refused(_)));
    house.does(&talk(), &format!("/deny {second}")).await;
    let seen = contents(&last_messages(&house), "tool").pop().unwrap_or_default();
    assert_eq!(seen, "a person denied this call");
}

/// A decision whose answer was lost on its way is asked for again with its id.
pub async fn the_same_decision_twice_is_answered_alike_though_what_it_names_is_gone(
    build: impl AsyncFn(Conduct) -> House,
) {
    let house = build(script(vec![write("once.txt"), ScriptedReply::text("Written.")])).await;
    let session = house.does(&talk(), "write something").await;
    let line = format!("/allow {}", session.ask.as_ref().expect("it asks").digest.short());
    let spoken = Spoken { identity: talk(), transport: None, person: ada(), id: fresh_id(), line };
    let first = house.runtime.commands.handle_line(spoken.clone()).await.expect("a reply");
    house.rests(&talk()).await;
    let second = house.runtime.commands.handle_line(spoken).await.expect("a reply");
    assert!(matches!(first, Reply::Accepted { .. }), "{first:?}");
    assert_eq!(first, second);
}

/// The question is a row: it outlives the process, and its answer holds until the plan ends.
pub async fn a_call_outside_the_envelope_waits_through_a_restart_and_is_allowed_until_the_plan_ends(
    build: impl AsyncFn(Conduct) -> House,
) {
    let mut house = build(script(vec![
        plan("---\ntools: write_file\npaths: docs/\n---\n# Write\n"),
        ScriptedReply::text("There is the plan."),
        write("docs/a.txt"),
        write("src/a.txt"),
        write("src/b.txt"),
        report_done(),
        ScriptedReply::text("All done."),
    ]))
    .await;
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "write it").await;
    house.does(&talk(), "/plan show").await;
    let session = house.does(&talk(), "/plan approve").await;
    assert!(house.file("docs/a.txt").exists() && !house.file("src/a.txt").exists());
    let ask = session.ask.clone().expect("it asks");
    assert_eq!(ask.why, "the approval does not lease src/a.txt");
    house.dies_and_starts_again().await;
    assert_eq!(house.rests(&talk()).await.ask, Some(ask.clone()));
    let done = house.does(&talk(), &format!("/allow {} plan", ask.digest.short())).await;
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert!(house.file("src/a.txt").exists() && house.file("src/b.txt").exists());
}

/// 429 and 503 pass.
pub async fn a_busy_server_is_asked_again(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![
        ScriptedReply::text("").shaped(Shape::TooManyRequests),
        ScriptedReply::text("Here I am."),
    ]))
    .await;
    house.does(&talk(), "hello").await;
    let kinds = house.kinds(&talk()).await;
    assert_eq!(
        kinds,
        [
            "message_queued",
            "turn_started",
            "model_call_started",
            "model_call_failed",
            "model_call_started",
            "model_answered",
            "turn_finished"
        ]
    );
}

/// Half an answer is no answer.
pub async fn an_answer_that_broke_off_is_asked_for_again(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![
        write("half.txt").shaped(Shape::Truncated),
        ScriptedReply::text("Once more, with care."),
    ]))
    .await;
    let after = house.does(&talk(), "hello").await;
    assert!(after.open.is_empty() && !house.file("half.txt").exists());
    let failed = house.events(&talk()).await.into_iter().any(|event| {
        matches!(event, SessionEvent::Turn(TurnEvent::ModelCallFailed { failure, .. }) if failure.kind == FailureKind::Malformed)
    });
    assert!(failed);
}

/// A stop is answered while the model still thinks, and ends the thinking.
pub async fn a_stop_aborts_the_model_call_and_the_queue_goes_on(
    build: impl AsyncFn(Conduct) -> House,
) {
    let slow =
        ScriptedReply { thinks: Duration::from_secs(60), ..ScriptedReply::text("never heard") };
    let house = build(script(vec![slow, ScriptedReply::text("to the second")])).await;
    house.says(&talk(), "think long").await;
    house.until(&talk(), |session| session.turn.is_some()).await;
    while house.model.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begun = Instant::now();
    assert!(matches!(house.says(&talk(), "/stop").await, Reply::Accepted { .. }));
    house.does(&talk(), "the second").await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(house.model.requests().len(), 2);
}

/// A client that sends again, because it did not hear, is not heard twice.
pub async fn the_same_message_twice_is_answered_once(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![ScriptedReply::text("once")])).await;
    let spoken = Spoken {
        identity: talk(),
        transport: None,
        person: ada(),
        id: fresh_id(),
        line: "hello".into(),
    };
    let first = house.runtime.commands.handle_line(spoken.clone()).await.expect("an answer");
    house.rests(&talk()).await;
    assert_eq!(house.runtime.commands.handle_line(spoken).await.expect("an answer"), first);
    house.rests(&talk()).await;
    assert_eq!(house.model.requests().len(), 1);
}

/// What is said while the agent works is heard before it goes on.
pub async fn a_person_can_steer_a_turn_that_is_under_way(build: impl AsyncFn(Conduct) -> House) {
    let first = ScriptedReply {
        thinks: Duration::from_millis(400),
        ..ScriptedReply::call("list_files", &json!({}))
    };
    let house = build(script(vec![first, ScriptedReply::text("as you wish")])).await;
    house.says(&talk(), "look around").await;
    while house.model.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    house.does(&talk(), "only the small ones").await;
    assert_eq!(house.model.requests().len(), 2, "one turn, not two");
    let roles: Vec<_> = last_messages(&house)
        .iter()
        .map(|message| message["role"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
}

/// Recovery is asking `next` again.
pub async fn a_turn_whose_process_died_goes_on_in_the_next(build: impl AsyncFn(Conduct) -> House) {
    let slow =
        ScriptedReply { thinks: Duration::from_secs(60), ..ScriptedReply::text("never heard") };
    let mut house = build(script(vec![slow, ScriptedReply::text("after the fall")])).await;
    house.says(&talk(), "hello").await;
    while house.model.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    house.dies_and_starts_again().await;
    house.rests(&talk()).await;
    // What was taken for dead may say late what its call used.
    let is_late = |event: &&SessionEvent| {
        matches!(event, SessionEvent::Turn(TurnEvent::ModelAnswered { arrival: Arrival::Late, .. }))
    };
    let events = house.events(&talk()).await;
    let kinds: Vec<_> =
        events.iter().filter(|event| !is_late(event)).map(SessionEvent::kind).collect();
    assert_eq!(
        kinds,
        [
            "message_queued",
            "turn_started",
            "model_call_started",
            "model_call_orphaned",
            "model_call_started",
            "model_answered",
            "turn_finished"
        ]
    );
}

/// Invariant: `session-isolation`.
pub async fn two_conversations_do_not_mix(build: impl AsyncFn(Conduct) -> House) {
    let house = build(worker(300, 1)).await;
    let (one, other) = (session("talk-0001"), session("talk-0002"));
    house.does(&one, "/plan on").await;
    let (first, second) =
        tokio::join!(house.does(&one, "plan the one"), house.does(&other, "just talk"));
    assert!(first.plan().is_some() && second.plan().is_none());
    for request in house.model.requests() {
        let text = request["messages"].to_string();
        assert!(!(text.contains("plan the one") && text.contains("just talk")));
    }
    assert!(!house.kinds(&other).await.contains(&"plan_started"));
}

/// Broken calls are answered, not dropped.
pub async fn calls_that_cannot_be_made_are_answered_to_the_model(
    build: impl AsyncFn(Conduct) -> House,
) {
    let mut said =
        ScriptedReply::call("fly", &json!({})).and("read_file", &json!({"way": "there"}));
    said.calls.push(("read_file".into(), "{\"path\": ".into()));
    let house = build(script(vec![said, ScriptedReply::text("sorry")])).await;
    house.does(&talk(), "go").await;
    let seen = contents(&last_messages(&house), "tool");
    assert_eq!(seen.len(), 3);
    assert!(seen[0].starts_with("there is no tool \"fly\"; there are list_files"), "{}", seen[0]);
    assert!(seen[1].contains("unknown field `way`") && seen[2].contains("do not fit"), "{seen:?}");
}

/// Invariant: `every-call-answered`.
pub async fn results_return_in_the_order_of_the_calls(build: impl AsyncFn(Conduct) -> House) {
    let read = |path: &str| json!({"path": path});
    let said = ScriptedReply::call("read_file", &read("a"))
        .and("read_file", &read("b"))
        .and("read_file", &read("c"))
        .shaped(Shape::Interleaved);
    let house = build(script(vec![said, ScriptedReply::text("read")])).await;
    fs::create_dir_all(house.file("")).expect("a directory");
    for name in ["a", "b", "c"] {
        fs::write(house.file(name), format!("contents of {name}")).expect("a file");
    }
    house.does(&talk(), "read them").await;
    assert_eq!(
        contents(&last_messages(&house), "tool"),
        ["a", "b", "c"].map(|name| format!("[from outside]\ncontents of {name}"))
    );
}

/// What was said before a reset is not told again, and stays recorded.
pub async fn a_reset_begins_a_new_view(build: impl AsyncFn(Conduct) -> House) {
    let house = build(script(vec![ScriptedReply::text("one"), ScriptedReply::text("two")])).await;
    house.does(&talk(), "the first").await;
    house.does(&talk(), "/reset").await;
    house.does(&talk(), "the second").await;
    assert_eq!(contents(&last_messages(&house), "user"), ["the second"]);
    let first = house.events(&talk()).await.into_iter().next();
    assert!(matches!(first, Some(SessionEvent::MessageQueued { text, .. }) if text == "the first"));
}

/// Invariant: `model-never-approves`.
pub async fn a_model_that_tries_to_decide_decides_nothing(build: impl AsyncFn(Conduct) -> House) {
    let tries = ScriptedReply::call("plan_approve", &json!({"approved": true}))
        .and("approve", &json!({}))
        .and("plan_report", &json!({"status": "done", "summary": "x"}));
    let house =
        build(script(vec![plan("# One\n"), tries, ScriptedReply::text("/plan approve")])).await;
    house.does(&talk(), "/plan on").await;
    let after = house.does(&talk(), "plan and do it at once").await;
    assert_eq!(after.plan().map(|plan| plan.status.clone()), Some(PlanStatus::Ready));
    let events = house.events(&talk()).await;
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, SessionEvent::Plan(PlanEvent::PlanApproved { .. })))
    );
    let refused = events.iter().filter(|event| {
        matches!(
            event,
            SessionEvent::Turn(TurnEvent::CallAnswered { reply: ToolReply::Refused { .. }, .. })
        )
    });
    assert_eq!(refused.count(), 3);
}

/// A conversation that no longer fits the window is refused in words, not cut.
pub async fn a_conversation_that_does_not_fit_is_refused_in_words(house: House) {
    house.does(&talk(), "/plan on").await;
    let after = house.does(&talk(), &"word ".repeat(2_000)).await;
    assert!(house.model.requests().is_empty());
    let end = house.events(&talk()).await.into_iter().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end),
        _ => None,
    });
    let Some(TurnEnd::Failed { failure }) = end else { panic!("it did not fail: {end:?}") };
    assert_eq!(failure.kind, FailureKind::TooLarge);
    assert!(failure.message.contains("send /reset to start a new view"), "{}", failure.message);
    assert!(after.plan().is_some(), "the plan is untouched");
    assert!(!matches!(
        after.plan().map(|plan| &plan.status),
        Some(PlanStatus::Executing(_, Progress::Running))
    ));
}

/// Asked twice with one id, a decision has one effect and one answer.
pub async fn a_decision_asked_twice_is_answered_the_same(house: House) {
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "plan it").await;
    house.does(&talk(), "/plan show").await;
    let spoken = Spoken {
        identity: talk(),
        transport: None,
        person: ada(),
        id: fresh_id(),
        line: "/plan approve hold".into(),
    };
    let first = house.runtime.commands.handle_line(spoken.clone()).await.expect("an answer");
    assert!(matches!(first, Reply::Accepted { .. }), "{first:?}");
    assert_eq!(house.runtime.commands.handle_line(spoken).await.expect("an answer"), first);
    let again = house.says(&talk(), "/plan approve hold").await;
    assert!(
        matches!(&again, Reply::Refused(refusal) if refusal.kind() == "already_decided"),
        "{again:?}"
    );
}

/// What runs is what was approved, and the model is told what came of it.
pub async fn recorded_calls_are_approved_and_made_byte_for_byte_without_the_model(
    build: impl AsyncFn(Conduct) -> House,
) {
    let calls = write("one.txt")
        .and("write_file", &json!({"path": "two.txt", "content": "  spaces \u{e9} \n"}))
        .and("plan_finalize", &json!({"summary": "Two files"}));
    let house = build(script(vec![
        calls,
        ScriptedReply::text("Planned."),
        ScriptedReply::text("You are welcome."),
    ]))
    .await;
    house.does(&talk(), "/plan on collect").await;
    let ready = house.does(&talk(), "two files, please").await;
    assert_eq!(ready.plan().map(|plan| plan.status.label()), Some("Ready"));
    assert!(!house.file("one.txt").exists(), "nothing runs before the approval");
    assert_eq!(contents(&last_messages(&house), "tool")[..2], ["[Planned]", "[Planned]"]);
    house.does(&talk(), "/plan show").await;
    let asked = house.model.request_count();
    let done = house.does(&talk(), "/plan approve").await;
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert_eq!(house.model.request_count(), asked, "the model is not asked to execute");
    assert_eq!(fs::read_to_string(house.file("two.txt")).expect("the file"), "  spaces \u{e9} \n");
    assert_eq!(fs::read_to_string(house.file("one.txt")).expect("the file"), "made by the plan\n");
    house.does(&talk(), "thank you").await;
    let seen = contents(&last_messages(&house), "user").join("\n");
    assert!(
        seen.contains(
            "[Step 1 of the approved plan was run; from outside: wrote one.txt (17 bytes)]"
        ),
        "{seen}"
    );
    assert!(seen.contains("[The approved plan has ended: all 2 steps are done.]"), "{seen}");
}

/// A failure stops the rest; a person goes on with it, or without it.
pub async fn a_recorded_call_that_fails_stops_the_rest_until_it_is_resumed_or_skipped(
    build: impl AsyncFn(Conduct) -> House,
) {
    let edit = |path: &str| json!({"path": path, "old": "a", "new": "b"});
    let calls = ScriptedReply::call("edit_file", &edit("absent.txt"))
        .and("edit_file", &edit("gone.txt"))
        .and("write_file", &json!({"path": "last.txt", "content": "x"}))
        .and("plan_finalize", &json!({}));
    let house = build(script(vec![calls, ScriptedReply::text("Planned.")])).await;
    house.does(&talk(), "/plan on collect").await;
    house.does(&talk(), "edit them").await;
    house.does(&talk(), "/plan show").await;
    let failed = house.does(&talk(), "/plan approve").await;
    assert_eq!(failed.plan().map(|plan| plan.status.label()), Some("Failed"));
    fs::write(house.file("absent.txt"), "a").expect("a file");
    let failed = house.does(&talk(), "/plan resume").await;
    assert_eq!(failed.plan().map(|plan| plan.status.label()), Some("Failed"));
    assert_eq!(fs::read_to_string(house.file("absent.txt")).expect("the file"), "b");
    house.does(&talk(), "/plan skip 2").await;
    let done = house.does(&talk(), "/plan resume").await;
    assert_eq!(done.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert!(house.file("last.txt").exists());
}

/// Each step is a turn of its profile, and knows what was done before it.
pub async fn a_built_plan_is_done_step_by_step_by_its_profiles(
    build: impl AsyncFn(Conduct) -> House,
) {
    let step = |title: &str, profile: &str| json!({"title": title, "instructions": format!("{title} it"), "profile": profile});
    let draft = ScriptedReply::call("plan_create", &json!({"goal": "Two files"}))
        .and(
            "plan_set_metadata",
            &json!({"assumptions": ["a"], "risks": ["r"], "verification": ["v"], "files": ["f"]}),
        )
        .and("plan_add_step", &step("begin", "default"))
        .and("plan_add_step", &step("end", "scribe"))
        .and("plan_submit", &json!({}));
    let done = |words: &str| {
        ScriptedReply::call("plan_report", &json!({"status": "done", "summary": words}))
    };
    let house = build(script(vec![
        draft,
        ScriptedReply::text("There is the plan."),
        write("begin.txt"),
        done("begun well"),
        ScriptedReply::text("Begun."),
        write("end.txt"),
        done("ended well"),
        ScriptedReply::text("Ended."),
    ]))
    .await;
    house.does(&talk(), "/plan on build").await;
    let ready = house.does(&talk(), "two files").await;
    assert_eq!(ready.plan().map(|plan| plan.steps().len()), Some(2));
    house.does(&talk(), "/plan show").await;
    let ended = house.does(&talk(), "/plan approve").await;
    assert_eq!(ended.last_ended.as_ref().map(|ended| ended.ended.label()), Some("Done"));
    assert!(house.file("begin.txt").exists() && house.file("end.txt").exists());
    let requests = house.model.requests();
    let last = &requests[5];
    let system = last["messages"][0]["content"].as_str().unwrap_or_default();
    assert!(system.contains("You are a scribe."), "{system}");
    let tools: Vec<_> = last["tools"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let of_profile = ["read_file", "write_file", "plan_get", "plan_list"];
    assert_eq!(names[..4], of_profile, "its own, and those of the strategy");
    assert_eq!(names[10..], ["plan_report", "read_result"], "listed in every state");
    let seen = contents(&last_messages(&house), "user").join("\n");
    assert!(
        seen.contains("Step 1: begun well\nDo step 2 now, and no other: end\n\nend it"),
        "{seen}"
    );
}

/// A draft is in the journal, call by call.
pub async fn a_draft_goes_on_where_a_process_that_died_left_it(
    build: impl AsyncFn(Conduct) -> House,
) {
    let mut house = build(script(vec![
        ScriptedReply::call("plan_create", &json!({"goal": "Survive"})),
        ScriptedReply::text("The goal is set."),
        ScriptedReply::call("plan_get", &json!({})),
        ScriptedReply::text("I have it."),
    ]))
    .await;
    house.does(&talk(), "/plan on build").await;
    house.does(&talk(), "begin").await;
    house.dies_and_starts_again().await;
    let session = house.does(&talk(), "go on").await;
    let plan = session.plan().expect("a plan").id;
    let seen = contents(&last_messages(&house), "tool").join("\n");
    assert!(seen.contains(&format!("Draft of plan {plan}")) && seen.contains("Survive"), "{seen}");
}

/// The model reads both ends of what a tool said, and a person can read all of it.
pub async fn a_long_output_is_shortened_for_the_model_and_kept_whole(
    build: impl AsyncFn(Conduct) -> House,
) {
    let read = ScriptedReply::call("read_file", &json!({"path": "long.txt"}));
    let house = build(script(vec![read, ScriptedReply::text("I have read it.")])).await;
    let long = (0..20_000).map(|line| format!("line {line}\n")).collect::<String>();
    fs::write(house.file("long.txt"), &long).expect("a file");
    house.does(&talk(), "read it").await;
    let seen = contents(&last_messages(&house), "tool").join("");
    assert!(
        seen.starts_with("[from outside]\nline 0\n") && seen.ends_with("line 19999\n"),
        "both ends"
    );
    let digest = Digest::of(long.as_bytes());
    let gap = format!(" bytes are left out here; all of it: planwright session output {digest}]");
    assert!(seen.contains(&gap) && seen.len() < 70_000, "{} bytes", seen.len());
    let kept = house.runtime.queries.output(&talk(), digest).await.expect("an answer");
    assert_eq!(kept.as_deref(), Some(long.as_str()));
}

/// A model that sums up when it is asked to, plans once, and else talks at length. It counts a token for four bytes.
#[must_use]
pub fn talkative() -> Conduct {
    Arc::new(|seen: &SeenRequest| {
        let system = seen.body["messages"][0]["content"].as_str().unwrap_or_default();
        let planning = seen.tools.iter().any(|tool| tool == "plan_set_content");
        let said = if system.starts_with("You keep the memory") {
            ScriptedReply::text("They talked about the garden.")
        } else if planning && seen.rounds == 0 && seen.last_message == "plan it" {
            plan("# The garden\n\n1. Dig.\n")
        } else {
            ScriptedReply::text(&"A long answer about the garden. ".repeat(30))
        };
        ScriptedReply { read: Some(seen.body.to_string().len() / 4), ..said }
    })
}

/// What no longer fits is summed up, by itself and when a person asks; the plan, the last words and the facts stay.
pub async fn what_was_said_is_summed_up_and_the_plan_stays(mut house: House) {
    house.does(&talk(), "/plan on").await;
    house.does(&talk(), "plan it").await;
    house.does(&talk(), "/plan show").await;
    house.does(&talk(), "/plan changes keep the old roses").await;
    for turn in 0..14 {
        house
            .does(&talk(), &format!("turn {turn}: {}", "and what about the roses? ".repeat(40)))
            .await;
    }
    let compacted =
        house.kinds(&talk()).await.iter().filter(|kind| **kind == "view_compacted").count();
    assert!(compacted >= 1, "nothing was summed up");
    let cost = house.rests(&talk()).await.usage.cost_micros;
    let (_, stands) = house.runtime.queries.quotas().now(ada().owner).await.expect("a sum");
    assert_eq!(stands.used.cost_micros, cost, "what summing up cost is counted, too");
    house.dies_and_starts_again().await;
    house.does(&talk(), "the last words").await;
    let requests = house.model.requests();
    let summed = |request: &&Value| request.to_string().contains("You keep the memory");
    for request in requests.iter().filter(|request| !summed(request)) {
        assert!(request["messages"][0].to_string().contains("Plan work is active"), "{request}");
        assert!(request.to_string().len() / 4 < 6_000, "it does not fit");
    }
    let last = requests.last().expect("a request").to_string();
    assert!(last.contains("They talked about the garden.") && last.contains("the last words"));
    assert!(last.contains("keep the old roses"), "a comment that nobody replied to stays");
    let shown = house.says(&talk(), "/plan show").await;
    assert!(
        matches!(shown, Reply::Revision(view) if view.revision.markdown == "# The garden\n\n1. Dig.\n")
    );
    house.does(&talk(), "/compact").await;
    let ended = house.events(&talk()).await.into_iter().rev().find_map(|event| match event {
        SessionEvent::Turn(TurnEvent::TurnFinished { end, .. }) => Some(end),
        _ => None,
    });
    assert!(matches!(ended, Some(TurnEnd::Compacted { messages: 1.. })), "{ended:?}");
    let rows = house.runtime.queries.requests(&talk()).await.expect("the log");
    let sent = rows.iter().rev().find(|row| row.sent.is_some()).expect("a request");
    let view = house
        .runtime
        .queries
        .request_at(&talk(), sent.seq)
        .await
        .expect("the log")
        .expect("a request");
    assert!(view.same, "what was sent is rebuilt from the facts");
}

/// A model that looks at the notes in each turn, and reads again what was shortened once it is told to.
#[must_use]
pub fn forgetful() -> Conduct {
    Arc::new(|seen: &SeenRequest| {
        let body = seen.body.to_string();
        let key = body.split("bytes in all; read_result ").nth(1);
        let key = key.and_then(|rest| rest.split(' ').next()).unwrap_or("0").to_owned();
        let said = match (seen.last_message.as_str(), seen.rounds) {
            _ if seen.tools.is_empty() => ScriptedReply::text("They read the notes."),
            ("again", 0) => ScriptedReply::call("read_result", &json!({"key": key})),
            ("again", 1) => {
                ScriptedReply::call("read_result", &json!({"key": format!("{key}:1000")}))
            }
            ("again", 2) => ScriptedReply::call("read_result", &json!({"key": format!("{key}0")})),
            (_, 0) => ScriptedReply::call("read_file", &json!({"path": "notes.txt"})),
            (_, _) => ScriptedReply::text("Read."),
        };
        ScriptedReply { read: Some(body.len() / 4), ..said }
    })
}

/// What was shortened is read again by its key, whole or from a line on, and by no key that was guessed; and stays shortened in the requests that follow.
pub async fn a_shortened_result_is_read_again_by_its_key(house: House) {
    let lines: String = (1..80).map(|line| format!("line {line}: in the garden\n")).collect();
    fs::write(house.file("notes.txt"), &lines).expect("a file");
    let given = |at: usize| contents(&last_messages(&house), "tool").into_iter().rev().nth(at);
    for turn in 0..12 {
        house.does(&talk(), &format!("turn {turn}")).await;
    }
    house.does(&talk(), "again").await;
    let whole = format!("[from outside]\n{lines}");
    assert_eq!(given(2).as_deref(), Some(whole.as_str()));
    let tail = given(1).expect("a result");
    assert_eq!(tail, format!("[from outside]\n{}", &lines[1_000..]));
    let guessed = given(0).expect("a result");
    assert!(guessed.contains("no result of this session has the key"), "{guessed}");
    let requests = house.model.requests();
    let short = |request: &Value| request.to_string().matches("bytes in all; read_result ").count();
    let counts: Vec<_> = requests.iter().map(short).collect();
    let moved = counts.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(moved >= 1 && moved < requests.len() / 3, "the border moves seldom: {counts:?}");
}
