//! One installation, driven at its terminal: a process for every word, killed in mid-execution.

use std::{
    fs::{self, Permissions},
    io::Write as _,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use fastrand::Rng;
use planwright_testkit::scratch;
use serde_json::{Value, json};

use super::{PASSPHRASE, Replayed, TOOL_SECONDS, server::Server};

/// How a process ends.
#[derive(Clone, Copy)]
enum Death {
    /// By itself.
    None,
    /// Killed after so long.
    After(Duration),
    /// Killed between the n-th act and its record.
    BeforeRecord(u32),
}

/// So many kills, and as many plans as that takes.
pub(super) fn replay(
    url: &str,
    server: &Server,
    seed: u64,
    kills: u32,
) -> anyhow::Result<Replayed> {
    let mut bench = Bench::new(url, server, seed)?;
    let mut doubts = 0;
    while bench.killed < kills {
        doubts += bench.one_plan(kills)?;
    }
    Ok(Replayed { plans: bench.plans, kills: bench.killed, doubts })
}

struct Bench<'a> {
    home: tempfile::TempDir,
    server: &'a Server,
    subject: PathBuf,
    url: String,
    rng: Rng,
    killed: u32,
    plans: u32,
}

impl<'a> Bench<'a> {
    fn new(url: &str, server: &'a Server, seed: u64) -> anyhow::Result<Self> {
        let home = scratch::directory("replay")?;
        let subject = std::env::current_exe()?.with_file_name("subject");
        anyhow::ensure!(subject.exists(), "build the package planwright-testkit first");
        let data = home.path().join("data");
        fs::create_dir_all(&data)?;
        fs::write(data.join("config.toml"), server.config()?)?;
        fs::set_permissions(&data, Permissions::from_mode(0o700))?;
        fs::set_permissions(data.join("config.toml"), Permissions::from_mode(0o600))?;
        Ok(Self {
            home,
            server,
            subject,
            url: url.to_owned(),
            rng: Rng::with_seed(seed),
            killed: 0,
            plans: 0,
        })
    }

    /// One plan from the first word to the last call; how many calls were in doubt.
    fn one_plan(&mut self, kills: u32) -> anyhow::Result<u32> {
        self.plans += 1;
        let mut doubts = 0;
        // The window is not what is proven here.
        self.say(&["chat", "/reset"])?;
        self.say(&["plan", "on", "collect"])?;
        self.say(&["chat", "note", "plan", &self.plans.to_string()])?;
        self.say(&["plan", "show"])?;
        loop {
            // A kill may come before the approval is durable: then it waits on.
            // One that was running goes on as soon as any process works.
            let words: &[&str] = match self.status()?["plan"]["status"].as_str() {
                Some("Ready") => &["plan", "approve"],
                Some("Running") => &["chat"],
                Some(_) | None => &["plan", "resume"],
            };
            let death = match self.killed {
                killed if killed >= kills => Death::None,
                // Every third between the act and its record, where the outcome is unknown.
                killed if killed % 3 == 2 => Death::BeforeRecord(self.rng.u32(1..6)),
                _ => Death::After(Duration::from_millis(self.rng.u64(self.server.busy()))),
            };
            self.live(words, death)?;
            // What the server had begun, it ends.
            sleep(self.server.ends_within());
            let status = self.status()?;
            if status["plan_active"] == json!(false) {
                return Ok(doubts);
            }
            for doubt in status["doubts"].as_array().into_iter().flatten() {
                doubts += 1;
                self.settle(doubt)?;
            }
        }
    }

    /// Says what became of a call in doubt, as the server's own ledger has it.
    fn settle(&self, doubt: &Value) -> anyhow::Result<()> {
        let call = doubt["call"].as_str().context("a call")?;
        let verdict = self.server.verdict(&self.status()?, self.plans)?;
        if verdict == "not" {
            sleep(Duration::from_secs(TOOL_SECONDS));
        }
        self.say(&["plan", "settle", call, verdict]).map(drop)
    }

    /// Runs until it ends, or is killed.
    fn live(&mut self, words: &[&str], death: Death) -> anyhow::Result<()> {
        let mut command = self.command(words);
        if let Death::BeforeRecord(nth) = death {
            command.env("PLANWRIGHT_FAILPOINT", format!("tool.before_record:{nth}"));
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        give_passphrase(child.stdin.take())?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                self.killed += u32::from(status.signal().is_some());
                return Ok(());
            }
            if matches!(death, Death::After(fatal) if begun.elapsed() >= fatal) {
                child.kill()?;
                child.wait()?;
                self.killed += 1;
                return Ok(());
            }
            anyhow::ensure!(begun.elapsed() < Duration::from_secs(60), "{words:?} does not end");
            sleep(Duration::from_millis(1));
        }
    }

    fn say(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut child =
            self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        give_passphrase(child.stdin.take())?;
        let output = child.wait_with_output()?;
        anyhow::ensure!(
            matches!(output.status.code(), Some(0 | 3)),
            "{words:?}: {}, {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output)
    }

    fn status(&self) -> anyhow::Result<Value> {
        let output = self.say(&["plan", "status", "--json"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let status = found.into_iter().find(|value| value["type"] == "status");
        Ok(status.with_context(|| format!("no status in {text}"))?["status"].clone())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.subject);
        let home = self.home.path();
        command.args(words).env_clear().env("HOME", home).env("USER", "ada");
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.arg("--data").arg(home.join("data")).arg("--workspace").arg(home.join("workspace"));
        command.args(["--model-url", &self.url, "--model", "scripted", "--passphrase-stdin"]);
        command.args(["--session", "replay-0001"]).stdin(Stdio::piped());
        command
    }
}

fn give_passphrase(stdin: Option<std::process::ChildStdin>) -> anyhow::Result<()> {
    writeln!(stdin.context("a way in")?, "{PASSPHRASE}")?;
    Ok(())
}
