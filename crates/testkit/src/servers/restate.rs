//! A Restate server of our own, or three that are one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Daemon, S3, answers, free_port, root, temporary};

/// The bucket in which snapshots lie.
const SNAPSHOTS: &str = "snapshots";

/// A Restate server of our own.
#[derive(Debug)]
pub struct Restate {
    nodes: Vec<Node>,
    /// Where several that are one keep what they have taken up, so that none reads the whole log again.
    snapshots: Option<S3>,
    home: tempfile::TempDir,
    /// Whether it has the settings that people are given.
    is_shipped: bool,
}

#[derive(Debug)]
struct Node {
    daemon: Option<Daemon>,
    ingress: u16,
    admin: u16,
    fabric: u16,
}

impl Restate {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        Self::start_many(1)
    }

    /// Starts one with the settings that people are given.
    #[must_use]
    pub fn start_as_shipped() -> Self {
        Self::begin(1, true)
    }

    /// Starts so many that are one cluster.
    #[must_use]
    pub fn start_many(count: usize) -> Self {
        Self::begin(count, false)
    }

    fn begin(count: usize, is_shipped: bool) -> Self {
        let snapshots = (count > 1).then(|| {
            let store = S3::start();
            store.make_bucket(SNAPSHOTS);
            store
        });
        let node = |_| Node {
            daemon: None,
            ingress: free_port(),
            admin: free_port(),
            fabric: free_port(),
        };
        let nodes = (0..count).map(node).collect();
        let mut server = Self { nodes, snapshots, home: temporary("restate"), is_shipped };
        for at in 0..count {
            server.launch(at);
        }
        for at in 0..count {
            server.wait(at);
        }
        server
    }

    /// How many servers it is made of.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Starts one again after a kill.
    pub fn up(&mut self, at: usize) {
        self.launch(at);
        self.wait(at);
    }

    fn launch(&mut self, at: usize) {
        let log = self.home.path().join(format!("node-{at}.log"));
        if self.is_shipped {
            self.nodes[at].daemon = Some(self.launch_as_shipped(at, &log));
            return;
        }
        let file = self.home.path().join(format!("node-{at}.toml"));
        fs::write(&file, self.configuration(at)).expect("a file");
        let arguments = ["--no-logo", "-c", &file.display().to_string()];
        // It asks for its latest release at each start: nowhere but here.
        // What it spills to disk goes when its home does.
        let spill = self.home.path().display().to_string();
        let environment =
            [("HTTPS_PROXY", "http://127.0.0.1:9"), ("DO_NOT_TRACK", "1"), ("TMPDIR", &spill)];
        self.nodes[at].daemon =
            Some(Daemon::start(&binary(), &arguments, &log, None, &environment));
    }

    /// As DEPLOYMENT.md says, at ports and in a directory of its own.
    fn launch_as_shipped(&self, at: usize, log: &Path) -> Daemon {
        let home = self.home.path().display().to_string();
        let file = root().join("deploy/restate.toml").display().to_string();
        let arguments = ["--no-logo", "-c", &file, "--bind-ip", "127.0.0.1", "--base-dir", &home];
        let Node { ingress, admin, fabric, .. } = &self.nodes[at];
        let ports = [ingress, admin, fabric].map(ToString::to_string);
        let environment = [
            ("RESTATE_INGRESS__BIND_PORT", ports[0].as_str()),
            ("RESTATE_ADMIN__BIND_PORT", ports[1].as_str()),
            ("RESTATE_BIND_PORT", ports[2].as_str()),
            ("RESTATE_LOG_FILTER", "warn"),
            ("HTTPS_PROXY", "http://127.0.0.1:9"),
            ("DO_NOT_TRACK", "1"),
            ("TMPDIR", home.as_str()),
        ];
        Daemon::start(&binary(), &arguments, log, None, &environment)
    }

    fn wait(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let (ingress, admin) = (node.ingress, node.admin);
        if let Some(daemon) = &mut node.daemon {
            daemon.wait_until("Restate", || {
                answers(ingress) && answers(admin) && is_well(ingress, "/restate/health")
            });
        }
    }

    /// What one has printed.
    #[must_use]
    pub fn log(&self, at: usize) -> String {
        fs::read_to_string(self.home.path().join(format!("node-{at}.log"))).unwrap_or_default()
    }

    /// How many bytes of files all of them keep.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        fn of(path: &Path) -> u64 {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let bytes = |entry: fs::DirEntry| match entry.metadata() {
                Ok(found) if found.is_dir() => of(&entry.path()),
                Ok(found) => found.len(),
                // It went meanwhile.
                Err(_) => 0,
            };
            entries.map(bytes).sum()
        }
        of(self.home.path())
    }

    /// Kills one.
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].daemon = None;
    }

    /// The process id of one, while it runs.
    #[must_use]
    pub fn pid(&self, at: usize) -> Option<u32> {
        self.nodes[at].daemon.as_ref().map(Daemon::pid)
    }

    /// Where its ingress is.
    #[must_use]
    pub fn ingress(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.nodes[at].ingress)
    }

    /// The port of its ingress.
    #[must_use]
    pub fn ingress_port(&self, at: usize) -> u16 {
        self.nodes[at].ingress
    }

    /// Where its administration is.
    #[must_use]
    pub fn admin(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.nodes[at].admin)
    }

    fn configuration(&self, at: usize) -> String {
        let node = &self.nodes[at];
        let peers: Vec<_> =
            self.nodes.iter().map(|node| format!("\"http://127.0.0.1:{}\"", node.fabric)).collect();
        let replication = if self.nodes.len() > 1 { 2 } else { 1 };
        let snapshots = self.snapshots.as_ref().map(|store| {
            let store = store.address();
            // As in deploy/restate.toml, and often enough that a proof of minutes sees many.
            format!(
                r#"
[worker.snapshots]
destination = "s3://{SNAPSHOTS}/restate"
snapshot-interval = "30s"
snapshot-interval-num-records = 2000
aws-endpoint-url = "{store}"
aws-allow-http = true
aws-region = "test"
aws-access-key-id = "test"
aws-secret-access-key = "test"
"#
            )
        });
        format!(
            r#"
cluster-name = "planwright-test"
node-name = "node-{at}"
base-dir = "{home}"
auto-provision = {provision}
default-num-partitions = 2
default-replication = {replication}
disable-telemetry = true
rocksdb-total-memory-size = "256 MiB"
listen-mode = "tcp"
metadata-update-interval = "1s"
gossip-suspect-interval = "500ms"
gossip-loneliness-threshold = 5
gossip-fd-stability-threshold = 1
bind-address = "127.0.0.1:{fabric}"
advertised-address = "http://127.0.0.1:{fabric}"
log-filter = "warn,restate_invoker_impl=info"
log-disable-ansi-codes = true
shutdown-timeout = "2s"

[bifrost]
default-provider = "{provider}"
# A log whose sequencer was killed is sealed and taken over at once, not after fifteen seconds.
auto-recovery-interval = "1s"
seal-retry-interval = "500ms"

[metadata-client]
addresses = [{peers}]

[ingress]
bind-address = "127.0.0.1:{ingress}"

[admin]
bind-address = "127.0.0.1:{admin}"
disable-web-ui = true

# Few calls share a connection, so that a plain balancer spreads them over the nodes.
[worker.invoker]
http2-streams-per-connection-limit = 4
http2-keep-alive-interval = "2s"
http2-keep-alive-timeout = "2s"
connect-timeout = "1s"
{snapshots}"#,
            snapshots = snapshots.unwrap_or_default(),
            home = self.home.path().display(),
            // A server by itself needs no replicated log, whose recovery takes seconds.
            provider = if self.nodes.len() > 1 { "replicated" } else { "local" },
            provision = at == 0,
            fabric = node.fabric,
            ingress = node.ingress,
            admin = node.admin,
            peers = peers.join(", "),
        )
    }
}

fn binary() -> PathBuf {
    let platform = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let file = root().join(format!(
        "tools/restate/node_modules/@restatedev/restate-server-{system}-{platform}/bin/restate-server"
    ));
    assert!(
        file.exists(),
        "restate-server is not installed; run: npm ci --prefix tools/restate --ignore-scripts"
    );
    file
}

/// Whether a plain GET there is answered with 200.
fn is_well(port: u16, path: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(super::loopback(port)) else { return false };
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(1)));
    let asked = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut answer = [0; 16];
    stream.write_all(asked.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}
