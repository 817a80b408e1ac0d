//! The words by which sessions are found, as both engines index them: those of each message, answer and plan, and those of
//! the title, each with one word more that says whose they are.
//!
//! What is to be indexed is read and split while nobody waits for it. It is stored only if the stream was not indexed further
//! meanwhile, so that several may do so at once.

use std::{collections::BTreeSet, iter::once};

use planwright_domain::{
    id::{OwnerId, Seq},
    search::{SEARCHED_KINDS, Sought, sought, words_in, words_of},
    session::SessionEvent,
};
use planwright_format::event::stored_names;
use uuid::Uuid;

use super::{EventRow, key_of, read_alone};

/// How many streams are indexed at once.
pub(crate) const STREAMS_MAX: i64 = 64;
/// Of how many streams the events are read at once, where they cannot be read one by one.
#[cfg(feature = "cluster")]
pub(crate) const READ_AT_ONCE: usize = 8;
/// How many events of a stream.
pub(crate) const EVENTS_MAX: usize = 64;
/// How many words in all, and those of one event more at most.
pub(crate) const WORDS_MAX: usize = 20_000;
/// How many of the sessions that began last are taken of those with the words that are looked for.
pub(crate) const FOUND_MAX: i64 = 1_000;
/// The number under which the words of a title stand: no event has it.
const TITLE: u64 = 0;

/// A stream whose events are not all indexed.
pub(crate) struct Unindexed {
    pub(crate) stream: i64,
    pub(crate) owner: Uuid,
    pub(crate) identity: String,
    pub(crate) title: String,
    /// Up to here they are.
    pub(crate) from: Seq,
    /// And they should be up to here.
    pub(crate) version: Seq,
}

/// What is put into the index of a stream, by the numbers of its events.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) stream: i64,
    /// If it is indexed up to here still.
    pub(crate) from: Seq,
    /// It is up to here then.
    pub(crate) upto: Seq,
    /// The words of each event, behind that of its owner.
    pub(crate) rows: Vec<(u64, String)>,
}

impl Unindexed {
    /// What these events are found by, which are the next ones that are indexed, as far as there is room for their words.
    pub(crate) fn indexed(self, events: Vec<EventRow>, words_left: &mut usize) -> Indexed {
        let Self { stream, owner, identity, title, from, version } = self;
        let mut indexed = Indexed { stream, from, upto: version, rows: Vec::new() };
        let Ok(key) = key_of(owner, &identity) else {
            tracing::error!(stream, identity, event = "stream_not_indexed");
            return indexed;
        };
        let whose = owner_word(key.owner);
        let row = |seq, words: BTreeSet<String>| {
            let words = once(whose.clone()).chain(words).collect::<Vec<_>>();
            (seq, words.join(" "))
        };
        if from == Seq(0) || !events.is_empty() {
            indexed.rows.push(row(TITLE, words_in(&[&title, &identity])));
        }
        let many = events.len();
        for (number, event) in (1..).zip(events) {
            let seq = event.seq;
            match read_alone(&key, event).map(|recorded| words_of(&recorded.event)) {
                Ok(words) if words.is_empty() => {}
                Ok(words) => {
                    *words_left = words_left.saturating_sub(words.len());
                    indexed.rows.push(row(seq.0, words));
                }
                // What cannot be read is not found; whoever reads the session is told.
                Err(error) => {
                    tracing::error!(session = %key, %seq, %error, event = "event_not_indexed");
                }
            }
            let has_more = number < many || many >= EVENTS_MAX;
            if has_more && (*words_left == 0 || number == many) {
                indexed.upto = seq;
                break;
            }
        }
        indexed
    }
}

/// Whether a stream with these events has something more that it is found by: one that begins has its title.
pub(crate) fn has_words(before: Seq, events: &[SessionEvent]) -> bool {
    before == Seq(0) || events.iter().any(|event| SEARCHED_KINDS.contains(&event.kind()))
}

/// The names under which the events are stored that are indexed.
pub(crate) fn indexed_names() -> Vec<&'static str> {
    stored_names(&SEARCHED_KINDS)
}

/// A word that stands with everything of an owner, and that no text can have.
fn owner_word(owner: OwnerId) -> String {
    format!("_{}_", owner.0.simple())
}

/// What is looked for in the index, in the words of an engine; none, if no word is looked for.
pub(crate) fn question(
    owner: Option<OwnerId>,
    text: &str,
    whole: impl Fn(&str) -> String,
    beginning: impl Fn(&str) -> String,
    and: &str,
) -> Option<String> {
    let sought = sought(text);
    if sought.is_empty() {
        return None;
    }
    let whose = owner.map(|owner| whole(&owner_word(owner)));
    let words = sought.iter().map(|sought| match sought {
        Sought::Beginning(begins) => beginning(begins),
        Sought::Whole(word) => whole(word),
    });
    Some(whose.into_iter().chain(words).collect::<Vec<_>>().join(and))
}
