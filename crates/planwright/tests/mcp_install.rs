//! One entry in the configuration of an agent: shown, written, and taken out again.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output, Stdio},
};

fn planwright(home: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_planwright"))
        .args(["--data", home.join("data").to_str().unwrap()])
        .args(words)
        .env("HOME", home)
        .output()
        .unwrap()
}

fn choose_passphrase(home: &Path) {
    let mut choose = Command::new(env!("CARGO_BIN_EXE_planwright"));
    choose.args(["passphrase", "--passphrase-stdin", "--data"]).arg(home.join("data"));
    choose.arg("--workspace").arg(home.join("workspace")).env("HOME", home);
    let mut child = choose.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

fn a_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("data")).unwrap();
    fs::set_permissions(home.path().join("data"), fs::Permissions::from_mode(0o700)).unwrap();
    choose_passphrase(home.path());
    home
}

/// The files as people have them: empty, without servers, with one, with comments.
const FILES: [(&str, &str, &str); 9] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"b\", \"args\": [\"{\", \"}\"]}}}",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed\n{\n  /* { */ \"context_servers\": {\n    // none yet, but \"planwright\": { here is a comment\n    \"x\": {}\n  },\n  \"vim_mode\": true,\n}\n",
    ),
    ("vscode", ".config/Code/User/mcp.json", "{\n  \"servers\": {\n    \"y\": {}\n  }\n}"),
    ("codex", ".codex/config.toml", "model = \"o\"\n\n[mcp_servers.other]\ncommand = \"x\"\n"),
    ("codex", ".codex/config.toml", ""),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "extensions:\n  developer:\n    enabled: true\nGOOSE_MODEL: x\n",
    ),
    ("claude-code", ".claude.json", "{\n  \"mcpServers\": {\n    \"z\": {}\n  }\n}"),
];

#[test]
fn an_entry_is_added_to_what_is_there_and_taken_out_byte_for_byte() {
    for (agent, file, before) in FILES {
        let home = a_home();
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, before).unwrap();
        let words = ["mcp", "--plan", "document", "install", agent, "--yes"];
        let done = planwright(home.path(), &words);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{agent}: {said}{}", String::from_utf8_lossy(&done.stderr));
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.contains("planwright") && after.contains("document"), "{after}");
        assert!(said.contains("will be changed:\n") && said.contains("\n+ "), "{said}");
        if path.extension().is_some_and(|kind| kind == "json") && agent != "zed" {
            let read: serde_json::Value = serde_json::from_str(&after).unwrap();
            assert!(read.to_string().contains("\"mcp\",\"--plan\",\"document\""), "{read}");
        }
        if agent == "codex" {
            let read: toml::Table = after.parse().unwrap();
            assert_eq!(read["mcp_servers"]["planwright"]["args"][0].as_str(), Some("mcp"));
        }
        let again = planwright(home.path(), &words);
        assert_eq!(again.status.code(), Some(1), "it is there already");
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
        let undone = planwright(home.path(), &["mcp", "install", agent, "--undo", "--yes"]);
        assert!(undone.status.success());
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{agent}");
    }
}

#[test]
fn nothing_is_written_unasked_or_before_a_passphrase_was_chosen() {
    let home = a_home();
    let asked = planwright(home.path(), &["mcp", "--plan", "document", "install", "claude-code"]);
    assert!(!asked.status.success());
    let words = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(words.contains("nobody is there to say yes; say it with --yes"), "{words}");
    for entry in fs::read_dir(home.path().join("data")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let early = planwright(home.path(), &["mcp", "install", "claude-code", "--yes"]);
    let words = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(words.contains("no passphrase was chosen yet"), "{words}");
    assert!(!home.path().join(".claude.json").exists());
}
