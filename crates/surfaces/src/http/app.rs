//! What every handler can reach, and what an operator may set of the API.

use std::{net::IpAddr, sync::Arc, time::Duration};

use planwright_domain::digest::Digest;
use planwright_runtime::{
    commands::{Commands, accounts::Accounts},
    ports::{access::Access, connection::Connection},
    queries::Queries,
};
use tokio::sync::watch;

use crate::http::{
    agents::presence::Agents, auth::idempotency::Keys, auth::limits::Limits,
    connections::Connections, streams::frames::Frames,
};

/// The largest body of a request.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What an operator may set of the API.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The values of `Host` that are served, each with its port.
    pub hosts: Vec<String>,
    /// The values of `Origin` that may call.
    pub origins: Vec<String>,
    /// How many requests a caller may make in a second.
    pub requests_per_second: u32,
    /// How many logins may be tried in a minute from one address.
    pub logins_per_minute: u32,
    /// How many connections may be open.
    pub connections_max: usize,
    /// How many connections one address may have open.
    pub connections_per_peer_max: usize,
    /// How many streams one person may have open.
    pub streams_per_person_max: usize,
    /// Whether requests come through a proxy that says who sent them, in `X-Forwarded-For`.
    pub is_behind_proxy: bool,
    /// The proxies that are believed, besides those on this machine.
    pub proxies: Vec<IpAddr>,
    /// Whether cookies are only sent over TLS.
    pub secure_cookies: bool,
    /// Where people find the dashboard.
    pub url: String,
    /// The hosts that are served, and whose pages lie at `url` all the same.
    pub other_hosts: Vec<String>,
    /// How long after a start, or after it took its place, a foreign agent counts as there, though it was not heard
    /// of: those who were there before a restart come back within this time. None where an agent may be at another
    /// server: then nobody takes up a session without naming it.
    pub agent_grace: Option<Duration>,
}

impl HttpSettings {
    /// Whether this peer is a proxy that says who sent a request.
    pub(crate) fn is_proxy(&self, peer: IpAddr) -> bool {
        self.is_behind_proxy && (peer.is_loopback() || self.proxies.contains(&peer))
    }

    /// The settings for a server at this port of loopback.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        let hosts: Vec<_> = ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .map(|host| format!("{host}:{port}"))
            .collect();
        let other_hosts = hosts.iter().filter(|host| !host.starts_with("localhost")).cloned();
        let other_hosts = other_hosts.collect();
        let origins = hosts.iter().map(|host| format!("http://{host}")).collect();
        Self {
            hosts,
            origins,
            requests_per_second: 1_000,
            logins_per_minute: 10,
            connections_max: 4_096,
            connections_per_peer_max: 1_024,
            streams_per_person_max: 256,
            is_behind_proxy: false,
            proxies: Vec::new(),
            secure_cookies: false,
            url: format!("http://localhost:{port}"),
            other_hosts,
            agent_grace: Some(Duration::from_secs(20)),
        }
    }
}

/// What every handler can reach.
pub struct App {
    /// What changes something.
    pub commands: Arc<Commands>,
    /// What reads.
    pub queries: Arc<Queries>,
    /// Who may do what.
    pub access: Arc<dyn Access>,
    /// Who uses the installation.
    pub accounts: Accounts,
    /// What the operator set.
    pub settings: HttpSettings,
    /// How often each caller has asked.
    pub(crate) limits: Limits,
    /// What each `Idempotency-Key` was used for.
    pub(crate) keys: Keys,
    /// Who is connected.
    pub(crate) connections: Arc<Connections>,
    /// Which foreign agents are there.
    pub(crate) agents: Arc<Agents>,
    /// The latest events, written out once for everyone who listens.
    pub(crate) frames: Frames,
    /// The token of the data directory and the address that clients find there, by which the server proves who it is.
    pub(crate) proves: Option<(Digest, String)>,
    /// Which model is asked, where that can be changed.
    pub(crate) connection: Option<Arc<dyn Connection>>,
    /// Whether the process was told to stop: it serves on for a while, and says that it is not ready.
    pub(crate) leaving: watch::Receiver<bool>,
    /// The figures, if they are recorded.
    pub(crate) figures: Option<metrics_exporter_prometheus::PrometheusHandle>,
}

impl App {
    /// The API over these.
    #[must_use]
    pub fn new(
        commands: Arc<Commands>,
        queries: Arc<Queries>,
        access: Arc<dyn Access>,
        settings: HttpSettings,
    ) -> Self {
        let limits = Limits::new(
            settings.requests_per_second,
            settings.logins_per_minute,
            settings.streams_per_person_max,
        );
        let (all, each) = (settings.connections_max, settings.connections_per_peer_max);
        // Through a proxy everyone has the same address.
        let each = if settings.is_behind_proxy { all } else { each };
        let connections = Connections::new(all, each);
        let agents = Arc::new(Agents::new(settings.agent_grace));
        let accounts = commands.accounts(access.clone());
        Self {
            commands,
            queries,
            access,
            accounts,
            settings,
            limits,
            keys: Keys::default(),
            connections,
            agents,
            frames: Frames::default(),
            proves: None,
            connection: None,
            leaving: watch::channel(false).1,
            figures: None,
        }
    }

    /// The same, where the model that is asked can be changed.
    #[must_use]
    pub fn with_connection(self, connection: Arc<dyn Connection>) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// The same, for clients that find this address in a data directory with this token.
    #[must_use]
    pub fn with_proof(self, token: Digest, url: String) -> Self {
        Self { proves: Some((token, url)), ..self }
    }

    /// The same, for a process that serves on for a while after it was told to stop, which this says.
    #[must_use]
    pub fn leaving_when(self, leaving: watch::Receiver<bool>) -> Self {
        Self { leaving, ..self }
    }

    /// The same, with figures to show at `/metrics`.
    #[must_use]
    pub fn with_figures(self, figures: metrics_exporter_prometheus::PrometheusHandle) -> Self {
        Self { figures: Some(figures), ..self }
    }
}
