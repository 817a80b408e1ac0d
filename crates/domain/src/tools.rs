//! The plan tools, spelled as published: when they are advertised, and what they do.
//!
//! Must always hold:
//! - `mode-gating`: a plan tool is advertised and usable only while its plan work is active; one
//!   function says both.
//! - `inactive-is-inert`: called at any other time it is refused as `policy_denied`, and no state
//!   changes.
//! - `no-side-effects-in-plan-tools`: they touch plan state and nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    digest::Digest,
    effect::{Effect, Envelope, PathLease},
    id::PlanId,
    plan::{
        Plan, PlanEvent, PlanStatus, Progress, Strategy,
        decide::{self, Authoring, Report},
        refusal::PlanRefusal,
    },
    session::Session,
    turn::{Told, Turn},
};

/// The built-in file tools, which approving a `document` plan leases under the workspace root.
pub const FILE_TOOLS: [&str; 5] =
    ["list_files", "grep_files", "read_file", "write_file", "edit_file"];

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// What it does to the world.
    pub effect: Effect,
}

impl ToolSpec {
    /// The digest of name, description and schema, over an encoding with sorted keys.
    #[must_use]
    pub fn schema_digest(&self) -> Digest {
        let mut text = String::new();
        canonical(&self.parameters, &mut text);
        Digest::of(format!("{}\n{}\n{text}", self.name, self.description).as_bytes())
    }
}

/// The plan tools of the `document` strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanTool {
    /// `plan_get`
    Get,
    /// `plan_set_content`
    SetContent,
    /// `plan_report`
    Report,
}

impl PlanTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Get, Self::SetContent, Self::Report];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "plan_get",
            Self::SetContent => "plan_set_content",
            Self::Report => "plan_report",
        }
    }

    /// As the model is told of it. Kept short: every token is paid for at every model call.
    #[must_use]
    pub fn spec(self) -> Arc<ToolSpec> {
        static SPECS: LazyLock<[Arc<ToolSpec>; 3]> =
            LazyLock::new(|| PlanTool::ALL.map(|tool| Arc::new(tool.describe())));
        SPECS[self as usize].clone()
    }

    fn describe(self) -> ToolSpec {
        let (description, parameters) = match self {
            Self::Get => ("Load the plan.", json!({"type": "object"})),
            Self::SetContent => (
                "Save the whole plan.",
                json!({"type": "object", "required": ["plan_markdown"], "properties": {
                    "plan_markdown": {"type": "string"}, "title": {"type": "string"}}}),
            ),
            Self::Report => (
                "End the execution.",
                json!({"type": "object", "required": ["status", "summary"], "properties": {
                    "status": {"enum": ["done", "failed", "blocked"]},
                    "summary": {"type": "string"}, "evidence": {"type": "string"}}}),
            ),
        };
        ToolSpec {
            name: self.name().into(),
            description: description.into(),
            parameters,
            effect: Effect::Internal,
        }
    }
}

/// The plan tools that this turn may see and use.
#[must_use]
pub fn available(session: &Session, turn: &Turn) -> Vec<PlanTool> {
    let Some(plan) = session.plan() else { return Vec::new() };
    match plan.strategy {
        Strategy::Collect | Strategy::Build => vec![PlanTool::Get],
        Strategy::Document if executes(plan, turn) => {
            vec![PlanTool::Get, PlanTool::SetContent, PlanTool::Report]
        }
        Strategy::Document => vec![PlanTool::Get, PlanTool::SetContent],
    }
}

/// Whether a name is that of a plan tool, of any strategy.
#[must_use]
pub fn is_plan_tool(name: &str) -> bool {
    PlanTool::ALL.into_iter().any(|tool| tool.name() == name)
}

/// What approving a `document` plan leases: the built-in file tools under the workspace root.
#[must_use]
pub fn document_envelope(schemas: &BTreeMap<String, Digest>) -> Envelope {
    let leased = |name: &str| Some((name.to_owned(), *schemas.get(name)?));
    let tools: BTreeMap<_, _> = FILE_TOOLS.into_iter().filter_map(leased).collect();
    let paths = if tools.is_empty() { PathLease::Nothing } else { PathLease::Workspace };
    Envelope { tools, paths, ..Envelope::default() }
}

/// What a call of a plan tool brings about, and what the model reads.
pub(crate) fn use_plan_tool(
    session: &Session,
    turn: &Turn,
    name: &str,
    arguments: &str,
    fresh: PlanId,
) -> Result<(Vec<PlanEvent>, Told), PlanRefusal> {
    let state =
        |state: &str| PlanRefusal::ToolUnavailable { tool: name.into(), state: state.into() };
    let plan =
        session.plan().ok_or_else(|| state("plan work is not active; a person sends /plan on"))?;
    let tool = available(session, turn).into_iter().find(|tool| tool.name() == name);
    match tool {
        None => Err(state(&format!("the plan is {}", plan.status.word()))),
        Some(PlanTool::Get) => {
            parse::<NoArguments>(name, arguments)?;
            Ok((Vec::new(), get(plan)))
        }
        Some(PlanTool::SetContent) => {
            let SetContent { plan_markdown, title } = parse(name, arguments)?;
            let authoring =
                Authoring { identity: &session.identity, turn_started: turn.started, fresh };
            let events = decide::set_content(plan, authoring, &plan_markdown, title.as_deref())?;
            let told = Told::Text { text: set_content_words(&events) };
            Ok((events, told))
        }
        Some(PlanTool::Report) => {
            let ReportArguments { status, summary, evidence } = parse(name, arguments)?;
            let report = match status {
                ReportStatus::Done => Report::Done { summary, evidence },
                ReportStatus::Failed => Report::Failed { summary },
                ReportStatus::Blocked => Report::Blocked { summary },
            };
            let text = "Recorded. The execution has ended; tell the person in a sentence.".into();
            Ok((vec![decide::report(plan, report)], Told::Text { text }))
        }
    }
}

fn executes(plan: &Plan, turn: &Turn) -> bool {
    turn.executes() == Some(plan.id)
        && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
}

fn get(plan: &Plan) -> Told {
    match &plan.current {
        None => {
            Told::Text { text: "The plan is empty. Save a draft with plan_set_content.".into() }
        }
        Some(head) => Told::Revision {
            digest: head.digest,
            heading: format!("{}, revision {}: {}", plan.status.word(), head.number, head.title),
        },
    }
}

fn set_content_words(events: &[PlanEvent]) -> String {
    let added = events.iter().find_map(|event| match event {
        PlanEvent::RevisionAdded { revision, digest } => Some((revision, digest)),
        PlanEvent::PlanStarted { .. }
        | PlanEvent::RevisionShown { .. }
        | PlanEvent::ChangesRequested { .. }
        | PlanEvent::PlanApproved { .. }
        | PlanEvent::ExecutionStarted { .. }
        | PlanEvent::ExecutionPaused { .. }
        | PlanEvent::PlanFailed { .. }
        | PlanEvent::PlanEnded { .. } => None,
    });
    added.map_or_else(String::new, |(revision, digest)| {
        let (plan, number) = (revision.plan, revision.number);
        format!(
            "Saved as revision {number} of plan {plan} ({}). It waits for a person's approval.",
            digest.short()
        )
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetContent {
    plan_markdown: String,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportArguments {
    status: ReportStatus,
    summary: String,
    evidence: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReportStatus {
    Done,
    Failed,
    Blocked,
}

fn parse<'a, T: Deserialize<'a>>(tool: &str, arguments: &'a str) -> Result<T, PlanRefusal> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|error| PlanRefusal::BadArguments {
        tool: tool.into(),
        problem: error.to_string(),
    })
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            text.push('{');
            for (key, value) in sorted {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                canonical(value, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}
