//! A whole conversation with a real model server: real tokens, real streaming, real usage. The words are nonsense.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::process::{Command, Output};

use planwright_testkit::servers::Llama;
use serde_json::Value;

struct Terminal {
    home: tempfile::TempDir,
    url: String,
}

impl Terminal {
    fn run(&self, words: &[&str]) -> Output {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_subject")).to_owned();
        Command::new(program)
            .args(words)
            .args(["--json", "--model", "tiny", "--window", "4000", "--model-url", &self.url])
            .arg("--data")
            .arg(self.home.path().join("data"))
            .arg("--workspace")
            .arg(self.home.path().join("workspace"))
            .output()
            .unwrap()
    }

    fn rows(&self, words: &[&str]) -> Vec<Value> {
        let output = self.run(words);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words:?}: {text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn a_conversation_with_a_real_server_is_streamed_counted_and_summed_up() {
    let server = Llama::start();
    let home = tempfile::tempdir().unwrap();
    let terminal = Terminal { home, url: server.base_url() };
    let tested = terminal.rows(&["models", "test"]);
    assert_eq!(tested[0]["answers"], true, "{tested:?}");
    for words in ["hello there", "and again", "once more", "and a last time"] {
        terminal.rows(&["chat", words]);
    }
    terminal.rows(&["chat", "/compact"]);
    terminal.rows(&["chat", "are you still there?"]);
    let requests = terminal.rows(&["session", "requests"]);
    let input = |at: usize| requests[at]["request"]["usage"]["input"].as_u64().unwrap();
    assert!(input(0) > 0 && input(1) > input(0), "the server counts: {requests:?}");
    assert!(requests.iter().all(|row| row["request"]["usage"]["output"].as_u64().unwrap() > 0));
    let summed = |row: &&Value| row["request"]["came"].as_str().unwrap().contains("summed up");
    assert_eq!(requests.iter().filter(summed).count(), 1, "{requests:?}");
    let number = requests.last().unwrap()["request"]["seq"].to_string();
    let sent = terminal.rows(&["session", "requests", &number]);
    assert_eq!(sent[0]["request"]["same"], true, "what was sent is rebuilt");
}
