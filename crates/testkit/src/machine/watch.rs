//! The invariants, checked from outside: from commands and events, not from the rules' own code.

use std::collections::{BTreeMap, BTreeSet};

use planwright_domain::{
    actor::{Person, PersonId, Standing},
    command::{Approving, Decision, Permit, PersonCommand, SessionCommand, SystemCommand},
    digest::Digest,
    effect::Effect,
    id::{CallId, PlanId, TurnId},
    next::{Next, next},
    plan::{Ended, Review, block::BlockId, event::PlanEvent},
    session::{Session, SessionEvent},
    turn::{
        CallKind, ToolReply,
        event::{Arrival, TurnEvent},
    },
};

/// What was seen so far.
#[derive(Default)]
pub(super) struct Watcher {
    plans: BTreeMap<PlanId, Option<Ended>>,
    approved: BTreeMap<PlanId, Digest>,
    effects: BTreeMap<CallId, Effect>,
    /// The calls of each turn's answers.
    calls: BTreeMap<TurnId, Vec<CallId>>,
    /// What the model was given for each call.
    answers: BTreeMap<CallId, Given>,
    started: BTreeSet<(CallId, u32)>,
    abandoned: BTreeSet<(CallId, u32)>,
    harmless: BTreeSet<CallId>,
    settled: BTreeSet<(PlanId, u32)>,
    permitted: BTreeMap<CallId, Permit>,
    decided: BTreeSet<(CallId, Digest)>,
    /// What each person saw of the plan, block by block.
    blocks: BTreeMap<PersonId, BTreeSet<BlockId>>,
    plan: Option<PlanId>,
    version: u64,
}

/// What the model was given for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// What its effect gave.
    Result,
    /// Words instead.
    Words,
    /// That its turn ended while it was under way: its result may still come, for the record.
    LeftRunning,
    /// That nobody knows what became of it: a late result or a person may still say.
    Doubt,
}

impl Watcher {
    /// What must hold of a decision, given the state it was made in.
    pub(super) fn before(
        &self,
        session: &Session,
        command: &SessionCommand,
        news: &[SessionEvent],
    ) -> Result<(), String> {
        match command {
            SessionCommand::Person(person, PersonCommand::Decide(decision)) => {
                may_decide(session, person, decision)?;
            }
            SessionCommand::Person(..)
            | SessionCommand::Model(..)
            | SessionCommand::Agent(_)
            | SessionCommand::System(_) => {
                if news.iter().any(decides) {
                    return Err(
                        "model-never-approves: a decision without a person's decision".into()
                    );
                }
            }
        }
        for event in news {
            match event {
                SessionEvent::Turn(TurnEvent::CallStarted { call, step: Some(step), .. }) => {
                    self.replay(session, *call, *step)?;
                }
                SessionEvent::Turn(TurnEvent::CallStarted { call, step: None, .. }) => {
                    self.gate(session, *call)?;
                }
                SessionEvent::Turn(_)
                | SessionEvent::Plan(_)
                | SessionEvent::Auto(_)
                | SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::Logged { .. } => {}
            }
        }
        Ok(())
    }

    /// What must hold afterwards.
    pub(super) fn after(
        &mut self,
        session: &Session,
        command: &SessionCommand,
        news: &[SessionEvent],
    ) -> Result<(), String> {
        self.version += news.len() as u64;
        if session.version.0 != self.version {
            return Err("facts-only-grow: the version is not the number of events".into());
        }
        news.iter().try_for_each(|event| self.count(event))?;
        news.iter().try_for_each(|event| self.pages_show_what_was_seen(session, event))?;
        self.plans_are_single(session)?;
        if let Some(plan) = session.plan()
            && let Some(approval) = plan.status.approval()
            && (self.approved.get(&plan.id) != Some(&approval.revision_digest)
                || plan.current.as_ref().map(|head| head.digest) != Some(approval.revision_digest))
        {
            return Err("approved-as-read: what stands approved is not what was approved".into());
        }
        let ends = match command {
            SessionCommand::Person(_, command) => matches!(
                command,
                PersonCommand::EndPlan(_)
                    | PersonCommand::Reset
                    | PersonCommand::Decide(Decision::Reject { .. })
            ),
            SessionCommand::Model(..) | SessionCommand::Agent(_) | SessionCommand::System(_) => {
                false
            }
        };
        if ends
            && (session.plan().is_some()
                || session.queue.iter().any(|waiting| waiting.cause.plan().is_some()))
        {
            return Err("no-zombies: ending plan work left something behind".into());
        }
        let is_stop = matches!(
            command,
            SessionCommand::Person(_, PersonCommand::Stop | PersonCommand::Reset)
        );
        if is_stop && session.turn.is_some() {
            return Err("no-zombies: a stop left the turn open".into());
        }
        match next(session) {
            Next::Nothing | Next::WaitForPerson(_)
                if session.turn.is_some() || !session.queue.is_empty() =>
            {
                Err("next: something is open and nothing is due".into())
            }
            Next::Nothing if !session.doubts.is_empty() => {
                Err("next: a doubt that nobody is asked about".into())
            }
            _ => self.reports_move_no_ended_turn(session, command, news),
        }
    }

    /// A page has shown a revision in full when its reader has seen every block of it, here or before.
    fn pages_show_what_was_seen(
        &mut self,
        session: &Session,
        event: &SessionEvent,
    ) -> Result<(), String> {
        let SessionEvent::Plan(event) = event else { return Ok(()) };
        let current = || session.plan().and_then(|plan| plan.current.as_ref());
        if let PlanEvent::PlanStarted { .. } = event {
            self.blocks.clear();
        }
        if let PlanEvent::BlocksSeen { blocks, by, .. } = event {
            self.blocks.entry(by.id.clone()).or_default().extend(&blocks.0);
        }
        if let PlanEvent::RevisionShown { to, .. } = event {
            let head = current().ok_or("approved-as-read: nothing was shown")?;
            let seen = self.blocks.entry(to.id.clone()).or_default();
            if to.surface.is_page() && !head.blocks.0.is_subset(seen) {
                return Err("approved-as-read: a page showed what nobody has seen".into());
            }
            seen.extend(&head.blocks.0);
        }
        Ok(())
    }

    /// A recorded call runs as a step of the approved revision that runs, and never once it came out.
    fn replay(&self, session: &Session, call: CallId, step: u32) -> Result<(), String> {
        let plan = session.plan().ok_or("approved-as-read: a step without a plan")?;
        let head = plan.steps().iter().find(|head| head.number == step);
        let head = head.ok_or("approved-as-read: a step that was not approved")?;
        if head.call(plan.id, plan.executions) != call {
            return Err("approved-as-read: a call that is not its step's".into());
        }
        if plan.status.name() != "executing" || !self.approved.contains_key(&plan.id) {
            return Err("approved-as-read: a step outside a running approved plan".into());
        }
        let doubted = |doubt: &planwright_domain::turn::Doubt| {
            doubt.plan == Some(plan.id) && doubt.step == Some(step)
        };
        if session.doubts.values().any(doubted) {
            return Err("effects-bracketed: a step in doubt was run again unasked".into());
        }
        if self.settled.contains(&(plan.id, step)) {
            return Err("effects-bracketed: a step that came out was run again".into());
        }
        Ok(())
    }

    /// Every write or external effect runs under the lease of the plan that its turn executes.
    fn gate(&self, session: &Session, call: CallId) -> Result<(), String> {
        let effect =
            self.effects.get(&call).copied().ok_or("effects-bracketed: an unknown call started")?;
        if effect == Effect::Read {
            return Ok(());
        }
        if let Some(Permit::Once | Permit::UntilPlanEnds) = self.permitted.get(&call) {
            return Ok(());
        }
        let executes = session.turn.as_ref().and_then(|turn| turn.executes());
        let plan = session
            .plan()
            .filter(|plan| Some(plan.id) == executes)
            .ok_or("a write without a lease")?;
        if plan.status.name() != "executing" || !self.approved.contains_key(&plan.id) {
            return Err("a write outside a running approved plan".into());
        }
        let envelope = plan.status.approval().map(|approval| &approval.envelope);
        let leases = envelope.is_some_and(|envelope| !envelope.tools.is_empty());
        if !leases && plan.grants.is_empty() {
            return Err("a write that nothing leases".into());
        }
        if envelope
            .and_then(|envelope| envelope.calls_max)
            .is_some_and(|max| plan.calls_made >= max)
            && plan.grants.is_empty()
        {
            return Err("a write beyond the calls that were leased".into());
        }
        Ok(())
    }

    fn count(&mut self, event: &SessionEvent) -> Result<(), String> {
        match event {
            SessionEvent::Plan(event) => self.count_plan(event),
            SessionEvent::Turn(event) => self.count_turn(event),
            SessionEvent::Auto(_)
            | SessionEvent::Memory(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. } => Ok(()),
        }
    }

    fn count_plan(&mut self, event: &PlanEvent) -> Result<(), String> {
        match event {
            PlanEvent::PlanStarted { plan, .. } => {
                self.plan = Some(*plan);
                if self.plans.insert(*plan, None).is_some() {
                    return Err("single-active-plan: a plan started twice".into());
                }
            }
            PlanEvent::StepEnded { step, end, .. } if end.is_settled() => {
                let plan = self.plan.ok_or("a step came out without a plan")?;
                if !self.settled.insert((plan, *step)) {
                    return Err("one-decision: a step came out twice".into());
                }
            }
            PlanEvent::PlanEnded { plan, ended, .. } => {
                if self.plans.insert(*plan, Some(*ended)) != Some(None) {
                    return Err("one-decision: a plan ended twice".into());
                }
                if *ended == Ended::Completed && !self.approved.contains_key(plan) {
                    return Err("nothing that never ran is called complete".into());
                }
            }
            PlanEvent::PlanApproved { approval, .. } => {
                let before = self.approved.insert(approval.plan, approval.revision_digest);
                if before.is_some() {
                    return Err("one-decision: a plan was approved twice".into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn count_turn(&mut self, event: &TurnEvent) -> Result<(), String> {
        match event {
            TurnEvent::PermissionDecided { call, digest, permit, .. } => {
                self.permitted.insert(*call, permit.clone());
                if !self.decided.insert((*call, *digest)) {
                    return Err("one-decision: a call was decided on twice".into());
                }
            }
            TurnEvent::ModelAnswered { turn, answer, arrival, .. } => {
                if *arrival == Arrival::InTime {
                    let calls = self.calls.entry(*turn).or_default();
                    calls.extend(answer.calls.iter().map(|call| call.id));
                }
                for call in &answer.calls {
                    self.effects.insert(call.id, call.kind.effect());
                    if matches!(&call.kind, CallKind::Tool(facts) if facts.effect == Effect::Read) {
                        self.harmless.insert(call.id);
                    }
                }
            }
            TurnEvent::CallAbandoned { call, attempt, .. } => {
                self.abandoned.insert((*call, *attempt));
            }
            TurnEvent::CallStarted { call, attempt, .. } => {
                if !self.started.insert((*call, *attempt)) {
                    return Err("effects-bracketed: the same try started twice".into());
                }
                let may_have_begun =
                    *attempt > 1 && !self.abandoned.contains(&(*call, *attempt - 1));
                if may_have_begun
                    && self.effects.contains_key(call)
                    && !self.harmless.contains(call)
                {
                    return Err("effects-bracketed: an effect was repeated unasked".into());
                }
            }
            TurnEvent::CallAnswered { call, reply: told } => {
                let given = match told {
                    ToolReply::LeftRunning => Given::LeftRunning,
                    ToolReply::Text { .. }
                    | ToolReply::Planned
                    | ToolReply::Plans
                    | ToolReply::Revision { .. }
                    | ToolReply::Refused { .. } => Given::Words,
                };
                self.give(*call, given)?;
            }
            TurnEvent::CallFinished { call, .. } => {
                self.give(*call, Given::Result)?;
            }
            TurnEvent::CallInDoubt { call, .. } => {
                self.give(*call, Given::Doubt)?;
            }
            TurnEvent::TurnFinished { turn, .. } => {
                let calls = self.calls.remove(turn).unwrap_or_default();
                if calls.iter().any(|call| !self.answers.contains_key(call)) {
                    return Err("every-call-answered: a turn ended with a call unanswered".into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Every call gets one result; what comes after that one is for the record alone.
    fn give(&mut self, call: CallId, given: Given) -> Result<(), String> {
        let before = self.answers.insert(call, given);
        match (before, given) {
            (None, _)
            | (Some(Given::LeftRunning), Given::Result | Given::Doubt)
            | (Some(Given::Doubt), Given::Result) => Ok(()),
            (Some(before), given) => {
                Err(format!("every-call-answered: {given:?} for a call that had {before:?}"))
            }
        }
    }

    fn plans_are_single(&self, session: &Session) -> Result<(), String> {
        let open: Vec<_> =
            self.plans.iter().filter(|(_, ended)| ended.is_none()).map(|(plan, _)| *plan).collect();
        let active: Vec<_> = session.plan().map(|plan| plan.id).into_iter().collect();
        if open == active {
            Ok(())
        } else {
            Err("single-active-plan: an open plan that is not the active one".into())
        }
    }

    fn reports_move_no_ended_turn(
        &self,
        session: &Session,
        command: &SessionCommand,
        news: &[SessionEvent],
    ) -> Result<(), String> {
        let late = matches!(command, SessionCommand::System(SystemCommand::RecordResult { .. }));
        let starts = news
            .iter()
            .any(|event| matches!(event, SessionEvent::Turn(TurnEvent::CallStarted { .. })));
        if late && starts {
            return Err("a result started an effect".into());
        }
        let closed = session.turn.is_none()
            && !session.open.is_empty()
            && matches!(next(session), Next::StartTurn(_));
        if closed {
            Err("a turn would start while an effect of another is open".into())
        } else {
            Ok(())
        }
    }
}

/// Whether an event records that somebody decided.
fn decides(event: &SessionEvent) -> bool {
    match event {
        SessionEvent::Plan(event) => matches!(
            event,
            PlanEvent::PlanApproved { .. }
                | PlanEvent::ExecutionStarted { .. }
                | PlanEvent::ChangesRequested { .. }
        ),
        SessionEvent::Turn(event) => matches!(
            event,
            TurnEvent::DoubtSettled { .. }
                | TurnEvent::PermissionDecided { by: Some(_), .. }
                | TurnEvent::PermissionDecided { permit: Permit::Once | Permit::UntilPlanEnds, .. }
        ),
        SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. } => false,
    }
}

/// What must hold of a person's decision that was taken.
fn may_decide(session: &Session, person: &Person, decision: &Decision) -> Result<(), String> {
    if person.standing != Standing::Decides {
        return Err("model-never-approves: someone who may only speak decided".into());
    }
    let Decision::Approve(Approving { digest, .. }) = decision else { return Ok(()) };
    let plan = session.plan().ok_or("approved-as-read: no plan was approved")?;
    let head = plan.current.as_ref().ok_or("approved-as-read: no revision was approved")?;
    if head.digest != *digest || plan.shown_to(person) != Some(*digest) {
        return Err("approved-as-read: a stale or unseen revision was approved".into());
    }
    if plan.status.approval().is_some() || head.review == Review::Withdrawn {
        return Err("one-decision: decided twice, or on a withdrawn revision".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use planwright_domain::turn::event::TurnEnd;
    use uuid::Uuid;

    use super::*;

    fn answered(told: ToolReply) -> SessionEvent {
        SessionEvent::Turn(TurnEvent::CallAnswered { call: Uuid::from_u128(1).into(), reply: told })
    }

    fn words() -> ToolReply {
        ToolReply::Text { text: "done".into() }
    }

    /// Invariant: `every-call-answered`.
    #[test]
    fn a_call_that_is_answered_twice_is_noticed() {
        let mut watcher = Watcher::default();
        assert_eq!(watcher.count(&answered(words())), Ok(()));
        assert!(watcher.count(&answered(words())).is_err());
    }

    /// Invariant: `every-call-answered`.
    #[test]
    fn a_turn_that_ends_with_a_call_unanswered_is_noticed() {
        let (turn, call): (TurnId, CallId) = (Uuid::from_u128(2).into(), Uuid::from_u128(1).into());
        let finished = SessionEvent::Turn(TurnEvent::TurnFinished { turn, end: TurnEnd::Answered });
        let mut watcher = Watcher::default();
        watcher.calls.insert(turn, vec![call]);
        assert!(watcher.count(&finished).is_err());
        let mut watcher = Watcher::default();
        watcher.calls.insert(turn, vec![call]);
        assert_eq!(watcher.count(&answered(words())), Ok(()));
        assert_eq!(watcher.count(&finished), Ok(()));
    }
}
