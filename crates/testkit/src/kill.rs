//! Killing the real process under load, again and again, and looking at what is left.
//!
//! A [`Campaign`] keeps one installation through many lives. In each life a real process is
//! started, driven through its standard input, and killed: at a named point, at a random moment,
//! or with everything lost that was not synced. This process logs what was acknowledged. At the
//! end [`verdict`] holds log, journal and ledger against each other.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use fastrand::Rng;
use uuid::Uuid;

use crate::scripted_model::{ScriptedModel, worker};

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
    /// Not at all: it works until everything rests.
    Peaceful,
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
    power: Option<crate::power::Power>,
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
        let home = tempfile::Builder::new().prefix("planwright-kill-").tempdir()?;
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
            wire: Wire::Terminal,
            decider: None,
            acknowledged: Vec::new(),
            killed: 0,
            killed_at_points: 0,
            outlived: 0,
            complaints: Vec::new(),
        })
    }

    /// The same, driven over HTTP.
    #[must_use]
    pub fn over_http(self) -> Self {
        Self { wire: Wire::Http, ..self }
    }

    /// The same over a disk that loses what was not synced; one that lies syncs nothing.
    pub fn with_power(mut self, honesty: crate::power::Honesty) -> anyhow::Result<Self> {
        self.power =
            Some(crate::power::Power::new(&self.data(), &self.home.path().join("disk"), honesty)?);
        Ok(self)
    }

    /// Where the installation keeps its data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Where every effect left its line.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.home.path().join("ledger")
    }

    fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace")
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
        for session in Self::sessions() {
            self.live_in(&session, Death::Peaceful).await?;
        }
        Ok(())
    }

    async fn live_in(&mut self, session: &str, death: Death) -> anyhow::Result<()> {
        let ended = tokio::time::timeout(LIFE_MAX, life::live(self, session, &death)).await;
        match ended {
            Ok(ended) => ended?,
            Err(_) => self
                .complaints
                .push(format!("{session}: a life with {death:?} did not end within {LIFE_MAX:?}")),
        }
        if let (Some(power), Death::PowerCut(_)) = (&self.power, &death) {
            power.cut()?;
        }
        Ok(())
    }
}

/// The path of the journal in a data directory.
#[must_use]
pub fn journal_path(data: &Path) -> PathBuf {
    data.join("journal.sqlite")
}
