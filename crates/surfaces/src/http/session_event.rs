//! What a session records, as the API publishes it: `session_event/1`.
//!
//! Each event is a `type` and its `data`. These types are mapped from the domain's and stand apart from them and from the
//! stored form: a domain type may be renamed at any time, a published field may not. Names of fields are in camel case, names
//! of types and choices in snake case, times are RFC 3339. A choice that carries data has a `kind`.

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CallId, Seq},
    identity::Root,
    session as domain,
};
use planwright_format::mapping::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares published types: see [`planwright_format::mapped`].
macro_rules! published {
    ($($declared:tt)*) => {
        planwright_format::mapped! {
            {
                #[derive(
                    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize,
                    schemars::JsonSchema,
                )]
                #[serde(rename_all = "camelCase")]
            }
            {
                #[derive(
                    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize,
                    schemars::JsonSchema,
                )]
                #[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
            }
            $($declared)*
        }
    };
}

mod autonomy;
mod memory;
mod notebook;
mod plan;
mod shared;
mod timestamp;
mod turn;

use self::{
    autonomy::AutoEvent,
    memory::MemoryEvent,
    notebook::NotebookEvent,
    plan::PlanEvent,
    shared::Person,
    turn::{ToolReply, TurnEvent},
};
/// An event of a session: its `type` and its `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionEventDto(SessionEvent);

impl From<&domain::SessionEvent> for SessionEventDto {
    fn from(event: &domain::SessionEvent) -> Self {
        Self(Form::of(event))
    }
}

impl From<SessionEventDto> for domain::SessionEvent {
    fn from(event: SessionEventDto) -> Self {
        event.0.domain()
    }
}

impl JsonSchema for SessionEventDto {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SessionEvent::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SessionEvent::json_schema(generator)
    }
}

published! {
    #[serde(tag = "type", content = "data")]
    enum LifeEvent = session::life::LifeEvent {
        /// The session began, in this root.
        #[serde(rename = "session_opened")]
        Opened { root: Root },
        /// A person gave the session a title.
        #[serde(rename = "session_renamed")]
        Renamed { title: String, by: Person },
        /// A person put the session away.
        #[serde(rename = "session_archived")]
        Archived { by: Person },
        /// A person brought the session back.
        #[serde(rename = "session_restored")]
        Restored { by: Person },
        /// A person deleted the session.
        #[serde(rename = "session_deleted")]
        Deleted { by: Person },
    }
}

/// Every event of a session, by subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SessionEvent {
    Plan(PlanEvent),
    Turn(TurnEvent),
    Auto(AutoEvent),
    Memory(MemoryEvent),
    Notebook(NotebookEvent),
    Life(LifeEvent),
    Conversation(ConversationEvent),
}

/// Events of the conversation as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum ConversationEvent {
    /// A message waits for its turn.
    MessageQueued { text: String, by: Person },
    /// A queued cause was taken out of the queue.
    CauseWithdrawn {
        /// The number of the event that queued it.
        queued: Seq,
        reason: String,
    },
    /// A person asked to have the conversation summed up.
    CompactionAsked { by: Person },
    /// A foreign agent called a plan tool.
    AgentCalled {
        call: CallId,
        /// The name of the person whose agent it is.
        person: PersonId,
        agent: String,
        tool: String,
        arguments: String,
        reply: ToolReply,
    },
    /// A new view begins: the model is given nothing older.
    ViewReset { by: Person },
    /// The head of the decision log after the events before it.
    Logged { head: Digest },
}

impl Form for SessionEvent {
    type Domain = domain::SessionEvent;

    fn of(event: &domain::SessionEvent) -> Self {
        use ConversationEvent as Published;
        use domain::SessionEvent as Domain;
        let event = match event {
            Domain::Plan(event) => return Self::Plan(Form::of(event)),
            Domain::Turn(event) => return Self::Turn(Form::of(event)),
            Domain::Auto(event) => return Self::Auto(Form::of(event)),
            Domain::Memory(event) => return Self::Memory(Form::of(event)),
            Domain::Notebook(event) => return Self::Notebook(Form::of(event)),
            Domain::Life(event) => return Self::Life(Form::of(event)),
            Domain::MessageQueued { text, by } => {
                Published::MessageQueued { text: text.clone(), by: Form::of(by) }
            }
            Domain::CauseWithdrawn { queued, why } => {
                Published::CauseWithdrawn { queued: *queued, reason: why.clone() }
            }
            Domain::CompactionAsked { by } => Published::CompactionAsked { by: Form::of(by) },
            Domain::AgentCalled { call, of, agent, tool, arguments, reply } => {
                Published::AgentCalled {
                    call: *call,
                    person: of.clone(),
                    agent: agent.clone(),
                    tool: tool.clone(),
                    arguments: arguments.clone(),
                    reply: Form::of(reply),
                }
            }
            Domain::ViewReset { by } => Published::ViewReset { by: Form::of(by) },
            Domain::Logged { head } => Published::Logged { head: *head },
        };
        Self::Conversation(event)
    }

    fn domain(self) -> domain::SessionEvent {
        use ConversationEvent as Published;
        use domain::SessionEvent as Domain;
        match self {
            Self::Plan(event) => Domain::Plan(event.domain()),
            Self::Turn(event) => Domain::Turn(event.domain()),
            Self::Auto(event) => Domain::Auto(event.domain()),
            Self::Memory(event) => Domain::Memory(event.domain()),
            Self::Notebook(event) => Domain::Notebook(event.domain()),
            Self::Life(event) => Domain::Life(event.domain()),
            Self::Conversation(event) => match event {
                Published::MessageQueued { text, by } => {
                    Domain::MessageQueued { text, by: by.domain() }
                }
                Published::CauseWithdrawn { queued, reason } => {
                    Domain::CauseWithdrawn { queued, why: reason }
                }
                Published::CompactionAsked { by } => Domain::CompactionAsked { by: by.domain() },
                Published::AgentCalled { call, person, agent, tool, arguments, reply } => {
                    let (of, reply) = (person, reply.domain());
                    Domain::AgentCalled { call, of, agent, tool, arguments, reply }
                }
                Published::ViewReset { by } => Domain::ViewReset { by: by.domain() },
                Published::Logged { head } => Domain::Logged { head },
            },
        }
    }
}
