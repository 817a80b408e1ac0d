//! Takes up how far the decisions of every session have come, as numbered entries of the audit log, and hands its signed heads
//! over at intervals.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::{
    digest::Digest,
    id::Seq,
    installation::{self, Installation, InstallationCommand},
    time::Time,
};
use tokio::sync::watch;

use super::head::Statement;
use crate::ports::{
    Clock,
    audit::{HeadKeeper, Signer},
    journal::{Journal, JournalError},
};

/// How often it looks for decisions.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// How many heads are taken up in one transaction.
const PAGE: usize = 256;

/// One of it works on a journal at a time, whoever holds it.
pub struct Sequencer {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    signer: Arc<dyn Signer>,
    keeper: Arc<dyn HeadKeeper>,
    /// How long a head may wait to be handed over.
    every: Duration,
    handed: Mutex<Handed>,
}

/// What was handed over last, and when.
#[derive(Default)]
struct Handed {
    entry: Seq,
    at: Option<Time>,
}

impl Sequencer {
    /// A sequencer of this journal, which hands heads over to this keeper.
    #[must_use]
    pub fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        signer: Arc<dyn Signer>,
        keeper: Arc<dyn HeadKeeper>,
        every: Duration,
    ) -> Self {
        Self { journal, clock, signer, keeper, every, handed: Mutex::default() }
    }

    /// Records with which settings and which key the program begins, if they are others than before.
    pub async fn begin(
        &self,
        settings: impl IntoIterator<Item = (String, Digest)>,
    ) -> Result<(), JournalError> {
        let settings = settings.into_iter().collect();
        let begin = InstallationCommand::Begin { settings, key: self.signer.key() };
        let decide = move |before: &Installation| installation::decide(before, &begin);
        let begun = self.journal.append_installation(self.clock.now(), Box::new(decide)).await?;
        begun.map(drop).map_err(|refusal| JournalError::Engine(refusal.into()))
    }

    /// Takes up all that is there; how many heads.
    pub async fn take_up(&self) -> Result<usize, JournalError> {
        let (mut after, mut count) = (0, 0);
        loop {
            let taken = self.journal.take_heads(self.clock.now(), after, PAGE).await?;
            count += taken.count;
            match taken.last {
                Some(last) => after = last,
                None => return Ok(count),
            }
        }
    }

    /// Hands the head over, if there are entries that it does not cover yet.
    pub async fn hand_over(&self) -> Result<(), HandoverError> {
        let installation = self.journal.installation().await?;
        let (entry, head, at) = (installation.version, installation.head, self.clock.now());
        if entry <= self.handed.lock().unwrap_or_else(PoisonError::into_inner).entry {
            return Ok(());
        }
        let line = Statement::Head { entry, head, at }.signed_by(&*self.signer).text();
        self.keeper.hand_over(&line).await.map_err(HandoverError::Keeper)?;
        *self.handed.lock().unwrap_or_else(PoisonError::into_inner) =
            Handed { entry, at: Some(at) };
        Ok(())
    }

    /// Works until it is told to stop, and once more then.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        loop {
            // Nobody is left who could tell it, either.
            let is_last = *stopping.borrow() || stopping.has_changed().is_err();
            self.work_once(is_last).await;
            if is_last {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOKS_EVERY) => {}
                _ = stopping.wait_for(|is_told| *is_told) => {}
            }
        }
    }

    /// Takes up what is there, and hands the head over if that is due or this is the last time.
    pub async fn work_once(&self, is_last: bool) {
        if let Err(error) = self.take_up().await {
            tracing::error!(%error, event = "audit_not_taken_up");
        }
        let waits_since = self.handed.lock().unwrap_or_else(PoisonError::into_inner).at;
        let every = i64::try_from(self.every.as_micros()).unwrap_or(i64::MAX);
        let is_due = waits_since.is_none_or(|at| self.clock.now() >= at.plus_micros(every));
        if !(is_due || is_last) {
            return;
        }
        if let Err(error) = self.hand_over().await {
            tracing::error!(%error, event = "audit_head_not_handed_over");
        }
    }
}

/// Why a head was not handed over.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Whoever keeps them did not take it.
    #[error("{0}")]
    Keeper(String),
}
