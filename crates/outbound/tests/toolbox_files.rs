//! File tools stay under their root, write whole files or nothing, and say what they did.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use planwright_domain::{
    digest::Digest,
    effect::{Effect, FileChange, Repeat, Touched},
    identity::Root,
    turn::{CallResult, CallStatus},
};
use planwright_outbound::{data_directory::DataDirectory, toolbox_files::FileToolbox};
use planwright_runtime::ports::toolbox::{Ran, ToolRun, Toolbox};
use planwright_testkit::tool_run::tool_run;
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
        self.run_in(None, tool, arguments).await
    }

    async fn run_in(&self, root: Option<Root>, tool: &str, arguments: Value) -> CallResult {
        let ran = self.toolbox.run(ToolRun { root, ..tool_run(tool, arguments) }).await;
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
async fn a_call_works_in_its_sessions_root_and_in_no_other() {
    let mut place = Workspace::new();
    let project = place.home.path().join("project");
    fs::create_dir(&project).unwrap();
    let data = place.home.path().join("data");
    place.toolbox = FileToolbox::open(&place.home.path().join("workspace"), &data)
        .and_then(|toolbox| toolbox.and_under(&project, &data))
        .unwrap();
    let [workspace, root] = place.toolbox.roots().try_into().unwrap();
    assert_eq!(root.0, project.canonicalize().unwrap().display().to_string());
    let write = json!({"path": "a.txt", "content": "there"});
    let wrote = place.run_in(Some(root.clone()), "write_file", write.clone()).await;
    assert_eq!(wrote.status, CallStatus::Done, "{}", wrote.output);
    assert!(project.join("a.txt").exists() && !place.path("a.txt").exists());
    for (path, tool) in [("../workspace/x", "write_file"), ("../secret.txt", "read_file")] {
        let arguments = if tool == "read_file" {
            json!({"path": path})
        } else {
            json!({"path": path, "content": "out"})
        };
        let out = place.run_in(Some(root.clone()), tool, arguments).await;
        assert_eq!(out.status, CallStatus::Failed, "{}", out.output);
    }
    for default in [None, Some(workspace)] {
        let wrote = place.run_in(default, "write_file", write.clone()).await;
        assert_eq!(wrote.status, CallStatus::Done, "{}", wrote.output);
    }
    assert!(place.path("a.txt").exists());
    // A root that is not configured any more is not replaced by another one.
    let gone = Root(place.home.path().join("gone").display().to_string());
    let refused = place.run_in(Some(gone), "write_file", write).await;
    assert_eq!(refused.status, CallStatus::Failed);
    assert!(
        refused.output.contains("workspace.roots") && refused.output.contains("nothing was done")
    );
    fs::create_dir(project.join("inner")).unwrap();
    let nested = FileToolbox::open(&place.home.path().join("workspace"), &data)
        .and_then(|toolbox| toolbox.and_under(&project, &data))
        .and_then(|toolbox| toolbox.and_under(&project.join("inner"), &data));
    assert!(nested.is_err(), "a root inside another");
    let inside = FileToolbox::open(&place.home.path().join("workspace"), &data)
        .and_then(|toolbox| toolbox.and_under(place.home.path(), &data));
    assert!(inside.is_err(), "a root around the data directory");
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
async fn a_written_file_says_what_it_held_before_and_which_lines_differ() {
    let place = Workspace::new();
    let write = |content: &str| json!({"path": "notes/a.txt", "content": content});
    let changed = |before: Option<&[u8]>, after: &str, diff: Option<&str>| FileChange {
        path: "notes/a.txt".into(),
        before: before.map(Digest::of),
        after: Digest::of(after.as_bytes()),
        diff: diff.map(str::to_owned),
    };
    let wrote = async |tool: &str, arguments| {
        let result = place.run(tool, arguments).await;
        assert_eq!(result.status, CallStatus::Done, "{}", result.output);
        result.changes
    };
    assert_eq!(
        wrote("write_file", write("one\ntwo\n")).await,
        [changed(None, "one\ntwo\n", Some("@@ -0,0 +1,2 @@\n+one\n+two\n"))]
    );
    let edit = json!({"path": "notes/a.txt", "old": "two\n", "new": "three"});
    let diff = "@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n";
    assert_eq!(
        wrote("edit_file", edit).await,
        [changed(Some(b"one\ntwo\n"), "one\nthree", Some(diff))]
    );
    // The same again changes nothing, and says so.
    assert_eq!(
        wrote("write_file", write("one\nthree")).await,
        [changed(Some(b"one\nthree"), "one\nthree", Some(""))]
    );
    // What is no text, and what is longer than any file that is read, leaves its digest.
    let long = "line\n".repeat(300_000);
    for held in [&b"\xff\x00"[..], long.as_bytes()] {
        fs::write(place.path("notes/a.txt"), held).unwrap();
        let changes = wrote("write_file", write("text\n")).await;
        assert_eq!(changes, [changed(Some(held), "text\n", None)]);
    }
    // What only reads, and what failed, has made nothing of any file.
    assert_eq!(wrote("read_file", json!({"path": "notes/a.txt"})).await, []);
    let failed = place.run("write_file", json!({"path": "notes", "content": ""})).await;
    assert_eq!((failed.status, failed.changes), (CallStatus::Failed, vec![]));
}

#[tokio::test]
async fn two_long_texts_without_a_line_in_common_are_told_apart_soon() {
    let place = Workspace::new();
    let text = |word: &str| (0..60_000).map(|at| format!("{word}{at}\n")).collect::<String>();
    place.done("write_file", json!({"path": "a.txt", "content": text("a")})).await;
    let begun = std::time::Instant::now();
    let result = place.run("write_file", json!({"path": "a.txt", "content": text("b")})).await;
    let diff = result.changes[0].diff.as_deref().unwrap_or_default();
    assert!(diff.contains("\n-a0\n") && diff.contains("\n+b0\n") && diff.ends_with("+b59999\n"));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
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

/// A pipe that nobody writes into: to open it waits for ever.
#[tokio::test]
async fn a_pipe_in_the_workspace_is_refused_and_holds_nobody_up() {
    let workspace = Workspace::new();
    workspace.done("write_file", json!({"path": "notes.txt", "content": "a line\n"})).await;
    let made = std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status();
    assert!(made.unwrap().success());
    symlink("pipe", workspace.path("link")).unwrap();
    let calls = async {
        for path in ["pipe", "link"] {
            let read = workspace.failed("read_file", json!({"path": path})).await;
            assert_eq!(read, format!("{path} is not a plain file"));
            let edit = json!({"path": path, "old": "a", "new": "b"});
            let edited = workspace.failed("edit_file", edit).await;
            assert_eq!(edited, format!("{path} is not a plain file"));
            let write = json!({"path": path, "content": "b"});
            let written = workspace.failed("write_file", write).await;
            assert_eq!(written, format!("{path} is there and is not a plain file"));
        }
        let found = workspace.done("grep_files", json!({"pattern": "line"})).await;
        assert_eq!(found, "notes.txt:1: a line");
        assert_eq!(workspace.done("list_files", json!({})).await, "notes.txt (7 bytes)");
    };
    tokio::time::timeout(Duration::from_secs(10), calls).await.unwrap();
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

#[test]
fn the_data_directory_of_a_node_and_that_of_an_installation_are_never_the_same() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("node");
    drop(DataDirectory::own_for_node(&path, "a node").unwrap());
    let refused = DataDirectory::own_for_installation(&path, "a terminal").unwrap_err().to_string();
    assert!(refused.contains("belongs to a cluster node that is not running"), "{refused}");
    assert!(refused.contains("--server URL"), "{refused}");
    DataDirectory::own_for_node(&path, "the node again").unwrap();
    let path = home.path().join("local");
    drop(DataDirectory::own_for_installation(&path, "a terminal").unwrap());
    fs::write(path.join("journal.sqlite"), "").unwrap();
    let refused = DataDirectory::own_for_node(&path, "a node").unwrap_err().to_string();
    assert!(refused.contains("holds the journal of a local installation"), "{refused}");
    DataDirectory::own_for_installation(&path, "the terminal again").unwrap();
}

#[test]
fn a_call_is_aimed_at_where_a_path_really_is() {
    let workspace = Workspace::new();
    for directory in ["docs/deep", "other"] {
        fs::create_dir_all(workspace.path(directory)).unwrap();
    }
    symlink("../other", workspace.path("docs/link")).unwrap();
    symlink("../../secret.txt", workspace.path("docs/out")).unwrap();
    symlink("../..", workspace.path("docs/up")).unwrap();
    for (spelled, real) in [
        ("docs/a.txt", "docs/a.txt"),
        ("/docs/./deep/a.txt", "docs/deep/a.txt"),
        ("docs/link/a.txt", "other/a.txt"),
        ("docs/link/new/a.txt", "other/new/a.txt"),
        ("docs/new/a.txt", "docs/new/a.txt"),
        ("a.txt", "a.txt"),
        // The link itself is replaced; what it leads to is not written.
        ("docs/out", "docs/out"),
        // What climbs and what leads out stays as it is spelled: no lease covers the one, and the other fails.
        ("docs/../a.txt", "docs/../a.txt"),
        ("docs/up/a.txt", "docs/up/a.txt"),
    ] {
        for (tool, arguments) in [
            ("write_file", json!({"path": spelled, "content": ""})),
            ("edit_file", json!({"path": spelled, "old": "a", "new": "b"})),
        ] {
            let aim = workspace.toolbox.aim(None, tool, &arguments.to_string());
            assert_eq!(aim.paths.into_iter().collect::<Vec<_>>(), [real], "{tool} {spelled}");
        }
    }
}
