//! A whole cluster of real processes on loopback: database, engine, bus, a scripted model, and as
//! many nodes as are wanted, with a proxy between any two.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use planwright_outbound::lane_restate::RestateAdmin;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    kill::PASSPHRASE,
    scratch,
    scripted_model::{Conduct, ScriptedModel},
    servers::{Daemon, Nats, Postgres, Restate, answers, faults::Proxy, free_port, loopback},
};

pub mod load;

/// A whole cluster.
pub struct Cluster {
    /// The database.
    pub postgres: Postgres,
    /// The engine.
    pub restate: Restate,
    /// The bus.
    pub nats: Nats,
    /// The model.
    pub model: ScriptedModel,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What stands between the engine and the nodes.
    pub balancer: Proxy,
    /// A token that may decide, everywhere.
    pub decider: String,
    /// What that token is called.
    pub grant: Uuid,
    client: Client,
    home: tempfile::TempDir,
    subject: PathBuf,
    settings: String,
}

/// One node, and the proxies between it and everything else.
pub struct Node {
    daemon: Option<Daemon>,
    /// The port of its API.
    pub api: u16,
    endpoint: u16,
    /// From the engine to it.
    pub from_engine: Proxy,
    /// From it to the engine.
    pub to_engine: Proxy,
    /// From it to the database.
    pub to_database: Proxy,
    /// From it to the bus.
    pub to_bus: Proxy,
    /// The program that it runs.
    pub program: PathBuf,
    /// What is set in its environment besides.
    pub environment: Vec<(String, String)>,
}

/// How a cluster is made.
#[derive(Debug, Clone)]
pub struct Shape {
    /// How many nodes.
    pub nodes: usize,
    /// How many servers the engine has.
    pub engines: usize,
    /// What the nodes' configuration says besides.
    pub settings: String,
    /// The program; without it, the one under proof.
    pub program: Option<PathBuf>,
    /// Whether the engine has the settings that people are given; it is one server then.
    pub as_shipped: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { nodes: 3, engines: 1, settings: String::new(), program: None, as_shipped: false }
    }
}

/// How long a node may take to be ready.
const READY_MAX: Duration = Duration::from_secs(20);

impl Cluster {
    /// Starts everything, with a model that behaves so. The program under proof stands beside this
    /// one, or where this names it.
    pub async fn start(conduct: Conduct, shape: Shape) -> anyhow::Result<Self> {
        let subject = shape.program.clone().map_or_else(subject, Ok)?;
        let home = scratch::directory("cluster")?;
        let postgres = Postgres::start();
        let nats = Nats::start();
        let restate = if shape.as_shipped {
            Restate::start_as_shipped()
        } else {
            Restate::start_many(shape.engines)
        };
        let model = ScriptedModel::start(conduct).await?;
        let engines: Vec<_> =
            (0..restate.count()).map(|at| loopback(restate.ingress_port(at))).collect();
        let mut nodes = Vec::new();
        for at in 0..shape.nodes {
            let (api, endpoint) = (free_port(), free_port());
            let mut first = engines.clone();
            first.rotate_left(at % engines.len());
            nodes.push(Node {
                daemon: None,
                api,
                endpoint,
                from_engine: Proxy::before(vec![loopback(endpoint)]).await,
                to_engine: Proxy::before(first).await,
                to_database: Proxy::before(vec![loopback(postgres.port)]).await,
                to_bus: Proxy::before(vec![loopback(nats.port)]).await,
                program: subject.clone(),
                environment: Vec::new(),
            });
        }
        let ways: Vec<SocketAddr> = nodes.iter().map(|node| node.from_engine.address).collect();
        let balancer = Proxy::before(ways).await;
        let mut cluster = Self {
            postgres,
            restate,
            nats,
            model,
            nodes,
            balancer,
            decider: String::new(),
            grant: Uuid::nil(),
            client: Client::builder().timeout(Duration::from_secs(8)).build()?,
            home,
            subject,
            settings: shape.settings,
        };
        for at in 0..shape.nodes {
            cluster.prepare(at)?;
            cluster.launch(at);
        }
        for at in 0..shape.nodes {
            cluster.ready(at).await?;
        }
        cluster.tell("cluster", &["passphrase"], PASSPHRASE)?;
        let admin = RestateAdmin::new(&cluster.restate.admin(0))?;
        admin.register(&format!("http://{}", cluster.balancer.address), false).await?;
        cluster.log_in().await?;
        Ok(cluster)
    }

    /// Where every effect left its line.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.home.path().join("ledger")
    }

    /// Where a node keeps what is its own.
    #[must_use]
    pub fn data(&self, at: usize) -> PathBuf {
        self.home.path().join(format!("node-{at}"))
    }

    fn prepare(&self, at: usize) -> anyhow::Result<()> {
        let data = self.data(at);
        fs::create_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let file = data.join("config.toml");
        let limits = "[server]\nrequests_per_second = 100000\nlogins_per_minute = 1000\n";
        fs::write(&file, format!("{limits}{}", self.settings))?;
        Ok(fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?)
    }

    /// Runs one command of the program against the cluster, with this on its standard input.
    pub fn tell(&self, verb: &str, words: &[&str], input: &str) -> anyhow::Result<String> {
        self.tell_by(&self.subject, verb, words, input)
    }

    /// The same by this program.
    pub fn tell_by(
        &self,
        program: &Path,
        verb: &str,
        words: &[&str],
        input: &str,
    ) -> anyhow::Result<String> {
        use std::io::Write as _;
        let mut child = Command::new(program)
            .arg(verb)
            .args(["--data", &self.home.path().join("operator").display().to_string()])
            .args(words)
            .env("PLANWRIGHT_DATABASE", self.postgres.address())
            .env("PLANWRIGHT_ADMIN", self.restate.admin(0))
            .env("PLANWRIGHT_INGRESS", self.restate.ingress(0))
            .env("PLANWRIGHT_NATS", self.nats.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let _ = writeln!(stdin, "{input}");
        }
        let done = child.wait_with_output()?;
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        anyhow::ensure!(done.status.success(), "{verb} {words:?}: {out}{err}");
        Ok(out.into_owned())
    }

    /// What a person at the terminal of a node sees, and the exit code.
    #[must_use]
    pub fn terminal(&self, at: usize, words: &[&str]) -> (Option<i32>, String) {
        let done = Command::new(&self.subject)
            .args(words)
            .args(["--data", &self.data(at).display().to_string()])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        (done.status.code(), format!("{out}{err}"))
    }

    /// Starts a node.
    pub fn launch(&mut self, at: usize) {
        let node = &self.nodes[at];
        let data = self.data(at).display().to_string();
        let workspace = self.home.path().join("workspace").display().to_string();
        let log = self.home.path().join(format!("node-{at}.log"));
        let url = self.model.base_url();
        let arguments = ["node", "--data", &data, "--workspace", &workspace];
        let values = [
            ("PLANWRIGHT_MODEL", "scripted".to_owned()),
            ("PLANWRIGHT_MODEL_URL", url),
            ("PLANWRIGHT_BIND", loopback(node.api).to_string()),
            ("PLANWRIGHT_ENDPOINT", loopback(node.endpoint).to_string()),
            ("PLANWRIGHT_DATABASE", self.postgres.address_at(node.to_database.address.port())),
            ("PLANWRIGHT_NATS", format!("nats://{}", node.to_bus.address)),
            ("PLANWRIGHT_INGRESS", format!("http://{}", node.to_engine.address)),
            (crate::ledger::LEDGER, self.ledger().display().to_string()),
        ];
        let mut environment: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let besides = &self.nodes[at].environment;
        environment.extend(besides.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let daemon = Daemon::start(&self.nodes[at].program, &arguments, &log, None, &environment);
        self.nodes[at].daemon = Some(daemon);
    }

    /// Waits until a node takes work.
    pub async fn ready(&mut self, at: usize) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let url = format!("http://127.0.0.1:{}/ready", self.nodes[at].api);
            if let Ok(answer) = self.client.get(url).send().await
                && answer.status().is_success()
                && answers(self.nodes[at].endpoint)
            {
                return Ok(());
            }
            let log = || fs::read_to_string(self.home.path().join(format!("node-{at}.log")));
            anyhow::ensure!(
                begun.elapsed() < READY_MAX,
                "node {at} is not ready: {}",
                log().unwrap_or_default()
            );
            if self.nodes[at].daemon.as_mut().is_some_and(Daemon::has_ended) {
                self.launch(at);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Logs in anew: what may decide ends after a quarter of an hour.
    pub async fn log_in(&mut self) -> anyhow::Result<()> {
        let wish = json!({"name": "proof", "passphrase": PASSPHRASE});
        let url = format!("http://127.0.0.1:{}/api/tokens", self.nodes[0].api);
        let answer = self.client.post(url).json(&wish).send().await?.error_for_status()?;
        let given: Value = answer.json().await?;
        self.decider = given["token"].as_str().unwrap_or_default().to_owned();
        self.grant = Uuid::parse_str(given["id"].as_str().unwrap_or_default())?;
        Ok(())
    }

    /// Where the engine reaches a node, with nothing between.
    #[must_use]
    pub fn endpoint(&self, at: usize) -> String {
        format!("http://{}", loopback(self.nodes[at].endpoint))
    }

    /// The process id of a node, while it runs.
    #[must_use]
    pub fn pid(&self, at: usize) -> Option<u32> {
        self.nodes[at].daemon.as_ref().map(Daemon::pid)
    }

    /// Kills a node as `kill -9` does.
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].daemon = None;
    }

    /// Whether a node has ended by itself.
    #[must_use]
    pub fn has_died(&mut self, at: usize) -> bool {
        self.nodes[at].daemon.as_mut().is_none_or(Daemon::has_ended)
    }

    /// Sends a node a signal.
    pub fn signal(&self, at: usize, signal: rustix::process::Signal) {
        if let Some(daemon) = &self.nodes[at].daemon {
            daemon.signal(signal);
        }
    }

    /// Tells a node to stop, and waits until it has.
    pub async fn stop(&mut self, at: usize) -> anyhow::Result<()> {
        self.signal(at, rustix::process::Signal::TERM);
        let begun = Instant::now();
        while self.nodes[at].daemon.as_mut().is_some_and(|daemon| !daemon.has_ended()) {
            anyhow::ensure!(begun.elapsed() < Duration::from_secs(90), "node {at} does not stop");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.nodes[at].daemon = None;
        Ok(())
    }

    /// What a node has printed.
    #[must_use]
    pub fn log(&self, at: usize) -> String {
        fs::read_to_string(self.home.path().join(format!("node-{at}.log"))).unwrap_or_default()
    }

    /// A request to a node by someone who may decide.
    pub fn request(&self, at: usize, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.nodes[at].api);
        self.client.request(method, url).bearer_auth(&self.decider)
    }

    /// Says a line in a session, by way of a node.
    pub async fn says(&self, at: usize, session: &str, line: &str) -> anyhow::Result<Value> {
        let path = format!("/api/sessions/cli:{session}/lines");
        let request = self.request(at, Method::POST, &path).json(&json!({"line": line}));
        let answer = request.send().await?;
        let (status, body) = (answer.status(), answer.json::<Value>().await?);
        anyhow::ensure!(status.is_success(), "{line:?} was answered {status}: {body}");
        if let Some(digest) = body["revision"]["digest"].as_str() {
            let path = format!("/api/sessions/cli:{session}/plan/shown");
            let shown = self.request(at, Method::POST, &path);
            shown.header("if-match", format!("\"{digest}\"")).send().await?;
        }
        Ok(body)
    }

    /// Where a session stands, by way of a node.
    pub async fn status(&self, at: usize, session: &str) -> anyhow::Result<Value> {
        let path = format!("/api/sessions/cli:{session}/status");
        let answer = self.request(at, Method::GET, &path).send().await?;
        anyhow::ensure!(answer.status().is_success(), "{}", answer.status());
        Ok(answer.json().await?)
    }

    /// Waits until a session is so, by way of a node.
    pub async fn until(
        &self,
        at: usize,
        session: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let begun = Instant::now();
        loop {
            if let Ok(status) = self.status(at, session).await
                && is_so(&status)
            {
                return Ok(status);
            }
            anyhow::ensure!(
                begun.elapsed() < Duration::from_secs(30),
                "{session} never gets there"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The program under proof.
fn subject() -> anyhow::Result<PathBuf> {
    program("subject")
}

/// The program under proof as a later version of it would be: it knows one level of stored events more.
pub fn newer_subject() -> anyhow::Result<PathBuf> {
    program("newer-subject")
}

/// A program that is built with this one: beside a proof, or two levels up from a test.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let beside = this.with_file_name(name);
    let above = this.parent().and_then(|place| place.parent()).map(|place| place.join(name));
    [Some(beside), above].into_iter().flatten().find(|place| place.exists()).ok_or_else(|| {
        anyhow::anyhow!("the program under proof is missing; build planwright-testkit")
    })
}
