//! What is done at intervals, on every node: what was used is counted for the owners, and what is older than sessions and answers
//! are kept is deleted.

use std::{sync::Arc, time::Duration};

use planwright_domain::{command::SystemCommand, session::life::Life, time::Time};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::{
    commands::dispatch::Dispatcher,
    ports::{
        Clock, Ports,
        journal::{Journal, JournalError},
    },
    settings::{Retention, Settings},
};

/// How often what was used is counted.
const COUNTS_EVERY: Duration = Duration::from_secs(1);
/// How often it looks for sessions that are too old.
const LOOKS_EVERY: Duration = Duration::from_secs(600);
/// How often it looks for outputs that nothing names. All of them are listed.
const SWEEPS_EVERY: Duration = Duration::from_secs(6 * 3_600);
/// By then an output that was written is named, or never is.
const OUTPUT_NAMED_WITHIN_MICROS: i64 = 3_600_000_000;
/// How often it goes on to index words before it looks after something else.
const INDEXES_AT_ONCE: usize = 32;
/// How many sessions are taken at once.
const PAGE: usize = 256;
const DAY_MICROS: i64 = 86_400_000_000;
/// For how long a command that is asked again gets the answer that it got.
const ANSWERS_KEPT_MICROS: i64 = 7 * DAY_MICROS;

/// What is done at intervals.
pub struct Housekeeping {
    dispatcher: Dispatcher,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    retention: Retention,
}

impl Housekeeping {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            dispatcher: Dispatcher::new(ports, settings),
            journal: ports.journal.clone(),
            clock: ports.clock.clone(),
            retention: settings.retention,
        }
    }

    /// Works until it is told to stop, and counts once more then.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let (mut looked, mut swept): (Option<Instant>, Option<Instant>) = (None, None);
        let mut sweeping: Option<JoinHandle<()>> = None;
        loop {
            // Nobody is left who could tell it, either.
            let is_last = *stopping.borrow() || stopping.has_changed().is_err();
            if let Err(error) = self.count().await {
                tracing::error!(%error, event = "usage_not_counted");
            }
            if let Err(error) = self.index().await {
                tracing::error!(%error, event = "words_not_indexed");
            }
            if is_last {
                // What it leaves, the next sweep finds.
                if let Some(sweeping) = sweeping {
                    sweeping.abort();
                }
                return;
            }
            if looked.is_none_or(|looked| looked.elapsed() >= LOOKS_EVERY) {
                looked = Some(Instant::now());
                if let Err(error) = self.delete_old().await {
                    tracing::error!(%error, event = "old_sessions_not_deleted");
                }
                if let Err(error) = self.forget_answers().await {
                    tracing::error!(%error, event = "old_answers_not_forgotten");
                }
            }
            let is_sweeping = sweeping.as_ref().is_some_and(|sweeping| !sweeping.is_finished());
            if !is_sweeping && swept.is_none_or(|swept| swept.elapsed() >= SWEEPS_EVERY) {
                swept = Some(Instant::now());
                // It looks at every output, which may take long, and nothing waits for it.
                sweeping = Some(tokio::spawn(self.clone().sweep()));
            }
            tokio::select! {
                () = tokio::time::sleep(COUNTS_EVERY) => {}
                _ = stopping.wait_for(|is_told| *is_told) => {}
            }
        }
    }

    async fn sweep(self: Arc<Self>) {
        let before = self.clock.now().plus_micros(-OUTPUT_NAMED_WITHIN_MICROS);
        if let Err(error) = self.journal.sweep_outputs(before).await {
            tracing::error!(%error, event = "outputs_not_swept");
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

    /// Lets what was said since be found; of how many sessions. Of an import it takes more than one look.
    pub async fn index(&self) -> Result<usize, JournalError> {
        let mut all = 0;
        for _ in 0..INDEXES_AT_ONCE {
            let indexed = self.journal.index_words().await?;
            all += indexed;
            if indexed == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Forgets the answers that are older than answers are kept; how many.
    pub async fn forget_answers(&self) -> Result<usize, JournalError> {
        let (before, mut all) = (self.clock.now().plus_micros(-ANSWERS_KEPT_MICROS), 0);
        loop {
            let forgotten = self.journal.forget_answers(before, PAGE).await?;
            all += forgotten;
            if forgotten < PAGE {
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
                let answer = self.dispatcher.report(&row.session, None, command).await?;
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
