//! What a written file held before, and what became of it: digests, and the lines that differ.

use std::{
    io::{self, Read as _},
    time::Duration,
};

use cap_std::fs::File;
use planwright_domain::{digest::Digest, effect::FileChange};
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use super::FILE_BYTES_MAX;

/// How long lines are looked for that both texts have; after that, more of them count as changed.
const DIFF_WITHIN: Duration = Duration::from_millis(500);
/// How many unchanged lines stand around a change.
const AROUND: usize = 3;

/// What a file held before it was written.
pub(super) struct Before {
    digest: Digest,
    /// None if it is no text, or longer than any file that is read.
    text: Option<String>,
}

impl Before {
    /// Reads all of it: what is overwritten is recorded, however long it is.
    pub(super) fn of(mut file: File) -> io::Result<Self> {
        let (mut hasher, mut held) = (Sha256::new(), Vec::new());
        let mut piece = vec![0; 64 * 1024];
        loop {
            let bytes = match file.read(&mut piece)? {
                0 => break,
                read => &piece[..read],
            };
            hasher.update(bytes);
            if held.len() as u64 <= FILE_BYTES_MAX {
                held.extend_from_slice(bytes);
            }
        }
        let is_short = held.len() as u64 <= FILE_BYTES_MAX;
        let text = is_short.then_some(held).and_then(|held| String::from_utf8(held).ok());
        Ok(Self { digest: Digest(hasher.finalize().into()), text })
    }
}

/// What becomes of a file that is written; without what it held before, it was not there.
pub(super) fn change(path: String, before: Option<&Before>, content: &str) -> FileChange {
    let old = before.map_or(Some(""), |before| before.text.as_deref());
    let diff = old.map(|old| {
        let diff = TextDiff::configure().timeout(DIFF_WITHIN).diff_lines(old, content);
        diff.unified_diff().context_radius(AROUND).to_string()
    });
    let (before, after) = (before.map(|before| before.digest), Digest::of(content.as_bytes()));
    FileChange { path, before, after, diff }
}
