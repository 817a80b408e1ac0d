//! Commands, in a sandbox: off unless the operator turns them on, and only where the kernel can hold them.
//!
//! Each command has a keeper of its own: this same program, started anew, which starts it once more, confined, as
//! a shell ([`keeper`]). The keeper and all that it starts are one process group that nobody in it can
//! leave, so the end of a call is the end of everything it began.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use planwright_domain::{
    autonomy::AutoExecutionContext,
    effect::{Effect, Repeat, Touched},
    identity::Root,
    tools::ToolSpec,
    turn::{CallResult, CallStatus},
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox, root_not_configured};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

pub mod keeper;
mod proxy;

use self::proxy::{Proxy, Seen};
use crate::egress::Egress;
pub use crate::egress::{Addresses, Lookup};

/// The tool's name.
pub const RUN_COMMAND: &str = "run_command";
/// The word after the program's name that makes it a keeper.
pub const KEEPER: &str = "keep-command";
/// The word that makes it what a keeper starts: it confines itself and becomes the shell.
pub const SHELL: &str = "confine-command";
/// How long a report may be: what a command prints is written in it, and each byte may take six.
const REPORT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// What a command may use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandLimits {
    /// How long it may take.
    pub seconds: u32,
    /// How much memory each of its processes may have.
    pub memory_mib: u32,
    /// How large a file it may write.
    pub file_mib: u32,
    /// What it may read, besides the workspace and the system's programs.
    pub read: Vec<PathBuf>,
}

/// Whose work a command is, as it finds it in its environment.
fn named(context: &AutoExecutionContext) -> Vec<(String, String)> {
    context.attributes().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What a keeper is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    command: String,
    workspace: PathBuf,
    /// A directory of its own, gone afterwards.
    scratch: PathBuf,
    limits: CommandLimits,
    /// Whose work it is, under the canonical names, and how it gets out.
    #[serde(default)]
    environment: Vec<(String, String)>,
    /// The port of the proxy through which it gets out, if it does.
    #[serde(default)]
    proxy: Option<u16>,
}

/// What a keeper reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    /// The sandbox could not be built, so nothing ran.
    Refused(String),
    /// The command ended.
    Ended(Ended),
}

/// How a command ended.
#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    /// Its exit code; none if a signal ended it.
    code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// What it printed, as far as it is kept.
    output: String,
    /// How many bytes more it printed.
    dropped: u64,
    /// The system calls that the sandbox refused, and how often.
    #[serde(default)]
    refused: BTreeMap<String, u64>,
}

/// The tool that runs commands.
#[derive(Debug)]
pub struct CommandToolbox {
    keeper: PathBuf,
    /// The first is that of sessions that have none.
    roots: Vec<Root>,
    limits: CommandLimits,
    addresses: Addresses,
    tools: Arc<Vec<Tool>>,
}

impl CommandToolbox {
    /// Commands in these roots, kept by this program; in words, if this machine cannot hold them.
    pub fn open(keeper: &Path, roots: Vec<Root>, limits: CommandLimits) -> Result<Self, String> {
        planwright_sandbox::is_supported()?;
        let parameters = json!({"type": "object", "required": ["command"],
            "additionalProperties": false, "properties": {"command": {"type": "string"}}});
        let description = "Run a shell command in the workspace, without network but for the hosts that the approved plan leases.".into();
        let (name, effect) = (RUN_COMMAND.into(), Effect::External);
        let spec = ToolSpec { name, description, parameters, effect };
        let tools = Arc::new(vec![Tool::new(spec, Repeat::AskFirst)]);
        let addresses = Addresses::default();
        Ok(Self { keeper: keeper.to_owned(), roots, limits, addresses, tools })
    }

    /// The same, with other addresses.
    #[must_use]
    pub fn reaching(self, addresses: Addresses) -> Self {
        Self { addresses, ..self }
    }

    /// The way out of a call whose lease names hosts.
    async fn proxy(&self, hosts: &BTreeSet<String>) -> std::io::Result<Option<Proxy>> {
        if hosts.is_empty() {
            return Ok(None);
        }
        let egress = Egress::to(hosts.clone(), "the plan's lease", self.addresses.clone());
        Proxy::open(egress).await.map(Some)
    }

    async fn keep(
        &self,
        command: String,
        workspace: PathBuf,
        context: Option<&AutoExecutionContext>,
        proxy: Option<&Proxy>,
    ) -> std::io::Result<Option<Report>> {
        let scratch = tempfile::Builder::new().prefix("planwright-command-").tempdir()?;
        let mut environment = context.map(named).unwrap_or_default();
        environment.extend(proxy.into_iter().flat_map(Proxy::environment));
        let order = Order {
            command,
            workspace,
            scratch: scratch.path().to_owned(),
            limits: self.limits.clone(),
            environment,
            proxy: proxy.map(Proxy::port),
        };
        let keeper = Command::new(&self.keeper)
            .arg(KEEPER)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match keeper {
            Ok(child) => child,
            Err(error) => {
                let why = format!("{} cannot be started: {error}", self.keeper.display());
                return Ok(Some(Report::Refused(why)));
            }
        };
        let group = Group::of(&child);
        let (Some(mut orders), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("the keeper has no streams"));
        };
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        orders.write_all(&line).await?;
        let mut text = Vec::new();
        let limit = Duration::from_secs(u64::from(self.limits.seconds));
        let mut reports = reports.take(REPORT_BYTES_MAX);
        let in_time = timeout(limit, reports.read_to_end(&mut text)).await;
        // The keeper is not waited for yet, so its number is still its own.
        drop(group);
        let is_its_own = child.wait().await?.success();
        drop(orders);
        match in_time {
            Ok(read) => {
                read?;
                // A keeper that was killed, or wrote too much, has reported nothing.
                Ok(serde_json::from_slice(&text).ok().filter(|_| is_its_own))
            }
            Err(_) => {
                let words = format!(
                    "it did not end within {} s, and was killed with all that it had started; what it changed until then stays",
                    self.limits.seconds
                );
                let refused = BTreeMap::new();
                let ended = Ended { code: None, signal: None, output: words, dropped: 0, refused };
                Ok(Some(Report::Ended(ended)))
            }
        }
    }
}

/// A keeper and all that it started. They end with this value.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
}

fn command_in(arguments: &str) -> Result<String, String> {
    let Arguments { command } = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments of {RUN_COMMAND} do not fit: {error}"))?;
    if command.trim().is_empty() || command.contains('\0') {
        return Err("the command is empty or holds a zero byte".into());
    }
    Ok(command)
}

#[async_trait]
impl Toolbox for CommandToolbox {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.tools.clone()
    }

    fn check(&self, _: &str, arguments: &str) -> Result<(), String> {
        command_in(arguments).map(drop)
    }

    async fn run(&self, run: ToolRun) -> Ran {
        let command = match command_in(&run.arguments) {
            Ok(command) => command,
            Err(words) => return ended(CallStatus::Failed, words),
        };
        let root = match &run.root {
            None => self.roots.first(),
            Some(root) => self.roots.iter().find(|known| *known == root),
        };
        let Some(root) = root else {
            return ended(CallStatus::Failed, root_not_configured(run.root.as_ref(), &self.roots));
        };
        let directory = PathBuf::from(&root.0);
        if directory.canonicalize().ok().as_deref() != Some(&*directory) {
            let words = format!("{} was moved or replaced by a link; nothing was run", root.0);
            return ended(CallStatus::Failed, words);
        }
        let proxy = match self.proxy(&run.hosts).await {
            Ok(proxy) => proxy,
            Err(error) => {
                let words = format!("nothing was run: the proxy cannot be opened: {error}");
                return ended(CallStatus::Failed, words);
            }
        };
        let kept = self.keep(command, directory, run.context.as_ref(), proxy.as_ref()).await;
        match kept {
            Ok(Some(Report::Ended(end))) => {
                end.into_ran(&proxy.map(|proxy| proxy.seen()).unwrap_or_default())
            }
            Ok(Some(Report::Refused(why))) => {
                ended(CallStatus::Failed, format!("nothing was run: {why}"))
            }
            Ok(None) => Ran::Unknown { why: "the command took its keeper with it".into() },
            Err(error) => Ran::Unknown { why: format!("the keeper was lost: {error}") },
        }
    }
}

impl Ended {
    /// What came of it, with what it wanted of its proxy.
    fn into_ran(self, seen: &Seen) -> Ran {
        let Self { code, signal, mut output, dropped, refused } = self;
        if dropped > 0 {
            output.push_str(&format!("\n[{dropped} more bytes were not kept]"));
        }
        if !refused.is_empty() {
            let named = refused.into_iter().map(|(name, times)| match times {
                1 => name,
                times => format!("{name} ({times} times)"),
            });
            let named = named.collect::<Vec<_>>().join(", ");
            let apart = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
            output.push_str(&format!("{apart}[the sandbox refused: {named}]\n"));
        }
        for why in &seen.refused {
            output.push_str(&format!("[the proxy refused: {why}]\n"));
        }
        let (status, words) = match (code, signal) {
            (Some(0), _) => (CallStatus::Done, output),
            (Some(code), _) => (CallStatus::Failed, format!("exit code {code}\n{output}")),
            (None, Some(signal)) => {
                (CallStatus::Failed, format!("killed by signal {signal}\n{output}"))
            }
            (None, None) => (CallStatus::Failed, output),
        };
        let reached = seen.reached.iter().map(|host| Touched::Reached { host: host.clone() });
        let touched = reached.collect();
        Ran::Ended(CallResult { touched, ..CallResult::of(status, words) })
    }
}

fn ended(status: CallStatus, output: String) -> Ran {
    Ran::Ended(CallResult::of(status, output))
}
