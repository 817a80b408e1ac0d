//! A chat at a real terminal: what is typed can be edited, and what is printed does not break it.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use nix::pty::{Winsize, openpty};
use planwright_testkit::scripted_model::{Conduct, ScriptedModel, ScriptedReply, SeenRequest};

const ROWS: u16 = 40;
/// How long something may take to appear.
const APPEARS: Duration = Duration::from_secs(30);

/// A program at a terminal of this width, and what its screen shows.
struct Screen {
    keyboard: File,
    parser: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    fn start(mut command: Command, columns: u16) -> Self {
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command.stdin(end(&pty.slave)).stdout(end(&pty.slave)).stderr(end(&pty.slave));
        let child = command.env("TERM", "xterm-256color").spawn().unwrap();
        drop(command);
        let mut output = File::from(pty.master.try_clone().unwrap());
        let parser = Arc::new(Mutex::new(vt100::Parser::new(ROWS, columns, 0)));
        let shown = parser.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                shown.lock().unwrap().process(&piece[..length]);
            }
        });
        Self { keyboard: File::from(pty.master), parser, child }
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn rows(&self) -> Vec<String> {
        let text = self.parser.lock().unwrap().screen().contents();
        text.lines().map(|row| row.trim_end().to_owned()).collect()
    }

    /// The line being typed: the last one that is not empty.
    fn line(&self) -> String {
        self.rows().into_iter().rfind(|row| !row.is_empty()).unwrap_or_default()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < APPEARS, "{what}:\n{}", self.rows().join("\n"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn until_line(&self, line: &str) {
        self.until(line, |screen| screen.line() == line).await;
    }
}

fn words() -> Vec<String> {
    (0..80).map(|at| format!("word-{at}")).collect()
}

async fn edits_at(columns: u16) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (kept, story) = (heard.clone(), words().join(" "));
    let conduct: Conduct = Arc::new(move |seen: &SeenRequest| {
        kept.lock().unwrap().push(seen.last_message.clone());
        match seen.last_message.as_str() {
            "tell me" => {
                ScriptedReply { pace: Duration::from_millis(30), ..ScriptedReply::text(&story) }
            }
            _ => ScriptedReply::text("as you say"),
        }
    });
    let model = ScriptedModel::start(conduct).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command.args(words).env_clear().env("HOME", home.path());
        command.arg("--data").arg(home.path().join("data"));
        command.arg("--workspace").arg(home.path().join("workspace"));
        command.args(["--model-url", &model.base_url(), "--model", "scripted"]);
        command
    };
    for words in [&["session", "new", "first-talk"][..], &["chat", "hello"]] {
        let mut said = command(&[words, &["--passphrase-stdin"]].concat());
        let mut child = said.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
    let mut screen = Screen::start(command(&["chat"]), columns);
    screen.until_line("you ›").await;

    // The agent's answer streams while a person types, and goes back and puts an X before the last two letters.
    screen.types("tell me\r");
    screen.until("the answer begins", |screen| screen.rows().join(" ").contains("word-5")).await;
    screen.types("half a line\u{1b}[D\u{1b}[DX");
    screen.until("the answer ends", |screen| screen.rows().join(" ").contains("word-79")).await;
    screen.until_line("you › half a liXne").await;
    let shown = screen.rows().join(" ");
    let shown: Vec<_> = shown.split_whitespace().filter(|word| word.starts_with("word-")).collect();
    assert_eq!(shown, words(), "{:#?}", screen.rows());
    assert_eq!(shown.len(), 80);
    let is_broken = |row: &String| row.contains("half") && row.contains("word-");
    assert!(!screen.rows().iter().any(is_broken), "{:#?}", screen.rows());

    // Ctrl-E and Ctrl-U clear the line, Up brings back what was said.
    screen.types("\u{5}\u{15}");
    screen.until_line("you ›").await;
    screen.types("\u{1b}[A");
    screen.until_line("you › tell me").await;
    screen.types("\u{15}/plan sta\t");
    screen.until_line("you › /plan status").await;
    screen.types("\u{15}/switch fi\t");
    screen.until_line("you › /switch first-talk").await;

    // Lines that are pasted are one message.
    screen.types("\u{15}\u{1b}[200~one\rtwo\rthree\u{1b}[201~\r");
    let pasted = "one\ntwo\nthree".to_owned();
    screen.until("the paste", |_| heard.lock().unwrap().contains(&pasted)).await;
    assert_eq!(heard.lock().unwrap().iter().filter(|said| said.contains("two")).count(), 1);
    screen.until("the answer", |screen| screen.rows().join(" ").contains("as you say")).await;
    screen.until_line("you ›").await;
    screen.types("\u{4}");
    assert!(screen.child.wait().unwrap().success());
    let history = home.path().join("data/history");
    assert!(fs::read_to_string(&history).unwrap().contains("tell me"));
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_can_be_edited_while_the_answer_streams_at_60_columns() {
    edits_at(60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_can_be_edited_while_the_answer_streams_at_120_columns() {
    edits_at(120).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passphrase_that_is_too_short_is_refused_at_once_and_asked_for_again() {
    let model =
        ScriptedModel::start(Arc::new(|_: &SeenRequest| ScriptedReply::text("hi"))).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
    command.arg("chat").env_clear().env("HOME", home.path());
    command.arg("--workspace").arg(home.path().join("workspace"));
    command.args(["--model-url", &model.base_url(), "--model", "scripted"]);
    let mut screen = Screen::start(command, 120);
    let asked = |times: usize| {
        move |screen: &Screen| {
            screen.rows().join("\n").matches("choose a passphrase").count() == times
        }
    };
    screen.until("it is asked for", asked(1)).await;
    screen.types("short\r");
    screen.until("it is asked for again", asked(2)).await;
    let text = screen.rows().join("\n");
    assert!(text.contains("a passphrase has at least 8 characters; try again"), "{text}");
    assert!(!text.contains("short") && !text.contains("once more"), "{text}");
    screen.types("correct horse battery\r");
    screen.until("once more", |screen| screen.rows().join("\n").contains("once more:")).await;
    screen.types("correct horse battery\r");
    screen.until_line("you ›").await;
    assert!(!screen.rows().join("\n").contains("horse"));
    screen.types("\u{4}");
    assert!(screen.child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_a_terminal_prints_a_link_with_which_the_first_passphrase_is_chosen_once() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for (path, text, mode) in [
        (data.clone(), None, 0o700),
        (data.join("config.toml"), Some("[server]\nbind = \"127.0.0.1:0\"\n"), 0o600),
    ] {
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
    command.arg("up").env_clear().env("HOME", home.path()).env("PLANWRIGHT_LOG", "error");
    command.arg("--data").arg(&data).arg("--workspace").arg(home.path().join("workspace"));
    let screen = Screen::start(command, 200);
    let has_link = |screen: &Screen| screen.rows().join("\n").contains("#invitation=");
    screen.until("a link", has_link).await;
    let rows = screen.rows();
    let link = rows.iter().find(|row| row.contains("#invitation=")).unwrap().trim().to_owned();
    let (url, secret) = link.split_once("/login#invitation=").unwrap();
    let choice = serde_json::json!({"passphrase": "chosen in a browser", "invitation": secret});
    let client = reqwest::Client::new();
    let choose = || client.post(format!("{url}/api/passphrase")).json(&choice).send();
    assert_eq!(choose().await.unwrap().status(), 200);
    assert_eq!(choose().await.unwrap().status(), 403, "it works once");
    let login = serde_json::json!({"passphrase": "chosen in a browser"});
    let logged_in = client.post(format!("{url}/api/login")).json(&login).send().await.unwrap();
    assert_eq!(logged_in.status(), 200);
    for entry in std::fs::read_dir(&data).unwrap() {
        let kept = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        let has = kept.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!has, "the link is kept nowhere");
    }
}
