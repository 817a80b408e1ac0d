//! What changed between two revisions, as a reviewer reads it.
//!
//! Lines are compared without the ordinal of a numbered list, so that an inserted step is one
//! added row and the renumbering after it is none.

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// One row of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffRow {
    /// What became of it.
    pub change: Change,
    /// The line, as the side that has it wrote it.
    pub text: String,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What became of one part of a text: a heading, or an entry of its outermost lists, with what is under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Its first line, without the ordinal.
    pub title: String,
    /// What became of it.
    pub change: PartChange,
    /// The rows of it.
    pub rows: Vec<DiffRow>,
}

/// What became of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartChange {
    /// It stands in both, word for word.
    Same,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It stands in both, with other words.
    Changed,
}

/// How alike two parts must be to be one that changed.
const ALIKE: f32 = 0.5;

/// What became of each part, in the order of the later text. Ordinals do not count.
#[must_use]
pub fn parts(before: &str, after: &str) -> Vec<Part> {
    let (old, new) = (split(before), split(after));
    let (old_text, new_text): (Vec<_>, Vec<_>) = (
        old.iter().map(|part| plain(part)).collect(),
        new.iter().map(|part| plain(part)).collect(),
    );
    let (olds, news): (Vec<&str>, Vec<&str>) = (
        old_text.iter().map(String::as_str).collect(),
        new_text.iter().map(String::as_str).collect(),
    );
    let mut found: Vec<Part> = Vec::new();
    let mut gone: Vec<usize> = Vec::new();
    for change in TextDiff::from_slices(&olds, &news).iter_all_changes() {
        match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Delete, Some(at), _) => gone.push(at),
            (ChangeTag::Equal, _, Some(at)) => {
                found.extend(gone.drain(..).map(|at| part(&old[at], "", PartChange::Removed)));
                found.push(part(&new[at], &new[at], PartChange::Same));
            }
            (ChangeTag::Insert, _, Some(at)) => {
                let likeness = |other: &usize| TextDiff::from_lines(olds[*other], news[at]).ratio();
                let same_title = |other: &usize| title(&old[*other]) == title(&new[at]);
                let twin =
                    gone.iter().position(|other| same_title(other) || likeness(other) >= ALIKE);
                found.push(match twin {
                    Some(twin) => part(&old[gone.remove(twin)], &new[at], PartChange::Changed),
                    None => part("", &new[at], PartChange::Added),
                });
            }
            (ChangeTag::Delete | ChangeTag::Equal | ChangeTag::Insert, _, _) => {}
        }
    }
    found.extend(gone.into_iter().map(|at| part(&old[at], "", PartChange::Removed)));
    found
}

fn part(before: &str, after: &str, change: PartChange) -> Part {
    let named = if after.is_empty() { before } else { after };
    Part { title: title(named).to_owned(), change, rows: rows(before, after) }
}

fn title(part: &str) -> &str {
    let line = part.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = bare(line).trim_start_matches('#').trim();
    let step = line.strip_prefix("Step ").and_then(|rest| rest.split_once(": "));
    match step {
        Some((number, rest)) if number.chars().all(|digit| digit.is_ascii_digit()) => rest,
        Some(_) | None => line.trim_start_matches(['-', '*']).trim(),
    }
}

/// A part without ordinals and blank lines, for comparing.
fn plain(part: &str) -> String {
    let mut lines = part.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(|_| title(part)).unwrap_or_default();
    lines.fold(first.to_owned(), |text, line| text + "\n" + bare(line))
}

/// The parts of a text: each begins at a heading or at an entry of an outermost list.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut fence): (Vec<String>, Option<String>) = (Vec::new(), None);
    for line in text.lines() {
        let marks = line.len() - line.trim_start_matches('`').len();
        let mark = (marks >= 3).then(|| "`".repeat(marks));
        let begins = fence.is_none()
            && (line.starts_with('#')
                || line.starts_with("- ")
                || line.starts_with("* ")
                || (!line.starts_with(' ') && bare(line) != line.trim_end()));
        fence = match (fence, mark) {
            (None, mark) => mark,
            (Some(open), Some(mark)) if mark.len() >= open.len() => None,
            (Some(open), _) => Some(open),
        };
        match parts.last_mut() {
            Some(part) if !begins => {
                part.push('\n');
                part.push_str(line);
            }
            Some(_) | None => parts.push(line.to_owned()),
        }
    }
    parts
}
