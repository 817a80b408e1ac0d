//! The stored kinds of events of sessions, owners and the installation: a name, a version and a level for each, and how older forms are read.
//!
//! To change what an event holds after a release, leave its row as it is, give it the two functions that turn the new form
//! into the old one and back, and add a row with the next version at the next level. A program that knows the new level
//! writes the old form until every node knows the new one, and reads both for ever.

use std::{collections::HashMap, sync::OnceLock};

use planwright_domain::{
    installation::InstallationEvent, owner::OwnerEvent, session::SessionEvent,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    FormatError,
    body::{Packer, Place, open},
    value::{StoredInstallationEvent, StoredOwnerEvent, StoredSessionEvent},
};

/// Turns one form of an event into another.
pub type Recast = fn(Value) -> Result<Value, String>;

/// One stored form of one kind of event. Once released it never changes.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The name that is stored.
    pub name: &'static str,
    /// The version of its form, from 1.
    pub version: u16,
    /// The level from which it may be written.
    pub level: u32,
    /// The event that it holds, by [`StreamEvent::kind`].
    pub event: &'static str,
    /// Today's form into this one; nothing where they are the same.
    pub downcast: Option<Recast>,
    /// This form into today's; nothing where they are the same.
    pub upcast: Option<Recast>,
}

impl Kind {
    /// A kind of level 1 in its first version, stored under the event's own name.
    #[must_use]
    pub const fn first(name: &'static str) -> Self {
        Self { name, version: 1, level: 1, event: name, downcast: None, upcast: None }
    }
}

/// The kinds of owners' events of this version. Edited until 0.1.0, and from then on only added to.
const OWNER_KINDS: &[Kind] = &[
    Kind::first("pointer_moved"),
    Kind::first("pointer_dropped"),
    Kind::first("memory_promoted"),
    Kind::first("memory_forgotten"),
    Kind::first("models_used"),
    Kind::first("limit_raised"),
];

/// The kinds of the installation's events of this version. Edited until 0.1.0, and from then on only added to.
const INSTALLATION_KINDS: &[Kind] = &[
    Kind::first("person_added"),
    Kind::first("person_invited"),
    Kind::first("passphrase_chosen"),
    Kind::first("passphrase_changed"),
    Kind::first("passphrase_reset"),
    Kind::first("roles_changed"),
    Kind::first("person_removed"),
    Kind::first("granted"),
    Kind::first("grant_renewed"),
    Kind::first("grant_revoked"),
    Kind::first("terminal_unlocked"),
    Kind::first("settings_found"),
    Kind::first("key_found"),
    Kind::first("imported"),
    Kind::first("head_taken"),
    Kind::first("session_erased"),
    Kind::first("owner_erased"),
];

/// The kinds of sessions' events of this version. Edited until 0.1.0, and from then on only added to.
const KINDS: &[Kind] = &[
    Kind::first("plan_started"),
    Kind::first("draft_changed"),
    Kind::first("revision_added"),
    Kind::first("revision_shown"),
    Kind::first("blocks_seen"),
    Kind::first("decision_reminded"),
    Kind::first("decision_expired"),
    Kind::first("discussed"),
    Kind::first("changes_requested"),
    Kind::first("plan_approved"),
    Kind::first("execution_started"),
    Kind::first("step_queued"),
    Kind::first("step_begun"),
    Kind::first("step_ended"),
    Kind::first("execution_paused"),
    Kind::first("plan_failed"),
    Kind::first("plan_ended"),
    Kind::first("turn_started"),
    Kind::first("turn_paused"),
    Kind::first("turn_resumed"),
    Kind::first("limit_warned"),
    Kind::first("model_call_started"),
    Kind::first("model_answered"),
    Kind::first("model_call_failed"),
    Kind::first("model_call_abandoned"),
    Kind::first("model_call_orphaned"),
    Kind::first("view_compacted"),
    Kind::first("call_started"),
    Kind::first("permission_asked"),
    Kind::first("permission_decided"),
    Kind::first("call_finished"),
    Kind::first("call_answered"),
    Kind::first("call_abandoned"),
    Kind::first("call_orphaned"),
    Kind::first("call_in_doubt"),
    Kind::first("doubt_settled"),
    Kind::first("turn_failed"),
    Kind::first("turn_finished"),
    Kind::first("goal_added"),
    Kind::first("goal_ended"),
    Kind::first("task_added"),
    Kind::first("task_ended"),
    Kind::first("run_started"),
    Kind::first("ticked"),
    Kind::first("run_moved"),
    Kind::first("run_pinned"),
    Kind::first("run_warned"),
    Kind::first("run_paused"),
    Kind::first("run_resumed"),
    Kind::first("run_ended"),
    Kind::first("schedule_added"),
    Kind::first("slots_missed"),
    Kind::first("slot_claimed"),
    Kind::first("slot_ended"),
    Kind::first("schedule_ended"),
    Kind::first("memory_saved"),
    Kind::first("memory_changed"),
    Kind::first("memory_forgotten"),
    Kind::first("notebook_switched"),
    Kind::first("note_due"),
    Kind::first("agent_call_started"),
    Kind::first("removal_started"),
    Kind::first("pages_removed"),
    Kind::first("removal_failed"),
    Kind::first("removal_orphaned"),
    Kind::first("session_opened"),
    Kind::first("session_renamed"),
    Kind::first("session_archived"),
    Kind::first("session_restored"),
    Kind::first("session_deleted"),
    Kind::first("message_queued"),
    Kind::first("cause_withdrawn"),
    Kind::first("agent_called"),
    Kind::first("view_reset"),
    Kind::first("compaction_asked"),
    Kind::first("logged"),
];

/// The kinds of one sort of stream that this program knows, by name and by event.
#[derive(Debug)]
pub struct Table {
    level: u32,
    by_name: HashMap<&'static str, Vec<Kind>>,
    by_event: HashMap<&'static str, Vec<Kind>>,
}

impl Table {
    fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let mut table = Self { level: 0, by_name: HashMap::new(), by_event: HashMap::new() };
        for kind in kinds {
            table.level = table.level.max(kind.level);
            put(table.by_name.entry(kind.name).or_default(), kind);
            put(table.by_event.entry(kind.event).or_default(), kind);
        }
        table
    }

    /// The newest form of this event that may be written at this level.
    fn to_write(&self, event: &'static str, agreed: u32) -> Result<&Kind, FormatError> {
        let forms = self.by_event.get(event).map_or(&[][..], Vec::as_slice);
        let allowed = forms.iter().filter(|kind| kind.level <= agreed);
        if let Some(kind) = allowed.max_by_key(|kind| (kind.level, kind.version)) {
            return Ok(kind);
        }
        match forms.iter().map(|kind| kind.level).min() {
            Some(level) => Err(FormatError::LevelTooLow { kind: event, level, agreed }),
            None => Err(FormatError::Unwritable(format!("{event} has no stored kind"))),
        }
    }
}

/// Adds a form, in the place of an earlier row of the same form: a newer program knows better how to read it.
fn put(forms: &mut Vec<Kind>, kind: Kind) {
    forms.retain(|form| (form.name, form.version) != (kind.name, kind.version));
    forms.push(kind);
}

static TABLE: OnceLock<Table> = OnceLock::new();
static OWNER_TABLE: OnceLock<Table> = OnceLock::new();
static INSTALLATION_TABLE: OnceLock<Table> = OnceLock::new();

fn table() -> &'static Table {
    TABLE.get_or_init(|| Table::new(KINDS.iter().copied()))
}

fn owner_table() -> &'static Table {
    OWNER_TABLE.get_or_init(|| Table::new(OWNER_KINDS.iter().copied()))
}

fn installation_table() -> &'static Table {
    INSTALLATION_TABLE.get_or_init(|| Table::new(INSTALLATION_KINDS.iter().copied()))
}

/// Adds kinds to those that sessions have in this version: how a program that is newer than this one would begin. Only before
/// anything was read or written; whether it was so.
pub fn register(newer: &[Kind]) -> bool {
    TABLE.set(Table::new(KINDS.iter().chain(newer).copied())).is_ok()
}

/// The highest level that this program knows.
#[must_use]
pub fn known_level() -> u32 {
    table().level.max(owner_table().level).max(installation_table().level)
}

/// The kinds of sessions' events that this program knows.
pub fn known_kinds() -> impl Iterator<Item = &'static str> {
    table().by_event.keys().copied()
}

/// The names under which these events are stored, in all their forms.
#[must_use]
pub fn stored_names(events: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for event in events {
        let forms = table().by_event.get(event);
        debug_assert!(forms.is_some(), "{event} has no stored kind");
        names.extend(forms.into_iter().flatten().map(|kind| kind.name));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Where an event stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace<'a> {
    /// The session's identity with its owner, or the owner; nothing for the installation's.
    pub stream: &'a str,
    /// Its number in the stream.
    pub seq: u64,
    /// When it was recorded, in microseconds.
    pub at: i64,
}

/// An event of one sort of stream.
pub trait StreamEvent: Sized {
    /// The type that is stored.
    type Stored: Serialize + DeserializeOwned + for<'a> From<&'a Self> + Into<Self>;

    /// Its kind.
    fn kind(&self) -> &'static str;

    /// The place of an event of this stored kind.
    fn place<'a>(place: EventPlace<'a>, kind: &'a str) -> Place<'a>;

    /// The stored kinds of such streams.
    fn table() -> &'static Table;
}

impl StreamEvent for SessionEvent {
    type Stored = StoredSessionEvent;

    fn kind(&self) -> &'static str {
        self.kind()
    }

    fn place<'a>(place: EventPlace<'a>, kind: &'a str) -> Place<'a> {
        Place::Event { session: place.stream, seq: place.seq, kind, at: place.at }
    }

    fn table() -> &'static Table {
        table()
    }
}

impl StreamEvent for OwnerEvent {
    type Stored = StoredOwnerEvent;

    fn kind(&self) -> &'static str {
        self.kind()
    }

    fn place<'a>(place: EventPlace<'a>, kind: &'a str) -> Place<'a> {
        Place::OwnerEvent { owner: place.stream, seq: place.seq, kind, at: place.at }
    }

    fn table() -> &'static Table {
        owner_table()
    }
}

impl StreamEvent for InstallationEvent {
    type Stored = StoredInstallationEvent;

    fn kind(&self) -> &'static str {
        self.kind()
    }

    fn place<'a>(place: EventPlace<'a>, kind: &'a str) -> Place<'a> {
        Place::InstallationEvent { seq: place.seq, kind, at: place.at }
    }

    fn table() -> &'static Table {
        installation_table()
    }
}

/// An event as a row holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its stored kind.
    pub kind: &'static str,
    /// Its body.
    pub body: Vec<u8>,
}

impl Packer {
    /// An event in the newest form that may be written at this level.
    pub fn seal_event<E: StreamEvent>(
        &mut self,
        place: EventPlace<'_>,
        event: &E,
        agreed: u32,
    ) -> Result<StoredEvent, FormatError> {
        let kind = E::table().to_write(event.kind(), agreed)?;
        let (at, today) = (E::place(place, kind.name), E::Stored::from(event));
        let body = match kind.downcast {
            None => self.seal(&at, kind.version, &today)?,
            Some(downcast) => {
                let unwritable = |why| FormatError::Unwritable(format!("{}: {why}", kind.name));
                let today = serde_json::to_value(today)
                    .map_err(|error| FormatError::Unwritable(error.to_string()))?;
                self.seal(&at, kind.version, &downcast(today).map_err(unwritable)?)?
            }
        };
        Ok(StoredEvent { kind: kind.name, body })
    }
}

/// Reads an event that was stored here under this kind.
pub fn read_event<E: StreamEvent>(
    place: EventPlace<'_>,
    kind: &str,
    body: &[u8],
) -> Result<E, FormatError> {
    let at = E::place(place, kind);
    // Whatever the kind, a body that is not what was written is corrupt and not newer.
    let opened = open(&at, body)?;
    let forms = E::table().by_name.get(kind).map_or(&[][..], Vec::as_slice);
    let Some(form) = forms.iter().find(|form| form.version == opened.version) else {
        return Err(FormatError::Newer { what: at.to_string() });
    };
    let corrupt = |why: String| FormatError::Corrupt { what: at.to_string(), why };
    let event: E::Stored = match form.upcast {
        None => serde_json::from_slice(&opened.json).map_err(|error| corrupt(error.to_string()))?,
        Some(upcast) => {
            let stored =
                serde_json::from_slice(&opened.json).map_err(|error| corrupt(error.to_string()))?;
            let today = upcast(stored).map_err(corrupt)?;
            serde_json::from_value(today).map_err(|error| corrupt(error.to_string()))?
        }
    };
    let event: E = event.into();
    if event.kind() == form.event {
        Ok(event)
    } else {
        Err(corrupt(format!("it holds a {}", event.kind())))
    }
}

#[cfg(test)]
mod tests {
    use planwright_domain::{
        actor::{Person, Standing},
        id::OwnerId,
    };
    use serde_json::json;

    use super::*;

    const PLACE: EventPlace<'_> = EventPlace { stream: "cli:talk-01", seq: 1, at: 5 };

    fn message(text: &str) -> SessionEvent {
        let by = Person::new(OwnerId(uuid::Uuid::from_u128(7)), "ada", "cli", Standing::Decides);
        SessionEvent::MessageQueued { text: text.into(), by }
    }

    fn packer() -> Packer {
        Packer::new().expect("a packer")
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let stored = packer().seal_event(PLACE, &message("hello"), 1).expect("stored");
        assert_eq!(stored.kind, "message_queued");
        assert_eq!(read_event(PLACE, stored.kind, &stored.body), Ok(message("hello")));
    }

    #[test]
    fn every_name_is_stored_once_at_level_1() {
        assert_eq!(known_level(), 1);
        for (table, kinds) in [
            (table(), KINDS),
            (owner_table(), OWNER_KINDS),
            (installation_table(), INSTALLATION_KINDS),
        ] {
            let forms = table.by_name.values();
            assert_eq!(forms.clone().count(), kinds.len());
            assert!(forms.flatten().all(|kind| kind.version == 1 && kind.name == kind.event));
        }
    }

    #[test]
    fn a_kind_that_this_version_does_not_know_is_newer_and_a_changed_kind_is_corrupt() {
        let place = SessionEvent::place(PLACE, "dream_dreamt");
        let body = packer().seal(&place, 1, &json!({"dream": 1})).expect("a body");
        let what = "event 1 (dream_dreamt) of cli:talk-01".to_owned();
        let read = read_event::<SessionEvent>(PLACE, "dream_dreamt", &body);
        assert_eq!(read, Err(FormatError::Newer { what: what.clone() }));

        let stored = packer().seal_event(PLACE, &message("hello"), 1).expect("stored");
        let read = read_event::<SessionEvent>(PLACE, "dream_dreamt", &stored.body);
        let why = "its checksum does not fit".to_owned();
        assert_eq!(read, Err(FormatError::Corrupt { what, why }));
    }

    #[test]
    fn an_owners_event_of_a_kind_that_this_version_does_not_know_is_newer() {
        let place = OwnerEvent::place(PLACE, "dream_dreamt");
        let body = packer().seal(&place, 1, &json!({"dream": 1})).expect("a body");
        let what = "event 1 (dream_dreamt) of the owner cli:talk-01".into();
        let read = read_event::<OwnerEvent>(PLACE, "dream_dreamt", &body);
        assert_eq!(read, Err(FormatError::Newer { what }));
    }

    #[test]
    fn an_event_under_the_kind_of_another_is_corrupt() {
        let body = packer()
            .seal(
                &SessionEvent::place(PLACE, "view_reset"),
                1,
                &StoredSessionEvent::from(&message("hello")),
            )
            .expect("a body");
        let what = "event 1 (view_reset) of cli:talk-01".into();
        let why = "it holds a message_queued".into();
        let read = read_event::<SessionEvent>(PLACE, "view_reset", &body);
        assert_eq!(read, Err(FormatError::Corrupt { what, why }));
    }

    #[test]
    fn a_newer_version_of_a_known_kind_is_newer() {
        let body = packer()
            .seal(&SessionEvent::place(PLACE, "view_reset"), 2, &message("hello"))
            .expect("a body");
        let what = "event 1 (view_reset) of cli:talk-01".into();
        assert_eq!(
            read_event::<SessionEvent>(PLACE, "view_reset", &body),
            Err(FormatError::Newer { what })
        );
    }

    #[test]
    fn a_form_above_the_agreed_level_is_not_written() {
        let second = |level| Kind { name: "message_noted", level, ..Kind::first("message_queued") };
        let table = Table::new([Kind::first("message_queued"), second(2)]);
        let name = |agreed| table.to_write("message_queued", agreed).map(|kind| kind.name);
        assert_eq!(name(1), Ok("message_queued"));
        assert_eq!(name(2), Ok("message_noted"));
        assert_eq!(name(9), Ok("message_noted"));
        let table = Table::new([Kind::first("message_queued"), Kind::first("message_queued")]);
        assert_eq!(table.by_event["message_queued"].len(), 1, "a row is replaced");
        let table = Table::new([second(2)]);
        let refused = FormatError::LevelTooLow { kind: "message_queued", level: 2, agreed: 1 };
        assert_eq!(table.to_write("message_queued", 1).map(|kind| kind.name), Err(refused));
    }
}
