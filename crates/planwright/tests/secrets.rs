//! What the installation knows as secret comes into no log, journal, export, prompt or process listing, though a tool reads it.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use planwright_testkit::scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest};
use serde_json::json;

/// How many secrets there are: in the environment, in the configuration, and the token of the data directory.
const SECRETS: usize = 50;

fn canary(number: usize) -> String {
    format!("canary-{number:02}-{:016x}", number * 0x9e37_79b9)
}

/// Reads the file that holds them all, and says what it was given.
fn reader() -> Conduct {
    Arc::new(|seen: &SeenRequest| match seen.rounds {
        0 => ScriptedReply::call("read_file", &json!({"path": "secrets.txt"})),
        _ => ScriptedReply::text("I have read it."),
    })
}

/// A server that is stopped when the test ends, however it ends.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The command lines of all processes of this machine.
fn process_listing() -> String {
    let mut listing = String::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        listing.push_str(&String::from_utf8_lossy(&line).replace('\0', " "));
        listing.push('\n');
    }
    listing
}

#[tokio::test]
async fn fifty_secrets_reach_no_log_journal_export_prompt_or_process_listing() {
    let model = ScriptedModel::start(reader()).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let (data, workspace) = (home.path().join("data"), home.path().join("workspace"));
    for directory in [&data, &workspace] {
        fs::create_dir(directory).unwrap();
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let (in_environment, in_configuration) = (1..=25, 26..SECRETS);
    let mut config = "[server]\nbind = \"127.0.0.1:0\"\n".to_owned();
    for number in in_configuration {
        let (url, key) = (model.base_url(), canary(number));
        let _ =
            write!(config, "[models.m{number}]\nurl = {url:?}\nname = \"m\"\napi_key = {key:?}\n");
    }
    private(&data.join("config.toml"), &config);
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command.args(words).env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
        for number in in_environment.clone() {
            command.env(format!("CANARY_{number}_API_KEY"), canary(number));
        }
        command.arg("--data").arg(&data).arg("--workspace").arg(&workspace);
        command.args(["--model-url", &model.base_url(), "--model", "scripted"]);
        command
    };
    let log = home.path().join("log");
    let mut up = command(&["up", "--json"]);
    up.env("PLANWRIGHT_LOG", "debug").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut up = Up(up.stderr(File::create(&log).unwrap()).spawn().unwrap());
    let mut first = String::new();
    BufReader::new(up.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("listening"), "{first}");
    let token = fs::read_to_string(data.join("token")).unwrap().trim().to_owned();
    let secrets: Vec<_> = (1..SECRETS).map(canary).chain([token]).collect();
    assert_eq!(secrets.len(), SECRETS);
    fs::write(workspace.join("secrets.txt"), secrets.join("\n")).unwrap();
    let mut chat = command(&["chat", "read", "it"]);
    let chat = tokio::task::spawn_blocking(move || chat.output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&chat.stdout).into_owned();
    assert!(chat.status.success(), "{told}{}", String::from_utf8_lossy(&chat.stderr));
    let listing = process_listing();
    assert!(listing.contains("planwright"), "{listing}");
    drop(up);
    let archive = home.path().join("archive");
    let mut export = command(&["export", archive.to_str().unwrap()]);
    let export = tokio::task::spawn_blocking(move || export.output().unwrap()).await.unwrap();
    assert!(export.status.success(), "{}", String::from_utf8_lossy(&export.stderr));
    let export = fs::read_to_string(&archive).unwrap();
    let journal =
        String::from_utf8_lossy(&fs::read(data.join("journal.sqlite")).unwrap()).into_owned();
    let prompts = serde_json::to_string(&model.requests()).unwrap();
    // What was read is there, by the names of the values.
    for (what, text) in [("export", &export), ("prompts", &prompts)] {
        assert!(text.contains("the value of CANARY_7_API_KEY is not shown"), "{what}: {text}");
        assert!(text.contains("the value of models.m30.api_key is not shown"), "{what}: {text}");
        assert!(text.contains("the value of the token of the data directory"), "{what}: {text}");
    }
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.is_empty(), "the log was written");
    let places = [
        ("log", log),
        ("journal", journal),
        ("export", export),
        ("prompts", prompts),
        ("terminal", told),
        ("process listing", listing),
    ];
    for (what, text) in &places {
        let found: Vec<_> = secrets.iter().filter(|secret| text.contains(*secret)).collect();
        assert_eq!(found, Vec::<&String>::new(), "in the {what}");
    }
}
