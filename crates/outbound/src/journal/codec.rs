//! Events and snapshots as bytes: JSON, compressed where that pays.

use planwright_domain::{
    identity::SessionIdentity,
    memory::Item,
    owner::{Owner, OwnerEvent},
    session::{Session, SessionEvent},
};
use planwright_runtime::ports::journal::JournalError;
use serde::{Serialize, de::DeserializeOwned};

/// Shorter bodies are stored as they are.
const COMPRESS_FROM_BYTES: usize = 192;
/// How hard it is compressed: beyond this the gain is small.
const LEVEL: i32 = 3;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// No stored body is larger than this when unpacked.
const UNPACKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Packs values, and keeps what it needs for that from one to the next.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(LEVEL)?))
    }

    /// An event as it is written at this level: its kind and its body.
    pub(crate) fn pack_event(
        &mut self,
        event: &SessionEvent,
        level: u32,
    ) -> Result<(&'static str, Vec<u8>), JournalError> {
        let (kind, body) = (event.kind(), self.pack(event)?);
        Ok(future::written(kind, body, level))
    }

    pub(crate) fn pack(&mut self, value: &impl Serialize) -> Result<Vec<u8>, JournalError> {
        let mut plain = vec![PLAIN];
        serde_json::to_writer(&mut plain, value)
            .map_err(|error| JournalError::Engine(Box::new(error)))?;
        if plain.len() < COMPRESS_FROM_BYTES {
            return Ok(plain);
        }
        let packed =
            self.0.compress(&plain[1..]).map_err(|error| JournalError::Engine(Box::new(error)))?;
        if packed.len() + 1 >= plain.len() {
            return Ok(plain);
        }
        let mut body = vec![ZSTD];
        body.extend_from_slice(&packed);
        Ok(body)
    }
}

fn unpack<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    match body.split_first() {
        Some((&PLAIN, json)) => serde_json::from_slice(json).map_err(|error| words(&error)),
        Some((&ZSTD, packed)) => {
            let json = zstd::bulk::decompress(packed, unpacked_size(packed))
                .map_err(|error| words(&error))?;
            serde_json::from_slice(&json).map_err(|error| words(&error))
        }
        Some((other, _)) => Err(format!("an unknown encoding {other}")),
        None => Err("an empty body".into()),
    }
}

fn unpacked_size(packed: &[u8]) -> usize {
    let known = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    known
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(UNPACKED_BYTES_MAX)
        .min(UNPACKED_BYTES_MAX)
}

pub(crate) fn unpack_event(
    identity: &SessionIdentity,
    kind: &str,
    body: &[u8],
) -> Result<SessionEvent, JournalError> {
    unpack(future::read(body)).map_err(|what| JournalError::UnknownEvent {
        identity: identity.to_string(),
        what: format!("{kind}: {what}"),
    })
}

/// The kind that the event of this row has in this version.
pub(crate) fn kind_now(kind: &str) -> &str {
    future::kind_now(kind)
}

/// The highest level of events that this program knows.
pub(crate) fn known_level() -> u32 {
    future::known_level()
}

/// What comes after this version: nothing.
#[cfg(not(feature = "failpoints"))]
mod future {
    use planwright_domain::session::EVENT_LEVEL;

    pub(super) fn written(kind: &'static str, body: Vec<u8>, _: u32) -> (&'static str, Vec<u8>) {
        (kind, body)
    }

    pub(super) fn read(body: &[u8]) -> &[u8] {
        body
    }

    pub(super) fn kind_now(kind: &str) -> &str {
        kind
    }

    pub(super) fn known_level() -> u32 {
        EVENT_LEVEL
    }
}

/// What comes after this version, for the proof of an upgrade: under `PLANWRIGHT_FUTURE` the program
/// knows one level more, in which messages are a kind of event that the others do not know.
#[cfg(feature = "failpoints")]
mod future {
    use planwright_domain::session::EVENT_LEVEL;

    const KIND: &str = "message_noted";
    const NOTED: u8 = 9;

    pub(super) fn written(
        kind: &'static str,
        mut body: Vec<u8>,
        level: u32,
    ) -> (&'static str, Vec<u8>) {
        if kind != "message_queued" || level <= EVENT_LEVEL || known_level() == EVENT_LEVEL {
            return (kind, body);
        }
        body.insert(0, NOTED);
        (KIND, body)
    }

    pub(super) fn read(body: &[u8]) -> &[u8] {
        match body.split_first() {
            Some((&NOTED, rest)) if known_level() > EVENT_LEVEL => rest,
            Some(_) | None => body,
        }
    }

    pub(super) fn kind_now(kind: &str) -> &str {
        if kind == KIND && known_level() > EVENT_LEVEL { "message_queued" } else { kind }
    }

    pub(super) fn known_level() -> u32 {
        EVENT_LEVEL + u32::from(std::env::var_os("PLANWRIGHT_FUTURE").is_some())
    }
}

/// Something that is remembered.
pub(crate) fn unpack_item(body: &[u8]) -> Result<Item, JournalError> {
    unpack(body).map_err(|what| JournalError::Engine(what.into()))
}

/// What belongs to an owner, or nothing if it cannot be read: the events are the truth.
pub(crate) fn unpack_owner(body: &[u8]) -> Option<Owner> {
    unpack(body).ok()
}

/// An event of an owner's stream.
pub(crate) fn unpack_owner_event(body: &[u8]) -> Result<OwnerEvent, JournalError> {
    unpack(body).map_err(|what| JournalError::Engine(what.into()))
}

/// A kept output.
pub(crate) fn unpack_output(body: &[u8]) -> Result<String, JournalError> {
    unpack(body).map_err(|what| JournalError::Engine(what.into()))
}

/// A snapshot, or nothing if it cannot be read: the events are the truth.
pub(crate) fn unpack_snapshot(body: &[u8]) -> Option<Session> {
    unpack(body).ok()
}
