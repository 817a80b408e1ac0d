//! The programs that people run work in the sandbox of commands.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use planwright_domain::{
    identity::Root,
    turn::{CallResult, CallStatus},
};
use planwright_outbound::toolbox_command::{
    Addresses, CommandLimits, CommandToolbox, Lookup, RUN_COMMAND,
};
use planwright_runtime::ports::toolbox::{Ran, ToolRun, Toolbox as _};
use planwright_testkit::tool_run::tool_run;
use serde_json::json;

/// Runs a command in a workspace of its own, with what it may read; says what it printed.
async fn output_of(command: &str, read: Vec<PathBuf>) -> Option<String> {
    output_reaching(command, read, None).await
}

/// The same, under a lease that names `registry.test`, which is this server.
async fn output_reaching(
    command: &str,
    read: Vec<PathBuf>,
    registry: Option<SocketAddr>,
) -> Option<String> {
    if let Err(words) = planwright_sandbox::is_supported() {
        assert!(words.starts_with("commands need Linux 6.12 or newer"), "{words}");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    let limits = CommandLimits { seconds: 120, memory_mib: 4_096, file_mib: 512, read };
    let keeper = Path::new(env!("CARGO_BIN_EXE_planwright"));
    let roots = vec![Root(workspace.display().to_string())];
    let lookup: Lookup = Arc::new(move |_| registry.into_iter().collect());
    let also = registry.into_iter().collect();
    let toolbox = CommandToolbox::open(keeper, roots, limits).unwrap();
    let toolbox = toolbox.reaching(Addresses { also, lookup: Some(lookup) });
    let run = ToolRun {
        hosts: registry.map(|_| "registry.test".to_owned()).into_iter().collect(),
        ..tool_run(RUN_COMMAND, json!({"command": command}))
    };
    match toolbox.run(run).await {
        Ran::Ended(CallResult { status: CallStatus::Done, output, .. }) => Some(output),
        other @ (Ran::Ended(_) | Ran::Unknown { .. }) => panic!("{command}: {other:?}"),
    }
}

fn ends_in(output: &str, expected: &str) {
    let before = output.split("[the sandbox refused").next().unwrap_or_default().trim_end();
    assert!(before.ends_with(expected), "{output}");
}

#[tokio::test]
async fn a_shell_and_its_tools() {
    let command = "set -e; mkdir -p a/b; seq 1 300 | sort -rn | xargs -n 3 | tee a/b/c | wc -l; chmod 700 a; \
        touch -d yesterday a/b/c; cp -r --preserve=mode,timestamps a d; mv d e; tar cf - e | tar tf - | wc -l; find e -type f | head -1; rm -r a e";
    let Some(output) = output_of(command, Vec::new()).await else { return };
    ends_in(&output, "100\n3\ne/b/c");
}

#[tokio::test]
async fn git() {
    let command = "set -e; git init -q a; cd a; git config user.name Ada; git config user.email ada@example.org; \
        echo one > one; git add .; git commit -qm one; git checkout -qb other; echo two > two; git add .; git commit -qm two; \
        git checkout -q -; git merge -q other; git stash list; git clone -q . ../b; git -C ../b log --oneline | wc -l";
    let Some(output) = output_of(command, Vec::new()).await else { return };
    ends_in(&output, "2");
}

#[tokio::test]
async fn cargo_build() {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(sysroot.stdout).unwrap().trim().to_owned();
    let command = format!(
        "set -e; export PATH={sysroot}/bin:$PATH CARGO_HOME=$HOME/cargo; cargo new --vcs none -q hello; cd hello; \
        cargo build -q; target/debug/hello"
    );
    let Some(output) = output_of(&command, vec![sysroot.into()]).await else { return };
    ends_in(&output, "Hello, world!");
}

#[tokio::test]
async fn npm_ci_and_npx() {
    let command = r#"set -e; mkdir dep
        echo '{"name":"dep","version":"1.0.0","bin":{"dep-bin":"bin.js"},"scripts":{"install":"node -p 6"}}' > dep/package.json
        printf '#!/usr/bin/env node\nconsole.log(42)\n' > dep/bin.js
        echo '{"name":"n","version":"1.0.0","dependencies":{"dep":"file:./dep"}}' > package.json
        npm install --package-lock-only --offline --no-audit --silent
        npm ci --offline --no-audit
        npx --offline dep-bin"#;
    let Some(output) = output_of(command, Vec::new()).await else { return };
    ends_in(&output, "42");
}

#[tokio::test]
async fn python() {
    let command = r#"python3 - <<'PROGRAM'
import asyncio, json, pathlib, sqlite3, ssl, subprocess, tempfile, threading, zlib
threading.Thread(target=lambda: pathlib.Path("a").write_text("a")).start()
db = sqlite3.connect("b"); db.execute("create table t (x)"); db.commit()
async def main():
    child = await asyncio.create_subprocess_exec("cat", "a")
    return await child.wait()
print(asyncio.run(main()), subprocess.run(["echo", "x"], capture_output=True).stdout)
PROGRAM"#;
    let Some(output) = output_of(command, Vec::new()).await else { return };
    ends_in(&output, r"0 b'x\n'");
}

/// Writes a wheel whose tool prints a number.
const WHEEL: &str = r#"import zipfile
info = "tool-1.0.dist-info/"
with zipfile.ZipFile("tool-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tool.py", "def main(): print(43)\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\ntool = tool:main\n")
    wheel.writestr(info + "RECORD", "")
"#;

#[tokio::test]
async fn uvx() {
    let uv = uv();
    let command = format!(
        "set -e; python3 - <<'PROGRAM'\n{WHEEL}PROGRAM
        {}/bin/uvx --offline --python /usr/bin/python3 --from ./tool-1.0-py3-none-any.whl tool",
        uv.display()
    );
    let Some(output) = output_of(&command, vec![uv]).await else { return };
    ends_in(&output, "43");
}

fn uv() -> PathBuf {
    let uv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/uv");
    uv.canonicalize().unwrap_or_else(|error| panic!("run tools/uv/install: {error}"))
}

/// A server of files, as registries are. It ends with this value.
struct Registry {
    files: tempfile::TempDir,
    server: Child,
    address: SocketAddr,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Registry {
    /// Holds what this script makes in an empty directory.
    fn of(script: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let made = Command::new("sh").args(["-ec", script]).current_dir(&files).status().unwrap();
        assert!(made.success());
        let mut server = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
            .current_dir(&files)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let address = format!("127.0.0.1:{port}").parse().unwrap();
        Self { files, server, address }
    }

    fn url(&self) -> String {
        assert!(self.files.path().exists());
        format!("http://registry.test:{}", self.address.port())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_clone_from_a_leased_host() {
    let registry = Registry::of(
        "git init -q a; cd a; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one; cd ..; \
        git clone -q --bare a a.git; git -C a.git update-server-info",
    );
    let command = format!("git clone -q {}/a.git b && git -C b log --format=%s", registry.url());
    let output = output_reaching(&command, Vec::new(), Some(registry.address)).await;
    let Some(output) = output else { return };
    ends_in(&output, "one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn npm_ci_from_a_leased_host() {
    let registry = Registry::of(
        r#"mkdir dep; echo '{"name":"dep","version":"1.0.0","main":"a.js"}' > dep/package.json
        echo 'module.exports = 44' > dep/a.js; cd dep; npm pack --silent --pack-destination .. >&2"#,
    );
    let command = format!(
        r#"set -e; echo '{{"name":"n","version":"1.0.0","dependencies":{{"dep":"1.0.0"}}}}' > package.json
        echo '{{"name":"n","version":"1.0.0","lockfileVersion":3,"packages":{{"":{{"name":"n","version":"1.0.0","dependencies":{{"dep":"1.0.0"}}}},
            "node_modules/dep":{{"version":"1.0.0","resolved":"{}/dep-1.0.0.tgz"}}}}}}' > package-lock.json
        npm ci --no-audit --no-update-notifier --fetch-retries 0; node -p 'require("dep")'"#,
        registry.url()
    );
    let output = output_reaching(&command, Vec::new(), Some(registry.address)).await;
    let Some(output) = output else { return };
    ends_in(&output, "44");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uvx_from_a_leased_host() {
    let registry = Registry::of(&format!(
        "mkdir -p simple/tool; cd simple/tool; python3 - <<'PROGRAM'\n{WHEEL}PROGRAM
        echo '<a href=\"tool-1.0-py3-none-any.whl\">tool-1.0-py3-none-any.whl</a>' > index.html"
    ));
    let (uv, url) = (uv(), registry.url());
    let command = format!(
        "{}/bin/uvx --python /usr/bin/python3 --default-index {url}/simple tool",
        uv.display()
    );
    let output = output_reaching(&command, vec![uv], Some(registry.address)).await;
    let Some(output) = output else { return };
    ends_in(&output, "43");
}
