//! `planwright up`: the runtime behind HTTP, until it is told to stop; and what asks after it.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use anyhow::{Context as _, bail};
use planwright_domain::{
    actor::{PersonId, Standing},
    digest::Digest,
};
use planwright_runtime::ports::{Access as _, Grant};
use planwright_surfaces::http::{self, App, HttpSettings, tokens::new_secret};
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{
    backend::{Backend as _, Reach},
    config::ServerConfig,
    exit::Exit,
    installation::Installation,
    remote::ServerFile,
    talk::{Lines, choose_passphrase},
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
    first_token(&installation, data).await?;
    let mut lines = Lines::default();
    if !installation.has_passphrase() && lines.is_terminal() {
        choose_passphrase(&mut installation, &mut lines).await?;
    }
    let listener = TcpListener::bind(config.bind).await.with_context(|| {
        format!("{} cannot be listened at; set server.bind to another", config.bind)
    })?;
    let address = listener.local_addr()?;
    let figures = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().ok();
    let app = App::new(
        installation.runtime.clone(),
        installation.access.clone(),
        settings(config, address.port()),
    );
    let app = Arc::new(match figures {
        Some(figures) => app.with_figures(figures),
        None => app,
    });
    installation.work(Reach::Everything);
    let url = format!(
        "http://{}",
        if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        }
    );
    write_private(
        &ServerFile::path(data),
        &serde_json::to_string(&ServerFile { url: url.clone(), pid: std::process::id() })?,
    )?;
    terminal.row(
        &format!("planwright listens at {url}; its token is in {}", data.join("token").display()),
        || json!({"type": "listening", "url": url}),
    );
    if !installation.has_passphrase() {
        terminal.line("no passphrase was chosen yet, so nothing can be approved; stop, run planwright chat once, and start again");
    }
    let serving = http::serve(listener, app, told_to_stop());
    let stop = told_to_stop();
    let served = tokio::select! {
        served = serving => served,
        // Streams have no end of their own: they are cut after a while, and clients resume elsewhere.
        () = async { stop.await; tokio::time::sleep(std::time::Duration::from_secs(2)).await } => Ok(()),
    };
    let _ = fs::remove_file(ServerFile::path(data));
    installation.rest().await;
    terminal.line("stopped; everything is kept");
    served?;
    Ok(Exit::Fine)
}

/// Says whether a server runs, and what waits there.
pub async fn status(terminal: &mut Terminal, data: &Path) -> anyhow::Result<Exit> {
    let Some(server) = ServerFile::read(data) else {
        terminal.row(
            "no server runs; start one with: planwright up",
            || json!({"type": "status", "running": false}),
        );
        return Ok(Exit::Failed);
    };
    let answer = reqwest::Client::new().get(format!("{}/ready", server.url)).send().await;
    let is_ready = answer.is_ok_and(|answer| answer.status().is_success());
    let words =
        if is_ready { "ready" } else { "not answering; start it again with: planwright up" };
    terminal.row(
        &format!("server at {} (process {}): {words}", server.url, server.pid),
        || json!({"type": "status", "running": is_ready, "url": server.url, "pid": server.pid}),
    );
    Ok(if is_ready { Exit::Fine } else { Exit::Failed })
}

/// Opens the server's address in a browser, or prints it where there is none.
pub fn open(terminal: &mut Terminal, data: &Path) -> anyhow::Result<Exit> {
    let Some(server) = ServerFile::read(data) else {
        bail!("no server runs; start one with: planwright up")
    };
    let opened = std::process::Command::new("xdg-open")
        .arg(&server.url)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    let words = if opened.is_ok() { "opened" } else { "open this in a browser:" };
    terminal.line(&format!("{words} {}", server.url));
    Ok(Exit::Fine)
}

/// The settings of the API for a server at this port.
#[must_use]
pub fn settings(config: &ServerConfig, port: u16) -> HttpSettings {
    let loopback = HttpSettings::loopback(port);
    HttpSettings {
        hosts: loopback.hosts.into_iter().chain(config.hosts.clone()).collect(),
        origins: loopback.origins.into_iter().chain(config.origins.clone()).collect(),
        requests_per_second: config.requests_per_second,
        logins_per_minute: config.logins_per_minute,
        secure_cookies: config.behind_proxy,
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

/// Makes the first token at the first start. It never carries the right to decide.
async fn first_token(installation: &Installation, data: &Path) -> anyhow::Result<()> {
    let path = data.join("token");
    let token = match fs::read_to_string(&path) {
        Ok(token) => token.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = new_secret();
            write_private(&path, &token)?;
            token
        }
        Err(error) => bail!("{} cannot be read: {error}", path.display()),
    };
    check_token(&token).with_context(|| path.display().to_string())?;
    private(&path)?;
    let secret = Digest::of(token.as_bytes());
    if installation.access.find(secret).is_some() {
        return Ok(());
    }
    let grant = Grant {
        id: uuid::Uuid::now_v7(),
        name: "first token".into(),
        person: PersonId("owner".into()),
        standing: Standing::Speaks,
        created: installation.runtime.ports.clock.now(),
        expires: None,
    };
    Ok(installation.access.keep(grant, secret).await?)
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

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

async fn told_to_stop() {
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
