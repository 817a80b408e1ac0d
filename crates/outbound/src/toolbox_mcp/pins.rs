//! The schemas that tools had when they were first seen, kept in one file.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use super::{Digest, Mutex, PoisonError};
use crate::durable_file;

/// The schemas that tools had when they were first seen.
pub struct Pins {
    file: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    pinned: BTreeMap<String, Digest>,
    /// Tools that came with another schema, with that schema.
    quarantined: BTreeMap<String, Digest>,
}

impl Pins {
    /// The pins in this file, which is made when the first tool is seen.
    pub fn open(file: PathBuf) -> io::Result<Self> {
        let pinned = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { file, known: Mutex::new(Known { pinned, ..Known::default() }) })
    }

    /// Whether a tool has the schema that it had when it was first seen.
    pub(super) fn admits(&self, tool: &str, schema: Digest) -> Result<bool, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.pinned.get(tool) {
            Some(pinned) if *pinned == schema => {
                known.quarantined.remove(tool);
                Ok(true)
            }
            Some(_) => {
                if known.quarantined.insert(tool.to_owned(), schema) != Some(schema) {
                    tracing::error!(tool, event = "tool_quarantined");
                }
                Ok(false)
            }
            None => {
                known.pinned.insert(tool.to_owned(), schema);
                self.keep(&known.pinned)
                    .map_err(|error| format!("the pins cannot be kept: {error}"))?;
                Ok(true)
            }
        }
    }

    /// The tools that came with another schema than the one that is pinned.
    #[must_use]
    pub fn quarantined(&self) -> Vec<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.quarantined.keys().cloned().collect()
    }

    /// The operator accepts the schema that a quarantined tool came with; whether there was one.
    pub fn accept(&self, tool: &str) -> io::Result<bool> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(schema) = known.quarantined.remove(tool) else { return Ok(false) };
        known.pinned.insert(tool.to_owned(), schema);
        self.keep(&known.pinned)?;
        Ok(true)
    }

    /// Writes all of them, or nothing.
    fn keep(&self, pinned: &BTreeMap<String, Digest>) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(pinned).map_err(io::Error::other)?;
        durable_file::write_private(&self.file, &text)
    }
}
