//! Specifications of the tools that are answered here, as the model is given them. Kept short: every token is paid for at
//! every model call.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use crate::model::{
    effect::Effect,
    tools::{PlanTool, ToolSpec, own::OwnTool},
};

impl PlanTool {
    /// As the model is told of it. Kept short: every token is paid for at every model call.
    #[must_use]
    pub fn spec(self) -> Arc<ToolSpec> {
        static SPECS: LazyLock<[Arc<ToolSpec>; 11]> =
            LazyLock::new(|| PlanTool::ALL.map(|tool| Arc::new(tool.describe())));
        SPECS[self as usize].clone()
    }

    fn describe(self) -> ToolSpec {
        // How comments are replied to is said with them.
        let replies = json!({"type": "array", "items": {"type": "object"}});
        let (description, parameters) = match self {
            Self::Get => ("Load the plan.", json!({"type": "object"})),
            Self::SetContent => (
                "Save the whole plan.",
                json!({"type": "object", "required": ["plan_markdown"], "properties": {
                    "plan_markdown": {"type": "string"}, "title": {"type": "string"},
                    "replies": replies}}),
            ),
            Self::Report => (
                "End the execution.",
                json!({"type": "object", "required": ["status", "summary"], "properties": {
                    "status": {"enum": ["done", "failed", "blocked"]},
                    "summary": {"type": "string"}, "evidence": {"type": "string"}}}),
            ),
            Self::Finalize => (
                "End planning.",
                json!({"type": "object", "properties": {
                    "summary": {"type": "string"}, "replies": replies}}),
            ),
            Self::Create => (
                "Set the goal.",
                json!({"type": "object", "required": ["goal"], "properties": {
                    "goal": {"type": "string"}, "title": {"type": "string"}}}),
            ),
            Self::SetMetadata => {
                let list = json!({"type": "array", "items": {"type": "string"}});
                (
                    "All are needed.",
                    json!({"type": "object", "properties": {
                        "assumptions": list, "risks": list, "verification": list, "files": list}}),
                )
            }
            Self::AddStep => (
                "Add a step.",
                json!({"type": "object", "required": ["title", "instructions", "profile"], "properties": {
                    "title": {"type": "string"}, "instructions": {"type": "string"},
                    "profile": {"type": "string"}}}),
            ),
            Self::UpdateStep => (
                "Change a step.",
                json!({"type": "object", "required": ["step"], "properties": {
                    "step": {"type": "integer"}, "title": {"type": "string"},
                    "instructions": {"type": "string"}, "profile": {"type": "string"}}}),
            ),
            Self::RemoveStep => (
                "Remove a step.",
                json!({"type": "object", "required": ["step"], "properties": {
                    "step": {"type": "integer"}}}),
            ),
            Self::Submit => {
                ("Propose it.", json!({"type": "object", "properties": {"replies": replies}}))
            }
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

impl OwnTool {
    /// As the model is told of it.
    #[must_use]
    pub fn spec(self) -> Arc<ToolSpec> {
        static SPECS: LazyLock<[Arc<ToolSpec>; 4]> =
            LazyLock::new(|| OwnTool::ALL.map(|tool| Arc::new(tool.describe())));
        SPECS[self as usize].clone()
    }

    fn describe(self) -> ToolSpec {
        let (description, parameters) = match self {
            Self::TaskReport => (
                "End your task.",
                json!({"type": "object", "required": ["status", "summary"], "properties": {
                    "status": {"enum": ["done", "failed", "blocked"]}, "summary": {"type": "string"}}}),
            ),
            Self::MemorySave => (
                "Remember something.",
                json!({"type": "object", "required": ["text"], "properties": {
                    "text": {"type": "string"},
                    "kind": {"enum": ["fact", "preference", "decision", "constraint", "detail"]},
                    "scope": {"enum": ["task", "goal", "session"]}, "confidence": {"type": "integer"}}}),
            ),
            Self::MemorySearch => (
                "Search what is remembered.",
                json!({"type": "object", "required": ["query"], "properties": {
                    "query": {"type": "string"}}}),
            ),
            Self::MemoryForget => (
                "Forget something.",
                json!({"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string"}}}),
            ),
        };
        let (name, description) = (self.name().into(), description.into());
        ToolSpec { name, description, parameters, effect: Effect::Internal }
    }
}
