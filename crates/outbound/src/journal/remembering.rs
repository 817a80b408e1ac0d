//! What of a session's or an owner's events is looked up later: the same for every engine.

use planwright_domain::{
    id::{MemoryId, OwnerId},
    identity::SessionKey,
    memory::{Item, MemoryEvent, Scope},
    owner::OwnerEvent,
    session::{SessionEvent, life::LifeEvent},
};
use planwright_format::{
    body::{self, MEMORY_VERSION, Packer, Place},
    value::StoredItem,
};
use planwright_runtime::ports::journal::JournalError;
use uuid::Uuid;

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
            OwnerEvent::PointerMoved { .. }
            | OwnerEvent::PointerDropped { .. }
            | OwnerEvent::ModelsUsed { .. }
            | OwnerEvent::LimitRaised { .. } => None,
        })
        .collect()
}

/// Whose memory a change is about: a session's, or what an owner knows everywhere.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// A session's.
    Session(&'a SessionKey),
    /// What an owner knows everywhere.
    Owner(OwnerId),
}

/// The columns by which a scope of an owner is found: session, part.
pub(crate) fn columns(scope: &Scope) -> (String, String) {
    let session = scope.session().map(ToString::to_string).unwrap_or_default();
    match scope {
        Scope::Global | Scope::Session(_) => (session, String::new()),
        Scope::Goal(_, goal) => (session, format!("goal {goal}")),
        Scope::Task(_, task) => (session, format!("task {task}")),
    }
}

impl Whose<'_> {
    /// The owner whose scopes are written into; nobody writes into another's.
    pub(crate) fn writes_into(self, scope: &Scope) -> Result<OwnerId, JournalError> {
        match self {
            Self::Session(key) if scope.session() == Some(&key.identity) => Ok(key.owner),
            Self::Owner(owner) if *scope == Scope::Global => Ok(owner),
            Self::Session(_) | Self::Owner(_) => {
                let words = "a memory of another session was to be written";
                Err(JournalError::Engine(words.into()))
            }
        }
    }

    /// The columns by which what is theirs is found: session, owner.
    pub(crate) fn columns(self) -> (String, OwnerId) {
        match self {
            Self::Session(key) => (key.identity.to_string(), key.owner),
            Self::Owner(owner) => (String::new(), owner),
        }
    }
}

/// Where an item is looked up: owner, session, part, and its id.
pub(crate) struct ItemPlace {
    pub(crate) owner: Uuid,
    pub(crate) session: String,
    pub(crate) part: String,
    pub(crate) item: Uuid,
}

impl ItemPlace {
    fn place<'a>(&'a self, owner: &'a str) -> Place<'a> {
        let Self { session, part, item, .. } = self;
        Place::Memory { owner, session, part, item: item.as_bytes() }
    }

    /// An item that is stored here, sealed.
    pub(crate) fn seal(&self, packer: &mut Packer, item: &Item) -> Result<Vec<u8>, JournalError> {
        Ok(packer.seal(
            &self.place(&self.owner.to_string()),
            MEMORY_VERSION,
            &StoredItem::from(item),
        )?)
    }

    /// The item that was stored here.
    pub(crate) fn read(&self, body: &[u8]) -> Result<Item, JournalError> {
        let owner = self.owner.to_string();
        Ok(body::read::<StoredItem>(&self.place(&owner), MEMORY_VERSION, body)?.into())
    }
}
