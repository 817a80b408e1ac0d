//! The configuration: one TOML file, described by a schema, strict about what it does not know.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use planwright_domain::{
    effect::{Effect, Repeat},
    plan::Reads,
    policy::Policy,
};
use planwright_outbound::toolbox_mcp::{McpServer, Pinned};
use planwright_runtime::runtime::Settings;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::args::ClusterArgs;

/// Everything that can be set. What is not set has a secure default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The server that `planwright up` starts.
    pub server: ServerConfig,
    /// The model.
    pub model: ModelConfig,
    /// How long effects may take.
    pub effects: EffectsConfig,
    /// The strategy that records calls.
    pub collect: CollectConfig,
    /// Who may decide, and when.
    pub approval: ApprovalConfig,
    /// Web pages.
    pub web: WebConfig,
    /// Commands.
    pub command: CommandConfig,
    /// MCP servers, by name: their tools are called `name__tool`.
    pub mcp: BTreeMap<String, McpConfig>,
    /// Agent profiles, by name: who does a step of a plan. One called `default` is always there.
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// What a node of a cluster is connected to.
    pub cluster: ClusterConfig,
}

/// The server that `planwright up` starts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The address to listen at. Anything but loopback needs `behind_proxy` and `hosts`.
    #[schemars(with = "String")]
    pub bind: SocketAddr,
    /// More values of the Host header that are served, with their ports where they have one.
    pub hosts: Vec<String>,
    /// More origins whose pages may call the API, as `https://name`.
    pub origins: Vec<String>,
    /// A proxy in front of the server ends TLS. Cookies are then sent over TLS only.
    pub behind_proxy: bool,
    /// How many requests a caller may make in a second.
    pub requests_per_second: u32,
    /// How many logins may be tried in a minute.
    pub logins_per_minute: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 7_340)),
            hosts: Vec::new(),
            origins: Vec::new(),
            behind_proxy: false,
            requests_per_second: 1_000,
            logins_per_minute: 10,
        }
    }
}

/// The model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The address of an OpenAI-compatible server, up to and without `/chat/completions`.
    pub url: Option<String>,
    /// The name of the model there.
    pub name: Option<String>,
    /// The key, if the server wants one. The environment variable `PLANWRIGHT_API_KEY` wins.
    pub api_key: Option<String>,
    /// How many tokens one request may hold.
    pub window_tokens: Option<usize>,
    /// What a million tokens cost that the model reads, in dollars.
    pub price_in: Option<f64>,
    /// What a million tokens cost that the model writes, in dollars.
    pub price_out: Option<f64>,
}

/// Who may decide, and when.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// The people who may decide; everyone with the passphrase, if none are named.
    pub people: BTreeSet<String>,
    /// Where they may: `cli`, `web`, `api`; everywhere, if none are named.
    pub surfaces: BTreeSet<String>,
    /// How often a person is reminded of a plan that waits, in hours; never, if not set.
    pub remind_hours: Option<u32>,
    /// How long a revision waits for a decision, in hours; for ever, if not set.
    pub expires_hours: Option<u32>,
}

impl ApprovalConfig {
    /// The policy of the domain.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let micros = |hours: u32| i64::from(hours.max(1)) * 3_600_000_000;
        Policy {
            people: self.people.clone(),
            surfaces: self.surfaces.clone(),
            remind_micros: self.remind_hours.map(micros),
            expires_micros: self.expires_hours.map(micros),
        }
    }
}

/// The strategy that records calls.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CollectConfig {
    /// What becomes of calls that only read while a plan is collected.
    pub reads: CollectReads,
}

/// What becomes of calls that only read while a plan is collected.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectReads {
    /// They become steps, like every other call.
    #[default]
    Record,
    /// They run, so that the model can look before it plans.
    Run,
}

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
    /// The address, for a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// The bearer token, if it wants one.
    pub token: Option<String>,
    /// What you know of its tools, by its own names. What is not named here is `external`.
    pub tools: BTreeMap<String, McpToolConfig>,
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
    pub fn server(&self, name: &str, workspace: &Path) -> anyhow::Result<McpServer> {
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
            }),
            ([], None) | ([_, ..], Some(_)) => {
                bail!("mcp.{name} needs a command or a url, and not both")
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

/// An agent profile.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileConfig {
    /// What the model is told besides, in a step of this profile.
    pub prompt: String,
    /// The name of the model, at the same server; the one of the conversation if it is not named.
    pub model: Option<String>,
    /// The tools it may use; all of them if none are named.
    pub tools: Option<BTreeSet<String>>,
    /// How often the model may be asked in one step.
    pub rounds: Option<u32>,
}

/// How long effects may take.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EffectsConfig {
    /// How long one model call may take, in seconds; at most 1200.
    pub model_seconds: u32,
    /// How long one tool call may take, in seconds; at most 1200.
    pub tool_seconds: u32,
    /// How long after its recorded start an effect may still begin, in seconds.
    pub start_by_seconds: u32,
    /// How long a call waits for a person's permission before it is denied, in hours.
    pub permission_hours: u32,
}

impl Default for EffectsConfig {
    fn default() -> Self {
        Self { model_seconds: 600, tool_seconds: 60, start_by_seconds: 30, permission_hours: 24 }
    }
}

/// The engine discards calls that take longer than it was told effects may take.
const EFFECT_SECONDS_MAX: u32 = 1_200;

impl Config {
    /// The settings of the runtime.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let ms = |seconds: u32| i64::from(seconds) * 1_000;
        let effects = &self.effects;
        Settings {
            model_deadline_ms: ms(effects.model_seconds),
            tool_deadline_ms: ms(effects.tool_seconds),
            start_by_ms: ms(effects.start_by_seconds),
            permission_ms: i64::from(effects.permission_hours) * 3_600_000,
            collect_reads: match self.collect.reads {
                CollectReads::Record => Reads::Record,
                CollectReads::Run => Reads::Run,
            },
            ..Settings::default()
        }
    }
}

/// What a node of a cluster is connected to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// The database: `postgresql://user@host:port/name`, or with `host=/directory` a unix socket.
    pub database: Option<String>,
    /// The message bus: `nats://host:port`.
    pub nats: Option<String>,
    /// What the bus's subjects begin with; installations that share a bus differ in it.
    pub subjects: String,
    /// The engine's ingress: `http://host:port`, or `unix:/path/ingress.sock`.
    pub ingress: Option<String>,
    /// The engine's administration, for `planwright cluster`: as the ingress.
    pub admin: Option<String>,
    /// Where this node listens for the engine's calls.
    #[schemars(with = "String")]
    pub endpoint: SocketAddr,
    /// The engine's public key; calls that it did not sign are then refused.
    pub identity_key: Option<String>,
    /// How long what has started may take to end when the node is told to stop, in seconds.
    pub drain_seconds: u64,
    /// The connections to database, bus and engine leave this machine, over a network that is yours alone.
    pub private_network: bool,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            database: None,
            nats: None,
            subjects: "planwright".into(),
            ingress: None,
            admin: None,
            endpoint: SocketAddr::from(([127, 0, 0, 1], 9_080)),
            identity_key: None,
            drain_seconds: 60,
            private_network: false,
        }
    }
}

impl ClusterConfig {
    /// The same, with what the arguments or the environment say instead.
    #[must_use]
    pub fn with(&self, args: &ClusterArgs) -> Self {
        let or = |said: &Option<String>, kept: &Option<String>| said.clone().or(kept.clone());
        Self {
            database: or(&args.database, &self.database),
            nats: or(&args.nats, &self.nats),
            ingress: or(&args.ingress, &self.ingress),
            admin: or(&args.admin, &self.admin),
            endpoint: args.endpoint.unwrap_or(self.endpoint),
            ..self.clone()
        }
    }

    /// Nothing on these connections is encrypted: they stay here, or on a network that is declared.
    pub fn check(&self) -> anyhow::Result<()> {
        let endpoint = format!("http://{}", self.endpoint);
        let addresses = [
            ("cluster.database", self.database.as_deref()),
            ("cluster.nats", self.nats.as_deref()),
            ("cluster.ingress", self.ingress.as_deref()),
            ("cluster.admin", self.admin.as_deref()),
            ("cluster.endpoint", Some(endpoint.as_str())),
        ];
        for (name, address) in addresses {
            let Some(address) = address else { continue };
            if !self.private_network && !is_here(address) {
                bail!(
                    "{name} = {} is not on this machine, and nothing there would be encrypted; use loopback or a unix socket, or set cluster.private_network = true if the network is yours alone",
                    without_secret(address)
                );
            }
        }
        Ok(())
    }
}

/// Whether an address is a unix socket or loopback.
fn is_here(address: &str) -> bool {
    if address.starts_with("unix:") || address.contains("host=/") || address.contains("host=%2F") {
        return true;
    }
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An address without what stands before its host.
#[must_use]
pub fn without_secret(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, _) | (_, None) => address.to_owned(),
    }
}

impl Config {
    /// The configuration that is named, else the one in the data directory, else the defaults.
    pub fn load(named: Option<&Path>, data: &Path) -> anyhow::Result<Self> {
        let path = named.map_or_else(|| data.join("config.toml"), PathBuf::from);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => bail!("the configuration {} cannot be read: {error}", path.display()),
        };
        let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            bail!(
                "others can read the configuration {0} (mode {mode:o}), and it may hold a key; run: chmod 600 {0}",
                path.display()
            );
        }
        Self::parse(&text).with_context(|| format!("in the configuration {}", path.display()))
    }

    /// Reads the text of a configuration.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let table: toml::Table = text.parse().context("it is not TOML; mend it or remove it")?;
        let known = keys();
        for key in written(&table, "") {
            if !is_known(&key, &known) {
                let nearest = nearest(&key, &known);
                bail!(
                    "there is no setting {key}; did you mean {nearest}? (planwright config lists them)"
                );
            }
        }
        let config: Self = table.try_into().context("a value does not fit")?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> anyhow::Result<()> {
        let effects = &self.effects;
        for (name, seconds) in [("model", effects.model_seconds), ("tool", effects.tool_seconds)] {
            if !(1..=EFFECT_SECONDS_MAX).contains(&seconds) {
                bail!("effects.{name}_seconds = {seconds} is not from 1 to {EFFECT_SECONDS_MAX}");
            }
        }
        self.cluster.check()?;
        let server = &self.server;
        if server.bind.ip().is_loopback() {
            return Ok(());
        }
        if !server.behind_proxy {
            bail!(
                "server.bind = {} is not loopback, and nothing there would be encrypted; put a proxy that ends TLS in front and set server.behind_proxy = true, or bind to 127.0.0.1",
                server.bind
            );
        }
        if server.hosts.is_empty() {
            bail!(
                "server.bind = {} is not loopback; name the hosts by which it is reached in server.hosts",
                server.bind
            );
        }
        Ok(())
    }
}

/// The JSON Schema of the configuration.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

/// Every setting there is, from the schema.
#[must_use]
pub fn keys() -> Vec<String> {
    let (schema, mut keys) = (schema(), Vec::new());
    describe(&schema, &schema, "", &mut keys);
    keys
}

/// The settings under a part of the schema. What may have any name is called `NAME`.
fn describe(
    schema: &serde_json::Value,
    part: &serde_json::Value,
    path: &str,
    keys: &mut Vec<String>,
) {
    let named = part["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    let part = named.map_or(part, |name| &schema["$defs"][name]);
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(settings) = part["properties"].as_object() {
        settings.iter().for_each(|(key, part)| describe(schema, part, &inside(key), keys));
    } else if part["additionalProperties"].is_object() {
        describe(schema, &part["additionalProperties"], &inside("NAME"), keys);
    } else {
        keys.push(path.to_owned());
    }
}

/// Whether a setting is one of these, where `NAME` stands for any name.
fn is_known(key: &str, known: &[String]) -> bool {
    let fits = |known: &String| {
        known.split('.').count() == key.split('.').count()
            && known
                .split('.')
                .zip(key.split('.'))
                .all(|(known, part)| known == "NAME" || known == part)
    };
    known.iter().any(fits)
}

fn written(table: &toml::Table, above: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => found.extend(written(inner, &format!("{above}{key}."))),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => found.push(format!("{above}{key}")),
        }
    }
    found
}

fn nearest<'a>(key: &str, known: &'a [String]) -> &'a str {
    let likeness = |known: &&String| {
        (similar::TextDiff::from_chars(key, known.as_str()).ratio() * 1_000.0) as u32
    };
    known.iter().max_by_key(likeness).map_or("server.bind", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::{Config, is_here, without_secret};

    #[test]
    fn servers_and_profiles_may_have_any_name_and_their_settings_may_not() {
        let text = "[mcp.notes]\ncommand = [\"notes\"]\nenv = { A = \"b\" }\n\
                    [mcp.notes.tools.search]\neffect = \"read\"\n[profiles.writer]\nrounds = 3\n";
        let config = Config::parse(text).expect("it fits");
        assert_eq!((config.mcp.len(), config.profiles["writer"].rounds), (1, Some(3)));
        for wrong in ["[mcp.notes]\ncolour = 1\n", "[profiles.writer]\nprompts = \"x\"\n"] {
            let refused = Config::parse(wrong).expect_err("it does not fit").to_string();
            assert!(refused.starts_with("there is no setting"), "{refused}");
        }
    }

    #[test]
    fn an_address_is_here_only_if_its_host_is() {
        let here = [
            "postgresql://me:secret@127.0.0.1:5432/plans",
            "postgresql:///plans?host=/run/postgresql",
            "unix:/run/restate/ingress.sock",
            "nats://localhost:4222",
            "http://[::1]:8080",
        ];
        let elsewhere = [
            "postgresql://127.0.0.1@db.example:5432/plans",
            "nats://10.0.0.7:4222",
            "http://localhost.example:8080/127.0.0.1",
            "db.example",
        ];
        assert_eq!(here.map(is_here), [true; 5]);
        assert_eq!(elsewhere.map(is_here), [false; 4]);
        assert_eq!(without_secret(here[0]), "postgresql://127.0.0.1:5432/plans");
    }
}
