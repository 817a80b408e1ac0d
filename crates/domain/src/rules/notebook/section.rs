//! Replacing the body under one Markdown heading, and nothing else, byte for byte.
//!
//! The parser only says where headings are; every byte outside the section is copied from the document as
//! it was. What would let the new body reach beyond its section is refused.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

/// Why a section cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionRefusal {
    /// No heading of that name.
    #[error("there is no section {named:?}; there are {known}")]
    Missing {
        /// What was named.
        named: String,
        /// The headings there are.
        known: String,
    },
    /// More than one.
    #[error(
        "{count} sections are called {named:?}; name the one above it too, as \"Parent > {named}\", or write the whole page"
    )]
    Ambiguous {
        /// What was named.
        named: String,
        /// How many there are.
        count: usize,
    },
    /// The content would end the section.
    #[error(
        "the content holds the heading {heading:?}, which would end the section; use deeper headings, or write the whole page"
    )]
    EndsSection {
        /// That heading.
        heading: String,
    },
    /// The content would change what other sections are.
    #[error(
        "the content would reach into the sections around it (a code fence or a comment that is not closed?); close it"
    )]
    Leaks,
}

/// A heading of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// How deep: 1 is the title.
    pub level: u8,
    /// Its words.
    pub text: String,
    /// Where the heading begins and where its last line ends.
    pub place: Range<usize>,
}

/// The headings of a document that stand on their own, in order. What looks like one inside a code block, a
/// quote, a list or the front matter is none.
#[must_use]
pub fn headings(document: &str) -> Vec<Heading> {
    let from = front_matter_end(document);
    let mut found = Vec::new();
    let (mut depth, mut open): (usize, Option<Heading>) = (0, None);
    for (event, range) in Parser::new(&document[from..]).into_offset_iter() {
        let place = from + range.start..from + range.end;
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                open = Some(Heading { level: number(level), text: String::new(), place });
                depth += 1;
            }
            Event::End(TagEnd::Heading(_)) if depth == 1 && open.is_some() => {
                found.extend(open.take().map(|heading| whole_lines(document, heading)));
                depth -= 1;
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut open {
                    heading.text.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut open {
                    heading.text.push(' ');
                }
            }
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    found
}

/// The document with the body under this heading replaced. A body that brings headings of its own replaces the
/// sub-sections too; one without them replaces only the words before the first sub-section.
pub fn replaced(document: &str, section: &str, content: &str) -> Result<String, SectionRefusal> {
    let all = headings(document);
    let at = find(&all, section)?;
    let own = headings(content);
    if let Some(heading) = own.iter().find(|heading| heading.level <= all[at].level) {
        return Err(SectionRefusal::EndsSection { heading: heading.text.clone() });
    }
    let ends = |next: &&Heading| own.is_empty() || next.level <= all[at].level;
    let next = all[at + 1..].iter().find(ends);
    let body = all[at].place.end..next.map_or(document.len(), |next| next.place.start);
    let line_end = line_end(document, &all[at]);
    let mut new = String::new();
    let head = &document[..body.start];
    if !head.ends_with(['\n', '\r']) {
        new.push_str(line_end);
    }
    let words = content.trim_matches(['\n', '\r']);
    if !words.trim().is_empty() {
        new.push_str(line_end);
        for line in lines(words) {
            new.push_str(line);
            new.push_str(line_end);
        }
    }
    if next.is_some() {
        new.push_str(line_end);
    }
    let result = format!("{head}{new}{}", &document[body.end..]);
    let kept = all[..=at].iter().chain(all.iter().filter(|there| there.place.start >= body.end));
    let mut expected: Vec<_> = kept.map(|there| (there.level, there.text.clone())).collect();
    expected.splice(at + 1..at + 1, own.iter().map(|there| (there.level, there.text.clone())));
    let now: Vec<_> =
        headings(&result).into_iter().map(|there| (there.level, there.text)).collect();
    if now == expected { Ok(result) } else { Err(SectionRefusal::Leaks) }
}

/// The one heading that is meant: by its words, with `#`s before them for its depth, or as `Parent > Child`.
fn find(all: &[Heading], section: &str) -> Result<usize, SectionRefusal> {
    let named = section.trim();
    let (level, words) = depth(named);
    let is_named = |heading: &Heading, level: Option<u8>, words: &str| {
        heading.text.trim() == words && level.is_none_or(|level| level == heading.level)
    };
    let mut found: Vec<_> = (0..all.len()).filter(|at| is_named(&all[*at], level, words)).collect();
    if found.is_empty() {
        let above = |at: usize| {
            let level = all[at].level;
            all[..at].iter().rev().find(|before| before.level < level)
        };
        let is_meant = |at: &usize| {
            // A heading may hold the sign itself, so every place where it stands may be the one that is meant.
            named.match_indices(" > ").any(|(sign, _)| {
                let ((_, parent), (level, words)) =
                    (depth(named[..sign].trim()), depth(named[sign + 3..].trim()));
                is_named(&all[*at], level, words)
                    && above(*at).is_some_and(|above| above.text.trim() == parent)
            })
        };
        found = (0..all.len()).filter(is_meant).collect();
    }
    match found[..] {
        [one] => Ok(one),
        [] => {
            let known: Vec<_> = all.iter().map(|heading| format!("{:?}", heading.text)).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            Err(SectionRefusal::Missing { named: named.into(), known })
        }
        [..] => Err(SectionRefusal::Ambiguous { named: named.into(), count: found.len() }),
    }
}

/// `## Words` names a depth too.
fn depth(named: &str) -> (Option<u8>, &str) {
    let words = named.trim_start_matches('#');
    let marks = named.len() - words.len();
    match u8::try_from(marks) {
        Ok(level @ 1..=6) if words.starts_with(char::is_whitespace) => (Some(level), words.trim()),
        Ok(_) | Err(_) => (None, named),
    }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// The heading with its place from the beginning of its first line to the end of its last.
fn whole_lines(document: &str, mut heading: Heading) -> Heading {
    let Range { start, end } = heading.place;
    let start = document[..start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let start = start.max(front_matter_end(document));
    let words_end = document[..end].trim_end_matches(['\n', '\r']).len();
    let rest = &document[words_end..];
    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let end_len = match &rest.as_bytes()[line..] {
        [b'\r', b'\n', ..] => 2,
        [_, ..] => 1,
        [] => 0,
    };
    heading.place = start..words_end + line + end_len;
    heading.text = heading.text.split_whitespace().collect::<Vec<_>>().join(" ");
    heading
}

/// How the line of a heading ends; the others of its section end so too.
fn line_end(document: &str, heading: &Heading) -> &'static str {
    let line = &document[heading.place.clone()];
    if line.ends_with("\r\n") || (!line.ends_with('\n') && document.contains("\r\n")) {
        "\r\n"
    } else if line.ends_with('\r') {
        "\r"
    } else {
        "\n"
    }
}

/// The lines of a text, whatever they end with.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Where the document begins after a mark of its byte order and a front matter between `---` lines.
fn front_matter_end(document: &str) -> usize {
    let begin = document.len() - document.strip_prefix('\u{feff}').unwrap_or(document).len();
    let mut at = begin;
    for (number, line) in document[begin..].split_inclusive('\n').enumerate() {
        let words = line.trim_end_matches(['\n', '\r']);
        match (number, words) {
            (0, "---") => {}
            (0, _) => return begin,
            (_, "---" | "...") => return at + line.len(),
            (_, _) => {}
        }
        at += line.len();
    }
    begin
}
