//! Events and snapshots as bytes: JSON, compressed where that pays.

use planwright_domain::{
    identity::SessionIdentity,
    session::{Session, SessionEvent},
};
use planwright_runtime::ports::JournalError;
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
    unpack(body).map_err(|what| JournalError::UnknownEvent {
        identity: identity.to_string(),
        what: format!("{kind}: {what}"),
    })
}

/// A snapshot, or nothing if it cannot be read: the events are the truth.
pub(crate) fn unpack_snapshot(body: &[u8]) -> Option<Session> {
    unpack(body).ok()
}
