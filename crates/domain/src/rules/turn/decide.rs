//! Which reports of the runtime move a turn.

use crate::{
    model::{
        attempt::{CallAttempt, ModelAttempt},
        autonomy::{RunPause, TaskEnd, event::AutoEvent},
        command::{ModelCommand, StartingCall, Summed},
        effect::{Bracket, Repeat},
        given::Given,
        id::{Seq, TurnId},
        limits,
        memory::{Chain, rank::Recalled},
        notebook::NotebookEvent,
        plan::{PauseReason, Plan, PlanStatus, Progress, event::PlanEvent, step::HeadWork},
        quota::{Limit, QuotaUse},
        refusal::Refusal,
        session::{Session, SessionEvent},
        time::Time,
        tools::own::OwnTool,
        turn::{
            Answer, Call, CallKind, CallResult, Cause, FailureKind, ModelFailure, OpenCall,
            RequestedCall, Sent, Step, ToolReply, Turn, Work,
            ending::{answers, event, moved_on, unrun, withdrawn},
            event::{Arrival, TurnEnd, TurnEvent},
            profile::Profile,
        },
    },
    rules::{
        autonomy::{self, decide::Allowance, standing::Doing},
        memory, notebook, plan, tools,
        turn::{
            gate::{Gate, gate, leasing_plan},
            permission, replay,
            retry::{Again, again},
        },
    },
};

/// The limits of an owner that hold back a call of the model.
const BY_CALL: [Limit; 3] = [Limit::Money, Limit::Tokens, Limit::Bytes];
/// Those, and the one that holds back a turn that was paused.
pub(crate) const OF_CALL: [Limit; 4] = [Limit::Money, Limit::Tokens, Limit::Bytes, Limit::Turns];
/// How long a turn waits for a limit before it looks again: a limit may be another one since, and a day ends.
pub const LOOK_AGAIN_MICROS: i64 = 300_000_000;

/// Records what the model answered, or that it came too late.
pub(crate) fn record_answer(
    session: &Session,
    at: Time,
    attempt: ModelAttempt,
    answer: &Answer,
    others: u32,
) -> Result<Vec<SessionEvent>, Refusal> {
    match open_model_call(session, attempt) {
        Ok(open) if open.work == Work::Compacts => {
            Err(moved_on("this turn sums up, and answers nobody"))
        }
        Ok(open) => Ok(answered(session, open, at, attempt, answer, others)),
        Err(_) => Ok(vec![event(TurnEvent::ModelAnswered {
            turn: attempt.turn,
            round: attempt.round,
            answer: answer.clone(),
            arrival: Arrival::Late,
        })]),
    }
}

/// Records that the model did not answer.
pub(crate) fn record_model_failure(
    session: &Session,
    at: Time,
    attempt: ModelAttempt,
    failure: &ModelFailure,
    others: u32,
    sent: Option<&Sent>,
) -> Result<Vec<SessionEvent>, Refusal> {
    let turn = open_model_call(session, attempt)?;
    let sent = sent.cloned().map(Box::new);
    Ok(model_failed(session, turn, at, attempt, failure.clone(), others, sent))
}

/// Records a summary, or that there was nothing to sum up.
pub(crate) fn record_compaction(
    session: &Session,
    attempt: ModelAttempt,
    summed: Option<&Summed>,
) -> Result<Vec<SessionEvent>, Refusal> {
    match (open_model_call(session, attempt), summed) {
        (Ok(open), None) if open.work != Work::Compacts => Err(moved_on("nothing was summed up")),
        (Ok(open), summed) => Ok(compacted(session, open, attempt, summed)),
        // The summary is of no use any more, but it was paid for.
        (Err(_), Some(summed)) => Ok(vec![summed_up(attempt, summed, Arrival::Late)]),
        (Err(refusal), None) => Err(refusal),
    }
}

/// Records that a model call did not begin.
pub(crate) fn abandon_model_call(
    session: &Session,
    attempt: ModelAttempt,
    why: &str,
) -> Result<Vec<SessionEvent>, Refusal> {
    open_model_call(session, attempt)?;
    let ModelAttempt { turn, round, number: attempt } = attempt;
    let why = why.to_owned();
    Ok(vec![event(TurnEvent::ModelCallAbandoned { turn, round, attempt, why })])
}

/// Records that nobody works on a model call any more.
pub(crate) fn orphan_model_call(
    session: &Session,
    attempt: ModelAttempt,
) -> Result<Vec<SessionEvent>, Refusal> {
    open_model_call(session, attempt)?;
    let ModelAttempt { turn, round, number: attempt } = attempt;
    Ok(vec![event(TurnEvent::ModelCallOrphaned { turn, round, attempt })])
}

/// Records that a tool call did not begin.
pub(crate) fn abandon_call(
    session: &Session,
    attempt: CallAttempt,
    why: &str,
) -> Result<Vec<SessionEvent>, Refusal> {
    open_call(session, attempt)?;
    let CallAttempt { call, number: attempt } = attempt;
    let why = why.to_owned();
    Ok(vec![event(TurnEvent::CallAbandoned { call, attempt, why })])
}

/// Answers a call of a plan tool that is due. A refusal is an answer too: the model reads it, and no state
/// changes.
pub(crate) fn use_plan_tool(
    session: &Session,
    at: Time,
    turn: TurnId,
    command: &ModelCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ModelCommand::UsePlanTool { call, given } = command;
    let turn = open_turn(session, turn)?;
    let not_next = || moved_on("this call is not the next one");
    let pending = turn.calls().iter().find(|pending| pending.requested.id == *call);
    let requested = &pending.ok_or_else(not_next)?.requested;
    if let Some(own) = OwnTool::named(&requested.tool) {
        let (mut events, reply) = match use_own(session, turn, at, own, requested, given) {
            Ok(used) => used,
            Err(refusal) => {
                let kind = refusal.kind().to_owned();
                (Vec::new(), ToolReply::Refused { kind, words: refusal.to_string() })
            }
        };
        events.push(event(TurnEvent::CallAnswered { call: *call, reply }));
        return Ok(events);
    }
    let (events, reply) = match tools::apply::use_plan_tool(session, turn, requested, given) {
        Ok(used) => used,
        Err(refusal) => {
            let kind = refusal.kind().to_owned();
            (Vec::new(), ToolReply::Refused { kind, words: refusal.to_string() })
        }
    };
    let ended = events.iter().any(|event| matches!(event, PlanEvent::PlanEnded { .. }));
    let plan = session.plan().filter(|_| ended).map(|plan| plan.id);
    let mut news: Vec<_> = plan.into_iter().flat_map(|plan| withdrawn(session, plan)).collect();
    news.extend(events.into_iter().map(SessionEvent::Plan));
    news.push(event(TurnEvent::CallAnswered { call: *call, reply }));
    Ok(news)
}

/// Answers a call of a tool that is neither a plan tool nor of the toolbox.
fn use_own(
    session: &Session,
    turn: &Turn,
    at: Time,
    tool: OwnTool,
    call: &RequestedCall,
    given: &Given,
) -> Result<(Vec<SessionEvent>, ToolReply), Refusal> {
    match tool {
        OwnTool::TaskReport => report_task(session, turn, call),
        OwnTool::MemorySave | OwnTool::MemorySearch | OwnTool::MemoryForget => {
            let (events, reply) =
                memory::apply::use_memory_tool(session, turn, at, tool, call, given)?;
            Ok((events.into_iter().map(SessionEvent::Memory).collect(), reply))
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskReport {
    status: TaskStatus,
    summary: String,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Done,
    Failed,
    Blocked,
}

/// What a run's turn reports of its task. Said twice, it holds once.
fn report_task(
    session: &Session,
    turn: &Turn,
    call: &RequestedCall,
) -> Result<(Vec<SessionEvent>, ToolReply), Refusal> {
    let usable = tools::of_run(session, turn).and(session.auto.context(turn));
    let state = "only a run that goes on reports of a task";
    let context = usable.ok_or_else(|| memory::apply::unavailable(call, state))?;
    let (task, run) = (context.task_id, context.run_id);
    let TaskReport { status, mut summary } = memory::apply::parse(call)?;
    let mut end = summary.len().min(limits::SUMMARY_BYTES_MAX);
    while !summary.is_char_boundary(end) {
        end -= 1;
    }
    summary.truncate(end);
    let open = session.auto.tasks.get(&task).filter(|task| task.ended.is_none());
    if open.is_none() {
        return Err(memory::apply::unavailable(call, "the task has come out already"));
    }
    let reply = ToolReply::Text { text: "Reported.".into() };
    let reported = match status {
        TaskStatus::Done => AutoEvent::TaskEnded { task, end: TaskEnd::Done { summary } },
        TaskStatus::Failed => AutoEvent::TaskEnded { task, end: TaskEnd::Failed { summary } },
        TaskStatus::Blocked => AutoEvent::RunPaused { run, why: RunPause::Reported { summary } },
    };
    Ok((vec![SessionEvent::Auto(reported)], reply))
}

/// The profile that the turn of this cause works under: that of the step whose turn it is.
#[must_use]
pub fn profile_of(session: &Session, queued: Seq) -> Option<&str> {
    match &executed_by(session, queued)?.next_step()?.work {
        HeadWork::Task { profile, .. } => Some(profile),
        HeadWork::Call { .. } => None,
    }
}

/// The plan that the turn of this cause executes.
fn executed_by(session: &Session, queued: Seq) -> Option<&Plan> {
    let cause = session.queue.iter().find(|waiting| waiting.seq == queued)?.cause;
    session.plan().filter(|plan| cause == Cause::Execution { plan: plan.id })
}

/// Begins the turn of a cause. A step whose profile is not the approved one begins none.
pub(crate) fn start_turn(
    session: &Session,
    turn: TurnId,
    queued: Seq,
    profile: Option<&Profile>,
    recalled: &Recalled,
) -> Result<Vec<SessionEvent>, Refusal> {
    let cause = session.queue.iter().find(|waiting| waiting.seq == queued).map(|found| found.cause);
    let run = cause.and_then(|cause| session.auto.run_of(cause));
    let context = run.map(|run| run.context.clone());
    let chain = Chain::in_session(session, context.as_ref());
    let admitted = recalled.items.iter().filter(|ranked| chain.admits(&ranked.item));
    let recalled: Vec<_> = admitted.cloned().collect();
    let stage = session.plan().map(|plan| plan.status.stage());
    let started = |profile| {
        let (context, recalled) = (context.clone(), recalled.clone());
        vec![event(TurnEvent::TurnStarted { turn, queued, profile, context, recalled, stage })]
    };
    if let Some(plan) = executed_by(session, queued)
        && !plan.steps().is_empty()
        && plan.next_step().is_none()
    {
        // The last step came out while its turn was waiting.
        let why = "every step has come out meanwhile".into();
        return Ok(vec![
            SessionEvent::CauseWithdrawn { queued, why },
            SessionEvent::Plan(plan::decide::going_on(plan)),
        ]);
    }
    let Some(name) = profile_of(session, queued) else {
        return Ok(started(None));
    };
    let approval = session.plan().and_then(|plan| plan.status.approval());
    let approved = approval.and_then(|approval| approval.profiles.get(name));
    match profile {
        Some(profile) if profile.name == *name && approved == Some(&profile.digest) => {
            Ok(started(Some(profile.clone())))
        }
        Some(_) | None => {
            let reason = PauseReason::ProfileChanged { profile: name.to_owned() };
            let why = reason.in_words();
            Ok(vec![
                SessionEvent::CauseWithdrawn { queued, why },
                SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }),
            ])
        }
    }
}

pub(crate) fn start_model_call(
    session: &Session,
    at: Time,
    attempt: ModelAttempt,
    bracket: Bracket,
    quota: Option<&QuotaUse>,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ModelAttempt { turn, round, number } = attempt;
    let open = open_turn(session, turn)?;
    match open.step {
        Step::ModelDue { attempt: due, .. } if open.attempt(due) == attempt => {}
        Step::ModelDue { .. } | Step::ModelOpen { .. } | Step::Calls(_) => {
            return Err(moved_on("this model call is not due"));
        }
    }
    let rounds = open.profile.as_ref().and_then(|profile| profile.rounds_max);
    let rounds_max =
        rounds.map_or(limits::MODEL_ROUNDS_MAX, |max| max.min(limits::MODEL_ROUNDS_MAX));
    if round > rounds_max {
        let words = format!("the turn asked the model {rounds_max} times without an end");
        let failure = ModelFailure::new(FailureKind::Limit, words);
        return Ok(ended(session, open, TurnEnd::Failed { failure }));
    }
    if let Some(micros) = spent(session, open) {
        let reason = PauseReason::OutOfBudget { micros };
        let failure = ModelFailure::new(FailureKind::Limit, reason.in_words());
        let end = TurnEnd::Failed { failure };
        return Ok(vec![
            event(TurnEvent::TurnFinished { turn, end }),
            SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }),
        ]);
    }
    // A turn that only sums up answers nobody: what was said waits for a turn of its own.
    let takes_part = open.work != Work::Compacts;
    let messages =
        session.queue.iter().filter(|waiting| takes_part && waiting.cause == Cause::Message);
    let entered: Vec<_> = messages.map(|waiting| waiting.seq).collect();
    if !entered.is_empty() && matches!(open.cause.cause, Cause::Tick { .. }) {
        return Ok(vec![event(TurnEvent::TurnFinished { turn, end: TurnEnd::Yielded })]);
    }
    if let Some(reached) = quota.and_then(|quota| quota.reached(&BY_CALL, at)) {
        let until = at.plus_micros(LOOK_AGAIN_MICROS);
        return Ok(vec![event(TurnEvent::TurnPaused { turn, reached, until })]);
    }
    match autonomy::decide::allowance(session, open, at, Doing::Asking) {
        Allowance::End(events) => Ok(events),
        Allowance::Go(mut events) => {
            events.extend(warnings(session, at, quota));
            events.push(event(TurnEvent::ModelCallStarted {
                turn,
                round,
                attempt: number,
                bracket,
                entered,
            }));
            Ok(events)
        }
    }
}

/// The first model call of a turn that has just begun. What holds it back is decided when it is due by itself.
pub(crate) fn first_model_call(
    session: &Session,
    at: Time,
    turn: TurnId,
    bracket: Bracket,
    quota: Option<&QuotaUse>,
) -> Vec<SessionEvent> {
    let decided = start_model_call(session, at, ModelAttempt::first(turn), bracket, quota);
    let begins = |events: &Vec<_>| {
        let started = |event: &SessionEvent| {
            matches!(event, SessionEvent::Turn(TurnEvent::ModelCallStarted { .. }))
        };
        events.iter().any(started)
    };
    decided.ok().filter(begins).unwrap_or_default()
}

/// The limits of the owner of which this session was not told yet.
fn warnings(
    session: &Session,
    at: Time,
    quota: Option<&QuotaUse>,
) -> impl Iterator<Item = SessionEvent> {
    let near = quota.map(|quota| quota.near(&BY_CALL, at)).unwrap_or_default().into_iter();
    let news = near.filter(|near| session.warned.get(&near.limit) != Some(&near.until));
    news.map(|near| event(TurnEvent::LimitWarned { near }))
}

/// A turn that waits for a limit looks again whether it may go on.
pub(crate) fn resume_turn(session: &Session) -> Result<Vec<SessionEvent>, Refusal> {
    let waits = session.turn.as_ref().filter(|turn| {
        turn.paused.is_some() && matches!(turn.step, Step::ModelDue { not_before: Some(_), .. })
    });
    let turn = waits.ok_or_else(|| moved_on("no turn waits for a limit"))?.id;
    Ok(vec![event(TurnEvent::TurnResumed { turn })])
}

/// The money that was leased for this execution, if it is spent.
fn spent(session: &Session, turn: &Turn) -> Option<u64> {
    let plan = leasing_plan(session, turn)?;
    let leased = plan.status.approval()?.envelope.spend_micros_max?;
    (plan.spent_micros >= leased).then_some(leased)
}

fn answered(
    session: &Session,
    turn: &Turn,
    at: Time,
    attempt: ModelAttempt,
    answer: &Answer,
    others: u32,
) -> Vec<SessionEvent> {
    let unusable = |kind, message: String| {
        let failure = ModelFailure::new(kind, message);
        model_failed(session, turn, at, attempt, failure, others, answer.sent.clone())
    };
    if answer.calls.len() > limits::CALLS_PER_ANSWER_MAX {
        let count = answer.calls.len();
        let message = format!(
            "the model asked for {count} calls at once; the limit is {}",
            limits::CALLS_PER_ANSWER_MAX
        );
        return unusable(FailureKind::Malformed, message);
    }
    let is_empty = answer.text.trim().is_empty() && answer.calls.is_empty();
    if is_empty && turn.planned.is_none() {
        return unusable(FailureKind::Empty, "the model said nothing".into());
    }
    let mut events = vec![event(TurnEvent::ModelAnswered {
        turn: turn.id,
        round: turn.round,
        answer: answer.clone(),
        arrival: Arrival::InTime,
    })];
    for call in &answer.calls {
        if let CallKind::Unusable { problem } = &call.kind {
            let reply = ToolReply::Refused { kind: "unusable_call".into(), words: problem.clone() };
            events.push(event(TurnEvent::CallAnswered { call: call.id, reply }));
        }
    }
    if answer.calls.is_empty() {
        let end = turn.planned.map_or(TurnEnd::Answered, |plan| TurnEnd::Planned { plan });
        events.extend(ended(session, turn, end));
    }
    events
}

fn model_failed(
    session: &Session,
    turn: &Turn,
    at: Time,
    attempt: ModelAttempt,
    failure: ModelFailure,
    others: u32,
    sent: Option<Box<Sent>>,
) -> Vec<SessionEvent> {
    let (retry_at, asking) = match again(turn.id, turn.asking, at, &failure, others) {
        Again::Never => (None, turn.asking),
        Again::At(time, asking) => (Some(time), asking),
    };
    let mut events = vec![event(TurnEvent::ModelCallFailed {
        turn: attempt.turn,
        round: attempt.round,
        attempt: attempt.number,
        failure: failure.clone(),
        retry_at,
        asking,
        sent,
    })];
    if retry_at.is_none() {
        events.extend(ended(session, turn, TurnEnd::Failed { failure }));
    }
    events
}

/// What was said before is summed up; a turn that is there for nothing else has ended.
fn compacted(
    session: &Session,
    turn: &Turn,
    attempt: ModelAttempt,
    summed: Option<&Summed>,
) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    if let Some(summed) = summed {
        events.push(summed_up(attempt, summed, Arrival::InTime));
    }
    let messages = summed.map_or(0, |summed| summed.messages);
    if turn.work == Work::Compacts {
        events.extend(ended(session, turn, TurnEnd::Compacted { messages }));
    }
    events
}

fn summed_up(attempt: ModelAttempt, summed: &Summed, arrival: Arrival) -> SessionEvent {
    let ModelAttempt { turn, round, number: attempt } = attempt;
    let Summed { upto, messages, summary, usage, by } = summed.clone();
    event(TurnEvent::ViewCompacted {
        turn,
        round,
        attempt,
        upto,
        messages,
        summary,
        usage,
        by,
        arrival,
    })
}

pub(crate) fn start_calls(
    session: &Session,
    at: Time,
    calls: &[StartingCall],
    bracket: Bracket,
    ask_until: Time,
) -> Result<Vec<SessionEvent>, Refusal> {
    let turn = session.turn.as_ref().ok_or_else(|| moved_on("the turn is over"))?;
    let warnings = match autonomy::decide::allowance(session, turn, at, Doing::Calling) {
        Allowance::End(events) => return Ok(events),
        Allowance::Go(warnings) => warnings,
    };
    let started = calls.iter().map(|starting| {
        let Some(pending) =
            turn.calls().iter().find(|pending| pending.requested.id == starting.attempt.call)
        else {
            return Vec::new();
        };
        start_call(
            session,
            turn,
            pending,
            starting,
            gate(session, turn, at, pending, starting),
            bracket,
            ask_until,
        )
    });
    Ok(warnings.into_iter().chain(started.flatten()).collect())
}

fn start_call(
    session: &Session,
    turn: &Turn,
    pending: &Call,
    starting: &StartingCall,
    verdict: Gate,
    bracket: Bracket,
    ask_until: Time,
) -> Vec<SessionEvent> {
    let (CallAttempt { call, number: attempt }, step) = (starting.attempt, pending.step);
    match verdict {
        Gate::Open(plan) => {
            vec![event(TurnEvent::CallStarted { call, attempt, bracket, plan, step })]
        }
        Gate::Ask { why, plan } => {
            permission::ask(session, pending, starting, why, plan, ask_until)
        }
        Gate::Shut { kind, words } => {
            let reply = ToolReply::Refused { kind: kind.into(), words };
            vec![event(TurnEvent::CallAnswered { call, reply })]
        }
        Gate::Changed => {
            let tool = pending.requested.tool.clone();
            let mut events =
                unrun(turn, "tool_changed", "not run: a tool is not the one that was approved");
            let end = turn.planned.map_or(TurnEnd::Answered, |plan| TurnEnd::Planned { plan });
            events.push(event(TurnEvent::TurnFinished { turn: turn.id, end }));
            let reason = PauseReason::ToolChanged { tool };
            events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
            events
        }
    }
}

pub(crate) fn record_result(
    session: &Session,
    of: CallAttempt,
    result: &CallResult,
    note_every: u64,
) -> Result<Vec<SessionEvent>, Refusal> {
    let CallAttempt { call, number: attempt } = of;
    let open = session.open.get(&call).filter(|open| open.attempt == attempt);
    let doubt = session.doubts.get(&call).filter(|doubt| doubt.attempt == attempt);
    if open.is_none() && doubt.is_none() {
        return Err(moved_on("nothing is known of this try of the call"));
    }
    let mut events = vec![event(TurnEvent::CallFinished { call, attempt, result: result.clone() })];
    let of = open.map(|open| (open.plan, open.step));
    let of = of.or(doubt.map(|doubt| (doubt.plan, doubt.step)));
    if let Some((Some(plan), Some(step))) = of
        && session.plan().is_some_and(|active| active.id == plan)
    {
        events.extend(replay::step_ended(session, open.map(|open| open.turn), step, result));
    }
    if let Some(plan) = session.plan()
        && doubt.is_some()
        && session.doubts.len() == 1
        && plan.status.name() == "executing_paused"
    {
        let reason = PauseReason::DoubtSettled;
        events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
    }
    if let Some(page) = open.and_then(|open| notebook::noted(session, open, result, note_every)) {
        events.push(SessionEvent::Notebook(NotebookEvent::NoteDue { call, page }));
    }
    Ok(events)
}

pub(crate) fn orphan_call(
    session: &Session,
    of: CallAttempt,
) -> Result<Vec<SessionEvent>, Refusal> {
    let (open, CallAttempt { call, number: attempt }) = (open_call(session, of)?, of);
    if open.facts.repeat == Repeat::Harmless {
        return Ok(vec![event(TurnEvent::CallOrphaned { call, attempt })]);
    }
    let mut events = vec![event(TurnEvent::CallInDoubt { call, attempt })];
    if let Some(turn) = session.turn.as_ref().filter(|turn| turn.id == open.turn) {
        let rest = unrun(turn, "in_doubt", "not run: the outcome of an earlier call is unknown");
        events.extend(rest.into_iter().filter(|event| !answers(event, call)));
        events.extend(ended(session, turn, TurnEnd::InDoubt { call }));
    } else if let Some(plan) = session.plan()
        && open.plan == Some(plan.id)
        && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
    {
        // It was resumed while the call was left running: it must not be made again meanwhile.
        events.extend(withdrawn(session, plan.id));
        let reason = PauseReason::InDoubt;
        events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
    }
    Ok(events)
}

fn open_call(session: &Session, of: CallAttempt) -> Result<&OpenCall, Refusal> {
    let open = session.open.get(&of.call).filter(|open| open.attempt == of.number);
    open.ok_or_else(|| moved_on("this try of the call is not open"))
}

/// The turn's end, and the pause of an execution that nobody reported on.
fn ended(session: &Session, turn: &Turn, end: TurnEnd) -> Vec<SessionEvent> {
    let reason = match &end {
        TurnEnd::Answered | TurnEnd::Planned { .. } | TurnEnd::Compacted { .. } => {
            PauseReason::Unreported
        }
        TurnEnd::Failed { failure } => PauseReason::TurnFailed { message: failure.message.clone() },
        TurnEnd::Stopped { .. } | TurnEnd::Yielded => PauseReason::Stopped,
        TurnEnd::InDoubt { .. } => PauseReason::InDoubt,
    };
    let mut events = vec![event(TurnEvent::TurnFinished { turn: turn.id, end })];
    let runs = session.plan().is_some_and(|plan| {
        turn.executes() == Some(plan.id)
            && !turn.reported
            && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
    });
    if runs {
        events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
    }
    events
}

fn open_turn(session: &Session, id: TurnId) -> Result<&Turn, Refusal> {
    session.turn.as_ref().filter(|turn| turn.id == id).ok_or_else(|| moved_on("the turn is over"))
}

fn open_model_call(session: &Session, attempt: ModelAttempt) -> Result<&Turn, Refusal> {
    let turn = open_turn(session, attempt.turn)?;
    let is_open = turn.open_attempt() == Some(attempt);
    is_open.then_some(turn).ok_or_else(|| moved_on("this model call is not open"))
}
