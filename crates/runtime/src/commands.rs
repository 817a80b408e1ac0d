//! Input: lines and requests of people and foreign agents, up to the one caller of `decide`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use planwright_domain::{
    actor::{Person, PersonId},
    command::{PersonCommand, SessionCommand},
    id::{CommandId, OwnerId},
    identity::SessionKey,
};
use uuid::Uuid;

use crate::{
    engine::{attempt::Attempts, tool_call::ToolRunner},
    memories::Memories,
    ports::{
        Clock, Ids, Ports,
        journal::{Answer, Journal, JournalError},
        signal::{Broadcast, ListChange},
    },
    queries::Queries,
    settings::Settings,
};

pub mod accounts;
pub mod agents;
pub mod dispatch;
pub mod grants;
mod limits;
pub mod line;
mod memory;
pub mod reply;
pub mod routing;
mod work;

use dispatch::{Dispatcher, Origin};

/// A secret of 244 random bits.
#[must_use]
pub fn new_secret(ids: &dyn Ids) -> String {
    format!("{}{}", ids.opaque().simple(), ids.opaque().simple())
}

/// What people and foreign agents ask for: the only way in which a surface changes a session or what belongs to an owner.
pub struct Commands {
    dispatcher: Dispatcher,
    queries: Arc<Queries>,
    journal: Arc<dyn Journal>,
    broadcast: Arc<dyn Broadcast>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    tools: ToolRunner,
    memories: Memories,
    settings: Settings,
    /// What this process works on.
    attempts: Attempts,
    /// Which owner each person is, as far as it was looked up: that never changes.
    owners: Mutex<BTreeMap<PersonId, OwnerId>>,
}

impl Commands {
    pub(crate) fn new(
        ports: &Ports,
        settings: &Settings,
        queries: Arc<Queries>,
        attempts: Attempts,
    ) -> Self {
        Self {
            dispatcher: Dispatcher::new(ports, settings),
            queries,
            journal: ports.journal.clone(),
            broadcast: ports.broadcast.clone(),
            clock: ports.clock.clone(),
            ids: ports.ids.clone(),
            tools: ToolRunner::new(ports, settings),
            memories: Memories::new(ports, settings),
            settings: settings.clone(),
            attempts,
            owners: Mutex::default(),
        }
    }

    /// Decides a person's command, then tells the lane and the watchers, whether or not the caller waits for it: what a
    /// disconnected client asked for is either not done, or done and told.
    pub async fn dispatch(
        &self,
        identity: &SessionKey,
        id: CommandId,
        person: &Person,
        command: PersonCommand,
    ) -> Result<Answer, JournalError> {
        let command = SessionCommand::Person(person.clone(), command);
        self.dispatcher.dispatch_detached(Origin::default(), identity, id, command).await
    }

    /// Lets a session that was parked after failures go on.
    pub async fn unpark(&self, identity: &SessionKey) -> Result<(), JournalError> {
        self.journal.unpark(identity, self.clock.now()).await?;
        if let Some(row) = self.journal.row(identity).await? {
            self.broadcast.hint(ListChange::read(row));
        }
        Ok(())
    }

    /// An id that nobody had before.
    #[must_use]
    pub fn new_id(&self) -> Uuid {
        self.ids.ordered()
    }

    /// A secret that nobody can guess.
    #[must_use]
    pub fn new_secret(&self) -> String {
        new_secret(&*self.ids)
    }
}
