//! Applies a call of a plan tool: its events, and the result that the model reads.

use serde::Deserialize;

use crate::{
    model::{
        given::Given,
        identity::SessionKey,
        plan::{
            Plan, Strategy, draft::Draft, event::PlanEvent, refusal::PlanRefusal, review::Reply,
            step::StepEnd,
        },
        session::Session,
        tools::PlanTool,
        turn::{RequestedCall, ToolReply, Turn, Work},
    },
    rules::{
        notebook::{
            section,
            tool::{self, Bound},
        },
        plan::{
            authoring::{self, Authoring, Metadata},
            decide::{self, Report},
        },
        tools::{available, is_recorded},
    },
};

/// Answers a call of a plan tool, or records a call as a step.
#[expect(clippy::too_many_lines, reason = "one arm for each plan tool")]
pub(crate) fn use_plan_tool(
    session: &Session,
    turn: &Turn,
    call: &RequestedCall,
    given: &Given,
) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let name = &call.tool;
    let state =
        |state: &str| PlanRefusal::ToolUnavailable { tool: name.clone(), state: state.into() };
    let plan =
        session.plan().ok_or_else(|| state("plan work is not active; a person sends /plan on"))?;
    if is_recorded(plan, call) {
        return Ok((authoring::record(plan, call)?, ToolReply::Planned));
    }
    if let Some(bound) = tool::bound(call) {
        return stands_in(plan, turn, &session.key(), name, bound, given);
    }
    let found = available(session, turn).into_iter().find(|tool| tool.name() == name);
    let found = found.ok_or_else(|| state(&format!("the plan is {}", plan.status.label())))?;
    let key = session.key();
    let writing = Authoring { session: &key, turn_started: turn.started, given };
    if PlanTool::is_drafting(name) {
        authoring::writable(plan, writing)?;
    }
    let arguments = &call.arguments;
    match found {
        PlanTool::Get => {
            parse::<NoArguments>(name, arguments)?;
            Ok((Vec::new(), get(plan)))
        }
        PlanTool::List => {
            parse::<NoArguments>(name, arguments)?;
            Ok((Vec::new(), ToolReply::Plans))
        }
        PlanTool::SetContent => {
            let SetContent { plan_markdown, title, replies } = parse(name, arguments)?;
            let title = title.as_deref();
            Ok(saved(authoring::set_content(plan, writing, &plan_markdown, title, replies)?))
        }
        PlanTool::Finalize => {
            let Finalize { summary, replies } = parse(name, arguments)?;
            let summary = summary.unwrap_or_else(|| turn.summary_text.clone());
            Ok(saved(authoring::finalize(plan, writing, &summary, replies)?))
        }
        PlanTool::Submit => {
            let Submit { replies } = parse(name, arguments)?;
            Ok(saved(authoring::submit(plan, writing, replies)?))
        }
        PlanTool::Create => {
            let Create { goal, title } = parse(name, arguments)?;
            let events = authoring::create(plan, &goal, title.as_deref())?;
            Ok((events, text(format!("Plan {} is a draft. Add metadata and steps.", plan.id))))
        }
        PlanTool::SetMetadata => {
            let SetMetadata { assumptions, risks, verification, files } = parse(name, arguments)?;
            let given = Metadata { assumptions, risks, verification, files };
            Ok((authoring::set_metadata(plan, given)?, text("Saved.".into())))
        }
        PlanTool::AddStep => {
            let AddStep { title, instructions, profile } = parse(name, arguments)?;
            let events = authoring::add_step(plan, writing, &title, &instructions, &profile)?;
            let number = authoring::working(plan).next_number(plan.numbered);
            Ok((events, text(format!("Step {number} was added."))))
        }
        PlanTool::UpdateStep => {
            let UpdateStep { step, title, instructions, profile } = parse(name, arguments)?;
            let (title, instructions) = (title.as_deref(), instructions.as_deref());
            let profile = profile.as_deref();
            let events = authoring::update_step(plan, writing, step, title, instructions, profile)?;
            Ok((events, text(format!("Step {step} was changed."))))
        }
        PlanTool::RemoveStep => {
            let RemoveStep { step } = parse(name, arguments)?;
            let events = authoring::remove_step(plan, step)?;
            Ok((events, text(format!("Step {step} was removed; the others keep their numbers."))))
        }
        PlanTool::Report => {
            let (step, report) = report(name, arguments)?;
            reported(plan, turn, step, report)
        }
    }
}

/// A call that is about the page `task_plan`, for which the plan stands in while plan work is active.
fn stands_in(
    plan: &Plan,
    turn: &Turn,
    session: &SessionKey,
    name: &str,
    bound: Bound,
    given: &Given,
) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let refused = |state: String| PlanRefusal::ToolUnavailable { tool: name.into(), state };
    let writing = Authoring { session, turn_started: turn.started, given };
    let markdown = match bound {
        Bound::Read => return Ok((Vec::new(), get(plan))),
        Bound::Write(_) | Bound::Update { .. } if !tool::writes_plan(plan) => {
            return Err(refused(format!(
                "task_plan is the plan, and the plan is {}; write to progress, or report with plan_report",
                plan.status.label()
            )));
        }
        Bound::Write(markdown) => markdown,
        Bound::Update { section, content } => {
            let current = given.markdown.as_deref();
            let current =
                current.ok_or_else(|| refused("nothing is planned yet; write it whole".into()))?;
            section::replaced(current, &section, &content)
                .map_err(|refusal| refused(refusal.to_string()))?
        }
    };
    Ok(saved(authoring::set_content(plan, writing, &markdown, None, Vec::new())?))
}

/// A report as it was written, and the step that it names.
pub(crate) fn report(name: &str, arguments: &str) -> Result<(Option<u32>, Report), PlanRefusal> {
    let ReportArguments { status, summary, evidence, step } = parse(name, arguments)?;
    let report = match status {
        ReportStatus::Done => Report::Done { summary, evidence },
        ReportStatus::Failed => Report::Failed { summary },
        ReportStatus::Blocked => Report::Blocked { summary },
    };
    Ok((step, report))
}

/// What the model reports, of the whole execution or of the step that its turn does.
fn reported(
    plan: &Plan,
    turn: &Turn,
    named: Option<u32>,
    report: Report,
) -> Result<(Vec<PlanEvent>, ToolReply), PlanRefusal> {
    let words = |what: &str| text(format!("Recorded. {what}; tell the person in a sentence."));
    let Work::Does { step } = turn.work else {
        return Ok((vec![decide::report(plan, report)], words("The execution has ended")));
    };
    if named.is_some_and(|named| named != step) {
        return Err(PlanRefusal::NotThisStep { named: named.unwrap_or_default(), step });
    }
    let (after, end, summary) = match &report {
        Report::Done { summary, .. } => {
            (plan.unsettled().find(|other| other.number != step), StepEnd::Done, summary)
        }
        Report::Failed { summary } => (None, StepEnd::Failed { why: summary.clone() }, summary),
        Report::Blocked { .. } => {
            return Ok((vec![decide::report(plan, report)], words("The execution waits")));
        }
    };
    let ended = PlanEvent::StepEnded { step, end, summary: Some(summary.clone()) };
    let then = match after {
        Some(after) => PlanEvent::StepQueued { plan: plan.id, step: after.number },
        None => decide::report(plan, report),
    };
    Ok((vec![ended, then], words(&format!("Step {step} has ended"))))
}

pub(crate) fn get(plan: &Plan) -> ToolReply {
    let draft = |draft: &Draft| match plan.strategy {
        Strategy::Collect => draft.steps.iter().fold(String::new(), |text, step| {
            format!("{text}{}. {}\n", step.number, step.head().in_words())
        }),
        Strategy::Build | Strategy::Document => draft.to_markdown(),
    };
    match (&plan.draft, &plan.current) {
        (Some(open), _) => {
            text(format!("Draft of plan {}, not proposed yet:\n\n{}", plan.id, draft(open)))
        }
        (None, None) => text(match plan.strategy {
            Strategy::Document => "The plan is empty. Save a draft with plan_set_content.".into(),
            Strategy::Collect => "Nothing is planned yet. Call the tools that should run.".into(),
            Strategy::Build => "The plan is empty. Begin with plan_create.".into(),
        }),
        (None, Some(head)) => ToolReply::Revision {
            digest: head.digest,
            heading: format!("{}, revision {}: {}", plan.status.label(), head.number, head.title),
        },
    }
}

/// What the model reads of content that was saved, or of a plan that came to nothing.
fn saved(events: Vec<PlanEvent>) -> (Vec<PlanEvent>, ToolReply) {
    let added = events.iter().find_map(|event| {
        let PlanEvent::RevisionAdded { revision, digest, .. } = event else { return None };
        Some((revision, digest))
    });
    let words = match added {
        None => "Nothing was planned; the plan is cancelled and plan work has ended.".into(),
        Some((revision, digest)) => format!(
            "Saved as revision {} of plan {} ({}). It waits for a person's approval.",
            revision.number,
            revision.plan,
            digest.short()
        ),
    };
    (events, text(words))
}

fn text(text: String) -> ToolReply {
    ToolReply::Text { text }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetContent {
    plan_markdown: String,
    title: Option<String>,
    #[serde(default)]
    replies: Vec<Reply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submit {
    #[serde(default)]
    replies: Vec<Reply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finalize {
    summary: Option<String>,
    #[serde(default)]
    replies: Vec<Reply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    goal: String,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetMetadata {
    assumptions: Option<Vec<String>>,
    risks: Option<Vec<String>>,
    verification: Option<Vec<String>>,
    files: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddStep {
    title: String,
    instructions: String,
    profile: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateStep {
    step: u32,
    title: Option<String>,
    instructions: Option<String>,
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveStep {
    step: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportArguments {
    status: ReportStatus,
    summary: String,
    evidence: Option<String>,
    step: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReportStatus {
    Done,
    Failed,
    Blocked,
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(
    tool: &str,
    arguments: &'a str,
) -> Result<T, PlanRefusal> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|error| PlanRefusal::BadArguments {
        tool: tool.into(),
        problem: error.to_string(),
    })
}
