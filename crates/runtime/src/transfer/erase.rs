//! Erases everything that belongs to one owner, without a server: what the lane would do for a deleted session, one after the other.

use crate::{
    commands::dispatch::dispatch,
    ports::{
        Clock, Ids,
        journal::{Archive, JournalError},
        notebook::{NotebookError, Notebooks},
    },
};
use planwright_domain::{
    actor::{Person, PersonId, Standing},
    command::{Issued, LifeCommand, PersonCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{Incarnation, OwnerId, Seq},
    identity::SessionKey,
    next::{Next, next},
    session::life::Life,
    time::Time,
};

/// How many sessions are listed at once.
const PAGE: usize = 256;
/// How many steps one session may take.
const STEPS_MAX: u32 = 200;
/// How long the removal of its pages may take.
const REMOVAL_MICROS: i64 = 600 * 1_000_000;

/// Why not everything could be erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The pages.
    #[error(transparent)]
    Pages(#[from] NotebookError),
    /// A session is not at rest.
    #[error(
        "{0} is still worked on, or an agent may be writing a page in it {1}; try again in half an hour"
    )]
    Busy(SessionKey, String),
    /// Somebody reads the journal.
    #[error(
        "the rows are gone, and something of them is still in the files: another program reads the journal; stop it and try again"
    )]
    NotScrubbed,
}

/// What erases.
pub struct Eraser<'a> {
    /// From where.
    pub journal: &'a dyn Archive,
    /// The pages.
    pub notebooks: &'a dyn Notebooks,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Fresh ids.
    pub ids: &'a dyn Ids,
}

impl Eraser<'_> {
    /// Erases every session of an owner, and what is known everywhere of them; how many sessions. Who asks is named in the audit
    /// log.
    pub async fn erase_owner(&self, owner: OwnerId, by: &PersonId) -> Result<u64, EraseError> {
        let (mut after, mut count) = (None, 0);
        loop {
            let page = self.journal.keys(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            for key in page.into_iter().filter(|key| key.owner == owner) {
                self.erase(&key, by).await?;
                count += 1;
            }
        }
        self.journal.erase_owner(owner, by, self.clock.now()).await?;
        if self.journal.scrub().await? { Ok(count) } else { Err(EraseError::NotScrubbed) }
    }

    async fn erase(&self, key: &SessionKey, by: &PersonId) -> Result<(), EraseError> {
        let mut why = String::new();
        for _ in 0..STEPS_MAX {
            let (session, now) = (self.journal.session(key).await?, self.clock.now());
            if session.version == Seq(0) || self.journal.erase(key, now).await? {
                return Ok(());
            }
            let command = if session.life == Life::Deleted {
                self.due(key, now, next(&session)).await?
            } else {
                let person = Person::new(key.owner, &by.0, "cli erase", Standing::Decides);
                let delete = PersonCommand::Life(LifeCommand::Delete);
                Some(SessionCommand::Person(person, delete))
            };
            let Some(command) = command else { break };
            let issued = Issued::new(self.ids.command(), now, command);
            let answer = dispatch(self.journal, key, issued).await?;
            if answer.is_refused() {
                why = format!("{answer:?}");
            }
        }
        Err(EraseError::Busy(key.clone(), why))
    }

    /// What a deleted session still needs: nobody else works on it.
    async fn due(
        &self,
        key: &SessionKey,
        now: Time,
        due: Next,
    ) -> Result<Option<SessionCommand>, EraseError> {
        let command = match due {
            Next::RemovePages { attempt, .. } => {
                let deadline = now.plus_micros(REMOVAL_MICROS);
                let incarnation = Incarnation(self.ids.ordered());
                let bracket = Bracket { incarnation, start_by: deadline, deadline };
                SystemCommand::StartRemoval { attempt, bracket }
            }
            Next::AwaitRemoval { attempt, .. } => {
                let mut pages = 0;
                for name in self.notebooks.list(key).await? {
                    self.notebooks.remove(key, &name).await?;
                    pages += 1;
                }
                SystemCommand::RecordPagesRemoved { attempt, pages }
            }
            Next::AwaitCalls(calls) => match calls.first() {
                Some(call) => SystemCommand::OrphanCall { attempt: call.attempt },
                None => return Ok(None),
            },
            Next::AwaitModel { attempt, .. } => SystemCommand::OrphanModelCall { attempt },
            Next::Nothing
            | Next::WaitForPerson(_)
            | Next::StartTurn(_)
            | Next::CallModel { .. }
            | Next::AwaitLimit { .. }
            | Next::UsePlanTool { .. }
            | Next::AwaitDecision { .. }
            | Next::AwaitSlot { .. }
            | Next::AwaitPermission { .. }
            | Next::Erase { .. }
            | Next::RunCalls(_) => return Ok(None),
        };
        Ok(Some(SessionCommand::System(command)))
    }
}
