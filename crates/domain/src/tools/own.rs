//! Tools that are answered here, beside the plan tools: a run's report, and what is remembered.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use crate::{
    effect::Effect,
    session::Session,
    tools::ToolSpec,
    turn::{Cause, Turn},
};

/// Tools that are answered here, beside the plan tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnTool {
    /// `task_report`
    TaskReport,
    /// `memory_save`
    MemorySave,
    /// `memory_search`
    MemorySearch,
    /// `memory_forget`
    MemoryForget,
}

impl OwnTool {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::TaskReport, Self::MemorySave, Self::MemorySearch, Self::MemoryForget];

    /// Those of what is remembered.
    pub const MEMORY: [Self; 3] = [Self::MemorySave, Self::MemorySearch, Self::MemoryForget];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskReport => "task_report",
            Self::MemorySave => "memory_save",
            Self::MemorySearch => "memory_search",
            Self::MemoryForget => "memory_forget",
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

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

/// The tools of a run that this turn may see and use.
#[must_use]
pub fn of_run(session: &Session, turn: &Turn) -> Option<OwnTool> {
    let ticks = matches!(turn.cause.cause, Cause::Tick { .. });
    (ticks && session.auto.context(turn).is_some()).then_some(OwnTool::TaskReport)
}
