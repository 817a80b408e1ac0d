//! Documents put together from parts whose places are known.

use fastrand::Rng;

/// A document, and where its sections are.
pub(super) struct Document {
    pub(super) text: String,
    pub(super) sections: Vec<Section>,
}

/// A section: its heading, and where that begins and ends.
pub(super) struct Section {
    pub(super) level: u8,
    words: String,
    begin: usize,
    end: usize,
}

/// How a section is named, and whether another one has that name too.
pub(super) struct Naming {
    pub(super) words: String,
    pub(super) is_ambiguous: bool,
}

/// What a new body is like.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) has_headings: bool,
    pub(super) may_be_refused: bool,
    pub(super) must_be_refused: bool,
}

const NAMES: [&str; 9] =
    ["Goal", "Log", "Phase 1: Look", "Notes", "Ünïcödé ✓", "a > b", "C# and F#", "Log", "1. First"];
const BODIES: [&str; 14] = [
    "Some words.\n",
    "",
    "\n\nSpaced\n\n\nout\n",
    "```sh\n# Log\n## Goal\n```\n",
    "~~~~\n# Notes\n~~~\nstill code\n~~~~\n",
    "> # Goal\n> quoted\n",
    "- one\n- # Log\n  - two\n",
    "    # Log, as code\n",
    "| a | b |\n| - | - |\n| 1 | 2 |\n",
    "<!-- # Log\n\n# Goal\n-->\n",
    "<div>\n# in a block\n</div>\n",
    "text with `# code` and \\# more\n",
    "[a]: /where\n[b]: /else\n\n***\n",
    "#not a heading\n\n####### nor this\n",
];

impl Document {
    pub(super) fn generate(rng: &mut Rng) -> Self {
        let end = ["\n", "\n", "\r\n"][rng.usize(0..3)];
        let mut text = String::new();
        if rng.u8(0..20) == 0 {
            text.push('\u{feff}');
        }
        if rng.u8(0..5) == 0 {
            text.push_str("---\ntitle: x\n# Log\nGoal: y\n---\n");
        }
        if rng.bool() {
            text.push_str(&format!("{}\n", BODIES[rng.usize(0..BODIES.len())]));
        }
        let mut text = text.replace('\n', end);
        let mut listed = text.contains("- one");
        let mut sections = Vec::new();
        for _ in 0..rng.usize(1..7) {
            let setext = rng.u8(0..4) == 0;
            let level = if setext { rng.u8(1..3) } else { rng.u8(1..7) };
            let words = NAMES[rng.usize(0..NAMES.len())].to_owned();
            let begin = text.len();
            let line = match (setext, level) {
                (true, 1) => format!("{words}\n{}\n", "=".repeat(rng.usize(1..6))),
                (true, _) => format!("{words}\n{}\n", "-".repeat(rng.usize(3..6))),
                (false, _) => {
                    // After a list, what is indented belongs to it.
                    let most = if listed { 1 } else { 4 };
                    let (space, marks) = (" ".repeat(rng.usize(0..most)), "#".repeat(level.into()));
                    let closing = if rng.u8(0..6) == 0 { " ##" } else { "" };
                    format!(
                        "{space}{marks}{}{words}{closing}\n",
                        [" ", "  ", "\t"][rng.usize(0..3)]
                    )
                }
            };
            // A line that would begin a list is none under an underline.
            let line =
                if setext && words.starts_with("1.") { line.replacen("1. ", "", 1) } else { line };
            text.push_str(&line.replace('\n', end));
            let words = if setext { words.trim_start_matches("1. ").to_owned() } else { words };
            sections.push(Section { level, words, begin, end: text.len() });
            let body = BODIES[rng.usize(0..BODIES.len())];
            listed = body.contains("- one");
            text.push_str(&format!("{body}\n").replace('\n', end));
        }
        if rng.u8(0..4) == 0 {
            let last = sections.last().map_or(0, |section| section.end);
            let kept = text.trim_end_matches(['\n', '\r']).len().max(last);
            text.truncate(kept);
        }
        Self { text, sections }
    }

    /// What stands before and after the body of a section.
    pub(super) fn around(&self, at: usize, with_sub_sections: bool) -> (&str, &str) {
        let ends = |next: &&Section| !with_sub_sections || next.level <= self.sections[at].level;
        let next = self.sections[at + 1..].iter().find(ends);
        let body_end = next.map_or(self.text.len(), |next| next.begin);
        (&self.text[..self.sections[at].end], &self.text[body_end..])
    }

    /// A section's name: plain, with its depth, or with the one above it.
    pub(super) fn name(&self, at: usize, rng: &mut Rng) -> Naming {
        let section = &self.sections[at];
        let above = |at: usize| {
            let level = self.sections[at].level;
            let above = self.sections[..at].iter().rev().find(|above| above.level < level);
            above.map(|above| above.words.as_str())
        };
        let same = |other: &&Section| other.words == section.words;
        let deep = |other: &&Section| same(other) && other.level == section.level;
        let (words, count) = match rng.u8(0..3) {
            1 => {
                let words = format!("{} {}", "#".repeat(section.level.into()), section.words);
                (words, self.sections.iter().filter(deep).count())
            }
            2 if above(at).is_some() => {
                let words = format!("{} > {}", above(at).unwrap_or_default(), section.words);
                let whole = self.sections.iter().filter(|other| other.words == words).count();
                let alike = (0..self.sections.len())
                    .filter(|other| same(&&self.sections[*other]) && above(*other) == above(at));
                (words, if whole > 0 { whole + 1 } else { alike.count() })
            }
            _ => (section.words.clone(), self.sections.iter().filter(same).count()),
        };
        Naming { words, is_ambiguous: count > 1 }
    }
}

/// A new body for a section of this depth.
pub(super) fn content(rng: &mut Rng, level: u8) -> (String, Kind) {
    let plain = Kind { has_headings: false, may_be_refused: false, must_be_refused: false };
    let deeper = "#".repeat(usize::from(level) + 1);
    match rng.u8(0..12) {
        0 => (String::new(), plain),
        1 => ("one\ntwo\r\nthree\rfour".into(), plain),
        // What follows a list and is indented would become part of it.
        2 => ("- [ ] a\n- [x] b\n\n1. c\n".into(), Kind { may_be_refused: true, ..plain }),
        3 => ("```\n# code\n```".into(), plain),
        4 if level < 6 => {
            let kind = Kind { has_headings: true, ..plain };
            (format!("{deeper} Sub\n\nwords\n\n{deeper} Sub 2"), kind)
        }
        5 => (
            "Words\n\n# Log\n".into(),
            Kind { may_be_refused: true, must_be_refused: true, has_headings: true },
        ),
        // Closed or not, these may swallow what follows; where nothing follows, they swallow nothing.
        6 => ("```\nnever closed".into(), Kind { may_be_refused: true, ..plain }),
        7 => ("<!-- never closed".into(), Kind { may_be_refused: true, ..plain }),
        8 => ("ends without a line end".into(), plain),
        9 => ("> a quote\nthat goes on lazily".into(), plain),
        10 => ("    indented".into(), plain),
        _ => ("Ünïcödé ✓ and `#`".into(), plain),
    }
}

/// What someone writes who looks for lines with `#`: the control.
pub(super) fn naive(text: &str, named: &str, body: &str) -> Option<String> {
    let words = named.trim_start_matches('#').trim();
    let mut lines = text.split_inclusive('\n');
    let (mut before, mut after, mut found) = (String::new(), String::new(), false);
    for line in lines.by_ref() {
        before.push_str(line);
        if line.starts_with('#') && line.trim_matches(['#', ' ', '\n', '\r']) == words {
            found = true;
            break;
        }
    }
    let mut ended = false;
    for line in lines {
        ended |= line.starts_with('#');
        if ended {
            after.push_str(line);
        }
    }
    found.then(|| format!("{before}\n{body}\n\n{after}"))
}
