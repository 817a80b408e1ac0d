//! What a turn's event means. Never judges: that was `decide`'s job, once.

use crate::{
    model::{
        attempt::CallAttempt,
        command::{Permit, Verdict},
        effect::Bracket,
        id::{CallId, PlanId, Seq, TurnId},
        limits,
        plan::{
            Grant, PauseReason, Plan, PlanWork, Progress, Strategy,
            step::{HeadWork, StepHead},
        },
        session::{CorruptJournal, Session},
        time::Time,
        turn::{
            Answer, Call, CallKind, CallResult, CallState, Cause, Doubt, OpenCall, RequestedCall,
            Step, Turn, Work,
            ask::Ask,
            asking::Asking,
            event::{Arrival, TurnEvent},
            profile::Profile,
        },
    },
    rules::{autonomy, notebook, plan},
};

/// How much of a call's arguments is kept for display.
const ARGUMENTS_SHOWN_CHARS: usize = 200;

/// The model is not asked before then.
fn wait_until(turn: &mut Turn, until: Option<Time>) {
    if let Step::ModelDue { not_before, .. } = &mut turn.step {
        *not_before = until;
    }
}

/// Applies a fact that stands at this place in the stream.
#[expect(clippy::too_many_lines, reason = "one arm for each event of a turn")]
pub(crate) fn evolve(
    session: &mut Session,
    seq: Seq,
    event: &TurnEvent,
) -> Result<(), CorruptJournal> {
    match event {
        TurnEvent::TurnStarted { turn, queued, profile, .. } => {
            start_turn(session, seq, *turn, *queued, profile.as_ref())?;
        }
        TurnEvent::ModelCallStarted { attempt, bracket, entered, .. } => {
            session.queue.retain(|waiting| !entered.contains(&waiting.seq));
            let cause = open(session, seq)?.cause.cause;
            session.auto.model_call_started(cause);
            let turn = open(session, seq)?;
            turn.step = Step::ModelOpen { attempt: *attempt, bracket: *bracket };
            turn.paused = None;
        }
        TurnEvent::TurnPaused { reached, until, .. } => {
            let turn = open(session, seq)?;
            wait_until(turn, Some(*until));
            turn.paused = Some(reached.clone());
        }
        TurnEvent::TurnResumed { .. } => {
            // It is paused until the model is asked: then there must be room for it.
            wait_until(open(session, seq)?, None);
        }
        TurnEvent::LimitWarned { near } => {
            session.warned.insert(near.limit, near.until);
        }
        TurnEvent::ModelAnswered { answer, arrival, .. } => {
            session.usage = session.usage.plus(answer.usage);
            measure(session, answer);
            if *arrival == Arrival::InTime {
                take_answer(session, seq, answer)?;
            }
        }
        TurnEvent::ModelCallFailed { attempt, retry_at, asking, .. } => {
            let step = Step::ModelDue { attempt: attempt + 1, not_before: *retry_at };
            let turn = open(session, seq)?;
            (turn.step, turn.asking) = (step, *asking);
        }
        TurnEvent::ViewCompacted { usage, arrival: Arrival::Late, .. } => {
            session.usage = session.usage.plus(*usage);
        }
        TurnEvent::ViewCompacted { attempt, usage, arrival: Arrival::InTime, .. } => {
            session.usage = session.usage.plus(*usage);
            let cost = Answer { usage: *usage, ..Answer::default() };
            spend(session, &cost);
            let cause = open(session, seq)?.cause.cause;
            session.auto.answered(cause, &cost);
            open(session, seq)?.step = Step::ModelDue { attempt: attempt + 1, not_before: None };
        }
        TurnEvent::ModelCallAbandoned { attempt, .. } => {
            let cause = open(session, seq)?.cause.cause;
            session.auto.model_call_abandoned(cause);
            open(session, seq)?.step = Step::ModelDue { attempt: attempt + 1, not_before: None };
        }
        TurnEvent::ModelCallOrphaned { attempt, .. } => {
            open(session, seq)?.step = Step::ModelDue { attempt: attempt + 1, not_before: None };
        }
        TurnEvent::CallStarted { call, attempt, bracket, plan, step } => {
            let attempt = CallAttempt { call: *call, number: *attempt };
            start_call(session, seq, attempt, *bracket, (*plan, *step))?;
        }
        TurnEvent::PermissionAsked { call, digest, facts, aim, why, expires, plan } => {
            let RequestedCall { tool, arguments, .. } = wait_for_permission(session, seq, *call)?;
            if let Some(plan) = leased(session, *plan) {
                let reason = PauseReason::AsksPermission { tool: tool.clone() };
                plan::evolve::set_progress(plan, Progress::Paused(reason));
            }
            session.ask = Some(Ask {
                call: *call,
                digest: *digest,
                tool,
                arguments,
                facts: facts.clone(),
                aim: aim.clone(),
                why: why.clone(),
                expires: *expires,
                plan: *plan,
            });
        }
        TurnEvent::PermissionDecided { permit, .. } => {
            let ask = session.ask.take();
            let ask =
                ask.ok_or_else(|| CorruptJournal::new(seq, "a decision that nobody asked for"))?;
            permitted(session, &ask, permit);
        }
        TurnEvent::CallFinished { call, attempt, result } => {
            finish_call(session, CallAttempt { call: *call, number: *attempt }, result);
        }
        TurnEvent::CallAnswered { call, .. } => close(session, *call, |_| true),
        TurnEvent::CallAbandoned { call, attempt, .. } => {
            let plan = session.open.remove(call).and_then(|open| open.plan);
            // It was counted when it was about to be made.
            if let Some(active) = leased(session, plan) {
                active.calls_made = active.calls_made.saturating_sub(1);
            }
            if let Some(cause) = make_again(session, *call, *attempt) {
                session.auto.call_abandoned(cause);
            }
        }
        TurnEvent::CallOrphaned { call, attempt } => {
            session.open.remove(call);
            make_again(session, *call, *attempt);
        }
        TurnEvent::CallInDoubt { call, attempt } => {
            doubt_call(session, seq, CallAttempt { call: *call, number: *attempt })?;
        }
        TurnEvent::DoubtSettled { call, verdict, .. } => {
            let doubt = session.doubts.remove(call);
            // A person looked, and the call was made: its step is not one without a call.
            if *verdict == Verdict::Happened
                && let Some(doubt) = doubt
                && let Some(plan) = leased(session, doubt.plan)
            {
                plan.steps_with_calls.extend(doubt.step);
            }
        }
        TurnEvent::TurnFinished { end, .. } => {
            if let Some(turn) = session.turn.take() {
                session.auto.turn_ended(turn.cause.cause, end);
            }
            session.ask = None;
        }
    }
    Ok(())
}

fn start_turn(
    session: &mut Session,
    seq: Seq,
    turn: TurnId,
    queued: Seq,
    profile: Option<&Profile>,
) -> Result<(), CorruptJournal> {
    let at = session.queue.iter().position(|waiting| waiting.seq == queued);
    let at = at.ok_or_else(|| CorruptJournal::new(seq, "a turn without a queued cause"))?;
    let cause = session.queue.remove(at);
    let (work, step) = begun(session, cause.cause);
    session.turn = Some(Turn {
        id: turn,
        cause,
        started: seq,
        round: 1,
        step,
        planned: None,
        work,
        profile: profile.cloned(),
        reported: false,
        summary_text: String::new(),
        asking: Asking::default(),
        paused: None,
    });
    Ok(())
}

/// An answer that came in time: its calls are due.
fn take_answer(session: &mut Session, seq: Seq, answer: &Answer) -> Result<(), CorruptJournal> {
    let pending = |requested: &RequestedCall| Call {
        requested: requested.clone(),
        state: CallState::Pending(1),
        step: None,
        permit: None,
    };
    spend(session, answer);
    let cause = open(session, seq)?.cause.cause;
    session.auto.answered(cause, answer);
    let turn = open(session, seq)?;
    turn.summary_text = summary_text(answer);
    turn.asking = Asking::default();
    turn.step = Step::Calls(answer.calls.iter().map(pending).collect());
    Ok(())
}

fn start_call(
    session: &mut Session,
    seq: Seq,
    attempt: CallAttempt,
    bracket: Bracket,
    (plan, step): (Option<PlanId>, Option<u32>),
) -> Result<(), CorruptJournal> {
    let CallAttempt { call, number } = attempt;
    let turn = open(session, seq)?;
    let id = turn.id;
    let pending =
        find(turn, call).ok_or_else(|| CorruptJournal::new(seq, "an unknown call started"))?;
    pending.state = CallState::Open(number);
    let CallKind::Tool(facts) = &pending.requested.kind else {
        return Err(CorruptJournal::new(seq, "a call started that is no tool's"));
    };
    let started = OpenCall {
        turn: id,
        tool: pending.requested.tool.clone(),
        arguments: pending.requested.arguments.chars().take(ARGUMENTS_SHOWN_CHARS).collect(),
        attempt: number,
        bracket,
        facts: facts.clone(),
        plan,
        step,
    };
    session.open.insert(call, started);
    let cause = open(session, seq)?.cause.cause;
    session.auto.call_started(cause);
    if let Some(active) = leased(session, plan) {
        active.calls_made += 1;
    }
    Ok(())
}

/// Marks a call as one that waits for a person, and gives what it asks for.
fn wait_for_permission(
    session: &mut Session,
    seq: Seq,
    call: CallId,
) -> Result<RequestedCall, CorruptJournal> {
    let pending = find(open(session, seq)?, call);
    let pending = pending.ok_or_else(|| CorruptJournal::new(seq, "an unknown call asks"))?;
    if let CallState::Pending(attempt) = pending.state {
        pending.state = CallState::Asking(attempt);
    }
    Ok(pending.requested.clone())
}

fn finish_call(session: &mut Session, attempt: CallAttempt, result: &CallResult) {
    let CallAttempt { call, number } = attempt;
    notebook::count(session, call, result);
    let open = session.open.remove(&call);
    let doubt = session.doubts.remove(&call);
    let read_outside = open.as_ref().filter(|open| open.facts.effect.brings_outside());
    session.outside.extend(read_outside.map(|open| open.tool.clone()));
    let opened = open.map(|open| (open.plan, open.step));
    let doubted = doubt.map(|doubt| (doubt.plan, doubt.step));
    if let Some((plan, step)) = opened.or(doubted)
        && let Some(plan) = leased(session, plan)
    {
        plan::evolve::call_ended(plan, step, result);
    }
    observe(session, call, &result.output);
    close(session, call, |state| state == CallState::Open(number));
}

fn doubt_call(session: &mut Session, seq: Seq, attempt: CallAttempt) -> Result<(), CorruptJournal> {
    let missing = || CorruptJournal::new(seq, "a call in doubt that never started");
    let open = session.open.remove(&attempt.call).ok_or_else(missing)?;
    let doubt = Doubt {
        tool: open.tool,
        arguments: open.arguments,
        attempt: attempt.number,
        deadline: open.bracket.deadline,
        plan: open.plan,
        step: open.step,
    };
    session.doubts.insert(attempt.call, doubt);
    close(session, attempt.call, |_| true);
    Ok(())
}

/// A call of the open turn is due again; gives the cause of that turn.
fn make_again(session: &mut Session, call: CallId, attempt: u32) -> Option<Cause> {
    let turn = session.turn.as_mut()?;
    let cause = turn.cause.cause;
    let call = find(turn, call).filter(|call| call.state == CallState::Open(attempt))?;
    call.state = CallState::Pending(attempt + 1);
    Some(cause)
}

/// What a call of the open turn gave, for the guard of the run whose turn it is.
fn observe(session: &mut Session, call: CallId, output: &str) {
    let Some(turn) = &session.turn else { return };
    let Some(pending) = turn.calls().iter().find(|pending| pending.requested.id == call) else {
        return;
    };
    if session.auto.run_of(turn.cause.cause).is_none() {
        return;
    }
    let (tool, arguments) = (&pending.requested.tool, &pending.requested.arguments);
    let seen = autonomy::evolve::observation(tool, arguments, output);
    let cause = turn.cause.cause;
    session.auto.observed(cause, seen);
}

fn open(session: &mut Session, seq: Seq) -> Result<&mut Turn, CorruptJournal> {
    session.turn.as_mut().ok_or_else(|| CorruptJournal::new(seq, "a turn's event without a turn"))
}

fn find(turn: &mut Turn, id: CallId) -> Option<&mut Call> {
    match &mut turn.step {
        Step::Calls(calls) => calls.iter_mut().find(|call| call.requested.id == id),
        Step::ModelDue { .. } | Step::ModelOpen { .. } => None,
    }
}

/// Gives a call its answer; when all have theirs, the model is due.
fn close(session: &mut Session, id: CallId, fits: impl Fn(CallState) -> bool) {
    let Some(turn) = &mut session.turn else { return };
    if let Some(call) = find(turn, id)
        && fits(call.state)
    {
        call.state = CallState::Answered;
        call.requested.arguments = String::new();
    }
    if let Step::Calls(calls) = &turn.step
        && calls.iter().all(|call| call.state == CallState::Answered)
    {
        turn.round += 1;
        turn.step = Step::ModelDue { attempt: 1, not_before: None };
    }
}

/// The call goes on as a person decided, and so does the execution that waited for it.
fn permitted(session: &mut Session, ask: &Ask, permit: &Permit) {
    if let Some(plan) = leased(session, ask.plan) {
        plan::evolve::set_progress(plan, Progress::Running);
        if let (Permit::UntilPlanEnds, Some(scope)) = (permit, ask.aim.pattern()) {
            let (tool, schema) = (ask.tool.clone(), ask.facts.schema);
            plan.grants.push(Grant { tool, schema, scope });
        }
    }
    let Some(call) = session.turn.as_mut().and_then(|turn| find(turn, ask.call)) else { return };
    if let CallState::Asking(attempt) = call.state {
        call.state = CallState::Pending(attempt);
    }
    call.permit = match permit {
        Permit::Once | Permit::UntilPlanEnds => Some(ask.facts.schema),
        Permit::Deny | Permit::Replan { .. } => None,
    };
}

/// The active plan, if it is this one.
fn leased(session: &mut Session, plan: Option<PlanId>) -> Option<&mut Plan> {
    match &mut session.work {
        PlanWork::Active(active) if plan == Some(active.id) => Some(active),
        PlanWork::Active(_) | PlanWork::Inactive => None,
    }
}

/// Adds what an answer cost to the execution that it belongs to.
fn spend(session: &mut Session, answer: &Answer) {
    let plan = session.turn.as_ref().and_then(Turn::executes);
    if let Some(plan) = leased(session, plan) {
        plan.spent_micros += answer.usage.cost_micros;
    }
}

/// Remembers how the model that answered counts.
fn measure(session: &mut Session, answer: &Answer) {
    let Some(sent) = &answer.sent else { return };
    let known = session.measures.contains_key(&sent.model);
    if !known && session.measures.len() >= limits::MEASURES_MAX {
        session.measures.pop_first();
    }
    let bytes = sent.system_bytes + sent.tools_bytes + sent.message_bytes;
    let measure = session.measures.entry(sent.model.clone()).or_default();
    *measure = measure.with(bytes, answer.usage.input);
}

/// What a turn with this cause is there for, and what is under way in it first.
fn begun(session: &Session, cause: Cause) -> (Work, Step) {
    let plan = session.plan().filter(|plan| cause == Cause::Execution { plan: plan.id });
    let ask_first = Step::ModelDue { attempt: 1, not_before: None };
    if cause == Cause::Compaction {
        return (Work::Compacts, ask_first);
    }
    match plan.map(|plan| (plan, plan.strategy, plan.next_step())) {
        Some((plan, Strategy::Collect, _)) => (Work::Replays, Step::Calls(recorded(plan))),
        Some((_, Strategy::Build, Some(step))) => (Work::Does { step: step.number }, ask_first),
        Some((_, Strategy::Build | Strategy::Document, _)) | None => (Work::Answers, ask_first),
    }
}

/// The recorded calls that are still to be made. Their arguments stay in the journal.
fn recorded(plan: &Plan) -> Vec<Call> {
    let call = |step: &StepHead| match &step.work {
        HeadWork::Call { tool, facts } => Some(Call {
            requested: RequestedCall {
                id: step.call(plan.id, plan.executions),
                wire_id: String::new(),
                tool: tool.clone(),
                arguments: String::new(),
                kind: CallKind::Tool(facts.clone()),
            },
            state: CallState::Pending(1),
            step: Some(step.number),
            permit: None,
        }),
        HeadWork::Task { .. } => None,
    };
    plan.unsettled().filter_map(call).collect()
}

/// The words of an answer that finalises a plan: they may be its summary.
fn summary_text(answer: &Answer) -> String {
    if !answer.calls.iter().any(|call| call.tool == crate::model::tools::PlanTool::Finalize.name())
    {
        return String::new();
    }
    let mut end = answer.text.len().min(limits::SUMMARY_BYTES_MAX);
    while !answer.text.is_char_boundary(end) {
        end -= 1;
    }
    answer.text[..end].to_owned()
}
