//! `planwright mcp install`: one entry in the configuration of an agent, shown before it is written, and taken out again;
//! nothing else in the file is touched.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::{durable_file::put_in_place, exit::Exit, talk::Lines, terminal::Terminal};

mod entry;
mod json;
mod toml;
mod yaml;

use entry::ServerCommand;

/// An agent whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// goose.
    Goose,
    /// Cursor.
    Cursor,
    /// Zed.
    Zed,
    /// Visual Studio Code.
    Vscode,
}

/// Where programs keep their configuration, as far as systems differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    MacOs,
    /// Linux, and what follows the same conventions.
    Linux,
}

impl System {
    fn here() -> Self {
        if cfg!(target_os = "macos") { Self::MacOs } else { Self::Linux }
    }
}

impl Agent {
    /// Where its configuration is.
    fn file(self, system: System, home: &Path) -> PathBuf {
        home.join(match (self, system) {
            (Self::ClaudeCode, _) => ".claude.json",
            (Self::Codex, _) => ".codex/config.toml",
            (Self::Goose, _) => ".config/goose/config.yaml",
            (Self::Cursor, _) => ".cursor/mcp.json",
            (Self::Zed, _) => ".config/zed/settings.json",
            (Self::Vscode, System::MacOs) => "Library/Application Support/Code/User/mcp.json",
            (Self::Vscode, System::Linux) => ".config/Code/User/mcp.json",
        })
    }

    /// When it must be told of tools, where that is known: some list them once and never look again.
    #[must_use]
    pub fn advertise(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode | Self::Vscode => None,
            Self::Codex | Self::Goose | Self::Cursor | Self::Zed => Some("always"),
        }
    }

    /// The configuration with the entry; none if something called planwright is there already.
    fn with(self, text: &str, server: &ServerCommand<'_>) -> anyhow::Result<Option<String>> {
        match self {
            Self::ClaudeCode => json::with(text, "mcpServers", json::Kind::Said, server),
            Self::Vscode => json::with(text, "servers", json::Kind::Said, server),
            Self::Cursor => json::with(text, "mcpServers", json::Kind::Known, server),
            Self::Zed => json::with(text, "context_servers", json::Kind::Known, server),
            Self::Codex => toml::with(text, server),
            Self::Goose => yaml::with(text, server),
        }
    }

    /// The configuration without the entry; none if it is not there.
    fn without(self, text: &str) -> anyhow::Result<Option<String>> {
        match self {
            Self::ClaudeCode | Self::Cursor => json::without(text, "mcpServers"),
            Self::Zed => json::without(text, "context_servers"),
            Self::Vscode => json::without(text, "servers"),
            Self::Codex => toml::without(text),
            Self::Goose => Ok(yaml::without(text)),
        }
    }
}

/// What a person asked for.
pub struct InstallRequest<'a> {
    /// For this agent.
    pub agent: Agent,
    /// Where its configuration is; its usual place, if not said.
    pub file: Option<&'a Path>,
    /// The words after the program.
    pub arguments: Vec<String>,
    /// Whether it is taken out again.
    pub undo: bool,
    /// Whether they said yes already.
    pub yes: bool,
}

/// Shows what will be written, asks, and writes it.
pub async fn run(terminal: &mut Terminal, asked: &InstallRequest<'_>) -> anyhow::Result<Exit> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let file = match asked.file {
        Some(file) => file.to_owned(),
        None => {
            let home = home.context("there is no home directory; name the file with --file")?;
            asked.agent.file(System::here(), &home)
        }
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => bail!("{} cannot be read: {error}", file.display()),
    };
    let program = std::env::current_exe()?;
    let program = program.to_str().context("the path of this program is not plain text")?;
    let changed = if asked.undo {
        let Some(changed) = asked.agent.without(&text)? else {
            terminal.line(&format!("{} holds nothing that was installed here", file.display()));
            return Ok(Exit::Fine);
        };
        changed
    } else {
        let server = ServerCommand { program, arguments: &asked.arguments };
        let Some(changed) = asked.agent.with(&text, &server)? else {
            terminal.line(&format!(
                "{} has a server called planwright already; --undo takes it out",
                file.display()
            ));
            return Ok(Exit::Failed);
        };
        changed
    };
    terminal.line(&format!("{} will be changed:\n{}", file.display(), difference(&text, &changed)));
    if !asked.yes && !agreed(terminal).await? {
        terminal.line("nothing was changed");
        return Ok(Exit::Denied);
    }
    write(&file, &changed)?;
    terminal.line(if asked.undo {
        "taken out; start the agent again"
    } else {
        "written; start the agent again, and it can plan. planwright mcp install … --undo takes it out"
    });
    Ok(Exit::Fine)
}

async fn agreed(terminal: &mut Terminal) -> anyhow::Result<bool> {
    let mut lines = Lines::default();
    if !lines.is_terminal() {
        bail!("nobody is there to say yes; say it with --yes");
    }
    terminal.line("write this? [y/N]");
    let said = lines.next().await;
    Ok(said.is_some_and(|said| ["y", "yes"].contains(&said.trim().to_lowercase().as_str())))
}

/// Written whole or not at all, with the permissions it had.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let directory = file.parent().context("the file has no directory")?;
    fs::create_dir_all(directory)?;
    let mut beside = tempfile::NamedTempFile::new_in(directory)?;
    beside.write_all(text.as_bytes())?;
    if let Ok(there) = fs::metadata(file) {
        fs::set_permissions(beside.path(), there.permissions())?;
    }
    // A link stays a link: what it leads to is written.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    put_in_place(beside, &target)
}

fn difference(before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    let changes = diff.iter_all_changes().filter_map(|change| {
        let line = change.value().trim_end_matches('\n');
        match change.tag() {
            similar::ChangeTag::Insert => Some(format!("+ {line}")),
            similar::ChangeTag::Delete => Some(format!("- {line}")),
            similar::ChangeTag::Equal => None,
        }
    });
    changes.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Agent, System};

    #[test]
    fn each_system_keeps_configurations_in_its_own_place() {
        let home = Path::new("/home/ada");
        let file = |agent: Agent, system| agent.file(system, home).display().to_string();
        assert_eq!(file(Agent::Vscode, System::Linux), "/home/ada/.config/Code/User/mcp.json");
        assert_eq!(
            file(Agent::Vscode, System::MacOs),
            "/home/ada/Library/Application Support/Code/User/mcp.json"
        );
        for agent in [Agent::ClaudeCode, Agent::Codex, Agent::Goose, Agent::Cursor, Agent::Zed] {
            assert_eq!(file(agent, System::Linux), file(agent, System::MacOs));
        }
    }
}
