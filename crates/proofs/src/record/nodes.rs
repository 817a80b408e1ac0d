//! Nodes that decide and take decisions up over one journal, and are killed while they do.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Child,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use fastrand::Rng;
use planwright_domain::{
    digest::Digest, id::Seq, installation::InstallationEvent, log::beginning, session::SessionEvent,
};
use planwright_outbound::{
    clock_system::SystemClock, journal_postgres::PostgresJournal, journal_sqlite::SqliteJournal,
    signing_key::SigningKey,
};
use planwright_runtime::{
    audit::{check::Checker, log_file, sequencer::Sequencer},
    commands::dispatch::dispatch,
    ports::{Clock as _, audit::HeadKeeper, journal::Archive},
};
use planwright_testkit::{machine, people::ada_key, scratch, servers::Postgres};

use crate::lives::{self, ended};

/// The points at which a node is killed.
const POINTS: [&str; 3] = ["audit.before_entries", "audit.after_entries", "audit.after_commit"];
/// How many nodes there are on PostgreSQL; on SQLite, one.
const NODES: usize = 3;
/// How many sessions a life of a node decides in that nobody kills.
const SESSIONS: u64 = 6;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Sequenced {
    pub(super) kills: BTreeMap<&'static str, u64>,
    pub(super) taken: u64,
    pub(super) wrong: Vec<String>,
}

impl Sequenced {
    /// Whether every point was killed at, something was taken up, and nothing is wrong.
    pub(super) fn is_well(&self) -> bool {
        self.wrong.is_empty() && self.taken > 0 && self.kills.len() == POINTS.len()
    }
}

/// Keeps nothing: what is signed is looked at elsewhere.
struct NoHeads;

#[async_trait]
impl HeadKeeper for NoHeads {
    async fn hand_over(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Where a node finds its journal: a file, or an address.
async fn open(place: &str) -> anyhow::Result<Arc<dyn Archive>> {
    Ok(if place.starts_with("postgresql:") {
        Arc::new(PostgresJournal::open(place).await?)
    } else {
        Arc::new(SqliteJournal::open(Path::new(place))?)
    })
}

/// One life: decides in so many sessions, and takes up what it and others decided meanwhile.
pub(crate) async fn live(place: String, home: PathBuf, seed: u64) -> anyhow::Result<()> {
    let journal = open(&place).await?;
    let signer = Arc::new(SigningKey::open(&home)?);
    let every = Duration::from_secs(60);
    let sequencer =
        Sequencer::new(journal.clone(), Arc::new(SystemClock), signer, Arc::new(NoHeads), every);
    let mut rng = Rng::with_seed(seed);
    for number in 0..SESSIONS {
        let key = ada_key(&format!("cli:record-{seed:016x}-{number}"))?;
        let (commands, _) = machine::commands(key.clone(), rng.u64(..));
        for (count, asked) in commands.into_iter().enumerate() {
            dispatch(&*journal, &key, asked).await?;
            if count % 4 == 3 {
                sequencer.take_up().await?;
            }
        }
    }
    sequencer.take_up().await?;
    Ok(())
}

fn start(place: &str, home: &Path, seed: u64, dies: Option<&str>) -> anyhow::Result<Child> {
    let words = ["sequence".into(), place.into(), home.into(), seed.to_string().into()];
    lives::start(words, None, dies)
}

/// Lives and kills: each point so often, with other nodes beside it where there may be any.
pub(super) async fn prove(
    rng: &mut Rng,
    each: u64,
    on_postgres: bool,
) -> anyhow::Result<Sequenced> {
    let home = scratch::directory("record-nodes")?;
    let server = on_postgres.then(Postgres::start);
    let place = match &server {
        Some(server) => server.address(),
        None => home.path().join("journal.sqlite").display().to_string(),
    };
    drop(open(&place).await?);
    let mut sequenced = Sequenced::default();
    for round in 0..each {
        for point in POINTS {
            let dies = format!("{point}:{}", rng.u64(1..=4));
            let mut beside = Vec::new();
            for _ in 1..if on_postgres { NODES } else { 1 } {
                beside.push(start(&place, home.path(), rng.u64(..), None)?);
            }
            let mut killed = start(&place, home.path(), rng.u64(..), Some(&dies))?;
            if ended(&mut killed).await?.code().is_none() {
                *sequenced.kills.entry(point).or_default() += 1;
            }
            for mut node in beside {
                let status = ended(&mut node).await?;
                if !status.success() {
                    sequenced.wrong.push(format!("round {round}: a node ended with {status}"));
                }
            }
        }
    }
    // What the last one left is taken up by whoever comes next.
    let mut last = start(&place, home.path(), rng.u64(..), None)?;
    anyhow::ensure!(ended(&mut last).await?.success(), "the last node did not end well");
    look(&*open(&place).await?, &mut sequenced).await?;
    Ok(sequenced)
}

/// Compares what was taken up with what was decided: nothing twice, nothing backwards, nothing left out at the end.
async fn look(journal: &dyn Archive, sequenced: &mut Sequenced) -> anyhow::Result<()> {
    let mut last = BTreeMap::<Digest, (Seq, Digest)>::new();
    let mut expected = Seq(0);
    for recorded in journal.audit_log(Seq(0), usize::MAX).await? {
        expected = expected.following();
        if recorded.seq != expected {
            sequenced.wrong.push(format!("entry {} stands where {expected} should", recorded.seq));
        }
        let InstallationEvent::HeadTaken(of) = recorded.event else { continue };
        sequenced.taken += 1;
        if let Some((seq, _)) = last.get(&of.session)
            && *seq >= of.seq
        {
            let words = format!("event {} was taken up after event {seq}", of.seq);
            sequenced.wrong.push(words);
        }
        last.insert(of.session, (of.seq, of.head));
    }
    for key in journal.keys(None, usize::MAX).await? {
        let events = journal.events(&key, Seq(0), usize::MAX).await?;
        let logged = events.iter().rev().find_map(|recorded| {
            let SessionEvent::Logged { head } = &recorded.event else { return None };
            Some((recorded.seq, *head))
        });
        if last.remove(&beginning(&key)) != logged {
            sequenced.wrong.push(format!("{key} was not taken up to its last decision"));
        }
    }
    if !last.is_empty() {
        sequenced.wrong.push(format!("{} sessions were taken up that are not there", last.len()));
    }
    let mut checker = Checker::new(SystemClock.now(), []);
    log_file::check(journal, &mut checker).await?;
    sequenced.wrong.extend(checker.finish(true).iter().map(ToString::to_string));
    Ok(())
}
