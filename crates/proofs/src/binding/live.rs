//! A tool of a server that is alive, and changes its schema between approve and execute.

use std::{fs, sync::Arc};

use fastrand::Rng;
use planwright_domain::plan::Strategy;
use planwright_outbound::journal_sqlite::SqliteJournal;
use planwright_runtime::{ports::toolbox::Toolbox, runtime::Runtime};
use planwright_testkit::scratch;

use super::{goes_on, hold};
use crate::staged::{Staged, runtime, strict_mcp, talk};

/// What came of a changed schema.
pub(super) enum Changed {
    /// A call was made all the same.
    Ran(String),
    /// Nothing was called; where the plan stands then.
    CameTo(String),
}

/// A server that writes every call into its own ledger.
pub(super) struct Server {
    home: tempfile::TempDir,
    toolbox: Arc<dyn Toolbox>,
    runtime: Runtime,
    plans: u32,
}

impl Server {
    /// Starts one, and shows that an unchanged plan runs.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let home = scratch::directory("live")?;
        let toolbox = strict_mcp(home.path())?;
        toolbox.refresh().await;
        let journal = Arc::new(SqliteJournal::open(&home.path().join("journal.sqlite"))?);
        let runtime = runtime(journal, toolbox.clone());
        let mut server = Self { home, toolbox, runtime, plans: 0 };
        anyhow::ensure!(server.noted_by(None).await?.0 > 0, "an unchanged plan runs nothing");
        Ok(server)
    }

    /// Changes the schema under an approved plan; what ran all the same.
    pub(super) async fn changes(&mut self, rng: &mut Rng) -> anyhow::Result<Changed> {
        let words: String = (0..rng.usize(1..9)).map(|_| rng.alphanumeric()).collect();
        let (noted, came_to) = self.noted_by(Some(&words)).await?;
        Ok(if noted > 0 {
            Changed::Ran(format!("a live schema that says {words:?}"))
        } else {
            Changed::CameTo(came_to)
        })
    }

    /// How many calls a plan made that was approved before this change, and what it came to.
    async fn noted_by(&mut self, change: Option<&str>) -> anyhow::Result<(usize, String)> {
        self.plans += 1;
        let identity = talk(&format!("live-{:06}", self.plans));
        let staged = Staged { runtime: &self.runtime, identity: &identity };
        let strategy =
            if self.plans.is_multiple_of(2) { Strategy::Document } else { Strategy::Collect };
        hold(&staged, strategy).await?;
        let before = self.noted();
        if let Some(words) = change {
            fs::write(self.home.path().join("changed"), words)?;
        }
        let came_to = goes_on(&staged).await?;
        let noted = self.noted() - before;
        let _ = fs::remove_file(self.home.path().join("changed"));
        self.toolbox.refresh().await;
        Ok((noted, came_to))
    }

    fn noted(&self) -> usize {
        fs::read_to_string(self.home.path().join("ledger")).unwrap_or_default().lines().count()
    }
}
