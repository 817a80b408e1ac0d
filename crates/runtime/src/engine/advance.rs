//! Performs the next due effect of a session, as `next` names it.
//!
//! Whoever drives a lane calls [`Engine::advance`], one at a time per session. It loads, asks
//! `next`, commits the start, acts, commits the result, and returns. It may die anywhere.

use std::{sync::PoisonError, time::Duration};

use planwright_domain::{
    command::{Claim, Given, ModelCommand, SessionCommand, SystemCommand},
    effect::Bracket,
    id::{CommandId, Incarnation, OwnerId, ScheduleId, Seq},
    identity::SessionKey,
    next::{Due, Next, StartedCall, next},
    notebook::tool::{Bound, bound},
    policy::Policy,
    quota::Limit,
    session::Session,
    time::Time,
    turn::{RequestedCall, Turn, decide::LOOK_AGAIN_MICROS},
};
use uuid::Uuid;

use crate::{
    commands::dispatch::Origin,
    engine::Engine,
    engine::attempt::{Attempt, OpenAttempt, Outcome},
    engine::calendar,
    failpoint,
    ids::report_id,
    ports::{
        journal::{Answer, JournalError},
        toolbox::root_not_configured,
    },
    revisions::of_plan,
};

/// What is traced at the last look at the clock before an effect: how long after it the effect begins can be measured.
pub const LAST_CHECK: &str = "last_check";

/// Why an effect did not begin that had to begin sooner.
pub(crate) const NOT_IN_TIME: &str =
    "it could not begin in time; the machine is overloaded or was asleep";
/// How much of an error is recorded with an attempt that did not begin.
pub(crate) const WHY_CHARS_MAX: usize = 500;

/// How often what is left of an erased session is looked for, and how long after the last time.
const SCRUBS_MAX: u32 = 40;
const SCRUB_AGAIN: Duration = Duration::from_millis(50);

/// After so long a turn that waits for others to end looks again by itself: one may have ended on another node.
const LOOKS_AGAIN_MS: i64 = 5_000;
/// So much longer for each other session that waits here.
const LOOKS_AGAIN_MORE_MS: i64 = 10;

/// What came of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advanced {
    /// When the next one is due.
    pub due: Due,
    /// Whether it reached outside: the model, or a tool.
    pub acted: bool,
    /// The version of the session.
    pub version: Seq,
    /// Why an attempt was lost that is due again: the lane backs off, and parks the session in the end.
    pub lost: Option<String>,
    /// Whether another driver began what is under way now. It may be one that the lane has given up, and the last that looks.
    pub begun_by_another: bool,
}

impl Advanced {
    fn at(due: Due, version: Seq) -> Self {
        Self { due, acted: false, version, lost: None, begun_by_another: false }
    }
}

/// Who drives a session: one life of a lane, woken just now or going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Knows that no other driver is left: what an earlier one left open is nobody's.
    TakesOver(Incarnation),
    /// Goes on from one effect to the next: what it finds open and did not begin, another driver did, mostly a later one.
    GoesOn(Incarnation),
}

/// Whether a driver of another life began what is waited for.
fn is_begun_by_another(next: &Next, life: Incarnation) -> bool {
    match next {
        Next::AwaitModel { bracket, .. } | Next::AwaitRemoval { bracket, .. } => {
            bracket.incarnation != life
        }
        Next::AwaitCalls(calls) => calls.iter().any(|call| call.bracket.incarnation != life),
        Next::Nothing
        | Next::WaitForPerson(_)
        | Next::StartTurn(_)
        | Next::CallModel { .. }
        | Next::AwaitLimit { .. }
        | Next::UsePlanTool { .. }
        | Next::AwaitDecision { .. }
        | Next::AwaitSlot { .. }
        | Next::AwaitPermission { .. }
        | Next::RemovePages { .. }
        | Next::Erase { .. }
        | Next::RunCalls(_) => false,
    }
}

impl Driver {
    /// Its life, which the effects carry that it begins.
    #[must_use]
    pub fn life(self) -> Incarnation {
        match self {
            Self::TakesOver(life) | Self::GoesOn(life) => life,
        }
    }
}

/// What came of beginning a turn.
pub(crate) enum TurnStart {
    /// Others of its owner leave it no room.
    Held,
    /// Somebody else began it, its cause was withdrawn, or something holds its first model call back.
    NotStarted,
    /// The model was to be asked; why it was not, if that is so.
    Asked { not_begun: Option<String> },
}

/// Whether a session works in a directory that is not configured here.
fn is_elsewhere(session: &Session, policy: &Policy) -> bool {
    let is_known = |root| policy.roots.is_empty() || policy.roots.contains(root);
    session.root.as_ref().is_some_and(|root| !is_known(root))
}

impl Engine {
    /// Does the one thing that should happen now, and says when the next one is due.
    pub async fn advance(&self, identity: &SessionKey) -> Result<Advanced, JournalError> {
        self.advance_as(identity, Driver::TakesOver(self.incarnation)).await
    }

    /// The same for a lane that wakes one node of many: each wake-up is a life of its own.
    #[expect(clippy::too_many_lines, reason = "one arm for each thing that may be next")]
    pub async fn advance_as(
        &self,
        identity: &SessionKey,
        driver: Driver,
    ) -> Result<Advanced, JournalError> {
        let life = driver.life();
        let mut place = self.places.take(identity.owner).await;
        let session = self.journal.session(identity).await?;
        let (mut acted, mut lost, version) = (false, None, session.version);
        let due = next(&session);
        let begun_by_another = is_begun_by_another(&due, life);
        // Also one that begins now: it may have ended when this returns.
        let had_turn = session.turn.is_some() || matches!(due, Next::StartTurn(_));
        match due {
            Next::Nothing | Next::WaitForPerson(_) => {
                return Ok(Advanced::at(Due::Never, version));
            }
            Next::StartTurn(queued) => {
                failpoint::hit("advance.before_turn");
                match self.start_turn(identity, life, &session, queued, &mut place).await? {
                    TurnStart::Held => return self.hold_turn(identity, version).await,
                    TurnStart::NotStarted => {}
                    TurnStart::Asked { not_begun } => (acted, lost) = (true, not_begun),
                }
            }
            Next::UsePlanTool { turn, call } => {
                failpoint::hit("advance.before_plan_tool");
                let profiles = self.requests.profiles.keys().cloned().collect();
                let turn_open = session.turn.as_ref();
                let context = turn_open.and_then(|turn| session.auto.context(turn));
                let calls = turn_open.map(Turn::calls).unwrap_or_default();
                let pending = calls.iter().find(|pending| pending.requested.id == call);
                let requested = pending.map(|pending| &pending.requested);
                let memory = self.memories.look_up(&session, context, requested).await?;
                let markdown = self.planned(&session, requested).await?;
                let given = Given { fresh: self.ids.ordered().into(), profiles, memory, markdown };
                let command = ModelCommand::UsePlanTool { call, given };
                let id = report_id(call.0, "plan-tool", 0, 0);
                let command = SessionCommand::Model(turn, command);
                self.dispatcher.dispatch(identity, Some(id), command, Origin::default()).await?;
            }
            Next::CallModel { not_before: Some(time), .. } if time > self.clock.now() => {
                return Ok(Advanced::at(Due::At(time), version));
            }
            Next::AwaitLimit { until, .. } if until > self.clock.now() => {
                return Ok(Advanced::at(Due::At(until), version));
            }
            Next::CallModel { attempt, .. } | Next::AwaitLimit { attempt, .. } => {
                if let Some(limited) = self.still_limited(identity, &session).await? {
                    return Ok(limited);
                }
                acted = true;
                lost = self.call_model(identity, life, attempt, &mut place).await?;
            }
            Next::AwaitDecision { at } if at > self.clock.now() => {
                return Ok(Advanced::at(Due::At(at), version));
            }
            Next::AwaitDecision { .. } => {
                self.dispatcher.report(identity, None, SystemCommand::RingDecision).await?;
            }
            Next::AwaitSlot { at, .. } if at > self.clock.now() => {
                return Ok(Advanced::at(Due::At(at), version));
            }
            Next::AwaitSlot { schedule, .. } => {
                failpoint::hit("advance.before_claim");
                self.claim(identity, &session, schedule).await?;
            }
            Next::AwaitPermission { until, .. } if until > self.clock.now() => {
                return Ok(Advanced::at(Due::At(until), version));
            }
            Next::AwaitPermission { call, .. } => {
                let id = report_id(call.0, "expire-ask", 0, 0);
                self.dispatcher
                    .report(identity, Some(id), SystemCommand::ExpireAsk { call })
                    .await?;
            }
            Next::AwaitModel { attempt, bracket } => {
                if !self.is_orphan(driver, &Attempt::Model(attempt), &bracket) {
                    let waits = Advanced::at(Due::At(bracket.deadline), version);
                    return Ok(Advanced { begun_by_another, ..waits });
                }
                let id = report_id(attempt.turn.0, "orphan-model", attempt.round, attempt.number);
                let command = SystemCommand::OrphanModelCall { attempt };
                self.dispatcher.report(identity, Some(id), command).await?;
                lost = Some("nobody recorded what came of a call of the model".into());
            }
            Next::RemovePages { not_before: Some(time), .. } if time > self.clock.now() => {
                return Ok(Advanced::at(Due::At(time), version));
            }
            Next::RemovePages { attempt, .. } => {
                acted = true;
                self.remove_pages(identity, life, attempt).await?;
            }
            Next::Erase { not_before: Some(time) } if time > self.clock.now() => {
                return Ok(Advanced::at(Due::At(time), version));
            }
            Next::Erase { .. } => {
                self.erase(identity).await?;
                return Ok(Advanced::at(Due::Never, version));
            }
            Next::AwaitRemoval { attempt, bracket } => {
                let of = Attempt::Removal(identity.clone(), attempt);
                if !self.is_orphan(driver, &of, &bracket) {
                    let waits = Advanced::at(Due::At(bracket.deadline), version);
                    return Ok(Advanced { begun_by_another, ..waits });
                }
                // It has a back-off of its own, and is never parked: the pages must go.
                let command = SystemCommand::OrphanRemoval { attempt };
                self.dispatcher.report(identity, None, command).await?;
            }
            Next::RunCalls(_) if is_elsewhere(&session, &self.policy) => {
                // Nothing began. Whoever has the directory goes on; here the session is parked with this reason in the end.
                let why = root_not_configured(session.root.as_ref(), &self.policy.roots);
                return Ok(Advanced { lost: Some(why), ..Advanced::at(Due::Now, version) });
            }
            Next::RunCalls(calls) => {
                acted = true;
                lost = self.run_calls(identity, life, &session, &calls).await?;
            }
            Next::AwaitCalls(calls) => match self.orphan_all(identity, driver, &calls).await? {
                Some(deadline) => {
                    return Ok(Advanced {
                        begun_by_another,
                        ..Advanced::at(Due::At(deadline), version)
                    });
                }
                None => lost = Some("nobody recorded what came of a tool call".into()),
            },
        }
        let after = self.journal.session(identity).await?;
        if had_turn && !matches!(&after.turn, Some(turn) if turn.paused.is_none()) {
            self.wake_held(identity.owner);
        }
        let next = next(&after);
        let (due, begun_by_another) = (next.due(), is_begun_by_another(&next, life));
        // Only what is due again can be lost again.
        let lost = lost.filter(|_| due == Due::Now);
        Ok(Advanced { due, acted, version: after.version, lost, begun_by_another })
    }

    /// A turn that was paused waits on, without another word, while its limit holds or others of its owner leave it no room.
    async fn still_limited(
        &self,
        identity: &SessionKey,
        session: &Session,
    ) -> Result<Option<Advanced>, JournalError> {
        let paused = session.turn.as_ref().and_then(|turn| turn.paused.as_ref());
        let Some(reached) = paused else { return Ok(None) };
        let quotas = self.dispatcher.quotas();
        let (_, stands) = quotas.now(identity.owner).await?;
        let now = self.clock.now();
        let version = session.version;
        if stands.reached(&[Limit::Turns], now).is_some() {
            return self.hold_turn(identity, version).await.map(Some);
        }
        if stands.reached(&[reached.limit], now).is_none() {
            return Ok(None);
        }
        let until = now.plus_micros(LOOK_AGAIN_MICROS);
        self.journal.postpone(identity, version, until).await?;
        Ok(Some(Advanced::at(Due::At(until), version)))
    }

    /// The turn waits: its owner has as many under way as they may.
    async fn hold_turn(
        &self,
        identity: &SessionKey,
        version: Seq,
    ) -> Result<Advanced, JournalError> {
        let many = self.held.lock().unwrap_or_else(PoisonError::into_inner).add(identity, version);
        let more = LOOKS_AGAIN_MORE_MS * i64::try_from(many).unwrap_or(i64::MAX / 1_000);
        let until = self.in_ms(LOOKS_AGAIN_MS + more);
        self.journal.postpone(identity, version, until).await?;
        Ok(Advanced::at(Due::At(until), version))
    }

    /// Whether a turn of this session waits for room.
    pub(crate) fn is_held(&self, identity: &SessionKey) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).has(identity)
    }

    /// The turn that waited has begun.
    pub(crate) fn no_longer_held(&self, identity: &SessionKey) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(identity);
    }

    /// A turn of this owner has ended: the one that has waited longest looks again.
    fn wake_held(&self, owner: OwnerId) {
        let next = self.held.lock().unwrap_or_else(PoisonError::into_inner).next(owner);
        if let Some((identity, version)) = next {
            self.dispatcher.wake(&identity, version);
        }
    }

    /// The document of the plan, where a call changes a section of the page that the plan stands in for.
    async fn planned(
        &self,
        session: &Session,
        requested: Option<&RequestedCall>,
    ) -> Result<Option<String>, JournalError> {
        let updates = requested.and_then(bound);
        if !matches!(updates, Some(Bound::Update { .. })) {
            return Ok(None);
        }
        let Some((plan, head)) =
            session.plan().and_then(|plan| Some((plan, plan.current.as_ref()?)))
        else {
            return Ok(None);
        };
        let found = of_plan(&*self.journal, &session.key(), plan, head.number).await?;
        Ok(found.map(|(revision, _)| revision.markdown))
    }

    /// Claims the slot of a schedule that is due; those before it were missed.
    async fn claim(
        &self,
        identity: &SessionKey,
        session: &Session,
        schedule: ScheduleId,
    ) -> Result<(), JournalError> {
        let Some(known) = session.auto.schedules.get(&schedule) else { return Ok(()) };
        let Some(first) = known.next else { return Ok(()) };
        // One whose time has come, but not yet its beginning, is not due.
        let come = self.clock.now().plus_micros(-known.jitter_micros);
        let due = calendar::due(&known.rhythm, first, come);
        let (missed, slot, next) = due.map_err(|why| JournalError::Engine(why.into()))?;
        let until = slot.plus_micros(self.settings.slot_window_ms * 1_000);
        let made = |what: &str| Uuid::new_v5(&schedule.0, format!("{what}:{}", slot.0).as_bytes());
        let (task, run) = (made("task").into(), made("run").into());
        let claim = Claim { schedule, missed, slot, next, until, task, run };
        let id = made("claim").into();
        self.dispatcher.report(identity, Some(id), SystemCommand::ClaimSlot(claim)).await.map(drop)
    }

    /// An effect is orphaned when its driver is gone, its deadline has passed, or nobody in this process works on it.
    fn is_orphan(&self, driver: Driver, attempt: &Attempt, bracket: &Bracket) -> bool {
        if bracket.deadline <= self.clock.now() {
            return true;
        }
        let is_dropped = || !self.attempts.is_open(attempt);
        match driver {
            Driver::TakesOver(life) if bracket.incarnation != life => true,
            Driver::TakesOver(life) => life == self.incarnation && is_dropped(),
            Driver::GoesOn(life) => bracket.incarnation == life && is_dropped(),
        }
    }

    /// Records which of these calls are orphans; if none is, gives the first deadline.
    async fn orphan_all(
        &self,
        identity: &SessionKey,
        driver: Driver,
        calls: &[StartedCall],
    ) -> Result<Option<Time>, JournalError> {
        let (orphans, rest): (Vec<_>, Vec<_>) =
            calls.iter().partition(|StartedCall { attempt, bracket }| {
                self.is_orphan(driver, &Attempt::Call(*attempt), bracket)
            });
        for StartedCall { attempt, .. } in &orphans {
            self.orphan_call(identity, *attempt).await?;
        }
        let first = rest.iter().map(|call| call.bracket.deadline).min();
        Ok(first.filter(|_| orphans.is_empty()))
    }

    /// Removes the pages of a deleted session: one attempt, with its start and its outcome recorded.
    async fn remove_pages(
        &self,
        identity: &SessionKey,
        life: Incarnation,
        attempt: u32,
    ) -> Result<(), JournalError> {
        let open = self.attempts.open(Attempt::Removal(identity.clone(), attempt));
        let bracket = self.bracket(life, self.settings.tool_deadline_ms);
        let start = SystemCommand::StartRemoval { attempt, bracket };
        let Some(open) = self.start(identity, vec![open], start).await?.pop() else {
            return Ok(());
        };
        let limit = Duration::from_millis(self.settings.tool_deadline_ms.cast_unsigned());
        let (command, outcome) = match self.tools.remove_pages(identity, limit).await {
            Ok(pages) => (SystemCommand::RecordPagesRemoved { attempt, pages }, Outcome::Finished),
            Err(error) => {
                let why = error.to_string();
                tracing::warn!(session_identity = %identity, why, event = "pages_not_removed");
                (SystemCommand::RecordRemovalFailure { attempt, why }, Outcome::Failed)
            }
        };
        self.end(identity, open, self.ids.command(), command, outcome).await.map(drop)
    }

    /// Erases a deleted session. Repeated after a crash: before the commit it is still due, and after it only what is left in
    /// files is, which the next start and the next erasure look for.
    async fn erase(&self, identity: &SessionKey) -> Result<(), JournalError> {
        if !self.journal.erase(identity, self.clock.now()).await? {
            return Ok(());
        }
        self.histories.lock().unwrap_or_else(PoisonError::into_inner).forget(identity);
        tracing::info!(session_identity = %identity, event = "session_erased");
        failpoint::hit("erase.before_scrub");
        for _ in 0..SCRUBS_MAX {
            if self.journal.scrub().await? {
                return Ok(());
            }
            tokio::time::sleep(SCRUB_AGAIN).await;
        }
        tracing::warn!(session_identity = %identity, event = "erased_and_not_scrubbed");
        Ok(())
    }

    /// Commits the start of attempts. Gives those that are under way then: none, if the start was refused.
    pub(crate) async fn start(
        &self,
        identity: &SessionKey,
        attempts: Vec<OpenAttempt>,
        start: SystemCommand,
    ) -> Result<Vec<OpenAttempt>, JournalError> {
        let outcome = match self.dispatcher.report(identity, None, start).await {
            Ok(answer) if !answer.is_refused() => return Ok(attempts),
            // Somebody else started them meanwhile, or they are no longer due.
            Ok(_) => Ok(Outcome::NotStarted),
            Err(error) => Err(error),
        };
        for attempt in attempts {
            attempt.close(*outcome.as_ref().unwrap_or(&Outcome::NotRecorded));
        }
        outcome.map(|_| Vec::new())
    }

    /// Records the outcome of an attempt, and closes it.
    pub(crate) async fn end(
        &self,
        identity: &SessionKey,
        attempt: OpenAttempt,
        id: CommandId,
        command: SystemCommand,
        outcome: Outcome,
    ) -> Result<Answer, JournalError> {
        let recorded = self.dispatcher.record(identity, id, command).await;
        attempt.close(match &recorded {
            Ok(answer) if answer.is_refused() => Outcome::Overtaken,
            Ok(_) => outcome,
            Err(_) => Outcome::NotRecorded,
        });
        recorded
    }

    /// Records that an attempt did not begin, and gives why. If even that cannot be stored, it is an orphan.
    pub(crate) async fn abandon(
        &self,
        identity: &SessionKey,
        attempt: OpenAttempt,
        id: CommandId,
        command: SystemCommand,
        why: String,
    ) -> Option<String> {
        tracing::warn!(session_identity = %identity, why, event = "attempt_abandoned");
        if let Err(error) = self.end(identity, attempt, id, command, Outcome::Abandoned).await {
            tracing::error!(session_identity = %identity, %error, event = "abandoned_not_stored");
        }
        Some(why)
    }

    pub(crate) fn bracket(&self, life: Incarnation, deadline_ms: i64) -> Bracket {
        Bracket {
            incarnation: life,
            start_by: self.in_ms(self.settings.start_by_ms),
            deadline: self.in_ms(deadline_ms),
        }
    }
}
