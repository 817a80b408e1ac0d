//! A journal and a toolbox whose callers stop at named points.

use std::sync::Arc;

use async_trait::async_trait;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    effect::Aim,
    id::{CommandId, MemoryId, OwnerId, Seq},
    identity::{ChannelType, Root, SessionKey},
    installation::{AccountRefusal, Installation},
    memory::{Chain, Item, Question, rank::Candidates},
    owner::Owner,
    quota::{Day, Used},
    refusal::Refusal,
    session::{Session, life::Life},
    time::Time,
};
use planwright_runtime::ports::{
    journal::{
        Answer, BackedOff, Decide, DecideInstallation, DecideOwner, DecisionPage, DecisionQuery,
        DueRow, InstallationRecorded, Journal, JournalError, KeptView, Recorded, Reserved,
        SessionPage, SessionQuery, SessionRow, Since, TakenHeads,
    },
    memory::{Memory, Store},
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
impl Journal for Gated<dyn Store> {
    async fn append(
        &self,
        identity: &SessionKey,
        command: Option<CommandId>,
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

    async fn session(&self, identity: &SessionKey) -> Result<Arc<Session>, JournalError> {
        self.gate.reach(Point::Reads);
        self.inner.session(identity).await
    }

    async fn events(
        &self,
        identity: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        self.inner.events(identity, after, limit).await
    }

    async fn index_words(&self) -> Result<usize, JournalError> {
        self.inner.index_words().await
    }

    async fn sweep_outputs(&self, before: Time) -> Result<usize, JournalError> {
        self.inner.sweep_outputs(before).await
    }

    async fn keep_view(&self, identity: &SessionKey, view: KeptView) -> Result<(), JournalError> {
        self.inner.keep_view(identity, view).await
    }

    async fn kept_view(&self, identity: &SessionKey) -> Result<Option<KeptView>, JournalError> {
        self.inner.kept_view(identity).await
    }

    async fn keep_output(&self, identity: &SessionKey, text: &str) -> Result<Digest, JournalError> {
        self.inner.keep_output(identity, text).await
    }

    async fn output(
        &self,
        identity: &SessionKey,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        self.inner.output(identity, digest).await
    }

    async fn due(&self, by: Option<Time>, limit: usize) -> Result<Vec<DueRow>, JournalError> {
        self.inner.due(by, limit).await
    }

    async fn take_due(
        &self,
        by: Time,
        reserved: Reserved,
        limit: usize,
    ) -> Result<Vec<DueRow>, JournalError> {
        self.inner.take_due(by, reserved, limit).await
    }

    async fn back_off(
        &self,
        identity: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        self.inner.back_off(identity, now, why).await
    }

    async fn unpark(&self, identity: &SessionKey, now: Time) -> Result<(), JournalError> {
        self.inner.unpark(identity, now).await
    }

    async fn sessions(
        &self,
        owner: Option<OwnerId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.inner.sessions(owner, limit).await
    }

    async fn row(&self, session: &SessionKey) -> Result<Option<SessionRow>, JournalError> {
        self.inner.row(session).await
    }

    async fn session_page(&self, query: &SessionQuery) -> Result<SessionPage, JournalError> {
        self.inner.session_page(query).await
    }

    async fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError> {
        self.inner.forget_answers(before, limit).await
    }

    async fn decisions(&self, query: &DecisionQuery) -> Result<DecisionPage, JournalError> {
        self.inner.decisions(query).await
    }

    async fn active(
        &self,
        owner: Option<OwnerId>,
        since: Time,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.inner.active(owner, since, after, limit).await
    }

    async fn events_since(
        &self,
        identity: &SessionKey,
        since: Since,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        self.inner.events_since(identity, since, after, limit).await
    }

    async fn planning(&self) -> Result<u64, JournalError> {
        self.inner.planning().await
    }

    async fn newest(
        &self,
        owner: OwnerId,
        channel: ChannelType,
    ) -> Result<Option<SessionKey>, JournalError> {
        self.inner.newest(owner, channel).await
    }

    async fn owner(&self, owner: OwnerId) -> Result<Owner, JournalError> {
        self.gate.reach(Point::Asks);
        self.inner.owner(owner).await
    }

    async fn owner_of(&self, person: &PersonId, fresh: OwnerId) -> Result<OwnerId, JournalError> {
        self.inner.owner_of(person, fresh).await
    }

    async fn used(&self, owner: OwnerId, day: Day) -> Result<(Owner, Used), JournalError> {
        self.inner.used(owner, day).await
    }

    async fn owner_name(&self, owner: OwnerId) -> Result<Option<PersonId>, JournalError> {
        self.inner.owner_name(owner).await
    }

    async fn count_use(&self, at: Time, limit: usize) -> Result<usize, JournalError> {
        self.inner.count_use(at, limit).await
    }

    async fn postpone(
        &self,
        session: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError> {
        self.inner.postpone(session, version, until).await
    }

    async fn unused_since(
        &self,
        life: Life,
        since: Time,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.inner.unused_since(life, since, limit).await
    }

    async fn append_owner(
        &self,
        owner: OwnerId,
        at: Time,
        decide: DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        self.gate.reach(Point::Asks);
        let answer = self.inner.append_owner(owner, at, decide).await;
        self.gate.reach(Point::Stored);
        answer
    }

    async fn installation(&self) -> Result<Arc<Installation>, JournalError> {
        self.gate.reach(Point::Reads);
        self.inner.installation().await
    }

    async fn append_installation(
        &self,
        at: Time,
        decide: DecideInstallation,
    ) -> Result<Result<Arc<Installation>, AccountRefusal>, JournalError> {
        self.gate.reach(Point::Asks);
        let answer = self.inner.append_installation(at, decide).await;
        self.gate.reach(Point::Stored);
        answer
    }

    async fn audit_log(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<InstallationRecorded>, JournalError> {
        self.gate.reach(Point::Reads);
        self.inner.audit_log(after, limit).await
    }

    async fn erase(&self, session: &SessionKey, at: Time) -> Result<bool, JournalError> {
        self.gate.reach(Point::Asks);
        let erased = self.inner.erase(session, at).await;
        self.gate.reach(Point::Stored);
        erased
    }

    async fn erase_owner(
        &self,
        owner: OwnerId,
        by: &PersonId,
        at: Time,
    ) -> Result<(), JournalError> {
        self.inner.erase_owner(owner, by, at).await
    }

    async fn scrub(&self) -> Result<bool, JournalError> {
        self.inner.scrub().await
    }

    async fn take_heads(
        &self,
        at: Time,
        after: i64,
        limit: usize,
    ) -> Result<TakenHeads, JournalError> {
        self.gate.reach(Point::Asks);
        let taken = self.inner.take_heads(at, after, limit).await;
        self.gate.reach(Point::Stored);
        taken
    }
}

#[async_trait]
impl Memory for Gated<dyn Store> {
    async fn candidates(
        &self,
        chain: &Chain,
        question: &Question,
        limit: usize,
    ) -> Result<Vec<Candidates>, JournalError> {
        self.gate.reach(Point::Asks);
        self.inner.candidates(chain, question, limit).await
    }

    async fn item(&self, chain: &Chain, id: MemoryId) -> Result<Option<Item>, JournalError> {
        self.gate.reach(Point::Asks);
        self.inner.item(chain, id).await
    }

    async fn everything(&self, chain: &Chain, limit: usize) -> Result<Vec<Item>, JournalError> {
        self.inner.everything(chain, limit).await
    }

    async fn elsewhere(&self, chain: &Chain) -> Result<u64, JournalError> {
        self.inner.elsewhere(chain).await
    }
}

#[async_trait]
impl Toolbox for Gated<dyn Toolbox> {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.inner.tools()
    }

    fn aim(&self, root: Option<&Root>, tool: &str, arguments: &str) -> Aim {
        self.inner.aim(root, tool, arguments)
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
