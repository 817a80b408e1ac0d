//! The binary, as a person or a script meets it.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use planwright_domain::{
    actor::{Person, Standing},
    command::{Decision, Issued, PersonCommand, SessionCommand},
};
use planwright_outbound::{
    clock_system::SystemClock, data_directory::DataDirectory, journal_sqlite::SqliteJournal,
};
use planwright_runtime::{
    commands::dispatch::dispatch,
    ports::{Clock as _, journal::Archive as _},
};
use planwright_testkit::scripted_model::{ScriptedModel, worker::worker};
use serde_json::Value;

const PASSPHRASE: &str = "correct horse battery";

struct Home {
    home: tempfile::TempDir,
    url: String,
    _model: Option<ScriptedModel>,
}

impl Home {
    async fn new() -> Self {
        let model = ScriptedModel::start(worker(300, 2)).await.unwrap();
        Self { home: tempfile::tempdir().unwrap(), url: model.base_url(), _model: Some(model) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command.args(words).env_clear().env("HOME", self.home.path()).env("USER", "ada");
        command.arg("--data").arg(self.path("data")).arg("--workspace").arg(self.path("workspace"));
        command.args(["--model-url", &self.url, "--model", "scripted"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&self, words: &[&str], input: &str) -> Output {
        let (mut command, input) = (self.command(words), input.to_owned());
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        });
        run.await.unwrap()
    }

    /// A decision needs the passphrase; in a script it comes on the first line.
    async fn decide(&self, words: &[&str]) -> (Option<i32>, String) {
        let words: Vec<_> = words.iter().copied().chain(["--passphrase-stdin"]).collect();
        told(&self.run(&words, &format!("{PASSPHRASE}\n")).await)
    }

    async fn says(&self, words: &[&str]) -> (Option<i32>, String) {
        told(&self.run(words, "").await)
    }
}

fn told(output: &Output) -> (Option<i32>, String) {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), text)
}

#[tokio::test]
async fn the_demo_plays_itself_and_ends_with_what_was_written() {
    let (code, text) = Home::new().await.says(&["demo", "--play"]).await;
    assert_eq!(code, Some(0), "{text}");
    for words in [
        "Nothing was approved",
        "rev 1 → 2  +1 −0 lines",
        "+ 2. Copy `notes/monday.md` to `backup/monday.md`.",
        "↻ the demo model is busy",
        "✓ wrote review.md (133 bytes)",
        "╭ Plan reported done",
        "Observed:",
    ] {
        assert!(text.contains(words), "{words} is missing in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "a pipe gets no colours");
}

#[tokio::test]
async fn a_plan_goes_from_request_to_file_with_exit_codes_that_scripts_can_read() {
    let home = Home::new().await;
    assert_eq!(home.says(&["plan", "on"]).await.0, Some(0));
    let (code, text) = home.says(&["chat", "write", "two", "files"]).await;
    assert_eq!(code, Some(3), "a plan waits for a decision: {text}");
    assert!(text.contains("╭ Plan ready · rev 1"), "{text}");
    let (code, text) = home.says(&["plan", "approve"]).await;
    assert_eq!(code, Some(5), "nobody may decide without the passphrase: {text}");
    let (code, text) = home.decide(&["plan", "approve"]).await;
    assert_eq!((code, text.contains("was not shown in full here")), (Some(5), true), "{text}");
    let (code, text) = home.decide(&["plan", "show"]).await;
    assert_eq!((code, text.contains("# Plan 0")), (Some(0), true), "{text}");
    let (code, text) = home.decide(&["plan", "approve"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("╭ Plan reported done")
            && text.contains("the model reports: all files written")
            && text.contains("2 calls ran"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(home.path("workspace/out")).unwrap().count(), 2);
    let (code, text) = home.says(&["plan", "status"]).await;
    assert_eq!(
        (code, text.contains("no plan work; the last plan: Plan 0 (Done)")),
        (Some(0), true),
        "{text}"
    );
}

#[tokio::test]
async fn a_conversation_works_in_the_directory_that_it_was_begun_in() {
    let home = Home::new().await;
    let (project, elsewhere) = (home.path("project"), home.path("elsewhere"));
    for directory in [&project, &elsewhere, &home.path("data")] {
        std::fs::create_dir(directory).unwrap();
    }
    let config = home.path("data/config.toml");
    let roots = format!("[workspace]\nroots = [{:?}]\n", project.display().to_string());
    std::fs::write(&config, roots).unwrap();
    for (path, mode) in [(home.path("data"), 0o700), (config.clone(), 0o600)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let (begun, not_allowed) = (project.to_str().unwrap(), elsewhere.to_str().unwrap());
    let (code, text) = home.says(&["chat", "--in", not_allowed, "hello"]).await;
    assert_eq!((code, text.contains("workspace.roots")), (Some(1), true), "{text}");
    assert!(home.says(&["session", "list"]).await.1.contains("no conversations yet"));
    let (code, text) = home.says(&["chat", "--in", begun, "just talk"]).await;
    assert_eq!(code, Some(0), "{text}");
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "write", "two", "files"]).await;
    let (_, text) = home.decide(&["plan", "show"]).await;
    assert!(text.contains(&format!("work in {begun}")), "{text}");
    let (code, text) = home.decide(&["plan", "approve"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(std::fs::read_dir(project.join("out")).unwrap().count(), 2);
    assert!(!home.path("workspace/out").exists());
}

#[tokio::test]
async fn a_revision_that_could_not_be_written_out_was_not_shown() {
    let home = Home::new().await;
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "write", "two", "files"]).await;
    let mut show = home.command(&["plan", "show", "--passphrase-stdin"]);
    show.stdout(std::fs::File::create("/dev/full").unwrap());
    let shown = tokio::task::spawn_blocking(move || {
        let mut child = show.spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("{PASSPHRASE}\n").as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    });
    let (code, text) = told(&shown.await.unwrap());
    assert_eq!((code, text.contains("does not count as shown")), (Some(1), true), "{text}");
    let (code, text) = home.decide(&["plan", "approve"]).await;
    assert_eq!((code, text.contains("was not shown in full here")), (Some(5), true), "{text}");
    // An empty variable of a script approves nothing, and neither does a bare word for a grant.
    home.decide(&["plan", "show"]).await;
    assert_eq!(home.decide(&["plan", "approve", ""]).await.0, Some(2));
    assert_eq!(home.decide(&["plan", "approve", "--grant", "note"]).await.0, Some(2));
    assert_eq!(home.says(&["plan", "status"]).await.0, Some(3), "it still waits");
}

#[tokio::test]
async fn a_session_is_named_as_it_is_listed() {
    let home = Home::new().await;
    home.says(&["--session", "first-0001", "chat", "hello"]).await;
    home.says(&["--session", "second-0001", "chat", "hello"]).await;
    let (_, listed) = home.says(&["session", "list"]).await;
    assert!(listed.contains("cli:first-0001"), "{listed}");
    let (code, text) = home.says(&["session", "switch", "cli:first-0001"]).await;
    assert_eq!((code, text.contains("cli:first-0001 is now")), (Some(0), true), "{text}");
    let (_, text) = home.says(&["--session", "cli:second-0001", "session", "list"]).await;
    assert_eq!(text.matches("second-0001").count(), 1, "no other session began: {text}");
    let (code, text) = home.says(&["--session", "web:elsewhere-1", "plan", "status"]).await;
    assert_eq!(
        (code, text.contains("there is no session web:elsewhere-1")),
        (Some(1), true),
        "{text}"
    );
}

#[tokio::test]
async fn a_stale_approval_exits_with_four_and_approves_nothing() {
    let home = Home::new().await;
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "one"]).await;
    home.decide(&["plan", "show"]).await;
    home.says(&["chat", "another"]).await;
    let (code, text) = home.decide(&["plan", "approve"]).await;
    assert_eq!((code, text.contains("Nothing was approved")), (Some(4), true), "{text}");
    let (code, text) = home.says(&["plan", "diff", "1", "2"]).await;
    assert_eq!((code, text.contains("rev 1 → 2")), (Some(0), true), "{text}");
}

#[tokio::test]
async fn a_wrong_passphrase_decides_nothing() {
    let home = Home::new().await;
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "one"]).await;
    home.decide(&["plan", "show"]).await;
    let (code, text) =
        told(&home.run(&["plan", "approve", "--passphrase-stdin"], "wrong horse battery\n").await);
    assert_eq!((code, text.contains("is not the one that was chosen")), (Some(1), true), "{text}");
    assert_eq!(home.says(&["plan", "status"]).await.0, Some(3), "the approval still waits");
}

#[tokio::test]
async fn a_second_process_on_one_data_directory_is_refused_and_told_of_the_first() {
    let home = Home::new().await;
    let mut first = home.command(&["chat"]).spawn().unwrap();
    while !home.path("data/journal.sqlite").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (code, text) = home.says(&["plan", "status"]).await;
    let told = format!("is in use by process {} (planwright)", first.id());
    assert_eq!((code, text.contains(&told)), (Some(1), true), "{text}");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert_eq!(home.says(&["plan", "status"]).await.0, Some(0));
}

#[tokio::test]
async fn json_is_one_object_a_line_and_names_the_session_on_every_event() {
    let home = Home::new().await;
    let sent = "{\"id\":\"00000000-0000-0000-0000-000000000001\",\"text\":\"hello\"}\n";
    let output =
        home.run(&["chat", "--json", "--session", "my-first-talk"], &format!("{sent}{sent}")).await;
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let accepted: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "accepted")
        .map(|line| (line["id"].clone(), line["version"].clone()))
        .collect();
    assert_eq!(accepted.len(), 2);
    assert_eq!(accepted[0], accepted[1], "the same id has the same answer");
    let events: Vec<_> = lines.iter().filter(|line| line["type"] == "event").collect();
    assert!(events.iter().all(|event| event["session"] == "cli:my-first-talk"));
    let queued: Vec<_> = events.iter().filter(|event| event["kind"] == "message_queued").collect();
    assert_eq!(queued.len(), 1);
    // As the API publishes it, whatever the program calls it inside.
    let keys = queued[0]["event"].as_object().unwrap().keys().collect::<Vec<_>>();
    assert_eq!(keys, ["by", "text"]);
    assert_eq!(
        events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        (1..=events.len() as u64).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn sessions_are_listed_started_and_switched() {
    let home = Home::new().await;
    assert_eq!(home.says(&["session", "new", "first-talk"]).await.0, Some(0));
    home.says(&["chat", "hello"]).await;
    home.says(&["session", "new", "second-talk"]).await;
    home.says(&["chat", "hello"]).await;
    let (_, text) = home.says(&["session"]).await;
    assert!(text.contains("● cli:second-talk") && text.contains("○ cli:first-talk"), "{text}");
    assert_eq!(home.says(&["session", "switch", "first-talk"]).await.0, Some(0));
    assert_eq!(home.says(&["session", "switch", "no-such-talk"]).await.0, Some(1));
    assert_eq!(home.says(&["session", "new", "bad"]).await.0, Some(1));
    let (_, text) = home.says(&["session"]).await;
    assert!(text.contains("● cli:first-talk"), "{text}");
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let mut home = Home::new().await;
    let (code, text) = home.says(&["doctor"]).await;
    assert_eq!((code, text.contains("✗ passphrase: not chosen yet")), (Some(1), true), "{text}");
    home.decide(&["plan", "status"]).await;
    let (code, text) = home.says(&["doctor"]).await;
    assert_eq!((code, text.contains("✓ model: scripted at")), (Some(0), true), "{text}");
    home.url = "http://127.0.0.1:9/v1".into();
    let (code, text) = home.says(&["doctor"]).await;
    assert_eq!(
        (code, text.contains("✗ model:") && text.contains("planwright demo")),
        (Some(1), true),
        "{text}"
    );
}

#[tokio::test]
async fn wrong_words_exit_with_two_and_completions_exist() {
    let home = Home::new().await;
    assert_eq!(home.says(&["plan", "aprove"]).await.0, Some(2));
    for shell in ["bash", "zsh", "fish"] {
        let (code, text) = home.says(&["completions", shell]).await;
        assert_eq!((code, text.contains("planwright")), (Some(0), true));
    }
}

#[tokio::test]
async fn an_installation_is_written_out_and_brought_in_elsewhere() {
    let (here, there) = (Home::new().await, Home::new().await);
    here.says(&["plan", "on"]).await;
    here.says(&["chat", "one"]).await;
    let archive = here.path("archive.jsonl").display().to_string();
    let (code, text) = here.says(&["export", &archive]).await;
    assert!(code == Some(0) && text.contains("1 sessions") && text.contains("written:"), "{text}");
    let (code, text) = here.says(&["export", &archive]).await;
    assert!(code == Some(1) && text.contains("name a file that is not there yet"), "{text}");
    let (code, text) = there.says(&["import", &archive]).await;
    assert!(code == Some(0) && text.contains("written out again with the same digest"), "{text}");
    let (code, text) = there.says(&["plan", "status"]).await;
    assert_eq!((code, text.contains("Plan 0")), (Some(3), true), "the approval waits: {text}");
    let (code, text) = there.says(&["import", &archive]).await;
    assert!(code == Some(1) && text.contains("is there already"), "{text}");
    let whole = std::fs::read_to_string(&archive).unwrap();
    std::fs::write(&archive, &whole[..whole.len() / 2]).unwrap();
    let (code, text) = Home::new().await.says(&["import", &archive]).await;
    assert!(code == Some(1) && text.contains("nothing was brought in"), "{text}");
}

#[tokio::test]
async fn everything_of_a_person_is_written_out_and_then_erased() {
    let home = Home::new().await;
    home.says(&["chat", "hello"]).await;
    let archive = home.path("own.jsonl").display().to_string();
    let (code, text) = home.says(&["export", &archive, "--owner", "owner"]).await;
    assert!(code == Some(0) && text.contains("1 sessions"), "{text}");
    let (code, text) = home.says(&["erase", "--owner", "nobody"]).await;
    assert!(code == Some(1) && text.contains("nothing belongs to nobody here"), "{text}");
    let (code, text) = home.says(&["erase", "--owner", "owner"]).await;
    assert!(code == Some(1) && text.contains("erases 1 sessions of owner"), "{text}");
    let (code, text) = home.says(&["erase", "--owner", "owner", "--yes"]).await;
    assert!(code == Some(0) && text.contains("1 sessions of owner erased"), "{text}");
    let (code, text) = home.says(&["audit", "verify"]).await;
    assert!(code == Some(0) && text.contains("in 0 sessions as they were written"), "{text}");
    let (code, text) = home.says(&["chat", "hello again"]).await;
    assert_eq!(code, Some(0), "another session begins: {text}");
}

#[tokio::test]
async fn the_decision_log_is_written_out_and_any_changed_dropped_or_moved_line_shows() {
    let home = Home::new().await;
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "write", "it"]).await;
    home.decide(&["plan", "show"]).await;
    home.decide(&["plan", "approve"]).await;
    let file = home.path("log.jsonl");
    let (code, told) = home.says(&["audit", "export", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(0), "{told}");
    let digest = told.trim().rsplit(' ').next().unwrap().to_owned();
    let words = ["audit", "verify", file.to_str().unwrap(), "--digest", &digest];
    assert_eq!(home.says(&words).await.0, Some(0));
    let log = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert!(lines.len() > 4 && log.contains("plan_approved"), "{log}");
    let mut changed: Vec<Vec<String>> = Vec::new();
    for at in 0..lines.len() {
        let own = || lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let mut dropped = own();
        dropped.remove(at);
        changed.push(dropped);
        let mut other = own();
        other[at] = other[at].replace("approved", "rejected").replace("shown", "hidden");
        if other != own() {
            changed.push(other);
        }
        if at + 1 < lines.len() {
            let mut moved = own();
            moved.swap(at, at + 1);
            changed.push(moved);
        }
    }
    for (at, lines) in changed.iter().enumerate() {
        let file = home.path(&format!("changed-{at}.jsonl"));
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        let (code, told) = home.says(&["audit", "verify", file.to_str().unwrap()]).await;
        assert_eq!(code, Some(1), "{told}: {lines:?}");
    }
}

/// As a node leaves it that was killed.
#[tokio::test]
async fn the_data_directory_of_a_node_refuses_local_work_and_says_what_to_do() {
    let home = Home::new().await;
    drop(DataDirectory::own_for_node(&home.path("data"), "planwright node").unwrap());
    let archive = home.path("archive.jsonl").display().to_string();
    let commands: [&[&str]; 8] = [
        &["chat", "hello"],
        &["chat"],
        &["plan", "on"],
        &["session", "list"],
        &["memory"],
        &["export", &archive],
        &["up"],
        &["memory", "--import", &archive],
    ];
    for words in commands {
        let (code, text) = home.says(words).await;
        assert_eq!(code, Some(1), "{words:?}: {text}");
        assert!(
            text.contains("belongs to a cluster node that is not running"),
            "{words:?}: {text}"
        );
        assert!(text.contains("--server URL"), "{words:?}: {text}");
    }
    assert!(!home.path("data/journal.sqlite").exists());
    let (code, text) = home.says(&["status"]).await;
    assert_eq!((code, text.contains("start this node with: planwright node")), (Some(1), true));
    assert!(!text.contains("planwright up"), "{text}");
}

#[tokio::test]
async fn a_node_does_not_take_over_the_directory_of_an_installation() {
    let home = Home::new().await;
    home.says(&["plan", "on"]).await;
    let (code, text) = home.says(&["node", "--database", "postgresql://127.0.0.1:9/none"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("holds the journal of a local installation"), "{text}");
}

#[tokio::test]
async fn an_address_beyond_loopback_is_refused_wherever_it_is_named() {
    let home = Home::new().await;
    let words = ["node", "--bind", "0.0.0.0:0"];
    let (code, text) = home.says(&words).await;
    assert_eq!(
        (code, text.contains("put a proxy that ends TLS in front")),
        (Some(1), true),
        "{text}"
    );
    let mut command = home.command(&["node"]);
    command.env("PLANWRIGHT_BIND", "[::]:0").stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (code, text) = told(&output);
    assert_eq!(
        (code, text.contains("put a proxy that ends TLS in front")),
        (Some(1), true),
        "{text}"
    );
    assert!(!home.path("data/server.json").exists());
}

/// As with `| head`: the reader leaves before everything is written.
#[tokio::test]
async fn a_reader_that_leaves_early_is_no_failure() {
    let home = Home::new().await;
    let commands: [&[&str]; 4] =
        [&["completions", "bash"], &["config", "--schema"], &["--help"], &["session", "list"]];
    for words in commands {
        let mut command = home.command(words);
        let output = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            drop(child.stdout.take());
            child.wait_with_output().unwrap()
        });
        let (code, text) = told(&output.await.unwrap());
        assert_eq!((code, text.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_cannot_be_shown_and_scripts_see_it() {
    let home = Home::new().await;
    for words in [&["plan", "show"][..], &["plan", "diff"], &["plan", "diff", "1", "2"]] {
        let (code, text) = home.says(words).await;
        assert_eq!(code, Some(1), "{words:?}: {text}");
    }
    home.says(&["plan", "on"]).await;
    let (code, text) = home.says(&["session", "delete"]).await;
    assert_eq!(code, Some(0), "a question that was answered: {text}");
}

#[tokio::test]
async fn without_a_model_one_message_ends_soon_with_one_sentence_that_says_what_to_do() {
    let mut home = Home::new().await;
    home.url = "http://127.0.0.1:9/v1".into();
    let begun = std::time::Instant::now();
    let (code, text) = home.says(&["chat", "hello"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("http://127.0.0.1:9/v1 cannot be reached (Connection refused)"),
        "{text}"
    );
    assert!(text.contains("planwright models set"), "{text}");
    let begun = std::time::Instant::now();
    let (code, text) = told(&home.run(&["chat"], "hello\n").await);
    assert_eq!(code, Some(1), "what is piped in ends too: {text}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    let (code, text) = home.says(&["session", "rename", "later"]).await;
    assert_eq!(code, Some(0), "a name needs no model: {text}");
}

/// Approves a plan and begins it, and ends before anything of it was done.
async fn approved_and_due(home: &Home) {
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "write", "it"]).await;
    home.decide(&["plan", "show"]).await;
    let (_, text) = home.decide(&["plan", "approve", "hold"]).await;
    assert!(text.contains("approved"), "{text}");
    resumed(home).await;
}

/// Resumes the plan in the journal, where nobody works on it.
async fn resumed(home: &Home) {
    let journal = SqliteJournal::open_inline(&home.path("data/journal.sqlite")).unwrap();
    let key = journal.keys(None, 1).await.unwrap().remove(0);
    let owner = Person::new(key.owner, "owner", "cli 1", Standing::Decides);
    let resume = SessionCommand::Person(owner, PersonCommand::Decide(Decision::Resume));
    let issued = Issued::new(uuid::Uuid::now_v7(), SystemClock.now(), resume);
    let answer = dispatch(&journal, &key, issued).await.unwrap();
    assert!(!answer.is_refused(), "{answer:?}");
}

#[tokio::test]
async fn an_archive_with_an_approval_executes_nothing_unless_the_operator_names_its_digest() {
    let home = Home::new().await;
    approved_and_due(&home).await;
    let archive = home.path("archive.jsonl").display().to_string();
    let (_, text) = home.says(&["export", &archive]).await;
    let digest = text.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    std::fs::rename(home.path("data"), home.path("elsewhere")).unwrap();

    let (code, text) = home.says(&["import", &archive, "--trust", &"0".repeat(64)]).await;
    assert!(code == Some(1) && text.contains("nothing was brought in"), "{text}");
    assert!(!home.path("data/journal.sqlite").exists());

    let (code, text) = home.says(&["import", &archive]).await;
    assert!(code == Some(0) && text.contains("plans wait for /plan resume"), "{text}");
    assert!(!home.path("data/importing").exists());
    home.says(&["chat", "just talk"]).await;
    let (_, status) = home.says(&["plan", "status"]).await;
    assert!(status.contains("approved elsewhere by owner"), "{status}");
    assert!(!status.contains("ended its turn"), "something was executed: {status}");

    // What was held once brings the answer with it, and is held again.
    resumed(&home).await;
    let again = home.path("again.jsonl").display().to_string();
    home.says(&["export", &again]).await;
    std::fs::rename(home.path("data"), home.path("held-once")).unwrap();
    assert_eq!(home.says(&["import", &again]).await.0, Some(0));
    let (_, status) = home.says(&["plan", "status"]).await;
    assert!(status.contains("approved elsewhere by owner"), "{status}");

    std::fs::rename(home.path("data"), home.path("held")).unwrap();
    let (code, text) = home.says(&["import", &archive, "--trust", &digest]).await;
    assert_eq!(code, Some(0), "{text}");
    // What the operator vouches for goes on: the turn of the execution is the next one.
    home.says(&["chat", "just talk"]).await;
    let (_, status) = home.says(&["plan", "status"]).await;
    assert!(status.contains("ended its turn without reporting"), "{status}");
}

#[tokio::test]
async fn an_archive_signed_by_the_key_that_the_operator_names_goes_on_as_it_was() {
    let home = Home::new().await;
    approved_and_due(&home).await;
    let archive = home.path("archive.jsonl").display().to_string();
    let (_, text) = home.says(&["export", &archive]).await;
    let key = text.split_whitespace().find(|word| word.starts_with("ed25519:"));
    let key = key.unwrap().trim_end_matches(';').to_owned();
    std::fs::rename(home.path("data"), home.path("elsewhere")).unwrap();
    let whole = std::fs::read_to_string(&archive).unwrap();
    let (lines, signed) = whole.trim_end().rsplit_once('\n').unwrap();
    assert!(signed.contains(&key), "{signed}");

    // An archive of somebody else, signed by them; nobody's; one whose end or signature was changed; a word that is no key.
    let forged = home.path("forged.jsonl").display().to_string();
    let spoilt = signed.replace("signature\":\"", "signature\":\"00");
    let other = format!("ed25519:{}", "07".repeat(32));
    let claimed = signed.replace(&key, &other);
    for (text, trust, words) in [
        (whole.clone(), other.as_str(), "did not sign this archive"),
        (format!("{lines}\n{claimed}\n"), other.as_str(), "did not sign this archive"),
        (format!("{lines}\n"), key.as_str(), "nobody signed this archive"),
        (format!("{lines}\n{spoilt}\n"), key.as_str(), "did not sign"),
        (whole.replacen("\"events\":", "\"events\": ", 1), key.as_str(), "is damaged"),
        (whole.clone(), "ed25519:07", "is no key"),
    ] {
        std::fs::write(&forged, text).unwrap();
        let (code, told) = home.says(&["import", &forged, "--trust", trust]).await;
        assert!(code == Some(1) && told.contains(words), "{words}: {told}");
        assert!(!home.path("data/journal.sqlite").exists());
    }

    let (code, text) = home.says(&["import", &archive, "--trust", &key]).await;
    assert_eq!(code, Some(0), "{text}");
    home.says(&["chat", "just talk"]).await;
    let (_, status) = home.says(&["plan", "status"]).await;
    assert!(status.contains("ended its turn without reporting"), "{status}");
}

#[tokio::test]
async fn an_import_that_was_killed_leaves_nothing_that_is_served() {
    let home = Home::new().await;
    approved_and_due(&home).await;
    let archive = home.path("archive.jsonl").display().to_string();
    home.says(&["export", &archive]).await;
    std::fs::rename(home.path("data"), home.path("elsewhere")).unwrap();
    std::fs::create_dir_all(home.path("data/importing/users")).unwrap();
    std::fs::set_permissions(home.path("data"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(home.path("data/importing/journal.sqlite"), "half of a journal").unwrap();
    let (code, text) = home.says(&["session"]).await;
    assert!(code == Some(0) && !text.contains("cli:"), "{text}");
    let (code, text) = home.says(&["import", &archive]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(!home.path("data/importing").exists());
}

#[tokio::test]
async fn a_passphrase_is_chosen_changed_and_reset_and_a_reset_is_noticed() {
    let home = Home::new().await;
    let with = async |words: &[&str], lines: &str| {
        let words: Vec<_> = words.iter().copied().chain(["--passphrase-stdin"]).collect();
        told(&home.run(&words, lines).await)
    };
    let (code, text) = with(&["passphrase"], "short\n").await;
    assert_eq!((code, text.contains("at least 8 characters")), (Some(1), true), "{text}");
    let (code, text) = with(&["passphrase"], "the first one\n").await;
    assert_eq!((code, text.contains("chosen; deciding asks for it")), (Some(0), true), "{text}");
    let (code, text) = with(&["passphrase"], "not that one\nthe second one\n").await;
    assert_eq!((code, text.contains("is not the one that was chosen")), (Some(1), true), "{text}");
    let (code, text) = with(&["passphrase"], "the first one\nthe second one\n").await;
    assert_eq!((code, text.contains("changed; every login of owner")), (Some(0), true), "{text}");
    assert_eq!(with(&["plan", "status"], "the first one\n").await.0, Some(1));
    home.says(&["plan", "on"]).await;
    home.says(&["chat", "write", "two", "files"]).await;
    with(&["plan", "show"], "the second one\n").await;
    let (code, text) = with(&["plan", "approve", "--hold"], "the second one\n").await;
    assert_eq!((code, text.contains("approved and held")), (Some(3), true), "{text}");
    let (code, text) = with(&["passphrase", "--reset", "nobody"], "the third one\n").await;
    assert_eq!((code, text.contains("no person \"nobody\"")), (Some(1), true), "{text}");
    let (code, text) = with(&["passphrase", "--reset"], "the third one\n").await;
    assert_eq!((code, text.contains("waits for a new decision")), (Some(0), true), "{text}");
    let (_, text) = home.says(&["plan", "status"]).await;
    assert!(text.contains("! the passphrase of owner was reset at this machine"), "{text}");
    assert!(text.contains("a passphrase was reset since"), "{text}");
    assert!(!home.path("workspace/out").exists(), "nothing was executed");
    assert_eq!(home.says(&["plan", "resume"]).await.0, Some(5), "the terminal was forgotten");
    assert_eq!(with(&["plan", "status"], "the second one\n").await.0, Some(1));
    let (code, text) = with(&["plan", "resume"], "the third one\n").await;
    assert_eq!((code, text.contains("╭ Plan reported done")), (Some(0), true), "{text}");
}

#[tokio::test]
async fn people_are_added_given_roles_and_removed_at_the_command_line() {
    let home = Home::new().await;
    let (code, text) = home.says(&["people"]).await;
    let owner = "owner: speak, decide, admin; chose no passphrase yet";
    assert_eq!((code, text.trim_end()), (Some(0), owner));
    let (code, text) = home.says(&["people", "add", "bea"]).await;
    assert_eq!((code, text.contains("this needs your passphrase")), (Some(1), true), "{text}");
    let (code, text) = home.decide(&["people", "add", "bea", "--role", "decide"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("http://localhost:7340/login#invitation="), "{text}");
    let (code, text) = home.decide(&["people", "role", "bea", "admin"]).await;
    assert_eq!(
        (code, text.contains("bea may do this from now on: admin")),
        (Some(0), true),
        "{text}"
    );
    let (_, text) = home.says(&["people", "list"]).await;
    assert!(text.contains("bea: speak, admin; was invited until"), "{text}");
    let (code, text) = home.decide(&["people", "role", "owner", "speak"]).await;
    assert_eq!(
        (code, text.contains("the owner of the installation can be neither")),
        (Some(1), true),
        "{text}"
    );
    assert_eq!(home.decide(&["people", "remove", "bea"]).await.0, Some(0));
    assert!(!home.says(&["people"]).await.1.contains("bea"));
    let (code, text) = home.decide(&["people", "remove", "bea"]).await;
    assert_eq!((code, text.contains("there is no person \"bea\"")), (Some(1), true), "{text}");
}

#[tokio::test]
async fn an_archive_leaves_people_and_passphrases_as_they_are() {
    let (elsewhere, home) = (Home::new().await, Home::new().await);
    elsewhere.decide(&["plan", "on"]).await;
    let file = elsewhere.path("archive");
    assert_eq!(elsewhere.says(&["export", file.to_str().unwrap()]).await.0, Some(0));
    let with = async |words: &[&str], lines: &str| {
        let words: Vec<_> = words.iter().copied().chain(["--passphrase-stdin"]).collect();
        told(&home.run(&words, lines).await)
    };
    assert_eq!(with(&["people", "add", "bea"], "chosen here\n").await.0, Some(0));
    let (code, text) = home.says(&["import", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(0), "{text}");
    let (_, text) = home.says(&["people"]).await;
    assert!(text.contains("bea") && !text.contains("owner: speak, decide, admin; chose"), "{text}");
    assert_eq!(with(&["plan", "status"], "somebody else's\n").await.0, Some(1));
    assert_eq!(with(&["plan", "status"], "chosen here\n").await.0, Some(0));
}
