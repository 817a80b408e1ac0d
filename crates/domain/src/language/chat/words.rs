//! Words of a line: numbers, what is left over, and which known word is meant.

use super::command::{ChatCommand, LineRefusal};

/// A command that takes no word.
pub(super) fn alone(
    command: &'static str,
    rest: &str,
    meaning: ChatCommand,
) -> Result<ChatCommand, LineRefusal> {
    if rest.is_empty() {
        return Ok(meaning);
    }
    let problem = format!("takes nothing more, not {rest:?}; nothing was done");
    Err(LineRefusal::BadWords { command, problem })
}

pub(super) fn needed(command: &'static str, words: &str) -> Result<String, LineRefusal> {
    if words.is_empty() {
        let problem = "needs a word more; /help lists the commands".into();
        return Err(LineRefusal::BadWords { command, problem });
    }
    Ok(words.to_owned())
}

/// A number of digits alone: no sign, no space.
pub(super) fn whole_number(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

pub(super) fn split(words: &str) -> (&str, &str) {
    let words = words.trim();
    words.split_once(char::is_whitespace).map_or((words, ""), |(first, rest)| (first, rest.trim()))
}

fn likeness(typed: &str, known: &str) -> u32 {
    (similar::TextDiff::from_chars(typed, known).ratio() * 1000.0) as u32
}

/// The known word that is most like what was typed.
pub(super) fn nearest(typed: &str, known: &[&'static str]) -> &'static str {
    known.iter().max_by_key(|word| likeness(typed, word)).copied().unwrap_or("/help")
}

/// The known word that is most like what was typed, if it is alike at all.
pub(super) fn nearest_word(typed: &str, known: &[&'static str]) -> Option<&'static str> {
    let meant = nearest(typed, known);
    (likeness(typed, meant) >= 500).then_some(meant)
}
