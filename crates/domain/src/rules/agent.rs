//! Foreign agents: someone else's model works in a session of ours, one call at a time.
//!
//! Such a session lives in the channel `mcp`. It has no turns of its own: nothing here asks a model or runs a
//! tool of ours for it. A call of the agent is decided like the model's, recorded with its answer, and that is all.
//! What the agent does with its own tools we neither see nor limit; what it says of it is recorded as its word.
//!
//! Must always hold:
//! - `model-never-approves`: [`AgentCall`] names a tool, and no tool decides.
//! - `mode-gating`, `inactive-is-inert`: [`available`] says what is listed and what is answered.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    model::{
        agent_call::{AgentCall, Answered},
        command::{Approving, Decision, PersonCommand, Terms},
        digest::Digest,
        id::{CallId, TurnId},
        limits,
        notebook::{AgentNotebookCall, NotebookEvent},
        plan::{
            Plan, PlanStatus, Progress, Review, Revision, Strategy,
            event::{Account, PlanEvent},
            refusal::PlanRefusal,
            review::Comment,
            step::{StepEnd, StepWork},
        },
        refusal::Refusal,
        session::{Session, SessionEvent, is_foreign, life::Life},
        time::Time,
        tools::{PLAN_ASK, PlanTool, own::OwnTool},
        turn::{Cause, Queued, Step, ToolReply, Turn, Work, asking::Asking},
    },
    rules::{
        memory, openings as prompt,
        plan::{
            decide::{self as planning, Report},
            document_steps,
        },
        tools::{self, apply},
    },
};

/// The profile of the steps that a foreign agent writes: its own.
pub const PROFILE: &str = "agent";
/// How many bytes of the arguments of a call are kept beside what came of it.
const ARGUMENTS_BYTES: usize = 512;
/// The longest name of an agent.
const NAME_CHARS: usize = 60;

/// The name of an agent, as it is kept.
#[must_use]
pub fn named(agent: &str) -> String {
    let plain = agent.chars().filter(|letter| !letter.is_control()).take(NAME_CHARS);
    let name = plain.collect::<String>();
    if name.trim().is_empty() { "an agent".into() } else { name.trim().into() }
}

/// What `plan_ask` was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskWish {
    /// How long to wait for the decision; not at all, if it does not say.
    pub wait_seconds: Option<u64>,
}

impl AskWish {
    /// Reads the arguments of `plan_ask`.
    pub fn read(arguments: &str) -> Result<Self, PlanRefusal> {
        apply::parse(PLAN_ASK, arguments)
    }
}

/// Whether what a person asks can be asked where a foreign agent works.
pub(crate) fn may_receive(session: &Session, command: &PersonCommand) -> Result<(), Refusal> {
    match command {
        PersonCommand::Say { .. } | PersonCommand::Auto(_) | PersonCommand::Compact => {
            Err(Refusal::AgentElsewhere { identity: session.identity.to_string() })
        }
        PersonCommand::StartPlan { strategy: Strategy::Collect, .. } => {
            Err(Refusal::NothingToCollect)
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
        | PersonCommand::Decide(_)
        | PersonCommand::Memory(_)
        | PersonCommand::Notebook { .. }
        | PersonCommand::Life(_) => Ok(()),
    }
}

/// An approval where a foreign agent works; any other decision is as it is elsewhere.
pub(crate) fn deciding(session: &Session, decision: &Decision) -> Option<Decision> {
    let Decision::Approve(approving) = decision else { return None };
    let terms = is_foreign(session).then(|| terms(session.plan(), approving))?;
    Some(Decision::Approve(Approving { terms, ..approving.clone() }))
}

/// What an approval in this session leases: our tools are not used, so what the plan declares is a promise that
/// the agent is held to in words.
fn terms(plan: Option<&Plan>, approving: &Approving) -> Terms {
    let granted = approving.grant.iter().flat_map(|granted| foreign(&granted.tools));
    let declared = plan.map(declared).unwrap_or_default();
    Terms {
        schemas: granted.chain(declared).collect(),
        profiles: [(PROFILE.to_owned(), Digest::of(PROFILE.as_bytes()))].into(),
        priced: approving.terms.priced,
    }
}

/// The tools of its own that an agent's plan declares.
#[must_use]
pub fn declared(plan: &Plan) -> BTreeMap<String, Digest> {
    let declared = plan.current.as_ref().and_then(|head| head.envelope.as_ref());
    declared.into_iter().flat_map(|declared| foreign(&declared.tools)).collect()
}

/// Tools that we know by name alone.
fn foreign(names: &BTreeSet<String>) -> impl Iterator<Item = (String, Digest)> {
    names.iter().map(|name| (name.clone(), Digest::of(format!("foreign {name}").as_bytes())))
}

/// Decides a call. A refusal is an answer too: the agent reads it, it is recorded, and nothing else changes.
pub(crate) fn decide(
    session: &Session,
    at: Time,
    request: &AgentCall,
) -> Result<Vec<SessionEvent>, Refusal> {
    let identity = session.identity.to_string();
    if !is_foreign(session) {
        return Err(Refusal::NotAnAgents { identity });
    }
    if session.life == Life::Deleted {
        return Err(Refusal::SessionDeleted { identity });
    }
    if session.owner != request.owner {
        return Err(Refusal::NotYours { identity });
    }
    let call = request.call.id;
    let arguments = &request.call.arguments;
    let mut end = arguments.len().min(ARGUMENTS_BYTES);
    while !arguments.is_char_boundary(end) {
        end -= 1;
    }
    let made = AgentNotebookCall {
        of: request.of.clone(),
        agent: named(&request.agent),
        tool: request.call.tool.chars().take(NAME_CHARS).collect(),
        arguments: arguments[..end].to_owned(),
    };
    let mut events = Vec::new();
    let reply = match &request.answered {
        Answered::ByNotebook => return Ok(started(session, call, made)),
        Answered::Refused(words) => {
            ToolReply::Refused { kind: "notebook".into(), words: words.clone() }
        }
        Answered::ByDecision => match used(session, at, request) {
            Ok((used, reply)) => {
                events.extend(used);
                reply
            }
            Err(refusal) => {
                ToolReply::Refused { kind: refusal.kind().to_owned(), words: refusal.to_string() }
            }
        },
    };
    events.push(called(call, made, reply));
    Ok(events)
}

/// A notebook call begins. An agent that never came back for the oldest of too many open ones does not hold it open.
fn started(session: &Session, call: CallId, made: AgentNotebookCall) -> Vec<SessionEvent> {
    let open = &session.notebook.agent_calls;
    let oldest = open.first().filter(|_| open.len() >= limits::AGENT_CALLS_OPEN_MAX);
    let given_up = oldest.map(|oldest| {
        let words = "nobody came back for what came of it".to_owned();
        called(
            oldest.call,
            oldest.made.clone(),
            ToolReply::Refused { kind: "notebook".into(), words },
        )
    });
    let started = SessionEvent::Notebook(NotebookEvent::AgentCallStarted { call, made });
    given_up.into_iter().chain([started]).collect()
}

/// Records what came of a notebook call that had started.
pub(crate) fn record(
    session: &Session,
    call: CallId,
    reply: &ToolReply,
) -> Result<Vec<SessionEvent>, Refusal> {
    let what = || Refusal::MovedOn { what: "this call of the notebook is not open".into() };
    let open = session.notebook.open_agent_call(call).ok_or_else(what)?;
    Ok(vec![called(call, open.made.clone(), reply.clone())])
}

fn called(call: CallId, made: AgentNotebookCall, reply: ToolReply) -> SessionEvent {
    let AgentNotebookCall { of, agent, tool, arguments } = made;
    SessionEvent::AgentCalled { call, of, agent, tool, arguments, reply }
}

fn used(
    session: &Session,
    at: Time,
    request: &AgentCall,
) -> Result<(Vec<SessionEvent>, ToolReply), Refusal> {
    let AgentCall { call, given, .. } = request;
    let turn = hand(session, TurnId(call.id.0));
    if let Some(own) = OwnTool::named(&call.tool) {
        if own == OwnTool::TaskReport {
            let state = "only a run of Planwright's own reports of a task";
            return Err(memory::apply::unavailable(call, state));
        }
        let (events, reply) = memory::apply::use_memory_tool(session, &turn, at, own, call, given)?;
        return Ok((events.into_iter().map(SessionEvent::Memory).collect(), reply));
    }
    let (events, reply) = plan_tool(session, &turn, request)?;
    Ok((events.into_iter().map(SessionEvent::Plan).collect(), reply))
}

fn plan_tool(
    session: &Session,
    turn: &Turn,
    request: &AgentCall,
) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let call = &request.call;
    let unavailable =
        |state: String| PlanRefusal::ToolUnavailable { tool: call.tool.clone(), state };
    let inactive = || match &session.last_ended {
        Some(ended) => unavailable(format!(
            "the plan is {} and plan work has ended; a person begins the next with /plan on, or you get a new session \
             with a new window",
            ended.ended.label()
        )),
        None => unavailable("plan work is not active; a person sends /plan on".into()),
    };
    let plan = session.plan().ok_or_else(inactive)?;
    if call.tool == PLAN_ASK {
        AskWish::read(&call.arguments)?;
        return Ok((Vec::new(), ToolReply::Text { text: standing(plan, &request.comments) }));
    }
    let is = |tool: PlanTool| call.tool == tool.name();
    if is(PlanTool::Get) && runs(plan) {
        apply::parse::<apply::NoArguments>(&call.tool, &call.arguments)?;
        return next_step(plan, request);
    }
    if is(PlanTool::Report) && runs(plan) {
        let (step, report) = apply::report(&call.tool, &call.arguments)?;
        return reported(plan, request, step, report);
    }
    if is(PlanTool::Get) && !request.comments.is_empty() {
        apply::parse::<apply::NoArguments>(&call.tool, &call.arguments)?;
        if let ToolReply::Revision { digest, heading } = apply::get(plan) {
            let words = prompt::changes_opening(number(plan), &request.comments);
            let heading = format!("{heading}\n\n{words}");
            return Ok((Vec::new(), ToolReply::Revision { digest, heading }));
        }
    }
    if is(PlanTool::AddStep) {
        let mut call = call.clone();
        call.arguments = with_profile(&call.arguments);
        return apply::use_plan_tool(session, turn, &call, &request.given);
    }
    let used = apply::use_plan_tool(session, turn, call, &request.given);
    if matches!(used, Err(PlanRefusal::TurnOlderThanApproval)) {
        let state = "the plan was approved since you last looked; load it with plan_get before you change it";
        return Err(unavailable(state.into()));
    }
    used
}

/// The same arguments, with the one profile that a foreign agent has.
fn with_profile(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut fields)) => {
            fields.entry("profile").or_insert_with(|| PROFILE.into());
            Value::Object(fields).to_string()
        }
        Ok(_) | Err(_) => arguments.to_owned(),
    }
}

/// Where the plan stands, for an agent that asks a person to decide.
fn standing(plan: &Plan, comments: &[Comment]) -> String {
    let revision = number(plan);
    match &plan.status {
        PlanStatus::Collecting => "Nothing is proposed yet: save the plan first.".into(),
        PlanStatus::Ready => match plan.current.as_ref().map(|head| head.review) {
            Some(Review::Open) => format!(
                "Revision {revision} waits for a person's decision. Only a person can give it; do not begin before."
            ),
            Some(Review::Withdrawn) if !comments.is_empty() => {
                prompt::changes_opening(revision, comments)
            }
            Some(Review::Withdrawn) | None => {
                format!("Changes were requested on revision {revision}; plan_get shows them.")
            }
            Some(Review::Expired) => {
                format!("Nobody decided on revision {revision} in time; save it again to ask anew.")
            }
        },
        PlanStatus::Approved(_) => {
            "The plan is approved and held; a person starts it with /plan resume.".into()
        }
        PlanStatus::Executing(_, Progress::Running) => {
            format!("Revision {revision} is approved. Call plan_get for the first step.")
        }
        PlanStatus::Executing(_, Progress::Paused(reason)) => format!(
            "The execution is paused: {}. Stop, and wait until a person resumes it.",
            reason.in_words()
        ),
        PlanStatus::Failed(_) => {
            "The plan failed, as you reported; a person may resume it or end it.".into()
        }
    }
}

/// The step that is to be done now, with the approved document. Handing it out is recorded.
fn next_step(plan: &Plan, request: &AgentCall) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let (Some(approval), Some(head)) = (plan.status.approval(), &plan.current) else {
        return Ok((Vec::new(), apply::get(plan)));
    };
    let steps = steps(request.revision.as_ref());
    let mut heading = format!(
        "Running, revision {}: {}\nApproved by {}.",
        head.number, head.title, approval.by.id.0
    );
    let allowed = approval.envelope.in_words();
    if !allowed.is_empty() {
        heading.push_str(&format!("\nStay within what was approved: {}.", allowed.join("; ")));
    }
    for note in &approval.notes {
        heading.push_str(&format!("\nNote from the approver: {note}"));
    }
    let mut events = Vec::new();
    if let Some(step) = steps.iter().find(|step| !is_settled(plan, step.number)) {
        heading.push_str(&format!("\n\n{}", step.order(steps.len())));
        if plan.begun.as_ref().is_some_and(|begun| begun.step == step.number) {
            heading.push_str(
                "\nIt was handed out before and not reported: look whether it was done before you do it again.",
            );
        } else {
            events.push(begun(step, request));
        }
    }
    Ok((events, ToolReply::Revision { digest: head.digest, heading }))
}

/// What the agent reports of the step that it did. Its word is recorded as its word.
fn reported(
    plan: &Plan,
    request: &AgentCall,
    named: Option<u32>,
    report: Report,
) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let steps = steps(request.revision.as_ref());
    let mut open = steps.iter().filter(|step| !is_settled(plan, step.number));
    let step = open.next().map_or(1, |step| step.number);
    if let Some(named) = named.filter(|named| *named != step) {
        return Err(PlanRefusal::NotThisStep { named, step });
    }
    let agent = self::named(&request.agent);
    let text = |text: String| ToolReply::Text { text };
    let (summary, evidence) = match report {
        Report::Done { summary, evidence } => (summary, evidence),
        Report::Failed { summary } => {
            let end = StepEnd::Failed { why: summary.clone() };
            let ended = PlanEvent::StepEnded { step, end, summary: Some(summary.clone()) };
            let failed = planning::report(plan, Report::Failed { summary });
            let words =
                format!("Recorded: step {step} failed. Stop, and tell the person in a sentence.");
            return Ok((vec![ended, failed], text(words)));
        }
        Report::Blocked { summary } => {
            let words = "Recorded. The execution waits for a person; tell them in a sentence.";
            return Ok((
                vec![planning::report(plan, Report::Blocked { summary })],
                text(words.into()),
            ));
        }
    };
    let end = StepEnd::Reported { by: agent.clone(), evidence: evidence.clone() };
    let mut events = vec![PlanEvent::StepEnded { step, end, summary: Some(summary.clone()) }];
    let words = match open.next() {
        Some(next) => {
            events.push(begun(next, request));
            format!("Step {step} is recorded, as your word. {}", next.order(steps.len()))
        }
        None => {
            let account = Account::Agent { agent, summary, evidence };
            events.push(planning::ending_of(plan, crate::model::plan::Ended::Completed, account));
            "Recorded, as your word: every step is reported, and the plan is Done. Tell the person in a sentence."
                .into()
        }
    };
    Ok((events, text(words)))
}

/// A step as it is handed to an agent.
struct Handed {
    number: u32,
    title: String,
    /// What more it says, if it is not in the document.
    instructions: String,
}

impl Handed {
    fn order(&self, many: usize) -> String {
        let Self { number, title, instructions } = self;
        let gap = if instructions.is_empty() { "" } else { "\n" };
        format!(
            "Do step {number} of {many} now, and no other: {title}{gap}{instructions}\nThen call plan_report."
        )
    }
}

/// The steps of a revision: those that were built, else those that the document lists, else all of it as one.
fn steps(revision: Option<&Revision>) -> Vec<Handed> {
    let Some(revision) = revision else { return Vec::new() };
    let built = revision.steps.iter().filter_map(|step| match &step.work {
        StepWork::Task { title, instructions, .. } => Some(Handed {
            number: step.number,
            title: title.clone(),
            instructions: instructions.clone(),
        }),
        StepWork::Call { .. } => None,
    });
    let built: Vec<_> = built.collect();
    if !built.is_empty() {
        return built;
    }
    let listed = document_steps::steps(&revision.markdown).into_iter().zip(1..);
    let listed: Vec<_> = listed
        .map(|(title, number)| Handed { number, title, instructions: String::new() })
        .collect();
    if listed.is_empty() {
        let title = format!("all of {:?}", revision.title);
        return vec![Handed { number: 1, title, instructions: String::new() }];
    }
    listed
}

fn begun(step: &Handed, request: &AgentCall) -> PlanEvent {
    let by = named(&request.agent);
    PlanEvent::StepBegun { step: step.number, title: step.title.clone(), by }
}

fn is_settled(plan: &Plan, step: u32) -> bool {
    plan.outcomes.get(&step).is_some_and(StepEnd::is_settled)
}

fn runs(plan: &Plan) -> bool {
    matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
}

fn number(plan: &Plan) -> u32 {
    plan.current.as_ref().map_or(0, |head| head.number)
}

/// The agent's hand: what a turn would be, if the call were one of our model's. It began when the agent last looked
/// at the plan, so that what it does not know of yet cannot be revised by it.
fn hand(session: &Session, id: TurnId) -> Turn {
    let executed = session.plan().filter(|plan| runs(plan)).map(|plan| plan.id);
    let cause = executed.map_or(Cause::Message, |plan| Cause::Execution { plan });
    Turn {
        id,
        cause: Queued { seq: session.agent_looked, cause },
        started: session.agent_looked,
        round: 1,
        step: Step::Calls(Vec::new()),
        planned: None,
        work: Work::Answers,
        profile: None,
        reported: false,
        summary_text: String::new(),
        asking: Asking::default(),
        paused: None,
    }
}

/// The plan tools that the agent of this session may see and use now.
#[must_use]
pub fn available(session: &Session) -> Vec<PlanTool> {
    tools::available(session, &hand(session, TurnId(uuid::Uuid::nil())))
}

/// Whether there is something to ask a person for.
#[must_use]
pub fn may_ask(session: &Session) -> bool {
    session.plan().is_some_and(|plan| plan.current.is_some() && !runs(plan))
}
