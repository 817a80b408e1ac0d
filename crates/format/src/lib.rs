//! The stored form: how events, snapshots, answers and outputs are written as bytes, and read again.
//!
//! The journals of both engines store what this crate makes, and nothing else. [`body`] seals a value with a checksum that
//! also covers where it is stored; [`event`] knows the stored kinds of events, their versions, and the level from which each
//! may be written; [`value`] holds events and refusals in types of their own, apart from the domain's; [`answer`] covers the columns
//! of an answer.
//!
//! Must always hold:
//! - A body is read only where it was written: one changed bit in it or in its place is found.
//! - What a newer program wrote is *newer*, what nobody wrote is *corrupt*: the two are never confused.
//! - Nothing above the agreed level is written.

// The macro names this crate as its other users do.
extern crate self as planwright_format;

pub mod answer;
pub mod body;
pub mod event;
pub mod mapping;
mod stored;
pub mod value;

/// Which of the forms before 0.1.0 this is. Until then the stored form is edited, nothing is carried over, and data of
/// another form is refused: whoever edits it raises this.
pub const DEVELOPMENT_FORM: u32 = 31;

/// Why something stored cannot be read, or something cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A newer program wrote it.
    #[error(
        "{what} was written by a newer version of this program; it is left alone: start that version or a newer one"
    )]
    Newer {
        /// What it is.
        what: String,
    },
    /// It is not what was written.
    #[error("{what} is corrupt: {why}. It is left alone: restore a backup, and check the disk")]
    Corrupt {
        /// What it is.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not every program that reads the journal knows this kind yet.
    #[error(
        "events of the kind {kind} belong to level {level}, and the nodes agreed on level {agreed}; \
         upgrade every node, then run `planwright cluster finalize`"
    )]
    LevelTooLow {
        /// The kind.
        kind: &'static str,
        /// The level that it belongs to.
        level: u32,
        /// The level that may be written.
        agreed: u32,
    },
    /// It cannot be written as bytes.
    #[error("a value cannot be stored: {0}")]
    Unwritable(String),
}
