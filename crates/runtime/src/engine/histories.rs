//! The conversations that are kept, so that a turn reads only what is new: warm in memory, and in the journal as they stood
//! after they were last summed up.
//!
//! What is kept is never the truth: what does not fit is read from the events.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use planwright_domain::{id::Seq, identity::SessionKey, session::Session};

use crate::{
    engine::conversation::{History, View},
    ports::journal::{Journal, JournalError, KeptView},
};

/// How many bytes of conversations are kept warm.
const WARM_BYTES_MAX: usize = 96 * 1024 * 1024;
/// From how many events on it is worth keeping what was summed up.
const KEPT_EVENTS_MIN: u64 = 256;
/// The form in which a conversation is kept. Another one is not read: raise it whenever what is kept, or what events mean for
/// it, changes.
const VIEW_FORM: u32 = 1;

/// Conversations kept warm. The one that was used longest ago makes room.
#[derive(Default)]
pub(crate) struct Histories {
    warm: HashMap<SessionKey, Warm>,
    /// When each was used.
    used: BTreeMap<u64, SessionKey>,
    uses: u64,
    bytes: usize,
}

struct Warm {
    history: History,
    bytes: usize,
    used: u64,
}

impl Histories {
    /// Keeps nothing of a session that was erased.
    pub(crate) fn forget(&mut self, identity: &SessionKey) {
        self.take(identity);
    }

    /// The conversation, which is nobody else's until it is put back.
    fn take(&mut self, identity: &SessionKey) -> Option<History> {
        let Warm { history, bytes, used } = self.warm.remove(identity)?;
        self.bytes -= bytes;
        self.used.remove(&used);
        Some(history)
    }

    fn put(&mut self, identity: &SessionKey, history: History, bytes_max: usize) {
        self.take(identity);
        let bytes = history.bytes();
        if bytes > bytes_max {
            return;
        }
        while self.bytes + bytes > bytes_max {
            let Some((_, coldest)) = self.used.pop_first() else { break };
            self.take(&coldest);
        }
        self.uses += 1;
        self.bytes += bytes;
        self.used.insert(self.uses, identity.clone());
        self.warm.insert(identity.clone(), Warm { history, bytes, used: self.uses });
    }
}

/// What the model is given of a session. A turn of a run sees the turns of its own task and no others.
pub(crate) async fn view(
    journal: &dyn Journal,
    histories: &Mutex<Histories>,
    identity: &SessionKey,
    session: &Session,
) -> Result<View, JournalError> {
    let taken = histories.lock().unwrap_or_else(PoisonError::into_inner).take(identity);
    let mut history = match taken.filter(|warm| warm.view_from == session.view_from) {
        Some(warm) => warm,
        None => kept(journal, identity, session).await?,
    };
    let mut known = history.compacted;
    let read = history.read(journal, identity, session.version).await;
    if let (Err(JournalError::Corrupt(corrupt)), Some(_)) = (&read, known) {
        // What was kept may be what does not fit: the events are the truth.
        tracing::error!(session = %identity, %corrupt, event = "view_discarded");
        (history, known) = (History::since(session.view_from), None);
        history.read(journal, identity, session.version).await?;
    } else {
        read?;
    }
    if history.compacted > known && history.upto.0 - history.view_from.0 >= KEPT_EVENTS_MIN {
        // It is read from the events where it could not be kept.
        if let Err(error) = keep(journal, identity, &history).await {
            tracing::warn!(session = %identity, %error, event = "view_not_kept");
        }
    }
    let seen = history.seen();
    let mut histories = histories.lock().unwrap_or_else(PoisonError::into_inner);
    histories.put(identity, history, WARM_BYTES_MAX);
    Ok(seen)
}

/// What the model was given when it was asked here, read again from the facts alone.
pub(crate) async fn view_at(
    journal: &dyn Journal,
    identity: &SessionKey,
    view_from: Seq,
    at: Seq,
) -> Result<View, JournalError> {
    let mut history = History::since(view_from);
    history.read(journal, identity, at).await?;
    Ok(history.seen())
}

/// The conversation as it stood after it was last summed up; from its beginning, if nothing is kept that fits.
async fn kept(
    journal: &dyn Journal,
    identity: &SessionKey,
    session: &Session,
) -> Result<History, JournalError> {
    let kept = match journal.kept_view(identity).await? {
        Some(kept) if kept.form == VIEW_FORM => read_kept(identity, &kept),
        Some(_) | None => None,
    };
    let fits = |kept: &History| kept.view_from == session.view_from && kept.upto <= session.version;
    Ok(kept.filter(fits).unwrap_or_else(|| History::since(session.view_from)))
}

fn read_kept(identity: &SessionKey, kept: &KeptView) -> Option<History> {
    let read = serde_json::from_str::<History>(&kept.text);
    read.inspect_err(|error| tracing::error!(session = %identity, %error, event = "view_discarded"))
        .ok()
        .filter(|history| history.upto == kept.upto)
}

async fn keep(
    journal: &dyn Journal,
    identity: &SessionKey,
    history: &History,
) -> Result<(), JournalError> {
    let words = |error: serde_json::Error| JournalError::Engine(error.into());
    let text = serde_json::to_string(history).map_err(words)?;
    journal.keep_view(identity, KeptView { upto: history.upto, form: VIEW_FORM, text }).await
}

#[cfg(test)]
mod tests {
    use planwright_domain::id::{OwnerId, Seq};
    use uuid::Uuid;

    use super::*;
    use crate::ports::model::Message;

    fn session(number: usize) -> SessionKey {
        SessionKey::named(&format!("cli:talk-{number:04}"), OwnerId(Uuid::from_u128(1)))
            .expect("a key")
    }

    fn history(bytes: usize) -> History {
        let mut history = History::default();
        history.push(Seq(1), Message::User("x".repeat(bytes)));
        history
    }

    #[test]
    fn the_conversation_that_was_used_longest_ago_makes_room_and_no_other() {
        let mut histories = Histories::default();
        let each = history(10_000).bytes();
        for number in 0..10 {
            histories.put(&session(number), history(10_000), each * 10);
        }
        assert_eq!((histories.warm.len(), histories.bytes), (10, each * 10));
        let used = histories.take(&session(0)).expect("the first");
        histories.put(&session(0), used, each * 10);
        histories.put(&session(10), history(10_000), each * 10);
        assert!(histories.take(&session(1)).is_none(), "the coldest is gone");
        assert!(histories.take(&session(0)).is_some(), "what was used since is there");
        assert_eq!((histories.warm.len(), histories.used.len()), (9, 9));
        assert_eq!(histories.bytes, each * 9);
        histories.put(&session(20), history(each * 20), each * 10);
        assert_eq!(histories.warm.len(), 9, "what is larger than all is not kept");
    }

    /// What is kept is read by the next program that knows this form: if this changes, raise `VIEW_FORM`.
    #[test]
    fn what_is_kept_of_a_conversation_is_of_this_form() {
        let mut history = history(3);
        history.push(
            Seq(2),
            Message::Tool { wire_id: "a".into(), tool: "read".into(), text: "b".into() },
        );
        let text = serde_json::to_string(&history).expect("it is written");
        let expected = concat!(
            r#"1 {"upto":0,"view_from":0,"compacted":null,"threads":[[null,{"messages":[{"user":"xxx"},"#,
            r#"{"tool":{"wire_id":"a","tool":"read","text":"b"}}],"places":[{"seq":1,"from":1,"bytes":19,"stays":false},"#,
            r#"{"seq":2,"from":2,"bytes":17,"stays":false}],"bytes":36,"#,
            r#""messages_digest":"06be63f71fd02cbe4ac40be4d13011abf309019345329ac55f3ee4f4aecd570e","notes":[],"opened":[],"#,
            r#""comments":null,"shortened":null}]],"here":null,"tasks":{},"waiting":{},"calls":[],"replayed":{},"outcomes":{},"#,
            r#""results":{},"plans":[],"revisions":{},"approval":null}"#,
        );
        assert_eq!(format!("{VIEW_FORM} {text}"), expected);
        assert_eq!(serde_json::from_str::<History>(&text).expect("it is read"), history);
    }
}
