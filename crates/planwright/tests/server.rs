//! `planwright up` and its clients, as real processes.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use planwright_testkit::scripted_model::{ScriptedModel, worker::worker};

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
        let home = Self {
            home: tempfile::tempdir().unwrap(),
            model: ScriptedModel::start(worker(300, 2)).await.unwrap(),
        };
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
        let mut child = self.command(&["up", "--json"]).spawn().unwrap();
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
    assert_eq!((code, text.contains("╭ Plan done")), (Some(0), true), "{text}");
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
