//! What a tool call does to the world, and what an approval leases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    digest::{Digest, Encoder},
    id::Incarnation,
    time::Time,
};

/// What a tool call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
}

/// Whether a call whose outcome is unknown may be made again without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Harmless: it reads, or the tool honours the call id as idempotency key.
    Harmless,
    /// Only a person may say.
    AskFirst,
}

/// A tool as it stands when a call to it is recorded or started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Bracket {
    /// Which life of which process acts.
    pub incarnation: Incarnation,
    /// A worker that has not begun by then abandons.
    pub start_by: Time,
    /// Until then the effect may still be under way.
    pub deadline: Time,
}

/// The files an approval leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathLease {
    /// None.
    #[default]
    Nothing,
    /// Everything under the workspace root.
    Workspace,
}

/// What an approval leases. It ends with the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
        match self.paths {
            PathLease::Workspace => {
                words.push("change files under the workspace root, without asking again".into());
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
            words.push(format!("make at most {calls} calls"));
        }
        words
    }

    pub(crate) fn encode(&self, encoder: Encoder) -> Encoder {
        let encoder = encoder.number("tools", self.tools.len() as u64);
        let encoder = self.tools.iter().fold(encoder, |encoder, (name, schema)| {
            encoder.field("tool", name).bytes("schema", &schema.0)
        });
        let paths = match self.paths {
            PathLease::Nothing => "nothing",
            PathLease::Workspace => "workspace",
        };
        let encoder = encoder.field("paths", paths).number("hosts", self.hosts.len() as u64);
        let encoder = self.hosts.iter().fold(encoder, |encoder, host| encoder.field("host", host));
        encoder
            .optional("spend", self.spend_micros_max.map(|spend| spend.to_string()).as_deref())
            .optional("calls", self.calls_max.map(|calls| calls.to_string()).as_deref())
            .optional("expires", self.expires_at.map(|at| at.0.to_string()).as_deref())
    }
}

/// Something that a call did to the world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touched {
    /// A file was written, so many bytes.
    Wrote {
        /// The path under the workspace root.
        path: String,
        /// Its size afterwards.
        bytes: u64,
    },
}

impl Touched {
    /// In words, for the completion card.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Wrote { path, bytes } => format!("wrote {path} ({bytes} bytes)"),
        }
    }
}
