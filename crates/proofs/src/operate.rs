//! A cluster as `docs/DEPLOYMENT.md` says: its commands run as they are written there, in a network of their own, behind the
//! balancer that is shipped; then each part is stopped in turn, and the nodes are restarted one after the other under load.
//!
//! Proven: a stopped part is told of by `cluster status`, `doctor` and `/ready`, each within five seconds, and so is its return;
//! a model that does not answer counts as a part; no request fails while the nodes restart.

#![expect(clippy::print_stdout, reason = "a proof prints its figures")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{BufReader, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use planwright_testkit::{
    scratch,
    scripted_model::{Conduct, ScriptedModel, ScriptedReply},
    servers::{
        Postgres,
        faults::{Fault, Proxy},
        loopback,
    },
};
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

/// How long it may take until a stopped part is told of, and until its return is.
const TOLD_MAX: Duration = Duration::from_secs(5);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(40);
/// What the guide has its nodes listen at, in front of them, and behind.
const BALANCER: u16 = 7_340;
const NODES: [u16; 3] = [7_341, 7_342, 7_343];
const PASSPHRASE: &str = "the passphrase of the guide";

/// What is stopped in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stopped {
    Bus,
    Engine,
    Model,
    Database,
    Node,
}

impl Stopped {
    /// The part as `/ready` names it, while the node answers.
    fn part(self) -> Option<&'static str> {
        match self {
            Self::Bus => Some("bus"),
            Self::Engine => Some("engine"),
            Self::Model => Some("model"),
            Self::Database | Self::Node => None,
        }
    }
}

pub(crate) fn run(quick: bool) -> anyhow::Result<bool> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(prove(if quick { 1 } else { 5 }))
}

async fn prove(rounds: u32) -> anyhow::Result<bool> {
    let mut guide = Guide::follow().await?;
    let (mut told, mut back) = (BTreeMap::new(), BTreeMap::new());
    let mut complaints = guide.lacks_of_a_turn();
    println!("{:<10}{:>12}{:>14}", "stopped", "told s", "well again s");
    for _ in 0..rounds {
        for part in
            [Stopped::Bus, Stopped::Engine, Stopped::Model, Stopped::Database, Stopped::Node]
        {
            let (slowest, recovered) = guide.stop_and_start(part).await?;
            println!(
                "{:<10}{:>12.1}{:>14.1}",
                format!("{part:?}"),
                slowest.as_secs_f64(),
                recovered.as_secs_f64()
            );
            told.entry(part).or_insert_with(Vec::new).push(slowest);
            back.entry(part).or_insert_with(Vec::new).push(recovered);
        }
    }
    complaints.extend(guide.where_and_release().await?);
    let (asked, failed, slowest) = guide.rolling_restart(rounds).await?;
    complaints.iter().for_each(|words| println!("{words}"));
    let latest = told.values().flatten().max().copied().unwrap_or_default();
    let recovered = back.values().flatten().max().copied().unwrap_or_default();
    // The slowest kind of return is the database's: the nodes connect again.
    let well = complaints.is_empty()
        && told.len() == 5
        && latest <= TOLD_MAX
        && recovered <= TOLD_MAX * 2
        && failed.is_empty()
        && asked > 100;
    failed.iter().take(10).for_each(|words| println!("failed: {words}"));
    println!(
        "operate: the guide's commands ran as written; {} stops of 5 parts told of within {:.1} s and gone within {:.1} s; {asked} requests through {} restarts of nodes, {} failed, the slowest {:.2} s; {} complaints (target 5 s, 10 s, 0, 0) {}",
        told.values().map(Vec::len).sum::<usize>(),
        latest.as_secs_f64(),
        recovered.as_secs_f64(),
        rounds as usize * NODES.len(),
        failed.len(),
        slowest.as_secs_f64(),
        complaints.len(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

fn as_postgres(port: u16, sql: &str) -> anyhow::Result<()> {
    let address = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
    let done = Command::new("psql").args([&address, "-qc", sql]).status()?;
    anyhow::ensure!(done.success(), "{sql}");
    Ok(())
}

/// The shell commands of the guide's section, block by block.
fn blocks(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = fs::read_to_string(root.join("docs/DEPLOYMENT.md"))?;
    let section = page.split("\n## A cluster, by hand\n").nth(1).context("the section is gone")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    let blocks: Vec<_> =
        blocks.filter_map(|block| block.split("\n```").next().map(str::to_owned)).collect();
    anyhow::ensure!(blocks.len() == 5, "the guide has {} blocks of commands", blocks.len());
    Ok(blocks)
}

/// Whoever follows the guide: a shell in a directory of its own.
struct Guide {
    shell: Child,
    input: ChildStdin,
    printed: Arc<Mutex<String>>,
    blocks: Vec<String>,
    home: tempfile::TempDir,
    programs: PathBuf,
    _database: Postgres,
    to_database: Proxy,
    to_model: Proxy,
    _model: ScriptedModel,
    client: Client,
    token: String,
}

impl Guide {
    /// Does what it says, to its end.
    async fn follow() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let home = scratch::directory("operate")?;
        for name in ["deploy", "tools"] {
            symlink(root.join(name), home.path().join(name))?;
        }
        let programs = std::env::current_exe()?.parent().context("a directory")?.to_owned();
        let database = Postgres::start();
        // As the system's package leaves it: `postgres` may do everything, and there is no `planwright`.
        let _ = database.psql("CREATE ROLE postgres SUPERUSER LOGIN");
        as_postgres(database.port, "ALTER ROLE planwright RENAME TO somebody")?;
        let to_database = Proxy::at(5_432, vec![loopback(database.port)]).await;
        let conduct: Conduct = Arc::new(|_| ScriptedReply::text("As you say."));
        let model = ScriptedModel::start(conduct).await?;
        let to_model = Proxy::at(11_434, vec![model.address()]).await;
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash")
            .args(["--norc", "--noprofile"])
            .current_dir(home.path())
            .env("PATH", path)
            .env("PGHOST", "127.0.0.1")
            .env("PGUSER", "postgres")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = shell.stdin.take().context("an input")?;
        let printed = Arc::<Mutex<String>>::default();
        let out = shell.stdout.take().context("an output")?;
        let err = shell.stderr.take().context("an output")?;
        gather(BufReader::new(out), printed.clone());
        gather(BufReader::new(err), printed.clone());
        let mut guide = Self {
            shell,
            input,
            printed,
            blocks: blocks(&root)?,
            home,
            programs,
            _database: database,
            to_database,
            to_model,
            _model: model,
            client: Client::builder().timeout(Duration::from_secs(10)).build()?,
            token: String::new(),
        };
        guide.walk().await?;
        Ok(guide)
    }

    async fn walk(&mut self) -> anyhow::Result<()> {
        for at in 0..3 {
            let block = self.blocks[at].clone();
            self.does(&block, "").await?;
        }
        let block = self.blocks[3].clone();
        self.does(&block, &format!("{PASSPHRASE}\n")).await?;
        for port in NODES {
            self.until_ready(port).await?;
        }
        self.until_engine().await?;
        let is_told = async || self.printed().contains("engine_unregistered");
        self.wait_until("a node says that the engine was not told of it", is_told).await?;
        let block = self.blocks[4].clone();
        // Restate is told, a status says that all is well, and a person talks at the second node.
        self.does(&block, "Is anybody there?\n").await?;
        let said = self.printed();
        anyhow::ensure!(said.contains("As you say."), "nobody answered the person:\n{said}");
        self.token = fs::read_to_string(self.home.path().join("node-1/token"))?.trim().to_owned();
        Ok(())
    }

    fn printed(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the shell do these commands, with this on their standard input, and waits until it has.
    async fn does(&mut self, commands: &str, input: &str) -> anyhow::Result<()> {
        let mark = format!("done-{}", Uuid::new_v4().simple());
        let file = self.home.path().join("input");
        fs::write(&file, input)?;
        // What is typed is in a file: the shell's own input has its commands.
        writeln!(self.input, "{{\n{commands}\n}} <{}\necho {mark} $?", file.display())?;
        self.input.flush()?;
        let begun = Instant::now();
        loop {
            let printed = self.printed();
            if let Some(line) = printed.lines().find(|line| line.starts_with(&mark)) {
                anyhow::ensure!(line.ends_with(" 0"), "{commands}\nended with {line}:\n{printed}");
                return Ok(());
            }
            anyhow::ensure!(begun.elapsed() < PATIENCE, "{commands}\nnever ended:\n{printed}");
            anyhow::ensure!(self.shell.try_wait()?.is_none(), "the shell ended:\n{printed}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What a command of the program says, with its exit code.
    async fn asks(&self, words: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
        let mut command = tokio::process::Command::new(self.programs.join("planwright"));
        command.args(words).current_dir(self.home.path()).stdin(Stdio::null()).kill_on_drop(true);
        for line in self.blocks[2].lines().filter_map(|line| line.strip_prefix("export ")) {
            let (name, value) = line.split_once('=').context("an assignment")?;
            let place = self.home.path().display().to_string();
            command.env(name, value.trim_matches('"').replace("$PWD", &place));
        }
        let done = tokio::time::timeout(PATIENCE, command.output()).await??;
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        Ok((done.status.code(), format!("{out}{err}")))
    }

    async fn ready(&self, port: u16) -> Option<(u16, Value)> {
        let url = format!("http://127.0.0.1:{port}/ready");
        let answer = self.client.get(url).timeout(TOLD_MAX).send().await.ok()?;
        let code = answer.status().as_u16();
        Some((code, answer.json().await.unwrap_or_default()))
    }

    /// Waits until this is so.
    async fn wait_until(&self, what: &str, is_so: impl AsyncFn() -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !is_so().await {
            let is_late = begun.elapsed() > PATIENCE;
            anyhow::ensure!(!is_late, "{what}: it never was so:\n{}", self.printed());
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn until_ready(&self, port: u16) -> anyhow::Result<()> {
        let is_ready = async || self.ready(port).await.is_some_and(|(code, _)| code == 200);
        self.wait_until(&format!("the node at {port} is ready"), is_ready).await
    }

    async fn until_engine(&self) -> anyhow::Result<()> {
        let health = "http://127.0.0.1:9070/health";
        let is_there = async || {
            self.client.get(health).send().await.is_ok_and(|answer| answer.status().is_success())
        };
        self.wait_until("the engine is there", is_there).await
    }

    /// What the log of a node lacks of the turn that the guide began.
    fn lacks_of_a_turn(&self) -> Vec<String> {
        let printed = self.printed();
        let mut complaints = Vec::new();
        if !printed.contains("\"event\":\"turn_finished\"") || !printed.contains("{\"node\":\"") {
            complaints.push("the end of a turn is not in the log of a node".to_owned());
        }
        complaints
    }

    fn pids(&self, pattern: &str) -> anyhow::Result<Vec<Pid>> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let is_here = fs::read_link(entry.path().join("cwd"))
                .is_ok_and(|place| place.starts_with(self.home.path()));
            if is_here && words.contains(pattern) && !words.starts_with("bash") {
                found.extend(Pid::from_raw(number));
            }
        }
        anyhow::ensure!(!found.is_empty(), "nothing runs that is called {pattern}");
        Ok(found)
    }

    fn signal(&self, pattern: &str, signal: Signal) -> anyhow::Result<()> {
        for pid in self.pids(pattern)? {
            let _ = kill_process(pid, signal);
        }
        Ok(())
    }

    /// The line of the guide that starts this.
    fn line(&self, has: &str) -> anyhow::Result<String> {
        let lines = self.blocks.iter().flat_map(|block| block.lines());
        let line = lines.into_iter().find(|line| line.contains(has));
        Ok(line.with_context(|| format!("the guide does not start {has}"))?.to_owned())
    }

    /// Stops a part and starts it again: how long it took at most until everything told of that, and until nothing did any more.
    async fn stop_and_start(&mut self, part: Stopped) -> anyhow::Result<(Duration, Duration)> {
        match part {
            Stopped::Bus => self.signal("nats-server", Signal::KILL)?,
            Stopped::Engine => self.signal("restate-server", Signal::KILL)?,
            Stopped::Model => self.to_model.inflict(Fault::Cut),
            Stopped::Database => self.to_database.inflict(Fault::Cut),
            Stopped::Node => self.signal("--data node-3", Signal::KILL)?,
        }
        let begun = Instant::now();
        if part == Stopped::Model {
            self.says("Is the model there?").await?;
        }
        let told = self.until(|seen| seen.tells(part), begun).await?;
        match part {
            Stopped::Bus => self.again("nats-server").await?,
            Stopped::Engine => self.again("restate-server").await?,
            Stopped::Model => self.to_model.inflict(Fault::None),
            Stopped::Database => self.to_database.inflict(Fault::None),
            Stopped::Node => {
                self.again("--data node-3").await?;
                self.until_ready(NODES[2]).await?;
            }
        }
        let begun = Instant::now();
        let recovered = self.until(Seen::is_well, begun).await?;
        Ok((told, recovered))
    }

    async fn again(&mut self, has: &str) -> anyhow::Result<()> {
        let line = self.line(has)?;
        self.does(&line, "").await
    }

    /// Asks everything until this holds of it.
    async fn until(
        &self,
        holds: impl Fn(&Seen) -> bool,
        begun: Instant,
    ) -> anyhow::Result<Duration> {
        loop {
            // What is asked at a time says how it was at that time.
            let asked = begun.elapsed();
            let seen = self.look().await?;
            if holds(&seen) {
                return Ok(asked);
            }
            anyhow::ensure!(
                begun.elapsed() < PATIENCE,
                "it was never told:\n{seen}\n{}",
                self.printed()
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// What an operator is told now.
    async fn look(&self) -> anyhow::Result<Seen> {
        let (status, doctor, first, second, third) = tokio::join!(
            self.asks(&["cluster", "status"]),
            self.asks(&["doctor", "--data", "node-1"]),
            self.ready(NODES[0]),
            self.ready(NODES[1]),
            self.ready(NODES[2])
        );
        Ok(Seen { status: status?, doctor: doctor?, ready: [first, second, third] })
    }

    /// Says something by way of the balancer, and does not wait for an answer.
    async fn says(&self, text: &str) -> anyhow::Result<()> {
        let url = format!("http://127.0.0.1:{BALANCER}/api/sessions/cli:operate-0001/messages");
        let body = json!({"text": text});
        let request = self.client.post(url).bearer_auth(&self.token);
        let request = request.header("idempotency-key", Uuid::new_v4().to_string());
        let answer = request.json(&body).send().await?;
        let (status, words) = (answer.status(), answer.text().await?);
        anyhow::ensure!(status.is_success(), "{status}: {words}");
        Ok(())
    }

    /// Which node acts is told while one does, and a session that is not parked is not released.
    async fn where_and_release(&self) -> anyhow::Result<Vec<String>> {
        let mut complaints = Vec::new();
        let (code, words) = self.asks(&["cluster", "where", "cli:operate-0001"]).await?;
        if code != Some(0) || !words.contains("no node acts for") {
            complaints.push(format!("where: {words}"));
        }
        let (code, words) = self.asks(&["cluster", "release", "cli:operate-0001"]).await?;
        if code == Some(0) || !words.contains("is not parked") {
            complaints.push(format!("release: {words}"));
        }
        Ok(complaints)
    }

    /// Restarts the nodes one after the other while people talk by way of the balancer: how many requests there were, which
    /// failed, and how long the slowest took.
    async fn rolling_restart(
        &mut self,
        rounds: u32,
    ) -> anyhow::Result<(u64, Vec<String>, Duration)> {
        let (ends, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut people = tokio::task::JoinSet::new();
        for at in 0..8 {
            let (ends, asked, token) = (ends.clone(), asked.clone(), self.token.clone());
            people.spawn(person(at, token, ends, asked));
        }
        for _ in 0..rounds {
            for (at, port) in NODES.into_iter().enumerate() {
                let pattern = format!("--data node-{}", at + 1);
                self.signal(&pattern, Signal::TERM)?;
                let has_stopped = async || self.pids(&pattern).is_err();
                self.wait_until("the node has stopped", has_stopped).await?;
                self.again(&pattern).await?;
                self.until_ready(port).await?;
                // The balancer looks every second.
                sleep(Duration::from_secs(2)).await;
            }
        }
        ends.store(true, Ordering::SeqCst);
        let (mut failed, mut slowest) = (Vec::new(), Duration::ZERO);
        while let Some(person) = people.join_next().await {
            let (mine, longest) = person?;
            failed.extend(mine);
            slowest = slowest.max(longest);
        }
        Ok((asked.load(Ordering::SeqCst), failed, slowest))
    }
}

impl Drop for Guide {
    fn drop(&mut self) {
        for pattern in ["nats-server", "restate-server", "haproxy", "planwright"] {
            let _ = self.signal(pattern, Signal::KILL);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// One person, who sends and reads on a connection that is kept, until it ends.
async fn person(
    at: usize,
    token: String,
    ends: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
) -> (Vec<String>, Duration) {
    let client = Client::builder().timeout(Duration::from_secs(20)).build();
    let Ok(client) = client else { return (vec!["no client".into()], Duration::ZERO) };
    let (mut failed, mut slowest) = (Vec::new(), Duration::ZERO);
    let session = format!("http://127.0.0.1:{BALANCER}/api/sessions/cli:rolling-{at:04}");
    for number in 0.. {
        if ends.load(Ordering::SeqCst) {
            break;
        }
        let request = if number % 3 == 0 {
            let key = format!("operate-{at}-{number}");
            let body = json!({"text": format!("number {number}")});
            client.post(format!("{session}/messages")).header("idempotency-key", key).json(&body)
        } else {
            client.get(format!("{session}/status"))
        };
        let begun = Instant::now();
        match request.bearer_auth(&token).send().await {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => failed.push(format!("{}", answer.status())),
            Err(error) => failed.push(format!("{error:?}")),
        }
        slowest = slowest.max(begun.elapsed());
        asked.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(50)).await;
    }
    (failed, slowest)
}

/// What an operator is told at one time.
struct Seen {
    status: (Option<i32>, String),
    doctor: (Option<i32>, String),
    /// What each node says of itself.
    ready: [Option<(u16, Value)>; 3],
}

impl Seen {
    /// Whether all three tell of this part.
    fn tells(&self, part: Stopped) -> bool {
        let word = match part {
            Stopped::Bus => "bus",
            Stopped::Engine => "engine",
            Stopped::Model => "model",
            Stopped::Database => "database",
            Stopped::Node => "node",
        };
        let tells = |(code, words): &(Option<i32>, String)| {
            *code == Some(1) && words.lines().any(|line| line.contains('✗') && line.contains(word))
                || part == Stopped::Model && *code == Some(1) && words.contains("model")
        };
        let names = |ready: &Option<(u16, Value)>| {
            let Some((200, body)) = ready else { return false };
            let parts = body["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
            body["status"] == "degraded"
                && parts.iter().any(|found| {
                    found["name"].as_str() == part.part() && found["trouble"].is_string()
                })
        };
        let ready = match part {
            Stopped::Node => self.ready[2].is_none() && self.ready[..2].iter().all(is_well),
            Stopped::Database => self.ready.iter().all(|ready| matches!(ready, Some((503, _)))),
            // Of the model a node knows what it was answered itself.
            Stopped::Model => self.ready.iter().any(names),
            Stopped::Bus | Stopped::Engine => self.ready.iter().all(names),
        };
        tells(&self.status) && tells(&self.doctor) && ready
    }

    /// Whether all three say that all is well.
    fn is_well(&self) -> bool {
        self.status.0 == Some(0) && self.doctor.0 == Some(0) && self.ready.iter().all(is_well)
    }
}

fn is_well(ready: &Option<(u16, Value)>) -> bool {
    ready.as_ref().is_some_and(|(code, body)| *code == 200 && body["status"] == "well")
}

impl std::fmt::Display for Seen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (name, (code, words)) in [("cluster status", &self.status), ("doctor", &self.doctor)] {
            writeln!(text, "{name} ended with {code:?}:\n{words}")?;
        }
        write!(formatter, "{text}/ready: {:?}", self.ready)
    }
}

/// Keeps what a process prints.
fn gather(from: impl std::io::BufRead + Send + 'static, to: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in from.lines().map_while(Result::ok) {
            let mut text = to.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&line);
            text.push('\n');
        }
    });
}
