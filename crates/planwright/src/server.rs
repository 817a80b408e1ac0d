//! Where the server is that a client talks to, and the token for it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use planwright_domain::digest::Digest;
use planwright_outbound::{data_directory::belongs_to_node, ids_random::RandomIds};
use planwright_runtime::commands::new_secret;
use planwright_surfaces::http::health::{Proof, proof_of};
use reqwest::Client;
use serde::{Deserialize, Serialize};

use crate::{
    args::Args,
    config::cluster::{ClusterConfig, is_here},
    durable_file::read_held,
};

/// How long a server may take to prove who it is.
const PROOF_MAX: Duration = Duration::from_secs(10);

/// Where a running server is. It lies in the data directory while the server runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerFile {
    /// Its address, as a client writes it.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Whether it is a node of a cluster.
    #[serde(default)]
    pub is_node: bool,
}

impl ServerFile {
    /// Where it lies.
    #[must_use]
    pub fn path(data: &Path) -> PathBuf {
        data.join("server.json")
    }

    /// The server that runs in this data directory. What one left that was killed counts for nothing: whoever listens at its
    /// port by now is somebody else.
    #[must_use]
    pub fn running(data: &Path) -> Option<Self> {
        serde_json::from_str(&read_held(&Self::path(data))?).ok()
    }
}

/// How a client came to a server, which decides what it advises when the server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// `planwright up` in this data directory.
    Local,
    /// The cluster node of this data directory.
    Node,
    /// Named with `--server`: any server, node or balancer.
    Named,
}

/// A server that a client talks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address, without a slash at the end.
    pub url: String,
    /// How the client came to it.
    pub kind: ServerKind,
    /// Its process, if it is on this machine.
    pub pid: Option<u32>,
}

impl From<ServerFile> for Server {
    fn from(file: ServerFile) -> Self {
        let kind = if file.is_node { ServerKind::Node } else { ServerKind::Local };
        Self { url: file.url, kind, pid: Some(file.pid) }
    }
}

impl Server {
    /// The server that `--server` or `PLANWRIGHT_SERVER` names.
    pub fn named(args: &Args, cluster: &ClusterConfig) -> anyhow::Result<Option<Self>> {
        let Some(named) = args.server.as_deref() else { return Ok(None) };
        let url = named.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!(
                "--server {named} is not an address; write it as http://host:port or https://host"
            );
        }
        // The token travels with every request.
        if url.starts_with("http://") && !is_here(&url) && !cluster.private_network {
            bail!(
                "--server {named} is not on this machine, and nothing there would be encrypted; use https, or set cluster.private_network = true if the network is yours alone"
            );
        }
        Ok(Some(Self { url, kind: ServerKind::Named, pid: None }))
    }

    /// The server that is named, else the one that runs in this data directory.
    pub fn find(args: &Args, cluster: &ClusterConfig, data: &Path) -> anyhow::Result<Option<Self>> {
        let named = Self::named(args, cluster)?;
        Ok(named.or_else(|| ServerFile::running(data).map(Self::from)))
    }

    /// The token for this server: for a named one `PLANWRIGHT_TOKEN`, else the file in the data directory.
    pub fn token(&self, args: &Args, data: &Path) -> anyhow::Result<String> {
        let given = args.token.as_deref().filter(|token| !token.trim().is_empty());
        if let (ServerKind::Named, Some(token)) = (self.kind, given) {
            return Ok(token.trim().to_owned());
        }
        let file = data.join("token");
        let token = fs::read_to_string(&file);
        let token = token.with_context(|| match self.kind {
            ServerKind::Local | ServerKind::Node => {
                format!("the server's token {} cannot be read", file.display())
            }
            ServerKind::Named => format!(
                "there is no token for {}: set PLANWRIGHT_TOKEN to one, or name with --data the data directory of that server, or of any node of its cluster ({} cannot be read)",
                self.url,
                file.display()
            ),
        })?;
        Ok(token.trim().to_owned())
    }

    /// Asks a server that was found in a data directory to prove that it has that directory, before it is sent a token.
    pub async fn check(&self, client: &Client, data: &Path) -> anyhow::Result<()> {
        if self.kind == ServerKind::Named {
            return Ok(());
        }
        let token = fs::read_to_string(data.join("token")).unwrap_or_default();
        let challenge = new_secret(&RandomIds);
        let request = client.get(format!("{}/api/proof?challenge={challenge}", self.url));
        let answer = request.timeout(PROOF_MAX).send().await.map_err(|error| {
            let url = &self.url;
            anyhow::anyhow!("the server at {url} does not answer ({error:#}); {}", self.advice())
        })?;
        let expected = proof_of(Digest::of(token.trim().as_bytes()), &self.url, &challenge);
        match answer.json::<Proof>().await {
            Ok(Proof { proof }) if proof == expected.to_string() => Ok(()),
            Ok(_) | Err(_) => bail!(
                "what answers at {} is not the server of {}, and is sent no token; look what listens there, then start the server again",
                self.url,
                data.display()
            ),
        }
    }

    /// What to do when it does not answer.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.kind {
            ServerKind::Local => "start it again with: planwright up",
            ServerKind::Node => {
                "start it again with: planwright node, or talk to another node with --server URL"
            }
            ServerKind::Named => {
                "check the address in --server or PLANWRIGHT_SERVER, or name another node or the balancer"
            }
        }
    }
}

/// What to do where no server runs in this data directory.
#[must_use]
pub fn start_advice(data: &Path) -> &'static str {
    if belongs_to_node(data) {
        "start this node with: planwright node, or talk to another one with --server URL"
    } else {
        "start one with: planwright up"
    }
}
