//! An agent of the same user, with a shell: it reads the token file and tries to approve its own plan.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn planwright(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
    command
        .args(["--data", home.join("data").to_str().unwrap()])
        .args(["--workspace", home.join("workspace").to_str().unwrap()])
        .current_dir(home)
        .env_remove("PLANWRIGHT_LOG");
    command
}

fn up(home: &Path) -> (Server, String) {
    let data = home.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(data.join("config.toml"), "[server]\nbind = \"127.0.0.1:0\"\n").unwrap();
    fs::set_permissions(data.join("config.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    let log = fs::File::create(home.join("log")).unwrap();
    let child = planwright(home)
        .args(["up", "--passphrase-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut server = Server(child);
    server.0.stdin.take().unwrap().write_all(b"the quiet kettle sings\n").unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(text) = fs::read_to_string(data.join("server.json")) {
            let file: Value = serde_json::from_str(&text).unwrap();
            return (server, file["url"].as_str().unwrap().to_owned());
        }
        assert!(Instant::now() < until, "{}", fs::read_to_string(home.join("log")).unwrap());
        sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn what_it_finds_in_the_data_directory_does_not_approve_and_every_attempt_is_in_the_log() {
    let home = tempfile::tempdir().unwrap();
    let (_server, url) = up(home.path());
    let token = fs::read_to_string(home.path().join("data/token")).unwrap().trim().to_owned();
    let client = reqwest::Client::new();
    let ask = |path: &str, body: Value| {
        client.post(format!("{url}{path}")).bearer_auth(&token).json(&body)
    };
    let place: Value = ask("/api/agents", json!({"root": "/p", "plan": "document"}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let session = place["sessionId"].as_str().unwrap();
    let save = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "plan_set_content", "arguments": {"plan_markdown": "# Mine"}}});
    let saved: Value = client
        .post(format!("{url}/mcp"))
        .bearer_auth(place["token"].as_str().unwrap())
        .header("accept", "application/json, text/event-stream")
        .json(&save)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let digest =
        saved["result"]["_meta"]["planwright/review"]["digest"].as_str().unwrap().to_owned();
    // Over HTTP, with the token of the data directory.
    for what in ["shown", "approve"] {
        let answer = ask(&format!("/api/sessions/{session}/plan/{what}"), json!({}))
            .header("if-match", format!("\"{digest}\""))
            .send()
            .await
            .unwrap();
        if what == "approve" {
            assert_eq!(answer.status().as_u16(), 403);
        }
    }
    let line = ask(&format!("/api/sessions/{session}/lines"), json!({"line": "/plan approve"}));
    let said = line.send().await.unwrap().text().await.unwrap();
    assert!(
        said.contains("may_not_decide") || said.contains("not_shown") || said.contains("refused"),
        "{said}"
    );
    // At the command line, without a terminal, and with a passphrase that it guesses.
    for (words, input) in [
        (vec!["plan", "approve"], ""),
        (vec!["--passphrase-stdin", "plan", "approve"], "guessed it\n"),
    ] {
        let mut child = planwright(home.path())
            .args(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(!ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stdout));
    }
    let state: Value = client
        .get(format!("{url}/api/sessions/{session}"))
        .bearer_auth(&token)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(state["plan"]["status"], "Ready", "nothing was approved");
    let log = fs::read_to_string(home.path().join("log")).unwrap();
    for event in ["command_refused", "line_refused"] {
        assert!(
            log.contains(&format!("\"event\":\"{event}\"")),
            "{event} is not in the log:\n{log}"
        );
    }
    assert!(log.contains(session), "{log}");
}
