//! Events of the notebook.

use planwright_domain::{actor::PersonId, id::CallId, time::Time};

use super::shared::{Bracket, Person};

stored! {
    struct AgentNotebookCall = notebook::AgentNotebookCall {
        of: PersonId, agent: String, tool: String, arguments: String
    }

    enum Page = notebook::Page { TaskPlan, Findings, Progress }

    enum NotebookEvent = notebook::NotebookEvent {
        Switched { on: bool, by: Person },
        NoteDue { call: CallId, page: Page },
        AgentCallStarted { call: CallId, made: AgentNotebookCall },
        RemovalStarted { attempt: u32, bracket: Bracket },
        PagesRemoved { pages: u32 },
        RemovalFailed { why: String, retry_at: Time },
        RemovalOrphaned { attempt: u32, retry_at: Time },
    }
}
