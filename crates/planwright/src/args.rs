//! The command line's words.

use std::{io::Write as _, net::SocketAddr, path::PathBuf};

use clap::{CommandFactory as _, Parser, Subcommand};
use planwright_domain::{plan::Strategy, refusal::Refusal};

/// A plan is durable, reviewable state and not chat text.
#[derive(Debug, Parser)]
#[command(name = "planwright", version, about, after_help = EXITS)]
pub struct Args {
    /// Where everything is kept; private to you, used by one process at a time.
    #[arg(long, global = true, env = "PLANWRIGHT_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The only files that the agent's tools can reach.
    #[arg(
        long,
        global = true,
        env = "PLANWRIGHT_WORKSPACE",
        value_name = "DIR",
        default_value = "workspace"
    )]
    pub workspace: PathBuf,
    /// The configuration; without it, config.toml in the data directory if there is one.
    #[arg(long, global = true, env = "PLANWRIGHT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Talk to this server instead: another node of a cluster, or the balancer in front of them.
    #[arg(long, global = true, env = "PLANWRIGHT_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// The token for that server; without it, the file token in the data directory.
    #[arg(long, global = true, env = "PLANWRIGHT_TOKEN", hide_env_values = true, hide = true)]
    pub token: Option<String>,
    /// The session to work in, by its key; without it, the one used last.
    #[arg(long, global = true, value_name = "KEY")]
    pub session: Option<String>,
    /// One JSON object a line instead of words.
    #[arg(long, global = true)]
    pub json: bool,
    /// Read the passphrase from the first line of standard input.
    #[arg(long, global = true)]
    pub passphrase_stdin: bool,
    /// The address of the model's server, up to and without the path of the call.
    #[arg(long, global = true, env = "PLANWRIGHT_MODEL_URL", value_name = "URL")]
    pub model_url: Option<String>,
    /// The name of the model there.
    #[arg(long, global = true, env = "PLANWRIGHT_MODEL", value_name = "NAME")]
    pub model: Option<String>,
    /// The key, if the server wants one.
    #[arg(long, global = true, env = "PLANWRIGHT_API_KEY", hide_env_values = true, hide = true)]
    pub api_key: Option<String>,
    /// How many tokens one request to the model may hold.
    #[arg(long, global = true, env = "PLANWRIGHT_WINDOW", value_name = "TOKENS")]
    pub window: Option<usize>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str =
    "Exit codes: 0 fine, 1 failed, 2 wrong words, 3 waits for you, 4 stale digest, 5 denied.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk with the agent; with words, say them and wait for the answer.
    Chat {
        /// Begin a new conversation that works in this directory: the workspace, or one of workspace.roots.
        #[arg(long = "in", value_name = "DIR", conflicts_with = "session")]
        root: Option<PathBuf>,
        /// What to say.
        message: Vec<String>,
    },
    /// Plan work: what waits, what changed, and your decision.
    Plan {
        /// What to do; without it, the status.
        #[command(subcommand)]
        command: PlanCommand,
    },
    /// Let the agent work by itself: on, off, resume, status; words as in a chat.
    Auto {
        /// What to do; without it, the status.
        words: Vec<String>,
    },
    /// Goals, whose tasks share what they find out: add, done, drop, list.
    Goal {
        /// What to do; without it, the list.
        words: Vec<String>,
    },
    /// Tasks, of a goal or alone: add, done, drop, list.
    Task {
        /// What to do; without it, the list.
        words: Vec<String>,
    },
    /// Work that begins by itself: add, off, list.
    Schedule {
        /// What to do; without it, the list.
        words: Vec<String>,
    },
    /// What is remembered: look, save, edit, forget, promote.
    Memory {
        /// Bring in items from before there were scopes, one JSON object with a text a line.
        #[arg(long, value_name = "FILE")]
        import: Option<PathBuf>,
        /// What to do or look for; without words, everything of the session.
        words: Vec<String>,
    },
    /// Conversations: list, start, switch.
    Session {
        /// What to do; without it, the list.
        #[command(subcommand)]
        command: Option<SessionCommand>,
    },
    /// Who uses the installation, and what each may do.
    People {
        /// What to do; without it, the list.
        #[command(subcommand)]
        command: Option<PeopleCommand>,
    },
    /// Choose your passphrase, or change it.
    Passphrase {
        /// Give somebody (without a name, the owner) another one without knowing theirs: all logins end, what was approved waits
        /// for a new decision, and everyone is told for seven days. Needs the server stopped.
        #[arg(long, value_name = "PERSON", num_args = 0..=1, default_missing_value = planwright_domain::actor::OWNER)]
        reset: Option<String>,
    },
    /// Start the server; every other command then becomes its client.
    Up,
    /// Start a node of a cluster.
    Node {
        /// Where the API listens; without it, server.bind.
        #[arg(long, env = "PLANWRIGHT_BIND", value_name = "ADDRESS")]
        bind: Option<SocketAddr>,
        /// What it is connected to.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Run a cluster: tell the engine where the nodes are, who may decide, which events are written.
    Cluster {
        /// What it is connected to.
        #[command(flatten)]
        cluster: ClusterArgs,
        /// What to do.
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// The models there are, whether they answer, and which one is asked.
    Models {
        /// What to do; without it, the list.
        #[command(subcommand)]
        command: Option<ModelsCommand>,
    },
    /// The tools there are, what each does to the world, and what is quarantined.
    Tools {
        /// What to do; without it, the list.
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// Serve an agent that you already have over MCP; on its own, on standard input and output.
    Mcp {
        /// How it is served.
        #[command(flatten)]
        mcp: McpArgs,
        /// What to do; without it, serve.
        #[command(subcommand)]
        command: Option<McpCommand>,
    },
    /// The decision log: who decided what, where, on which digest; hash-chained.
    Audit {
        /// What to do.
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Write everything out, from the data directory or, with --database, from a cluster.
    Export {
        /// The file to write; it must not be there yet.
        file: PathBuf,
        /// What belongs to this person alone.
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// The database of a cluster. Never taken from the environment: where to is said here.
        #[arg(long, value_name = "URL")]
        database: Option<String>,
    },
    /// Erase every session of a person and what they made known everywhere, for good. The person stays known by name.
    Erase {
        /// Whose.
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// Do it; without it, only what would be erased is said.
        #[arg(long)]
        yes: bool,
        /// The database of a cluster. Never taken from the environment: where to is said here.
        #[arg(long, value_name = "URL")]
        database: Option<String>,
    },
    /// Bring in what was written out, into the data directory or, with --database, into a cluster.
    Import {
        /// The file to read.
        file: PathBuf,
        /// The database of a cluster. Never taken from the environment: where to is said here.
        #[arg(long, value_name = "URL")]
        database: Option<String>,
        /// The key that signed the archive (ed25519:…), or its digest, as export printed it where the archive was written: what
        /// was approved there then goes on here. Without it, everything that was approved, permitted or scheduled elsewhere
        /// waits for a decision here.
        #[arg(long, value_name = "KEY")]
        trust: Option<String>,
    },
    /// Say whether a server runs.
    Status,
    /// Open the server in a browser.
    Open,
    /// List the settings of the configuration.
    Config {
        /// As a JSON Schema.
        #[arg(long)]
        schema: bool,
    },
    /// Check that everything is as it should be.
    Doctor {
        /// What the node is connected to, where the data directory is a node's.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// A story to play: no key, no network.
    Demo {
        /// Let it play itself.
        #[arg(long)]
        play: bool,
        /// Play it in a browser.
        #[arg(long, conflicts_with = "play")]
        browser: bool,
        /// The port on 127.0.0.1 for the browser; without it, a free one.
        #[arg(long, default_value_t = 0, requires = "browser")]
        port: u16,
    },
    /// Completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether it can be done at a server elsewhere. What can not is about this machine or its data directory.
    #[must_use]
    pub fn takes_server(&self) -> bool {
        match self {
            Self::Chat { .. }
            | Self::Plan { .. }
            | Self::Auto { .. }
            | Self::Goal { .. }
            | Self::Task { .. }
            | Self::Schedule { .. }
            | Self::Memory { .. }
            | Self::Session { .. }
            | Self::People { .. }
            | Self::Passphrase { reset: None }
            | Self::Status
            | Self::Open
            | Self::Mcp { .. } => true,
            Self::Up
            | Self::Passphrase { reset: Some(_) }
            | Self::Node { .. }
            | Self::Cluster { .. }
            | Self::Models { .. }
            | Self::Tools { .. }
            | Self::Audit { .. }
            | Self::Export { .. }
            | Self::Erase { .. }
            | Self::Import { .. }
            | Self::Config { .. }
            | Self::Doctor { .. }
            | Self::Demo { .. }
            | Self::Completions { .. } => false,
        }
    }
}

/// What a node of a cluster is connected to; without these, the section `cluster` of the configuration.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ClusterArgs {
    /// The database.
    #[arg(long, env = "PLANWRIGHT_DATABASE", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,
    /// The message bus.
    #[arg(long, env = "PLANWRIGHT_NATS", hide_env_values = true, value_name = "URL")]
    pub nats: Option<String>,
    /// The engine's ingress.
    #[arg(long, env = "PLANWRIGHT_INGRESS", value_name = "URL")]
    pub ingress: Option<String>,
    /// The engine's administration.
    #[arg(long, env = "PLANWRIGHT_ADMIN", value_name = "URL")]
    pub admin: Option<String>,
    /// Where one of the engine's servers tells its figures.
    #[arg(long, env = "PLANWRIGHT_ENGINE_METRICS", value_name = "URL")]
    pub engine_metrics: Option<String>,
    /// Where this node listens for the engine's calls.
    #[arg(long, env = "PLANWRIGHT_ENDPOINT", value_name = "ADDRESS")]
    pub endpoint: Option<SocketAddr>,
}

/// How a foreign agent is served.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct McpArgs {
    /// Begin every new session with plan work: document or build. Without it, a person begins it with /plan on.
    #[arg(long, value_name = "STRATEGY", global = true)]
    pub plan: Option<String>,
    /// The session, by its key; without it, the only one of this project with unfinished work and nobody there, else a
    /// new one.
    #[arg(long, value_name = "KEY", global = true, env = "PLANWRIGHT_MCP_KEY")]
    pub key: Option<String>,
    /// The agent may only look.
    #[arg(long, global = true)]
    pub read_only: bool,
    /// When tools are told of: by-state, or always, for agents that never look again; install knows which do. What is
    /// not available is refused either way.
    #[arg(long, value_name = "WHEN", global = true, value_parser = ["by-state", "always"])]
    pub advertise: Option<String>,
    /// Never start a server; wait for the one that you run.
    #[arg(long, global = true)]
    pub no_start: bool,
}

impl McpArgs {
    /// The plan work with which sessions begin.
    pub fn strategy(&self) -> anyhow::Result<Option<Strategy>> {
        match self.plan.as_deref() {
            None => Ok(None),
            Some("document") => Ok(Some(Strategy::Document)),
            Some("build") => Ok(Some(Strategy::Build)),
            Some("collect") => anyhow::bail!("{}", Refusal::NothingToCollect),
            Some(other) => anyhow::bail!("plan work is document or build, not {other:?}"),
        }
    }

    /// The same, as words of a command line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["mcp".to_owned()];
        let mut option = |name: &str, value: &Option<String>| {
            words.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        };
        option("--plan", &self.plan);
        option("--key", &self.key);
        option("--advertise", &self.advertise);
        words.extend(self.read_only.then(|| "--read-only".to_owned()));
        words.extend(self.no_start.then(|| "--no-start".to_owned()));
        words
    }
}

/// What to do for a foreign agent.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Add Planwright to an agent: shows what it will write, and asks.
    Install {
        /// The agent.
        agent: crate::mcp::install::Agent,
        /// Its configuration; without it, where that agent keeps it.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Take it out again.
        #[arg(long)]
        undo: bool,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Take a place for an agent that speaks MCP over HTTP: prints the address and the token.
    Token,
}

/// Running a cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Every part of the cluster and how it is, the nodes that run, and what does not work.
    Status,
    /// Which node acts for a session now, or why none does.
    Where {
        /// The session: channel:key for the owner's, owner.channel:key for anybody's, as status writes it.
        session: String,
    },
    /// Let a parked session go on.
    Release {
        /// The session, as status names it.
        session: String,
    },
    /// Choose the owner's passphrase.
    Passphrase {
        /// Give the owner another one without knowing theirs: all logins end, what was approved waits for a new decision, and
        /// everyone is told for seven days.
        #[arg(long)]
        reset: bool,
    },
    /// Tell the engine where the nodes are reached: one of them, or a balancer in front.
    Register {
        /// The address, as the engine reaches it.
        url: String,
        /// Ask again what is at an address that the engine knows already, though calls may be under way there.
        #[arg(long)]
        force: bool,
    },
    /// The addresses that the engine was told.
    Deployments,
    /// Take an address away once nothing runs there any more.
    Drain {
        /// Its name, as the list of deployments shows it.
        id: String,
        /// How many seconds to wait for what still runs there.
        #[arg(long, default_value_t = 600)]
        wait: u64,
        /// Take it away though calls still run there: they begin again at the address that was registered last.
        #[arg(long)]
        force: bool,
    },
    /// Let the newest kinds of events be written, once every node knows them.
    Finalize,
}

/// Plan work.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Begin plan work.
    On {
        /// How the plan is written.
        #[arg(default_value = "document")]
        strategy: String,
    },
    /// End plan work; the plan is cancelled.
    Off,
    /// End plan work; an executing plan is complete by your word.
    Done,
    /// Where the plan stands.
    Status,
    /// Read a revision in full.
    Show {
        /// Which one; without it, the current one.
        revision: Option<u32>,
    },
    /// What changed between two revisions.
    Diff {
        /// The earlier one.
        #[arg(requires = "to")]
        from: Option<u32>,
        /// The later one.
        to: Option<u32>,
    },
    /// The plans of this session.
    List,
    /// Approve exactly what you were shown last, or the named revision if that is what you were shown.
    Approve {
        /// The revision.
        #[arg(value_parser = one_word)]
        revision: Option<String>,
        /// Do not start yet.
        #[arg(long)]
        hold: bool,
        /// Go on with the steps after one that fails.
        #[arg(long = "continue")]
        go_on: bool,
        /// Lease nothing: every change asks.
        #[arg(long)]
        ask: bool,
        /// Lease this instead of what the plan declares: tools=a,b paths=src/ hosts=h spend=2 calls=9 expires=2h.
        #[arg(long, value_name = "PART=VALUE", value_parser = part_of_a_grant)]
        grant: Vec<String>,
        /// What the execution must be told.
        #[arg(long)]
        note: Option<String>,
    },
    /// Decide on a call that waits: allow it once, or until the plan ends.
    Allow {
        /// The beginning of its digest, as shown.
        id: String,
        /// Until the plan ends, on the shown path or host.
        #[arg(long)]
        plan: bool,
    },
    /// Deny a call that waits.
    Deny {
        /// The beginning of its digest; without it, the one that waits.
        id: Option<String>,
    },
    /// Instead of allowing a call: have the plan revised.
    Replan {
        /// What should change.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Leave a step out; resume then goes on without it.
    Skip {
        /// Its number.
        step: u32,
    },
    /// What was asked for, and what became of it.
    Comments,
    /// Write the document yourself, from a file or from standard input.
    Edit {
        /// The file; without it, standard input.
        file: Option<PathBuf>,
    },
    /// Ask for a newer revision.
    Changes {
        /// What should change; begin with 12: to speak of line 12.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// End the plan unexecuted.
    Reject {
        /// Why.
        why: Vec<String>,
    },
    /// Start a held plan, or go on with a paused or failed one.
    Resume,
    /// Pause the execution.
    Stop,
    /// Say what became of a call in doubt.
    Settle {
        /// The call, or the beginning of its id.
        call: String,
        /// What you found.
        #[arg(value_parser = ["happened", "not"])]
        verdict: String,
    },
}

/// One word that names something: an empty variable of a script is not the same as no word.
fn one_word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("it names nothing; give one word, or leave it out".into());
    }
    Ok(text.to_owned())
}

/// A part of a grant: a bare word would be read as something else.
fn part_of_a_grant(text: &str) -> Result<String, String> {
    match one_word(text)?.split_once('=') {
        Some((part, value)) if !part.is_empty() && !value.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err("write it as PART=VALUE, for example tools=read_file".into()),
    }
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Ask each of them, or the one named, one thing.
    Test {
        /// Its name.
        name: Option<String>,
    },
    /// Ask a model one thing, and if it answers, it is the one of the conversation.
    Set {
        /// The format that its server speaks: openai, responses, anthropic, gemini, ollama; told by the address.
        #[arg(long)]
        wire: Option<String>,
        /// The address of its server; its maker's, if only --wire is given.
        #[arg(long)]
        url: Option<String>,
        /// The name of the model there.
        #[arg(long)]
        name: String,
        /// The environment variable that holds the key; it is read at each start and never copied.
        #[arg(long)]
        key_from: Option<String>,
        /// What a million tokens cost that the model reads, in dollars.
        #[arg(long)]
        price_in: Option<f64>,
        /// What a million tokens cost that the model writes, in dollars.
        #[arg(long)]
        price_out: Option<f64>,
    },
}

/// What to do with tools.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// Accept the schema that a quarantined tool came with.
    Accept {
        /// The tool, by its name here.
        tool: String,
    },
}

/// What to do with the people who use the installation.
#[derive(Debug, Subcommand)]
pub enum PeopleCommand {
    /// Who they are, and what each may do.
    List,
    /// Add somebody: prints a link with which they choose a passphrase, once.
    Add {
        /// Their name, which others read beside what they decide.
        name: String,
        /// What they may do besides reading and talking: decide, admin. More than once for more.
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<Role>,
    },
    /// Say what somebody may do, all of it.
    Role {
        /// Who.
        name: String,
        /// What: speak, decide, admin.
        #[arg(required = true)]
        roles: Vec<Role>,
    },
    /// Give somebody a new link, with which they choose another passphrase.
    Passphrase {
        /// Who.
        name: String,
    },
    /// Let somebody use it no more: their logins and tokens end, their sessions stay.
    Remove {
        /// Who.
        name: String,
    },
}

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Read, talk and stop.
    Speak,
    /// Decide on plans and calls.
    Decide,
    /// Say who uses the installation.
    Admin,
}

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Write it out: one JSON object a line.
    Export {
        /// The file to make.
        file: PathBuf,
        /// Of one session alone, as channel:key.
        #[arg(long = "of", value_name = "SESSION")]
        of: Option<String>,
        /// Of the cluster with this database.
        #[arg(long, value_name = "URL")]
        database: Option<String>,
    },
    /// Check it: a file that was written out, or what this installation holds.
    Verify(VerifyArgs),
}

/// What is checked, and against what.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// A file that was written out; what this installation holds, if none is named.
    pub file: Option<PathBuf>,
    /// The digest that was told when it was written out.
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Files with signed heads that you kept elsewhere.
    #[arg(long, value_name = "FILE")]
    pub heads: Vec<PathBuf>,
    /// The key that signed them, as it was told when they began; without it, each is believed that is signed by whom it names.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Of the cluster with this database.
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
}

impl PlanCommand {
    /// The same, as it is typed in a chat.
    pub fn line(&self) -> std::io::Result<String> {
        let words = match self {
            Self::On { strategy } => format!("on {strategy}"),
            Self::Off => "off".into(),
            Self::Done => "done".into(),
            Self::Status => "status".into(),
            Self::Show { revision } => {
                format!("show {}", revision.map(|number| number.to_string()).unwrap_or_default())
            }
            Self::Diff { from, to } => match (from, to) {
                (Some(from), Some(to)) => format!("diff {from} {to}"),
                (None | Some(_), None | Some(_)) => "diff".into(),
            },
            Self::List => "list".into(),
            Self::Approve { revision, hold, go_on, ask, grant, note } => {
                let mut words = vec!["approve".to_owned()];
                words.extend(revision.clone());
                words.extend(hold.then(|| "hold".to_owned()));
                words.extend(go_on.then(|| "continue".to_owned()));
                words.extend(ask.then(|| "ask".to_owned()));
                words.extend(grant.iter().cloned());
                words.extend(note.as_ref().map(|note| format!("note {note}")));
                words.join(" ")
            }
            Self::Allow { id, plan } => {
                return Ok(format!("/allow {id} {}", if *plan { "plan" } else { "" }));
            }
            Self::Deny { id } => {
                return Ok(format!("/deny {}", id.as_deref().unwrap_or_default()));
            }
            Self::Replan { text } => format!("replan {}", text.join(" ")),
            Self::Skip { step } => format!("skip {step}"),
            Self::Comments => "comments".into(),
            Self::Edit { file } => {
                let text = match file {
                    Some(file) => std::fs::read_to_string(file)?,
                    None => std::io::read_to_string(std::io::stdin())?,
                };
                format!("edit {text}")
            }
            Self::Changes { text } => format!("changes {}", text.join(" ")),
            Self::Reject { why } => format!("reject {}", why.join(" ")),
            Self::Resume => "resume".into(),
            Self::Stop => "stop".into(),
            Self::Settle { call, verdict } => format!("settle {call} {verdict}"),
        };
        Ok(format!("/plan {words}"))
    }
}

/// Conversations.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// The conversations there are.
    List,
    /// Start a new one and make it the active one.
    New {
        /// Its key: 8 to 64 letters, digits, - or _.
        key: Option<String>,
    },
    /// Make another one the active one.
    Switch {
        /// Its key.
        key: String,
    },
    /// Call the active one something.
    Rename {
        /// What.
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Put the active one away; what is said in it brings it back.
    Archive,
    /// Say what deleting the active one would end; with --yes, delete it.
    Delete {
        /// Do it.
        #[arg(long)]
        yes: bool,
    },
    /// Take up a parked one again.
    Retry,
    /// What was sent to models, what it cost, what was left out and why.
    Requests {
        /// One of them, by its number: all that was sent.
        number: Option<u64>,
    },
    /// An output of a tool call that was too long to be shown, whole.
    Output {
        /// Its digest, as the shortened output names it.
        digest: String,
    },
}

/// Prints completions for a shell. A reader that leaves early has read enough.
pub fn completions(shell: clap_complete::Shell) {
    // The library panics where it cannot write; a buffer always takes it.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "planwright", &mut script);
    let mut out = std::io::stdout();
    let _ = out.write_all(&script).and_then(|()| out.flush());
}
