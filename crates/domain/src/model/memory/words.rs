//! The words that something is found by.
//!
//! Must always hold: what is remembered and what is asked go through the same function, so that a word finds itself whatever
//! its form. Nothing guesses the language of a text: a question of four words is too short for that, and a wrong guess on one
//! of the two sides would lose what an exact comparison finds.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use frostem::{Algorithm, Stemmer};

use crate::model::limits;

/// The words of a text, in the form in which they are looked up: their stems in small letters and digits, what is not ASCII
/// by its bytes, so that every engine takes them alike. Where a script puts no space between words, each pair of neighbouring
/// characters is a word, and so is each character that may be one.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    spelled(text).into_iter().map(|(_, word)| word).collect()
}

/// The same, each beside how the text spells it.
pub(crate) fn spelled(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    each_run(text, |kind, run| match kind {
        Kind::Between => {}
        Kind::Spaced => words.push((run.to_owned(), plain(&stem(run)))),
        Kind::Unspaced => words.extend(pairs(run)),
    });
    words.retain(|(_, word)| !word.is_empty());
    words
}

/// A word as it is spelled, in small letters, as every engine takes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spelled {
    pub(crate) word: String,
    /// Whether others that begin like it are found by it: it stands between spaces, and is not too short.
    pub(crate) begins_others: bool,
}

/// The words of a text as they are spelled, whatever they have in common with others.
pub(crate) fn unstemmed(text: &str) -> Vec<Spelled> {
    let mut words = Vec::new();
    each_run(text, |kind, run| match kind {
        Kind::Between => {}
        Kind::Spaced => {
            let begins_others = run.chars().nth(limits::BEGINNING_CHARS_MIN - 1).is_some();
            words.push(Spelled { word: letter_by_letter(run), begins_others });
        }
        Kind::Unspaced => words.extend(
            pairs(run)
                .into_iter()
                .map(|(said, _)| Spelled { word: letter_by_letter(&said), begins_others: false }),
        ),
    });
    words
}

/// A word as every engine takes it, so that what begins it begins this, too: a letter that is not ASCII by its bytes.
fn letter_by_letter(word: &str) -> String {
    let mut taken = String::new();
    for letter in word.chars().take(limits::WORD_CHARS_MAX) {
        if letter.is_ascii() {
            taken.push(letter);
        } else {
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes).bytes();
            taken.extend(bytes.map(|byte| format!("_{byte:02x}")));
        }
    }
    taken
}

/// The parts of a text in small letters, each of one kind of characters.
fn each_run(text: &str, mut each: impl FnMut(Kind, &str)) {
    let lower = text.to_lowercase();
    let mut rest = lower.as_str();
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let end = rest.find(|letter| Kind::of(letter) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        each(kind, run);
    }
}

/// What is looked up. Its words are found when somebody needs them, and once: where nothing is remembered, nobody does.
#[derive(Debug, Clone)]
pub struct Question(Arc<Asked>);

#[derive(Debug)]
struct Asked {
    text: String,
    words: OnceLock<Vec<String>>,
}

impl Question {
    /// What somebody asks.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Arc::new(Asked { text: text.to_owned(), words: OnceLock::new() }))
    }

    /// Its words, each once, in their order; of a long one the first.
    #[must_use]
    pub fn words(&self) -> &[String] {
        self.0.words.get_or_init(|| {
            let mut seen = BTreeSet::new();
            let news = words(&self.0.text).into_iter().filter(|word| seen.insert(word.clone()));
            news.take(limits::QUESTION_WORDS_MAX).collect()
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A letter or a digit of a script that puts spaces between words.
    Spaced,
    /// A character of one that does not, or whose words end in particles.
    Unspaced,
    /// What stands between words.
    Between,
}

impl Kind {
    fn of(letter: char) -> Self {
        match letter {
            // Thai, Lao, Myanmar, Khmer.
            '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ece}'
            | '\u{1000}'..='\u{103f}' | '\u{1780}'..='\u{17d3}'
            // Hiragana, Katakana, their narrow forms, Hangul.
            | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}' | '\u{31f0}'..='\u{31ff}'
            | '\u{ff66}'..='\u{ff9d}' | '\u{ac00}'..='\u{d7a3}' => Self::Unspaced,
            letter if is_han(letter) => Self::Unspaced,
            letter if letter.is_alphanumeric() => Self::Spaced,
            _ => Self::Between,
        }
    }
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

/// Whether a character may be a word by itself: a Chinese one, or a syllable of Korean before a particle.
fn is_word(letter: char) -> bool {
    is_han(letter) || matches!(letter, '\u{ac00}'..='\u{d7a3}')
}

/// Each pair of neighbours, each character that is a word in itself, and a character that has no neighbour.
fn pairs(run: &str) -> Vec<(String, String)> {
    let letters: Vec<char> = run.chars().collect();
    let alone = letters.iter().filter(|letter| letters.len() == 1 || is_word(**letter));
    let alone = alone.map(|letter| letter.to_string());
    let pairs = letters.windows(2).map(|pair| pair.iter().collect());
    pairs.chain(alone).map(|said: String| (said.clone(), plain(&said))).collect()
}

/// What the forms of a word have in common. A word of Latin letters loses the endings of English, then those of German:
/// what English takes for one word stays one.
fn stem(word: &str) -> String {
    let algorithms: &[Algorithm] = match word.chars().next_back() {
        Some('a'..='z' | 'ß'..='ɏ') => &[Algorithm::English, Algorithm::German],
        Some('\u{370}'..='\u{3ff}') => &[Algorithm::Greek],
        Some('\u{400}'..='\u{52f}') => &[Algorithm::Russian],
        Some('\u{600}'..='\u{6ff}') => &[Algorithm::Arabic],
        Some('\u{900}'..='\u{97f}') => &[Algorithm::Hindi],
        Some(_) | None => &[],
    };
    let word: String = word.chars().take(limits::WORD_CHARS_MAX).collect();
    algorithms.iter().fold(word, |word, algorithm| {
        let stem = Stemmer::new(*algorithm).stem(&word).into_owned();
        if stem.is_empty() { word } else { stem }
    })
}

/// A word as every engine takes it, not longer than one may be.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|letter| letter.is_alphanumeric());
    if word.is_ascii() {
        return letters.take(limits::WORD_CHARS_MAX).collect();
    }
    let bytes = word.bytes().take(limits::WORD_CHARS_MAX / 2);
    bytes.fold(String::from("u"), |text, byte| format!("{text}{byte:02x}"))
}
