//! Who asks. A decision needs a person who stands on a surface that identified them.
//!
//! Must always hold:
//! - `model-never-approves`: a model's commands are a type without decisions, and a person's
//!   decision needs [`Standing::Decides`].

use serde::{Deserialize, Serialize};

use crate::model::{
    id::{OwnerId, TurnId},
    identity::ChannelType,
    time::Time,
};

/// The name of the one person whom every installation knows: its owner.
pub const OWNER: &str = "owner";

/// The name under which an installation knows a person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PersonId(pub String);

/// The place at which a person stands: one terminal, one browser, one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Surface(pub String);

impl Surface {
    /// Whether it is a page in a browser. A page shows as much of a text as fits into its window; every other
    /// surface writes it out whole.
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.0.split(' ').next() == Some(ChannelType::Web.name())
    }
}

/// What a person may do from where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Talk, read and stop.
    Speaks,
    /// Also decide: the passphrase was given here, or the device was paired.
    Decides,
}

/// A person, where they stand, and what they may do from there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Person {
    /// What belongs to them is stored under this id.
    pub owner: OwnerId,
    /// The name by which others know them.
    pub id: PersonId,
    /// Where they stand.
    pub surface: Surface,
    /// What they may do from there.
    pub standing: Standing,
    /// When they last gave their passphrase there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated: Option<Time>,
}

impl Person {
    /// A person at a surface.
    #[must_use]
    pub fn new(owner: OwnerId, id: &str, surface: &str, standing: Standing) -> Self {
        let (id, surface) = (PersonId(id.into()), Surface(surface.into()));
        Self { owner, id, surface, standing, authenticated: None }
    }
}

/// Who asks for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person.
    Person(Person),
    /// The model, inside one turn.
    Model(TurnId),
    /// A foreign agent, as it names itself.
    Agent(String),
    /// The runtime itself, reporting what happened.
    System,
}
