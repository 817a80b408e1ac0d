//! Recorded calls against a real MCP server, with the process killed in mid-execution again and again.
//!
//! A `collect` plan of twenty notes is approved, and the process that makes them is killed at a random moment,
//! resumed, killed again. The server's own ledger says what happened; the journal says what is shown.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::Write as _,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Command, ExitCode, Output, Stdio},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use fastrand::Rng;
use planwright_testkit::scripted_model::{Said, ScriptedModel, Told};
use serde_json::{Value, json};

/// How many calls one plan has.
const STEPS: usize = 20;
/// How long a call may be under way, in seconds: before that nobody can say that it did not happen.
const TOOL_SECONDS: u64 = 1;
const PASSPHRASE: &str = "correct horse battery";

/// Proves it with so many kills.
#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
pub(crate) fn prove(seed: u64, kills: u32) -> ExitCode {
    match all(seed, kills) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("replay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a proof prints its figures")]
fn all(seed: u64, kills: u32) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let model = runtime.block_on(ScriptedModel::start(Arc::new(conduct)))?;
    let mut bench = Bench::new(&model.base_url(), seed)?;
    let (mut plans, mut doubts, mut wrong) = (0, 0, Vec::new());
    while bench.killed < kills {
        plans += 1;
        doubts += bench.one_plan(kills)?;
    }
    let noted = bench.noted()?;
    for plan in 1..=plans {
        for step in 0..STEPS {
            let times = noted.get(&format!("plan {plan} step {step}")).copied().unwrap_or(0);
            if times != 1 {
                wrong.push(format!("step {step} of plan {plan} was made {times} times"));
            }
        }
    }
    wrong.iter().take(10).for_each(|words| println!("  {words}"));
    let well = wrong.is_empty() && doubts > 0;
    println!(
        "replay: {plans} plans of {STEPS} calls, {} kills in mid-execution, {doubts} in doubt and settled by the server's ledger, {} calls not made exactly once, {:.0} s (target 0, some in doubt) {}",
        bench.killed,
        wrong.len(),
        begun.elapsed().as_secs_f32(),
        if well { "ok" } else { "short" }
    );
    Ok(well)
}

/// Plans so many notes as it is told, by number.
fn conduct(told: &Told) -> Said {
    let plan = told.last_said.rsplit(' ').next().unwrap_or_default().to_owned();
    if told.rounds > 0 {
        return Said::text("Planned.");
    }
    let note = |step: usize| json!({"text": format!("plan {plan} step {step}")});
    let first = Said::call("strict__note", &note(0));
    let calls = (1..STEPS).fold(first, |said, step| said.and("strict__note", &note(step)));
    calls.and("plan_finalize", &json!({"summary": format!("Twenty notes, plan {plan}")}))
}

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

struct Bench {
    home: tempfile::TempDir,
    subject: PathBuf,
    url: String,
    rng: Rng,
    killed: u32,
    plans: u32,
}

impl Bench {
    fn new(url: &str, seed: u64) -> anyhow::Result<Self> {
        let home = tempfile::Builder::new().prefix("planwright-replay-").tempdir()?;
        let own = std::env::current_exe()?;
        let (subject, server) = (own.with_file_name("subject"), own.with_file_name("strict-mcp"));
        anyhow::ensure!(
            subject.exists() && server.exists(),
            "build the package planwright-testkit first"
        );
        let data = home.path().join("data");
        fs::create_dir_all(&data)?;
        let config = format!(
            "[effects]\ntool_seconds = {TOOL_SECONDS}\n[mcp.strict]\ncommand = [{:?}, {:?}]\n",
            server.display().to_string(),
            home.path().join("ledger").display().to_string()
        );
        fs::write(data.join("config.toml"), config)?;
        fs::set_permissions(&data, Permissions::from_mode(0o700))?;
        fs::set_permissions(data.join("config.toml"), Permissions::from_mode(0o600))?;
        Ok(Self {
            home,
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
                _ => Death::After(Duration::from_millis(self.rng.u64(20..160))),
            };
            self.live(words, death)?;
            // What the server had begun, it ends.
            sleep(Duration::from_millis(50));
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
        let steps = self.status()?["plan"]["steps"].clone();
        let step =
            steps.as_array().into_iter().flatten().find(|step| step["came_out"] == "in doubt");
        let number =
            step.and_then(|step| step["number"].as_u64()).context("a step in doubt says so")?;
        let note = format!("plan {} step {}", self.plans, number - 1);
        let verdict = if self.noted()?.contains_key(&note) { "happened" } else { "not" };
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
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 3)), "{words:?}: {said}");
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

    /// How often the server noted what.
    fn noted(&self) -> anyhow::Result<BTreeMap<String, u32>> {
        let mut noted = BTreeMap::new();
        for line in fs::read_to_string(self.home.path().join("ledger")).unwrap_or_default().lines()
        {
            *noted.entry(line.to_owned()).or_default() += 1;
        }
        Ok(noted)
    }
}

fn give_passphrase(stdin: Option<std::process::ChildStdin>) -> anyhow::Result<()> {
    writeln!(stdin.context("a way in")?, "{PASSPHRASE}")?;
    Ok(())
}
