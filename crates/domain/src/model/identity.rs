//! Which conversation. State is looked up by [`SessionKey`], the owner and the [`SessionIdentity`], and by nothing else.
//!
//! Must always hold:
//! - `session-isolation`: two identities never share a text form, and two keys never do, so nothing keyed by that text
//!   can be reached from another session or by another owner.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::model::id::OwnerId;

/// Where a conversation lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChannelType {
    /// The dashboard.
    Web,
    /// A Telegram chat.
    Telegram,
    /// A terminal.
    Cli,
    /// A program that speaks the HTTP API.
    Api,
    /// A foreign agent that speaks MCP.
    Mcp,
    /// An editor that speaks ACP.
    Acp,
}

impl ChannelType {
    /// All channels, in the order of the glossary.
    pub const ALL: [Self; 6] =
        [Self::Web, Self::Telegram, Self::Cli, Self::Api, Self::Mcp, Self::Acp];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Telegram => "telegram",
            Self::Cli => "cli",
            Self::Api => "api",
            Self::Mcp => "mcp",
            Self::Acp => "acp",
        }
    }
}

/// A delivery address inside a channel. Used to deliver, never to look anything up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TransportChatId(pub String);

/// A chat of a channel: where something came from, and where answers are delivered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transport {
    /// The channel.
    pub channel: ChannelType,
    /// The address in it.
    pub chat: TransportChatId,
}

impl Transport {
    /// This chat of this channel.
    #[must_use]
    pub fn new(channel: ChannelType, chat: &str) -> Self {
        Self { channel, chat: TransportChatId(chat.into()) }
    }
}

/// The logical conversation inside a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct ConversationKey(String);

impl TryFrom<String> for ConversationKey {
    type Error = IdentityRefusal;

    fn try_from(key: String) -> Result<Self, IdentityRefusal> {
        Self::legacy(&key)
    }
}

impl From<ConversationKey> for String {
    fn from(key: ConversationKey) -> Self {
        key.0
    }
}

/// Why a text is not a conversation key or an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityRefusal {
    /// A new key must match the published pattern.
    #[error("a new conversation key has 8 to 64 letters, digits, - or _; {0:?} does not fit")]
    NewKey(String),
    /// Older keys may hold anything, but not nothing, and not without end.
    #[error("a conversation key has 1 to 256 characters")]
    LegacyKey,
    /// The text form of an identity is `channel:key`.
    #[error(
        "a session is written channel:key with one of the channels web, telegram, cli, api, mcp, acp; {0:?} is not"
    )]
    Text(String),
    /// The text form of a key is the owner's id in 32 hexadecimal digits, a point, and the identity.
    #[error(
        "a stored session is written owner.channel:key with the owner in 32 hexadecimal digits; {0:?} is not"
    )]
    KeyText(String),
}

impl ConversationKey {
    /// A key for a new conversation: `^[a-zA-Z0-9_-]{8,64}$`.
    pub fn new(key: &str) -> Result<Self, IdentityRefusal> {
        let fits = (8..=64).contains(&key.len()) && key.bytes().all(is_plain);
        if fits { Ok(Self(key.into())) } else { Err(IdentityRefusal::NewKey(key.into())) }
    }

    /// A key as an older version may have written it. It can only address a session that exists.
    pub fn legacy(key: &str) -> Result<Self, IdentityRefusal> {
        let fits = (1..=256).contains(&key.chars().count());
        if fits { Ok(Self(key.into())) } else { Err(IdentityRefusal::LegacyKey) }
    }

    /// Whether a new session may have this key.
    #[must_use]
    pub fn may_be_new(&self) -> bool {
        Self::new(&self.0).is_ok()
    }

    /// The key, as it is.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session: a channel and a conversation in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionIdentity {
    /// Where the conversation lives.
    pub channel: ChannelType,
    /// Which conversation it is.
    pub key: ConversationKey,
}

impl SessionIdentity {
    /// A session of this channel.
    #[must_use]
    pub fn new(channel: ChannelType, key: ConversationKey) -> Self {
        Self { channel, key }
    }

    /// Reads the text form `channel:key`. Bytes of the key other than letters, digits, `-` and `_`
    /// are written `%XX`, in capitals and nowhere else, so that two identities never share a text.
    pub fn parse(text: &str) -> Result<Self, IdentityRefusal> {
        let refused = || IdentityRefusal::Text(text.into());
        let (channel, key) = text.split_once(':').ok_or_else(refused)?;
        let channel = ChannelType::ALL
            .into_iter()
            .find(|known| known.name() == channel)
            .ok_or_else(refused)?;
        let identity =
            Self { channel, key: ConversationKey::legacy(&unescape(key).ok_or_else(refused)?)? };
        if identity.to_string() == text { Ok(identity) } else { Err(refused()) }
    }

    /// The form that is safe as one path segment on every file system, also on one that does not tell capitals
    /// from small letters: a capital is written as `=` and its small letter.
    #[must_use]
    pub fn path_segment(&self) -> String {
        let mut segment = String::new();
        for letter in self.to_string().replacen(':', ".", 1).chars() {
            if letter.is_ascii_uppercase() {
                segment.push('=');
            }
            segment.push(letter.to_ascii_lowercase());
        }
        segment
    }
}

/// The directory that a session's file tools and its envelope's paths are relative to: an absolute path on the machine that
/// does the work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Root(pub String);

/// A session in the store: whose it is, and which of theirs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Whose it is.
    pub owner: OwnerId,
    /// Which of theirs.
    pub identity: SessionIdentity,
}

impl SessionKey {
    /// This session of this owner.
    #[must_use]
    pub fn new(owner: OwnerId, identity: SessionIdentity) -> Self {
        Self { owner, identity }
    }

    /// Reads the text form `owner.channel:key`.
    pub fn parse(text: &str) -> Result<Self, IdentityRefusal> {
        let refused = || IdentityRefusal::KeyText(text.into());
        let (owner, identity) = text.split_once('.').ok_or_else(refused)?;
        let owner = OwnerId(Uuid::try_parse(owner).map_err(|_| refused())?);
        let key = Self { owner, identity: SessionIdentity::parse(identity)? };
        if key.to_string() == text { Ok(key) } else { Err(refused()) }
    }

    /// Reads a session as this owner names it: their own by its identity alone, one of somebody else by its whole key.
    pub fn named(text: &str, owner: OwnerId) -> Result<Self, IdentityRefusal> {
        match SessionIdentity::parse(text) {
            Ok(identity) => Ok(Self { owner, identity }),
            Err(refusal) => Self::parse(text).map_err(|_| refusal),
        }
    }

    /// The name of the session for this owner. [`SessionKey::named`] reads it.
    #[must_use]
    pub fn name_for(&self, owner: OwnerId) -> String {
        if self.owner == owner { self.identity.to_string() } else { self.to_string() }
    }

    /// The form that is safe as one path segment on every file system.
    #[must_use]
    pub fn path_segment(&self) -> String {
        format!("{}.{}", self.owner.0.simple(), self.identity.path_segment())
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.owner.0.simple(), self.identity)
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl fmt::Display for SessionIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.channel.name())?;
        self.key.0.bytes().try_for_each(|byte| {
            if is_plain(byte) {
                write!(formatter, "{}", byte as char)
            } else {
                write!(formatter, "%{byte:02X}")
            }
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SessionIdentity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SessionIdentity".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Serialize for SessionIdentity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionIdentity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
