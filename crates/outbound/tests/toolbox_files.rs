//! File tools stay under their root, write whole files or nothing, and say what they did.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{fs, os::unix::fs::symlink, path::Path};

use planwright_domain::{
    effect::{Effect, Repeat, Touched},
    id::CallId,
    identity::SessionIdentity,
    turn::{CallResult, CallStatus},
};
use planwright_outbound::{data_directory::DataDirectory, toolbox_files::FileToolbox};
use planwright_runtime::ports::toolbox::{Ran, ToolRun, Toolbox};
use serde_json::{Value, json};

struct Workspace {
    home: tempfile::TempDir,
    toolbox: FileToolbox,
}

impl Workspace {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        fs::write(home.path().join("secret.txt"), "secret").unwrap();
        let toolbox =
            FileToolbox::open(&home.path().join("workspace"), &home.path().join("data")).unwrap();
        Self { home, toolbox }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("workspace").join(name)
    }

    async fn run(&self, tool: &str, arguments: Value) -> CallResult {
        let ran = self
            .toolbox
            .run(ToolRun {
                identity: SessionIdentity::parse("cli:talk-0001").unwrap(),
                call: CallId(uuid::Uuid::from_u128(1)),
                attempt: 1,
                tool: tool.into(),
                arguments: arguments.to_string(),
                plan: None,
                context: None,
            })
            .await;
        match ran {
            Ran::Ended(result) => result,
            Ran::Unknown { why } => panic!("{why}"),
        }
    }

    async fn done(&self, tool: &str, arguments: Value) -> String {
        let result = self.run(tool, arguments).await;
        assert_eq!(result.status, CallStatus::Done, "{}", result.output);
        result.output
    }

    async fn failed(&self, tool: &str, arguments: Value) -> String {
        let result = self.run(tool, arguments).await;
        assert_eq!(
            (result.status, &result.touched),
            (CallStatus::Failed, &vec![]),
            "{}",
            result.output
        );
        result.output
    }
}

#[tokio::test]
async fn a_file_is_written_listed_found_read_and_edited() {
    let workspace = Workspace::new();
    let result =
        workspace.run("write_file", json!({"path": "a/b.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(result.touched, [Touched::Wrote { path: "a/b.txt".into(), bytes: 8 }]);
    assert_eq!(workspace.done("list_files", json!({})).await, "a/b.txt (8 bytes)");
    for (pattern, found) in [
        ("a/*.txt", "a/b.txt"),
        ("**/*.txt", "a/b.txt"),
        ("./a/{b,c}.t?t", "a/b.txt"),
        ("*.txt", "no file fits"),
        ("../**", "no file fits"),
    ] {
        let told = workspace.done("glob_files", json!({"pattern": pattern})).await;
        assert_eq!(told, found, "{pattern}");
    }
    let inside = json!({"pattern": "*.txt", "path": "a"});
    assert_eq!(workspace.done("glob_files", inside).await, "a/b.txt");
    workspace.failed("glob_files", json!({"pattern": "a[", "path": "a"})).await;
    workspace.failed("glob_files", json!({"pattern": "*", "path": "../"})).await;
    assert_eq!(workspace.done("grep_files", json!({"pattern": "^t"})).await, "a/b.txt:2: two");
    assert_eq!(workspace.done("read_file", json!({"path": "./a/b.txt"})).await, "one\ntwo\n");
    assert_eq!(
        workspace.done("read_file", json!({"path": "a/b.txt", "first_line": 2, "lines": 1})).await,
        "two"
    );
    workspace.done("edit_file", json!({"path": "/a/b.txt", "old": "two", "new": "three"})).await;
    assert_eq!(fs::read_to_string(workspace.path("a/b.txt")).unwrap(), "one\nthree\n");
    let left: Vec<_> = fs::read_dir(workspace.path("a")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn an_edit_needs_text_that_stands_exactly_once() {
    let workspace = Workspace::new();
    workspace.done("write_file", json!({"path": "a", "content": "x x"})).await;
    let words = workspace.failed("edit_file", json!({"path": "a", "old": "x", "new": "y"})).await;
    assert_eq!(
        words,
        "old must stand exactly once in a, and stands 2 times; read the file and give more of it"
    );
    workspace.failed("edit_file", json!({"path": "a", "old": "", "new": "y"})).await;
    assert_eq!(fs::read_to_string(workspace.path("a")).unwrap(), "x x");
}

#[tokio::test]
async fn no_path_leads_out_of_the_root() {
    let workspace = Workspace::new();
    symlink(workspace.home.path(), workspace.path("up")).unwrap();
    symlink(workspace.home.path().join("secret.txt"), workspace.path("link")).unwrap();
    for path in [
        "../secret.txt",
        "a/../../secret.txt",
        "up/secret.txt",
        "link",
        "./.././secret.txt",
        "up/../secret.txt",
    ] {
        workspace.failed("read_file", json!({"path": path})).await;
        workspace.failed("write_file", json!({"path": path, "content": "overwritten"})).await;
    }
    assert_eq!(
        workspace.done("grep_files", json!({"pattern": "secret"})).await,
        "no match",
        "links are not followed"
    );
    assert_eq!(fs::read_to_string(workspace.home.path().join("secret.txt")).unwrap(), "secret");
    let absolute = workspace.home.path().join("secret.txt").display().to_string();
    workspace.failed("read_file", json!({"path": absolute})).await;
}

#[tokio::test]
async fn limits_are_refused_in_words() {
    let workspace = Workspace::new();
    let long = "x".repeat(1024 * 1024 + 1);
    let words = workspace.failed("write_file", json!({"path": "a", "content": long})).await;
    assert_eq!(words, "the content has 1048577 bytes, and the limit is 1048576");
    fs::write(workspace.path("big"), &long).unwrap();
    workspace.failed("read_file", json!({"path": "big"})).await;
    workspace.failed("grep_files", json!({"pattern": "("})).await;
}

#[tokio::test]
async fn arguments_are_checked_before_a_tool_sees_them() {
    let toolbox = Workspace::new().toolbox;
    assert!(toolbox.check("write_file", "{\"path\":\"a\",\"content\":\"b\"}").is_ok());
    assert!(
        toolbox
            .check("write_file", "{\"path\":\"a\"}")
            .unwrap_err()
            .contains("missing field `content`")
    );
    assert!(
        toolbox
            .check("write_file", "{\"path\":\"a\",\"content\":\"b\",\"approved\":true}")
            .unwrap_err()
            .contains("approved")
    );
    assert!(toolbox.check("fly", "{}").unwrap_err().contains("no tool"));
}

#[tokio::test]
async fn reading_may_be_repeated_and_writing_may_not() {
    let toolbox = Workspace::new().toolbox;
    let facts: Vec<_> = toolbox
        .tools()
        .iter()
        .map(|tool| (tool.spec.name.clone(), tool.spec.effect, tool.facts.repeat))
        .collect();
    for (name, effect, repeat) in facts {
        let expected = if name.starts_with("write") || name.starts_with("edit") {
            (Effect::Write, Repeat::AskFirst)
        } else {
            (Effect::Read, Repeat::Harmless)
        };
        assert_eq!((effect, repeat), expected, "{name}");
    }
}

#[test]
fn a_workspace_that_overlaps_the_data_directory_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let open = |root: &Path, data: &Path| {
        fs::create_dir_all(data).unwrap();
        FileToolbox::open(root, data).map(drop).map_err(|error| error.to_string())
    };
    let path = |name: &str| home.path().join(name);
    for (root, data) in [("a", "a"), ("b", "b/data"), ("c/workspace", "c")] {
        assert!(open(&path(root), &path(data)).unwrap_err().contains("lie inside each other"));
    }
    assert!(open(&path("d/workspace"), &path("d/data")).is_ok());
}

#[test]
fn a_data_directory_has_one_owner_and_names_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    let first = DataDirectory::own(&path, "the first").unwrap();
    let refused = DataDirectory::own(&path, "the second").unwrap_err().to_string();
    assert!(refused.contains(&format!("process {} (the first)", std::process::id())), "{refused}");
    drop(first);
    DataDirectory::own(&path, "the second").unwrap();
}

#[test]
fn a_data_directory_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(DataDirectory::own(&path, "x").unwrap_err().to_string().contains("chmod 700"));
}
