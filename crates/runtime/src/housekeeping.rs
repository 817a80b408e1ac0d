//! What is done at intervals, on every node: what models were used is counted for the owners, and what is older than sessions are
//! kept is deleted.

use std::{sync::Arc, time::Duration};

use planwright_domain::{command::SystemCommand, session::life::Life, time::Time};
use tokio::{sync::watch, time::Instant};

use crate::{
    commands::dispatch::Dispatcher,
    ports::{
        Clock, Ids, Ports,
        journal::{Journal, JournalError},
    },
    settings::{Retention, Settings},
};

/// How often what was used is counted.
const COUNTS_EVERY: Duration = Duration::from_secs(1);
/// How often it looks for sessions that are too old.
const LOOKS_EVERY: Duration = Duration::from_secs(600);
/// How many sessions are taken at once.
const PAGE: usize = 256;
const DAY_MICROS: i64 = 86_400_000_000;

/// What is done at intervals.
pub struct Housekeeping {
    dispatcher: Dispatcher,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    retention: Retention,
}

impl Housekeeping {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            dispatcher: Dispatcher::new(ports, settings),
            journal: ports.journal.clone(),
            clock: ports.clock.clone(),
            ids: ports.ids.clone(),
            retention: settings.retention,
        }
    }

    /// Works until it is told to stop, and counts once more then.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut looked: Option<Instant> = None;
        loop {
            let is_last = *stopping.borrow();
            if let Err(error) = self.count().await {
                tracing::error!(%error, event = "usage_not_counted");
            }
            if is_last {
                return;
            }
            if looked.is_none_or(|looked| looked.elapsed() >= LOOKS_EVERY) {
                looked = Some(Instant::now());
                if let Err(error) = self.delete_old().await {
                    tracing::error!(%error, event = "old_sessions_not_deleted");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(COUNTS_EVERY) => {}
                _ = stopping.wait_for(|is_told| *is_told) => {}
            }
        }
    }

    /// Counts all that was used; of how many sessions.
    pub async fn count(&self) -> Result<usize, JournalError> {
        let mut all = 0;
        loop {
            let counted = self.journal.count_use(self.clock.now(), PAGE).await?;
            all += counted;
            if counted < PAGE {
                return Ok(all);
            }
        }
    }

    /// Deletes what is older than sessions are kept; how many. What waits for a person or goes on by itself stays.
    pub async fn delete_old(&self) -> Result<usize, JournalError> {
        let Retention { archived_days, idle_days } = self.retention;
        let mut deleted = 0;
        for (life, days) in [(Life::Archived, archived_days), (Life::Open, idle_days)] {
            let Some(days) = days else { continue };
            let before = self.clock.now().plus_micros(-i64::from(days).saturating_mul(DAY_MICROS));
            deleted += self.delete_unused(life, before).await?;
        }
        Ok(deleted)
    }

    async fn delete_unused(&self, life: Life, before: Time) -> Result<usize, JournalError> {
        // What stays is not looked at again before what is younger: it would be the first of every page.
        let (mut deleted, mut kept) = (0, 0);
        loop {
            let rows = self.journal.unused_since(life, before, kept + PAGE).await?;
            let many = rows.len();
            for row in rows.into_iter().skip(kept) {
                let command = SystemCommand::DeleteByAge { version: row.version };
                let answer =
                    self.dispatcher.report(&row.session, self.ids.command(), command).await?;
                if answer.is_refused() {
                    kept += 1;
                } else {
                    tracing::info!(session_identity = %row.session, event = "session_deleted_by_age");
                    deleted += 1;
                }
            }
            if many < kept + PAGE {
                return Ok(deleted);
            }
        }
    }
}
