//! Tools that are answered here, beside the plan tools: a run's report, and what is remembered.

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
}
