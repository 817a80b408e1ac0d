//! Killing the real process under load, again and again, and looking at what is left.
//!
//! A [`Campaign`] keeps one installation through many lives. In each life a real process is
//! started, driven through its standard input, and killed: at a named point, at a random moment,
//! or with everything lost that was not synced, and its disk may fail meanwhile. This process logs what was acknowledged. At the
//! end [`verdict`] holds log, journal and ledger against each other.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::people::key_in;
use fastrand::Rng;
use planwright_domain::turn::Step;
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::ports::journal::Journal as _;
use uuid::Uuid;

use crate::{
    power::{Conditions, Failing, Fault, Power},
    scratch,
    scripted_model::{ScriptedModel, worker},
};

mod http;
mod life;
pub mod person;
pub mod verdict;

/// How a life ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Death {
    /// At the n-th hit of a named point.
    At(&'static str, u32),
    /// After so many milliseconds.
    After(u64),
    /// After so many milliseconds, and everything that was not synced is lost.
    PowerCut(u64),
    /// At the n-th write to the disk, and everything that was not synced is lost.
    CutAtWrite(u32),
    /// At the n-th sync of the disk, before it has written anything, and everything that was not synced is lost.
    CutAtSync(u32),
    /// Not at all: it works until everything rests.
    Peaceful,
}

impl Death {
    /// Whether what was not synced is lost.
    fn cuts_power(&self) -> bool {
        matches!(self, Self::PowerCut(_) | Self::CutAtWrite(_) | Self::CutAtSync(_))
    }
}

/// How a life is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Through the standard input of a chat.
    Terminal,
    /// Over HTTP.
    Http,
}

/// A command that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// In this session, by key.
    pub session: String,
    /// Under this id.
    pub id: Uuid,
    /// What was sent.
    pub line: String,
    /// The version that the answer named.
    pub version: u64,
}

/// One installation through many lives.
pub struct Campaign {
    home: tempfile::TempDir,
    subject: PathBuf,
    model: ScriptedModel,
    rng: Rng,
    power: Option<Power>,
    failing: Option<Fault>,
    mutant: Option<Mutant>,
    /// What the disk does to the life that is being lived.
    conditions: Option<Conditions>,
    open_effects: BTreeSet<String>,
    wire: Wire,
    decider: Option<http::Decider>,
    /// What was acknowledged, in order.
    pub acknowledged: Vec<Acknowledged>,
    /// How many lives ended by being killed at a moment.
    pub killed: u32,
    /// How many lives ended by being killed at a named point.
    pub killed_at_points: u32,
    /// How many lives ended before their death came.
    pub outlived: u32,
    /// What a life saw that it must not see.
    pub complaints: Vec<String>,
    /// Which kills hit an effect that was under way.
    pub hit: Hit,
    /// How many power cuts took something that was written.
    pub cuts_that_lost: u32,
    /// How many commands were refused in words while the disk failed.
    pub refused: u32,
    /// How many lives could not go on with a failing disk, and said so.
    pub gave_up: u32,
}

/// How many kills hit an effect that was under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hit {
    /// A tool had been called.
    pub calls: u32,
    /// A model had been asked.
    pub model_calls: u32,
}

/// A mistake in the program that must be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The journal syncs at checkpoints instead of at commits.
    SynchronousNormal,
    /// The journal acknowledges before it has committed.
    AnswerBeforeCommit,
    /// A file takes another's place, and the directory is not synced.
    RenameWithoutDirectorySync,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 3] =
        [Self::SynchronousNormal, Self::AnswerBeforeCommit, Self::RenameWithoutDirectorySync];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SynchronousNormal => "synchronous-normal",
            Self::AnswerBeforeCommit => "answer-before-commit",
            Self::RenameWithoutDirectorySync => "rename-without-directory-sync",
        }
    }
}

/// The passphrase of every campaign.
pub const PASSPHRASE: &str = "correct horse battery";
/// How many conversations a campaign keeps.
const SESSIONS: usize = 5;
/// How long one life may take.
const LIFE_MAX: Duration = Duration::from_secs(20);

impl Campaign {
    /// A new installation, driven from this seed, with the program that stands beside this one.
    pub async fn new(seed: u64) -> anyhow::Result<Self> {
        let home = scratch::directory("kill")?;
        fs::create_dir(home.path().join("machine"))?;
        let subject = std::env::current_exe()?.with_file_name("subject");
        anyhow::ensure!(
            subject.exists(),
            "{} is missing; build the package planwright-testkit first",
            subject.display()
        );
        let model = ScriptedModel::start(worker::worker(600, 3)).await?;
        Ok(Self {
            home,
            subject,
            model,
            rng: Rng::with_seed(seed),
            power: None,
            failing: None,
            mutant: None,
            conditions: None,
            open_effects: BTreeSet::new(),
            wire: Wire::Terminal,
            decider: None,
            acknowledged: Vec::new(),
            killed: 0,
            killed_at_points: 0,
            outlived: 0,
            complaints: Vec::new(),
            hit: Hit::default(),
            cuts_that_lost: 0,
            refused: 0,
            gave_up: 0,
        })
    }

    /// The same, driven over HTTP.
    #[must_use]
    pub fn over_http(self) -> Self {
        Self { wire: Wire::Http, ..self }
    }

    /// The same over a disk that loses what was not synced.
    pub fn with_power(mut self) -> anyhow::Result<Self> {
        // An installation has these already: that they are there is nothing that a process acknowledges.
        for directory in [self.data(), self.workspace()] {
            fs::create_dir_all(&directory)?;
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        }
        self.power = Some(Power::new(&self.machine(), &self.home.path().join("disk"))?);
        Ok(self)
    }

    /// From now on the disk fails in this way, for some calls of each life.
    pub fn disk_fails(&mut self, fault: Fault) {
        self.failing = Some(fault);
    }

    /// The same of a program with a mistake in it.
    #[must_use]
    pub fn with_mutant(self, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..self }
    }

    /// How many calls of the program failed, or took long, as the disk was told to.
    #[must_use]
    pub fn fault_hits(&self) -> u64 {
        self.power.as_ref().map_or(0, Power::hits)
    }

    /// What a power cut takes with it: data and workspace.
    fn machine(&self) -> PathBuf {
        self.home.path().join("machine")
    }

    /// Where the installation keeps its data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.machine().join("data")
    }

    /// Where every effect left its line.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.home.path().join("ledger")
    }

    /// Where the tools work.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.machine().join("workspace")
    }

    /// What the disk does to a life that ends so.
    fn conditions_of(&mut self, death: &Death) -> Conditions {
        let rng = &mut self.rng;
        let seed = rng.u64(..);
        let failing = self.failing.map(|fault| {
            let (first, count) = match fault {
                Fault::NoSpace | Fault::IoError => (rng.u32(1..80), rng.u32(1..40)),
                Fault::FailedSync => (rng.u32(1..20), rng.u32(1..8)),
                Fault::SlowSync => (rng.u32(1..5), 1_000),
            };
            Failing { fault, first, count }
        });
        let (cut_at_write, cut_at_sync) = match death {
            Death::CutAtWrite(number) => (Some(*number), None),
            Death::CutAtSync(number) => (None, Some(*number)),
            Death::At(..) | Death::After(_) | Death::PowerCut(_) | Death::Peaceful => (None, None),
        };
        let unsynced =
            (self.mutant == Some(Mutant::RenameWithoutDirectorySync)).then(|| self.workspace());
        Conditions { seed, cut_at_write, cut_at_sync, failing, unsynced }
    }

    /// What the program says to its operator.
    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// Where the program broke down, in its own words.
    pub fn panics(&self) -> anyhow::Result<Vec<String>> {
        let log = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&log).into_owned();
        let panics = text.lines().filter(|line| line.contains("panicked at"));
        Ok(panics.map(str::to_owned).collect())
    }

    fn session(&mut self) -> String {
        format!("session-{}", self.rng.usize(0..SESSIONS))
    }

    /// The keys of all conversations.
    pub fn sessions() -> impl Iterator<Item = String> {
        (0..SESSIONS).map(|at| format!("session-{at}"))
    }

    /// One life in one conversation, until its death.
    pub async fn live(&mut self, death: Death) -> anyhow::Result<()> {
        let session = self.session();
        self.live_in(&session, death).await
    }

    /// Lives on in every conversation until nothing moves; approvals that wait are left to wait.
    pub async fn settle(&mut self) -> anyhow::Result<()> {
        self.failing = None;
        for session in Self::sessions() {
            self.live_in(&session, Death::Peaceful).await?;
        }
        Ok(())
    }

    async fn live_in(&mut self, session: &str, death: Death) -> anyhow::Result<()> {
        self.conditions = None;
        if let Some(power) = self.power.as_ref().filter(|_| death.cuts_power()) {
            power.settle()?;
            self.conditions = Some(self.conditions_of(&death));
        }
        let ended = tokio::time::timeout(LIFE_MAX, life::live(self, session, &death)).await;
        match ended {
            Ok(ended) => ended?,
            Err(_) => self
                .complaints
                .push(format!("{session}: a life with {death:?} did not end within {LIFE_MAX:?}")),
        }
        if let Some(power) = self.power.as_ref().filter(|_| death.cuts_power()) {
            self.cuts_that_lost += u32::from(power.cut()?.is_something());
        }
        if death != Death::Peaceful {
            self.look_what_was_hit().await?;
        }
        Ok(())
    }

    /// Counts the effects that were under way when the process died, each once.
    async fn look_what_was_hit(&mut self) -> anyhow::Result<()> {
        if !journal_path(&self.data()).exists() {
            return Ok(());
        }
        let copy = self.copy_of_journal()?;
        let journal = SqliteJournal::open(&journal_path(copy.path()))?;
        let before = (self.hit.calls, self.hit.model_calls);
        let (mut calls, mut model_calls) = (0, 0);
        for key in Self::sessions() {
            let session = journal.session(&key_in(&journal, &format!("cli:{key}")).await?).await?;
            for (call, open) in &session.open {
                calls += u32::from(self.open_effects.insert(format!("{call} {}", open.attempt)));
            }
            if let Some(turn) = &session.turn
                && let Step::ModelOpen { attempt, .. } = &turn.step
            {
                let asked = format!("{} {} {attempt}", turn.id, turn.round);
                model_calls += u32::from(self.open_effects.insert(asked));
            }
        }
        self.hit.calls = before.0 + u32::from(calls > 0);
        self.hit.model_calls = before.1 + u32::from(model_calls > 0);
        // The journal may still be closing there; what is left goes with the run.
        let _ = fs::remove_dir_all(copy.path());
        Ok(())
    }

    /// A copy of the journal as it lies there, so that whoever looks at it changes nothing for the next life.
    fn copy_of_journal(&self) -> anyhow::Result<tempfile::TempDir> {
        let copy = scratch::directory("copy")?;
        for entry in fs::read_dir(self.data())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("journal.sqlite") && !name.ends_with("-shm") {
                fs::copy(entry.path(), copy.path().join(name))?;
            }
        }
        Ok(copy)
    }
}

/// The path of the journal in a data directory.
#[must_use]
pub fn journal_path(data: &Path) -> PathBuf {
    data.join("journal.sqlite")
}
