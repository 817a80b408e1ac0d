//! The latest events of sessions that are listened to, written out once for everyone.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use axum::extract::ws::Utf8Bytes;
use planwright_domain::{id::Seq, identity::SessionKey};
use planwright_runtime::ports::journal::Recorded;

use crate::http::streams::envelope::Envelope;

/// How many events are read at once.
pub(super) const PAGE: usize = 64;
/// How many sessions have their latest events written out.
const SESSIONS_MAX: usize = 256;

/// A session, and the name that its reader has for it: its owner has another one than everyone else.
pub(super) type Read = (SessionKey, String);

/// The latest events of the sessions that are listened to, written out once for all readers who name them alike.
#[derive(Default)]
pub(crate) struct Frames {
    latest: Mutex<HashMap<Read, VecDeque<Frame>>>,
}

impl Frames {
    /// The frames right behind this place, if they are there without a gap.
    pub(super) fn after(&self, read: &Read, seen: Seq) -> VecDeque<Frame> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(frames) = latest.get(read) else { return VecDeque::new() };
        let at = frames.iter().position(|frame| frame.seq == Some(seen.following()));
        at.map_or_else(VecDeque::new, |at| frames.iter().skip(at).cloned().collect())
    }

    pub(super) fn put(&self, read: &Read, frames: &VecDeque<Frame>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() >= SESSIONS_MAX && !latest.contains_key(read) {
            latest.clear();
        }
        let kept = latest.entry(read.clone()).or_default();
        for frame in frames {
            let follows = kept.back().is_none_or(|last| last.seq.map(Seq::following) == frame.seq);
            if follows {
                kept.push_back(frame.clone());
            }
        }
        let surplus = kept.len().saturating_sub(PAGE);
        kept.drain(..surplus);
        // A reader who is far behind does not put its old pages in the way of the latest.
        if kept.back().map(|last| last.seq) < frames.back().map(|last| last.seq) {
            kept.clone_from(frames);
        }
    }
}

/// Something to be told: an envelope, written out once for everyone who listens.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) seq: Option<Seq>,
    /// The type of the envelope.
    pub(super) kind: String,
    pub(super) text: Utf8Bytes,
}

impl Frame {
    pub(super) fn of(name: &str, recorded: &Recorded) -> Self {
        let envelope = Envelope::of(name, recorded);
        let text = serde_json::to_string(&envelope).unwrap_or_default();
        Self { seq: Some(recorded.seq), kind: envelope.kind, text: text.into() }
    }
}
