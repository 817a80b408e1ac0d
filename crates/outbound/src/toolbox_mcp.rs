//! Tools of an MCP server: a child process over stdio, or streamable HTTP.
//!
//! Nothing that a server says of itself is trusted. Its tools are `external` and never repeated unasked
//! unless the operator pins them otherwise; the schema that a tool had when it was first seen is pinned,
//! and a tool that comes with another is quarantined until the operator accepts it. A child gets a clean
//! environment. A call whose connection ends before its answer has an unknown outcome, and says so; so has one that
//! takes too long, and its server is told to stop.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use jsonschema::Validator;
use planwright_domain::{
    digest::Digest,
    effect::{Effect, Repeat},
    tools::ToolSpec,
    turn::{CallResult, CallStatus},
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};
use rmcp::{
    RoleClient, ServiceError, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, ContentBlock},
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};

#[cfg(target_os = "linux")]
pub mod keeper;
mod pins;

pub use pins::Pins;

/// The word after the program's name that makes it the keeper of a server: it confines itself and becomes the server.
pub const KEEPER: &str = "keep-server";
/// How long a server may take to start and to greet.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How much is kept of what a server writes beside the protocol, and how long is waited for the end of it.
const LAST_WORDS_BYTES: usize = 1_024;
const LAST_WORDS_MAX: Duration = Duration::from_millis(200);
/// How long a call may take, unless something else is said.
const CALL_MAX: Duration = Duration::from_secs(60);
/// How long it may take to list its tools.
const LIST_MAX: Duration = Duration::from_secs(5);
/// How long a server that could not be reached is left alone.
const REST: Duration = Duration::from_secs(30);
/// The longest name that models take.
const NAME_CHARS_MAX: usize = 64;
/// The longest description that the model is given.
const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// How many tools one server may bring.
const TOOLS_MAX: usize = 200;

/// Where a server is.
#[derive(Debug, Clone)]
pub enum McpServer {
    /// A child process that speaks over its standard streams.
    Child {
        /// The program and its arguments.
        command: Vec<String>,
        /// What its environment holds, besides `PATH`.
        environment: BTreeMap<String, String>,
        /// Where it works.
        directory: PathBuf,
        /// What it may reach; without this it may reach what this program can.
        confinement: Option<Confinement>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// The bearer token, if it wants one.
        token: Option<String>,
    },
}

/// What a server may reach that runs beside us.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// The program that confines itself and then becomes the server.
    pub keeper: PathBuf,
    /// What it may read and execute besides the system's programs.
    pub read: Vec<PathBuf>,
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// Whether it may speak over the network.
    pub network: bool,
}

/// What the operator says of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Pinned {
    /// What it does to the world.
    pub effect: Effect,
    /// Whether it may be repeated unasked.
    pub repeat: Repeat,
}

/// The tools of one server.
pub struct McpToolbox {
    name: String,
    server: McpServer,
    pinned: BTreeMap<String, Pinned>,
    pins: Arc<Pins>,
    call_max: Duration,
    connection: tokio::sync::Mutex<Connection>,
    listed: RwLock<Listed>,
    /// The process that was started last, with all that it started: a server that is confined cannot leave the group.
    group: Mutex<Group>,
    /// A directory of the server's own, from its first start on.
    scratch: OnceLock<tempfile::TempDir>,
}

/// A process and all that it started. They end with this value.
#[derive(Default)]
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A server that answers in time.
async fn greeting<S, E: std::fmt::Display>(
    greeted: impl Future<Output = Result<S, E>>,
) -> Result<S, String> {
    timeout(CONNECT_MAX, greeted)
        .await
        .map_err(|_| format!("no greeting within {} s", CONNECT_MAX.as_secs()))?
        .map_err(|error| error.to_string())
}

/// The end of what a server wrote beside the protocol. It is read to its end, so that no server waits for a reader.
struct LastWords {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: tokio::task::JoinHandle<()>,
}

impl LastWords {
    fn of(errors: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let keeps = kept.clone();
        let reader = tokio::spawn(async move {
            let Some(mut errors) = errors else { return };
            let mut piece = [0; LAST_WORDS_BYTES];
            while let Ok(read @ 1..) = errors.read(&mut piece).await {
                let mut kept = keeps.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(piece.iter().take(read));
                let over = kept.len().saturating_sub(LAST_WORDS_BYTES);
                kept.drain(..over);
            }
        });
        Self { kept, reader }
    }

    /// Why a server did not answer, and what it wrote.
    async fn after(self, why: String) -> String {
        let _ = timeout(LAST_WORDS_MAX, self.reader).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&kept).trim() {
            "" => why,
            words => format!("{why}; it wrote: {words}"),
        }
    }
}

#[derive(Default)]
enum Connection {
    #[default]
    None,
    Open(Arc<RunningService<RoleClient, ()>>),
    Resting(tokio::time::Instant),
}

#[derive(Default)]
struct Listed {
    tools: Arc<Vec<Tool>>,
    /// By our name: the server's own, and what checks the arguments.
    own: BTreeMap<String, (String, Arc<Validator>)>,
    trouble: Option<String>,
}

impl McpToolbox {
    /// The tools of this server, under this name. Nothing is reached before the first refresh.
    #[must_use]
    pub fn new(
        name: &str,
        server: McpServer,
        pinned: BTreeMap<String, Pinned>,
        pins: Arc<Pins>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            server,
            pinned,
            pins,
            call_max: CALL_MAX,
            connection: tokio::sync::Mutex::default(),
            listed: RwLock::default(),
            group: Mutex::default(),
            scratch: OnceLock::new(),
        }
    }

    /// The same, with this as the longest time that a call may take.
    #[must_use]
    pub fn within(self, call_max: Duration) -> Self {
        Self { call_max, ..self }
    }

    /// Whether it is a process on this machine that is not confined.
    #[must_use]
    pub fn is_unconfined(&self) -> bool {
        match &self.server {
            McpServer::Child { confinement, .. } => confinement.is_none(),
            McpServer::Http { .. } => false,
        }
    }

    /// Why there are no tools of it, if there are none.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    async fn connected(&self) -> Result<Arc<RunningService<RoleClient, ()>>, String> {
        let mut connection = self.connection.lock().await;
        match &*connection {
            Connection::Open(service) if !service.is_transport_closed() => {
                return Ok(service.clone());
            }
            Connection::Resting(since) if since.elapsed() < REST => {
                return Err(format!("the MCP server {} could not be reached just now", self.name));
            }
            Connection::None | Connection::Open(_) | Connection::Resting(_) => {}
        }
        match self.connect().await {
            Ok(service) => {
                let service = Arc::new(service);
                *connection = Connection::Open(service.clone());
                Ok(service)
            }
            Err(why) => {
                *connection = Connection::Resting(tokio::time::Instant::now());
                Err(format!("the MCP server {} cannot be reached: {why}", self.name))
            }
        }
    }

    /// The process of the server, confined if that is asked for.
    fn child(
        &self,
        command: &[String],
        directory: &Path,
        confinement: Option<&Confinement>,
    ) -> Result<Command, String> {
        let (program, arguments) = command.split_first().ok_or("no command is named")?;
        let Some(Confinement { keeper, read, write, network }) = confinement else {
            let mut child = Command::new(program);
            child.args(arguments);
            return Ok(child);
        };
        if self.scratch.get().is_none() {
            let prefix = format!("planwright-mcp-{}-", self.name);
            let made = tempfile::Builder::new().prefix(&prefix).tempdir();
            let _ = self.scratch.set(made.map_err(|error| error.to_string())?);
        }
        let scratch = self.scratch.get().ok_or("there is no directory for it")?;
        let order = json!({
            "command": command, "directory": directory, "scratch": scratch.path(),
            "read": read, "write": write, "network": network,
        });
        let mut child = Command::new(keeper);
        child.arg(KEEPER).arg(order.to_string());
        Ok(child)
    }

    async fn connect(&self) -> Result<RunningService<RoleClient, ()>, String> {
        match &self.server {
            McpServer::Child { command, environment, directory, confinement } => {
                let mut child = self.child(command, directory, confinement.as_ref())?;
                child.env_clear().envs(environment).current_dir(directory);
                child.envs(std::env::var_os("PATH").map(|path| ("PATH", path))).kill_on_drop(true);
                child.process_group(0);
                let started = TokioChildProcess::builder(child).stderr(Stdio::piped()).spawn();
                let (transport, errors) =
                    started.map_err(|error| format!("{command:?}: {error}"))?;
                let words = LastWords::of(errors);
                let group = transport.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                *self.group.lock().unwrap_or_else(PoisonError::into_inner) = Group(group);
                match greeting(().serve(transport)).await {
                    Ok(greeted) => Ok(greeted),
                    Err(why) => Err(words.after(why).await),
                }
            }
            McpServer::Http { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                if let Some(token) = token {
                    config = config.auth_header(token.clone());
                }
                let transport = StreamableHttpClientTransport::from_config(config);
                greeting(().serve(transport)).await
            }
        }
    }

    async fn list(&self) -> Result<Listed, String> {
        let service = self.connected().await?;
        let tools = timeout(LIST_MAX, service.list_all_tools())
            .await
            .map_err(|_| {
                format!("{} did not list its tools within {} s", self.name, LIST_MAX.as_secs())
            })?
            .map_err(|error| format!("{} did not list its tools: {error}", self.name))?;
        let (mut listed, mut own) = (Vec::new(), BTreeMap::new());
        for tool in tools.into_iter().take(TOOLS_MAX) {
            let schema = Value::Object((*tool.input_schema).clone());
            let Ok(validator) = jsonschema::validator_for(&schema) else { continue };
            let name = named(&self.name, &tool.name);
            let pinned = self.pinned.get(tool.name.as_ref());
            let description: String =
                tool.description.unwrap_or_default().chars().take(DESCRIPTION_CHARS_MAX).collect();
            let effect = pinned.map_or(Effect::External, |pinned| pinned.effect);
            let repeat = pinned.map_or(Repeat::AskFirst, |pinned| pinned.repeat);
            let spec = ToolSpec { name: name.clone(), description, parameters: schema, effect };
            let is_unconfined = self.is_unconfined();
            let listing = Tool { is_unconfined, ..Tool::new(spec, repeat) };
            if !self.pins.admits(&name, listing.facts.schema)? {
                continue;
            }
            own.insert(name, (tool.name.into_owned(), Arc::new(validator)));
            listed.push(listing);
        }
        Ok(Listed { tools: Arc::new(listed), own, trouble: None })
    }

    fn own(&self, tool: &str) -> Option<(String, Arc<Validator>)> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner).own.get(tool).cloned()
    }
}

#[async_trait]
impl Toolbox for McpToolbox {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner).tools.clone()
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let (_, validator) = self.own(tool).ok_or_else(|| format!("there is no tool {tool:?}"))?;
        let value = object(arguments)?;
        let problems: Vec<_> = validator
            .iter_errors(&Value::Object(value))
            .take(3)
            .map(|problem| problem.to_string())
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(format!("the arguments of {tool} do not fit: {}", problems.join("; ")))
        }
    }

    async fn refresh(&self) {
        let listed = self.list().await.unwrap_or_else(|why| {
            tracing::warn!(server = self.name, why, event = "mcp_unreachable");
            Listed { trouble: Some(why), ..Listed::default() }
        });
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = listed;
    }

    async fn run(&self, run: ToolRun) -> Ran {
        let failed = |output: String| Ran::Ended(CallResult::failed(output));
        let Some((own, _)) = self.own(&run.tool) else {
            return failed(format!("there is no tool {:?} any more", run.tool));
        };
        let (service, arguments) = match (self.connected().await, object(&run.arguments)) {
            (Ok(service), Ok(arguments)) => (service, arguments),
            (Err(why), _) | (_, Err(why)) => return failed(why),
        };
        let params = CallToolRequestParams::new(own).with_arguments(arguments);
        // A call that is dropped is cancelled at the server.
        match timeout(self.call_max, service.call_tool(params)).await {
            Ok(Ok(result)) => Ran::Ended(call_result(result)),
            Ok(Err(ServiceError::McpError(error))) => failed(error.message.into_owned()),
            Err(_) => {
                let (name, seconds) = (&self.name, self.call_max.as_secs());
                Ran::Unknown {
                    why: format!("{name} did not answer within {seconds} s, and was told to stop"),
                }
            }
            Ok(Err(error)) => {
                Ran::Unknown { why: format!("{} ended before it answered ({error})", self.name) }
            }
        }
    }
}

/// What a server answered, as the model reads it.
fn call_result(result: CallToolResult) -> CallResult {
    let text = |block: &ContentBlock| match block.as_text() {
        Some(text) => text.text.clone(),
        None => "[something that is not text]".to_owned(),
    };
    let blocks: Vec<_> = result.content.iter().map(text).collect();
    let output = match result.structured_content {
        Some(structured) if blocks.is_empty() => structured.to_string(),
        Some(_) | None => blocks.join("\n"),
    };
    let status = if result.is_error == Some(true) { CallStatus::Failed } else { CallStatus::Done };
    CallResult::of(status, output)
}

fn object(arguments: &str) -> Result<serde_json::Map<String, Value>, String> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|error| format!("the arguments are no object: {error}"))
}

/// `server__tool`, in the letters that models take.
fn named(server: &str, tool: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = format!("{server}__{tool}").chars().map(plain).collect();
    name.chars().take(NAME_CHARS_MAX).collect()
}
