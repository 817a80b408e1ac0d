//! The settings of a node of a cluster.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::bail;
#[cfg(feature = "cluster")]
use planwright_outbound::broadcast_nats::NatsSecurity;
use planwright_outbound::database_address::{self, speaks_tls};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::args::ClusterArgs;

/// What a node of a cluster is connected to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// The database: `postgresql://user@host:port/name`, or with `host=/directory` a unix socket.
    pub database: Option<String>,
    /// The message bus: `nats://host:port`, or `tls://host:port`.
    pub nats: Option<String>,
    /// The certificates of the authorities that the bus is believed by; the system's if none are named.
    pub nats_ca: Option<PathBuf>,
    /// A file with the seed of an nkey, or with credentials as `nsc` writes them, by which the bus knows this node.
    pub nats_credentials: Option<PathBuf>,
    /// The certificate that the bus is shown, and with `nats_key` its key.
    pub nats_certificate: Option<PathBuf>,
    /// The key of `nats_certificate`.
    pub nats_key: Option<PathBuf>,
    /// What the bus's subjects begin with; installations that share a bus differ in it.
    pub subjects: String,
    /// The engine's ingress: `http://host:port`, or `unix:/path/ingress.sock`.
    pub ingress: Option<String>,
    /// The engine's administration, for `planwright cluster`: as the ingress.
    pub admin: Option<String>,
    /// Where one of the engine's servers tells its figures, for `planwright cluster` and `planwright doctor`: as the ingress, at
    /// its port for the other servers, 5122. Asked whether an engine of several servers takes snapshots.
    pub engine_metrics: Option<String>,
    /// Where this node listens for the engine's calls.
    #[schemars(with = "String")]
    pub endpoint: SocketAddr,
    /// The engine's public key; calls that it did not sign are then refused.
    pub identity_key: Option<String>,
    /// For how long a node that is told to stop says that it is not ready and serves all the same, in seconds: a balancer
    /// notices meanwhile.
    pub unready_seconds: u64,
    /// How long what has started may take to end after that, in seconds.
    pub drain_seconds: u64,
    /// The connections to database, bus and engine leave this machine, over a network that is yours alone.
    pub private_network: bool,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            database: None,
            nats: None,
            nats_ca: None,
            nats_credentials: None,
            nats_certificate: None,
            nats_key: None,
            subjects: "planwright".into(),
            ingress: None,
            admin: None,
            engine_metrics: None,
            endpoint: SocketAddr::from(([127, 0, 0, 1], 9_080)),
            identity_key: None,
            unready_seconds: 3,
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
            engine_metrics: or(&args.engine_metrics, &self.engine_metrics),
            endpoint: args.endpoint.unwrap_or(self.endpoint),
            ..self.clone()
        }
    }

    /// How this node and the bus know each other.
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn bus(&self) -> NatsSecurity {
        NatsSecurity {
            authorities: self.nats_ca.clone(),
            certificate: self.nats_certificate.clone().zip(self.nats_key.clone()),
            credentials: self.nats_credentials.clone(),
        }
    }

    /// Whoever is connected beyond this machine is known, and what they say encrypted, or the network is declared to be the
    /// operator's alone.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.nats_certificate.is_some() != self.nats_key.is_some() {
            bail!("cluster.nats_certificate and cluster.nats_key belong together; set both");
        }
        let endpoint = format!("http://{}", self.endpoint);
        let is_https = |address: &str| address.starts_with("https://");
        let https = "use https";
        let addresses = [
            (
                "cluster.database",
                self.database.as_deref(),
                self.database.as_deref().is_some_and(speaks_tls),
                "add ?sslmode=verify-full, and &sslrootcert=FILE for an authority of your own",
            ),
            (
                "cluster.nats",
                self.nats.as_deref(),
                self.nats.as_deref().is_some_and(|address| self.knows_bus(address)),
                "write it as tls://host:port, and name what the bus knows this node by in cluster.nats_credentials, or in cluster.nats_certificate and cluster.nats_key",
            ),
            (
                "cluster.ingress",
                self.ingress.as_deref(),
                self.ingress.as_deref().is_some_and(is_https),
                https,
            ),
            (
                "cluster.admin",
                self.admin.as_deref(),
                self.admin.as_deref().is_some_and(is_https),
                https,
            ),
            (
                "cluster.engine_metrics",
                self.engine_metrics.as_deref(),
                self.engine_metrics.as_deref().is_some_and(is_https),
                https,
            ),
            (
                "cluster.endpoint",
                Some(endpoint.as_str()),
                self.identity_key.is_some(),
                "set cluster.identity_key to your Restate's public key, so that only its calls are answered",
            ),
        ];
        for (name, address, is_secured, advice) in addresses {
            let Some(address) = address else { continue };
            if !self.private_network && !is_here(address) && !is_secured {
                bail!(
                    "{name} = {} is not on this machine, and anybody on the way could read it or answer instead; {advice}; or set cluster.private_network = true if the network is yours alone",
                    without_secret(address)
                );
            }
        }
        Ok(())
    }

    /// Whether the bus at this address is verified, and knows this node.
    fn knows_bus(&self, address: &str) -> bool {
        let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
        let has_user = authority.split('/').next().is_some_and(|host| host.contains('@'));
        address.starts_with("tls://")
            && (has_user || self.nats_credentials.is_some() || self.nats_certificate.is_some())
    }
}

/// Whether an address is a unix socket or loopback, read as whoever connects reads it.
#[must_use]
pub fn is_here(address: &str) -> bool {
    if address.starts_with("unix:") {
        return true;
    }
    if address.starts_with("postgres") {
        return database_address::is_here(address);
    }
    let parsed = reqwest::Url::parse(address).ok();
    parsed.as_ref().and_then(reqwest::Url::host_str).is_some_and(|host| {
        let bare = host.trim_matches(['[', ']']);
        bare == "localhost"
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// An address without what stands before its host and after its path; nothing of one that cannot be read.
#[must_use]
pub fn without_secret(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return "an address".into() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::{ClusterConfig, is_here, without_secret};

    #[test]
    fn what_leaves_this_machine_is_verified_or_refused() {
        let config = |text: &str| -> ClusterConfig { toml::from_str(text).unwrap() };
        for (refused, part) in [
            (r#"database = "postgresql://a@db.example/c""#, "sslmode=verify-full"),
            (r#"database = "postgresql://a@db.example/c?sslmode=prefer""#, "sslmode=verify-full"),
            (r#"nats = "nats://bus.example:4222""#, "tls://host:port"),
            (r#"nats = "tls://bus.example:4222""#, "cluster.nats_credentials"),
            ("nats = \"nats://u:p@bus.example\"", "tls://host:port"),
            (r#"ingress = "http://engine.example:8080""#, "use https"),
            (r#"endpoint = "0.0.0.0:9080""#, "cluster.identity_key"),
            (r#"nats_key = "/k""#, "set both"),
        ] {
            let words = config(refused).check().unwrap_err().to_string();
            assert!(words.contains(part), "{refused}: {words}");
            assert!(!words.contains("u:p"), "{words}");
        }
        for allowed in [
            "database = \"postgresql://a@db.example/c?sslmode=verify-full&sslrootcert=/ca.pem\"",
            "nats = \"tls://bus.example:4222\"\nnats_credentials = \"/seed\"",
            "nats = \"tls://u:p@bus.example:4222\"",
            r#"ingress = "https://engine.example:8080""#,
            "endpoint = \"0.0.0.0:9080\"\nidentity_key = \"publickeyv1_x\"",
            "nats = \"nats://bus.example:4222\"\nprivate_network = true",
            r#"nats = "nats://127.0.0.1:4222""#,
        ] {
            config(allowed).check().unwrap_or_else(|error| panic!("{allowed}: {error}"));
        }
    }

    #[test]
    fn an_address_is_here_only_if_its_host_is() {
        for here in [
            "postgresql://me:secret@127.0.0.1:5432/plans",
            "unix:/run/restate/ingress.sock",
            "nats://localhost:4222",
            "tls://u:p@127.0.0.1:4222",
            "http://[::1]:8080",
            "http://[::1]",
        ] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "postgresql://127.0.0.1@db.example:5432/plans",
            "nats://10.0.0.7:4222",
            "http://localhost.example:8080/127.0.0.1",
            "http://192.0.2.2:8080#@localhost",
            "http://192.0.2.2\\\\@localhost",
            "http://192.0.2.2?@localhost",
            "db.example",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
        for (address, shown) in [
            ("postgresql://me:secret@127.0.0.1:5432/plans", "postgresql://127.0.0.1:5432/plans"),
            ("postgresql://db.example/c?user=u&password=hunter2", "postgresql://db.example/c"),
            ("host=db.example user=u password=hunter2", "an address"),
        ] {
            assert_eq!(without_secret(address), shown);
        }
    }
}
