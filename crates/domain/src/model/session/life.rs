//! Whether a session is there: open, put away or deleted.

use serde::{Deserialize, Serialize};

use crate::model::{
    actor::{Person, PersonId},
    identity::Root,
    time::Time,
};

/// Whether a session is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is.
    #[default]
    Open,
    /// It was put away.
    Archived,
    /// It was deleted, for good.
    Deleted,
}

/// Who deleted a session, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deletion {
    /// Who.
    pub by: PersonId,
    /// When.
    pub at: Time,
}

impl Life {
    /// The name, as programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
        }
    }
}

/// What happened to a session itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LifeEvent {
    /// It began, in this root: the first event of a session where the operator names roots.
    Opened {
        /// The root.
        root: Root,
    },
    /// It is called something else.
    Renamed {
        /// The title.
        title: String,
        /// Who.
        by: Person,
    },
    /// It was put away.
    Archived {
        /// Who.
        by: Person,
    },
    /// It was brought back.
    Restored {
        /// Who.
        by: Person,
    },
    /// It was deleted.
    Deleted {
        /// Who.
        by: Person,
    },
}
