//! What somebody does who can write to the journal and knows every algorithm, and has not the key.

use fastrand::Rng;
use planwright_domain::{
    digest::Digest,
    id::Seq,
    installation::InstallationEvent,
    log::{Entry, SessionHead},
    session::SessionEvent,
    time::Time,
};
use planwright_format::value::StoredSessionEvent;
use serde_json::Value;

use super::story::{Story, Told};

/// What is done to a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tampering {
    /// A decision gets another time.
    TimeMoved,
    /// A session loses its end, with a decision in it.
    TailCut,
    /// A decision is taken out of a session.
    DecisionRemoved,
    /// Two decisions change places.
    DecisionsSwapped,
    /// A decision is replaced by one of another session.
    DecisionReplaced,
    /// What somebody said with a decision is changed.
    WordsChanged,
    /// It says that whoever decided stood otherwise.
    StandingChanged,
    /// A session is gone.
    SessionRemoved,
    /// An entry of the log gets another time.
    EntryTimeMoved,
    /// The log loses its end.
    LogCut,
    /// An entry is taken out of the log.
    EntryRemoved,
    /// Two entries of the log change places.
    EntriesSwapped,
    /// The log says that another key was there from the beginning.
    KeyReplaced,
}

impl Tampering {
    pub(super) const ALL: [Self; 13] = [
        Self::TimeMoved,
        Self::TailCut,
        Self::DecisionRemoved,
        Self::DecisionsSwapped,
        Self::DecisionReplaced,
        Self::WordsChanged,
        Self::StandingChanged,
        Self::SessionRemoved,
        Self::EntryTimeMoved,
        Self::LogCut,
        Self::EntryRemoved,
        Self::EntriesSwapped,
        Self::KeyReplaced,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TimeMoved => "time of a decision moved",
            Self::TailCut => "tail of a session cut",
            Self::DecisionRemoved => "decision removed",
            Self::DecisionsSwapped => "decisions swapped",
            Self::DecisionReplaced => "decision replaced",
            Self::WordsChanged => "words of a decision changed",
            Self::StandingChanged => "standing changed",
            Self::SessionRemoved => "session removed",
            Self::EntryTimeMoved => "time of an entry moved",
            Self::LogCut => "log cut",
            Self::EntryRemoved => "entry removed",
            Self::EntriesSwapped => "entries swapped",
            Self::KeyReplaced => "key replaced",
        }
    }

    /// Whether it changes the log alone.
    pub(super) const fn is_of_log(self) -> bool {
        matches!(
            self,
            Self::EntryTimeMoved
                | Self::LogCut
                | Self::EntryRemoved
                | Self::EntriesSwapped
                | Self::KeyReplaced
        )
    }

    /// Does it to a story; nothing, if this one has no place for it.
    pub(super) fn apply(self, story: &mut Story, care: Care, rng: &mut Rng) -> Option<()> {
        let index = rng.usize(0..story.sessions.len());
        if self.is_of_log() {
            return self.apply_to_log(story, rng);
        }
        if self == Self::SessionRemoved {
            let begins = story.sessions.remove(index).begins();
            if care == Care::Everything {
                story.log.retain(|(_, event)| taken(event).is_none_or(|of| of.session != begins));
            }
            return Some(());
        }
        let other = rng.choice(&story.sessions)?.clone();
        let told = story.sessions.get_mut(index)?;
        let before = told.heads();
        self.apply_to_session(told, &other, rng)?;
        if care != Care::None {
            told.rehash();
        }
        if care == Care::Everything {
            let (told, log) = (told.clone(), &mut story.log);
            take_up_again(&told, &before, log);
        }
        Some(())
    }

    fn apply_to_session(self, told: &mut Told, other: &Told, rng: &mut Rng) -> Option<()> {
        let decisions = told.decisions();
        let which = *rng.choice(&decisions)?;
        match self {
            Self::TimeMoved => {
                let moved = told.events[which].0.plus_micros(rng.i64(1..86_400_000_000));
                told.events[which].0 = moved;
            }
            Self::TailCut => told.events.truncate(which),
            Self::DecisionRemoved => drop(told.events.remove(which)),
            Self::DecisionsSwapped => {
                let with = *rng.choice(&decisions)?;
                if told.events[which] == told.events[with] {
                    return None;
                }
                told.events.swap(which, with);
            }
            Self::DecisionReplaced => {
                let by = other.events[*rng.choice(&other.decisions())?].1.clone();
                if told.events[which].1 == by {
                    return None;
                }
                told.events[which].1 = by;
            }
            Self::WordsChanged => {
                let event = &mut told.events[which].1;
                // A person's words. Of what the runtime asks, the digest is part of the log, and the sentence that says why is not.
                Entry::of(event)?.who?;
                *event = edited(event, &|name, text| {
                    ["text", "why"].contains(&name).then(|| format!("{text}, or not"))
                })?;
            }
            Self::StandingChanged => {
                let event = &mut told.events[which].1;
                *event = edited(event, &|name, text| {
                    (name == "standing" && text == "decides").then(|| "speaks".into())
                })?;
            }
            Self::SessionRemoved
            | Self::EntryTimeMoved
            | Self::LogCut
            | Self::EntryRemoved
            | Self::EntriesSwapped
            | Self::KeyReplaced => return None,
        }
        Some(())
    }

    fn apply_to_log(self, story: &mut Story, rng: &mut Rng) -> Option<()> {
        let log = &mut story.log;
        let which = rng.usize(0..log.len());
        match self {
            Self::EntryTimeMoved => {
                log[which].0 = log[which].0.plus_micros(rng.i64(1..86_400_000_000));
            }
            Self::LogCut => log.truncate(which),
            // What is about nobody who is there cannot be read at all.
            Self::EntryRemoved => {
                if which == 0 {
                    return None;
                }
                drop(log.remove(which));
            }
            Self::EntriesSwapped => {
                let with = rng.usize(1..log.len());
                if which == 0 || log[which] == log[with] {
                    return None;
                }
                log.swap(which, with);
            }
            Self::KeyReplaced => {
                let own = Digest::of(&rng.u64(..).to_be_bytes());
                let found = log.iter_mut().find_map(|(_, event)| {
                    let InstallationEvent::KeyFound { key } = event else { return None };
                    Some(key)
                });
                *found? = own;
            }
            Self::TimeMoved
            | Self::TailCut
            | Self::DecisionRemoved
            | Self::DecisionsSwapped
            | Self::DecisionReplaced
            | Self::WordsChanged
            | Self::StandingChanged
            | Self::SessionRemoved => return None,
        }
        Some(())
    }
}

/// How much of what comes after is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    /// Nothing.
    None,
    /// The session's chain is hashed again, with the public algorithm.
    Session,
    /// The audit log as well.
    Everything,
}

impl Care {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Session, Self::Everything];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "and left so",
            Self::Session => "and its session hashed again",
            Self::Everything => "and session and log hashed again",
        }
    }
}

/// An event in which texts are others: what this gives for the name and the text of a field. None, if there is no such field.
fn edited(
    event: &SessionEvent,
    edit: &impl Fn(&str, &str) -> Option<String>,
) -> Option<SessionEvent> {
    let before = serde_json::to_value(StoredSessionEvent::from(event)).ok()?;
    let mut after = before.clone();
    edit_texts("", &mut after, edit);
    let event = serde_json::from_value::<StoredSessionEvent>(after.clone()).ok()?;
    (after != before).then(|| event.into())
}

fn edit_texts(name: &str, value: &mut Value, edit: &impl Fn(&str, &str) -> Option<String>) {
    match value {
        Value::String(text) => *text = edit(name, text).unwrap_or_else(|| std::mem::take(text)),
        Value::Array(all) => all.iter_mut().for_each(|one| edit_texts(name, one, edit)),
        Value::Object(all) => all.iter_mut().for_each(|(name, one)| edit_texts(name, one, edit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

const fn taken(event: &InstallationEvent) -> Option<SessionHead> {
    let InstallationEvent::HeadTaken(of) = event else { return None };
    Some(*of)
}

/// Lets the log take up what a session now comes to, and forget what is no longer there.
fn take_up_again(told: &Told, before: &[(Seq, Digest)], log: &mut Vec<(Time, InstallationEvent)>) {
    let (begins, now) = (told.begins(), told.heads());
    log.retain_mut(|(_, event)| {
        let InstallationEvent::HeadTaken(of) = event else { return true };
        if of.session != begins {
            return true;
        }
        // The same place in the order of its heads.
        let place = before.iter().position(|(seq, _)| *seq == of.seq);
        match place.and_then(|place| now.get(place)) {
            Some((seq, head)) => {
                (of.seq, of.head) = (*seq, *head);
                true
            }
            None => false,
        }
    });
}
