//! `planwright export` and `planwright import`: from a laptop to a cluster and back, verified by digest.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use planwright_domain::{
    actor::{OWNER, PersonId},
    id::OwnerId,
    identity::SessionKey,
    installation::{self, Installation, InstallationCommand},
};
#[cfg(feature = "cluster")]
use planwright_outbound::cluster_postgres::PostgresNodes;
use planwright_outbound::{
    clock_system::SystemClock,
    data_directory::{DataDirectory, JOURNAL, belongs_to_node},
    ids_random::RandomIds,
    journal_sqlite::SqliteJournal,
    signing_key::{PublicKey, SigningKey, has_signed},
};
use planwright_runtime::{
    audit::{
        check::{Checker, Finding},
        head::{SignedLine, Statement},
        log_file::{self, Summary},
    },
    ports::{Clock as _, audit::Signature, journal::Archive, notebook::Notebooks},
    transfer::{
        archive::{self, Totals, Trust},
        erase::Eraser,
    },
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    args::{Args, ClusterArgs, VerifyArgs},
    config::Config,
    data_path::data_path,
    durable_file::{move_into_place, sync_name},
    exit::Exit,
    terminal::{Terminal, visible::visible},
};

/// A journal, and the data directory that it may need to itself.
struct Opened {
    journal: Arc<dyn Archive>,
    notebooks: Arc<dyn Notebooks>,
    _directory: Option<DataDirectory>,
}

/// The cluster that the arguments name, else the data directory.
async fn open(args: &Args, database: Option<&str>) -> anyhow::Result<Opened> {
    let Some(database) = database else {
        let data = data_path(args)?;
        let config = Config::load(args.config.as_deref(), &data)?;
        let directory = DataDirectory::own_for_installation(&data, "planwright export or import")?;
        let journal = SqliteJournal::open(&directory.path().join(JOURNAL))?;
        let notebooks = config.notebook.local(directory.path())?;
        let journal = Arc::new(journal);
        return Ok(Opened { journal, notebooks, _directory: Some(directory) });
    };
    let config = cluster_config(args, database)?;
    let notebooks = config.notebook.shared()?;
    let journal = open_cluster(&config, database).await?;
    Ok(Opened { journal, notebooks, _directory: None })
}

/// The configuration, if this database may be used with it.
fn cluster_config(args: &Args, database: &str) -> anyhow::Result<Config> {
    let config = Config::load(args.config.as_deref(), &data_path(args)?)?;
    let named = ClusterArgs { database: Some(database.to_owned()), ..ClusterArgs::default() };
    config.cluster.with(&named).check()?;
    Ok(config)
}

/// Why this program cannot do what is asked of it.
#[cfg(not(feature = "cluster"))]
pub(crate) const NO_CLUSTER: &str = "this program was built without clusters; build it with the feature `cluster`, which is on unless it is left out";

/// The journal of a cluster, to be read.
#[cfg(feature = "cluster")]
async fn open_cluster(config: &Config, database: &str) -> anyhow::Result<Arc<dyn Archive>> {
    Ok(Arc::new(config.notebook.cluster_journal(database).await?))
}

#[cfg(not(feature = "cluster"))]
async fn open_cluster(_: &Config, _: &str) -> anyhow::Result<Arc<dyn Archive>> {
    anyhow::bail!(NO_CLUSTER)
}

/// The journal, only to be read: a server may be writing it meanwhile. A node's is in its cluster's database.
async fn open_to_read(args: &Args, database: Option<&str>) -> anyhow::Result<Arc<dyn Archive>> {
    let data = data_path(args)?;
    let config = Config::load(args.config.as_deref(), &data)?;
    let mut database = database.map(str::to_owned);
    if database.is_none() && belongs_to_node(&data) {
        let known = std::env::var("PLANWRIGHT_DATABASE").ok().or(config.cluster.database.clone());
        database = Some(known.with_context(|| {
            format!(
                "{} belongs to a cluster node; name the cluster's database with --database, PLANWRIGHT_DATABASE or cluster.database",
                data.display()
            )
        })?);
    }
    let Some(database) = database else {
        let file = data.join(JOURNAL);
        anyhow::ensure!(file.exists(), "there is no journal in {} yet", data.display());
        return Ok(Arc::new(SqliteJournal::open_read_only(&file)?));
    };
    open_cluster(&cluster_config(args, &database)?, &database).await
}

/// Writes everything out.
pub async fn export(
    args: &Args,
    database: Option<&str>,
    only: Option<&str>,
    file: &Path,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let Opened { journal, notebooks, _directory } = open(args, database).await?;
    let only = match only {
        Some(name) => Some(owner_named(&*journal, name).await?),
        None => None,
    };
    let mut out = BufWriter::new(make(file)?);
    let totals = archive::export_of(&*journal, &*notebooks, only, &mut out).await?;
    let key = signing_key(&data_path(args)?)?;
    archive::write_signature(&mut out, key.sign(&archive::signed_message(&totals)))?;
    out.flush()?;
    out.get_ref().sync_all()?;
    sync_name(file)?;
    say(terminal, "written", &totals);
    let public = key.public();
    terminal.row(
        &format!("signed by {public}; import --trust {public} believes it"),
        || json!({"type": "signed", "key": public.to_string()}),
    );
    terminal.line("the passphrase and the tokens are not in it: choose and give them anew");
    Ok(Exit::Fine)
}

/// The owner of this name.
pub async fn owner_named(journal: &dyn Archive, name: &str) -> anyhow::Result<OwnerId> {
    let owners = journal.owners().await?;
    let names: Vec<_> = owners.iter().map(|(name, _)| visible(&name.0)).collect();
    let found = owners.iter().find(|(known, _)| known.0 == name).map(|(_, owner)| *owner);
    found.with_context(|| {
        format!("nothing belongs to {} here; there are {}", visible(name), names.join(", "))
    })
}

/// `planwright erase --owner`: everything of one person, for good.
pub async fn erase(
    args: &Args,
    database: Option<&str>,
    name: &str,
    yes: bool,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let Opened { journal, notebooks, _directory } = open(args, database).await?;
    let owner = owner_named(&*journal, name).await?;
    let shown = visible(name);
    if !yes {
        let page = journal.keys(None, usize::MAX).await?;
        let many = page.iter().filter(|key| key.owner == owner).count();
        let known = journal.owner(owner).await?.promoted.len();
        terminal.line(&format!(
            "this erases {many} sessions of {shown} and {known} things that they made known everywhere, and cannot be undone; export --owner {shown} writes them out first, --yes erases them"
        ));
        return Ok(Exit::Failed);
    }
    let by = PersonId(OWNER.into());
    let eraser =
        Eraser { journal: &*journal, notebooks: &*notebooks, clock: &SystemClock, ids: &RandomIds };
    let erased = eraser.erase_owner(owner, &by).await?;
    terminal.row(
        &format!("{erased} sessions of {shown} erased; the audit log keeps their digests"),
        || json!({"type": "erased", "sessions": erased}),
    );
    if database.is_some() {
        terminal.line("the database's own logs, replicas and backups keep it for as long as you keep them: see docs/DEPLOYMENT.md");
    }
    Ok(Exit::Fine)
}

/// Brings in what was written out.
pub async fn import(
    args: &Args,
    database: Option<&str>,
    file: &Path,
    vouched: Option<&str>,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let read = || {
        let opened = File::open(file);
        opened.map(BufReader::new).with_context(|| format!("{} cannot be read", file.display()))
    };
    let totals = archive::verify(read()?)?;
    let trust = match vouched {
        None => {
            let (by, at) = (PersonId(OWNER.into()), SystemClock.now());
            Trust::Held { by, at, import: Uuid::new_v4() }
        }
        Some(digest) if digest == totals.digest.to_string() => Trust::Vouched,
        Some(key) if key.starts_with("ed25519:") => {
            let key: PublicKey = key.parse().map_err(anyhow::Error::msg)?;
            check_signature(key, archive::signature(read()?)?.as_ref(), &totals)?;
            Trust::Vouched
        }
        Some(digest) => anyhow::bail!(
            "--trust names {digest}, and this archive has {}; nothing was brought in",
            totals.digest
        ),
    };
    let is_held = matches!(trust, Trust::Held { .. });
    match database {
        None => import_into_directory(args, read()?, totals, trust).await?,
        Some(database) => import_into_cluster(args, database, read()?, totals, trust).await?,
    }
    say(terminal, "brought in, and written out again with the same digest", &totals);
    if is_held {
        terminal.line(
            "nothing that was approved, permitted or scheduled elsewhere goes on by itself: plans wait for /plan resume, runs and schedules are off; import --trust with the key or the digest that export printed brings an archive in as it was",
        );
    }
    Ok(Exit::Fine)
}

/// Whether the key that the operator names signed this archive.
fn check_signature(
    key: PublicKey,
    signature: Option<&Signature>,
    totals: &Totals,
) -> anyhow::Result<()> {
    let signature = signature.with_context(|| {
        format!("nobody signed this archive, and --trust names {key}; nothing was brought in")
    })?;
    anyhow::ensure!(
        key.signed(&archive::signed_message(totals), signature),
        "{key} did not sign this archive (it says that {} did); nothing was brought in",
        visible(&signature.key)
    );
    Ok(())
}

/// The key of a data directory, which is made if it is not there.
fn signing_key(data: &Path) -> anyhow::Result<SigningKey> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(data)?;
    Ok(SigningKey::open(data)?)
}

/// Brings an archive into a cluster's database: beside what is there first, and in its place once it is whole. A node would
/// go on with what it keeps warm.
#[cfg(feature = "cluster")]
async fn import_into_cluster(
    args: &Args,
    database: &str,
    lines: impl BufRead,
    totals: Totals,
    trust: Trust,
) -> anyhow::Result<()> {
    let config = cluster_config(args, database)?;
    let journal = config.notebook.cluster_journal(database).await?;
    let nodes = PostgresNodes::new(journal.pool());
    let alive = nodes.alive(SystemClock.now()).await?;
    let names: Vec<_> = alive.iter().map(|node| node.name.as_str()).collect();
    let names = names.join(", ");
    anyhow::ensure!(names.is_empty(), "{names} runs; stop every node of the cluster, then import");
    journal.write_up_to(nodes.level().await?);
    archive::check_empty(&journal).await?;
    let notebooks = config.notebook.shared()?;
    let (staged, recorded) = (journal.stage(database).await?, trust.clone());
    if let Err(error) = archive::import(&staged, &*notebooks, lines, totals, trust).await {
        archive::remove_pages(&staged, &*notebooks).await?;
        journal.unstage().await?;
        return Err(error.into());
    }
    record_import(&journal, &totals, &recorded).await?;
    Ok(journal.put_staged_in_place().await?)
}

#[cfg(not(feature = "cluster"))]
async fn import_into_cluster(
    _: &Args,
    _: &str,
    _: impl BufRead,
    _: Totals,
    _: Trust,
) -> anyhow::Result<()> {
    anyhow::bail!(NO_CLUSTER)
}

/// Where an archive is brought in before it takes its place: what fails on the way leaves nothing.
const STAGED: &str = "importing";
/// Where the pages of notebooks lie in a data directory.
const PAGES: &str = "users";
/// Where long outputs do.
const OUTPUTS: &str = "outputs";

/// Brings an archive into a data directory: beside the journal first, and in its place once it is whole.
async fn import_into_directory(
    args: &Args,
    lines: impl BufRead,
    totals: Totals,
    trust: Trust,
) -> anyhow::Result<()> {
    let data = data_path(args)?;
    let config = Config::load(args.config.as_deref(), &data)?;
    let directory = DataDirectory::own_for_installation(&data, "planwright import")?;
    let (staged, journal) = (directory.path().join(STAGED), directory.path().join(JOURNAL));
    if journal.exists() {
        archive::check_empty(&SqliteJournal::open_inline(&journal)?).await?;
    }
    // What an import that was killed left.
    let _ = fs::remove_dir_all(&staged);
    fs::DirBuilder::new().mode(0o700).create(&staged)?;
    let imported = async {
        // No thread of its own: when it is dropped, its file is closed and whole.
        let imported = SqliteJournal::open_inline(&staged.join(JOURNAL))?;
        let notebooks = config.notebook.local(&staged)?;
        // Who uses this installation, and what happened to it, is no archive's.
        if journal.exists() {
            imported.copy_audit_log(&journal)?;
        }
        record_import(&imported, &totals, &trust).await?;
        archive::import(&imported, &*notebooks, lines, totals, trust).await?;
        anyhow::Ok(())
    };
    let imported = match imported.await {
        Ok(()) => put_in_place(&staged, directory.path()),
        failed @ Err(_) => failed,
    };
    let _ = fs::remove_dir_all(&staged);
    imported
}

/// Records that an archive is brought in.
async fn record_import(
    journal: &dyn Archive,
    totals: &Totals,
    trust: &Trust,
) -> anyhow::Result<()> {
    let Totals { digest, sessions, .. } = *totals;
    let is_vouched = matches!(trust, Trust::Vouched);
    let import = InstallationCommand::Import { archive: digest, sessions, is_vouched };
    let decide = move |before: &Installation| installation::decide(before, &import);
    journal.append_installation(SystemClock.now(), Box::new(decide)).await??;
    Ok(())
}

/// Moves what was staged into the data directory. The journal comes last: without it there is nothing.
fn put_in_place(staged: &Path, data: &Path) -> anyhow::Result<()> {
    let beside = |directory: &Path, end: &str| directory.join(format!("{JOURNAL}{end}"));
    for end in ["-wal", "-shm"] {
        anyhow::ensure!(!beside(staged, end).exists(), "the journal that was brought in is open");
        let _ = fs::remove_file(beside(data, end));
    }
    for folder in [PAGES, OUTPUTS] {
        let (found, there) = (staged.join(folder), data.join(folder));
        if found.exists() {
            // What belongs to sessions that are not there belongs to nobody.
            let _ = fs::remove_dir_all(&there);
            move_into_place(&found, &there)?;
        }
    }
    Ok(move_into_place(&staged.join(JOURNAL), &data.join(JOURNAL))?)
}

/// `planwright audit export`: the audit log and every decision, written out.
pub async fn audit(
    args: &Args,
    database: Option<&str>,
    of: Option<&str>,
    file: &Path,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let journal = open_to_read(args, database).await?;
    let only = match of {
        Some(named) => Some(named_by_the_owner(&*journal, named).await?),
        None => None,
    };
    let mut out = BufWriter::new(make(file)?);
    let mut checker = Checker::new(SystemClock.now(), []);
    let summary = log_file::export(&*journal, only.as_ref(), &mut checker, &mut out).await?;
    out.flush()?;
    out.get_ref().sync_all()?;
    sync_name(file)?;
    say_log(terminal, "written", &summary);
    Ok(told_of(terminal, &checker.finish(summary.is_whole)))
}

/// A session as the installation's owner names it.
async fn named_by_the_owner(journal: &dyn Archive, named: &str) -> anyhow::Result<SessionKey> {
    let owners = journal.owners().await?;
    let owner = owners.into_iter().find(|(name, _)| name.0 == OWNER).map(|(_, owner)| owner);
    let owner = owner.context("there is no session yet; planwright chat begins one")?;
    Ok(SessionKey::named(named, owner)?)
}

/// `planwright audit verify`: a file that was written out, or the journal itself, against heads that were kept.
pub async fn verify(
    args: &Args,
    words: &VerifyArgs,
    terminal: &mut Terminal,
) -> anyhow::Result<Exit> {
    let VerifyArgs { file, digest: told, heads, key, database } = words;
    let data = data_path(args)?;
    let config = Config::load(args.config.as_deref(), &data)?;
    let own = config.audit.file(&data).filter(|own| file.is_none() && own.exists());
    let key: Option<PublicKey> =
        key.as_deref().map(str::parse).transpose().map_err(anyhow::Error::msg)?;
    let (mut statements, mut findings) = (Vec::new(), Vec::new());
    for heads in heads.iter().chain(&own) {
        read_heads(heads, key, &mut statements, &mut findings)?;
    }
    let kept = statements.len();
    anyhow::ensure!(
        kept > 0 || heads.is_empty(),
        "there is no signed head in what --heads names, so nothing can be compared with it"
    );
    let mut checker = Checker::new(SystemClock.now(), statements);
    findings.into_iter().for_each(|finding| checker.find(finding));
    let summary = if let Some(file) = file {
        let opened =
            File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let summary = log_file::verify(BufReader::new(opened), &mut checker)?;
        let is_told = told.as_ref().is_none_or(|told| *told == summary.digest.to_string());
        anyhow::ensure!(
            is_told,
            "the log is whole, and is not the one with that digest: it has {}",
            summary.digest
        );
        summary
    } else {
        anyhow::ensure!(told.is_none(), "--digest is of a file; name it");
        let journal = open_to_read(args, database.as_deref()).await?;
        log_file::check(&*journal, &mut checker).await?
    };
    let uncovered = checker.uncovered_erasures;
    let found = checker.finish(summary.is_whole);
    if found.is_empty() {
        say_log(terminal, "as they were written", &summary);
        if uncovered > 0 {
            terminal.line(&format!(
                "sessions erased by entries that no signed head covers yet: {uncovered}; verify again with a newer head"
            ));
        }
        if heads.is_empty() {
            terminal.line(if kept == 0 {
                "no signed head was looked at: name the file in which you keep them with --heads"
            } else {
                "the heads lie beside the journal, where whoever changes one can change the other: keep them elsewhere (audit.heads), and name them with --heads"
            });
        }
    }
    Ok(told_of(terminal, &found))
}

/// The heads that are kept in a file. With a key, only those that it signed count.
fn read_heads(
    file: &Path,
    key: Option<PublicKey>,
    statements: &mut Vec<Statement>,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let opened = File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
    for (line, text) in (1..).zip(BufReader::new(opened).lines()) {
        // The system's log puts words of its own before each.
        let text = text?;
        let text = text.find('{').map_or(text.as_str(), |at| &text[at..]);
        match SignedLine::read(text, has_signed) {
            Ok(read) if key.is_some_and(|key| key.to_string() != read.signature.key) => {
                let why = format!("it is signed by {}", visible(&read.signature.key));
                findings.push(Finding::KeptLine { line, why });
            }
            Ok(read) => statements.push(read.statement),
            Err(why) => findings.push(Finding::KeptLine { line, why: visible(&why) }),
        }
    }
    Ok(())
}

/// Says what was found.
fn told_of(terminal: &mut Terminal, found: &BTreeSet<Finding>) -> Exit {
    for finding in found {
        let words = finding.to_string();
        terminal.row(&words, || json!({"type": "finding", "words": words}));
    }
    if found.is_empty() { Exit::Fine } else { Exit::Failed }
}

fn say_log(terminal: &mut Terminal, what: &str, summary: &Summary) {
    let Summary { sessions, entries, audit, digest, .. } = summary;
    // Only what is written out has one.
    let of = if digest.0 == [0; 32] { String::new() } else { format!(": {digest}") };
    terminal.row(
        &format!("{audit} entries of the audit log and {entries} decisions in {sessions} sessions {what}{of}"),
        || json!({"type": "audit", "audit": audit, "sessions": sessions, "entries": entries, "digest": digest}),
    );
}

/// A new file that only its owner can read.
fn make(file: &Path) -> anyhow::Result<File> {
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    made.with_context(|| {
        format!("{} cannot be made; name a file that is not there yet", file.display())
    })
}

fn say(terminal: &mut Terminal, what: &str, totals: &Totals) {
    let Totals { sessions, events, digest } = totals;
    terminal.row(
        &format!("{sessions} sessions, {events} events {what}: {digest}"),
        || json!({"type": "archive", "sessions": sessions, "events": events, "digest": digest}),
    );
}
