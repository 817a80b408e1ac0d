//! The command line: arguments in, wiring, words out. The rules live elsewhere.
//!
//! [`run`] is all that `main` calls. Start at [`installation`] for how the parts are wired, and at
//! [`talk`] for what happens while a person sits at the terminal.

use clap::Parser as _;

pub mod args;
pub mod demo;
pub mod doctor;
pub mod exit;
pub mod installation;
pub mod session;
pub mod talk;
pub mod terminal;

use args::{Args, Command};
use exit::Exit;
use installation::{Installation, WrapToolbox};
use terminal::Terminal;

/// Reads the command line, does what it says, and gives the exit code.
pub async fn run(wrap: Option<WrapToolbox>) -> Exit {
    let args = Args::parse();
    log(args.json);
    let mut terminal = Terminal::new(args.json);
    let outcome = match &args.command {
        Command::Completions { shell } => {
            args::completions(*shell);
            Ok(Exit::Fine)
        }
        Command::Demo { play } => demo::run(&mut terminal, *play).await,
        Command::Doctor => doctor::run(&args, &mut terminal).await,
        Command::Chat { .. } | Command::Plan { .. } | Command::Session { .. } => {
            with_installation(&args, &mut terminal, wrap).await
        }
    };
    outcome.unwrap_or_else(|error| {
        terminal.error(&error);
        Exit::Failed
    })
}

/// Logs to standard error: what went wrong, or what `PLANWRIGHT_LOG` asks for.
fn log(json: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PLANWRIGHT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    let logging = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = if json { logging.json().try_init() } else { logging.try_init() };
}

async fn with_installation(
    args: &Args,
    terminal: &mut Terminal,
    wrap: Option<WrapToolbox>,
) -> anyhow::Result<Exit> {
    let mut installation = Installation::open(args, wrap).await?;
    match &args.command {
        Command::Session { command } => {
            session::run(&mut installation, terminal, command.as_ref()).await
        }
        Command::Chat { message } if !message.is_empty() => {
            talk::say(&mut installation, terminal, &message.join(" ")).await
        }
        Command::Chat { .. } => talk::converse(&mut installation, terminal).await,
        Command::Plan { command } => talk::say(&mut installation, terminal, &command.line()).await,
        Command::Completions { .. } | Command::Demo { .. } | Command::Doctor => Ok(Exit::Fine),
    }
}
