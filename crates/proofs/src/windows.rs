//! Windows of foreign agents that come and go on one project, and a server that is killed in the middle of every tool
//! call. Real processes: each window is a shim on standard input and output, the server is `planwright up`.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use fastrand::Rng;
use planwright_testkit::scratch;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};

use crate::on_threads;

/// How long a call may take, a restart of the server included.
const CALL_MAX: Duration = Duration::from_secs(40);
const PASSPHRASE: &str = "correct horse battery";
/// Where the server is killed.
const POINTS: [&str; 11] = [
    "agent.before_call",
    "agent.before_dispatch",
    "dispatch.before_append",
    "journal.before_begin",
    "journal.after_events",
    "journal.before_commit",
    "journal.after_commit",
    "journal.before_acknowledge",
    "dispatch.after_append",
    "dispatch.before_wake",
    "agent.after_dispatch",
];

pub(crate) fn prove(seed: u64, quick: bool) -> anyhow::Result<bool> {
    on_threads(2, all(seed, quick))
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
async fn all(seed: u64, quick: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let points: Vec<_> = POINTS
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !quick || at % 3 == 0)
        .map(|(_, point)| point)
        .collect();
    let (calls, kills) = Bench::new(seed)?.killed_in_every_call(&points).await?;
    println!(
        "  {calls} calls, {kills} kills at {} points: each answered once, and done once",
        points.len()
    );
    let moves = if quick { 120 } else { 1_500 };
    let came = Bench::new(seed)?.windows(moves).await?;
    println!(
        "  {moves} moves: {} windows opened, {} closed, {} killed, the server killed {} times, {} sessions, {} taken up, 0 crossed",
        came.opened, came.closed, came.killed, came.servers, came.sessions, came.taken_up
    );
    let enough = kills * 2 > calls && came.taken_up > 0 && came.servers > 0;
    println!(
        "windows: {calls} calls with {kills} kills, {} windows over {} sessions, {} s: 0 answered twice or not at all, 0 done twice, 0 plans crossed (target 0) {}",
        came.opened,
        came.sessions,
        begun.elapsed().as_secs(),
        if enough { "ok" } else { "short" }
    );
    Ok(enough)
}

struct Bench {
    home: tempfile::TempDir,
    subject: PathBuf,
    rng: Rng,
    server: Option<Child>,
    client: reqwest::Client,
    port: u16,
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.start_kill();
        }
    }
}

#[derive(Default)]
struct Came {
    opened: u32,
    closed: u32,
    killed: u32,
    servers: u32,
    sessions: usize,
    taken_up: u32,
}

impl Bench {
    fn new(seed: u64) -> anyhow::Result<Self> {
        let home = scratch::directory("windows")?;
        let subject = std::env::current_exe()?.with_file_name("subject");
        ensure!(subject.exists(), "build the package planwright-testkit first");
        for name in ["data", "project"] {
            fs::create_dir(home.path().join(name))?;
        }
        let data = home.path().join("data");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        // A port that is free now: the server comes back where it was.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = format!(
            "[server]\nbind = \"127.0.0.1:{port}\"\nagent_grace_seconds = 1\nlogins_per_minute = 1000\n[notebook]\nenabled = true\n"
        );
        fs::write(data.join("config.toml"), config)?;
        fs::set_permissions(data.join("config.toml"), fs::Permissions::from_mode(0o600))?;
        let client = reqwest::Client::builder().timeout(Duration::from_secs(8)).build()?;
        Ok(Self { home, subject, rng: Rng::with_seed(seed), server: None, client, port })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.subject);
        command
            .arg("--data")
            .arg(self.home.path().join("data"))
            .arg("--workspace")
            .arg(self.home.path().join("workspace"))
            .args(words)
            .current_dir(self.home.path().join("project"))
            .env_remove("PLANWRIGHT_FAILPOINT")
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts the server, to die at this point.
    async fn up(&mut self, point: Option<&str>) -> anyhow::Result<()> {
        let mut command = self.command(&["up", "--json", "--passphrase-stdin"]);
        if let Some(point) = point {
            command.env("PLANWRIGHT_FAILPOINT", format!("{point}:1"));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(format!("{PASSPHRASE}\n").as_bytes()).await;
        }
        self.server = Some(child);
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let well = self.client.get(format!("{}/health", self.url())).send().await;
            if well.is_ok_and(|well| well.status().is_success()) {
                return Ok(());
            }
            // It may have died at its point already, in something of its own.
            let gone =
                self.server.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
            if gone {
                return Ok(());
            }
            ensure!(Instant::now() < until, "the server does not come up");
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn down(&mut self) -> anyhow::Result<()> {
        if let Some(mut server) = self.server.take() {
            let _ = server.start_kill();
            server.wait().await?;
        }
        Ok(())
    }

    async fn open(&self, words: &[&str]) -> anyhow::Result<Window> {
        let mut all = vec!["mcp", "--plan", "document", "--no-start"];
        all.extend(words);
        let mut child = self.command(&all).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut window = Window { child, input: Some(input), lines, last: 0, answered: Vec::new() };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "proof", "version": "1"}});
        window.ask("initialize", hello).await?;
        window.tell("notifications/initialized").await?;
        Ok(window)
    }

    /// A person approves what waits in this session.
    async fn approve(&self, session: &str) -> anyhow::Result<()> {
        let wish = json!({"name": "proof", "passphrase": PASSPHRASE});
        let given =
            self.client.post(format!("{}/api/tokens", self.url())).json(&wish).send().await?;
        let given: Value = given.json().await?;
        let token = given["token"].as_str().context("no token")?;
        let path = format!("{}/api/sessions/{session}", self.url());
        let state: Value = self.client.get(&path).bearer_auth(token).send().await?.json().await?;
        let digest = state["plan"]["digest"].as_str().context("nothing waits")?.to_owned();
        for (what, body) in [("shown", None), ("approve", Some(json!({})))] {
            let mut request = self
                .client
                .post(format!("{path}/plan/{what}"))
                .bearer_auth(token)
                .header("if-match", format!("\"{digest}\""));
            if let Some(body) = body {
                request = request.json(&body);
            }
            let answer = request.send().await?;
            ensure!(answer.status().is_success(), "{what}: {}", answer.text().await?);
        }
        Ok(())
    }

    async fn events(&self, session: &str) -> anyhow::Result<Vec<Value>> {
        let token = fs::read_to_string(self.home.path().join("data/token"))?;
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event["seq"].as_u64().unwrap_or(0));
            let path = format!("{}/api/sessions/{session}/events?after={after}", self.url());
            let page = self.client.get(path).bearer_auth(token.trim()).send().await?;
            let page: Vec<Value> = page.json().await?;
            if page.is_empty() {
                return Ok(events);
            }
            events.extend(page);
        }
    }

    /// One window, every tool, the server killed at each point of each call.
    async fn killed_in_every_call(&mut self, points: &[&str]) -> anyhow::Result<(u32, u32)> {
        self.up(None).await?;
        let mut window = self.open(&[]).await?;
        let (mut calls, mut kills) = (0_u32, 0_u32);
        let mut session = String::new();
        let mut saved = 0;
        for (round, point) in points.iter().enumerate() {
            let mut at = 0;
            for (tool, arguments) in story(round, points.len()) {
                if tool == "approve" {
                    self.approve(&session).await?;
                    continue;
                }
                // The last round reports, at every point in turn.
                let point = if tool == "plan_report" { points[at % points.len()] } else { point };
                at += usize::from(tool == "plan_report");
                self.down().await?;
                self.up(Some(point)).await?;
                calls += 1;
                let (told, died) = self.while_it_dies(&mut window, tool, &arguments).await?;
                kills += u32::from(died);
                let text =
                    told["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                ensure!(told["result"]["isError"] != json!(true), "{tool} at {point}: {told}");
                match tool {
                    "plan_set_content" => {
                        saved += 1;
                        ensure!(
                            text.starts_with(&format!("Saved as revision {saved} ")),
                            "{point}: {text}"
                        );
                        session = session_in(&text).context("no link")?;
                    }
                    "read_plan" => {
                        ensure!(text.contains(&format!("\n{round}\n")), "{point}: {text}")
                    }
                    "plan_report" => ensure!(
                        text.starts_with("Step ") && text.contains("is recorded"),
                        "{point}: {text}"
                    ),
                    _ => ensure!(!text.is_empty(), "{tool} at {point}: {told}"),
                }
            }
        }
        let events = self.events(&session).await?;
        for (kind, expected) in [
            ("revision_added", saved),
            ("memory_saved", points.len()),
            ("step_ended", points.len()),
            ("agent_called", calls as usize),
        ] {
            let found = events.iter().filter(|event| event["type"] == kind).count();
            ensure!(found == expected, "{found} {kind} where {expected} were called for");
        }
        window.answered.sort_unstable();
        let all = window.answered.len();
        window.answered.dedup();
        ensure!(all == window.answered.len(), "something was answered twice");
        self.down().await?;
        Ok((calls, kills))
    }

    /// Makes a call, and starts the server again when it has died of it.
    async fn while_it_dies(
        &mut self,
        window: &mut Window,
        tool: &str,
        arguments: &Value,
    ) -> anyhow::Result<(Value, bool)> {
        let until = Instant::now() + CALL_MAX;
        let id = window.send("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let mut died = false;
        loop {
            if let Ok(told) = timeout(Duration::from_millis(50), window.answer(id)).await {
                return Ok((told?, died));
            }
            let gone =
                self.server.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
            if gone {
                died = true;
                self.up(None).await?;
            }
            ensure!(Instant::now() < until, "{tool} was not answered");
        }
    }

    /// Windows of one project that open, write, read, close and are killed, while the server is, too.
    async fn windows(&mut self, moves: u32) -> anyhow::Result<Came> {
        self.up(None).await?;
        let mut came = Came::default();
        let mut open: Vec<(Window, Option<String>)> = Vec::new();
        // What was written last in each session.
        let mut written: BTreeMap<String, String> = BTreeMap::new();
        // The one session that nobody is at is taken up. Later there are mostly several, and then none is.
        let mut first = self.open(&[]).await?;
        let text = "# The first window\n\n1. Left for another.\n".to_owned();
        let told = first.call("plan_set_content", json!({"plan_markdown": text})).await?;
        written.insert(session_in(&told).context("no link")?, text);
        first.input = None;
        timeout(Duration::from_secs(10), first.child.wait()).await??;
        sleep(Duration::from_millis(300)).await;
        open.push((self.open(&[]).await?, None));
        (came.opened, came.closed) = (2, 1);
        self.read(&mut open, 0, &mut written, &mut came).await?;
        ensure!(came.taken_up == 1, "the session that was left was not taken up");
        for number in 0..moves {
            // The server is killed at least once.
            let roll = if number == moves / 2 { 40 } else { self.rng.u32(0..100) };
            match roll {
                0..25 if open.len() < 4 => {
                    open.push((self.open(&[]).await?, None));
                    came.opened += 1;
                }
                25..40 if !open.is_empty() => {
                    let at = self.rng.usize(0..open.len());
                    let (mut window, _) = open.swap_remove(at);
                    if self.rng.bool() {
                        window.child.start_kill()?;
                        came.killed += 1;
                    } else {
                        window.input = None;
                        came.closed += 1;
                    }
                    timeout(Duration::from_secs(10), window.child.wait()).await??;
                    // It is seen to be gone, unless the server has just come back.
                    sleep(Duration::from_millis(60)).await;
                }
                40..44 => {
                    self.down().await?;
                    self.up(None).await?;
                    came.servers += 1;
                    if self.rng.bool() {
                        // Those who were there before come back, before another takes their place.
                        sleep(Duration::from_millis(1_300)).await;
                    }
                }
                44..80 if !open.is_empty() => {
                    let at = self.rng.usize(0..open.len());
                    let text = format!("# Window {number}\n\n1. Only here: {number}.\n");
                    let told =
                        open[at].0.call("plan_set_content", json!({"plan_markdown": text})).await?;
                    ensure!(told.starts_with("Saved as revision"), "{told}");
                    let session = session_in(&told).context("no link")?;
                    self.is_alone(&mut open, at, &session, &mut written, &mut came)?;
                    written.insert(session, text);
                }
                _ if !open.is_empty() => {
                    let at = self.rng.usize(0..open.len());
                    self.read(&mut open, at, &mut written, &mut came).await?;
                }
                _ => {
                    open.push((self.open(&[]).await?, None));
                    came.opened += 1;
                }
            }
        }
        came.sessions = written.len();
        self.down().await?;
        Ok(came)
    }

    /// A window reads what was written last in its session, and nothing else.
    async fn read(
        &self,
        open: &mut [(Window, Option<String>)],
        at: usize,
        written: &mut BTreeMap<String, String>,
        came: &mut Came,
    ) -> anyhow::Result<()> {
        let told = open[at].0.call("plan_get", json!({})).await?;
        match open[at].1.clone() {
            Some(session) => {
                let last = written.get(&session).context("read before written")?;
                ensure!(told.ends_with(last.as_str()), "crossed: {told} is not {last}");
            }
            // Not known yet: it is empty, or it is what was left in a session without a window.
            None if told.starts_with("The plan is empty") => {}
            None => {
                let found = written.iter().find(|(_, text)| told.ends_with(text.as_str()));
                let session = found.context("crossed: nobody wrote it")?.0.clone();
                self.is_alone(open, at, &session, written, came)?;
            }
        }
        Ok(())
    }

    /// No other window that is open works in this session.
    fn is_alone(
        &self,
        open: &mut [(Window, Option<String>)],
        at: usize,
        session: &str,
        written: &mut BTreeMap<String, String>,
        came: &mut Came,
    ) -> anyhow::Result<()> {
        let others = open.iter().enumerate().filter(|(other, _)| *other != at);
        if others.into_iter().any(|(_, (_, there))| there.as_deref() == Some(session)) {
            bail!("crossed: two windows work in {session}");
        }
        match &open[at].1 {
            Some(before) => ensure!(before == session, "crossed: {before} became {session}"),
            None => {
                came.taken_up += u32::from(written.contains_key(session));
                open[at].1 = Some(session.to_owned());
            }
        }
        Ok(())
    }
}

/// A window: a shim, and what it answered.
struct Window {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    last: u64,
    answered: Vec<u64>,
}

impl Window {
    async fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("it is closed")?;
        Ok(input.write_all(format!("{message}\n").as_bytes()).await?)
    }

    async fn tell(&mut self, method: &str) -> anyhow::Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "method": method})).await
    }

    async fn send(&mut self, method: &str, params: Value) -> anyhow::Result<u64> {
        self.last += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.write(&message).await?;
        Ok(self.last)
    }

    async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let line = self.lines.next_line().await?.context("the window is gone")?;
            let message: Value = serde_json::from_str(&line)?;
            let Some(answered) = message["id"].as_u64() else { continue };
            self.answered.push(answered);
            if answered == id {
                return Ok(message);
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.send(method, params).await?;
        timeout(CALL_MAX, self.answer(id)).await?
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        let told = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let text = told["result"]["content"][0]["text"].as_str();
        Ok(text.with_context(|| format!("{tool}: {told}"))?.to_owned())
    }
}

/// The session that a link leads to.
fn session_in(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once("/s/")?;
    Some(rest.strip_suffix("/plan")?.to_owned())
}

/// The calls of one round; the last round is approved, and reports every step.
fn story(round: usize, rounds: usize) -> Vec<(&'static str, Value)> {
    let steps: String = (1..=40).map(|at| format!("{at}. Step {at}.\n")).collect();
    let findings = format!("# Findings\n\n{round}\n");
    let mut story = vec![
        ("plan_set_content", json!({"plan_markdown": format!("# Plan {round}\n\n{steps}")})),
        ("plan_get", json!({})),
        ("plan_ask", json!({"wait_seconds": 1})),
        ("memory_save", json!({"text": format!("remember {round}")})),
        ("memory_search", json!({"query": "remember"})),
        ("write_plan", json!({"which": "findings", "content": findings})),
        ("read_plan", json!({"which": "findings"})),
    ];
    if round + 1 == rounds {
        story.push(("approve", json!({})));
        story.extend((1..=rounds).map(|step| {
            let summary = format!("did {step}");
            ("plan_report", json!({"status": "done", "summary": summary, "step": step}))
        }));
    }
    story
}
