//! A stored body: JSON, compressed where that pays, behind a header with a checksum.
//!
//! ```text
//! encoding  1 byte    0 plain, 1 zstd
//! version   2 bytes   of the form of what is in it, little endian
//! checksum  8 bytes   CRC-64/NVME of the place, the encoding, the version and the payload, little endian
//! payload
//! ```
//!
//! A CRC is not a signature: it finds what broke, not who changed it. Decisions are protected by digests and by the decision
//! log, which are sealed inside.

use crc_fast::{CrcAlgorithm, Digest as Crc};
use serde::{Serialize, de::DeserializeOwned};

use crate::FormatError;

/// Shorter payloads are stored as they are.
const COMPRESS_FROM_BYTES: usize = 192;
/// How hard it is compressed: level 3 takes nearly twice the time of this, and leaves one byte of a hundred less.
const ZSTD_LEVEL: i32 = 1;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const HEADER_BYTES: usize = 11;
/// No stored payload is larger than this when unpacked.
const UNPACKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The version of the form of a kept output.
pub const OUTPUT_VERSION: u16 = 1;
/// The version of the form of a conversation that is kept.
pub const VIEW_VERSION: u16 = 1;
/// The version of the form of an item in the index of memories.
pub const MEMORY_VERSION: u16 = 1;

/// Where a body is stored. The checksum covers it, so a body that lies anywhere else is corrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// An event of a session.
    Event {
        /// The session's identity.
        session: &'a str,
        /// Its number in the stream.
        seq: u64,
        /// Its stored kind.
        kind: &'a str,
        /// When it was recorded, in microseconds.
        at: i64,
    },
    /// An event of an owner.
    OwnerEvent {
        /// The owner.
        owner: &'a str,
        /// Its number in the stream.
        seq: u64,
        /// Its stored kind.
        kind: &'a str,
        /// When it was recorded, in microseconds.
        at: i64,
    },
    /// An event of the installation.
    InstallationEvent {
        /// Its number in the stream.
        seq: u64,
        /// Its stored kind.
        kind: &'a str,
        /// When it was recorded, in microseconds.
        at: i64,
    },
    /// A folded session.
    Snapshot {
        /// The session's identity.
        session: &'a str,
        /// How many events are folded in it.
        version: u64,
        /// The version of the fold.
        fold: u32,
    },
    /// The folded state of an owner.
    OwnerState {
        /// The owner.
        owner: &'a str,
        /// How many events are folded in it.
        version: u64,
        /// The version of the fold.
        fold: u32,
    },
    /// The folded state of the installation.
    InstallationState {
        /// How many events are folded in it.
        version: u64,
        /// The version of the fold.
        fold: u32,
    },
    /// An output that is kept whole.
    Output {
        /// The session's identity.
        session: &'a str,
        /// The digest of its text.
        digest: &'a [u8],
    },
    /// A conversation that is kept as it stood.
    View {
        /// The session's identity.
        session: &'a str,
        /// Up to which event.
        upto: u64,
        /// The form of its text.
        form: u32,
    },
    /// An item in the index of memories.
    Memory {
        /// The owner, where it is known everywhere; else empty.
        owner: &'a str,
        /// The session, where it belongs to one; else empty.
        session: &'a str,
        /// The goal or task of the session; else empty.
        part: &'a str,
        /// The item's id.
        item: &'a [u8],
    },
    /// The columns of an answer, which have no payload.
    Answer {
        /// The session's identity.
        session: &'a str,
        /// The command's id.
        command: &'a [u8],
    },
}

impl Place<'_> {
    /// Feeds everything that identifies the place; texts with their lengths, so that no two places look alike.
    fn feed(&self, crc: &mut Crc) {
        match *self {
            Self::Event { session, seq, kind, at } => {
                crc.update(&[1]);
                feed_bytes(crc, session.as_bytes());
                crc.update(&seq.to_le_bytes());
                feed_bytes(crc, kind.as_bytes());
                crc.update(&at.to_le_bytes());
            }
            Self::OwnerEvent { owner, seq, kind, at } => {
                crc.update(&[2]);
                feed_bytes(crc, owner.as_bytes());
                crc.update(&seq.to_le_bytes());
                feed_bytes(crc, kind.as_bytes());
                crc.update(&at.to_le_bytes());
            }
            Self::Snapshot { session, version, fold } => {
                crc.update(&[3]);
                feed_bytes(crc, session.as_bytes());
                crc.update(&version.to_le_bytes());
                crc.update(&fold.to_le_bytes());
            }
            Self::OwnerState { owner, version, fold } => {
                crc.update(&[4]);
                feed_bytes(crc, owner.as_bytes());
                crc.update(&version.to_le_bytes());
                crc.update(&fold.to_le_bytes());
            }
            Self::Output { session, digest } => {
                crc.update(&[5]);
                feed_bytes(crc, session.as_bytes());
                feed_bytes(crc, digest);
            }
            Self::View { session, upto, form } => {
                crc.update(&[10]);
                feed_bytes(crc, session.as_bytes());
                crc.update(&upto.to_le_bytes());
                crc.update(&form.to_le_bytes());
            }
            Self::Memory { owner, session, part, item } => {
                crc.update(&[6]);
                feed_bytes(crc, owner.as_bytes());
                feed_bytes(crc, session.as_bytes());
                feed_bytes(crc, part.as_bytes());
                feed_bytes(crc, item);
            }
            Self::Answer { session, command } => {
                crc.update(&[7]);
                feed_bytes(crc, session.as_bytes());
                feed_bytes(crc, command);
            }
            Self::InstallationEvent { seq, kind, at } => {
                crc.update(&[8]);
                crc.update(&seq.to_le_bytes());
                feed_bytes(crc, kind.as_bytes());
                crc.update(&at.to_le_bytes());
            }
            Self::InstallationState { version, fold } => {
                crc.update(&[9]);
                crc.update(&version.to_le_bytes());
                crc.update(&fold.to_le_bytes());
            }
        }
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event { session, seq, kind, .. } => {
                write!(f, "event {seq} ({kind}) of {session}")
            }
            Self::OwnerEvent { owner, seq, kind, .. } => {
                write!(f, "event {seq} ({kind}) of the owner {owner}")
            }
            Self::InstallationEvent { seq, kind, .. } => {
                write!(f, "event {seq} ({kind}) of the installation")
            }
            Self::Snapshot { session, version, .. } => {
                write!(f, "the snapshot of {session} at event {version}")
            }
            Self::OwnerState { owner, version, .. } => {
                write!(f, "the state of the owner {owner} at event {version}")
            }
            Self::InstallationState { version, .. } => {
                write!(f, "the state of the installation at event {version}")
            }
            Self::Output { session, .. } => write!(f, "an output of {session}"),
            Self::View { session, upto, .. } => {
                write!(f, "the conversation of {session} up to event {upto}")
            }
            Self::Memory { .. } => write!(f, "a memory"),
            Self::Answer { session, .. } => write!(f, "an answer of {session}"),
        }
    }
}

pub(crate) fn feed_bytes(crc: &mut Crc, bytes: &[u8]) {
    crc.update(&(bytes.len() as u64).to_le_bytes());
    crc.update(bytes);
}

/// A checksum that has taken in the place.
pub(crate) fn checksum_of(place: &Place<'_>) -> Crc {
    let mut crc = Crc::new(CrcAlgorithm::Crc64Nvme);
    place.feed(&mut crc);
    crc
}

fn checksum(place: &Place<'_>, encoding: u8, version: u16, payload: &[u8]) -> u64 {
    let mut crc = checksum_of(place);
    crc.update(&[encoding]);
    crc.update(&version.to_le_bytes());
    crc.update(payload);
    crc.finalize()
}

/// Seals values, and keeps what it needs for that from one to the next.
pub struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    /// A new one.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(ZSTD_LEVEL)?))
    }

    /// This value as it is stored in this place, in this version of its form.
    pub fn seal(
        &mut self,
        place: &Place<'_>,
        version: u16,
        value: &impl Serialize,
    ) -> Result<Vec<u8>, FormatError> {
        let unwritable = |error: &dyn std::fmt::Display| FormatError::Unwritable(error.to_string());
        let mut body = vec![PLAIN; HEADER_BYTES];
        serde_json::to_writer(&mut body, value).map_err(|error| unwritable(&error))?;
        let plain = body.len() - HEADER_BYTES;
        if plain >= COMPRESS_FROM_BYTES {
            let packed =
                self.0.compress(&body[HEADER_BYTES..]).map_err(|error| unwritable(&error))?;
            if packed.len() < plain {
                body.truncate(HEADER_BYTES);
                body[0] = ZSTD;
                body.extend_from_slice(&packed);
            }
        }
        let checksum = checksum(place, body[0], version, &body[HEADER_BYTES..]);
        body[1..3].copy_from_slice(&version.to_le_bytes());
        body[3..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        Ok(body)
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// What a body holds: the version of its form, and its JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The version of its form.
    pub version: u16,
    /// Its JSON.
    pub json: Vec<u8>,
}

/// Opens a body that was read from this place.
pub fn open(place: &Place<'_>, body: &[u8]) -> Result<Opened, FormatError> {
    let corrupt = |why: &str| FormatError::Corrupt { what: place.to_string(), why: why.into() };
    let Some((header, payload)) = body.split_first_chunk::<HEADER_BYTES>() else {
        return Err(corrupt("it is shorter than its header"));
    };
    let &[encoding, low, high, ref sum @ ..] = header;
    let version = u16::from_le_bytes([low, high]);
    if checksum(place, encoding, version, payload) != u64::from_le_bytes(*sum) {
        return Err(corrupt("its checksum does not fit"));
    }
    let json = match encoding {
        PLAIN => payload.to_vec(),
        ZSTD => zstd::bulk::decompress(payload, unpacked_size(payload))
            .map_err(|error| corrupt(&error.to_string()))?,
        // The checksum fits: a program wrote it so that knows an encoding more.
        _ => return Err(FormatError::Newer { what: place.to_string() }),
    };
    Ok(Opened { version, json })
}

/// Opens a body whose form has one version so far.
pub fn read<T: DeserializeOwned>(
    place: &Place<'_>,
    known: u16,
    body: &[u8],
) -> Result<T, FormatError> {
    let opened = open(place, body)?;
    if opened.version > known {
        return Err(FormatError::Newer { what: place.to_string() });
    }
    serde_json::from_slice(&opened.json)
        .map_err(|error| FormatError::Corrupt { what: place.to_string(), why: error.to_string() })
}

fn unpacked_size(packed: &[u8]) -> usize {
    let known = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    known
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(UNPACKED_BYTES_MAX)
        .min(UNPACKED_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: Place<'_> = Place::Event { session: "cli:talk-01", seq: 7, kind: "k", at: 9 };

    fn sealed(place: &Place<'_>, value: &str) -> Vec<u8> {
        Packer::new().expect("a packer").seal(place, 3, &value).expect("a body")
    }

    fn is_corrupt(opened: &Result<Opened, FormatError>) -> bool {
        matches!(opened, Err(FormatError::Corrupt { .. }))
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_where_it_was_sealed(value in ".{0,400}") {
            let opened = open(&PLACE, &sealed(&PLACE, &value)).expect("opened");
            let json = serde_json::to_vec(&value).expect("json");
            prop_assert_eq!(opened, Opened { version: 3, json });
        }

        #[test]
        fn a_body_with_one_changed_bit_is_corrupt(value in ".{0,400}", bit in any::<prop::sample::Index>()) {
            let mut body = sealed(&PLACE, &value);
            let bit = bit.index(body.len() * 8);
            body[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(is_corrupt(&open(&PLACE, &body)));
        }

        #[test]
        fn any_bytes_are_corrupt(body in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(is_corrupt(&open(&PLACE, &body)));
        }
    }

    #[test]
    fn a_body_is_corrupt_in_every_other_place() {
        let other = [
            Place::Event { session: "cli:talk-02", seq: 7, kind: "k", at: 9 },
            Place::Event { session: "cli:talk-01", seq: 8, kind: "k", at: 9 },
            Place::Event { session: "cli:talk-01", seq: 7, kind: "l", at: 9 },
            Place::Event { session: "cli:talk-01", seq: 7, kind: "k", at: 10 },
            Place::OwnerEvent { owner: "cli:talk-01", seq: 7, kind: "view_reset", at: 9 },
            Place::Snapshot { session: "cli:talk-01", version: 7, fold: 9 },
            Place::Snapshot { session: "cli:talk-01", version: 7, fold: 10 },
            Place::OwnerState { owner: "cli:talk-01", version: 7, fold: 9 },
            Place::Output { session: "cli:talk-01", digest: b"k" },
            Place::Output { session: "cli:talk-0", digest: b"1k" },
            Place::Memory { owner: "o", session: "", part: "", item: b"k" },
            Place::Memory { owner: "", session: "o", part: "", item: b"k" },
            Place::Answer { session: "cli:talk-01", command: b"k" },
            Place::InstallationEvent { seq: 7, kind: "k", at: 9 },
            Place::InstallationState { version: 7, fold: 9 },
        ];
        for (at, place) in other.iter().enumerate() {
            assert!(is_corrupt(&open(place, &sealed(&PLACE, "words"))), "{place}");
            for (beside, another) in other.iter().enumerate() {
                let opened = open(another, &sealed(place, "words"));
                assert_eq!(opened.is_ok(), at == beside, "{place}, {another}");
            }
        }
    }

    #[test]
    fn an_encoding_or_a_version_that_nobody_here_knows_is_newer_and_not_corrupt() {
        let mut body = sealed(&PLACE, "words");
        body[0] = 9;
        let sum = checksum(&PLACE, 9, 3, &body[HEADER_BYTES..]);
        body[3..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        let newer = FormatError::Newer { what: "event 7 (k) of cli:talk-01".into() };
        assert_eq!(open(&PLACE, &body), Err(newer.clone()));
        assert_eq!(read::<String>(&PLACE, 2, &sealed(&PLACE, "words")), Err(newer));
        assert_eq!(read::<String>(&PLACE, 3, &sealed(&PLACE, "words")), Ok("words".into()));
    }

    #[test]
    fn the_form_of_a_body_does_not_change() {
        let places = [
            PLACE,
            Place::OwnerEvent { owner: "ada", seq: 7, kind: "pointer_moved", at: 9 },
            Place::Snapshot { session: "cli:talk-01", version: 7, fold: 9 },
            Place::OwnerState { owner: "ada", version: 7, fold: 9 },
            Place::InstallationEvent { seq: 7, kind: "person_added", at: 9 },
            Place::Output { session: "cli:talk-01", digest: b"d" },
            Place::Memory { owner: "", session: "cli:talk-01", part: "", item: b"i" },
        ];
        let hex = |body: Vec<u8>| body.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let bodies = places.map(|place| hex(sealed(&place, "words")));
        let pinned = [
            "0003009b69539b548749df22776f72647322",
            "0003007cc8d1afc19d96e022776f72647322",
            "0003004ce2c295220efac922776f72647322",
            "000300cb52cfcec8321c4722776f72647322",
            "000300195525cc112bd2c822776f72647322",
            "000300aa4c70ecbddb5b6022776f72647322",
            "0003006946a2c8c907a30e22776f72647322",
        ];
        assert_eq!(bodies, pinned);
    }
}
