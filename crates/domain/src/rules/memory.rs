//! What a person asks of what is remembered, and which scopes a session sees.

use crate::model::{
    actor::Person,
    autonomy::AutoExecutionContext,
    limits,
    memory::{Chain, Item, MemoryCommand, MemoryEvent, Provenance, Scope},
    refusal::Refusal,
    session::Session,
    time::Time,
};

pub mod apply;
pub mod ranking;
pub mod select;

impl Chain {
    /// What is seen in this session by whose work is done there.
    #[must_use]
    pub fn in_session(session: &Session, context: Option<&AutoExecutionContext>) -> Self {
        Self::of(session.owner, &session.identity, context)
    }
}

/// What a person asks of what is remembered in a session.
pub(crate) fn decide(
    session: &Session,
    at: Time,
    person: &Person,
    command: &MemoryCommand,
) -> Result<Vec<MemoryEvent>, Refusal> {
    Ok(vec![match command {
        MemoryCommand::Save { id, kind, text } => {
            let item = Item {
                id: *id,
                kind: *kind,
                scope: Scope::Session(session.identity.clone()),
                text: fitting(text)?,
                provenance: Provenance::Person { by: person.id.clone() },
                confidence: 100,
                at,
            };
            MemoryEvent::Saved { item: Box::new(item) }
        }
        MemoryCommand::Change { .. } | MemoryCommand::Forget { .. } if session.is_new() => {
            return Err(Refusal::NotThere { what: "memory".into() });
        }
        MemoryCommand::Change { id, text } => {
            MemoryEvent::Changed { id: *id, text: fitting(text)?, by: person.id.clone() }
        }
        MemoryCommand::Forget { id } => MemoryEvent::Forgotten { id: *id },
    }])
}

/// A text that can be remembered.
pub(crate) fn fitting(text: &str) -> Result<String, Refusal> {
    let (bytes, limit) = (text.trim().len(), limits::MEMORY_BYTES_MAX);
    match bytes {
        0 => Err(Refusal::EmptyMessage),
        _ if bytes > limit => Err(Refusal::MessageTooLong { bytes, limit }),
        _ => Ok(text.trim().to_owned()),
    }
}
