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

use serde_json::{Value, json};

use crate::{
    digest::Digest,
    effect::{Effect, Envelope, PathLease},
    plan::{Plan, PlanStatus, Progress, Strategy},
    session::Session,
    turn::Turn,
};

pub(crate) mod apply;
pub mod own;

/// The built-in file tools, which approving a `document` plan leases under the session's root.
pub const FILE_TOOLS: [&str; 6] =
    ["list_files", "glob_files", "grep_files", "read_file", "write_file", "edit_file"];

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

/// The plan tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanTool {
    /// `plan_get`
    Get,
    /// `plan_set_content`
    SetContent,
    /// `plan_report`
    Report,
    /// `plan_finalize`
    Finalize,
    /// `plan_create`
    Create,
    /// `plan_set_metadata`
    SetMetadata,
    /// `plan_add_step`
    AddStep,
    /// `plan_update_step`
    UpdateStep,
    /// `plan_remove_step`
    RemoveStep,
    /// `plan_submit`
    Submit,
    /// `plan_list`
    List,
}

impl PlanTool {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Get,
        Self::SetContent,
        Self::Report,
        Self::Finalize,
        Self::Create,
        Self::SetMetadata,
        Self::AddStep,
        Self::UpdateStep,
        Self::RemoveStep,
        Self::Submit,
        Self::List,
    ];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "plan_get",
            Self::SetContent => "plan_set_content",
            Self::Report => "plan_report",
            Self::Finalize => "plan_finalize",
            Self::Create => "plan_create",
            Self::SetMetadata => "plan_set_metadata",
            Self::AddStep => "plan_add_step",
            Self::UpdateStep => "plan_update_step",
            Self::RemoveStep => "plan_remove_step",
            Self::Submit => "plan_submit",
            Self::List => "plan_list",
        }
    }

    /// Whether a tool of this name makes a revision of what was drafted.
    #[must_use]
    pub fn is_finishing(name: &str) -> bool {
        [Self::Finalize, Self::Submit].into_iter().any(|tool| tool.name() == name)
    }

    /// Whether a tool of this name changes the draft.
    #[must_use]
    pub fn is_drafting(name: &str) -> bool {
        [Self::Create, Self::SetMetadata, Self::AddStep, Self::UpdateStep, Self::RemoveStep]
            .into_iter()
            .any(|tool| tool.name() == name)
    }

    /// As the model is told of it. Kept short: every token is paid for at every model call.
    #[must_use]
    pub fn spec(self) -> Arc<ToolSpec> {
        static SPECS: LazyLock<[Arc<ToolSpec>; 11]> =
            LazyLock::new(|| PlanTool::ALL.map(|tool| Arc::new(tool.describe())));
        SPECS[self as usize].clone()
    }

    /// The same, with the replies that open comments need.
    #[must_use]
    pub fn spec_for(self, plan: Option<&Plan>) -> Arc<ToolSpec> {
        let plain = self.spec();
        let writes = matches!(self, Self::SetContent | Self::Finalize | Self::Submit);
        if !writes || plan.is_none_or(|plan| plan.comments_open.is_empty()) {
            return plain;
        }
        let mut spec = (*plain).clone();
        spec.parameters["properties"]["replies"] = json!({"type": "array", "items": {
            "type": "object", "required": ["comment"], "properties": {
                "comment": {"type": "integer"}, "declined": {"type": "string"}}}});
        Arc::new(spec)
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
            Self::Finalize => (
                "End planning.",
                json!({"type": "object", "properties": {"summary": {"type": "string"}}}),
            ),
            Self::Create => (
                "Set the goal, once.",
                json!({"type": "object", "required": ["goal"], "properties": {
                    "goal": {"type": "string"}, "title": {"type": "string"}}}),
            ),
            Self::SetMetadata => {
                let list = json!({"type": "array", "items": {"type": "string"}});
                (
                    "All four are needed in the end.",
                    json!({"type": "object", "properties": {
                        "assumptions": list, "risks": list, "verification": list, "files": list}}),
                )
            }
            Self::AddStep => (
                "Add a step for an agent profile.",
                json!({"type": "object", "required": ["title", "instructions", "profile"], "properties": {
                    "title": {"type": "string"}, "instructions": {"type": "string"},
                    "profile": {"type": "string"}}}),
            ),
            Self::UpdateStep => (
                "Change what is given.",
                json!({"type": "object", "required": ["step"], "properties": {
                    "step": {"type": "integer"}, "title": {"type": "string"},
                    "instructions": {"type": "string"}, "profile": {"type": "string"}}}),
            ),
            Self::RemoveStep => (
                "Remove a step.",
                json!({"type": "object", "required": ["step"], "properties": {
                    "step": {"type": "integer"}}}),
            ),
            Self::Submit => ("Propose the draft.", json!({"type": "object"})),
            Self::List => ("List plans.", json!({"type": "object"})),
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
    let undecided = matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready);
    match plan.strategy {
        Strategy::Document if executes(plan, turn) => {
            vec![PlanTool::Get, PlanTool::SetContent, PlanTool::Report]
        }
        Strategy::Document => vec![PlanTool::Get, PlanTool::SetContent],
        Strategy::Collect if undecided => vec![PlanTool::Get, PlanTool::Finalize],
        Strategy::Collect => vec![PlanTool::Get],
        Strategy::Build if executes(plan, turn) => vec![PlanTool::Get, PlanTool::Report],
        Strategy::Build => vec![
            PlanTool::Get,
            PlanTool::List,
            PlanTool::Create,
            PlanTool::SetMetadata,
            PlanTool::AddStep,
            PlanTool::UpdateStep,
            PlanTool::RemoveStep,
            PlanTool::Submit,
        ],
    }
}

fn executes(plan: &Plan, turn: &Turn) -> bool {
    turn.executes() == Some(plan.id)
        && !turn.reported
        && matches!(plan.status, PlanStatus::Executing(_, Progress::Running))
}

/// Whether a tool of this name is answered here, without the toolbox.
#[must_use]
pub fn is_answered_here(name: &str) -> bool {
    is_plan_tool(name) || own::OwnTool::named(name).is_some()
}

/// Whether a name is that of a plan tool, of any strategy.
#[must_use]
pub fn is_plan_tool(name: &str) -> bool {
    PlanTool::ALL.into_iter().any(|tool| tool.name() == name)
}

/// What approving a `document` plan leases: the built-in file tools under the session's root.
#[must_use]
pub fn document_envelope(schemas: &BTreeMap<String, Digest>) -> Envelope {
    let leased = |name: &str| Some((name.to_owned(), *schemas.get(name)?));
    let tools: BTreeMap<_, _> = FILE_TOOLS.into_iter().filter_map(leased).collect();
    let paths = if tools.is_empty() { PathLease::Nothing } else { PathLease::Workspace };
    Envelope { tools, paths, ..Envelope::default() }
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
