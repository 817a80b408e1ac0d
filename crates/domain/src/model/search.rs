//! Full-text search over what was said in sessions and what plans say: by which words an event is found, and what is looked for.
//!
//! Must always hold: what is said and what is looked for are split into words by the same function.

use std::collections::BTreeSet;

use crate::model::{
    limits,
    memory::words::{Spelled, unstemmed},
    plan::event::PlanEvent,
    session::SessionEvent,
    turn::event::TurnEvent,
};

/// The kinds of the events that are found by their words, or after which a session may be called something else.
pub const SEARCHED_KINDS: [&str; 4] =
    ["message_queued", "model_answered", "revision_added", "session_renamed"];

/// The words that an event is found by, each once; none, if nothing in it is searched for.
#[must_use]
pub fn words_of(event: &SessionEvent) -> BTreeSet<String> {
    match event {
        SessionEvent::MessageQueued { text, .. } => words_in(&[text]),
        SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. }) => words_in(&[&answer.text]),
        SessionEvent::Plan(PlanEvent::RevisionAdded { revision, .. }) => {
            words_in(&[&revision.title, &revision.markdown])
        }
        SessionEvent::Turn(_)
        | SessionEvent::Plan(_)
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::AgentCalled { .. }
        | SessionEvent::Logged { .. }
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::Auto(_) => BTreeSet::new(),
    }
}

/// The words of some texts, each once: of very long ones the first.
#[must_use]
pub fn words_in(texts: &[&str]) -> BTreeSet<String> {
    let words = texts.iter().flat_map(|text| unstemmed(text)).map(|spelled| spelled.word);
    words.take(limits::SEARCHED_WORDS_MAX).collect()
}

/// A word that is looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sought {
    /// A word that begins like this.
    Beginning(String),
    /// This one: it is short, or a part of a text without spaces.
    Whole(String),
}

/// What is looked for: all of it, in one message, plan or title; the last word by how it begins.
#[must_use]
pub fn sought(text: &str) -> BTreeSet<Sought> {
    let mut spelled = unstemmed(text);
    spelled.truncate(limits::QUESTION_WORDS_MAX);
    // It may be half typed. To put together all that begins like a word costs as much as there is of it.
    let last = spelled.pop().map(|Spelled { word, begins_others }| {
        if begins_others { Sought::Beginning(word) } else { Sought::Whole(word) }
    });
    spelled.into_iter().map(|spelled| Sought::Whole(spelled.word)).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::{Sought, sought, words_in};

    fn finds(question: &str, text: &str) -> bool {
        let words = words_in(&[text]);
        sought(question).iter().all(|sought| match sought {
            Sought::Beginning(beginning) => words.iter().any(|word| word.starts_with(beginning)),
            Sought::Whole(word) => words.contains(word),
        })
    }

    #[test]
    fn words_are_found_by_how_they_begin_and_parts_of_a_text_without_spaces_wherever_they_stand() {
        let text = "Move ~/Photos/2024-Übersicht.md of a Prüfung; 周末把照片移到备份盘";
        for question in [
            "photo",
            "PHOTOS 2024",
            "übers",
            "Prü",
            "prüf",
            "md move",
            "a",
            "照片",
            "备份盘",
            "2024 照片",
        ] {
            assert!(finds(question, text), "{question}");
        }
        for question in
            ["hotos", "phot 2024", "photography", "ph", "c3b", "c3", "2025", "片照", "照片 2025"]
        {
            assert!(!finds(question, text), "{question}");
        }
        assert!(sought(" - !").is_empty());
    }
}
