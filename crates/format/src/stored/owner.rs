//! Events of an owner.

use planwright_domain::{
    id::MemoryId,
    identity::{ConversationKey, TransportChatId},
};

use super::{memory::Item, shared::ChannelType};

stored! {
    enum Moved = owner::Moved { Requested, Repaired }

    struct Transport = identity::Transport { channel: ChannelType, chat: TransportChatId }

    enum OwnerEvent = owner::OwnerEvent {
        PointerMoved { transport: Transport, key: ConversationKey, why: Moved },
        PointerDropped { transport: Transport },
        MemoryPromoted { item: Box<Item> },
        MemoryForgotten { id: MemoryId },
    }
}
