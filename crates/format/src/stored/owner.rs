//! Events of an owner.

use planwright_domain::{
    actor::PersonId,
    id::MemoryId,
    identity::{ConversationKey, TransportChatId},
    quota::Day,
};

use super::{
    memory::Item,
    shared::{ChannelType, Limit},
};

stored! {
    enum Moved = owner::Moved { Requested, Repaired }

    struct Transport = identity::Transport { channel: ChannelType, chat: TransportChatId }

    struct DayUse = owner::DayUse { tokens: u64, cost_micros: u64 }

    enum OwnerEvent = owner::OwnerEvent {
        PointerMoved { transport: Transport, key: ConversationKey, why: Moved },
        PointerDropped { transport: Transport },
        MemoryPromoted { item: Box<Item> },
        MemoryForgotten { id: MemoryId },
        ModelsUsed { day: Day, used: DayUse },
        LimitRaised { limit: Limit, day: Day, more: u64, by: PersonId },
    }
}
