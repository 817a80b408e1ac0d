//! The configuration: one TOML file, described by a schema, strict about what it does not know.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use schemars::JsonSchema;
use serde::Deserialize;

/// Everything that can be set. What is not set has a secure default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The server that `planwright up` starts.
    pub server: ServerConfig,
    /// The model.
    pub model: ModelConfig,
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
            if !known.contains(&key) {
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
    let schema = schema();
    let sections = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut keys = Vec::new();
    for (section, described) in sections {
        let reference = described["$ref"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches("#/$defs/")
            .to_owned();
        let settings =
            schema["$defs"][reference]["properties"].as_object().cloned().unwrap_or_default();
        keys.extend(settings.keys().map(|setting| format!("{section}.{setting}")));
    }
    keys
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
