//! The digest of a conversation, kept as a chain over its messages.

use planwright_domain::digest::Digest;

use crate::ports::model::{Message, WireCall};

/// The chain of what was said, from the beginning.
pub(crate) fn chain(messages: &[Message]) -> Digest {
    messages.iter().fold(Digest::of(b""), link)
}

/// The chain with one message more: each part of it with its length. Kept as the conversation grows, so that a long one
/// is not digested anew for every request.
pub(crate) fn link(chain: Digest, message: &Message) -> Digest {
    let mut parts = chain.0.to_vec();
    let mut part = |tag: u8, text: &str| {
        parts.push(tag);
        parts.extend_from_slice(&(text.len() as u64).to_be_bytes());
        parts.extend_from_slice(text.as_bytes());
    };
    match message {
        Message::User(text) => part(1, text),
        Message::Assistant { text, calls, .. } => {
            part(2, text);
            for WireCall { wire_id, tool, arguments } in calls {
                part(3, wire_id);
                part(4, tool);
                part(5, arguments);
            }
        }
        Message::Tool { wire_id, text, .. } => {
            part(6, wire_id);
            part(7, text);
        }
    }
    Digest::of(&parts)
}
