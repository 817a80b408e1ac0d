//! Events of the notebook.

use planwright_domain::{actor::PersonId, id::CallId};

use super::{
    shared::{Bracket, Person},
    timestamp::Timestamp,
};

published! {
    struct AgentNotebookCall = notebook::AgentNotebookCall {
        /// The name of the person whose agent it is.
        of "person": PersonId,
        agent: String, tool: String, arguments: String
    }

    enum Page = notebook::Page { TaskPlan, Findings, Progress }

    #[serde(tag = "type", content = "data")]
    enum NotebookEvent = notebook::NotebookEvent {
        /// A person switched the notebook on or off.
        #[serde(rename = "notebook_switched")]
        Switched { on "enabled": bool, by: Person },
        /// A note is about to be written.
        NoteDue { call: CallId, page: Page },
        /// A foreign agent's notebook call is about to take effect.
        AgentCallStarted { call: CallId, made "request": AgentNotebookCall },
        /// The pages of the deleted session are about to be removed.
        RemovalStarted { attempt: u32, bracket: Bracket },
        /// The pages of the deleted session are removed.
        PagesRemoved { pages "pageCount": u32 },
        /// The pages could not be removed; it is tried again.
        RemovalFailed { why "reason": String, retry_at: Timestamp },
        /// Nobody works on the removal any more; it is tried again.
        RemovalOrphaned { attempt: u32, retry_at: Timestamp },
    }
}
