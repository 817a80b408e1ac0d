//! What of a session's or an owner's events is looked up later: the same for every engine.

use planwright_domain::{
    actor::PersonId,
    id::MemoryId,
    identity::SessionIdentity,
    memory::{Item, MemoryEvent, Scope},
    owner::OwnerEvent,
    session::{LifeEvent, SessionEvent},
};

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
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
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

/// Whether a scope belongs to whose memory is changed; nobody writes into another's.
pub(crate) fn is_own(whose: Whose<'_>, scope: &Scope) -> bool {
    match whose {
        Whose::Session(session) => scope.session() == Some(session),
        Whose::Owner(_) => *scope == Scope::Global,
    }
}
