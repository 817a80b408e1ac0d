//! The command line: arguments in, wiring, words out. The rules live elsewhere.
//!
//! [`main`] is all that there is to call. Start at [`installation`] for how the parts are wired, and at
//! [`talk`] for what happens while a person sits at the terminal.

use std::time::Duration;

use clap::Parser as _;
use planwright_domain::identity::Root;

pub mod args;
pub mod backend;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod completion;
pub mod config;
pub mod connection;
pub mod data_path;
pub mod demo;
pub mod doctor;
pub mod durable_file;
pub mod exit;
pub mod installation;
pub mod known_secrets;
pub mod line_editor;
pub mod logging;
pub mod mcp;
pub mod metrics_recorder;
pub mod models;
#[cfg(feature = "cluster")]
pub mod node;
pub mod people;
pub mod remote;
pub mod server;
pub mod session;
pub mod surface;
pub mod talk;
pub mod terminal;
pub mod tools;
pub mod transfer;
pub mod up;

use args::{Args, AuditCommand, Command};
use backend::Backend;
use config::Config;
use data_path::data_path;
use exit::Exit;
use installation::{Installation, WrapToolbox, first_line};
use planwright_outbound::data_directory::DataDirectoryError;
#[cfg(target_os = "linux")]
use planwright_outbound::{toolbox_command, toolbox_mcp};
use remote::Remote;
use server::{Server, ServerFile};
use terminal::Terminal;

/// How long threads may take to end when the program ends. One that hangs, as in a file system that does not answer, must
/// not keep it: what it was doing is then as much in doubt as after a kill.
const THREADS_END: Duration = Duration::from_secs(1);

/// The program. A keeper of a command confines itself before anything else has started.
#[must_use]
pub fn main(wrap: Option<WrapToolbox>) -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args().nth(1).as_deref() == Some(toolbox_command::KEEPER) {
        return toolbox_command::keeper::keep();
    }
    #[cfg(target_os = "linux")]
    if std::env::args().nth(1).as_deref() == Some(toolbox_command::SHELL) {
        return toolbox_command::keeper::become_shell();
    }
    #[cfg(target_os = "linux")]
    if std::env::args().nth(1).as_deref() == Some(toolbox_mcp::KEEPER) {
        return toolbox_mcp::keeper::become_server();
    }
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let exit = runtime.block_on(run(wrap));
            runtime.shutdown_timeout(THREADS_END);
            exit.into()
        }
        Err(error) => {
            Terminal::new(false).error(&error.into());
            Exit::Failed.into()
        }
    }
}

/// Reads the command line, does what it says, and gives the exit code.
async fn run(wrap: Option<WrapToolbox>) -> Exit {
    let args = Args::parse();
    let mut terminal = Terminal::new(args.json);
    logging::begin(&args);
    act(&args, &mut terminal, wrap).await.unwrap_or_else(|error| {
        terminal.error(&error);
        Exit::Failed
    })
}

#[expect(clippy::too_many_lines, reason = "one arm for each command")]
async fn act(
    args: &Args,
    terminal: &mut Terminal,
    wrap: Option<WrapToolbox>,
) -> anyhow::Result<Exit> {
    let data = data_path(args)?;
    if args.server.is_some() && !args.command.takes_server() {
        anyhow::bail!(
            "this command works on this machine and not at a server; leave out --server and PLANWRIGHT_SERVER"
        );
    }
    match &args.command {
        Command::Completions { shell } => {
            args::completions(*shell);
            Ok(Exit::Fine)
        }
        Command::Demo { browser: true, port, .. } => demo::serve(terminal, *port).await,
        Command::Demo { play, .. } => demo::run(terminal, *play).await,
        Command::Doctor { cluster } => doctor::run(args, cluster, terminal).await,
        Command::Config { schema } => {
            let keys = Config::keys();
            let text = if *schema { format!("{:#}", Config::schema()) } else { keys.join("\n") };
            terminal.row(&text, Config::schema);
            Ok(Exit::Fine)
        }
        Command::Status => {
            let config = Config::load(args.config.as_deref(), &data)?;
            up::status(terminal, Server::find(args, &config.cluster, &data)?, &data).await
        }
        Command::Open => {
            let config = Config::load(args.config.as_deref(), &data)?;
            up::open(terminal, Server::find(args, &config.cluster, &data)?, &data)
        }
        Command::Up => {
            let config = Config::load(args.config.as_deref(), &data)?;
            let mut installation = Installation::open(args, &config, wrap).await?;
            if let Some(passphrase) = first_line(args)? {
                installation.unlock(&passphrase).await?;
            }
            up::run(installation, &config.server, terminal, &data).await
        }
        #[cfg(feature = "cluster")]
        Command::Node { bind, cluster } => {
            let config = Config::load(args.config.as_deref(), &data)?;
            node::run(args, &config, *bind, cluster, terminal, wrap).await
        }
        Command::Models { command } => {
            let config = Config::load(args.config.as_deref(), &data)?;
            models::run(args, &config, command.as_ref(), terminal).await
        }
        Command::Mcp { mcp, command } => {
            mcp::act(args, mcp, command.as_ref(), terminal, &data).await
        }
        Command::Tools { command } => {
            let config = Config::load(args.config.as_deref(), &data)?;
            tools::run(args, &config, command.as_ref(), terminal).await
        }
        Command::Audit { command: AuditCommand::Export { file, of, database } } => {
            transfer::audit(args, database.as_deref(), of.as_deref(), file, terminal).await
        }
        Command::Audit { command: AuditCommand::Verify(words) } => {
            transfer::verify(args, words, terminal).await
        }
        Command::Export { file, owner, database } => {
            transfer::export(args, database.as_deref(), owner.as_deref(), file, terminal).await
        }
        Command::Erase { owner, yes, database } => {
            transfer::erase(args, database.as_deref(), owner, *yes, terminal).await
        }
        Command::Import { file, database, trust } => {
            transfer::import(args, database.as_deref(), file, trust.as_deref(), terminal).await
        }
        #[cfg(not(feature = "cluster"))]
        Command::Node { .. } | Command::Cluster { .. } => anyhow::bail!(transfer::NO_CLUSTER),
        #[cfg(feature = "cluster")]
        Command::Cluster { cluster, command } => {
            let config = Config::load(args.config.as_deref(), &data)?;
            cluster::run(args, &config.cluster.with(cluster), command, terminal).await
        }
        Command::Auto { .. }
        | Command::Goal { .. }
        | Command::Task { .. }
        | Command::Schedule { .. }
        | Command::Memory { .. }
        | Command::Chat { .. }
        | Command::Plan { .. }
        | Command::Session { .. } => {
            let mut backend = unlocked_backend(args, wrap, terminal).await?;
            talk(args, &mut *backend, terminal).await
        }
        Command::People { command } => {
            let mut backend = unlocked_backend(args, wrap, terminal).await?;
            people::run(&mut *backend, command.as_ref(), terminal).await
        }
        Command::Passphrase { reset: None } => {
            let mut backend = backend(args, wrap).await?;
            people::passphrase(&mut *backend, args.passphrase_stdin, terminal).await
        }
        Command::Passphrase { reset: Some(person) } => {
            let config = Config::load(args.config.as_deref(), &data)?;
            let installation = Installation::open(args, &config, wrap).await?;
            people::reset(installation, person, args.passphrase_stdin, terminal).await
        }
    }
}

/// The server that is named or that owns the data directory, else the installation in this process.
async fn backend(args: &Args, wrap: Option<WrapToolbox>) -> anyhow::Result<Box<dyn Backend>> {
    let data = data_path(args)?;
    let config = Config::load(args.config.as_deref(), &data)?;
    let server = match Server::named(args, &config.cluster)? {
        Some(named) => named,
        None => {
            let refused = match Installation::open(args, &config, wrap).await {
                Ok(installation) => return Ok(Box::new(installation)),
                Err(refused) => refused,
            };
            let in_use = matches!(refused.downcast_ref(), Some(DataDirectoryError::InUse { .. }));
            match ServerFile::running(&data).filter(|_| in_use) {
                Some(server) => server.into(),
                None => return Err(refused),
            }
        }
    };
    let token = server.token(args, &data)?;
    Ok(Box::new(Remote::connect(&data, server, token, args.session.as_deref()).await?))
}

/// The same, with the passphrase that the arguments bring, and what everyone should know.
async fn unlocked_backend(
    args: &Args,
    wrap: Option<WrapToolbox>,
    terminal: &mut Terminal,
) -> anyhow::Result<Box<dyn Backend>> {
    let mut backend = backend(args, wrap).await?;
    if let Some(notice) = backend.notice() {
        terminal.notice(&notice);
    }
    if let Some(passphrase) = first_line(args)? {
        backend.unlock(&passphrase).await?;
    }
    Ok(backend)
}

async fn talk(
    args: &Args,
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    if let Command::Chat { root: Some(root), .. } = &args.command {
        // A server elsewhere has directories of its own: what is not here is sent as it was written.
        let named = root.canonicalize().unwrap_or_else(|_| root.clone());
        backend.begin_in(Root(named.display().to_string())).await?;
    }
    match &args.command {
        Command::Session { command } => session::run(backend, terminal, command.as_ref()).await,
        Command::Chat { message, .. } if !message.is_empty() => {
            talk::say(backend, terminal, &message.join(" ")).await
        }
        Command::Chat { .. } => {
            talk::converse(backend, terminal, &data_path(args)?.join("history")).await
        }
        Command::Plan { command } => talk::say(backend, terminal, &command.line()?).await,
        Command::Auto { words } => say_command(backend, terminal, "/auto", words).await,
        Command::Goal { words } => say_command(backend, terminal, "/goal", words).await,
        Command::Task { words } => say_command(backend, terminal, "/task", words).await,
        Command::Schedule { words } => say_command(backend, terminal, "/schedule", words).await,
        Command::Memory { import: Some(file), .. } => {
            let many = backend.import_memory(file).await?;
            terminal.line(&format!("{many} items are known everywhere now, marked as legacy"));
            Ok(Exit::Fine)
        }
        Command::Memory { import: None, words } => {
            say_command(backend, terminal, "/memory", words).await
        }
        Command::Cluster { .. }
        | Command::Completions { .. }
        | Command::Config { .. }
        | Command::Demo { .. }
        | Command::Doctor { .. }
        | Command::Audit { .. }
        | Command::Export { .. }
        | Command::Erase { .. }
        | Command::Import { .. }
        | Command::Node { .. }
        | Command::Open
        | Command::Passphrase { .. }
        | Command::People { .. }
        | Command::Status
        | Command::Models { .. }
        | Command::Mcp { .. }
        | Command::Tools { .. }
        | Command::Up => Ok(Exit::Fine),
    }
}

/// Says a command of a chat, with the words that follow it.
async fn say_command(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    command: &str,
    words: &[String],
) -> anyhow::Result<Exit> {
    talk::say(backend, terminal, format!("{command} {}", words.join(" ")).trim()).await
}
