//! The settings of tools: web pages, commands, MCP servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use planwright_domain::effect::{Effect, Repeat};
use planwright_outbound::toolbox_mcp::{Confinement, McpServer, Pinned};
use schemars::JsonSchema;
use serde::Deserialize;

use super::cluster::is_here;

/// Web pages.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// The hosts whose pages may be fetched; `*.name` is all under a name. Without any there is no such tool.
    pub hosts: BTreeSet<String>,
}

/// Commands.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandConfig {
    /// Whether there is a tool that runs commands, in a sandbox. It needs Linux 6.12 or newer.
    pub enabled: bool,
    /// How long a command may take, in seconds; less than `effects.tool_seconds`.
    pub seconds: u32,
    /// How much memory each process of a command may have, in MiB.
    pub memory_mib: u32,
    /// How large a file a command may write, in MiB.
    pub file_mib: u32,
    /// What commands may read and execute, besides the workspace and the system's programs.
    pub read: Vec<PathBuf>,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self { enabled: false, seconds: 45, memory_mib: 2_048, file_mib: 1_024, read: Vec::new() }
    }
}

/// An MCP server: a command, or an address.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The program and its arguments, for a server that speaks over its standard streams.
    pub command: Vec<String>,
    /// What its environment holds, besides `PATH`. Nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// What it may read and execute besides the system's programs.
    pub read: Vec<PathBuf>,
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// Whether it may speak over the network.
    pub network: bool,
    /// What happens where this machine cannot confine it.
    pub confine: Confine,
    /// The address, for a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// The bearer token, if it wants one.
    pub token: Option<String>,
    /// What you know of its tools, by its own names. What is not named here is `external`.
    pub tools: BTreeMap<String, McpToolConfig>,
}

/// What happens with an MCP server where the machine cannot confine it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confine {
    /// It runs unconfined, and that is said.
    #[default]
    IfPossible,
    /// It does not run.
    Required,
}

/// What the operator says of a tool of an MCP server.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpToolConfig {
    /// What it does to the world.
    pub effect: EffectName,
    /// Whether it may be repeated unasked when nobody knows whether it took effect.
    #[serde(default)]
    pub idempotent: bool,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectName {
    /// Looks, and changes nothing.
    Read,
    /// Changes files.
    Write,
    /// Reaches outside.
    External,
}

impl McpConfig {
    /// Where the server is; in words, if that is not said or not safe.
    pub fn server(&self, name: &str, workspace: &Path, data: &Path) -> anyhow::Result<McpServer> {
        let fits =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || name.len() > 20 || !name.chars().all(fits) {
            bail!("mcp.{name}: a server's name has 1 to 20 small letters, digits or hyphens");
        }
        match (self.command.as_slice(), &self.url) {
            ([], Some(url)) if url.starts_with("https://") || is_here(url) => {
                Ok(McpServer::Http { url: url.clone(), token: self.token.clone() })
            }
            ([], Some(url)) => bail!("mcp.{name}.url = {url} is neither https nor on this machine"),
            ([_, ..], None) => Ok(McpServer::Child {
                command: self.command.clone(),
                environment: self.env.clone(),
                directory: workspace.to_owned(),
                confinement: self.confinement(name, data)?,
            }),
            ([], None) | ([_, ..], Some(_)) => {
                bail!("mcp.{name} needs a command or a url, and not both")
            }
        }
    }

    /// What it may reach; nothing, where this machine cannot confine it and that is allowed.
    fn confinement(&self, name: &str, data: &Path) -> anyhow::Result<Option<Confinement>> {
        let real = |paths: &[PathBuf]| -> anyhow::Result<Vec<PathBuf>> {
            paths.iter().map(|path| apart_from(name, path, data)).collect()
        };
        let (read, write) = (real(&self.read)?, real(&self.write)?);
        match (planwright_sandbox::is_supported(), self.confine) {
            (Ok(()), _) => Ok(Some(Confinement {
                keeper: std::env::current_exe()?,
                read,
                write,
                network: self.network,
            })),
            (Err(why), Confine::Required) => bail!("mcp.{name}.confine = \"required\": {why}"),
            (Err(why), Confine::IfPossible) => {
                tracing::warn!(server = name, why, event = "mcp_unconfined");
                Ok(None)
            }
        }
    }

    /// What the operator says of its tools.
    #[must_use]
    pub fn pinned(&self) -> BTreeMap<String, Pinned> {
        let pinned = |(name, tool): (&String, &McpToolConfig)| {
            let effect = match tool.effect {
                EffectName::Read => Effect::Read,
                EffectName::Write => Effect::Write,
                EffectName::External => Effect::External,
            };
            let harmless = tool.idempotent || effect == Effect::Read;
            let repeat = if harmless { Repeat::Harmless } else { Repeat::AskFirst };
            (name.clone(), Pinned { effect, repeat })
        };
        self.tools.iter().map(pinned).collect()
    }
}

/// Where a path of a server's really is; refused if it is not one place, or meets the data directory.
fn apart_from(name: &str, path: &Path, data: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_absolute() {
        bail!("mcp.{name}: {} is relative; write it from the root on", path.display());
    }
    let real = path.canonicalize();
    let real = real.with_context(|| format!("mcp.{name}: {} is not there", path.display()))?;
    if data.starts_with(&real) || real.starts_with(data) {
        bail!(
            "mcp.{name}: {} meets the data directory {}, with which anyone could decide; name what the server needs and no more",
            path.display(),
            data.display()
        );
    }
    Ok(real)
}
