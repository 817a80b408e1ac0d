//! What changed between two revisions, as a reviewer reads it.
//!
//! Lines are compared without the ordinal of a numbered list, so that an inserted step is one
//! added row and the renumbering after it is none.

use pulldown_cmark::{Event, Options, Parser, Tag};
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

/// A line of a text, as it is compared.
struct Line<'a> {
    /// As it is written.
    text: &'a str,
    /// Without the ordinal of a numbered list, and without trailing blanks.
    bare: &'a str,
    /// Whether a part begins here: a heading, or an entry of an outermost list.
    begins: bool,
}

/// The lines of a text. What is a heading, an entry or an ordinal is the Markdown parser's to say: in a block of code,
/// however it is fenced, there is none.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<_> =
        text.lines().map(|text| Line { text, bare: text.trim_end(), begins: false }).collect();
    let mut end = 0;
    let ends = text.split_inclusive('\n').map(|line| {
        end += line.len();
        end
    });
    let ends: Vec<_> = ends.collect();
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    // The blocks that are open, each with whether it is a numbered list.
    let mut open: Vec<bool> = Vec::new();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::End(_) => drop(open.pop()),
            Event::Start(tag) => {
                let is_entry = matches!(tag, Tag::Item);
                let begins = match open.len() {
                    0 => matches!(tag, Tag::Heading { .. }),
                    1 => is_entry,
                    _ => false,
                };
                if let Some(line) = lines.get_mut(ends.partition_point(|end| *end <= range.start)) {
                    line.begins |= begins;
                    if is_entry && open.last() == Some(&true) {
                        line.bare = without_ordinal(line.text);
                    }
                }
                open.push(matches!(tag, Tag::List(Some(_))));
            }
            Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    lines
}

/// An entry of a numbered list without its number. More than three digits are a year, and what it says.
fn without_ordinal(line: &str) -> &str {
    let body = line.trim_start();
    let rest = body.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = body.len() - rest.len();
    rest.strip_prefix(['.', ')']).filter(|_| digits < 4).map_or(line.trim_end(), str::trim)
}

/// The lines of a text as they are compared.
pub(super) fn bare(text: &str) -> Vec<&str> {
    lines(text).into_iter().map(|line| line.bare).collect()
}

/// The rows that lead from one text to another.
#[must_use]
pub fn rows(before: &str, after: &str) -> Vec<DiffRow> {
    rows_of(&lines(before), &lines(after))
}

fn rows_of(old: &[Line<'_>], new: &[Line<'_>]) -> Vec<DiffRow> {
    let old_bare: Vec<_> = old.iter().map(|line| line.bare).collect();
    let new_bare: Vec<_> = new.iter().map(|line| line.bare).collect();
    let row = |change, lines: &[Line<'_>], at: Option<usize>| {
        let line = at.and_then(|at| lines.get(at));
        DiffRow { change, text: line.map_or_else(String::new, |line| line.text.to_owned()) }
    };
    let diff = TextDiff::from_slices(&old_bare, &new_bare);
    let rows = diff.iter_all_changes().map(|change| match change.tag() {
        ChangeTag::Equal => row(Change::Same, new, change.new_index()),
        ChangeTag::Insert => row(Change::Added, new, change.new_index()),
        ChangeTag::Delete => row(Change::Removed, old, change.old_index()),
    });
    rows.collect()
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
    let (old, new) = (lines(before), lines(after));
    let (old, new) = (split(&old), split(&new));
    let old_text: Vec<_> = old.iter().map(|part| plain(part)).collect();
    let new_text: Vec<_> = new.iter().map(|part| plain(part)).collect();
    let olds: Vec<_> = old_text.iter().map(String::as_str).collect();
    let news: Vec<_> = new_text.iter().map(String::as_str).collect();
    let mut found: Vec<Part> = Vec::new();
    let mut gone: Vec<usize> = Vec::new();
    for change in TextDiff::from_slices(&olds, &news).iter_all_changes() {
        match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Delete, Some(at), _) => gone.push(at),
            (ChangeTag::Equal, _, Some(at)) => {
                found.extend(gone.drain(..).map(|at| part(old[at], &[], PartChange::Removed)));
                found.push(part(new[at], new[at], PartChange::Same));
            }
            (ChangeTag::Insert, _, Some(at)) => {
                let likeness = |other: &usize| TextDiff::from_lines(olds[*other], news[at]).ratio();
                let same_title = |other: &usize| title(old[*other]) == title(new[at]);
                let twin =
                    gone.iter().position(|other| same_title(other) || likeness(other) >= ALIKE);
                found.push(match twin {
                    Some(twin) => part(old[gone.remove(twin)], new[at], PartChange::Changed),
                    None => part(&[], new[at], PartChange::Added),
                });
            }
            (ChangeTag::Delete | ChangeTag::Equal | ChangeTag::Insert, _, _) => {}
        }
    }
    found.extend(gone.into_iter().map(|at| part(old[at], &[], PartChange::Removed)));
    found
}

fn part(before: &[Line<'_>], after: &[Line<'_>], change: PartChange) -> Part {
    let named = if after.is_empty() { before } else { after };
    Part { title: title(named).to_owned(), change, rows: rows_of(before, after) }
}

fn title<'a>(part: &[Line<'a>]) -> &'a str {
    let line = part.iter().find(|line| !line.bare.is_empty()).map_or("", |line| line.bare);
    let line = line.trim_start_matches('#').trim();
    let step = line.strip_prefix("Step ").and_then(|rest| rest.split_once(": "));
    match step {
        Some((number, rest)) if number.chars().all(|digit| digit.is_ascii_digit()) => rest,
        Some(_) | None => line.trim_start_matches(['-', '*', '+']).trim(),
    }
}

/// A part without ordinals and blank lines, for comparing.
fn plain(part: &[Line<'_>]) -> String {
    let lines = part.iter().filter(|line| !line.bare.is_empty()).skip(1);
    lines.fold(title(part).to_owned(), |text, line| text + "\n" + line.bare)
}

/// The parts of a text, each beginning where one begins; what stands before the first is a part too.
fn split<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<&'b [Line<'a>]> {
    let mut parts = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let end = rest.iter().skip(1).position(|line| line.begins).map_or(rest.len(), |at| at + 1);
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}
