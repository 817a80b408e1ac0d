//! What a tool call does to the world, and what an approval leases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    digest::{Digest, Encoder},
    id::Incarnation,
    time::Time,
};

/// What a tool call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Own plan, notebook and memory: always runs, never a step.
    Internal,
    /// Looks, and changes nothing.
    Read,
    /// Changes files.
    Write,
    /// Reaches outside. What is unknown counts as this.
    External,
}

impl Effect {
    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Read => "read",
            Self::Write => "write",
            Self::External => "external",
        }
    }

    /// Whether what such a tool gives is from outside: a page, a file, what another program says. What was written is not.
    #[must_use]
    pub const fn brings_outside(self) -> bool {
        match self {
            Self::Read | Self::External => true,
            Self::Internal | Self::Write => false,
        }
    }
}

/// Whether a call whose outcome is unknown may be made again without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Harmless: it reads, or the tool honours the call id as idempotency key.
    Harmless,
    /// Only a person may say.
    AskFirst,
}

/// A tool as it stands when a call to it is recorded or started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolFacts {
    /// What it does to the world.
    pub effect: Effect,
    /// Whether it may be repeated unasked.
    pub repeat: Repeat,
    /// The digest of its schema; a lease holds only for the schema that was leased.
    pub schema: Digest,
}

/// The committed beginning of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bracket {
    /// Which life of which process acts.
    pub incarnation: Incarnation,
    /// A worker that has not begun by then abandons.
    pub start_by: Time,
    /// Until then the effect may still be under way.
    pub deadline: Time,
}

/// What one call is aimed at, as its tool reads the arguments. Both empty: the tool does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Aim {
    /// Paths under the session's root.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paths: BTreeSet<String>,
    /// Hosts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
}

impl Aim {
    /// What a grant for calls like this one covers: the directory of each path, and the hosts.
    #[must_use]
    pub fn pattern(&self) -> Option<Self> {
        let directory = |path: &String| match path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/"),
            None => path.clone(),
        };
        let paths: BTreeSet<_> = self.paths.iter().map(directory).collect();
        let pattern = Self { paths, hosts: self.hosts.clone() };
        (pattern != Self::default()).then_some(pattern)
    }

    /// Whether everything that a call is aimed at lies in this.
    #[must_use]
    pub fn covers(&self, call: &Self) -> bool {
        *call != Self::default()
            && call.paths.iter().all(|path| lies_under(path, &self.paths))
            && call.hosts.iter().all(|host| is_host_of(host, &self.hosts))
    }

    /// In words.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.paths.iter().chain(&self.hosts).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a path is one of these, or lies in one that ends with a slash.
fn lies_under(path: &str, leased: &BTreeSet<String>) -> bool {
    let climbs = path.starts_with('/') || path.split('/').any(|part| part == "..");
    let holds = |leased: &String| {
        path == leased || (leased.ends_with('/') && path.starts_with(leased.as_str()))
    };
    !climbs && leased.iter().any(holds)
}

/// Whether a host is one of these, or lies under one that is written `*.name`.
fn is_host_of(host: &str, leased: &BTreeSet<String>) -> bool {
    let holds = |leased: &String| match leased.strip_prefix('*') {
        Some(suffix) => suffix.starts_with('.') && host.ends_with(suffix),
        None => host == leased,
    };
    leased.iter().any(holds)
}

/// The files an approval leases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PathLease {
    /// None.
    #[default]
    Nothing,
    /// Everything under the session's root.
    Workspace,
    /// These, and what lies in those that end with a slash.
    Under(BTreeSet<String>),
}

/// What an approval leases. It ends with the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Envelope {
    /// The leased tools, each with the digest of the schema it had.
    pub tools: BTreeMap<String, Digest>,
    /// The leased files.
    pub paths: PathLease,
    /// The leased hosts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// The most it may cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend_micros_max: Option<u64>,
    /// The most calls it may make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    /// When the lease ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Envelope {
    /// What it allows, in sentences that a person reads before deciding.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let tools: Vec<_> = self.tools.keys().map(String::as_str).collect();
        match &self.paths {
            PathLease::Workspace => {
                words.push("change files under its root, without asking again".into());
            }
            PathLease::Under(paths) => {
                let paths: Vec<_> = paths.iter().map(String::as_str).collect();
                words.push(format!("change {}, without asking again", paths.join(", ")));
            }
            PathLease::Nothing => {}
        }
        if !tools.is_empty() {
            words.push(format!("use {}", tools.join(", ")));
        }
        if !self.hosts.is_empty() {
            let hosts: Vec<_> = self.hosts.iter().map(String::as_str).collect();
            words.push(format!("reach {}", hosts.join(", ")));
        }
        if let Some(spend) = self.spend_micros_max {
            words.push(format!("spend at most ${:.2}", spend as f64 / 1e6));
        }
        if let Some(calls) = self.calls_max {
            words.push(format!("make at most {calls} calls that change something"));
        }
        if let Some(end) = self.expires_at {
            words.push(format!("until {end}"));
        }
        words
    }

    /// Why a call is outside of it, in words; nothing if it is inside.
    #[must_use]
    pub fn excludes(&self, tool: &str, aim: &Aim, made: u32, at: Time) -> Option<String> {
        if !self.tools.contains_key(tool) {
            return Some(format!("the approval does not lease {tool}"));
        }
        if self.expires_at.is_some_and(|end| end <= at) {
            return Some("the lease has expired".into());
        }
        if let Some(max) = self.calls_max.filter(|max| made >= *max) {
            return Some(format!("the {max} calls that were leased are made"));
        }
        let path = aim.paths.iter().find(|path| match &self.paths {
            PathLease::Nothing => true,
            PathLease::Workspace => false,
            PathLease::Under(leased) => !lies_under(path, leased),
        });
        if let Some(path) = path {
            return Some(format!("the approval does not lease {path}"));
        }
        let host = aim.hosts.iter().find(|host| !is_host_of(host, &self.hosts));
        host.map(|host| format!("the approval does not lease {host}"))
    }

    pub(crate) fn encode(&self, encoder: Encoder) -> Encoder {
        let encoder = encoder.number("tools", self.tools.len() as u64);
        let encoder = self.tools.iter().fold(encoder, |encoder, (name, schema)| {
            encoder.field("tool", name).bytes("schema", &schema.0)
        });
        let (kind, paths) = match &self.paths {
            PathLease::Nothing => ("nothing", None),
            PathLease::Workspace => ("workspace", None),
            PathLease::Under(paths) => ("under", Some(paths)),
        };
        let encoder = encoder.field("paths", kind);
        let listed = paths.into_iter().flatten();
        let encoder = listed.fold(encoder, |encoder, path| encoder.field("path", path));
        let encoder = encoder.number("hosts", self.hosts.len() as u64);
        let encoder = self.hosts.iter().fold(encoder, |encoder, host| encoder.field("host", host));
        encoder
            .optional("spend", self.spend_micros_max.map(|spend| spend.to_string()).as_deref())
            .optional("calls", self.calls_max.map(|calls| calls.to_string()).as_deref())
            .optional("expires", self.expires_at.map(|at| at.0.to_string()).as_deref())
    }
}

/// What a plan asks to be leased, or an approver grants instead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Declared {
    /// The tools, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// The paths, and what lies in those that end with a slash; `./` is the whole workspace.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paths: BTreeSet<String>,
    /// The hosts; `*.name` is all under a name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// The most it may cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend_micros_max: Option<u64>,
    /// The most calls it may make that change something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    /// How long the lease lasts, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_micros: Option<i64>,
}

impl Declared {
    /// The lease that an approval at this time gives, with the tools as they stand.
    #[must_use]
    pub fn lease(&self, schemas: &BTreeMap<String, Digest>, at: Time) -> Envelope {
        let leased = |name: &String| Some((name.clone(), *schemas.get(name)?));
        let paths = match &self.paths {
            paths if paths.contains("./") => PathLease::Workspace,
            paths if paths.is_empty() => PathLease::Nothing,
            paths => PathLease::Under(paths.clone()),
        };
        Envelope {
            tools: self.tools.iter().filter_map(leased).collect(),
            paths,
            hosts: self.hosts.clone(),
            spend_micros_max: self.spend_micros_max,
            calls_max: self.calls_max,
            expires_at: self.lasts_micros.map(|lasts| at.plus_micros(lasts)),
        }
    }

    /// Adds it to an encoding.
    pub(crate) fn encode(&self, encoder: Encoder) -> Encoder {
        let lists = [("tools", &self.tools), ("paths", &self.paths), ("hosts", &self.hosts)];
        let encoder = lists.into_iter().fold(encoder, |encoder, (tag, entries)| {
            let encoder = encoder.number(tag, entries.len() as u64);
            entries.iter().fold(encoder, |encoder, entry| encoder.field(tag, entry))
        });
        encoder
            .optional("spend", self.spend_micros_max.map(|spend| spend.to_string()).as_deref())
            .optional("calls", self.calls_max.map(|calls| calls.to_string()).as_deref())
            .optional("lasts", self.lasts_micros.map(|lasts| lasts.to_string()).as_deref())
    }
}

/// Something that a call did to the world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Touched {
    /// A file was written, so many bytes.
    Wrote {
        /// The path under the session's root.
        path: String,
        /// Its size afterwards.
        bytes: u64,
    },
    /// A host was reached.
    Reached {
        /// Its name.
        host: String,
    },
}

impl Touched {
    /// In words, for the completion card.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Wrote { path, bytes } => format!("wrote {path} ({bytes} bytes)"),
            Self::Reached { host } => format!("reached {host}"),
        }
    }
}

/// What a call made of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// The path under the session's root.
    pub path: String,
    /// The digest of what it held before; none if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The digest of what it holds now.
    pub after: Digest,
    /// The lines that differ, as a unified diff; none if that is longer than [`crate::limits::DIFF_BYTES_MAX`], or what it held
    /// is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The built-in file tools, which approving a `document` plan leases under the session's root.
pub const FILE_TOOLS: [&str; 6] =
    ["list_files", "glob_files", "grep_files", "read_file", "write_file", "edit_file"];

/// What approving a `document` plan leases: the built-in file tools under the session's root.
#[must_use]
pub fn document_envelope(schemas: &BTreeMap<String, Digest>) -> Envelope {
    let leased = |name: &str| Some((name.to_owned(), *schemas.get(name)?));
    let tools: BTreeMap<_, _> = FILE_TOOLS.into_iter().filter_map(leased).collect();
    let paths = if tools.is_empty() { PathLease::Nothing } else { PathLease::Workspace };
    Envelope { tools, paths, ..Envelope::default() }
}
