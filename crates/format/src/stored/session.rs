//! Events of a session: the one list of everything that is stored of it.

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CallId, Seq},
    identity::Root,
};

use super::{
    autonomy::AutoEvent,
    memory::MemoryEvent,
    notebook::NotebookEvent,
    plan::PlanEvent,
    shared::Person,
    turn::{ToolReply, TurnEvent},
};

stored! {
    enum LifeEvent = session::life::LifeEvent {
        Opened { root: Root },
        Renamed { title: String, by: Person },
        Archived { by: Person },
        Restored { by: Person },
        Deleted { by: Person },
    }

    enum SessionEvent = session::SessionEvent {
        Plan(of: PlanEvent),
        Turn(of: TurnEvent),
        Auto(of: AutoEvent),
        Memory(of: MemoryEvent),
        Notebook(of: NotebookEvent),
        Life(of: LifeEvent),
        MessageQueued { text: String, by: Person },
        CauseWithdrawn { queued: Seq, why: String },
        CompactionAsked { by: Person },
        AgentCalled {
            call: CallId, of: PersonId, agent: String, tool: String, arguments: String, reply: ToolReply
        },
        ViewReset { by: Person },
        Logged { head: Digest },
    }
}
