//! `planwright up`: the runtime behind HTTP, until it is told to stop; and what asks after it.

use std::{
    fs::{self, File},
    io::{ErrorKind, IsTerminal as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use planwright_domain::{
    actor::{OWNER, PersonId, Standing},
    digest::Digest,
    identity::ChannelType,
    quota::{Limit, Quota},
};
use planwright_outbound::ids_random::RandomIds;
use planwright_runtime::{
    commands::{accounts::Accounts, grants::Wanted, new_secret},
    ports::{access::Access, connection::Connection},
    runtime::Runtime,
};
use planwright_surfaces::http::{
    self, App, HttpSettings,
    auth::people::{InvitationGiven, invitation},
};
#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use webbrowser::{Browser, BrowserOptions};

use crate::{
    backend::{Backend as _, Reach},
    config::ServerConfig,
    durable_file::{write_held, write_private},
    exit::Exit,
    installation::Installation,
    known_secrets::TOKEN_NAME,
    metrics_recorder,
    server::{Server, ServerFile, start_advice},
    terminal::Terminal,
};

/// The shortest token that is taken.
const TOKEN_LENGTH_MIN: usize = 32;

/// Serves until it is told to stop.
pub async fn run(
    mut installation: Installation,
    config: &ServerConfig,
    terminal: &mut Terminal,
    data: &Path,
) -> anyhow::Result<Exit> {
    close_to_others(config)?;
    first_token(&installation.accounts, data).await?;
    let token = fs::read_to_string(data.join("token"))?;
    installation.secrets.add(TOKEN_NAME, &token);
    let mut api = Api::bind(config).await?;
    let (runtime, access) = (installation.runtime.clone(), installation.access.clone());
    installation.work(Reach::Everything);
    api.announce(terminal, data, false)?;
    if let Some(notice) = installation.notice() {
        terminal.notice(&notice);
    }
    say_how_to_choose(&installation.accounts, terminal, &config.at(Some(api.address)).url(), data)
        .await?;
    if !installation.accounts.is_chosen().await? {
        let quota = runtime.queries.quotas().everyone();
        terminal.line(&day_in_words(quota, runtime.queries.terms().priced));
    }
    let connection = installation.connection.clone();
    let stops = Stops::after(Duration::ZERO);
    let served = api.serve(runtime, access, connection, config, Deployment::Local, stops).await;
    let _ = fs::remove_file(ServerFile::path(data));
    installation.rest().await;
    terminal.line("stopped; everything is kept");
    served?;
    Ok(Exit::Fine)
}

/// What a day may cost, for who begins.
fn day_in_words(quota: Quota, is_priced: bool) -> String {
    match quota.cost_micros {
        Some(max) if !is_priced => format!(
            "models may cost {}, which counts once their price is known (model.price_in and model.price_out in config.toml)",
            Limit::Money.amount(max)
        ),
        Some(max) => format!(
            "models may cost {}, then it pauses and asks you; limits.dollars_per_day in config.toml changes that",
            Limit::Money.amount(max)
        ),
        None => "what models may cost in a day is not limited; limits.dollars_per_day in config.toml does that".into(),
    }
}

/// Says how the first passphrase is chosen, while there is none. A link is for who reads this terminal, and for no log.
async fn say_how_to_choose(
    accounts: &Accounts,
    terminal: &mut Terminal,
    url: &str,
    data: &Path,
) -> anyhow::Result<()> {
    let is_read = std::io::stdout().is_terminal() && !terminal.is_json();
    let link = if is_read { accounts.first_link().await? } else { None };
    if let Some(link) = link {
        let InvitationGiven { link, .. } = invitation(url, link);
        terminal.line(&format!(
            "choose your passphrase, which deciding needs; this link works once, for ten minutes:\n  {link}"
        ));
    } else if !accounts.is_chosen().await? {
        terminal.line(&format!(
            "no passphrase was chosen yet, so nothing can be approved; choose it in a terminal: planwright passphrase --data {}",
            data.display()
        ));
    }
    Ok(())
}

/// Whether this process is all there is, or one node of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployment {
    /// All there is.
    Local,
    /// A node: whoever is not here may be at another.
    Node,
}

impl Deployment {
    fn agent_grace(self, config: &ServerConfig) -> Option<Duration> {
        match self {
            Self::Local => Some(Duration::from_secs(config.agent_grace_seconds.into())),
            Self::Node => None,
        }
    }
}

/// The API at its address.
pub struct Api {
    listeners: Vec<TcpListener>,
    address: SocketAddr,
    /// The file that says where it is, held for as long as it is there.
    announced: Option<File>,
    /// The token in the data directory, by which it proves that it has it.
    token: Option<Digest>,
}

/// How long open requests may take to end. Streams have no end of their own: they are cut, and
/// clients resume elsewhere.
const REQUESTS_END: Duration = Duration::from_secs(2);

impl Api {
    /// Listens where these settings say, if they allow it: this is the only way to listen.
    pub async fn bind(config: &ServerConfig) -> anyhow::Result<Self> {
        config.check()?;
        close_to_others(config)?;
        let listeners = if is_localhost(config.bind.ip()) {
            listen_as_localhost(config.bind.port()).await?
        } else {
            vec![listen(config.bind).await?]
        };
        let address = listeners.first().context("a listener")?.local_addr()?;
        Ok(Self { listeners, address, announced: None, token: None })
    }

    /// Says where it is, to people and to the program's other processes.
    pub fn announce(
        &mut self,
        terminal: &mut Terminal,
        data: &Path,
        is_node: bool,
    ) -> anyhow::Result<()> {
        let url = client_url(self.address);
        let file = ServerFile { url: url.clone(), pid: std::process::id(), is_node };
        self.announced = Some(write_held(&ServerFile::path(data), &serde_json::to_string(&file)?)?);
        let (address, token) = (self.address, data.join("token"));
        self.token = Some(Digest::of(fs::read_to_string(&token)?.trim().as_bytes()));
        let place = if address.ip().is_unspecified() {
            format!("http://{address} (every interface of this machine; from here {url})")
        } else {
            url.clone()
        };
        terminal.row(
            &format!(
                "planwright listens at {place}; open it in a browser (its token is in {})",
                token.display()
            ),
            || json!({"type": "listening", "url": url, "address": address.to_string()}),
        );
        Ok(())
    }

    /// Where a client on this machine finds it.
    #[must_use]
    pub fn url(&self) -> String {
        client_url(self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process stops.
    pub async fn serve(
        self,
        runtime: Runtime,
        access: Arc<dyn Access>,
        connection: Option<Arc<dyn Connection>>,
        config: &ServerConfig,
        deployment: Deployment,
        stops: Stops,
    ) -> anyhow::Result<()> {
        let figures = metrics_recorder::install();
        let settings = settings(config, self.address.port(), deployment);
        let app = App::new(runtime.commands, runtime.queries, access, settings);
        let app = match figures {
            Some(figures) => app.with_figures(figures),
            None => app,
        };
        let app = match self.token {
            Some(token) => app.with_proof(token, client_url(self.address)),
            None => app,
        };
        let app = match connection {
            Some(connection) => app.with_connection(connection),
            None => app,
        };
        let app = Arc::new(app.leaving_when(stops.leaving.clone()));
        let serving = self
            .listeners
            .into_iter()
            .map(|listener| http::serve(listener, app.clone(), stops.stopped()));
        let serving = futures_util::future::join_all(serving);
        let cut = async {
            stops.stopped().await;
            tokio::time::sleep(REQUESTS_END).await;
        };
        tokio::select! {
            _ = serving => {}
            () = cut => {}
        }
        Ok(())
    }
}

/// Lets programs of the same user read neither the memory nor the environment of this process.
pub fn close_to_others(config: &ServerConfig) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    if !config.dumpable {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).context(
            "the process cannot be closed to other programs; set server.dumpable = true to go without",
        )?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = config;
    Ok(())
}

/// Lets the process have as many files open as these connections need besides its own; how many that are, where this machine
/// allows fewer.
fn allow_connections(wanted: u32) -> usize {
    let (wanted, limit) = (u64::from(wanted), getrlimit(Resource::Nofile));
    let all = wanted + OWN_FILES + CALLS_OPEN;
    let allowed = limit.maximum.map_or(all, |most| most.min(all));
    if limit.current.is_some_and(|now| now < allowed) {
        let raised = Rlimit { current: Some(allowed), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, event = "files_not_allowed");
        }
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fit = wanted.min(allowed.saturating_sub(OWN_FILES)).max(allowed.min(wanted) / 2);
    if fit < wanted {
        tracing::warn!(wanted, fit, event = "fewer_connections");
    }
    usize::try_from(fit).unwrap_or(usize::MAX)
}

/// How many files the process may have open besides its connections.
const OWN_FILES: u64 = 512;
/// And how many of them are for calls of models that are open at once, where the machine allows it.
const CALLS_OPEN: u64 = 8_192;

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        let holder = holder_of(address);
        format!(
            "{address} cannot be listened at{holder}; end that, or set server.bind to another port"
        )
    })
}

/// Listens at this port of both addresses that a browser may take `localhost` for, or at neither: whoever held the other one
/// would be given what is meant for us.
async fn listen_as_localhost(port: u16) -> anyhow::Result<Vec<TcpListener>> {
    let mut tries = 0;
    loop {
        tries += 1;
        let first = listen((Ipv4Addr::LOCALHOST, port).into()).await?;
        let second = SocketAddr::from((Ipv6Addr::LOCALHOST, first.local_addr()?.port()));
        match TcpListener::bind(second).await {
            Ok(second) => return Ok(vec![first, second]),
            // There is no such address here, so nobody else can listen at it.
            Err(error)
                if error.kind() == ErrorKind::AddrNotAvailable
                    || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) =>
            {
                return Ok(vec![first]);
            }
            // A port of our own choice is chosen again.
            Err(_) if port == 0 && tries < PORT_TRIES => {}
            Err(error) => {
                let holder = holder_of(second);
                return Err(error).context(format!(
                    "{second} cannot be listened at{holder}, and a browser that opens localhost may be answered there; end that, or set server.bind to another port"
                ));
            }
        }
    }
}

/// How often a port of our own choice is chosen.
const PORT_TRIES: u32 = 20;

/// Who listens at this address, where this machine tells.
fn holder_of(address: SocketAddr) -> String {
    let found = listeners::get_all().unwrap_or_default().into_iter();
    let holds = |listener: &listeners::Listener| {
        let at = listener.socket;
        listener.protocol == listeners::Protocol::TCP
            && at.port() == address.port()
            && (at.ip() == address.ip() || at.ip().is_unspecified())
    };
    match found.map(|listener| (holds(&listener), listener.process)).find(|(holds, _)| *holds) {
        Some((_, process)) => {
            format!(" (process {}, {}, listens there)", process.pid, process.name)
        }
        None => String::new(),
    }
}

/// Whether a browser may take `localhost` for this address.
fn is_localhost(ip: IpAddr) -> bool {
    ip == IpAddr::V4(Ipv4Addr::LOCALHOST) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST)
}

/// Where a client on this machine finds what listens at this address.
fn client_url(address: SocketAddr) -> String {
    if is_localhost(address.ip()) {
        return format!("http://localhost:{}", address.port());
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Says whether a server runs, and what waits there.
pub async fn status(
    terminal: &mut Terminal,
    server: Option<Server>,
    data: &Path,
) -> anyhow::Result<Exit> {
    let Some(server) = server else {
        terminal.row(
            &format!("no server runs; {}", start_advice(data)),
            || json!({"type": "status", "running": false}),
        );
        return Ok(Exit::Failed);
    };
    let answer = reqwest::Client::new().get(format!("{}/ready", server.url)).send().await;
    let (is_ready, words, degraded) = match answer {
        Err(_) => (false, format!("not answering; {}", server.advice()), Vec::new()),
        Ok(answer) => {
            let is_ready = answer.status().is_success();
            let body: serde_json::Value = answer.json().await.unwrap_or_default();
            let words =
                if is_ready { "ready" } else { body["detail"].as_str().unwrap_or("not ready") };
            let degraded: Vec<String> =
                serde_json::from_value(body["degraded"].clone()).unwrap_or_default();
            (is_ready, words.to_owned(), degraded)
        }
    };
    let process = server.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
    terminal.row(
        &format!("server at {}{process}: {words}", server.url),
        || json!({"type": "status", "running": is_ready, "url": server.url, "pid": server.pid}),
    );
    terminal.degraded(&degraded);
    Ok(if is_ready { Exit::Fine } else { Exit::Failed })
}

/// Opens the server's address in a browser, or prints it where there is none.
pub fn open(terminal: &mut Terminal, server: Option<Server>, data: &Path) -> anyhow::Result<Exit> {
    let Some(server) = server else { bail!("no server runs; {}", start_advice(data)) };
    let mut options = BrowserOptions::new();
    options.with_suppress_output(true);
    let opened = webbrowser::open_browser_with_options(Browser::Default, &server.url, &options);
    let words = if opened.is_ok() { "opened" } else { "open this in a browser:" };
    terminal.line(&format!("{words} {}", server.url));
    Ok(Exit::Fine)
}

/// The settings of the API for a server at this port.
#[must_use]
pub fn settings(config: &ServerConfig, port: u16, deployment: Deployment) -> HttpSettings {
    let loopback = HttpSettings::loopback(port);
    HttpSettings {
        hosts: loopback.hosts.into_iter().chain(config.hosts.clone()).collect(),
        origins: loopback.origins.into_iter().chain(config.origins.clone()).collect(),
        requests_per_second: config.requests_per_second,
        logins_per_minute: config.logins_per_minute,
        connections_max: allow_connections(config.connections),
        connections_per_peer_max: config.connections_per_address as usize,
        streams_per_person_max: config.streams_per_person as usize,
        is_behind_proxy: config.behind_proxy,
        proxies: config.proxies.clone(),
        secure_cookies: config.behind_proxy,
        agent_grace: deployment.agent_grace(config),
        // Only where both addresses that `localhost` may mean are ours.
        other_hosts: if config.origins.is_empty() && is_localhost(config.bind.ip()) {
            loopback.other_hosts
        } else {
            Vec::new()
        },
        url: config.at(Some(SocketAddr::new(config.bind.ip(), port))).url(),
    }
}

/// Looks whether a token is one that nobody guesses.
pub fn check_token(token: &str) -> anyhow::Result<()> {
    let distinct = token.chars().collect::<std::collections::BTreeSet<_>>().len();
    if token.len() < TOKEN_LENGTH_MIN
        || distinct < 8
        || token.chars().any(|character| !character.is_ascii_graphic())
    {
        bail!(
            "the token in the file is weak or damaged; remove the file, and the next start makes a new one"
        );
    }
    Ok(())
}

/// Makes the first token at the first start, and a new one where it was taken back. It never carries the right to decide.
pub async fn first_token(accounts: &Accounts, data: &Path) -> anyhow::Result<()> {
    let path = data.join("token");
    let mut token = match fs::read_to_string(&path) {
        Ok(token) => Some(token.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => bail!("{} cannot be read: {error}", path.display()),
    };
    if let Some(token) = &token {
        check_token(token).with_context(|| path.display().to_string())?;
        private(&path)?;
        if accounts.bearer(Digest::of(token.as_bytes())).await?.is_some() {
            return Ok(());
        }
    }
    // What was good once and is not any more stays so.
    if accounts.installation().await?.grants_given > 0 {
        token = None;
    }
    let token = token.unwrap_or_else(|| new_secret(&RandomIds));
    let owner = PersonId(OWNER.into());
    let wanted = Wanted::new("first token", owner, Standing::Speaks, ChannelType::Cli);
    accounts.give_for(wanted, &token).await?;
    write_private(&path, &token)
}

/// Refuses a file that others can read.
pub fn private(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!("others can read {0} (mode {mode:o}); run: chmod 600 {0}", path.display());
    }
    Ok(())
}

/// The way to the end, for everything that ends with the process.
#[derive(Clone)]
pub struct Stops {
    /// Whether the process was told to stop. It serves on for a while, and says that it is not ready.
    leaving: watch::Receiver<bool>,
    /// Whether it takes nothing new any more.
    pub stopping: watch::Receiver<bool>,
}

impl Stops {
    /// Listens for signals: what is told to stop goes on for so long, or until it is told again. Heard once, and told to all:
    /// whoever begins to listen after a signal came never hears it.
    #[must_use]
    pub fn after(unready: Duration) -> Self {
        let ((leave, leaving), (stop, stopping)) = (watch::channel(false), watch::channel(false));
        tokio::spawn(async move {
            told_to_stop().await;
            leave.send_replace(true);
            tokio::select! {
                () = tokio::time::sleep(unready) => {}
                () = told_to_stop() => {}
            }
            stop.send_replace(true);
        });
        Self { leaving, stopping }
    }

    /// Ends when nothing new is taken any more.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stopping = self.stopping.clone();
        async move {
            let _ = stopping.wait_for(|is_told| *is_told).await;
        }
    }
}

/// Ends when the process is told to stop.
pub async fn told_to_stop() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
