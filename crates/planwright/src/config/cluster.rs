//! The settings of a node of a cluster.

use std::net::SocketAddr;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::args::ClusterArgs;

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
#[must_use]
pub fn is_here(address: &str) -> bool {
    if address.starts_with("unix:") {
        return true;
    }
    let (plain, settings) = address.split_once('?').unwrap_or((address, ""));
    let is_socket =
        |setting: &str| setting.starts_with("host=/") || setting.starts_with("host=%2F");
    let has_socket = settings.split('&').any(is_socket);
    let rest = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    (host.is_empty() && has_socket)
        || host == "localhost"
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

#[cfg(test)]
mod tests {
    use super::{is_here, without_secret};

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
            "postgresql://db.example/plans?host=/run/postgresql",
            "postgresql://db.example/plans?application_name=host=/run",
        ];
        assert_eq!(here.map(is_here), [true; 5]);
        assert_eq!(elsewhere.map(is_here), [false; 6]);
        assert_eq!(without_secret(here[0]), "postgresql://127.0.0.1:5432/plans");
    }
}
