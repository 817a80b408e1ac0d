//! What belongs to a person and to no session: which conversation each of their chats talks to, what they made known
//! everywhere, and what the models cost in all their sessions.
//!
//! It is a stream of its own. No decision spans it and a session: a pointer to a conversation that is gone is
//! repaired when it is resolved, and what was used in a session is taken up here afterwards, once.
//!
//! Must always hold:
//! - `pointer-repaired`: a chat always resolves to a conversation of its own owner that is there, or to a new one.
//! - `promotion-only-global`: nothing is known everywhere but what a person promoted, by its text.
//! - `usage-counted-once`: what a session used is counted here once, whatever crashes and whoever counts, and stays counted when
//!   the session is erased.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::PersonId,
    id::{MemoryId, OwnerId, Seq},
    identity::{ConversationKey, SessionIdentity, Transport},
    limits,
    memory::{Item, Provenance, Scope},
    quota::{Day, Limit, LimitReached, Quota},
    refusal::Refusal,
    session::{CorruptJournal, Session, life::Life},
};

/// The version of the fold. A snapshot of another version is discarded.
pub const OWNER_FOLD_VERSION: u32 = 2;
/// For how many days what was used is kept apart.
const DAYS_KEPT: i64 = 31;

/// One owner, folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Who.
    pub id: OwnerId,
    /// How many events there are.
    pub version: Seq,
    /// The active pointers.
    #[serde(with = "rows")]
    pub pointers: BTreeMap<Transport, ConversationKey>,
    /// What is known everywhere, by the id it has there.
    pub promoted: BTreeSet<MemoryId>,
    /// What was used, by days: those of a month.
    pub days: BTreeMap<Day, DayUse>,
    /// By how much a limit was raised, and for which day.
    pub raised: BTreeMap<Limit, Raised>,
}

/// What was used in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DayUse {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
}

impl DayUse {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

/// By how much a limit was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// For which day.
    pub day: Day,
    /// By how much.
    pub more: u64,
}

/// What happened to what belongs to an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerEvent {
    /// A chat talks to this conversation from now on.
    PointerMoved {
        /// The chat.
        transport: Transport,
        /// The conversation.
        key: ConversationKey,
        /// Why.
        why: Moved,
    },
    /// A chat talks to nothing any more.
    PointerDropped {
        /// The chat.
        transport: Transport,
    },
    /// A person made something known everywhere.
    MemoryPromoted {
        /// What, as it is known there.
        item: Box<Item>,
    },
    /// Something is no longer known everywhere.
    MemoryForgotten {
        /// What.
        id: MemoryId,
    },
    /// Models were used in sessions of this owner.
    ModelsUsed {
        /// On which day.
        day: Day,
        /// How much.
        used: DayUse,
    },
    /// More may be used on this day.
    LimitRaised {
        /// Of what.
        limit: Limit,
        /// On which day.
        day: Day,
        /// How much more.
        more: u64,
        /// Who said so.
        by: PersonId,
    },
}

impl OwnerEvent {
    /// Its kind, as it is stored.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PointerMoved { .. } => "pointer_moved",
            Self::PointerDropped { .. } => "pointer_dropped",
            Self::MemoryPromoted { .. } => "memory_promoted",
            Self::MemoryForgotten { .. } => "memory_forgotten",
            Self::ModelsUsed { .. } => "models_used",
            Self::LimitRaised { .. } => "limit_raised",
        }
    }
}

/// Why a pointer moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// A person asked for it.
    Requested,
    /// What it pointed to was not there.
    Repaired,
}

/// What can be asked of what belongs to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerCommand {
    /// Let a chat talk to a conversation.
    Bind {
        /// The chat.
        transport: Transport,
        /// The conversation.
        key: ConversationKey,
        /// Why.
        why: Moved,
    },
    /// Let a chat talk to nothing.
    Unbind {
        /// The chat.
        transport: Transport,
    },
    /// Make something known everywhere. The text is what the person read.
    Promote {
        /// What, as its session has it.
        item: Box<Item>,
        /// What the person read.
        text: String,
        /// The id it will have.
        id: MemoryId,
        /// Who.
        by: PersonId,
    },
    /// Bring in something from before there were scopes.
    Import {
        /// What.
        item: Box<Item>,
    },
    /// Let something be known everywhere no more.
    Forget {
        /// What.
        id: MemoryId,
    },
    /// Take up what was used in sessions.
    CountUse {
        /// On which day.
        day: Day,
        /// How much.
        used: DayUse,
    },
    /// Let as much again be used on this day.
    RaiseLimit {
        /// The limit, as the person read it: it is raised once, however often they say so.
        read: LimitReached,
        /// What may be used without being raised.
        quota: Quota,
        /// On which day.
        day: Day,
        /// Who.
        by: PersonId,
    },
}

impl Owner {
    /// An owner to whom nothing has happened.
    #[must_use]
    pub fn new(id: OwnerId) -> Self {
        Self {
            id,
            version: Seq(0),
            pointers: BTreeMap::new(),
            promoted: BTreeSet::new(),
            days: BTreeMap::new(),
            raised: BTreeMap::new(),
        }
    }

    /// Applies a fact.
    pub fn evolve(mut self, event: &OwnerEvent) -> Result<Self, CorruptJournal> {
        self.version = self.version.following();
        match event {
            OwnerEvent::PointerMoved { transport, key, .. } => {
                self.pointers.insert(transport.clone(), key.clone());
            }
            OwnerEvent::PointerDropped { transport } => {
                self.pointers.remove(transport);
            }
            OwnerEvent::MemoryPromoted { item } => {
                self.promoted.insert(item.id);
            }
            OwnerEvent::MemoryForgotten { id } => {
                if !self.promoted.remove(id) {
                    let what = "something forgotten that was not known";
                    return Err(CorruptJournal::new(self.version, what));
                }
            }
            OwnerEvent::ModelsUsed { day, used } => {
                let before = self.days.get(day).copied().unwrap_or_default();
                self.days.insert(*day, before.plus(*used));
                let near = day.0.saturating_sub(DAYS_KEPT)..=day.0.saturating_add(DAYS_KEPT);
                self.days.retain(|kept, _| {
                    *kept == *day || (near.contains(&kept.0) && kept.0 != *near.start())
                });
            }
            OwnerEvent::LimitRaised { limit, day, more, .. } => {
                let before = self.raised_by(*limit, *day);
                let raised = Raised { day: *day, more: before.saturating_add(*more) };
                self.raised.insert(*limit, raised);
            }
        }
        Ok(self)
    }

    /// What was used on this day, as far as it was taken up.
    #[must_use]
    pub fn used_on(&self, day: Day) -> DayUse {
        self.days.get(&day).copied().unwrap_or_default()
    }

    /// By how much a limit was raised for this day.
    fn raised_by(&self, limit: Limit, day: Day) -> u64 {
        self.raised.get(&limit).filter(|raised| raised.day == day).map_or(0, |raised| raised.more)
    }

    /// What may be used on this day.
    #[must_use]
    pub fn quota_on(&self, quota: Quota, day: Day) -> Quota {
        let raised = self.raised.keys().copied();
        raised.fold(quota, |quota, limit| quota.raised(limit, self.raised_by(limit, day)))
    }

    /// The state after these events.
    pub fn fold(&self, events: &[OwnerEvent]) -> Result<Self, CorruptJournal> {
        events.iter().try_fold(self.clone(), Self::evolve)
    }
}

/// Decides one command: events, or a refusal in words. Pure. What is the case already has no events.
pub fn decide(owner: &Owner, command: &OwnerCommand) -> Result<Vec<OwnerEvent>, Refusal> {
    Ok(match command {
        OwnerCommand::Bind { transport, key, why } => {
            if owner.pointers.get(transport) == Some(key) {
                return Ok(Vec::new());
            }
            let full = owner.pointers.len() >= limits::POINTERS_MAX;
            if full && !owner.pointers.contains_key(transport) {
                return Err(Refusal::TooMany { what: "chats".into(), limit: limits::POINTERS_MAX });
            }
            let (transport, key) = (transport.clone(), key.clone());
            vec![OwnerEvent::PointerMoved { transport, key, why: *why }]
        }
        OwnerCommand::Unbind { transport } if owner.pointers.contains_key(transport) => {
            vec![OwnerEvent::PointerDropped { transport: transport.clone() }]
        }
        OwnerCommand::Unbind { .. } => Vec::new(),
        OwnerCommand::Promote { item, text, id, by } => {
            let from = item.scope.session().ok_or(Refusal::AlreadyGlobal)?.clone();
            if item.text != *text {
                return Err(Refusal::OtherText);
            }
            if owner.promoted.contains(id) {
                return Ok(Vec::new());
            }
            known_everywhere(owner)?;
            let provenance = Provenance::Promoted { by: by.clone(), from, item: item.id };
            let item = Item { id: *id, scope: Scope::Global, provenance, ..(**item).clone() };
            vec![OwnerEvent::MemoryPromoted { item: Box::new(item) }]
        }
        OwnerCommand::Import { item } => {
            if owner.promoted.contains(&item.id) {
                return Ok(Vec::new());
            }
            known_everywhere(owner)?;
            let provenance = Provenance::Legacy;
            let item = Item { scope: Scope::Global, provenance, ..(**item).clone() };
            vec![OwnerEvent::MemoryPromoted { item: Box::new(item) }]
        }
        OwnerCommand::Forget { id } if owner.promoted.contains(id) => {
            vec![OwnerEvent::MemoryForgotten { id: *id }]
        }
        OwnerCommand::Forget { .. } => {
            return Err(Refusal::NotThere { what: "such memory".into() });
        }
        OwnerCommand::CountUse { used, .. } if *used == DayUse::default() => Vec::new(),
        OwnerCommand::CountUse { day, used } => {
            vec![OwnerEvent::ModelsUsed { day: *day, used: *used }]
        }
        OwnerCommand::RaiseLimit { read, quota, day, by } => {
            let (limit, max) = (read.limit, owner.quota_on(*quota, *day).of(read.limit));
            if max != Some(read.max) {
                return Ok(Vec::new());
            }
            // From what is used on, so that there is something left.
            let over = read.used.saturating_sub(read.max);
            let more = quota.of(limit).unwrap_or_default().max(1).saturating_add(over);
            vec![OwnerEvent::LimitRaised { limit, day: *day, more, by: by.clone() }]
        }
    })
}

fn known_everywhere(owner: &Owner) -> Result<(), Refusal> {
    let limit = limits::GLOBAL_MEMORY_MAX;
    if owner.promoted.len() < limit {
        Ok(())
    } else {
        Err(Refusal::TooMany { what: "things known everywhere".into(), limit })
    }
}

/// What a pointer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The conversation that it names.
    Stands(ConversationKey),
    /// Another one, to which it must be moved first.
    Repair(ConversationKey),
}

/// The conversation that a chat talks to: the one that its pointer names if it is there and belongs to the
/// owner, else the owner's newest in that channel, else the fresh one.
#[must_use]
pub fn resolve(
    owner: OwnerId,
    named: Option<(&ConversationKey, &Session)>,
    newest: Option<SessionIdentity>,
    fresh: ConversationKey,
) -> Resolution {
    if let Some((key, session)) = named
        && is_reachable(owner, session)
    {
        return Resolution::Stands(key.clone());
    }
    Resolution::Repair(newest.map_or(fresh, |newest| newest.key))
}

/// Whether a conversation is there for this owner: nothing was said in it yet, or it is theirs and not deleted.
#[must_use]
pub fn is_reachable(owner: OwnerId, session: &Session) -> bool {
    if session.life == Life::Deleted {
        return false;
    }
    if session.version == Seq(0) {
        return session.identity.key.may_be_new();
    }
    session.owner == owner
}

/// Maps whose keys are no texts are written as rows.
mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::model::identity::{ConversationKey, Transport};

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<Transport, ConversationKey>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Transport, ConversationKey>, D::Error> {
        Ok(Vec::<(Transport, ConversationKey)>::deserialize(deserializer)?.into_iter().collect())
    }
}
