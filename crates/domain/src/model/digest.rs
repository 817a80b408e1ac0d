//! SHA-256 over a tagged, length-prefixed encoding.
//!
//! Every field is written as tag, length, bytes, so that no two different values share an
//! encoding: moving a byte from one field to its neighbour changes the digest.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of an encoded value. Text form: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
pub struct Digest(#[cfg_attr(feature = "schema", schemars(with = "String"))] pub [u8; 32]);

impl Digest {
    /// The digest of plain bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first eight digits: enough for a person to compare, never enough to decide by.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }

    /// Reads the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({})", self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("a digest is 64 hexadecimal digits"))
    }
}

/// Writes tagged, length-prefixed fields into a digest.
pub(crate) struct Encoder(Sha256);

impl Encoder {
    /// Begins an encoding of this kind of value, in this version. What is hashed in a version never changes:
    /// a change is a new version beside it.
    pub(crate) fn of(kind: &str, version: u64) -> Self {
        Self(Sha256::new()).field("planwright", kind).number("version", version)
    }

    /// Adds one field of text.
    pub(crate) fn field(self, tag: &str, value: &str) -> Self {
        self.bytes(tag, value.as_bytes())
    }

    /// Adds one field of bytes.
    pub(crate) fn bytes(mut self, tag: &str, value: &[u8]) -> Self {
        for part in [tag.as_bytes(), value] {
            self.0.update((part.len() as u64).to_be_bytes());
            self.0.update(part);
        }
        self
    }

    /// Adds one whole number.
    pub(crate) fn number(self, tag: &str, value: u64) -> Self {
        self.bytes(tag, &value.to_be_bytes())
    }

    /// Adds a field that may be absent; absent differs from empty.
    pub(crate) fn optional(self, tag: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.number(tag, 1).field(tag, value),
            None => self.number(tag, 0),
        }
    }

    /// Ends the encoding.
    pub(crate) fn digest(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}
