//! What changed between two revisions, as a reviewer reads it.
//!
//! Lines are compared without the ordinal of a numbered list, so that an inserted step is one
//! added row and the renumbering after it is none.

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// One row of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffRow {
    /// What became of it.
    pub change: Change,
    /// The line, as the side that has it wrote it.
    pub text: String,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It stands in both.
    Same,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

/// The rows that lead from one text to another.
#[must_use]
pub fn rows(before: &str, after: &str) -> Vec<DiffRow> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let (old_bare, new_bare): (Vec<_>, Vec<_>) =
        (old.iter().map(|line| bare(line)).collect(), new.iter().map(|line| bare(line)).collect());
    let diff = TextDiff::from_slices(&old_bare, &new_bare);
    diff.iter_all_changes()
        .map(|change| {
            let line = |lines: &[&str], at: Option<usize>| {
                at.and_then(|at| lines.get(at)).map_or_else(String::new, |line| (*line).to_owned())
            };
            match change.tag() {
                ChangeTag::Equal => {
                    DiffRow { change: Change::Same, text: line(&new, change.new_index()) }
                }
                ChangeTag::Insert => {
                    DiffRow { change: Change::Added, text: line(&new, change.new_index()) }
                }
                ChangeTag::Delete => {
                    DiffRow { change: Change::Removed, text: line(&old, change.old_index()) }
                }
            }
        })
        .collect()
}

/// A line without the ordinal of a numbered list, and without trailing blanks.
fn bare(line: &str) -> &str {
    let body = line.trim_start();
    let digits = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &body[digits..];
    let numbered = digits > 0 && digits < 4 && (rest.starts_with(". ") || rest.starts_with(") "));
    if numbered { rest[2..].trim() } else { line.trim_end() }
}
