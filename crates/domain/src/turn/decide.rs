//! Which reports of the runtime move a turn, and the gate through which every effect passes.

use crate::{
    actor::Person,
    command::{ModelCommand, StartingCall, SystemCommand},
    effect::{Bracket, Effect, Repeat, ToolFacts},
    id::{CallId, PlanId, Seq, TurnId},
    limits,
    next::{DueCall, Next, next},
    plan::{
        self, PauseReason, Plan, PlanEvent, PlanStatus, Progress,
        step::{HeadWork, OnFailure, StepEnd},
    },
    refusal::Refusal,
    session::{Session, SessionEvent, withdrawn},
    time::Time,
    tools,
    turn::{
        Answer, Arrival, Call, CallKind, CallResult, CallState, CallStatus, Cause, FailureKind,
        ModelFailure, Profile, Step, Told, Turn, TurnEnd, TurnEvent, Work,
    },
};

/// What the runtime reports: it moves the turn, is recorded as late, or is refused as moved on.
pub(crate) fn decide_system(
    session: &Session,
    at: Time,
    command: &SystemCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    match command {
        SystemCommand::StartTurn { turn, queued, profile } => {
            start_turn(session, *turn, *queued, profile.as_ref())
        }
        SystemCommand::StartModelCall { turn, round, attempt, bracket } => {
            start_model_call(session, *turn, *round, *attempt, *bracket)
        }
        SystemCommand::RecordAnswer { turn, round, attempt, answer } => {
            match open_model_call(session, *turn, *round, *attempt) {
                Ok(open) => Ok(answered(session, open, at, *attempt, answer)),
                Err(_) => Ok(vec![event(TurnEvent::ModelAnswered {
                    turn: *turn,
                    round: *round,
                    answer: answer.clone(),
                    arrival: Arrival::Late,
                })]),
            }
        }
        SystemCommand::RecordModelFailure { turn, round, attempt, failure } => {
            let turn = open_model_call(session, *turn, *round, *attempt)?;
            Ok(model_failed(session, turn, at, *attempt, failure.clone()))
        }
        SystemCommand::OrphanModelCall { turn, round, attempt } => {
            open_model_call(session, *turn, *round, *attempt)?;
            let (turn, round, attempt) = (*turn, *round, *attempt);
            Ok(vec![event(TurnEvent::ModelCallOrphaned { turn, round, attempt })])
        }
        SystemCommand::StartCalls { calls, bracket } => start_calls(session, at, calls, *bracket),
        SystemCommand::RecordResult { call, attempt, result } => {
            record_result(session, *call, *attempt, result)
        }
        SystemCommand::OrphanCall { call, attempt } => orphan_call(session, *call, *attempt),
    }
}

/// Answers a call of a plan tool. A refusal is an answer too: the model reads it, and no state
/// changes.
pub(crate) fn decide_model(
    session: &Session,
    turn: TurnId,
    command: &ModelCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ModelCommand::UsePlanTool { call, given } = command;
    let turn = open_turn(session, turn)?;
    let not_next = || moved_on("this call is not the next one");
    if next(session) != (Next::UsePlanTool { turn: turn.id, call: *call }) {
        return Err(not_next());
    }
    let asked = turn.calls().iter().find(|asked| asked.requested.id == *call);
    let requested = &asked.ok_or_else(not_next)?.requested;
    let (events, told) = match tools::using::use_plan_tool(session, turn, requested, given) {
        Ok(used) => used,
        Err(refusal) => {
            let kind = refusal.kind().to_owned();
            (Vec::new(), Told::Refused { kind, words: refusal.to_string() })
        }
    };
    let ended = events.iter().any(|event| matches!(event, PlanEvent::PlanEnded { .. }));
    let plan = session.plan().filter(|_| ended).map(|plan| plan.id);
    let mut news: Vec<_> = plan.into_iter().flat_map(|plan| withdrawn(session, plan)).collect();
    news.extend(events.into_iter().map(SessionEvent::Plan));
    news.push(event(TurnEvent::CallAnswered { call: *call, told }));
    Ok(news)
}

/// Ends the open turn by a person's word: every call gets its answer, what runs is left to end.
pub(crate) fn stopped(session: &Session, by: &Person) -> Vec<SessionEvent> {
    let Some(turn) = &session.turn else { return Vec::new() };
    let mut events = unrun(turn, "stopped", "not run: a person stopped the turn");
    events.push(event(TurnEvent::TurnFinished {
        turn: turn.id,
        end: TurnEnd::Stopped { by: by.clone() },
    }));
    events
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
fn start_turn(
    session: &Session,
    turn: TurnId,
    queued: Seq,
    profile: Option<&Profile>,
) -> Result<Vec<SessionEvent>, Refusal> {
    if next(session) != Next::StartTurn(queued) {
        return Err(moved_on("this cause is not the next one"));
    }
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
        return Ok(vec![event(TurnEvent::TurnStarted { turn, queued, profile: None })]);
    };
    let approval = session.plan().and_then(|plan| plan.status.approval());
    let approved = approval.and_then(|approval| approval.profiles.get(name));
    match profile {
        Some(profile) if profile.name == *name && approved == Some(&profile.digest) => {
            let profile = Some(profile.clone());
            Ok(vec![event(TurnEvent::TurnStarted { turn, queued, profile })])
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

fn start_model_call(
    session: &Session,
    turn: TurnId,
    round: u32,
    attempt: u32,
    bracket: Bracket,
) -> Result<Vec<SessionEvent>, Refusal> {
    let open = open_turn(session, turn)?;
    match open.step {
        Step::ModelDue { attempt: due, .. } if due == attempt && open.round == round => {}
        Step::ModelDue { .. } | Step::ModelOpen { .. } | Step::Calls(_) => {
            return Err(moved_on("this model call is not due"));
        }
    }
    let rounds = open.profile.as_ref().and_then(|profile| profile.rounds_max);
    let rounds_max =
        rounds.map_or(limits::MODEL_ROUNDS_MAX, |max| max.min(limits::MODEL_ROUNDS_MAX));
    if round > rounds_max {
        let failure = ModelFailure {
            kind: FailureKind::Limit,
            message: format!("the turn asked the model {rounds_max} times without an end"),
            retry_after_micros: None,
        };
        return Ok(ended(session, open, TurnEnd::Failed { failure }));
    }
    let entered = session
        .queue
        .iter()
        .filter(|waiting| waiting.cause == crate::turn::Cause::Message)
        .map(|waiting| waiting.seq)
        .collect();
    Ok(vec![event(TurnEvent::ModelCallStarted { turn, round, attempt, bracket, entered })])
}

fn answered(
    session: &Session,
    turn: &Turn,
    at: Time,
    attempt: u32,
    answer: &Answer,
) -> Vec<SessionEvent> {
    let unusable = |kind, message: String| {
        let failure = ModelFailure { kind, message, retry_after_micros: None };
        model_failed(session, turn, at, attempt, failure)
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
            let told = Told::Refused { kind: "unusable_call".into(), words: problem.clone() };
            events.push(event(TurnEvent::CallAnswered { call: call.id, told }));
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
    attempt: u32,
    failure: ModelFailure,
) -> Vec<SessionEvent> {
    let again = failure.kind.may_pass() && attempt < limits::MODEL_ATTEMPTS_MAX;
    let backoff = 500_000_i64 << attempt.min(6);
    let wait =
        failure.retry_after_micros.unwrap_or(backoff).clamp(0, limits::RETRY_WAIT_MICROS_MAX);
    let retry_at = again.then(|| at.plus_micros(wait));
    let mut events = vec![event(TurnEvent::ModelCallFailed {
        turn: turn.id,
        round: turn.round,
        attempt,
        failure: failure.clone(),
        retry_at,
    })];
    if retry_at.is_none() {
        events.extend(ended(session, turn, TurnEnd::Failed { failure }));
    }
    events
}

fn start_calls(
    session: &Session,
    at: Time,
    calls: &[StartingCall],
    bracket: Bracket,
) -> Result<Vec<SessionEvent>, Refusal> {
    let turn = session.turn.as_ref().ok_or_else(|| moved_on("the turn is over"))?;
    let due = |starting: &StartingCall| DueCall { call: starting.call, attempt: starting.attempt };
    if next(session) != Next::RunCalls(calls.iter().map(due).collect()) {
        return Err(moved_on("these calls are not due"));
    }
    let started = calls.iter().map(|starting| start_call(session, turn, at, starting, bracket));
    Ok(started.flatten().collect())
}

fn start_call(
    session: &Session,
    turn: &Turn,
    at: Time,
    starting: &StartingCall,
    bracket: Bracket,
) -> Vec<SessionEvent> {
    let StartingCall { call, attempt, tool } = starting;
    let (call, attempt) = (*call, *attempt);
    let Some(asked) = turn.calls().iter().find(|asked| asked.requested.id == call) else {
        return Vec::new();
    };
    let (name, step) = (&asked.requested.tool, asked.step);
    match gate(session, turn, at, asked, tool.as_ref()) {
        Gate::Open(plan) => {
            vec![event(TurnEvent::CallStarted { call, attempt, bracket, plan, step })]
        }
        Gate::Shut { kind, words } => {
            let told = Told::Refused { kind: kind.into(), words };
            vec![event(TurnEvent::CallAnswered { call, told })]
        }
        Gate::Changed => {
            let tool = name.clone();
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

/// What the gate says to one call.
enum Gate {
    /// It may start, under the lease of this plan or because it only reads.
    Open(Option<PlanId>),
    /// It may not.
    Shut { kind: &'static str, words: String },
    /// It is leased, but the tool is not the one that was leased.
    Changed,
}

/// Every effect passes here, inside the decision that starts it.
fn gate(session: &Session, turn: &Turn, at: Time, asked: &Call, tool: Option<&ToolFacts>) -> Gate {
    let name = &asked.requested.tool;
    if asked.step.is_some() {
        return replay_gate(session, turn, asked, tool);
    }
    let Some(facts) = tool else {
        return Gate::Shut {
            kind: "unknown_tool",
            words: format!("there is no tool {name} any more"),
        };
    };
    if !turn.may_use(name) {
        let profile = turn.profile.as_ref().map_or("", |profile| &profile.name);
        return Gate::Shut {
            kind: "policy_denied",
            words: format!("policy_denied: the profile {profile} may not use {name}"),
        };
    }
    match facts.effect {
        Effect::Internal | Effect::Read => return Gate::Open(None),
        Effect::Write | Effect::External => {}
    }
    let Some(plan) = leasing_plan(session, turn) else {
        return Gate::Shut {
            kind: "policy_denied",
            words: format!(
                "policy_denied: {name} changes things, and that runs only inside an approved plan; \
                 write a plan and let a person approve it"
            ),
        };
    };
    let approval = plan.status.approval();
    let Some(approval) = approval.filter(|approval| approval.envelope.tools.contains_key(name))
    else {
        return Gate::Shut {
            kind: "policy_denied",
            words: format!("policy_denied: the approval does not lease {name}"),
        };
    };
    if approval.envelope.expires_at.is_some_and(|end| end <= at) {
        return Gate::Shut {
            kind: "policy_denied",
            words: "policy_denied: the lease has expired".into(),
        };
    }
    if approval.envelope.tools.get(name) == Some(&facts.schema) {
        Gate::Open(Some(plan.id))
    } else {
        Gate::Changed
    }
}

/// A recorded call runs as it was approved, by the tool as it was approved, or not at all.
fn replay_gate(session: &Session, turn: &Turn, asked: &Call, tool: Option<&ToolFacts>) -> Gate {
    let recorded = match &asked.requested.kind {
        CallKind::Tool(facts) => Some(facts),
        CallKind::Plan | CallKind::Unusable { .. } => None,
    };
    match leasing_plan(session, turn) {
        Some(plan) if tool.is_some() && tool == recorded => Gate::Open(Some(plan.id)),
        Some(_) => Gate::Changed,
        None => Gate::Shut {
            kind: "policy_denied",
            words: "policy_denied: the plan does not run any more".into(),
        },
    }
}

/// The plan whose lease this turn has: it executes that plan, the plan runs, and what was approved
/// is what is current.
fn leasing_plan<'a>(session: &'a Session, turn: &Turn) -> Option<&'a Plan> {
    let plan = session.plan().filter(|plan| turn.executes() == Some(plan.id) && !turn.reported)?;
    match (&plan.status, &plan.current) {
        (PlanStatus::Executing(approval, Progress::Running), Some(head))
            if approval.plan == plan.id && approval.revision_digest == head.digest =>
        {
            Some(plan)
        }
        _ => None,
    }
}

fn record_result(
    session: &Session,
    call: CallId,
    attempt: u32,
    result: &CallResult,
) -> Result<Vec<SessionEvent>, Refusal> {
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
        events.extend(step_ended(session, open.map(|open| open.turn), step, result));
    }
    if let Some(plan) = session.plan()
        && doubt.is_some()
        && session.doubts.len() == 1
        && plan.status.name() == "executing_paused"
    {
        let reason = PauseReason::DoubtSettled;
        events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
    }
    Ok(events)
}

/// A recorded call came out: the next one is due, or the execution has ended.
fn step_ended(
    session: &Session,
    turn: Option<TurnId>,
    step: u32,
    result: &CallResult,
) -> Vec<SessionEvent> {
    let failed = |why: &str| format!("step {step} failed: {why}");
    let (end, why) = match result.status {
        CallStatus::Done => (StepEnd::Done, None),
        CallStatus::Failed => {
            let why = shown(&result.output);
            (StepEnd::Failed { why: why.clone() }, Some(failed(&why)))
        }
    };
    let mut events = vec![SessionEvent::Plan(plan::decide::step_ended(step, end))];
    let replays = |open: &&Turn| Some(open.id) == turn && open.work == Work::Replays;
    let (Some(turn), Some(plan)) = (session.turn.as_ref().filter(replays), session.plan()) else {
        return events;
    };
    let on_failure = plan.status.approval().map(|approval| approval.on_failure);
    let is_left = |call: &&Call| call.step != Some(step) && call.state != CallState::Answered;
    let left = turn.calls().iter().any(|call| is_left(&call));
    let failures = failures(plan, turn, step, why.as_deref());
    let ends = match (&why, on_failure) {
        (Some(_), Some(OnFailure::Stop) | None) => true,
        (Some(_), Some(OnFailure::Continue)) | (None, _) => !left,
    };
    if !ends {
        return events;
    }
    let rest = unrun(turn, "step_failed", "not run: an earlier step failed");
    let own = turn.calls().iter().find(|call| call.step == Some(step));
    let own = own.map(|call| call.requested.id);
    events.extend(rest.into_iter().filter(|rest| own.is_none_or(|own| !answers(rest, own))));
    let end = TurnEnd::Planned { plan: plan.id };
    events.push(event(TurnEvent::TurnFinished { turn: turn.id, end }));
    // The card lists what this call did to the world, too.
    let mut after = plan.clone();
    after.outcomes.insert(step, StepEnd::Done);
    plan::evolve::touch(&mut after, &result.touched);
    events.push(SessionEvent::Plan(if failures.is_empty() {
        plan::decide::ending_of(&after, plan::Ended::Completed, plan::decide::steps_word(&after))
    } else {
        PlanEvent::PlanFailed { summary: failures.join("; ") }
    }));
    events
}

/// What failed in this execution, in words.
fn failures(plan: &Plan, turn: &Turn, step: u32, why: Option<&str>) -> Vec<String> {
    let of_turn = |number: &u32| turn.calls().iter().any(|call| call.step == Some(*number));
    let earlier = plan.outcomes.iter().filter(|(number, _)| **number != step && of_turn(number));
    let earlier = earlier.filter_map(|(number, end)| match end {
        StepEnd::Failed { why } => Some(format!("step {number} failed: {why}")),
        StepEnd::Done | StepEnd::Skipped { .. } | StepEnd::Carried { .. } => None,
    });
    earlier.chain(why.map(str::to_owned)).collect()
}

/// The beginning of an output, for a line of words.
fn shown(output: &str) -> String {
    const SHOWN_CHARS: usize = 300;
    output.chars().take(SHOWN_CHARS).collect()
}

fn orphan_call(
    session: &Session,
    call: CallId,
    attempt: u32,
) -> Result<Vec<SessionEvent>, Refusal> {
    let open = session
        .open
        .get(&call)
        .filter(|open| open.attempt == attempt)
        .ok_or_else(|| moved_on("this try of the call is not open"))?;
    if open.facts.repeat == Repeat::Harmless {
        return Ok(vec![event(TurnEvent::CallOrphaned { call, attempt })]);
    }
    let mut events = vec![event(TurnEvent::CallInDoubt { call, attempt })];
    if let Some(turn) = session.turn.as_ref().filter(|turn| turn.id == open.turn) {
        let rest = unrun(turn, "in_doubt", "not run: the outcome of an earlier call is unknown");
        events.extend(rest.into_iter().filter(|event| !answers(event, call)));
        events.extend(ended(session, turn, TurnEnd::InDoubt { call }));
    }
    Ok(events)
}

/// The turn's end, and the pause of an execution that nobody reported on.
fn ended(session: &Session, turn: &Turn, end: TurnEnd) -> Vec<SessionEvent> {
    let reason = match &end {
        TurnEnd::Answered | TurnEnd::Planned { .. } => PauseReason::Unreported,
        TurnEnd::Failed { failure } => PauseReason::TurnFailed { message: failure.message.clone() },
        TurnEnd::Stopped { .. } => PauseReason::Stopped,
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

/// An answer for every call of the turn that has none.
fn unrun(turn: &Turn, kind: &str, words: &str) -> Vec<SessionEvent> {
    let told = |call: &Call| match call.state {
        CallState::Pending(_) => Some(Told::Refused { kind: kind.into(), words: words.into() }),
        CallState::Open(_) => Some(Told::LeftRunning),
        CallState::Answered => None,
    };
    let answer = |call: &Call| Some((call.requested.id, told(call)?));
    let unanswered = turn.calls().iter().filter_map(answer);
    unanswered.map(|(call, told)| event(TurnEvent::CallAnswered { call, told })).collect()
}

fn answers(answer: &SessionEvent, call: CallId) -> bool {
    matches!(answer, SessionEvent::Turn(TurnEvent::CallAnswered { call: answered, .. }) if *answered == call)
}

fn open_turn(session: &Session, id: TurnId) -> Result<&Turn, Refusal> {
    session.turn.as_ref().filter(|turn| turn.id == id).ok_or_else(|| moved_on("the turn is over"))
}

fn open_model_call(
    session: &Session,
    turn: TurnId,
    round: u32,
    attempt: u32,
) -> Result<&Turn, Refusal> {
    open_turn(session, turn)?;
    session
        .turn
        .as_ref()
        .filter(|turn| turn.round == round)
        .filter(
            |turn| matches!(turn.step, Step::ModelOpen { attempt: open, .. } if open == attempt),
        )
        .ok_or_else(|| moved_on("this model call is not open"))
}

fn event(event: TurnEvent) -> SessionEvent {
    SessionEvent::Turn(event)
}

pub(crate) fn moved_on(what: &str) -> Refusal {
    Refusal::MovedOn { what: what.into() }
}
