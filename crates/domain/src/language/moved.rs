//! Where lines of one revision stand in another: a comment goes with what it speaks of.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::diff;

/// Where lines stand now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The first of them; where they stood, if they are gone.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// What became of them.
    pub fate: Fate,
}

/// What became of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// They say what they said.
    Same,
    /// Some of them say something else.
    Changed,
    /// They are gone.
    Removed,
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fate, self.first == self.last) {
            (Fate::Removed, _) => write!(to, "removed"),
            (Fate::Same | Fate::Changed, true) => write!(to, "line {}", self.first),
            (Fate::Same | Fate::Changed, false) => {
                write!(to, "lines {} to {}", self.first, self.last)
            }
        }
    }
}

/// How alike two lines must be for one to have become the other.
const ALIKE: f32 = 0.5;
/// So many pairs of lines are looked at in all, and lines of this length: a text that was written anew has other lines.
const PAIRS_MAX: usize = 2_500;
const LINE_BYTES_MAX: usize = 1_000;

/// Lines that went where others came, each with its number.
#[derive(Default)]
struct Hunk<'a> {
    gone: Vec<(u32, &'a str)>,
    come: Vec<(u32, &'a str)>,
}

/// Where each line of one text stands in another one.
#[derive(Debug)]
pub struct Places {
    /// For each line that is still there: where, and whether it says the same.
    now: BTreeMap<u32, (u32, bool)>,
    /// How many lines there are now.
    lines: u32,
}

impl Places {
    /// From the older text to the newer one.
    #[must_use]
    pub fn new(before: &str, after: &str) -> Self {
        let (old, new) = (diff::bare(before), diff::bare(after));
        let (mut now, mut hunks) = (BTreeMap::new(), vec![Hunk::default()]);
        for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
            match (change.tag(), change.old_index(), change.new_index(), hunks.last_mut()) {
                (ChangeTag::Equal, Some(from), Some(to), _) => {
                    now.insert(number(from), (number(to), true));
                    hunks.push(Hunk::default());
                }
                (ChangeTag::Delete, Some(from), _, Some(hunk)) => {
                    hunk.gone.extend(old.get(from).map(|line| (number(from), *line)));
                }
                (ChangeTag::Insert, _, Some(to), Some(hunk)) => {
                    hunk.come.extend(new.get(to).map(|line| (number(to), *line)));
                }
                (ChangeTag::Equal | ChangeTag::Delete | ChangeTag::Insert, ..) => {}
            }
        }
        moved(&old, &new, &mut now);
        let taken: BTreeSet<u32> = now.values().map(|(line, _)| *line).collect();
        let mut pairs_left = PAIRS_MAX;
        for mut hunk in hunks {
            hunk.gone.retain(|(from, _)| !now.contains_key(from));
            hunk.come.retain(|(to, _)| !taken.contains(to));
            let pairs = hunk.gone.len() * hunk.come.len();
            if pairs <= pairs_left {
                pairs_left -= pairs;
                become_alike(hunk, &mut now);
            }
        }
        Self { now, lines: number(new.len()).saturating_sub(1) }
    }

    /// Where these lines stand now.
    #[must_use]
    pub fn of(&self, first: u32, last: u32) -> Place {
        let last = last.max(first);
        let there: Vec<_> = self.now.range(first..=last).map(|(_, now)| *now).collect();
        let lines = there.iter().map(|(line, _)| *line);
        let (Some(begin), Some(end)) = (lines.clone().min(), lines.clone().max()) else {
            let before = self.now.range(..first).next_back().map_or(1, |(_, (line, _))| *line);
            let at = before.clamp(1, self.lines.max(1));
            return Place { first: at, last: at, fate: Fate::Removed };
        };
        let is_same = there.iter().all(|(_, is_same)| *is_same)
            && lines.eq(begin..=begin.saturating_add(last - first));
        Place { first: begin, last: end, fate: if is_same { Fate::Same } else { Fate::Changed } }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

/// Each line that went is taken for the one that came at its place and is most alike.
fn become_alike(mut hunk: Hunk<'_>, now: &mut BTreeMap<u32, (u32, bool)>) {
    let is_compared = |line: &str| !line.trim().is_empty() && line.len() <= LINE_BYTES_MAX;
    for (from, old) in hunk.gone.iter().filter(|(_, line)| is_compared(line)) {
        let come = hunk.come.iter().enumerate().filter(|(_, (_, line))| is_compared(line));
        let ratios = come
            .map(|(at, (to, new))| (at, *to, TextDiff::from_chars(old.trim(), new.trim()).ratio()));
        let best = ratios.max_by(|left, right| left.2.total_cmp(&right.2));
        if let Some((at, to, ratio)) = best
            && ratio >= ALIKE
        {
            now.insert(*from, (to, false));
            hunk.come.remove(at);
        }
    }
}

/// Lines that went here and came there, word for word and once in each text.
fn moved(old: &[&str], new: &[&str], now: &mut BTreeMap<u32, (u32, bool)>) {
    let places = |lines: &[&str]| {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            places.entry((*line).to_owned()).or_default().push(at);
        }
        places
    };
    let there = places(new);
    for (line, at) in places(old) {
        if let ([from], Some([to])) = (at.as_slice(), there.get(&line).map(Vec::as_slice)) {
            now.insert(number(*from), (number(*to), true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# Move\n\n1. Read it.\n2. Stop the service.\n3. Run it.\n";

    fn place(after: &str, first: u32, last: u32) -> (u32, u32, Fate) {
        let Place { first, last, fate } = Places::new(BEFORE, after).of(first, last);
        (first, last, fate)
    }

    #[test]
    fn a_line_that_only_got_another_number_is_the_same() {
        let after = "# Move\n\n1. Back it up.\n2. Read it.\n3. Stop the service.\n4. Run it.\n";
        assert_eq!(place(after, 4, 4), (5, 5, Fate::Same));
        assert_eq!(place(after, 3, 5), (4, 6, Fate::Same));
    }

    #[test]
    fn a_step_that_moved_is_found_where_it_is() {
        let after = "# Move\n\n1. Stop the service.\n2. Read it.\n3. Run it.\n";
        assert_eq!(place(after, 3, 3), (4, 4, Fate::Same));
        assert_eq!(place(after, 4, 4), (3, 3, Fate::Same));
    }

    #[test]
    fn a_line_with_other_words_is_changed_and_one_that_is_gone_is_removed() {
        let after = "# Move\n\n1. Read it.\n2. Stop the service, and say so.\n";
        assert_eq!(place(after, 4, 4), (4, 4, Fate::Changed));
        assert_eq!(place(after, 5, 5), (4, 4, Fate::Removed));
        assert_eq!(place(after, 3, 4), (3, 4, Fate::Changed));
        assert_eq!(place("", 5, 5).2, Fate::Removed);
    }

    #[test]
    fn lines_among_which_others_came_are_changed() {
        let after = "# Move\n\n1. Read it.\n2. Think.\n3. Stop the service.\n4. Run it.\n";
        assert_eq!(place(after, 3, 4), (3, 5, Fate::Changed));
    }

    #[test]
    fn a_line_that_moved_is_not_taken_for_another_one() {
        let before = "Restart service A\nBack up\nRestart service B\n";
        let places = Places::new(before, "Restart service B\nBack up\n");
        assert_eq!(places.of(1, 1).fate, Fate::Removed);
        assert_eq!(places.of(3, 3), Place { first: 1, last: 1, fate: Fate::Same });
    }

    #[test]
    fn lines_that_changed_places_are_not_the_same_lines() {
        let places = Places::new("one\ntwo\n", "two\none\n");
        assert_eq!(places.of(1, 2), Place { first: 1, last: 2, fate: Fate::Changed });
    }

    #[test]
    fn a_text_that_was_written_anew_has_none_of_the_old_lines() {
        let text = |salt: usize| -> String {
            (0..5_000).map(|at| format!("{} {}\n", at * 7 + salt, at * 13 + salt)).collect()
        };
        let places = Places::new(&text(0), &text(1_000_003));
        assert_eq!(places.of(10, 10).fate, Fate::Removed);
    }
}
