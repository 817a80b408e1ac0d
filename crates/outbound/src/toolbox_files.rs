//! Files under a session's root: list, glob, grep, read, write, edit. No path leads out of it.

use std::{
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions, OpenOptionsExt as _},
};
use globset::GlobBuilder;
use planwright_domain::{
    effect::{Aim, Effect, Repeat, Touched},
    identity::Root,
    tools::{FILE_TOOLS, ToolSpec},
    turn::CallResult,
};
use planwright_runtime::{
    failpoint,
    ports::toolbox::{Ran, Tool, ToolRun, Toolbox, root_not_configured},
};
use regex::Regex;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

mod change;

use change::{Before, change};

/// How many entries or matches one call lists.
const ROWS_MAX: usize = 500;
/// How many files one grep opens.
const FILES_MAX: usize = 20_000;
/// The largest file that is read or written.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The file tools, under each of several roots.
#[derive(Debug)]
pub struct FileToolbox {
    /// The first is that of sessions that have none.
    roots: Vec<(Root, Arc<Dir>)>,
    tools: Arc<Vec<Tool>>,
}

/// Why a workspace root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Tools could reach the journal, or the journal the tools.
    #[error(
        "{root} and the data directory {data} lie inside each other; choose another directory with --workspace or in workspace.roots"
    )]
    OverlapsData {
        /// The workspace.
        root: String,
        /// The data directory.
        data: String,
    },
    /// What works in one could replace the other.
    #[error(
        "{root} and {other} lie inside each other, and sessions of one could change what the other is; choose directories apart"
    )]
    Nested {
        /// The root.
        root: String,
        /// The other one.
        other: String,
    },
    /// The system said no.
    #[error("the directory {root} cannot be used: {source}")]
    Unusable {
        /// The workspace.
        root: String,
        /// Why.
        source: io::Error,
    },
}

impl FileToolbox {
    /// The file tools under this root, which is made if it is not there.
    pub fn open(root: &Path, data: &Path) -> Result<Self, WorkspaceError> {
        std::fs::create_dir_all(root).map_err(|source| unusable(root, source))?;
        let roots = vec![opened(root, data)?];
        Ok(Self { roots, tools: Arc::new(FILE_TOOLS.into_iter().map(tool).collect()) })
    }

    /// The same, and under this root too, which must be there.
    pub fn and_under(mut self, root: &Path, data: &Path) -> Result<Self, WorkspaceError> {
        let opened = opened(root, data)?;
        let new = Path::new(&opened.0.0);
        for (known, _) in &self.roots {
            let known = Path::new(&known.0);
            if known != new && (known.starts_with(new) || new.starts_with(known)) {
                let (root, other) = (new.display().to_string(), known.display().to_string());
                return Err(WorkspaceError::Nested { root, other });
            }
        }
        if self.roots.iter().all(|(known, _)| *known != opened.0) {
            self.roots.push(opened);
        }
        Ok(self)
    }

    /// The roots, as sessions name them; the configured workspace first.
    #[must_use]
    pub fn roots(&self) -> Vec<Root> {
        self.roots.iter().map(|(root, _)| root.clone()).collect()
    }

    fn directory(&self, root: Option<&Root>) -> Result<Arc<Dir>, String> {
        let found = match root {
            None => self.roots.first(),
            Some(root) => self.roots.iter().find(|(known, _)| known == root),
        };
        found
            .map(|(_, directory)| directory.clone())
            .ok_or_else(|| root_not_configured(root, &self.roots()))
    }
}

fn unusable(root: &Path, source: io::Error) -> WorkspaceError {
    WorkspaceError::Unusable { root: root.display().to_string(), source }
}

/// A root that is there and keeps clear of the data directory.
fn opened(root: &Path, data: &Path) -> Result<(Root, Arc<Dir>), WorkspaceError> {
    let unusable = |source| unusable(root, source);
    let (real, data) =
        (root.canonicalize().map_err(unusable)?, data.canonicalize().map_err(unusable)?);
    if real.starts_with(&data) || data.starts_with(&real) {
        let (root, data) = (real.display().to_string(), data.display().to_string());
        return Err(WorkspaceError::OverlapsData { root, data });
    }
    let named = real.to_str().ok_or_else(|| {
        unusable(io::Error::other("its name is not text; choose a directory whose name is"))
    })?;
    let directory = Dir::open_ambient_dir(&real, ambient_authority()).map_err(unusable)?;
    Ok((Root(named.to_owned()), Arc::new(directory)))
}

#[async_trait]
impl Toolbox for FileToolbox {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.tools.clone()
    }

    fn aim(&self, root: Option<&Root>, tool: &str, arguments: &str) -> Aim {
        let path = match Request::parse(tool, arguments) {
            Ok(Request::Write(Write { path, .. }) | Request::Edit(Edit { path, .. })) => path,
            Ok(Request::List(_) | Request::Glob(_) | Request::Grep(_) | Request::Read(_))
            | Err(_) => {
                return Aim::default();
            }
        };
        let path = relative(Some(&path)).map(|path| match self.directory(root) {
            Ok(directory) => real_location(&directory, path),
            // A root that is not there: nothing will run.
            Err(_) => path,
        });
        let path = path.map(|path| path.display().to_string());
        Aim { paths: path.into_iter().collect(), ..Aim::default() }
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        Request::parse(tool, arguments).map(drop)
    }

    async fn run(&self, run: ToolRun) -> Ran {
        let root = match self.directory(run.root.as_ref()) {
            Ok(root) => root,
            Err(words) => return Ran::Ended(CallResult::failed(words)),
        };
        let acted = tokio::task::spawn_blocking(move || {
            let request = Request::parse(&run.tool, &run.arguments)?;
            request.act(&root).map_err(|error| error.to_string())
        })
        .await;
        Ran::Ended(match acted {
            Ok(acted) => acted.unwrap_or_else(CallResult::failed),
            Err(broken) => std::panic::resume_unwind(broken.into_panic()),
        })
    }
}

/// What a call asks for.
enum Request {
    List(PathArgument),
    Glob(Pattern),
    Grep(Pattern),
    Read(Read),
    Write(Write),
    Edit(Edit),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArgument {
    #[serde(default)]
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
    #[serde(default)]
    first_line: Option<usize>,
    #[serde(default)]
    lines: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    old: String,
    new: String,
}

impl Request {
    fn parse(tool: &str, arguments: &str) -> Result<Self, String> {
        fn of<T: DeserializeOwned>(tool: &str, arguments: &str) -> Result<T, String> {
            let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
            serde_json::from_str(arguments)
                .map_err(|error| format!("the arguments of {tool} do not fit: {error}"))
        }
        match tool {
            "list_files" => of(tool, arguments).map(Self::List),
            "glob_files" => of(tool, arguments).map(Self::Glob),
            "grep_files" => of(tool, arguments).map(Self::Grep),
            "read_file" => of(tool, arguments).map(Self::Read),
            "write_file" => of(tool, arguments).map(Self::Write),
            "edit_file" => of(tool, arguments).map(Self::Edit),
            other => Err(format!("there is no tool {other:?}")),
        }
    }

    fn act(self, root: &Dir) -> io::Result<CallResult> {
        match self {
            Self::List(PathArgument { path }) => {
                let mut rows = Vec::new();
                walk(root, &relative(path.as_deref())?, &mut |path, size| {
                    rows.push(format!("{} ({size} bytes)", path.display()));
                    if rows.len() < ROWS_MAX { Walk::On } else { Walk::Stop }
                })?;
                rows.sort();
                Ok(CallResult::done(or_nothing(rows, "no files")))
            }
            Self::Glob(glob) => glob_files(root, &glob).map(CallResult::done),
            Self::Grep(grep) => grep_files(root, &grep).map(CallResult::done),
            Self::Read(read) => {
                let text = text_of(root, &relative(Some(&read.path))?)?;
                let first = read.first_line.unwrap_or(1).max(1);
                if first == 1 && read.lines.is_none() {
                    return Ok(CallResult::done(text));
                }
                let lines: Vec<_> =
                    text.lines().skip(first - 1).take(read.lines.unwrap_or(usize::MAX)).collect();
                Ok(CallResult::done(lines.join("\n")))
            }
            Self::Write(Write { path, content }) => put(root, &relative(Some(&path))?, &content),
            Self::Edit(Edit { path, old, new }) => {
                let path = relative(Some(&path))?;
                let text = text_of(root, &path)?;
                let count = text.matches(&old).count();
                if old.is_empty() || count != 1 {
                    let words = format!(
                        "old must stand exactly once in {}, and stands {count} times; read the file and give more of it",
                        path.display()
                    );
                    return Err(io::Error::other(words));
                }
                put(root, &path, &text.replacen(&old, &new, 1))
            }
        }
    }
}

/// Writes the whole file or nothing: a new file beside it, synced, takes its place, and its name is synced.
fn put(root: &Dir, path: &Path, content: &str) -> io::Result<CallResult> {
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "the content has {} bytes, and the limit is {FILE_BYTES_MAX}",
            content.len()
        )));
    }
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_directories(root, parent)?;
    }
    let directory = parent.map_or_else(|| root.try_clone(), |parent| root.open_dir(parent))?;
    let there = directory.symlink_metadata(name).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return Err(io::Error::other(format!(
            "{} is there and is not a plain file",
            path.display()
        )));
    }
    let before = match there {
        Some(_) => Some(Before::of(open_plain(&directory, Path::new(name))?)?),
        None => None,
    };
    let beside = format!(".{}.{}.part", name.to_string_lossy(), uuid::Uuid::now_v7().simple());
    let written = (|| {
        let mut file = directory.create(&beside)?;
        file.write_all(content.as_bytes())?;
        failpoint::hit("tool.mid_act");
        file.sync_all()?;
        directory.rename(&beside, &directory, name)?;
        sync_directory(&directory)
    })();
    if let Err(error) = written {
        let _ = directory.remove_file(&beside);
        return Err(error);
    }
    let (path, bytes) = (path.display().to_string(), content.len() as u64);
    let output = format!("wrote {path} ({bytes} bytes)");
    let changes = vec![change(path.clone(), before.as_ref(), content)];
    let touched = vec![Touched::Wrote { path, bytes }];
    Ok(CallResult { touched, changes, ..CallResult::done(output) })
}

/// Makes the directories of this path that are not there, and syncs their names: also of those that are there, because whoever
/// made them may have failed or been killed before their names were synced. Where nothing is to be written that costs nothing.
fn make_directories(root: &Dir, path: &Path) -> io::Result<()> {
    if !root.is_dir(path) {
        root.create_dir_all(path)?;
    }
    for above in path.ancestors().skip(1) {
        let is_root = above.as_os_str().is_empty();
        sync_directory(&if is_root { root.try_clone()? } else { root.open_dir(above)? })?;
    }
    Ok(())
}

/// Makes the names in a directory durable. Its own handle may be one that only names it, so it is opened anew.
fn sync_directory(directory: &Dir) -> io::Result<()> {
    directory.open(".")?.sync_all()
}

/// Opens a plain file. Whatever else has that name is not waited for: to open a pipe takes until somebody opens its
/// other end.
fn open_plain(root: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = root.open_with(path, &options)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(format!("{} is not a plain file", path.display())))
}

fn text_of(root: &Dir, path: &Path) -> io::Result<String> {
    let file = open_plain(root, path)?;
    let size = file.metadata()?.len();
    let too_large = |size: u64| {
        let words =
            format!("{} has {size} bytes, and the limit is {FILE_BYTES_MAX}", path.display());
        Err(io::Error::other(words))
    };
    if size > FILE_BYTES_MAX {
        return too_large(size);
    }
    let mut text = String::new();
    // It may grow while it is read.
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)? as u64;
    if read > FILE_BYTES_MAX { too_large(read) } else { Ok(text) }
}

/// `*` stops at a slash, `**` does not.
fn glob_files(root: &Dir, glob: &Pattern) -> io::Result<String> {
    let pattern = GlobBuilder::new(glob.pattern.trim_start_matches("./").trim_start_matches('/'))
        .literal_separator(true)
        .build()
        .map_err(io::Error::other)?
        .compile_matcher();
    let under = relative(glob.path.as_deref())?;
    let (mut rows, mut files) = (Vec::new(), 0);
    walk(root, &under, &mut |path, _| {
        files += 1;
        if pattern.is_match(path.strip_prefix(&under).unwrap_or(path)) {
            rows.push(path.display().to_string());
        }
        if rows.len() < ROWS_MAX && files < FILES_MAX { Walk::On } else { Walk::Stop }
    })?;
    rows.sort();
    Ok(or_nothing(rows, "no file fits"))
}

fn grep_files(root: &Dir, grep: &Pattern) -> io::Result<String> {
    let pattern = Regex::new(&grep.pattern).map_err(io::Error::other)?;
    let (mut rows, mut files) = (Vec::new(), 0);
    walk(root, &relative(grep.path.as_deref())?, &mut |path, size| {
        files += 1;
        if size <= FILE_BYTES_MAX
            && let Ok(text) = text_of(root, path)
        {
            let matches = text.lines().enumerate().filter(|(_, line)| pattern.is_match(line));
            rows.extend(
                matches
                    .map(|(at, line)| format!("{}:{}: {line}", path.display(), at + 1))
                    .take(ROWS_MAX),
            );
        }
        if rows.len() < ROWS_MAX && files < FILES_MAX { Walk::On } else { Walk::Stop }
    })?;
    rows.truncate(ROWS_MAX);
    Ok(or_nothing(rows, "no match"))
}

#[derive(PartialEq, Eq)]
enum Walk {
    On,
    Stop,
}

/// Visits every plain file under a path. Links are not followed.
fn walk(root: &Dir, path: &Path, visit: &mut dyn FnMut(&Path, u64) -> Walk) -> io::Result<()> {
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let is_root = path.as_os_str().is_empty();
        let entries = if is_root { root.entries()? } else { root.read_dir(&path)? };
        for entry in entries {
            let entry = entry?;
            let (kind, inside) = (entry.file_type()?, path.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(inside);
            } else if kind.is_file() && visit(&inside, entry.metadata()?.len()) == Walk::Stop {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A path as the model wrote it, without a leading `/` or `./`. The root's handle refuses escapes.
fn relative(path: Option<&str>) -> io::Result<PathBuf> {
    let path = path.unwrap_or_default().trim_start_matches('/');
    if path.contains('\0') {
        return Err(io::Error::other("a path cannot hold a zero byte"));
    }
    let parts =
        Path::new(path).components().filter(|part| !matches!(part, std::path::Component::CurDir));
    Ok(parts.collect())
}

/// Where a path under this root really is, after links, as far as it is there. What leads out of the root, and what climbs,
/// stays as it is spelled: neither is leased, and the one fails.
fn real_location(root: &Dir, path: PathBuf) -> PathBuf {
    if path.components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return path;
    }
    // The file itself is replaced, whatever its name leads to: its directory says where.
    let mut missing: Vec<_> = path.file_name().into_iter().collect();
    let mut there = path.parent();
    while let Some(directory) = there.filter(|directory| !directory.as_os_str().is_empty()) {
        match root.canonicalize(directory) {
            Ok(real) => return missing.iter().rev().fold(real, |real, name| real.join(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.extend(directory.file_name());
                there = directory.parent();
            }
            Err(_) => return path,
        }
    }
    path
}

fn or_nothing(rows: Vec<String>, nothing: &str) -> String {
    match rows.len() {
        0 => nothing.into(),
        ROWS_MAX => format!("{}\n(only the first {ROWS_MAX} are listed)", rows.join("\n")),
        _ => rows.join("\n"),
    }
}

fn tool(name: &str) -> Tool {
    let string = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    let (description, effect, required, properties): (_, _, Vec<&str>, Value) = match name {
        "list_files" => {
            ("List files under a path.", Effect::Read, vec![], json!({"path": string()}))
        }
        "glob_files" => (
            "Find files by name, as in src/**/*.rs.",
            Effect::Read,
            vec!["pattern"],
            json!({"pattern": string(), "path": string()}),
        ),
        "grep_files" => (
            "Search files by regular expression.",
            Effect::Read,
            vec!["pattern"],
            json!({"pattern": string(), "path": string()}),
        ),
        "read_file" => (
            "Read a file.",
            Effect::Read,
            vec!["path"],
            json!({"path": string(), "first_line": number(), "lines": number()}),
        ),
        "write_file" => (
            "Write a whole file.",
            Effect::Write,
            vec!["path", "content"],
            json!({"path": string(), "content": string()}),
        ),
        _ => (
            "Replace text that stands exactly once in a file.",
            Effect::Write,
            vec!["path", "old", "new"],
            json!({"path": string(), "old": string(), "new": string()}),
        ),
    };
    let mut parameters = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        parameters["required"] = required.into();
    }
    let repeat = if effect == Effect::Read { Repeat::Harmless } else { Repeat::AskFirst };
    Tool::new(
        ToolSpec { name: name.into(), description: description.into(), parameters, effect },
        repeat,
    )
}
