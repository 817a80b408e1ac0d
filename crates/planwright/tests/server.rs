//! `planwright up` and its clients, as real processes.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use planwright_testkit::scripted_model::{
    Conduct, ScriptedModel, ScriptedReply, SeenRequest, worker::worker,
};

const PASSPHRASE: &str = "correct horse battery";

struct Home {
    home: tempfile::TempDir,
    model: ScriptedModel,
}

/// A server that is stopped when the test ends, however it ends.
struct Up {
    child: Child,
    url: String,
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Home {
    async fn new() -> Self {
        Self::with(ScriptedModel::start(worker(300, 2)).await.unwrap())
    }

    fn with(model: ScriptedModel) -> Self {
        let home = Self { home: tempfile::tempdir().unwrap(), model };
        fs::create_dir(home.data()).unwrap();
        fs::set_permissions(home.data(), fs::Permissions::from_mode(0o700)).unwrap();
        home.configure("[server]\nbind = \"127.0.0.1:0\"\n", 0o600);
        home
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn configure(&self, text: &str, mode: u32) {
        let path = self.data().join("config.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command.args(words).env_clear().env("HOME", self.home.path()).env("USER", "ada");
        command
            .arg("--data")
            .arg(self.data())
            .arg("--workspace")
            .arg(self.home.path().join("workspace"));
        command.args(["--model-url", &self.model.base_url(), "--model", "scripted"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, words: &[&str], input: &str) -> (Option<i32>, String) {
        let (mut command, input) = (self.command(words), input.to_owned());
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().unwrap()
        });
        let Output { status, stdout, stderr } = run.await.unwrap();
        (
            status.code(),
            format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)),
        )
    }

    async fn up(&self) -> Up {
        self.up_with(&[]).await
    }

    /// The same, with more in its environment.
    async fn up_with(&self, environment: &[(&str, &str)]) -> Up {
        let mut command = self.command(&["up", "--json"]);
        let mut child = command.envs(environment.iter().copied()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).unwrap();
            line
        });
        let told: serde_json::Value = serde_json::from_str(&line.await.unwrap()).unwrap();
        Up { child, url: told["url"].as_str().unwrap().to_owned() }
    }

    /// A start that must be refused; in which words.
    async fn refused(&self) -> String {
        let (code, text) = self.run(&["up"], "").await;
        assert_eq!(code, Some(1), "{text}");
        text
    }
}

async fn status_of(url: &str, token: &str) -> u16 {
    reqwest::Client::new()
        .get(format!("{url}/api/sessions"))
        .bearer_auth(token)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

#[tokio::test]
async fn every_command_becomes_a_client_of_the_server() {
    let home = Home::new().await;
    home.run(&["plan", "status", "--passphrase-stdin"], &format!("{PASSPHRASE}\n")).await;
    let up = home.up().await;
    assert_eq!(home.run(&["plan", "on"], "").await.0, Some(0));
    let (code, text) = home.run(&["chat", "write", "two", "files"], "").await;
    assert_eq!((code, text.contains("╭ Plan ready · rev 1")), (Some(3), true), "{text}");
    assert_eq!(
        home.run(&["plan", "approve"], "").await.0,
        Some(5),
        "the token file does not decide"
    );
    let with = |words: &'static [&'static str]| home.run(words, "correct horse battery\n");
    assert_eq!(with(&["plan", "show", "--passphrase-stdin"]).await.0, Some(0));
    let (code, text) = with(&["plan", "approve", "--passphrase-stdin"]).await;
    assert_eq!((code, text.contains("╭ Plan reported done")), (Some(0), true), "{text}");
    let (_, text) = home.run(&["session"], "").await;
    assert!(text.contains("● cli:talk-") && text.contains("at rest"), "{text}");
    assert_eq!(home.run(&["status"], "").await.0, Some(0));
    drop(up);
    let (code, text) = home.run(&["plan", "list"], "").await;
    assert_eq!(
        (code, text.contains("Done")),
        (Some(0), true),
        "without a server it falls back to its own process: {text}"
    );
}

#[tokio::test]
async fn a_second_server_is_refused_and_told_of_the_first() {
    let home = Home::new().await;
    let up = home.up().await;
    let text = home.refused().await;
    assert!(text.contains(&format!("is in use by process {}", up.child.id())), "{text}");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_keeps_everything_and_says_so() {
    let home = Home::new().await;
    let mut up = home.up().await;
    home.run(&["chat", "hello"], "").await;
    let pid = rustix::process::Pid::from_child(&up.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(up.child.wait().unwrap().success());
    assert!(!home.data().join("server.json").exists());
    assert_eq!(home.run(&["status"], "").await.0, Some(1));
}

/// A tool's thread hangs for good in the middle of a write, as in a file system that does not answer.
#[tokio::test]
async fn a_server_that_is_told_to_stop_ends_in_time_though_a_tool_hangs() {
    let home = Home::new().await;
    home.run(&["plan", "status", "--passphrase-stdin"], &format!("{PASSPHRASE}\n")).await;
    let mut up = home.up_with(&[("PLANWRIGHT_HANGPOINT", "tool.mid_act:1")]).await;
    home.run(&["plan", "on"], "").await;
    home.run(&["chat", "write", "two", "files"], "").await;
    let given = format!("{PASSPHRASE}\n");
    home.run(&["plan", "show", "--passphrase-stdin"], &given).await;
    let mut approving = home.command(&["plan", "approve", "--passphrase-stdin"]).spawn().unwrap();
    approving.stdin.take().unwrap().write_all(given.as_bytes()).unwrap();
    let hangs = || {
        let files = fs::read_dir(home.home.path().join("workspace/out")).into_iter().flatten();
        files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(".part"))
    };
    let begun = Instant::now();
    while !hangs() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no tool was called");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pid = rustix::process::Pid::from_child(&up.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let told = Instant::now();
    let ended = loop {
        if let Some(status) = up.child.try_wait().unwrap() {
            break Some(status);
        }
        if told.elapsed() > Duration::from_secs(20) {
            break None;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let _ = approving.kill();
    let _ = approving.wait();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?} after {:?}", told.elapsed());
}

#[tokio::test]
async fn without_a_configuration_or_with_an_empty_one_the_defaults_are_secure() {
    let home = Home::new().await;
    let up = home.up().await;
    let token = fs::read_to_string(home.data().join("token")).unwrap();
    let mode = fs::metadata(home.data().join("token")).unwrap().permissions().mode() & 0o777;
    assert_eq!((token.trim().len(), mode), (64, 0o600));
    assert_eq!(status_of(&up.url, token.trim()).await, 200);
    for guess in ["", "undefined", "null", "planwright"] {
        assert_eq!(status_of(&up.url, guess).await, 401, "{guess}");
    }
    let config = planwright::config::Config::parse("").unwrap();
    assert!(config.server.bind.ip().is_loopback());
}

#[tokio::test]
async fn a_configuration_that_cannot_be_trusted_is_refused_in_words() {
    let home = Home::new().await;
    for (text, mode, words) in [
        ("[server", 0o600, "it is not TOML; mend it or remove it"),
        (
            "[server]\nbnid = \"127.0.0.1:0\"\n",
            0o600,
            "there is no setting server.bnid; did you mean server.bind?",
        ),
        ("[server]\nbind = \"everywhere\"\n", 0o600, "a value does not fit"),
        ("[server]\nbind = \"127.0.0.1:0\"\n", 0o644, "chmod 600"),
        ("[server]\nbind = \"0.0.0.0:0\"\n", 0o600, "put a proxy that ends TLS in front"),
        ("[server]\nbind = \"0.0.0.0:0\"\nbehind_proxy = true\n", 0o600, "name the hosts"),
    ] {
        home.configure(text, mode);
        let told = home.refused().await;
        assert!(told.contains(words), "{text}: {told}");
    }
    let (code, text) = home.run(&["up", "--config", "/nonexistent/config.toml"], "").await;
    assert_eq!((code, text.contains("cannot be read")), (Some(1), true), "{text}");
}

#[tokio::test]
async fn a_weak_or_readable_token_is_refused_in_words() {
    let home = Home::new().await;
    let path = home.data().join("token");
    for token in ["", "undefined", "secret", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        fs::write(&path, token).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let told = home.refused().await;
        assert!(told.contains("weak or damaged"), "{token}: {told}");
    }
    fs::write(&path, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(home.refused().await.contains("chmod 600"));
}

#[tokio::test]
async fn the_settings_are_listed_and_have_a_schema() {
    let home = Home::new().await;
    let (code, text) = home.run(&["config"], "").await;
    assert_eq!(code, Some(0));
    let page = fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/CONFIGURATION.md"),
    )
    .unwrap();
    for key in text.lines() {
        assert!(page.contains(&format!("`{key}`")), "{key} is not in docs/CONFIGURATION.md");
    }
    let (_, schema) = home.run(&["config", "--schema"], "").await;
    assert!(serde_json::from_str::<serde_json::Value>(&schema).is_ok());
}

#[tokio::test]
async fn figures_and_lines_of_the_log_have_the_published_names() {
    let home = Home::new().await;
    home.run(&["plan", "status", "--passphrase-stdin"], &format!("{PASSPHRASE}\n")).await;
    let mut up = home.up().await;
    let mut log = up.child.stderr.take().unwrap();
    for words in [
        &["plan", "on"][..],
        &["goal", "add", "move", "the", "photos"],
        &["task", "add", "g1", "look"],
        &["auto", "on", "g1", "calls=1"],
        &["auto", "off"],
        &["plan", "off"],
    ] {
        let (code, text) = home.run(words, "").await;
        assert!(matches!(code, Some(0 | 3)), "{words:?}: {text}");
    }
    let token = fs::read_to_string(home.data().join("token")).unwrap();
    let client = reqwest::Client::new();
    let figures = client.get(format!("{}/metrics", up.url)).bearer_auth(token.trim());
    let figures = figures.send().await.unwrap().text().await.unwrap();
    for name in [
        "plan_mode_enabled_count{channel=\"cli\"} 1",
        "plan_mode_active_sessions 0",
        "auto_run_started_count{runKind=\"GOAL_RUN\",channel=\"cli\"} 1",
        "auto_run_completed_count{runKind=\"GOAL_RUN\",status=\"off\"} 1",
    ] {
        assert!(figures.contains(name), "{name} is not in\n{figures}");
    }
    assert!(!figures.contains("session="), "off by default");
    let _ = up.child.kill();
    let _ = up.child.wait();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut log, &mut text).unwrap();
    let lines =
        text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let lines: Vec<_> = lines.filter(|line| line["event"].is_string()).collect();
    let started = lines.iter().find(|line| line["event"] == "run_started").unwrap();
    let said = lines.iter().find(|line| line["event"] == "auto_on").unwrap();
    for field in [
        "session_identity",
        "run_id",
        "goal_id",
        "task_id",
        "run_kind",
        "transport_chat_hash",
        "event",
    ] {
        assert!(started[field].is_string() && said[field].is_string(), "{field}: {started} {said}");
    }
    assert_eq!(started["run_kind"], "GOAL_RUN");
    assert!(!started["goal_id"].as_str().unwrap().is_empty());
    assert_eq!(said["transport_chat_hash"].as_str().unwrap().len(), 8, "the chat, by its digest");
}

// The model answers in this process while its clients are waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_elsewhere_names_the_server_and_shows_its_token() {
    let (here, there) = (Home::new().await, Home::new().await);
    let up = there.up().await;
    let token = fs::read_to_string(there.data().join("token")).unwrap();
    let asked = |words: &[&str], token: Option<&str>| {
        let mut command = here.command(words);
        command.args(["--server", &up.url]).stdin(Stdio::null());
        command.envs(token.map(|token| ("PLANWRIGHT_TOKEN", token.trim().to_owned())));
        let Output { status, stdout, stderr } = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        (status.code(), format!("{out}{err}"))
    };
    let (code, text) = asked(&["session", "list"], None);
    assert_eq!((code, text.contains("set PLANWRIGHT_TOKEN")), (Some(1), true), "{text}");
    let (code, text) = asked(&["session", "list"], Some("not-a-token"));
    assert_eq!((code, text.contains("set PLANWRIGHT_TOKEN")), (Some(1), true), "{text}");
    let (code, text) = asked(&["chat", "hello"], Some(&token));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(asked(&["plan", "on"], Some(&token)).0, Some(0));
    let (code, text) = asked(&["status"], None);
    assert_eq!((code, text.contains(&up.url)), (Some(0), true), "{text}");
    assert!(!here.data().join("journal.sqlite").exists(), "nothing was done here");
    let (_, text) = there.run(&["plan", "status"], "").await;
    assert!(text.contains("Plan drafting"), "{text}");
    let (code, text) = asked(&["export", "archive.jsonl"], Some(&token));
    assert_eq!((code, text.contains("leave out --server")), (Some(1), true), "{text}");
    drop(up);
    let named = |url: &str| here.command(&["chat", "hello", "--server", url]);
    for (url, words) in [
        ("http://127.0.0.1:9", "check the address in --server"),
        ("http://192.0.2.1", "nothing there would be encrypted"),
        ("192.0.2.1:7340", "is not an address"),
    ] {
        let mut command = named(url);
        command.env("PLANWRIGHT_TOKEN", token.trim()).stdin(Stdio::null());
        let Output { status, stderr, .. } = command.output().unwrap();
        let text = String::from_utf8_lossy(&stderr);
        assert_eq!((status.code(), text.contains(words)), (Some(1), true), "{url}: {text}");
        assert!(!text.contains("planwright up"), "{text}");
    }
}

/// The decision needs a passphrase, and the first one may be chosen while the server runs.
#[tokio::test]
async fn the_first_passphrase_can_be_chosen_at_a_terminal_while_the_server_runs() {
    let home = Home::new().await;
    let _up = home.up().await;
    let chosen = format!("{PASSPHRASE}\n");
    let (code, text) = home.run(&["plan", "status", "--passphrase-stdin"], &chosen).await;
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = home.run(&["plan", "status", "--passphrase-stdin"], "another one\n").await;
    assert_eq!(code, Some(1), "{text}");
}

#[tokio::test]
async fn the_decision_log_is_written_out_while_the_server_runs() {
    let home = Home::new().await;
    let chosen = format!("{PASSPHRASE}\n");
    home.run(&["plan", "status", "--passphrase-stdin"], &chosen).await;
    let _up = home.up().await;
    home.run(&["plan", "on"], "").await;
    home.run(&["chat", "write it"], "").await;
    home.run(&["plan", "show", "--passphrase-stdin"], &chosen).await;
    let (code, text) = home.run(&["plan", "approve", "--passphrase-stdin"], &chosen).await;
    assert_eq!(code, Some(0), "{text}");
    let file = home.home.path().join("log.jsonl");
    let file = file.to_str().unwrap();
    let (code, text) = home.run(&["audit", "export", file], "").await;
    assert_eq!(code, Some(0), "{text}");
    assert!(fs::read_to_string(file).unwrap().contains("plan_approved"));
    assert_eq!(home.run(&["audit", "verify", file], "").await.0, Some(0));
    let (code, text) = home.run(&["plan", "list"], "").await;
    assert_eq!((code, text.contains("Done")), (Some(0), true), "the server goes on: {text}");
}

#[tokio::test]
async fn a_session_whose_turn_runs_is_not_said_to_be_at_rest() {
    let slow: Conduct = Arc::new(|_: &SeenRequest| ScriptedReply {
        thinks: Duration::from_secs(30),
        ..ScriptedReply::text("at last")
    });
    let home = Home::with(ScriptedModel::start(slow).await.unwrap());
    let _up = home.up().await;
    let mut chat = home.command(&["chat", "hello"]).spawn().unwrap();
    while home.model.thinking() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (code, text) = home.run(&["session", "list"], "").await;
    let _ = chat.kill();
    let _ = chat.wait();
    assert_eq!((code, text.contains("in progress")), (Some(0), true), "{text}");
    assert!(!text.contains("at rest"), "{text}");
}

#[tokio::test]
async fn a_server_without_a_passphrase_says_how_it_is_chosen_and_writes_no_link_into_a_log() {
    let home = Home::new().await;
    let mut up = home.command(&["up"]).spawn().unwrap();
    let mut output = BufReader::new(up.stdout.take().unwrap());
    let lines = tokio::task::spawn_blocking(move || {
        let mut lines = String::new();
        output.read_line(&mut lines).unwrap();
        output.read_line(&mut lines).unwrap();
        lines
    });
    let lines = lines.await.unwrap();
    let _ = up.kill();
    let _ = up.wait();
    assert!(lines.contains("choose it in a terminal: planwright passphrase --data"), "{lines}");
    assert!(!lines.contains("invitation="), "{lines}");
}

#[tokio::test]
async fn the_dashboard_is_opened_in_a_browser_or_its_address_is_said() {
    let home = Home::new().await;
    let up = home.up().await;
    let (browser, opened) = (home.home.path().join("browser"), home.home.path().join("opened"));
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display())).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let open = |browser: Option<&std::path::Path>| {
        let mut command = home.command(&["open"]);
        command.envs(browser.map(|browser| ("BROWSER", browser))).stdin(Stdio::null());
        String::from_utf8(command.env("PATH", "/nowhere").output().unwrap().stdout).unwrap()
    };
    assert_eq!(open(Some(&browser)), format!("opened {}\n", up.url));
    while fs::read_to_string(&opened).unwrap_or_default().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let address = fs::read_to_string(&opened).unwrap();
    assert_eq!(address.trim().trim_end_matches('/'), up.url);
    assert_eq!(open(None), format!("open this in a browser: {}\n", up.url));
}

#[tokio::test]
async fn people_and_passphrases_are_changed_while_the_server_runs_and_reset_when_it_does_not() {
    let home = Home::new().await;
    let up = home.up().await;
    let (code, text) = home.run(&["passphrase", "--passphrase-stdin"], "the first one\n").await;
    assert_eq!((code, text.contains("chosen; deciding")), (Some(0), true), "{text}");
    let with = async |words: &[&str], lines: &str| {
        let words: Vec<_> = words.iter().copied().chain(["--passphrase-stdin"]).collect();
        home.run(&words, lines).await
    };
    let (code, text) =
        with(&["people", "add", "bea / ü", "--role", "decide"], "the first one\n").await;
    assert_eq!((code, text.contains("/login#invitation=")), (Some(0), true), "{text}");
    let (code, text) = with(&["people", "remove", "bea / ü"], "the first one\n").await;
    assert_eq!((code, text.contains("bea / ü was removed")), (Some(0), true), "{text}");
    let (code, text) = with(&["passphrase"], "the first one\nthe second one\n").await;
    assert_eq!((code, text.contains("changed; every login of owner")), (Some(0), true), "{text}");
    assert_eq!(with(&["plan", "status"], "the first one\n").await.0, Some(1));
    assert_eq!(with(&["plan", "status"], "the second one\n").await.0, Some(0));
    let (code, text) = with(&["passphrase", "--reset"], "the third one\n").await;
    assert_eq!((code, text.contains("stop that process")), (Some(1), true), "{text}");
    drop(up);
    assert_eq!(with(&["passphrase", "--reset"], "the third one\n").await.0, Some(0));
    let _up = home.up().await;
    let (_, text) = home.run(&["plan", "status"], "").await;
    assert!(text.contains("! the passphrase of owner was reset"), "{text}");
}
