//! `planwright mcp install`: one entry in the configuration of an agent, shown before it is written, and taken out again;
//! nothing else in the file is touched.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::{exit::Exit, talk::Lines, terminal::Terminal};

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

/// How an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In this object of a JSON file, which may have comments.
    Json(&'static str),
    /// As a table of a TOML file.
    Toml,
    /// Under `extensions` of a YAML file.
    Yaml,
}

/// What stands around what was added to a file that has comments.
const MARKS: [&str; 2] = ["# planwright mcp install: begin", "# planwright mcp install: end"];

impl Agent {
    /// Where its configuration is, under the home directory.
    fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude.json",
            Self::Codex => ".codex/config.toml",
            Self::Goose => ".config/goose/config.yaml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Zed => ".config/zed/settings.json",
            Self::Vscode => ".config/Code/User/mcp.json",
        }
    }

    /// When it must be told of tools, where that is known: some list them once and never look again.
    #[must_use]
    pub fn advertise(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode | Self::Vscode => None,
            Self::Codex | Self::Goose | Self::Cursor | Self::Zed => Some("always"),
        }
    }

    fn form(self) -> Form {
        match self {
            Self::ClaudeCode | Self::Cursor => Form::Json("mcpServers"),
            Self::Zed => Form::Json("context_servers"),
            Self::Vscode => Form::Json("servers"),
            Self::Codex => Form::Toml,
            Self::Goose => Form::Yaml,
        }
    }

    /// The entry, as it is written.
    fn entry(self, command: &str, arguments: &[String]) -> String {
        match self {
            Self::ClaudeCode | Self::Vscode => {
                let value = json!({"type": "stdio", "command": command, "args": arguments});
                format!("\"planwright\": {value}")
            }
            Self::Cursor | Self::Zed => {
                format!("\"planwright\": {}", json!({"command": command, "args": arguments}))
            }
            Self::Codex => format!(
                "{}\n[mcp_servers.planwright]\ncommand = {}\nargs = {}\n{}\n",
                MARKS[0],
                json!(command),
                json!(arguments),
                MARKS[1]
            ),
            Self::Goose => format!(
                "  {}\n  planwright:\n    name: planwright\n    type: stdio\n    enabled: true\n    timeout: 300\n    cmd: {}\n    args: {}\n  {}\n",
                MARKS[0],
                json!(command),
                json!(arguments),
                MARKS[1]
            ),
        }
    }

    /// The configuration with the entry; none if something called planwright is there already.
    fn with(self, text: &str, entry: &str) -> anyhow::Result<Option<String>> {
        match self.form() {
            Form::Json(object) => added(text, object, entry),
            Form::Toml => {
                if text.contains("[mcp_servers.planwright]") {
                    return Ok(None);
                }
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                Ok(Some(format!("{text}{gap}{entry}")))
            }
            Form::Yaml => {
                if text.lines().any(|line| line.trim_end() == "  planwright:") {
                    return Ok(None);
                }
                let place = text.lines().position(|line| line.trim_end() == "extensions:");
                let Some(place) = place else {
                    if text.lines().any(|line| line.starts_with("extensions:")) {
                        bail!("extensions is not written as a block there; add the entry by hand");
                    }
                    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                    return Ok(Some(format!("{text}{gap}extensions:\n{entry}")));
                };
                let head: String = text.split_inclusive('\n').take(place + 1).collect();
                let gap = if head.ends_with('\n') { "" } else { "\n" };
                Ok(Some(format!("{head}{gap}{entry}{}", &text[head.len()..])))
            }
        }
    }

    /// The configuration without what was added; none if it is not there as it was written.
    fn without(self, text: &str) -> Option<String> {
        match self.form() {
            Form::Json(_) => removed(text),
            Form::Toml | Form::Yaml => {
                let begin = text.find(MARKS[0])?;
                let begin = text[..begin].rfind('\n').map_or(0, |line| line + 1);
                let end = begin + text[begin..].find(MARKS[1])? + MARKS[1].len();
                let end = if text[end..].starts_with('\n') { end + 1 } else { end };
                Some(format!("{}{}", &text[..begin], &text[end..]))
            }
        }
    }
}

/// What a person asked for.
pub struct Asked<'a> {
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
pub async fn run(terminal: &mut Terminal, asked: &Asked<'_>) -> anyhow::Result<Exit> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let file = match asked.file {
        Some(file) => file.to_owned(),
        None => home
            .context("there is no home directory; name the file with --file")?
            .join(asked.agent.file()),
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => bail!("{} cannot be read: {error}", file.display()),
    };
    let program = std::env::current_exe()?;
    let program = program.to_str().context("the path of this program is not plain text")?;
    let changed = if asked.undo {
        let Some(changed) = asked.agent.without(&text) else {
            terminal.line(&format!("{} holds nothing that was installed here", file.display()));
            return Ok(Exit::Fine);
        };
        changed
    } else {
        let entry = asked.agent.entry(program, &asked.arguments);
        let Some(changed) = asked.agent.with(&text, &entry)? else {
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
    beside.as_file().sync_all()?;
    // A link stays a link: what it leads to is written.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    beside.persist(target)?;
    Ok(())
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

/// The text with an entry at the beginning of this object of the outermost one; none if it has a planwright already.
fn added(text: &str, object: &str, entry: &str) -> anyhow::Result<Option<String>> {
    if text.trim().is_empty() {
        return Ok(Some(format!("{{\n  \"{object}\": {{\n    {entry}\n  }}\n}}\n")));
    }
    let root = object_at(text, 0).context("it is not a JSON object; add the entry by hand")?;
    let Some(inner) = root.value_of(object) else {
        let comma = if root.is_empty { "" } else { "," };
        let at = root.begin + 1;
        let new = format!("\n  \"{object}\": {{\n    {entry}\n  }}{comma}");
        return Ok(Some(format!("{}{new}{}", &text[..at], &text[at..])));
    };
    let inner =
        object_at(text, inner).context("what is there is not an object; add the entry by hand")?;
    if inner.value_of("planwright").is_some() {
        return Ok(None);
    }
    let comma = if inner.is_empty { "" } else { "," };
    let at = inner.begin + 1;
    Ok(Some(format!("{}\n    {entry}{comma}{}", &text[..at], &text[at..])))
}

/// The text without our entry, if it stands there as it was written.
fn removed(text: &str) -> Option<String> {
    const BEGINS: &str = "\n    \"planwright\": ";
    let begin = text.find(BEGINS)?;
    let end = value(text.as_bytes(), begin + BEGINS.len())?;
    let end = if text[end..].starts_with(',') { end + 1 } else { end };
    Some(format!("{}{}", &text[..begin], &text[end..]))
}

/// An object in a text of JSON, which may have comments.
struct Found {
    /// Where its brace stands.
    begin: usize,
    is_empty: bool,
    /// Its keys, and where their values begin.
    keys: Vec<(String, usize)>,
}

impl Found {
    fn value_of(&self, key: &str) -> Option<usize> {
        self.keys.iter().find(|(name, _)| name == key).map(|(_, at)| *at)
    }
}

/// The object that begins at or after this place.
fn object_at(text: &str, from: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let begin = blank(bytes, from);
    if bytes.get(begin) != Some(&b'{') {
        return None;
    }
    let (mut at, mut keys, mut is_empty) = (begin + 1, Vec::new(), true);
    loop {
        at = blank(bytes, at);
        match bytes.get(at)? {
            b'}' => return Some(Found { begin, is_empty, keys }),
            b',' => at += 1,
            b'"' => {
                let end = string(bytes, at)?;
                let key = serde_json::from_str::<String>(&text[at..end]).ok()?;
                at = blank(bytes, end);
                if bytes.get(at) != Some(&b':') {
                    return None;
                }
                at = blank(bytes, at + 1);
                keys.push((key, at));
                is_empty = false;
                at = value(bytes, at)?;
            }
            _ => return None,
        }
    }
}

/// Behind blanks and comments.
fn blank(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(byte), _) if byte.is_ascii_whitespace() => at += 1,
            (Some(b'/'), Some(b'/')) => {
                while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
                    at += 1;
                }
            }
            (Some(b'/'), Some(b'*')) => {
                at += 2;
                while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                    at += 1;
                }
                at = (at + 2).min(bytes.len());
            }
            _ => return at,
        }
    }
}

/// Behind the string that begins here.
fn string(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Behind the value that begins here.
fn value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        at = blank(bytes, at);
        match bytes.get(at)? {
            b'"' => at = string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' => at += 1,
            _ => {
                while bytes.get(at).is_some_and(|byte| !b",:{}[]\" \t\r\n/".contains(byte)) {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}
