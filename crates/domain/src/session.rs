//! The session: a fold over one stream of events, and the one place where commands are decided.
//!
//! [`decide`] joins the deciders of plan and turn with one `match`; [`Session::evolve`] joins
//! their folds. The folded session holds only what `decide` and `next` need: texts, outputs and
//! old revisions stay in the journal.
//!
//! Must always hold:
//! - `replay-equals-state`: folding the recorded events gives the state again.
//! - `facts-only-grow`: an event is never changed or taken back; late results are added. The only exception is a session that a
//!   person deleted: it is erased as a whole, and the audit log keeps that it was.
//! - `session-isolation`: a command on one session reads and writes that session alone.

use std::collections::BTreeSet;

use crate::{
    model::{
        actor::{Person, Standing},
        autonomy::event::AutoEvent,
        command::{
            AutoCommand, Decision, HoldReason, Issued, LifeCommand, ModelCommand, Permit,
            PersonCommand, SessionCommand, SystemCommand, Verdict,
        },
        digest::Digest,
        given::Given,
        id::{CallId, OwnerId, PlanId, Seq, TurnId},
        limits,
        log::{Erased, SessionHead},
        memory::MemoryCommand,
        notebook::NotebookEvent,
        plan::{
            Ended, PauseReason, Plan, PlanStatus, Progress,
            event::{Account, PlanEvent},
            refusal::PlanRefusal,
            review::Said,
            step::StepEnd,
        },
        policy::{Policy, Risk},
        quota::Limit,
        refusal::Refusal,
        session::{
            is_foreign,
            life::{Deletion, Life, LifeEvent},
        },
        time::Time,
        tools::{PLAN_ASK, PlanTool},
        turn::{
            Cause,
            ending::{moved_on, stopped, withdrawn},
            event::TurnEvent,
        },
    },
    next::{Next, next},
    rules::{
        agent, autonomy, life as life_rules, log, memory, notebook,
        plan::{
            self,
            authoring::{Authoring, Edited},
            decide::Deciding,
        },
        turn,
    },
};

mod fold;

pub use crate::model::session::{CorruptJournal, EndedPlan, Session, SessionEvent};
pub use fold::FOLD_VERSION;

/// Whether a session is there, and who may see it.
pub mod life {
    pub use crate::{
        model::session::life::{Deletion, Life, LifeEvent},
        rules::life::{may_promote, may_see},
    };
}

pub use crate::rules::turn::gate::leased_hosts;

/// What the audit log keeps of a session that is erased now; nothing, if that is not due.
#[must_use]
pub fn erasure(session: &Session, at: Time) -> Option<Erased> {
    let Next::Erase { not_before } = next(session) else { return None };
    if not_before.is_some_and(|time| time > at) {
        return None;
    }
    let Deletion { by, at: asked } = session.deletion.clone()?;
    let begins = log::beginning(&session.key());
    let of = SessionHead { session: begins, seq: session.version, head: session.log };
    Some(Erased { of, by, asked })
}

/// Decides one command: events, or a refusal in words. Pure.
pub fn decide(
    session: &Session,
    issued: &Issued<SessionCommand>,
) -> Result<Vec<SessionEvent>, Refusal> {
    if session.version != Seq(0) {
        return decide_in(session, issued);
    }
    if session.life == Life::Deleted {
        // It was erased, and nothing brings it back.
        return Err(Refusal::SessionDeleted { identity: session.identity.to_string() });
    }
    let Some(root) = life_rules::opens_in(session, issued)? else {
        return decide_in(session, issued);
    };
    let mut events = vec![SessionEvent::Life(LifeEvent::Opened { root: root.clone() })];
    if life_rules::wished_root(issued).is_some() {
        return Ok(events);
    }
    let opened =
        Session { version: Seq(1), view_from: Seq(1), root: Some(root), ..session.clone() };
    let decided = decide_in(&opened, issued)?;
    if decided.is_empty() {
        // What changes nothing begins nothing.
        return Ok(decided);
    }
    events.extend(decided);
    Ok(events)
}

/// The same, in a session that has begun or has no root.
fn decide_in(
    session: &Session,
    issued: &Issued<SessionCommand>,
) -> Result<Vec<SessionEvent>, Refusal> {
    let mut events = match &issued.command {
        SessionCommand::Person(person, command) => decide_person(session, issued, person, command),
        SessionCommand::Model(turn, command) => decide_model(session, issued.at, *turn, command),
        SessionCommand::Agent(call) => {
            let looks = [PlanTool::Get.name(), PlanTool::Report.name(), PLAN_ASK];
            let room =
                if looks.contains(&call.call.tool.as_str()) { Ok(()) } else { has_room(issued) };
            room.and_then(|()| agent::decide(session, issued.at, call))
        }
        SessionCommand::System(command) => decide_system(session, issued, command),
    }?;
    for event in &mut events {
        if let SessionEvent::Plan(PlanEvent::RevisionAdded { waits, .. }) = event {
            *waits = issued.policy.waits(issued.at);
        }
    }
    let mut decided = Decided { before: session, at: issued.at, events, after: None };
    if settles(issued) {
        decided.resume_plan()?;
    }
    if !session.auto.runs.is_empty() {
        decided.follow_runs(issued)?;
    }
    let mut events = decided.events;
    events
        .extend(log::anchor(session, issued.at, &events).map(|head| SessionEvent::Logged { head }));
    Ok(events)
}

/// What was decided so far, and the session after it: folded once, when somebody needs it.
struct Decided<'a> {
    before: &'a Session,
    at: Time,
    events: Vec<SessionEvent>,
    after: Option<Session>,
}

impl Decided<'_> {
    fn after(&mut self) -> Result<&Session, Refusal> {
        let after = match self.after.take() {
            Some(after) => after,
            None => folded(self.before, self.at, &self.events)?,
        };
        Ok(self.after.insert(after))
    }

    fn add(&mut self, more: Vec<SessionEvent>) -> Result<(), Refusal> {
        if let Some(after) = self.after.take() {
            self.after = Some(folded(&after, self.at, &more)?);
        }
        self.events.extend(more);
        Ok(())
    }

    /// A plan that waited for nothing but its doubts goes on when the last of them is settled.
    fn resume_plan(&mut self) -> Result<(), Refusal> {
        let after = self.after()?;
        let Some(plan) = after.plan().filter(|plan| waits_for_doubts(plan)) else { return Ok(()) };
        if !after.doubts.is_empty() {
            return Ok(());
        }
        let goes_on = SessionEvent::Plan(plan::decide::going_on(plan));
        self.add(vec![goes_on])
    }

    /// What becomes of the runs because of what was decided: a call of theirs ended, a turn of theirs, or their plan moved.
    fn follow_runs(&mut self, issued: &Issued<SessionCommand>) -> Result<(), Refusal> {
        let before = self.before;
        if let SessionCommand::System(SystemCommand::RecordResult { attempt, .. }) = &issued.command
            && let Some(open) = before.open.get(&attempt.call)
            && open.attempt == attempt.number
        {
            let guarded = autonomy::decide::guard(before, self.after()?, &open.tool);
            self.add(guarded.into_iter().flatten().collect())?;
        }
        self.after()?;
        let after = self.after.as_ref().unwrap_or(before);
        let followed = autonomy::react::follow(before, after, issued.at, &self.events);
        self.events.extend(followed);
        Ok(())
    }
}

fn folded(session: &Session, at: Time, events: &[SessionEvent]) -> Result<Session, Refusal> {
    session.fold(at, events).map_err(|corrupt| moved_on(&corrupt.to_string()))
}

/// Whether this is a person's word on a call whose outcome was unknown.
fn settles(issued: &Issued<SessionCommand>) -> bool {
    matches!(
        issued.command,
        SessionCommand::Person(_, PersonCommand::Decide(Decision::SettleDoubt { .. }))
    )
}

/// What the model asks of a tool that is answered here: only the call that is due is answered.
fn decide_model(
    session: &Session,
    at: Time,
    turn: TurnId,
    command: &ModelCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ModelCommand::UsePlanTool { call, .. } = command;
    if session.turn.as_ref().is_some_and(|open| open.id == turn)
        && next(session) != (Next::UsePlanTool { turn, call: *call })
    {
        return Err(moved_on("this call is not the next one"));
    }
    turn::decide::use_plan_tool(session, at, turn, command)
}

/// What the runtime reports: it moves the session, is recorded as late, or is refused as moved on.
#[expect(clippy::too_many_lines, reason = "one arm for each thing that the runtime reports")]
fn decide_system(
    session: &Session,
    issued: &Issued<SessionCommand>,
    command: &SystemCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    use crate::rules::turn::decide as turns;
    let (at, quota) = (issued.at, issued.quota.as_deref());
    match command {
        SystemCommand::StartTurn { queued, .. } if next(session) != Next::StartTurn(*queued) => {
            Err(moved_on("this cause is not the next one"))
        }
        SystemCommand::StartTurn { turn, queued, profile, recalled, call } => {
            let mut events =
                turns::start_turn(session, *turn, *queued, profile.as_ref(), recalled)?;
            if let Some(bracket) = call {
                let started = folded(session, at, &events)?;
                events.extend(turns::first_model_call(&started, at, *turn, *bracket, quota));
            }
            Ok(events)
        }
        SystemCommand::ClaimSlot(claim) => autonomy::claim::claim(session, at, claim),
        SystemCommand::StartModelCall { attempt, bracket } => {
            turns::start_model_call(session, at, *attempt, *bracket, quota)
        }
        SystemCommand::ResumeTurn => turns::resume_turn(session),
        SystemCommand::DeleteByAge { version } => delete_by_age(session, *version),
        SystemCommand::RecordAnswer { attempt, answer, others } => {
            turns::record_answer(session, at, *attempt, answer, *others)
        }
        SystemCommand::RecordModelFailure { attempt, failure, others, sent } => {
            let sent = sent.as_deref();
            turns::record_model_failure(session, at, *attempt, failure, *others, sent)
        }
        SystemCommand::RecordCompaction { attempt, summed } => {
            turns::record_compaction(session, *attempt, summed.as_ref())
        }
        SystemCommand::AbandonModelCall { attempt, why } => {
            turns::abandon_model_call(session, *attempt, why)
        }
        SystemCommand::OrphanModelCall { attempt } => turns::orphan_model_call(session, *attempt),
        SystemCommand::StartCalls { calls, bracket, ask_until } => {
            let due = calls.iter().map(|starting| starting.attempt).collect();
            if session.turn.is_some() && next(session) != Next::RunCalls(due) {
                return Err(moved_on("these calls are not due"));
            }
            turns::start_calls(session, at, calls, *bracket, *ask_until)
        }
        SystemCommand::Hold { by, why } => Ok(hold(session, by, *why)),
        SystemCommand::RingDecision => plan::decide::ring(&session.work, at)
            .map(|rung| vec![SessionEvent::Plan(rung)])
            .ok_or_else(|| moved_on("no revision has waited so long")),
        SystemCommand::ExpireAsk { call } => turn::permission::expire(session, at, *call),
        SystemCommand::RecordResult { attempt, result, note_every } => {
            turns::record_result(session, *attempt, result, *note_every)
        }
        SystemCommand::AbandonCall { attempt, why } => turns::abandon_call(session, *attempt, why),
        SystemCommand::OrphanCall { attempt } => turns::orphan_call(session, *attempt),
        SystemCommand::RecordAgentCall { call, reply } => agent::record(session, *call, reply),
        SystemCommand::StartRemoval { attempt, bracket } => {
            let (attempt, bracket) = (*attempt, *bracket);
            let is_due = matches!(next(session), Next::RemovePages { attempt: due, not_before }
                if due == attempt && not_before.is_none_or(|time| time <= at));
            let started = NotebookEvent::RemovalStarted { attempt, bracket };
            let started = is_due.then(|| vec![SessionEvent::Notebook(started)]);
            started.ok_or_else(|| moved_on("this removal of the pages is not due"))
        }
        SystemCommand::RecordPagesRemoved { attempt, pages } => {
            notebook::end_removal(session, *attempt, |_| NotebookEvent::PagesRemoved {
                pages: *pages,
            })
        }
        SystemCommand::RecordRemovalFailure { attempt, why } => {
            notebook::end_removal(session, *attempt, |removal| NotebookEvent::RemovalFailed {
                why: why.clone(),
                retry_at: removal.retry_at(at),
            })
        }
        SystemCommand::OrphanRemoval { attempt } => {
            notebook::end_removal(session, *attempt, |removal| NotebookEvent::RemovalOrphaned {
                attempt: *attempt,
                retry_at: removal.retry_at(at),
            })
        }
    }
}

fn decide_person(
    session: &Session,
    issued: &Issued<SessionCommand>,
    person: &Person,
    command: &PersonCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    if session.version == Seq(0) {
        life_rules::may_begin(session)?;
    }
    life_rules::may_ask(session, person, command)?;
    if adds_text(command) {
        has_room(issued)?;
    }
    if is_foreign(session) {
        agent::may_receive(session, command)?;
    } else if starts_work(command) {
        may_work_here(session, &issued.policy)?;
    }
    match command {
        PersonCommand::Say { text } => say(session, person, text),
        PersonCommand::Auto(command) => {
            autonomy::decide::decide(session, issued.at, person, command)
        }
        PersonCommand::Memory(command) => {
            let decided = memory::decide(session, issued.at, person, command)?;
            Ok(decided.into_iter().map(SessionEvent::Memory).collect())
        }
        PersonCommand::Notebook { on } => {
            if session.notebook.switched == Some(*on) {
                return Ok(Vec::new());
            }
            let switched = NotebookEvent::Switched { on: *on, by: person.clone() };
            Ok(vec![SessionEvent::Notebook(switched)])
        }
        PersonCommand::Life(command) => lives(session, person, command),
        PersonCommand::StartPlan { plan, strategy, reads } => {
            Ok(of_plan(plan::decide::start(&session.work, *plan, *strategy, *reads, person)?))
        }
        PersonCommand::EndPlan(ending) => {
            let ended = plan::decide::end(&session.work, *ending, person)?;
            Ok(ending_plan(session, person, ended, OpenTurn::StopIfItExecutes))
        }
        PersonCommand::Reset => Ok(reset(session, person)),
        PersonCommand::Compact if session.view_from == session.version => {
            Err(Refusal::NothingToCompact)
        }
        PersonCommand::Compact
            if session.queue.iter().any(|due| due.cause == Cause::Compaction) =>
        {
            Ok(Vec::new())
        }
        PersonCommand::Compact => Ok(vec![SessionEvent::CompactionAsked { by: person.clone() }]),
        PersonCommand::Stop => stop(session, person),
        PersonCommand::PausePlan => {
            let paused = plan::decide::pause(&session.work)?;
            Ok(ending_plan(session, person, paused, OpenTurn::StopIfItExecutes))
        }
        PersonCommand::EditPlan { base, markdown, fresh, suggested } => {
            plan::decide::may_decide(person, issued.at, &issued.policy, Risk::Usual)?;
            let text = Edited { markdown, suggested: *suggested };
            edit(session, person, *base, text, *fresh)
        }
        PersonCommand::RecordShown { digest } => {
            Ok(of_plan(plan::rendering::shown(&session.work, *digest, person)?))
        }
        PersonCommand::MarkSeen { digest, blocks } => {
            Ok(of_plan(plan::rendering::seen(&session.work, *digest, blocks, person)?))
        }
        PersonCommand::Discuss { plan, base, said } => {
            let named = |active: &&Plan| plan.is_none_or(|plan| active.id == plan);
            let plan = session.plan().filter(named).ok_or(PlanRefusal::WorkInactive)?;
            Ok(of_plan(plan::comments::discuss(plan, *base, said, person)?))
        }
        PersonCommand::Decide(decision) => decide_decision(session, issued, person, decision),
    }
}

/// Whether this person may raise a limit: it is money, so who may decide may, a short while after their passphrase.
pub fn may_raise(person: &Person, at: Time, policy: &Policy) -> Result<(), Refusal> {
    plan::decide::may_decide(person, at, policy, Risk::More).map_err(Refusal::Plan)
}

/// The limits of the owner that have a say in a command: how the owner stands with them must come with it.
#[must_use]
pub fn limits_of(command: &SessionCommand) -> &'static [Limit] {
    match command {
        SessionCommand::Person(_, command) if adds_text(command) => &[Limit::Bytes],
        SessionCommand::Agent(_) => &[Limit::Bytes],
        SessionCommand::System(SystemCommand::StartTurn { call: None, .. }) => &[Limit::Turns],
        SessionCommand::System(
            SystemCommand::StartTurn { call: Some(_), .. } | SystemCommand::StartModelCall { .. },
        ) => &turn::decide::OF_CALL,
        SessionCommand::Person(..) | SessionCommand::Model(..) | SessionCommand::System(_) => &[],
    }
}

/// Whether a turn begins with this, or goes on that was paused: the owner must have room for it.
#[must_use]
pub fn begins_turn(session: &Session, events: &[SessionEvent]) -> bool {
    let is_paused = session.turn.as_ref().is_some_and(|turn| turn.paused.is_some());
    events.iter().any(|event| {
        matches!(event, SessionEvent::Turn(TurnEvent::TurnStarted { .. }))
            || (is_paused
                && matches!(event, SessionEvent::Turn(TurnEvent::ModelCallStarted { .. })))
    })
}

/// Whether a command stores what a person wrote.
fn adds_text(command: &PersonCommand) -> bool {
    match command {
        PersonCommand::Say { .. }
        | PersonCommand::EditPlan { .. }
        | PersonCommand::Discuss { said: Said::Comment { .. } | Said::Edit { .. }, .. }
        | PersonCommand::StartPlan { .. }
        | PersonCommand::Life(LifeCommand::Rename { .. })
        | PersonCommand::Memory(MemoryCommand::Save { .. } | MemoryCommand::Change { .. }) => true,
        PersonCommand::Auto(command) => matches!(
            command,
            AutoCommand::AddGoal { .. }
                | AutoCommand::AddTask { .. }
                | AutoCommand::AddSchedule { .. }
        ),
        PersonCommand::EndPlan(_)
        | PersonCommand::Reset
        | PersonCommand::Compact
        | PersonCommand::Stop
        | PersonCommand::PausePlan
        | PersonCommand::RecordShown { .. }
        | PersonCommand::MarkSeen { .. }
        | PersonCommand::Discuss { said: Said::Resolve { .. } | Said::Reopen { .. }, .. }
        | PersonCommand::Memory(MemoryCommand::Forget { .. })
        | PersonCommand::Notebook { .. }
        | PersonCommand::Life(
            LifeCommand::Open { .. }
            | LifeCommand::Archive
            | LifeCommand::Restore
            | LifeCommand::Delete,
        )
        | PersonCommand::Decide(_) => false,
    }
}

/// Whether the owner may store more.
fn has_room(issued: &Issued<SessionCommand>) -> Result<(), Refusal> {
    let quota = issued.quota.as_deref();
    match quota.and_then(|quota| quota.reached(&[Limit::Bytes], issued.at)) {
        Some(reached) => Err(Refusal::LimitReached(reached)),
        None => Ok(()),
    }
}

/// Deletes a session that is older than sessions are kept. What waits for a person or goes on by itself stays.
fn delete_by_age(session: &Session, version: Seq) -> Result<Vec<SessionEvent>, Refusal> {
    let is_at_rest = next(session) == Next::Nothing && session.auto.schedules.is_empty();
    if session.version != version || session.life == Life::Deleted || !is_at_rest {
        return Err(moved_on("something goes on in it, or happened since"));
    }
    lives(session, &retention(session.owner), &LifeCommand::Delete)
}

/// Who deletes what is older than sessions are kept.
fn retention(owner: OwnerId) -> Person {
    Person::new(owner, "retention", "retention", Standing::Speaks)
}

/// Whether a command leads to work in the session's directory.
fn starts_work(command: &PersonCommand) -> bool {
    match command {
        PersonCommand::Say { .. } | PersonCommand::Compact => true,
        PersonCommand::Decide(decision) => match decision {
            Decision::Approve(_) | Decision::Resume => true,
            Decision::Permit { permit, .. } => {
                matches!(permit, Permit::Once | Permit::UntilPlanEnds)
            }
            Decision::RequestChanges { .. }
            | Decision::Reject { .. }
            | Decision::SkipStep { .. }
            | Decision::SettleDoubt { .. } => false,
        },
        PersonCommand::Auto(command) => {
            matches!(command, AutoCommand::On { .. } | AutoCommand::Resume { .. })
        }
        PersonCommand::StartPlan { .. }
        | PersonCommand::EndPlan(_)
        | PersonCommand::Reset
        | PersonCommand::Stop
        | PersonCommand::PausePlan
        | PersonCommand::EditPlan { .. }
        | PersonCommand::RecordShown { .. }
        | PersonCommand::MarkSeen { .. }
        | PersonCommand::Discuss { .. }
        | PersonCommand::Memory(_)
        | PersonCommand::Notebook { .. }
        | PersonCommand::Life(_) => false,
    }
}

/// Refuses work in a directory that is not configured now: it could only fail, after somebody was told that it begins.
fn may_work_here(session: &Session, policy: &Policy) -> Result<(), Refusal> {
    match &session.root {
        Some(root) if !policy.roots.is_empty() => policy.root(Some(root)).map(drop),
        Some(_) | None => Ok(()),
    }
}

/// What was approved waits for a person: the turn and the runs end, and the plan is paused. Messages stay in the queue: the
/// model may answer them, under the rules that hold here. The schedules of an archive are off.
fn hold(session: &Session, by: &Person, why: HoldReason) -> Vec<SessionEvent> {
    let paused = session.plan().and_then(|plan| {
        let approver = plan.status.approval()?.by.id.0.clone();
        let reason = match why {
            HoldReason::Imported => PauseReason::Imported { approver },
            HoldReason::PassphraseReset => PauseReason::PassphraseReset { approver },
        };
        Some(PlanEvent::ExecutionPaused { reason })
    });
    let mut events = ending_plan(session, by, paused.into_iter().collect(), OpenTurn::Stop);
    events.extend(autonomy::decide::end_all(session, by));
    let ticks = session.queue.iter().filter(|queued| matches!(queued.cause, Cause::Tick { .. }));
    let of_its_run = match why {
        HoldReason::Imported => "its run came with an archive",
        HoldReason::PassphraseReset => "its run ended when a passphrase was reset",
    };
    events.extend(
        ticks.map(|queued| SessionEvent::CauseWithdrawn {
            queued: queued.seq,
            why: of_its_run.into(),
        }),
    );
    if why == HoldReason::Imported {
        let why = "it came with an archive; add it again to have it here".to_owned();
        events.extend(session.auto.schedules.keys().map(|schedule| {
            let schedule = *schedule;
            SessionEvent::Auto(AutoEvent::ScheduleEnded { schedule, why: why.clone() })
        }));
    }
    events
}

/// Whether nothing in a session goes on by itself but the answer to a message.
#[must_use]
pub fn is_held(session: &Session) -> bool {
    let runs = session
        .plan()
        .is_some_and(|plan| matches!(plan.status, PlanStatus::Executing(_, Progress::Running)));
    !runs
        && session.turn.is_none()
        && session.auto.runs.is_empty()
        && session.auto.schedules.is_empty()
        && session.queue.iter().all(|queued| {
            matches!(
                queued.cause,
                Cause::Message | Cause::ChangesRequested { .. } | Cause::Compaction
            )
        })
}

/// What only a person may say: on a plan, a call that asks, a call in doubt.
fn decide_decision(
    session: &Session,
    issued: &Issued<SessionCommand>,
    person: &Person,
    decision: &Decision,
) -> Result<Vec<SessionEvent>, Refusal> {
    match decision {
        Decision::SettleDoubt { call, verdict } => settle(session, issued, person, *call, *verdict),
        Decision::Permit { digest, permit } => {
            let allows = matches!(permit, Permit::Once | Permit::UntilPlanEnds);
            let asks = session.ask.as_ref().filter(|ask| allows && ask.digest == *digest);
            let risk = asks.map_or(Risk::Usual, |ask| Policy::risk_of_tool(&ask.tool));
            plan::decide::may_decide(person, issued.at, &issued.policy, risk)?;
            turn::permission::decide(session, issued.at, person, *digest, permit)
        }
        Decision::SkipStep { step } if is_unsettled(session, *step) => {
            plan::decide::may_decide(person, issued.at, &issued.policy, Risk::Usual)?;
            Err(PlanRefusal::StepUnderWay { step: *step }.into())
        }
        Decision::Approve(_)
        | Decision::RequestChanges { .. }
        | Decision::Reject { .. }
        | Decision::Resume
        | Decision::SkipStep { .. } => {
            let doubts = session.doubts.len();
            let foreign = agent::deciding(session, decision);
            let decision = foreign.as_ref().unwrap_or(decision);
            let deciding = Deciding {
                by: person,
                at: issued.at,
                policy: &issued.policy,
                root: session.root.as_ref(),
            };
            let decided = plan::decide::decision(&session.work, doubts, deciding, decision)?;
            Ok(match decision {
                Decision::Reject { .. } => ending_plan(session, person, decided, OpenTurn::Stop),
                Decision::Approve(_)
                | Decision::RequestChanges { .. }
                | Decision::Resume
                | Decision::SkipStep { .. }
                | Decision::Permit { .. }
                | Decision::SettleDoubt { .. } => of_plan(decided),
            })
        }
    }
}

fn say(session: &Session, person: &Person, text: &str) -> Result<Vec<SessionEvent>, Refusal> {
    let (bytes, limit) = (text.len(), limits::MESSAGE_BYTES_MAX);
    if text.trim().is_empty() {
        return Err(Refusal::EmptyMessage);
    }
    if bytes > limit {
        return Err(Refusal::MessageTooLong { bytes, limit });
    }
    if session.queue.len() >= limits::QUEUE_MAX {
        return Err(Refusal::QueueFull { limit: limits::QUEUE_MAX });
    }
    let queued = SessionEvent::MessageQueued { text: text.to_owned(), by: person.clone() };
    let by = person.clone();
    let restored =
        (session.life == Life::Archived).then_some(SessionEvent::Life(LifeEvent::Restored { by }));
    Ok(restored.into_iter().chain([queued]).collect())
}

/// A person writes the document anew. What executes or waits for the plan that it replaces ends.
fn edit(
    session: &Session,
    person: &Person,
    base: Option<Digest>,
    edited: Edited<'_>,
    fresh: PlanId,
) -> Result<Vec<SessionEvent>, Refusal> {
    let plan = plan::decide::active(&session.work)?;
    let given = Given { fresh, profiles: BTreeSet::new(), memory: None, markdown: None };
    let key = session.key();
    let writing = Authoring {
        session: &key,
        // A person's word is newer than any approval.
        turn_started: session.version.following(),
        given: &given,
    };
    let edited = plan::authoring::edit(plan, writing, base, edited, person)?;
    let replaces = edited.iter().any(|event| matches!(event, PlanEvent::PlanEnded { .. }));
    if replaces {
        Ok(ending_plan(session, person, edited, OpenTurn::StopIfItExecutes))
    } else {
        Ok(of_plan(edited))
    }
}

/// What becomes of the open turn when a person ends or pauses plan work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenTurn {
    Stop,
    StopIfItExecutes,
}

/// The plan's events, the turn's end where it is due, and the withdrawal of what waited for it.
fn ending_plan(
    session: &Session,
    person: &Person,
    decided: Vec<PlanEvent>,
    open: OpenTurn,
) -> Vec<SessionEvent> {
    let plan = session.plan().map(|plan| plan.id);
    let stops =
        session.turn.as_ref().is_some_and(|turn| open == OpenTurn::Stop || turn.executes() == plan);
    let mut events = if stops { stopped(session, person) } else { Vec::new() };
    events.extend(plan.into_iter().flat_map(|plan| withdrawn(session, plan)));
    events.extend(of_plan(decided));
    events
}

fn stop(session: &Session, person: &Person) -> Result<Vec<SessionEvent>, Refusal> {
    match plan::decide::pause(&session.work) {
        Ok(paused) => Ok(ending_plan(session, person, paused, OpenTurn::Stop)),
        Err(_) if session.turn.is_some() => Ok(stopped(session, person)),
        Err(PlanRefusal::NothingToStop { .. } | PlanRefusal::WorkInactive) | Err(_) => {
            Err(Refusal::NothingRunning)
        }
    }
}

fn reset(session: &Session, person: &Person) -> Vec<SessionEvent> {
    let mut events = everything_ends(session, person);
    events.push(SessionEvent::ViewReset { by: person.clone() });
    events
}

/// Turn, queue, plan work and runs end.
fn everything_ends(session: &Session, person: &Person) -> Vec<SessionEvent> {
    let mut events = stopped(session, person);
    events.extend(session.queue.iter().map(|waiting| SessionEvent::CauseWithdrawn {
        queued: waiting.seq,
        why: "not answered: the session was reset before its turn came".into(),
    }));
    if let Some(plan) = session.plan() {
        let account = Account::Person { by: person.clone(), note: None };
        events.extend(of_plan(vec![plan::decide::ending_of(plan, Ended::Cancelled, account)]));
    }
    events.extend(autonomy::decide::end_all(session, person));
    events
}

fn settle(
    session: &Session,
    issued: &Issued<SessionCommand>,
    person: &Person,
    call: CallId,
    verdict: Verdict,
) -> Result<Vec<SessionEvent>, Refusal> {
    plan::decide::may_decide(person, issued.at, &issued.policy, Risk::Usual)?;
    let doubt =
        session.doubts.get(&call).ok_or_else(|| Refusal::NoSuchDoubt { call: call.to_string() })?;
    if verdict == Verdict::DidNotHappen && issued.at < doubt.deadline {
        return Err(Refusal::DoubtTooFresh);
    }
    let settled = TurnEvent::DoubtSettled { call, verdict, by: person.clone() };
    let mut events = vec![SessionEvent::Turn(settled)];
    if session.plan().is_some_and(|plan| doubt.plan == Some(plan.id))
        && let Some(step) = doubt.step
        && verdict == Verdict::Happened
    {
        events.push(SessionEvent::Plan(plan::decide::step_ended(step, StepEnd::Done)));
    }
    Ok(events)
}

/// Whether a call of this step is under way, or nobody knows what became of it.
fn is_unsettled(session: &Session, step: u32) -> bool {
    let plan = session.plan().map(|plan| plan.id);
    let of_step = |of: (Option<PlanId>, Option<u32>)| of == (plan, Some(step));
    session.open.values().any(|open| of_step((open.plan, open.step)))
        || session.doubts.values().any(|doubt| of_step((doubt.plan, doubt.step)))
}

fn waits_for_doubts(plan: &Plan) -> bool {
    matches!(plan.status, PlanStatus::Executing(_, Progress::Paused(PauseReason::InDoubt)))
}

fn of_plan(events: Vec<PlanEvent>) -> Vec<SessionEvent> {
    events.into_iter().map(SessionEvent::Plan).collect()
}

/// Names, puts away, brings back or deletes a session.
fn lives(
    session: &Session,
    person: &Person,
    command: &LifeCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let by = person.clone();
    let life = |event| Ok(vec![SessionEvent::Life(event)]);
    match command {
        LifeCommand::Open { .. } => {
            let (identity, root) = (session.identity.to_string(), session.root.as_ref());
            let root = root.map_or_else(|| "its workspace".into(), |root| root.0.clone());
            Err(Refusal::RootStands { identity, root })
        }
        LifeCommand::Rename { title } => {
            let (bytes, limit) = (title.trim().len(), limits::TITLE_BYTES_MAX);
            match bytes {
                0 => Err(Refusal::EmptyMessage),
                _ if bytes > limit => Err(Refusal::MessageTooLong { bytes, limit }),
                _ => life(LifeEvent::Renamed { title: title.trim().to_owned(), by }),
            }
        }
        LifeCommand::Archive if !session.auto.runs.is_empty() => {
            Err(Refusal::RunsGoOn { count: session.auto.runs.len() })
        }
        LifeCommand::Archive if session.life == Life::Archived => Ok(Vec::new()),
        LifeCommand::Archive => life(LifeEvent::Archived { by }),
        LifeCommand::Restore if session.life == Life::Open => Ok(Vec::new()),
        LifeCommand::Restore => life(LifeEvent::Restored { by }),
        LifeCommand::Delete => {
            let mut events = everything_ends(session, person);
            let why = "its session was deleted".to_owned();
            events.extend(session.auto.schedules.keys().map(|schedule| {
                let (schedule, why) = (*schedule, why.clone());
                SessionEvent::Auto(AutoEvent::ScheduleEnded { schedule, why })
            }));
            events.push(SessionEvent::Life(LifeEvent::Deleted { by }));
            Ok(events)
        }
    }
}
