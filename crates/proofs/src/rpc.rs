//! Generated and broken JSON-RPC against the MCP server, both over HTTP as it is routed and over a stream as a shim reads
//! it: no crash, no hang, and nothing that only a person may decide.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::ensure;
use fastrand::Rng;
use planwright_domain::identity::SessionKey;
use planwright_testkit::people::{owners_key, person};
use planwright_testkit::{
    scripted_model::worker::worker,
    served::{Served, response_to},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::on_threads;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How many panics there were, in whatever thread.
static PANICS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn prove(seed: u64, cpu_seconds: u64) -> anyhow::Result<bool> {
    on_threads(2, all(seed, cpu_seconds))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, cpu_seconds: u64) -> anyhow::Result<bool> {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(info);
    }));
    let begun = Instant::now();
    let served = Served::with(worker(300, 1), |settings| planwright_surfaces::http::HttpSettings {
        requests_per_second: u32::MAX,
        ..settings
    })
    .await;
    let wish = json!({"root": "/rpc", "plan": "document"});
    let (status, place) =
        response_to(served.request(Method::POST, "/api/agents").json(&wish)).await;
    ensure!(status == 201, "{place}");
    let token = place["token"].as_str().unwrap_or_default().to_owned();
    let session = owners_key(place["sessionId"].as_str().unwrap_or_default())?;
    let mut rng = Rng::with_seed(seed);
    let (mut sent, mut hangs, mut refused, mut answered) = (0_u64, 0_u64, 0_u64, 0_u64);
    while cpu() < cpu_seconds {
        let bodies: Vec<_> = (0..32).map(|_| body(&mut rng)).collect();
        let posted = bodies.iter().map(|(bytes, version)| {
            let request = served
                .bare(Method::POST, "/mcp")
                .bearer_auth(&token)
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", *version)
                .header("mcp-method", method_of(bytes))
                .body(bytes.clone());
            timeout(ANSWER_MAX, answer_to(request))
        });
        for (at, got) in futures_util::future::join_all(posted).await.into_iter().enumerate() {
            sent += 1;
            let what = || String::from_utf8_lossy(&bodies[at].0).into_owned();
            match got {
                Err(_) | Ok(None) => {
                    hangs += 1;
                    println!("  hangs or breaks: {:?}", what());
                }
                Ok(Some((200, _))) => answered += 1,
                Ok(Some((500.., text))) => anyhow::bail!("{text}: {:?}", what()),
                Ok(Some(_)) => refused += 1,
            }
        }
        if rng.u32(0..40) == 0 {
            streamed(&served, &mut rng).await?;
        }
        if sent % 640 == 0 {
            undecided(&served, &session, &token).await?;
        }
    }
    let panics = PANICS.load(Ordering::SeqCst);
    let fine = panics == 0 && hangs == 0;
    println!("  {answered} answered, {refused} refused in words");
    println!(
        "rpc: {sent} requests, {} CPU seconds in {} s: {panics} crashes, {hangs} hangs, 0 decided (target 0) {}",
        cpu(),
        begun.elapsed().as_secs(),
        if fine { "ok" } else { "short" }
    );
    Ok(fine)
}

/// The status and the body, if any came.
async fn answer_to(request: reqwest::RequestBuilder) -> Option<(u16, String)> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    Some((status, response.text().await.ok()?))
}

/// Whatever was sent: it still answers, and nobody decided.
async fn undecided(served: &Served, session: &SessionKey, token: &str) -> anyhow::Result<()> {
    let state = served.house.runtime.queries.session(session).await?;
    let approved = state.plan().is_some_and(|plan| plan.status.approval().is_some());
    ensure!(!approved, "something that was sent approved the plan");
    let request = served
        .bare(Method::POST, "/mcp")
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .json(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}));
    let (status, listed) = response_to(request).await;
    ensure!(status == 200 && listed["id"] == 7, "{status} {listed}");
    Ok(())
}

/// The method that a header says, where it can be read.
fn method_of(bytes: &[u8]) -> String {
    let message: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or("tools/list");
    method.chars().filter(char::is_ascii_graphic).collect()
}

/// How many seconds this process has computed.
fn cpu() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0)
}

/// Lines as a shim would get them: what is no message must not end the stream, and what is must be answered.
async fn streamed(served: &Served, rng: &mut Rng) -> anyhow::Result<()> {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let planner = planwright_surfaces::mcp::Planner::new(
        served.house.runtime.commands.clone(),
        served.house.runtime.queries.clone(),
        planwright_runtime::commands::agents::Seat {
            identity: owners_key("mcp:rpc-stream-01")?,
            person: person("owner", "mcp", planwright_domain::actor::Standing::Speaks),
            agent: "rpc".into(),
            project: None,
            plan: Some(planwright_domain::plan::Strategy::Document),
            is_reader: false,
            always: rng.bool(),
        },
        planwright_domain::id::GrantId(uuid::Uuid::from_u128(7)),
        served.url.clone(),
    );
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(planwright_surfaces::mcp::over(planner, theirs));
    let (read, mut write) = tokio::io::split(ours);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "rpc", "version": "1"}}});
    write.write_all(format!("{hello}\n").as_bytes()).await?;
    let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    write.write_all(format!("{done}\n").as_bytes()).await?;
    for _ in 0..20 {
        let mut line = body(rng).0;
        line.retain(|byte| *byte != b'\n');
        line.push(b'\n');
        write.write_all(&line).await?;
    }
    let last = json!({"jsonrpc": "2.0", "id": "the last", "method": "tools/list"});
    write.write_all(format!("{last}\n").as_bytes()).await?;
    let mut lines = tokio::io::BufReader::new(read).lines();
    let answered = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == "the last" {
                return true;
            }
        }
        false
    };
    let answered = timeout(ANSWER_MAX, answered).await.unwrap_or(false);
    ensure!(answered, "the stream ended or hung over what was written");
    drop((lines, write));
    timeout(ANSWER_MAX, serving).await??;
    Ok(())
}

/// The bytes of a request, and the version in which they are said to be.
fn body(rng: &mut Rng) -> (Vec<u8>, &'static str) {
    let version = ["2025-11-25", "2026-07-28", "2025-06-18", "2024-11-05"][rng.usize(0..4)];
    let methods = [
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/list",
        "initialize",
        "ping",
        "server/discover",
        "resources/list",
        "resources/read",
        "prompts/get",
        "prompts/list",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/unknown",
        "tasks/get",
        "plan/approve",
        "notifications/cancelled",
        "",
    ];
    let mut message = json!({"jsonrpc": "2.0", "id": any_id(rng), "method": methods[rng.usize(0..methods.len())],
        "params": params(rng)});
    let newest = version == "2026-07-28";
    if rng.u32(0..if newest { 8 } else { 2 }) > 0 {
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "rpc", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
            "planwright/call": any(rng, 1), "planwright/agent": any(rng, 1)});
    }
    match rng.u32(0..40) {
        0 => message = any(rng, 4),
        1 => message = json!([message, any(rng, 2)]),
        2 => {
            if let Some(fields) = message.as_object_mut() {
                let names: Vec<_> = fields.keys().cloned().collect();
                fields.remove(&names[rng.usize(0..names.len())]);
            }
        }
        3 => message["params"] = any(rng, 3),
        4 => message["jsonrpc"] = any(rng, 0),
        _ => {}
    }
    let mut bytes = message.to_string().into_bytes();
    if rng.u32(0..8) == 0 {
        for _ in 0..rng.usize(1..6) {
            if bytes.is_empty() {
                break;
            }
            let at = rng.usize(0..bytes.len());
            match rng.u32(0..4) {
                0 => bytes[at] = rng.u8(..),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, rng.u8(..)),
                _ => {
                    bytes.remove(at);
                }
            }
        }
    }
    (bytes, version)
}

fn params(rng: &mut Rng) -> Value {
    let tools = [
        "plan_get",
        "plan_set_content",
        "plan_ask",
        "plan_report",
        "plan_approve",
        "plan_submit",
        "plan_create",
        "plan_add_step",
        "memory_save",
        "memory_search",
        "memory_forget",
        "init_plan",
        "write_plan",
        "update_plan",
        "read_plan",
        "export_plan",
        "task_report",
        "write_file",
        "run_command",
        "",
    ];
    let arguments = match rng.u32(0..6) {
        0 => json!({"plan_markdown": words(rng), "title": words(rng)}),
        1 => json!({"status": "done", "summary": words(rng), "step": rng.i64(-3..9)}),
        2 => {
            // Waiting is tried, and waiting as long as it may, but not often: it is computing that counts here.
            let long = match rng.u32(0..2_000) {
                0 => json!(u64::MAX),
                1..20 => json!(1),
                _ => json!(0),
            };
            let wait = [json!("1"), json!(-1), long, Value::Null][rng.usize(0..4)].clone();
            json!({"wait_seconds": wait})
        }
        3 => {
            json!({"plan_markdown": words(rng), "approve": true, "digest": words(rng), "standing": "decides"})
        }
        4 => {
            json!({"text": words(rng), "which": "task_plan", "content": words(rng), "section": words(rng)})
        }
        _ => any(rng, 3),
    };
    match rng.u32(0..12) {
        0 => json!({"uri": format!("planwright://plan/revisions/{}", words(rng))}),
        1 => {
            let name = ["plan", "revise", "execute", "x"][rng.usize(0..4)];
            json!({"name": name, "arguments": any(rng, 2)})
        }
        2 => {
            json!({"protocolVersion": words(rng), "capabilities": any(rng, 2), "clientInfo": any(rng, 1)})
        }
        _ => json!({"name": tools[rng.usize(0..tools.len())], "arguments": arguments}),
    }
}

fn any_id(rng: &mut Rng) -> Value {
    match rng.u32(0..40) {
        0 => Value::Null,
        1 => words(rng).into(),
        2 => any(rng, 1),
        _ => rng.u32(..).into(),
    }
}

/// Any value, so deep at most.
fn any(rng: &mut Rng, depth: u32) -> Value {
    match rng.u32(0..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i64(..).into(),
        3 => rng.f64().into(),
        4 | 5 => words(rng).into(),
        6 => (0..rng.usize(0..4)).map(|_| any(rng, depth - 1)).collect::<Vec<_>>().into(),
        _ => {
            let fields = (0..rng.usize(0..4)).map(|_| (words(rng), any(rng, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

fn words(rng: &mut Rng) -> String {
    let pieces = [
        "plan",
        "1. One\n2. Two\n",
        "# Plan\n\n",
        "\u{0}",
        "\u{202e}",
        "é",
        "📷",
        "\"",
        "\\",
        "{}",
        "../",
        "%00",
        "---\ntools: Bash\n---\n",
        "- [ ] x\n",
        "```\n",
        "2026-07-28",
        "-1",
        "9999999999999999999",
        " ",
        "approve",
    ];
    let many = if rng.u32(0..200) == 0 { 5_000 } else { rng.usize(0..6) };
    (0..many).map(|_| pieces[rng.usize(0..pieces.len())]).collect()
}
