//! A journal and a toolbox whose callers stop at named points.

use std::sync::Arc;

use async_trait::async_trait;
use planwright_domain::{
    digest::Digest,
    effect::Aim,
    id::{CommandId, Seq},
    identity::{ChannelType, ConversationKey, SessionIdentity, TransportChatId},
    session::Session,
    time::Time,
};
use planwright_runtime::ports::{
    journal::{Answer, BackedOff, Decide, DueRow, Journal, JournalError, Recorded, SessionRow},
    toolbox::{Ran, Tool, ToolRun, Toolbox},
};

use super::turnstile::{Point, Turnstile};

/// One actor's way through the turnstile.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) turnstile: Arc<Turnstile>,
    pub(crate) actor: usize,
}

impl Gate {
    fn reach(&self, point: Point) {
        self.turnstile.reach(self.actor, point);
    }
}

/// What one actor uses, with its stops.
pub(crate) struct Gated<T: ?Sized> {
    pub(crate) inner: Arc<T>,
    pub(crate) gate: Gate,
}

#[async_trait]
impl Journal for Gated<dyn Journal> {
    async fn append(
        &self,
        identity: &SessionIdentity,
        command: CommandId,
        at: Time,
        decide: Decide,
    ) -> Result<Answer, JournalError> {
        self.gate.reach(Point::Asks);
        let gate = self.gate.clone();
        let decide: Decide = Box::new(move |session| {
            let decided = decide(session);
            gate.reach(Point::Decided);
            decided
        });
        let answer = self.inner.append(identity, command, at, decide).await;
        self.gate.reach(Point::Stored);
        answer
    }

    async fn session(&self, identity: &SessionIdentity) -> Result<Arc<Session>, JournalError> {
        self.gate.reach(Point::Reads);
        self.inner.session(identity).await
    }

    async fn events(
        &self,
        identity: &SessionIdentity,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        self.inner.events(identity, after, limit).await
    }

    async fn keep_output(
        &self,
        identity: &SessionIdentity,
        text: &str,
    ) -> Result<Digest, JournalError> {
        self.inner.keep_output(identity, text).await
    }

    async fn output(
        &self,
        identity: &SessionIdentity,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        self.inner.output(identity, digest).await
    }

    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.inner.due(by, limit).await
    }

    async fn back_off(
        &self,
        identity: &SessionIdentity,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        self.inner.back_off(identity, now, why).await
    }

    async fn unpark(&self, identity: &SessionIdentity, now: Time) -> Result<(), JournalError> {
        self.inner.unpark(identity, now).await
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError> {
        self.inner.sessions(limit).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<SessionRow>, JournalError> {
        self.inner.waiting(limit).await
    }

    async fn pointer(
        &self,
        channel: ChannelType,
        chat: &TransportChatId,
    ) -> Result<Option<ConversationKey>, JournalError> {
        self.inner.pointer(channel, chat).await
    }

    async fn move_pointer(
        &self,
        channel: ChannelType,
        chat: &TransportChatId,
        key: &ConversationKey,
    ) -> Result<(), JournalError> {
        self.inner.move_pointer(channel, chat, key).await
    }
}

#[async_trait]
impl Toolbox for Gated<dyn Toolbox> {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.inner.tools()
    }

    fn aim(&self, tool: &str, arguments: &str) -> Aim {
        self.inner.aim(tool, arguments)
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        self.inner.check(tool, arguments)
    }

    async fn run(&self, run: ToolRun) -> Ran {
        self.gate.reach(Point::Acts);
        let ran = self.inner.run(run).await;
        self.gate.reach(Point::Acted);
        ran
    }
}
