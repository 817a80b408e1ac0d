//! Every system call that is not allowed, by its number, made by a command and by an MCP server in the sandbox.

use std::{collections::BTreeMap, path::Path, process::Command, sync::Arc};

use anyhow::{Context as _, ensure};
use planwright_domain::identity::Root;
use planwright_outbound::{
    toolbox_command::{CommandLimits, CommandToolbox, RUN_COMMAND},
    toolbox_mcp::{Confinement, McpServer, McpToolbox, Pins},
};
use planwright_runtime::ports::toolbox::{Ran, ToolRun, Toolbox};
use planwright_testkit::scratch;
use serde_json::json;

use super::Found;
use planwright_testkit::tool_run::tool_run;

/// More than there are on any processor.
const NUMBERS: i64 = 600;
/// Where the numbers of the x32 interface begin.
const X32: i64 = 0x4000_0000;

/// Makes each call in a child of its own, with zeros for arguments, and prints its number with the error it got; 0 is none.
const CALLS: &str = r"
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def made(number):
    child = os.fork()
    if child == 0:
        signal.alarm(2)
        ctypes.set_errno(0)
        answer = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6)
        os._exit(ctypes.get_errno() if answer == -1 else 0)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1000 + os.WTERMSIG(status)
def calls(numbers):
    return ' '.join('%d=%d' % (number, made(number)) for number in numbers)
";

/// A server of one tool that makes the calls.
const SERVER: &str = r"
import json
for line in sys.stdin:
    asked = json.loads(line)
    if 'id' not in asked:
        continue
    method, result = asked['method'], {}
    if method == 'initialize':
        result = {'protocolVersion': asked['params']['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'caller', 'version': '1'}}
    elif method == 'tools/list':
        result = {'tools': [{'name': 'calls', 'description': 'Makes calls.', 'inputSchema': {'type': 'object'}}]}
    elif method == 'tools/call':
        result = {'content': [{'type': 'text', 'text': calls(NUMBERS)}]}
    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}), flush=True)
";

/// How a refused call ends: not permitted, not there, or not supported by the file system.
const REFUSALS: [i32; 3] = [1, 38, 95];

/// What the kernel lets by before any filter, so that tracing works: the ends of its own probes. Who calls them without one is
/// killed, or told that there is none.
const PROBES: [i64; 2] = [335, 336];

/// Every number that is not allowed, here and in the x32 interface.
fn refused_numbers() -> Vec<i64> {
    let is_probe = |number: i64| cfg!(target_arch = "x86_64") && PROBES.contains(&number);
    let here =
        (0..NUMBERS).filter(|number| !planwright_sandbox::allows(*number) && !is_probe(*number));
    let there = (0..NUMBERS).filter(|_| cfg!(target_arch = "x86_64")).map(|number| X32 + number);
    here.chain(there).collect()
}

fn program(numbers: &[i64], rest: &str) -> String {
    format!("{CALLS}\nNUMBERS = {numbers:?}\n{rest}")
}

/// What a program printed: each number, and how the call ended.
fn ends_of(printed: &str) -> BTreeMap<i64, i32> {
    let pairs = printed.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(number, end)| Some((number.parse().ok()?, end.parse().ok()?))).collect()
}

/// The calls that were made, in words.
fn through(by: &str, numbers: &[i64], ends: &BTreeMap<i64, i32>) -> Vec<String> {
    let is_refused = |number: &&i64| !ends.get(number).is_some_and(|end| REFUSALS.contains(end));
    let words = |number| format!("{by} made call {number}: {:?}", ends.get(number));
    numbers.iter().filter(is_refused).map(words).collect()
}

async fn output_of(toolbox: &dyn Toolbox, run: ToolRun) -> anyhow::Result<String> {
    match toolbox.run(run).await {
        Ran::Ended(result) => Ok(result.output),
        Ran::Unknown { why } => anyhow::bail!(why),
    }
}

async fn by_command(home: &Path, numbers: &[i64]) -> anyhow::Result<String> {
    let keeper = std::env::current_exe()?.with_file_name("planwright");
    let roots = vec![Root(home.canonicalize()?.display().to_string())];
    let limits = CommandLimits { seconds: 60, memory_mib: 1_024, file_mib: 16, read: Vec::new() };
    let toolbox = CommandToolbox::open(&keeper, roots, limits).map_err(anyhow::Error::msg)?;
    std::fs::write(home.join("calls.py"), program(numbers, "print(calls(NUMBERS))"))?;
    let arguments = json!({"command": "python3 calls.py"});
    output_of(&toolbox, tool_run(RUN_COMMAND, &arguments)).await
}

async fn by_server(home: &Path, numbers: &[i64]) -> anyhow::Result<String> {
    let keeper = std::env::current_exe()?.with_file_name("planwright");
    let (read, write, network) = (Vec::new(), Vec::new(), true);
    let server = McpServer::Child {
        command: vec!["python3".into(), "-c".into(), program(numbers, SERVER)],
        environment: BTreeMap::new(),
        directory: home.to_owned(),
        confinement: Some(Confinement { keeper, read, write, network }),
    };
    let pins = Arc::new(Pins::open(home.join("pins"))?);
    let toolbox = McpToolbox::new("caller", server, BTreeMap::new(), pins);
    toolbox.refresh().await;
    if let Some(trouble) = toolbox.trouble() {
        anyhow::bail!(trouble);
    }
    output_of(&toolbox, tool_run("caller__calls", json!({}))).await
}

/// A machine that cannot confine has nothing to show, which is not the same as nothing that got through.
pub(super) async fn refused_calls() -> anyhow::Result<Found> {
    planwright_sandbox::is_supported().map_err(anyhow::Error::msg)?;
    let home = scratch::directory("escapes")?;
    let numbers = refused_numbers();
    let command = by_command(home.path(), &numbers).await?;
    let named = command.split_once("[the sandbox refused: ").map(|(_, named)| named);
    let named = named.context("nothing was named as refused")?.split(", ").count();
    ensure!(named > 50, "only {named} calls were named as refused");
    let server = by_server(home.path(), &numbers).await?;
    let mut got = through("a command", &numbers, &ends_of(&command));
    got.extend(through("an MCP server", &numbers, &ends_of(&server)));
    // What does no harm with zeros for arguments: the same programs get it where nothing confines them.
    let harmless = harmless();
    let free = Command::new("python3")
        .args(["-c", &program(&harmless, "print(calls(NUMBERS))")])
        .output()?;
    let free = ends_of(&String::from_utf8_lossy(&free.stdout));
    let free = through("nobody", &harmless, &free).len();
    Ok(Found {
        what: format!(
            "{} calls by number, each by a command and by an MCP server, {named} of them named in the output",
            numbers.len()
        ),
        through: got,
        control: free == harmless.len(),
    })
}

/// `setsid` in a child, and System V's shared memory without a size, which answers with another error.
fn harmless() -> Vec<i64> {
    match std::env::consts::ARCH {
        "aarch64" => vec![157, 194],
        _ => vec![112, 29],
    }
}
