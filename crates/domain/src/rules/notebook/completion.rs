//! When a task plan is complete: it says so, or each of its phases does.

use super::section::{Heading, headings};

/// Whether a task plan is complete: `Status: complete` outside its phases, or in each of them.
#[must_use]
pub fn is_complete(document: &str) -> bool {
    let all = headings(document);
    let phases: Vec<_> = (0..all.len()).filter(|at| is_phase(&all[*at])).collect();
    let of_phase = |at: usize| {
        let level = all[at].level;
        let end = all[at + 1..].iter().find(|next| next.level <= level);
        all[at].place.end..end.map_or(document.len(), |end| end.place.start)
    };
    let ranges: Vec<_> = phases.into_iter().map(of_phase).collect();
    let in_phase = |at: usize| ranges.iter().any(|range| range.contains(&at));
    let says = statuses(document);
    if says.iter().any(|(at, complete)| *complete && !in_phase(*at)) {
        return true;
    }
    let done = |range: &std::ops::Range<usize>| {
        let mut own = says.iter().filter(|(at, _)| range.contains(at)).peekable();
        own.peek().is_some() && own.all(|(_, complete)| *complete)
    };
    !ranges.is_empty() && ranges.iter().all(done)
}

fn is_phase(heading: &Heading) -> bool {
    let rest = heading.text.to_lowercase();
    rest.strip_prefix("phase").is_some_and(|rest| rest.starts_with([' ', ':']) || rest.is_empty())
}

/// Where a status is said, outside code, and whether it is `complete`.
fn statuses(document: &str) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    let (mut at, mut fence): (usize, Option<(char, usize)>) = (0, None);
    for line in document.split_inclusive('\n') {
        let words = line.trim();
        let mark = words.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let run = mark.map_or(0, |mark| words.chars().take_while(|next| *next == mark).count());
        match (fence, mark) {
            (None, Some(mark)) if run >= 3 => fence = Some((mark, run)),
            (Some((open, length)), Some(mark))
                if mark == open && run >= length && words.chars().all(|next| next == mark) =>
            {
                fence = None;
            }
            (Some(_), _) => {}
            (None, _) => found.extend(status(words).map(|complete| (at, complete))),
        }
        at += line.len();
    }
    found
}

/// `Status: complete`, as a line, a list entry or in bold.
fn status(line: &str) -> Option<bool> {
    let plain = line.trim_start_matches(['-', '*', '+', '>', ' ']).replace("**", "");
    let (key, value) = plain.split_once(':')?;
    if !key.trim().eq_ignore_ascii_case("status") {
        return None;
    }
    let value = value.trim().trim_matches(['*', '`', '.', ' ']).to_lowercase();
    Some(matches!(value.as_str(), "complete" | "completed" | "done"))
}
