//! Three nodes as real processes: what a person at one of them sees of what the others do.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use planwright_domain::{id::Seq, session::SessionEvent, turn::event::TurnEvent};
use planwright_outbound::journal_postgres::PostgresJournal;
use planwright_runtime::ports::journal::{Journal as _, Recorded};
use planwright_testkit::{
    cluster::{
        Cluster, Shape,
        load::{Load, Seen},
    },
    kill::verdict::judge,
    people::key_in,
    scripted_model::{Conduct, ScriptedReply, SeenRequest, worker::worker},
    servers::faults::Fault,
    streams::{Wire, listen_at},
};
use rustix::process::Signal;
use serde_json::json;

fn nodes(count: usize) -> Shape {
    Shape { nodes: count, ..Shape::default() }
}

fn at_rest(status: &serde_json::Value) -> bool {
    status["resting"] == true
}

/// A model that plans, and takes a minute for anything that begins with "slowly".
fn slow_talker() -> Conduct {
    let quick = worker(300, 1);
    Arc::new(move |told: &SeenRequest| {
        let said = quick(told);
        let is_slow = told.last_message.starts_with("slowly");
        if is_slow {
            ScriptedReply { thinks: Duration::from_secs(60), ..ScriptedReply::text("at last") }
        } else {
            said
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_and_an_approval_are_answered_at_once_while_another_node_asks_the_model() {
    let cluster = Cluster::start(slow_talker(), nodes(2)).await.unwrap();
    // Everything runs on the second node; the person is at the first.
    cluster.balancer.retarget(vec![cluster.nodes[1].from_engine.address]);
    let (mut stops, mut approvals, mut aborts) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..11 {
        let session = format!("session-{round}");
        cluster.says(0, &session, "/plan on").await.unwrap();
        cluster.says(0, &session, "plan it").await.unwrap();
        let ready = |status: &serde_json::Value| status["waiting"] == "decision" && at_rest(status);
        cluster.until(0, &session, ready).await.unwrap();
        cluster.says(0, &session, "/plan show").await.unwrap();
        cluster.says(0, &session, "slowly, just talk").await.unwrap();
        let said = Instant::now();
        while cluster.model.thinking() == 0 {
            assert!(said.elapsed() < Duration::from_secs(30), "the model is not asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let asked = Instant::now();
        let approved = cluster.says(0, &session, "/plan approve hold").await.unwrap();
        approvals.push(asked.elapsed());
        assert!(approved["accepted"].is_object(), "{approved}");
        let asked = Instant::now();
        let stopped = cluster.says(0, &session, "/stop").await.unwrap();
        stops.push(asked.elapsed());
        assert!(stopped["accepted"].is_object(), "{stopped}");
        while cluster.model.thinking() > 0 {
            assert!(asked.elapsed() < Duration::from_secs(5), "the call is not aborted");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        aborts.push(asked.elapsed());
    }
    for times in [&mut stops, &mut approvals, &mut aborts] {
        times.sort_unstable();
    }
    println!("stop {:?}, approve {:?}, aborted {:?} at most", stops[5], approvals[5], aborts[10]);
    assert!(stops[5] < Duration::from_millis(100), "{stops:?}");
    assert!(approvals[5] < Duration::from_millis(100), "{approvals:?}");
    assert!(aborts[10] < Duration::from_secs(1), "{aborts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_of_an_answer_cross_nodes_in_order_and_a_reader_whose_node_dies_misses_nothing() {
    let words: String = (0..60).map(|at| format!("word-{at} ")).collect();
    let said = words.clone();
    let model: Conduct = Arc::new(move |_: &SeenRequest| ScriptedReply {
        pace: Duration::from_millis(30),
        ..ScriptedReply::text(&said)
    });
    let mut cluster = Cluster::start(model, nodes(3)).await.unwrap();
    cluster.balancer.retarget(vec![cluster.nodes[1].from_engine.address]);
    let url = |cluster: &Cluster, at: usize| format!("http://127.0.0.1:{}", cluster.nodes[at].api);
    let mut here =
        listen_at(&url(&cluster, 0), &cluster.decider, Wire::ServerSent, "cli:session-0", 0)
            .await
            .unwrap();
    // The subscription stands when the first event has come through.
    cluster.says(0, "session-0", "/plan on").await.unwrap();
    cluster.says(0, "session-0", "tell me").await.unwrap();
    let (mut seen, mut text) = (Vec::new(), String::new());
    while text.len() < words.len() / 2 {
        let next = tokio::time::timeout(Duration::from_secs(10), here.next()).await;
        let frame = next.unwrap().unwrap();
        seen.extend(frame.seq);
        if frame.kind == "preview" {
            let payload = &frame.data;
            assert_eq!(payload["offset"].as_u64(), Some(text.len() as u64), "in order");
            text.push_str(payload["text"].as_str().unwrap());
        }
    }
    assert!(words.starts_with(&text), "{text:?}");
    cluster.kill(0);
    let last = seen.last().copied().unwrap_or(0);
    let mut there =
        listen_at(&url(&cluster, 2), &cluster.decider, Wire::WebSocket, "cli:session-0", last)
            .await
            .unwrap();
    let end = cluster.until(2, "session-0", at_rest).await.unwrap()["version"].as_u64();
    while seen.last().copied() != end {
        let next = tokio::time::timeout(Duration::from_secs(10), there.next()).await;
        seen.extend(next.unwrap().unwrap().seq);
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "every event once, in order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_no_turn_and_runs_none_twice() {
    const TURNS: usize = 200;
    let model: Conduct = Arc::new(|_: &SeenRequest| ScriptedReply {
        thinks: Duration::from_millis(1_500),
        ..ScriptedReply::text("done")
    });
    let mut cluster = Cluster::start(model, nodes(3)).await.unwrap();
    for at in 0..TURNS {
        cluster.says(at % 3, &Load::session(at), "do it").await.unwrap();
    }
    for at in 0..3 {
        cluster.stop(at).await.unwrap();
        cluster.launch(at);
        cluster.ready(at).await.unwrap();
    }
    for at in 0..TURNS {
        cluster.until(at % 3, &Load::session(at), at_rest).await.unwrap();
    }
    let wrong = cluster.postgres.psql(
        "SELECT stream, told FROM (SELECT stream, string_agg(kind, ' ' ORDER BY seq) AS told FROM events GROUP BY stream) AS all_told
         WHERE told <> 'session_opened message_queued turn_started model_call_started model_answered turn_finished'",
    );
    let told = cluster.restate.log(0);
    assert_eq!((wrong.as_str(), cluster.model.request_count()), ("", TURNS), "{told}");
}

/// Restate takes a connection for dead that is only slow, and calls another node, while the first one asks the model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_called_while_another_asks_the_model_waits_for_its_answer() {
    let model: Conduct = Arc::new(|_: &SeenRequest| ScriptedReply {
        thinks: Duration::from_secs(6),
        ..ScriptedReply::text("done")
    });
    let cluster = Cluster::start(model, nodes(2)).await.unwrap();
    let to = |at: usize| cluster.balancer.retarget(vec![cluster.nodes[at].from_engine.address]);
    to(0);
    cluster.says(0, "asked-once", "do it").await.unwrap();
    let said = Instant::now();
    while cluster.model.thinking() == 0 {
        assert!(said.elapsed() < Duration::from_secs(30), "the model is not asked");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    to(1);
    cluster.balancer.inflict(Fault::Cut);
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.balancer.inflict(Fault::None);
    cluster.until(0, "asked-once", at_rest).await.unwrap();
    let told = cluster.log(1);
    assert!(told.contains("another_node_acts"), "the second node was called, and waited: {told}");
    assert_eq!(cluster.model.request_count(), 1, "the model is asked once");
}

/// The balancer gives each call of the engine to whichever node is next: rounds that did not stay would be spread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rounds_of_a_turn_stay_on_the_node_that_began_it() {
    const ROUNDS: usize = 8;
    let model: Conduct = Arc::new(|told: &SeenRequest| match told.rounds {
        ROUNDS.. => ScriptedReply::text("looked through"),
        _ => ScriptedReply::call("list_files", &json!({"path": "."})),
    });
    let cluster = Cluster::start(model, nodes(3)).await.unwrap();
    let sessions: Vec<_> = (0..9).map(Load::session).collect();
    for (at, session) in sessions.iter().enumerate() {
        cluster.says(at % 3, session, "look through it").await.unwrap();
    }
    for session in &sessions {
        cluster.until(0, session, at_rest).await.unwrap();
    }
    let journal = PostgresJournal::open(&cluster.postgres.address()).await.unwrap();
    for session in &sessions {
        let identity = key_in(&journal, &format!("cli:{session}")).await.unwrap();
        let events = journal.events(&identity, Seq(0), usize::MAX).await.unwrap();
        let mut lives = Vec::new();
        for Recorded { event, .. } in &events {
            if let SessionEvent::Turn(
                TurnEvent::ModelCallStarted { bracket, .. }
                | TurnEvent::CallStarted { bracket, .. },
            ) = event
            {
                lives.push(bracket.incarnation);
            }
        }
        assert_eq!(lives.len(), 2 * ROUNDS + 1, "{session}");
        assert!(lives.iter().all(|life| *life == lives[0]), "{session}: {lives:?}");
    }
}

/// Brings a plan to execution on the second of two nodes, which freezes at this point until it is told to
/// go on, and waits until the call is shown in doubt at the first; the call.
async fn frozen_at(point: &str) -> (Cluster, String) {
    let settings = "[effects]\ntool_seconds = 4\nstart_by_seconds = 2\n";
    let shape = Shape { nodes: 2, settings: settings.into(), ..Shape::default() };
    let mut cluster = Cluster::start(worker(300, 1), shape).await.unwrap();
    cluster.stop(1).await.unwrap();
    let freeze = ("PLANWRIGHT_FREEZEPOINT".into(), format!("{point}:1"));
    cluster.nodes[1].environment.push(freeze);
    cluster.launch(1);
    cluster.ready(1).await.unwrap();
    cluster.balancer.retarget(vec![cluster.nodes[1].from_engine.address]);
    cluster.says(0, "session-0", "/plan on").await.unwrap();
    cluster.says(0, "session-0", "plan it").await.unwrap();
    let ready = |status: &serde_json::Value| status["waiting"] == "decision" && at_rest(status);
    cluster.until(0, "session-0", ready).await.unwrap();
    cluster.says(0, "session-0", "/plan show").await.unwrap();
    cluster.says(0, "session-0", "/plan approve").await.unwrap();
    let both: Vec<_> = cluster.nodes.iter().map(|node| node.from_engine.address).collect();
    cluster.balancer.retarget(both);
    let doubted = |status: &serde_json::Value| {
        status["doubts"].as_array().is_some_and(|doubts| !doubts.is_empty())
    };
    let status = cluster.until(0, "session-0", doubted).await.unwrap();
    let call = status["doubts"][0]["call"].as_str().unwrap().to_owned();
    (cluster, call)
}

/// Goes on with a plan whose call was in doubt, and waits until it is done.
async fn settle(cluster: &Cluster, call: &str, verdict: &str) {
    let line = format!("/plan settle {call} {verdict}");
    let settled = cluster.says(0, "session-0", &line).await.unwrap();
    assert!(settled["accepted"].is_object(), "{settled}");
    cluster.says(0, "session-0", "/plan resume").await.unwrap();
    let done = |status: &serde_json::Value| status["plan_active"] == json!(false);
    cluster.until(0, "session-0", done).await.unwrap();
}

fn effects(cluster: &Cluster) -> usize {
    std::fs::read_to_string(cluster.ledger()).unwrap_or_default().lines().count()
}

/// Frozen between the recorded start of a call and the call itself, long enough for the others to give it
/// up; thawed, it must not act.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_frozen_past_its_time_abandons_what_it_had_begun() {
    let (cluster, call) = frozen_at("tool.after_start").await;
    assert_eq!(effects(&cluster), 0, "it was frozen too late");
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.signal(1, Signal::CONT);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(effects(&cluster), 0, "it acted after all");
    settle(&cluster, &call, "not").await;
    assert_eq!(effects(&cluster), 1);
}

/// Frozen behind the last look at the clock: the window that remains. It acts when it thaws, and nobody else has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_frozen_in_the_middle_of_a_call_ends_it_once_and_its_late_result_moves_nothing()
 {
    let (cluster, call) = frozen_at("tool.mid_act").await;
    assert_eq!(effects(&cluster), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = cluster.status(0, "session-0").await.unwrap();
    cluster.signal(1, Signal::CONT);
    let late = |status: &serde_json::Value| status["version"] != before["version"];
    let after = cluster.until(0, "session-0", late).await.unwrap();
    assert_eq!(
        (&after["turn_open"], &after["plan"]["status"]),
        (&before["turn_open"], &before["plan"]["status"]),
        "the late result is recorded and moves nothing"
    );
    if after["doubts"].as_array().is_some_and(|doubts| !doubts.is_empty()) {
        settle(&cluster, &call, "happened").await;
    } else {
        cluster.says(0, "session-0", "/plan resume").await.unwrap();
        let done = |status: &serde_json::Value| status["plan_active"] == json!(false);
        cluster.until(0, "session-0", done).await.unwrap();
    }
    let counts = planwright_testkit::ledger::read(&cluster.ledger()).unwrap();
    assert!(counts.values().all(|count| *count == 1), "nothing was done twice: {counts:?}");
}

/// Nodes that stop for seconds at a time, at any moment, under load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_frozen_at_any_moment_repeat_nothing_silently() {
    let settings = "[effects]\ntool_seconds = 3\nmodel_seconds = 3\nstart_by_seconds = 1\n";
    let shape = Shape { nodes: 2, settings: settings.into(), ..Shape::default() };
    let cluster = Cluster::start(worker(300, 3), shape).await.unwrap();
    let load = Load::on(&cluster);
    let mut people = load.begin(6, 7);
    for round in 0..4 {
        tokio::time::sleep(Duration::from_millis(700 + round * 150)).await;
        cluster.signal(0, Signal::STOP);
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        cluster.signal(0, Signal::CONT);
    }
    load.end();
    let mut all = Seen::default();
    while let Some(seen) = people.join_next().await {
        let seen = seen.unwrap();
        all.acknowledged.extend(seen.acknowledged);
        all.complaints.extend(seen.complaints);
    }
    let journal = PostgresJournal::open(&cluster.postgres.address()).await.unwrap();
    let sessions: Vec<_> = (0..6).map(Load::session).collect();
    let verdict = judge(&journal, &cluster.ledger(), &sessions, &all.acknowledged).await.unwrap();
    assert!(verdict.is_well() && all.complaints.is_empty(), "{verdict:?} {:?}", all.complaints);
    assert!(verdict.effects > 0);
}

/// Losing each component in turn, a person at the terminal is told what is the case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_lost_a_person_at_the_terminal_is_told_in_a_sentence() {
    let mut cluster = Cluster::start(worker(300, 1), nodes(1)).await.unwrap();
    let status = |cluster: &Cluster| cluster.terminal(0, &["status"]);
    let (code, words) = status(&cluster);
    assert!(code == Some(0) && words.contains("ready") && !words.contains('!'), "{words}");
    let (code, words) = cluster.terminal(0, &["chat", "just talk"]);
    assert!(code == Some(0) && words.contains("I have written"), "{words}");

    cluster.nats.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (code, words) = status(&cluster);
    assert!(code == Some(0) && words.contains("! live updates come late"), "{words}");
    let (code, words) = cluster.terminal(0, &["chat", "just talk"]);
    assert!(code == Some(0) && words.contains("I have written"), "it works all the same: {words}");
    cluster.nats.up();

    cluster.restate.kill(0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (code, words) = status(&cluster);
    assert!(
        code == Some(0) && words.contains("! what you send is kept, and nothing runs"),
        "{words}"
    );
    let said = cluster.says(0, "session-9", "just talk").await.unwrap();
    assert!(said["accepted"].is_object(), "it is kept: {said}");
    cluster.restate.up(0);
    let talked = |status: &serde_json::Value| at_rest(status) && status["version"] == 6;
    cluster.until(0, "session-9", talked).await.unwrap();

    cluster.postgres.kill();
    let (code, words) = status(&cluster);
    assert!(code == Some(1) && words.contains("the journal cannot answer now"), "{words}");
    let (code, words) = cluster.terminal(0, &["chat", "just talk"]);
    assert!(code == Some(1) && words.contains("cannot be looked up now"), "{words}");
    cluster.postgres.up();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (code, words) = cluster.terminal(0, &["chat", "just talk"]);
    assert!(code == Some(0) && words.contains("I have written"), "{words}");

    cluster.kill(0);
    let (code, words) = status(&cluster);
    assert!(code == Some(1) && words.contains("start this node with: planwright node"), "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_wants_signed_calls_refuses_an_engine_that_does_not_sign() {
    let key = "publickeyv1_w7YHemBctH5Ck2nQRQ47iBBqhNHy4FV7t2Usbye2A6f";
    let settings = format!("[cluster]\nidentity_key = \"{key}\"\n");
    let shape = Shape { nodes: 1, settings, ..Shape::default() };
    let refused = Cluster::start(worker(300, 1), shape).await.err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|words| words.contains("401")), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_moves_the_nodes_to_another_address_and_takes_the_old_one_away() {
    let cluster = Cluster::start(worker(300, 1), nodes(1)).await.unwrap();
    let old = cluster.tell("cluster", &["deployments"], "").unwrap();
    let old = old.split_whitespace().next().unwrap().to_owned();
    let told = cluster.tell("cluster", &["register", &cluster.endpoint(0)], "").unwrap();
    assert!(told.contains("the engine now calls"), "{told}");
    assert_eq!(cluster.tell("cluster", &["deployments"], "").unwrap().lines().count(), 2);
    let told = cluster.tell("cluster", &["drain", &old], "").unwrap();
    assert!(told.contains("is taken away"), "{told}");
    assert_eq!(cluster.tell("cluster", &["deployments"], "").unwrap().lines().count(), 1);
    cluster.says(0, "session-0", "just talk").await.unwrap();
    cluster
        .until(0, "session-0", |status| at_rest(status) && status["version"] == 6)
        .await
        .unwrap();
    let told = cluster.tell("cluster", &["status"], "").unwrap();
    assert!(told.contains("1 nodes;") && told.contains("0 sessions overdue, 0 parked"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_terminal_of_a_dead_node_works_at_another_node_or_not_at_all() {
    let mut cluster = Cluster::start(worker(300, 1), nodes(2)).await.unwrap();
    let (code, text) = cluster.terminal(1, &["chat", "hello"]);
    assert_eq!(code, Some(0), "{text}");
    let (log, database) = (cluster.data(1).join("log.jsonl"), cluster.postgres.address());
    let words = ["audit", "export", log.to_str().unwrap(), "--database", &database];
    let (code, text) = cluster.terminal(1, &words);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = cluster.terminal(1, &["audit", "export", "nowhere.jsonl"]);
    assert_eq!((code, text.contains("name the cluster's database")), (Some(1), true), "{text}");
    cluster.kill(1);
    let commands: [&[&str]; 3] = [&["chat", "decide"], &["session", "list"], &["plan", "on"]];
    for words in commands {
        let (code, text) = cluster.terminal(1, words);
        assert_eq!(code, Some(1), "{words:?}: {text}");
        assert!(text.contains("belongs to a cluster node that is not running"), "{text}");
    }
    assert!(!cluster.data(1).join("journal.sqlite").exists());
    let other = format!("http://127.0.0.1:{}", cluster.nodes[0].api);
    let (code, text) = cluster.terminal(1, &["chat", "hello again", "--server", &other]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = cluster.terminal(1, &["session", "list", "--server", &other]);
    assert_eq!((code, text.contains("● cli:")), (Some(0), true), "{text}");
}
