//! The plan tools, spelled as published: when they are advertised, and what they do.
//!
//! Must always hold:
//! - `mode-gating`: a plan tool is listed only while plan work of its strategy is active, and usable only in its state.
//! - `inactive-is-inert`: called at any other time it is refused as `policy_denied`, and no state
//!   changes.
//! - `no-side-effects-in-plan-tools`: they touch plan state and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{digest::Digest, effect::Effect};

pub mod own;

/// The tool by which an agent asks for a decision, and waits for it.
pub const PLAN_ASK: &str = "plan_ask";

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
}

/// The tool that reads what was shortened: whoever was given the beginning may have the rest.
pub const READ_RESULT: &str = "read_result";

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
