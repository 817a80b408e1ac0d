//! What of a session's or an owner's events is looked up later: the same for every engine.

use planwright_domain::{
    actor::PersonId,
    id::MemoryId,
    identity::SessionIdentity,
    memory::{Item, MemoryEvent, Scope},
    owner::OwnerEvent,
    session::{SessionEvent, life::LifeEvent},
};
use planwright_runtime::ports::journal::JournalError;

/// A change of what is looked up.
pub(crate) enum Change<'a> {
    /// Something is remembered.
    Put(&'a Item),
    /// Something is remembered in other words.
    Reword(MemoryId, &'a str),
    /// Something is forgotten.
    Drop(MemoryId),
    /// Everything of the session is forgotten.
    DropAll,
}

/// What these events of a session change.
pub(crate) fn of_session(events: &[SessionEvent]) -> Vec<Change<'_>> {
    events
        .iter()
        .filter_map(|event| match event {
            SessionEvent::Memory(MemoryEvent::Saved { item }) => Some(Change::Put(item)),
            SessionEvent::Memory(MemoryEvent::Changed { id, text, .. }) => {
                Some(Change::Reword(*id, text))
            }
            SessionEvent::Memory(MemoryEvent::Forgotten { id }) => Some(Change::Drop(*id)),
            SessionEvent::Life(LifeEvent::Deleted { .. }) => Some(Change::DropAll),
            SessionEvent::Life(_)
            | SessionEvent::Plan(_)
            | SessionEvent::Turn(_)
            | SessionEvent::Auto(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. } => None,
        })
        .collect()
}

/// What these events of an owner change.
pub(crate) fn of_owner(events: &[OwnerEvent]) -> Vec<Change<'_>> {
    events
        .iter()
        .filter_map(|event| match event {
            OwnerEvent::MemoryPromoted { item } => Some(Change::Put(item)),
            OwnerEvent::MemoryForgotten { id } => Some(Change::Drop(*id)),
            OwnerEvent::PointerMoved { .. } | OwnerEvent::PointerDropped { .. } => None,
        })
        .collect()
}

/// Whose memory a change is about: a session's, or what an owner knows everywhere.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// A session's.
    Session(&'a SessionIdentity),
    /// What an owner knows everywhere.
    Owner(&'a PersonId),
}

/// The columns by which a scope is found: owner, session, part. What carries no owner is empty there.
pub(crate) fn columns(owner: &PersonId, scope: &Scope) -> (String, String, String) {
    let session = scope.session().map(ToString::to_string).unwrap_or_default();
    match scope {
        Scope::Global => (owner.0.clone(), session, String::new()),
        Scope::Session(_) => (String::new(), session, String::new()),
        Scope::Goal(_, goal) => (String::new(), session, format!("goal {goal}")),
        Scope::Task(_, task) => (String::new(), session, format!("task {task}")),
    }
}

impl Whose<'_> {
    /// The owner whose scopes are written into; nobody writes into another's.
    pub(crate) fn writes_into(self, scope: &Scope) -> Result<PersonId, JournalError> {
        match self {
            Self::Session(session) if scope.session() == Some(session) => {
                Ok(PersonId(String::new()))
            }
            Self::Owner(owner) if *scope == Scope::Global => Ok(owner.clone()),
            Self::Session(_) | Self::Owner(_) => {
                let words = "a memory of another session was to be written";
                Err(JournalError::Engine(words.into()))
            }
        }
    }

    /// The columns by which what is theirs is found: session, owner.
    pub(crate) fn columns(self) -> (String, String) {
        match self {
            Self::Session(session) => (session.to_string(), String::new()),
            Self::Owner(owner) => (String::new(), owner.0.clone()),
        }
    }
}
