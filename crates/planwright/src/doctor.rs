//! `planwright doctor`: says what is as it should be, and what to do about the rest.

#[cfg(feature = "cluster")]
use std::collections::BTreeSet;
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use planwright_domain::actor::Standing;
use planwright_outbound::{
    access_file::FileAccess,
    data_directory::{DataDirectory, DataDirectoryError, belongs_to_node},
    journal_sqlite::SqliteJournal,
    model_http::HttpModel,
    toolbox_files::FileToolbox,
};
use planwright_runtime::ports::journal::Journal as _;

use crate::{
    args::{Args, ClusterArgs},
    config::Config,
    connection,
    data_path::data_path,
    exit::Exit,
    installation::{owners_passphrase, read_installation},
    models::model_settings,
    terminal::{Finding, Terminal},
    up,
};
#[cfg(feature = "cluster")]
use crate::{
    cluster::look::{self, Looked, look},
    server::{ServerFile, start_advice},
};

/// Looks at everything, and fails if anything is not as it should be.
pub async fn run(
    args: &Args,
    cluster: &ClusterArgs,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let path = data_path(args)?;
    let mut findings = vec![("data directory", data(&path))];
    if belongs_to_node(&path) {
        findings.extend(of_a_node(args, cluster, &path).await);
    } else {
        findings.push(("passphrase", passphrase(&path).await));
        findings.push(("configuration", configuration(args, &path)));
        findings.push(("tokens", tokens(&path).await));
        findings.push(("journal", journal(&path).await));
    }
    findings.push(("workspace", workspace(args, &path)));
    findings.push(("confinement", confinement(args, &path)));
    findings.push(("model", model(args, &path).await));
    findings.iter().for_each(|(what, finding)| terminal.finding(what, finding));
    let is_well = findings.iter().all(|(_, finding)| finding.is_ok());
    Ok(if is_well { Exit::Fine } else { Exit::Failed })
}

/// What a node needs beside what every installation does.
#[cfg(feature = "cluster")]
async fn of_a_node(
    args: &Args,
    cluster: &ClusterArgs,
    data: &Path,
) -> Vec<(&'static str, Finding)> {
    let config = match Config::load(args.config.as_deref(), data) {
        Ok(config) => config.cluster.with(cluster),
        Err(error) => return vec![("configuration", Err(format!("{error:#}")))],
    };
    if let Err(error) = config.check() {
        return vec![("configuration", Err(format!("{error:#}")))];
    }
    let looked = look(&config).await;
    let mut findings = vec![("node", node(data, &looked))];
    findings.extend(looked.parts);
    findings.push(("passphrase", look::passphrase(&config).await));
    findings
}

#[cfg(not(feature = "cluster"))]
async fn of_a_node(_: &Args, _: &ClusterArgs, _: &Path) -> Vec<(&'static str, Finding)> {
    vec![("node", Err(crate::transfer::NO_CLUSTER.into()))]
}

/// Whether the node of this data directory runs, and what the nodes say.
#[cfg(feature = "cluster")]
fn node(data: &Path, looked: &Looked) -> Finding {
    let advice = start_advice(data);
    let Some(server) = ServerFile::running(data) else {
        return Err(format!("it does not run; {advice}"));
    };
    let late = looked.nodes.iter().filter(|node| node.is_late(looked.at)).count();
    let troubled: BTreeSet<_> = looked.nodes.iter().flat_map(|node| &node.trouble).collect();
    if late > 0 || !troubled.is_empty() {
        return Err(format!(
            "it runs at {}; {late} nodes missed a beat; the nodes say: {}; planwright cluster status says which",
            server.url,
            troubled.into_iter().map(String::as_str).collect::<Vec<_>>().join("; ")
        ));
    }
    Ok(format!("it runs at {}, one of {}", server.url, looked.nodes.len()))
}

fn data(path: &Path) -> Finding {
    let Ok(there) = fs::metadata(path) else {
        return Ok(format!("{} is made at the first run", path.display()));
    };
    let mode = there.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "others can read {0} (mode {mode:o}); run: chmod 700 {0}",
            path.display()
        ));
    }
    match DataDirectory::own(path, "planwright doctor") {
        Ok(_) => Ok(format!("{} is private and free", path.display())),
        Err(DataDirectoryError::InUse { owner, .. }) => {
            Ok(format!("{} is private, and {owner} has it", path.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn passphrase(path: &Path) -> Finding {
    let access = FileAccess::open(path).map_err(|error| error.to_string())?;
    let hash = owners_passphrase(path).await.map_err(|error| format!("{error:#}"))?;
    match hash {
        Some(hash) if access.has_hash(hash) => Ok("chosen".into()),
        Some(_) => Err("chosen, but what it is hashed to is gone: the file passphrases is not the one that belongs to the journal; restore it, or run: planwright passphrase --reset".into()),
        None => Err("not chosen yet, so nothing can be approved; run: planwright passphrase".into()),
    }
}

fn configuration(args: &Args, data: &Path) -> Finding {
    let config =
        Config::load(args.config.as_deref(), data).map_err(|error| format!("{error:#}"))?;
    let server = &config.server;
    if server.bind.ip().is_loopback() {
        return Ok(format!(
            "the server listens at {}, which only this machine reaches",
            server.bind
        ));
    }
    Ok(format!(
        "the server listens at {} behind a proxy that ends TLS, as {}",
        server.bind,
        server.hosts.join(", ")
    ))
}

async fn tokens(data: &Path) -> Finding {
    let path = data.join("token");
    let Ok(token) = fs::read_to_string(&path) else {
        return Ok("the first one is made when a server starts".into());
    };
    up::private(&path)
        .and_then(|()| up::check_token(token.trim()))
        .map_err(|error| error.to_string())?;
    let installation = read_installation(data).await.map_err(|error| format!("{error:#}"))?;
    let mut grants = installation.grants.values();
    if grants.any(|grant| grant.expires.is_none() && grant.standing == Standing::Decides) {
        return Err("a token may decide for ever; revoke it".into());
    }
    let many = installation.grants.len();
    Ok(format!("{many} given out; none may decide without an end"))
}

fn workspace(args: &Args, data: &Path) -> Finding {
    if !data.exists() {
        return Ok(format!(
            "{} (looked at once there is a data directory)",
            args.workspace.display()
        ));
    }
    let config =
        Config::load(args.config.as_deref(), data).map_err(|error| format!("{error:#}"))?;
    let mut files = FileToolbox::open(&args.workspace, data).map_err(|error| error.to_string())?;
    for root in &config.workspace.roots {
        files = files.and_under(root, data).map_err(|error| format!("workspace.roots: {error}"))?;
    }
    let roots: Vec<_> = files.roots().into_iter().map(|root| root.0).collect();
    Ok(format!("{} and nothing outside it", roots.join(", ")))
}

/// Whether commands and MCP servers can be confined here.
fn confinement(args: &Args, data: &Path) -> Finding {
    let config = Config::load(args.config.as_deref(), data).unwrap_or_default();
    let servers = config.mcp.values().filter(|mcp| mcp.url.is_none()).count();
    match planwright_sandbox::is_supported() {
        Ok(()) => {
            Ok("commands and MCP servers over standard streams reach what they are given".into())
        }
        Err(why) if servers == 0 => Ok(format!("not to be had here, and nothing needs it: {why}")),
        Err(why) => Err(format!("{servers} MCP servers run unconfined: {why}")),
    }
}

async fn journal(path: &Path) -> Finding {
    let file = path.join("journal.sqlite");
    if !file.exists() {
        return Ok("is made at the first run".into());
    }
    // A journal that someone has open is theirs to look at.
    let owned = DataDirectory::own(path, "planwright doctor");
    if let Err(DataDirectoryError::InUse { owner, .. }) = &owned {
        return Ok(format!("{owner} has it open"));
    }
    let journal = SqliteJournal::open(&file).map_err(|error| error.to_string())?;
    let rows = journal.sessions(None, usize::MAX).await.map_err(|error| error.to_string())?;
    for row in &rows {
        journal.session(&row.session).await.map_err(|error| format!("{}: {error}", row.session))?;
    }
    let parked = rows.iter().filter(|row| row.parked.is_some()).count();
    if parked > 0 {
        return Err(format!("{parked} sessions are parked; planwright session lists them"));
    }
    Ok(format!("{} sessions, every one folds", rows.len()))
}

async fn model(args: &Args, data: &Path) -> Finding {
    let config =
        Config::load(args.config.as_deref(), data).map_err(|error| format!("{error:#}"))?;
    let chosen = connection::chosen(data).map_err(|error| format!("{error:#}"))?;
    let settings = model_settings(args, &config.model, chosen.as_ref());
    let settings = settings.map_err(|error| format!("{error:#}"))?;
    let (name, url) = (settings.model.clone(), settings.base_url.clone());
    let model = HttpModel::new(settings).map_err(|failure| failure.message)?;
    match connection::ask(&model).await {
        Ok(tried) => {
            let seconds = tried.took_ms as f32 / 1_000.0;
            Ok(format!("{name} at {url} answered in {seconds:.1} s"))
        }
        Err(words) => Err(format!("{words}; set --model-url and --model, or try: planwright demo")),
    }
}
