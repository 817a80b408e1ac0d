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
                self.pin(&mut known, tool, schema)
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
        let Some(schema) = known.quarantined.get(tool).copied() else { return Ok(false) };
        self.pin(&mut known, tool, schema)?;
        known.quarantined.remove(tool);
        Ok(true)
    }

    /// Pins a schema. One that could not be written is not pinned: the next start would not know it.
    fn pin(&self, known: &mut Known, tool: &str, schema: Digest) -> io::Result<()> {
        let mut pinned = known.pinned.clone();
        pinned.insert(tool.to_owned(), schema);
        let text = serde_json::to_vec_pretty(&pinned).map_err(io::Error::other)?;
        durable_file::write_private(&self.file, &text)?;
        known.pinned = pinned;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, Pins};

    #[test]
    fn a_schema_that_cannot_be_written_is_not_pinned() {
        let home = tempfile::tempdir().expect("a directory");
        let (missing, file) = (home.path().join("later"), home.path().join("later/pins"));
        let (first, other) = (Digest([1; 32]), Digest([2; 32]));
        let pins = Pins::open(file.clone()).expect("pins");
        assert!(pins.admits("a", first).is_err(), "there is no such directory");
        assert!(pins.admits("a", first).is_err(), "nor at the second look");
        std::fs::create_dir(&missing).expect("made");
        assert_eq!(pins.admits("a", first), Ok(true));
        assert_eq!(pins.admits("a", other), Ok(false));
        std::fs::remove_dir_all(&missing).expect("removed");
        assert!(pins.accept("a").is_err());
        assert_eq!((pins.admits("a", other), pins.quarantined()), (Ok(false), vec!["a".into()]));
        std::fs::create_dir(&missing).expect("made");
        assert!(pins.accept("a").expect("written"));
        let again = Pins::open(file).expect("pins");
        assert_eq!((again.admits("a", other), again.quarantined()), (Ok(true), Vec::new()));
    }
}
