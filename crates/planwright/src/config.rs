//! The configuration: one TOML file, described by a schema, strict about what it does not know.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use planwright_domain::{
    autonomy::budget::Budget, digest::Digest, identity::Root, limits::JITTER_MICROS_MAX,
    plan::Reads, policy::Policy,
};
use planwright_runtime::settings::{MemorySettings, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

pub mod audit;
pub mod cluster;
mod keys;
pub mod limits;
pub mod model;
pub mod notebook;
pub mod secrets;
pub mod tools;

use audit::AuditConfig;
use cluster::ClusterConfig;
use keys::{is_known, nearest, written};
use limits::{LimitsConfig, RetentionConfig};
use model::{ModelConfig, RolesConfig};
use notebook::NotebookConfig;
use secrets::in_configuration;
use tools::{CommandConfig, McpConfig, WebConfig};

/// Everything that can be set. What is not set has a secure default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The values in it that are secret, by the names of their settings.
    #[serde(skip)]
    #[schemars(skip)]
    pub secrets: Vec<(String, String)>,
    /// The server that `planwright up` starts.
    pub server: ServerConfig,
    /// The model of the conversation.
    pub model: ModelConfig,
    /// More models, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// Which of them does what.
    pub roles: RolesConfig,
    /// How long effects may take.
    pub effects: EffectsConfig,
    /// The strategy that records calls.
    pub collect: CollectConfig,
    /// Who may decide, and when.
    pub approval: ApprovalConfig,
    /// Runs, where nothing else is said when they are started.
    pub auto: AutoConfig,
    /// Where sessions work.
    pub workspace: WorkspaceConfig,
    /// What is remembered.
    pub memory: MemoryConfig,
    /// The notebook.
    pub notebook: NotebookConfig,
    /// The figures at `/metrics`.
    pub metrics: MetricsConfig,
    /// Web pages.
    pub web: WebConfig,
    /// Commands.
    pub command: CommandConfig,
    /// MCP servers, by name: their tools are called `name__tool`.
    pub mcp: BTreeMap<String, McpConfig>,
    /// Agent profiles, by name: who does a step of a plan. One called `default` is always there.
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// What each owner may use.
    pub limits: LimitsConfig,
    /// How long sessions are kept.
    pub retention: RetentionConfig,
    /// The audit log.
    pub audit: AuditConfig,
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
    /// The addresses of proxies that are believed when they say, in `X-Forwarded-For`, who sent a request. One on this
    /// machine need not be named.
    #[schemars(with = "Vec<String>")]
    pub proxies: Vec<IpAddr>,
    /// Whether other programs of the same user may look into the process: for profilers and debuggers. They then read its
    /// secrets as well.
    pub dumpable: bool,
    /// How many requests a caller may make in a second.
    pub requests_per_second: u32,
    /// How many logins may be tried in a minute from one address. There are three times as many from all of them together.
    pub logins_per_minute: u32,
    /// How many connections may be open. Those whose caller is not known make room for others first.
    pub connections: u32,
    /// How many connections one address may have open. Behind a proxy and on one machine everyone has the same one, and this
    /// does not apply.
    pub connections_per_address: u32,
    /// How many streams one person may have open, with all their tokens and logins together.
    pub streams_per_person: u32,
    /// How many seconds after a restart the session of a foreign agent is kept for it, before another window of the same
    /// project may take it up.
    pub agent_grace_seconds: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 7_340)),
            hosts: Vec::new(),
            origins: Vec::new(),
            behind_proxy: false,
            proxies: Vec::new(),
            dumpable: false,
            requests_per_second: 1_000,
            logins_per_minute: 10,
            connections: 4_096,
            connections_per_address: 1_024,
            streams_per_person: 256,
            agent_grace_seconds: 20,
        }
    }
}

impl ServerConfig {
    /// The same, at the address that the arguments or the environment name.
    #[must_use]
    pub fn at(&self, bind: Option<SocketAddr>) -> Self {
        Self { bind: bind.unwrap_or(self.bind), ..self.clone() }
    }

    /// Where people find the dashboard.
    #[must_use]
    pub fn url(&self) -> String {
        let here = || format!("http://localhost:{}", self.bind.port());
        self.origins.first().cloned().unwrap_or_else(here)
    }

    /// Nothing is encrypted here: beyond loopback a proxy must be in front, and the names of the host known.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.bind.ip().is_loopback() {
            return Ok(());
        }
        if !self.behind_proxy {
            bail!(
                "server.bind = {} is not loopback, and nothing there would be encrypted; put a proxy that ends TLS in front and set server.behind_proxy = true, or bind to 127.0.0.1",
                self.bind
            );
        }
        if self.hosts.is_empty() {
            bail!(
                "server.bind = {} is not loopback; name the hosts by which it is reached in server.hosts",
                self.bind
            );
        }
        Ok(())
    }
}

/// Who may decide, and when.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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
    /// How long ago a person may have given their passphrase, in hours, to decide on what approving a plan leases without a
    /// word: files under the session's root. A login lasts 12 hours.
    pub passphrase_hours: u32,
    /// The same in minutes for everything else: commands, hosts, more money than `auto.spend`, what becomes known everywhere,
    /// and who uses the installation.
    pub passphrase_minutes: u32,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            people: BTreeSet::new(),
            surfaces: BTreeSet::new(),
            remind_hours: None,
            expires_hours: None,
            passphrase_hours: 12,
            passphrase_minutes: 15,
        }
    }
}

impl ApprovalConfig {
    /// How long ago a person may have given their passphrase for what has more risk, in microseconds.
    #[must_use]
    pub fn risky_age_micros(&self) -> i64 {
        i64::from(self.passphrase_minutes.max(1)).saturating_mul(60_000_000)
    }

    /// The policy of the domain.
    #[must_use]
    pub fn policy(&self, auto: &AutoConfig, roots: Vec<Root>) -> Policy {
        let micros = |hours: u32| i64::from(hours.max(1)).saturating_mul(3_600_000_000);
        Policy {
            people: self.people.clone(),
            surfaces: self.surfaces.clone(),
            remind_micros: self.remind_hours.map(micros),
            expires_micros: self.expires_hours.map(micros),
            age_micros_max: Some(micros(self.passphrase_hours)),
            risky_age_micros_max: Some(self.risky_age_micros()),
            usual_spend_micros_max: auto.budget().cost_micros,
            roots,
        }
    }
}

/// Where sessions work.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Directories, beside the workspace itself, that a new session may be begun in: `planwright chat --in DIR`, or chosen in the
    /// dashboard. Each must be there, and apart from the data directory.
    pub roots: Vec<PathBuf>,
}

/// Runs, where nothing else is said when they are started.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AutoConfig {
    /// How long a run may take, in minutes.
    pub minutes: u32,
    /// How often it may ask the model.
    pub model_calls: u32,
    /// How often it may call a tool.
    pub tool_calls: u32,
    /// How many tokens it may use.
    pub tokens: u64,
    /// How much it may cost, in dollars.
    pub spend: f64,
    /// How long after its time a slot of a schedule is tried again, in minutes.
    pub slot_window_minutes: u32,
    /// How long after its time a slot may begin, in seconds, so that those of many schedules do not all begin at once.
    pub jitter_seconds: u32,
}

impl Default for AutoConfig {
    fn default() -> Self {
        Self {
            minutes: 480,
            model_calls: 200,
            tool_calls: 400,
            tokens: 2_000_000,
            spend: 1.0,
            slot_window_minutes: 60,
            jitter_seconds: 0,
        }
    }
}

impl AutoConfig {
    fn budget(&self) -> Budget {
        Budget {
            micros: Some(u64::from(self.minutes) * 60_000_000),
            model_calls: Some(self.model_calls.into()),
            tool_calls: Some(self.tool_calls.into()),
            tokens: Some(self.tokens),
            cost_micros: Some((self.spend.max(0.0) * 1e6) as u64),
        }
    }
}

/// What is remembered.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Whether the agent remembers and is reminded.
    pub enabled: bool,
    /// How many tokens of what is remembered a turn is told at its beginning.
    pub budget_tokens: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { enabled: true, budget_tokens: 800 }
    }
}

/// The figures at `/metrics`.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// Whether figures say which session they are of. Every session then is a series of its own.
    pub session_label: bool,
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

/// An agent profile.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileConfig {
    /// What the model is told besides, in a step of this profile.
    pub prompt: String,
    /// A model of `models`, or the name of one at the same server; the one of the conversation if none is named.
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

/// How many tokens an answer may have, and how many are left free for it.
pub const ANSWER_TOKENS: u32 = 8_192;

/// The engine discards calls that take longer than it was told effects may take.
const EFFECT_SECONDS_MAX: u32 = 1_200;

impl Config {
    /// The JSON Schema of the configuration.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// Every setting there is.
    #[must_use]
    pub fn keys() -> Vec<String> {
        keys::keys(&Self::schema())
    }

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
            budget: self.auto.budget(),
            slot_window_ms: i64::from(self.auto.slot_window_minutes) * 60_000,
            jitter_ms_max: ms(self.auto.jitter_seconds),
            memory: self
                .memory
                .enabled
                .then_some(MemorySettings { budget_tokens: self.memory.budget_tokens }),
            notebook: self.notebook.settings(),
            limits: self.limits.limits(),
            retention: self.retention.retention(),
            answer_tokens: self.model.answer_tokens.unwrap_or(ANSWER_TOKENS) as usize,
            collect_reads: match self.collect.reads {
                CollectReads::Record => Reads::Record,
                CollectReads::Run => Reads::Run,
            },
            ..Settings::default()
        }
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
        let known = Self::keys();
        for key in written(&table, "") {
            if !is_known(&key, &known) {
                let nearest = nearest(&key, &known);
                bail!(
                    "there is no setting {key}; did you mean {nearest}? (planwright config lists them)"
                );
            }
        }
        let secrets = in_configuration(&table);
        let config: Self = table.try_into().context("a value does not fit")?;
        config.check()?;
        Ok(Self { secrets, ..config })
    }

    fn check(&self) -> anyhow::Result<()> {
        let effects = &self.effects;
        for (name, seconds) in [("model", effects.model_seconds), ("tool", effects.tool_seconds)] {
            if !(1..=EFFECT_SECONDS_MAX).contains(&seconds) {
                bail!("effects.{name}_seconds = {seconds} is not from 1 to {EFFECT_SECONDS_MAX}");
            }
        }
        let (seconds, most) = (self.command.seconds, effects.tool_seconds);
        if self.command.enabled && !(1..most).contains(&seconds) {
            bail!(
                "command.seconds = {seconds} must be less than effects.tool_seconds = {most}, so that a command is ended before its call is given up"
            );
        }
        let (seconds, most) = (self.auto.jitter_seconds, JITTER_MICROS_MAX / 1_000_000);
        if i64::from(seconds) > most {
            bail!(
                "auto.jitter_seconds = {seconds} is more than {most}; a slot begins at most so long after its time"
            );
        }
        if let Some(name) = self.roles.names().find(|name| !self.models.contains_key(*name)) {
            bail!("roles: there is no models.{name}; set it, or name another");
        }
        for (name, model) in &self.models {
            model.http(name)?;
        }
        self.cluster.check()?;
        self.server.check()
    }
}

impl Config {
    /// What is set that security rests on, as digests: who may decide, where sessions work, what tools may do, which MCP servers
    /// there are, and what becomes of the audit log.
    #[must_use]
    pub fn security_settings(&self, roots: &impl std::fmt::Debug) -> Vec<(String, Digest)> {
        let settings = [
            ("approval", format!("{:?}", self.approval)),
            ("audit", format!("{:?}", self.audit)),
            ("limits", format!("{:?} {:?}", self.limits, self.retention)),
            ("command", format!("{:?}", self.command)),
            ("mcp", format!("{:?}", self.mcp)),
            ("roots", format!("{roots:?}")),
            ("server", format!("{:?}", self.server)),
            ("web", format!("{:?}", self.web)),
        ];
        settings.map(|(name, text)| (name.to_owned(), Digest::of(text.as_bytes()))).into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, ServerConfig};

    #[test]
    fn an_address_is_checked_whether_a_file_or_an_argument_named_it() {
        let open = "0.0.0.0:7340".parse().ok();
        let refused = |server: &ServerConfig| server.check().map_err(|error| error.to_string());
        let words = refused(&ServerConfig::default().at(open)).expect_err("it is not encrypted");
        assert!(words.contains("put a proxy that ends TLS in front"), "{words}");
        let proxied = ServerConfig { behind_proxy: true, ..ServerConfig::default() };
        let words = refused(&proxied.at(open)).expect_err("it has no name");
        assert!(words.contains("name the hosts"), "{words}");
        let named = ServerConfig { hosts: vec!["plans.example".into()], ..proxied };
        assert_eq!(refused(&named.at(open)), Ok(()));
        assert_eq!(refused(&ServerConfig::default().at("[::1]:7340".parse().ok())), Ok(()));
    }

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
}
