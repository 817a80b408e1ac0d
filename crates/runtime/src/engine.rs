//! Execution: performs the effects that `next` names, and records what came of them.

use std::sync::{Arc, Mutex};

use planwright_domain::{
    command::SessionCommand,
    id::{CommandId, Incarnation},
    identity::SessionKey,
    policy::Policy,
    time::Time,
};

use crate::{
    commands::dispatch::{Dispatcher, Origin},
    memories::Memories,
    model_health::ModelHealth,
    ports::{
        Clock, Ids, Ports,
        journal::{Answer, BackedOff, DueRow, Journal, JournalError, Reserved},
        model::{Model, Roles},
        signal::{Broadcast, ListChange},
    },
    settings::Settings,
};

pub mod advance;
pub mod attempt;
pub mod calendar;
pub(crate) mod context_window;
pub mod conversation;
mod held;
pub(crate) mod histories;
pub(crate) mod message_digest;
pub(crate) mod model_call;
pub(crate) mod notebook;
pub(crate) mod output;
mod places;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod run_calls;
pub(crate) mod tool_call;

use attempt::{Attempt, Attempts};
use held::Held;
use histories::Histories;
use places::Places;
use request::RequestBuilder;
use tool_call::ToolRunner;

/// Acts for sessions that are due. A lane drives it, one call at a time for each session.
pub struct Engine {
    dispatcher: Dispatcher,
    journal: Arc<dyn Journal>,
    broadcast: Arc<dyn Broadcast>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    policy: Arc<Policy>,
    model: Arc<dyn Model>,
    roles: Roles,
    model_health: ModelHealth,
    requests: RequestBuilder,
    tools: ToolRunner,
    memories: Memories,
    settings: Settings,
    /// This life of this process.
    incarnation: Incarnation,
    /// Conversations as the model is given them, kept warm.
    histories: Mutex<Histories>,
    /// What this process works on.
    attempts: Attempts,
    /// The sessions whose turns wait until others of their owner end.
    held: Mutex<Held>,
    /// Who is acted for now.
    places: Places,
}

impl Engine {
    pub(crate) fn new(
        ports: &Ports,
        settings: &Settings,
        attempts: Attempts,
        model_health: ModelHealth,
    ) -> Self {
        Self {
            dispatcher: Dispatcher::new(ports, settings),
            journal: ports.journal.clone(),
            broadcast: ports.broadcast.clone(),
            clock: ports.clock.clone(),
            ids: ports.ids.clone(),
            policy: ports.policy.clone(),
            model: ports.model.clone(),
            roles: ports.roles.clone(),
            model_health,
            requests: RequestBuilder::new(ports, settings),
            tools: ToolRunner::new(ports, settings),
            memories: Memories::new(ports, settings),
            settings: settings.clone(),
            incarnation: Incarnation(ports.ids.ordered()),
            histories: Mutex::default(),
            attempts,
            held: Mutex::default(),
            places: Places::default(),
        }
    }

    /// The attempts that were dropped open since this was last asked: there are none, unless a task was cut off.
    #[must_use]
    pub fn take_dropped_attempts(&self) -> Vec<Attempt> {
        self.attempts.take_dropped()
    }

    /// Now, as everything that is recorded knows it.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// This life of this process.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Decides any command, also what only the runtime reports. For lanes and for tests that play the runtime's part.
    pub async fn dispatch(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        self.dispatcher.dispatch_detached(Origin::default(), identity, id, command).await
    }

    /// A life of its own, for a lane whose deliveries are one each.
    #[must_use]
    pub fn new_life(&self) -> Incarnation {
        Incarnation(self.ids.ordered())
    }

    /// The sessions that are due by this time, or at all; the first ones first.
    pub async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.journal.due(by, limit).await
    }

    /// Takes up sessions that were due by then; nobody else does for so long.
    pub async fn take_due(
        &self,
        by: Time,
        for_micros: i64,
        limit: usize,
    ) -> Result<Vec<DueRow>, JournalError> {
        let now = self.clock.now();
        let reserved =
            Reserved { by: self.incarnation, from: now, until: now.plus_micros(for_micros) };
        let rows = self.journal.take_due(by, reserved, limit).await?;
        metrics::counter!("lane.due.taken.count").increment(rows.len() as u64);
        Ok(rows)
    }

    /// Puts off a session whose step failed; after the last of a row of failures it is parked, and nothing is due.
    pub async fn back_off(
        &self,
        identity: &SessionKey,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        let now = self.clock.now();
        let backed_off = self.journal.back_off(identity, now, why).await?;
        if backed_off == BackedOff::Parked
            && let Some(row) = self.journal.row(identity).await?
        {
            self.broadcast.hint(ListChange::read(row));
        }
        Ok(backed_off)
    }

    /// The longest that one effect may take, in microseconds.
    #[must_use]
    pub fn longest_effect_micros(&self) -> i64 {
        let longest = self.settings.model_deadline_ms.max(self.settings.tool_deadline_ms);
        longest.saturating_mul(1_000)
    }

    fn in_ms(&self, milliseconds: i64) -> Time {
        self.clock.now().plus_micros(milliseconds * 1_000)
    }
}
