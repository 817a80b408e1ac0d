//! The keeper of a server of tools: confines itself, and becomes the server.

use std::{
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
};

use planwright_sandbox::{Network, Resources, Sandbox};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

/// What a server of tools that runs beside us may reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerOrder {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it works.
    pub directory: PathBuf,
    /// A directory of its own, which is its home.
    pub scratch: PathBuf,
    /// What it may read and execute besides the system's programs.
    pub read: Vec<PathBuf>,
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// Whether it may speak over the network.
    pub network: bool,
}

/// The life of a keeper of a server: confines itself, then becomes the server. Its order is its second argument: standard
/// input and output are the server's. Call it before anything else has started a thread.
#[must_use]
pub fn become_server() -> ExitCode {
    let order = std::env::args().nth(2).ok_or_else(|| "no order was given".to_owned());
    let order = order.and_then(|order| {
        serde_json::from_str::<ServerOrder>(&order).map_err(|error| error.to_string())
    });
    let why = match order.and_then(|order| confine_server(&order).map(|()| order)) {
        Err(why) => why,
        Ok(ServerOrder { command, directory, scratch, .. }) => match command.split_first() {
            None => "no command is named".into(),
            Some((program, arguments)) => {
                let mut server = Command::new(program);
                server.args(arguments).current_dir(directory);
                server.env("HOME", &scratch).env("TMPDIR", &scratch);
                format!("{program}: {}", server.exec())
            }
        },
    };
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::FAILURE
}

fn confine_server(order: &ServerOrder) -> Result<(), String> {
    // What it could write it could have replaced by a link since.
    for path in order.read.iter().chain(&order.write) {
        if path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))? != *path {
            return Err(format!("{} is not where it was", path.display()));
        }
    }
    // It ends with whoever started it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let sandbox = Sandbox {
        read: order.read.clone(),
        write: order.write.iter().chain([&order.scratch]).cloned().collect(),
        network: if order.network { Network::Internet } else { Network::None },
        resources: Resources::default(),
    };
    sandbox.enter()
}
