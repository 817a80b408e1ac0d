//! Rows as both engines store them: what is sealed for its place, and read again from there.

use planwright_domain::{
    digest::Digest,
    id::{CommandId, OwnerId, Seq},
    identity::SessionKey,
    installation::{INSTALLATION_FOLD_VERSION, Installation, InstallationEvent},
    owner::{OWNER_FOLD_VERSION, Owner, OwnerEvent},
    session::{CorruptJournal, FOLD_VERSION, Session},
    time::Time,
};
use planwright_format::{
    FormatError,
    answer::AnswerColumns,
    body::{self, OUTPUT_VERSION, Packer, Place, VIEW_VERSION},
    event::{EventPlace, StoredEvent, StreamEvent, known_level, read_event},
    value::StoredRefusal,
};
use planwright_runtime::ports::journal::{Answer, JournalError, KeptView, OwnerRecorded};

use super::engine;

/// An answer as a row holds it.
pub(crate) struct AnswerRow {
    pub(crate) columns: AnswerColumns,
    pub(crate) checksum: i64,
}

impl AnswerRow {
    pub(crate) fn new(
        identity: &SessionKey,
        command: CommandId,
        answer: &Answer,
    ) -> Result<Self, JournalError> {
        let columns = match answer {
            Answer::Accepted { before, version } => AnswerColumns {
                before: before.0.cast_signed(),
                version: version.0.cast_signed(),
                refusal: None,
            },
            Answer::Refused(refusal) => AnswerColumns {
                before: 0,
                version: 0,
                refusal: Some(
                    serde_json::to_string(&StoredRefusal::from(refusal)).map_err(engine)?,
                ),
            },
        };
        let checksum = columns.checksum(&identity.to_string(), command.0.as_bytes());
        Ok(Self { columns, checksum })
    }

    pub(crate) fn answer(
        self,
        identity: &SessionKey,
        command: CommandId,
    ) -> Result<Answer, JournalError> {
        let Self { columns, checksum } = self;
        columns.check(&identity.to_string(), command.0.as_bytes(), checksum)?;
        Ok(match columns.refusal {
            None => Answer::Accepted {
                before: Seq(columns.before.cast_unsigned()),
                version: Seq(columns.version.cast_unsigned()),
            },
            Some(refusal) => {
                // The checksum fits, so a program wrote it: one that knows more refusals.
                let refusal = serde_json::from_str::<StoredRefusal>(&refusal)
                    .map_err(|_| FormatError::Newer { what: format!("an answer of {identity}") })?;
                Answer::Refused(refusal.into())
            }
        })
    }
}

/// Where an event stands: in a session's stream, or an owner's.
pub(crate) fn event_place(stream: &str, seq: u64, at: Time) -> EventPlace<'_> {
    EventPlace { stream, seq, at: at.0 }
}

/// A snapshot of this version of the fold, sealed. Its version is the level of the events that may be folded in it: a program
/// that does not know them folds the events itself, and so finds out.
pub(crate) fn seal_snapshot(
    packer: &mut Packer,
    session: &Session,
    level: u32,
) -> Result<Vec<u8>, JournalError> {
    let identity = session.key().to_string();
    let (version, fold) = (session.version.0, FOLD_VERSION);
    let place = Place::Snapshot { session: &identity, version, fold };
    Ok(packer.seal(&place, snapshot_version(level), session)?)
}

fn snapshot_version(level: u32) -> u16 {
    u16::try_from(level).unwrap_or(u16::MAX)
}

/// A snapshot of this version of the fold. One that cannot be read is reported and not used: the events are the truth.
pub(crate) fn read_snapshot(identity: &SessionKey, version: Seq, body: &[u8]) -> Option<Session> {
    let session = identity.to_string();
    let place = Place::Snapshot { session: &session, version: version.0, fold: FOLD_VERSION };
    let read = body::read(&place, snapshot_version(known_level()), body);
    read.inspect_err(|error| tracing::error!(%session, %error, event = "snapshot_discarded")).ok()
}

/// An event of an owner, sealed.
pub(crate) fn seal_owner_event(
    packer: &mut Packer,
    owner: OwnerId,
    seq: u64,
    at: Time,
    event: &OwnerEvent,
    level: u32,
) -> Result<StoredEvent, JournalError> {
    Ok(packer.seal_event(event_place(&owner.to_string(), seq, at), event, level)?)
}

/// An event of the installation, sealed.
pub(crate) fn seal_installation_event(
    packer: &mut Packer,
    seq: u64,
    at: Time,
    event: &InstallationEvent,
    level: u32,
) -> Result<StoredEvent, JournalError> {
    Ok(packer.seal_event(event_place("", seq, at), event, level)?)
}

/// The folded state of the installation, sealed. Its version is a level, as a snapshot's is.
pub(crate) fn seal_installation(
    packer: &mut Packer,
    installation: &Installation,
    level: u32,
) -> Result<Vec<u8>, JournalError> {
    let (version, fold) = (installation.version.0, INSTALLATION_FOLD_VERSION);
    let place = Place::InstallationState { version, fold };
    Ok(packer.seal(&place, snapshot_version(level), installation)?)
}

/// The folded state of the installation. One that cannot be read is reported and not used: the events are the truth.
pub(crate) fn read_installation(version: i64, body: &[u8]) -> Option<Installation> {
    let (version, fold) = (version.cast_unsigned(), INSTALLATION_FOLD_VERSION);
    let place = Place::InstallationState { version, fold };
    let read = body::read(&place, snapshot_version(known_level()), body);
    read.inspect_err(|error| tracing::error!(%error, event = "snapshot_discarded")).ok()
}

/// A row of an event: number, time, kind, body.
pub(crate) type EventRow = (i64, Time, String, Vec<u8>);

/// An owner's whole stream, out of its rows. It has come at least so far.
pub(crate) fn read_owner_events(
    owner: OwnerId,
    version: i64,
    rows: impl Iterator<Item = Result<EventRow, JournalError>>,
) -> Result<Vec<OwnerRecorded>, JournalError> {
    let owner = owner.to_string();
    let events = read_stream(&owner, &format!("the owner {owner}"), Seq(0), rows)?;
    if (events.len() as u64) < version.cast_unsigned() {
        let next = Seq(events.len() as u64).following();
        let what = format!("the events of the owner {owner} from {next} on are missing");
        return Err(CorruptJournal::new(next, what).into());
    }
    Ok(events.into_iter().map(|(at, event)| OwnerRecorded { at, event }).collect())
}

/// The events of the installation after this one, out of their rows.
pub(crate) fn read_installation_events(
    after: Seq,
    rows: impl Iterator<Item = Result<EventRow, JournalError>>,
) -> Result<Vec<(Time, InstallationEvent)>, JournalError> {
    read_stream("", "the installation", after, rows)
}

/// The installation with these events after it.
pub(crate) fn fold_installation(
    before: &Installation,
    events: &[(Time, InstallationEvent)],
) -> Result<Installation, JournalError> {
    Ok(before.fold_all(events.iter().map(|(at, event)| (*at, event)))?)
}

/// The events of a stream after this one, out of their rows: each must be there.
fn read_stream<E: StreamEvent>(
    stream: &str,
    whose: &str,
    after: Seq,
    rows: impl Iterator<Item = Result<EventRow, JournalError>>,
) -> Result<Vec<(Time, E)>, JournalError> {
    let mut expected = after;
    let read = |row: Result<EventRow, JournalError>| -> Result<_, JournalError> {
        let (seq, at, kind, body) = row?;
        let seq = Seq(seq.cast_unsigned());
        expected = expected.following();
        if seq != expected {
            let what = format!("event {expected} of {whose} is missing");
            return Err(CorruptJournal::new(seq, what).into());
        }
        Ok((at, read_event(event_place(stream, seq.0, at), &kind, &body)?))
    };
    rows.map(read).collect()
}

/// The folded state of an owner, sealed. Its version is a level, as a snapshot's is.
pub(crate) fn seal_owner(
    packer: &mut Packer,
    owner: &Owner,
    level: u32,
) -> Result<Vec<u8>, JournalError> {
    let (version, fold) = (owner.version.0, OWNER_FOLD_VERSION);
    let id = owner.id.to_string();
    let place = Place::OwnerState { owner: &id, version, fold };
    Ok(packer.seal(&place, snapshot_version(level), owner)?)
}

/// The folded state of an owner. One that cannot be read is reported and not used: the events are the truth.
pub(crate) fn read_owner(owner: OwnerId, version: i64, body: &[u8]) -> Option<Owner> {
    let (version, fold) = (version.cast_unsigned(), OWNER_FOLD_VERSION);
    let owner = owner.to_string();
    let place = Place::OwnerState { owner: &owner, version, fold };
    let read = body::read(&place, snapshot_version(known_level()), body);
    read.inspect_err(|error| tracing::error!(owner, %error, event = "snapshot_discarded")).ok()
}

/// A conversation that is kept, sealed.
pub(crate) fn seal_view(identity: &SessionKey, view: &KeptView) -> Result<Vec<u8>, JournalError> {
    let session = identity.to_string();
    let place = Place::View { session: &session, upto: view.upto.0, form: view.form };
    Ok(Packer::new().map_err(engine)?.seal(&place, VIEW_VERSION, &view.text)?)
}

/// A conversation that was kept. One that cannot be read is reported and not used: the events are the truth.
pub(crate) fn read_view(
    identity: &SessionKey,
    upto: Seq,
    form: u32,
    body: &[u8],
) -> Option<KeptView> {
    let session = identity.to_string();
    let place = Place::View { session: &session, upto: upto.0, form };
    let read = body::read(&place, VIEW_VERSION, body);
    let text =
        read.inspect_err(|error| tracing::error!(%session, %error, event = "view_discarded"));
    Some(KeptView { upto, form, text: text.ok()? })
}

/// A kept output, sealed.
pub(crate) fn seal_output(
    packer: &mut Packer,
    identity: &SessionKey,
    digest: Digest,
    text: &str,
) -> Result<Vec<u8>, JournalError> {
    let session = identity.to_string();
    let place = Place::Output { session: &session, digest: &digest.0 };
    Ok(packer.seal(&place, OUTPUT_VERSION, &text)?)
}

/// A kept output.
pub(crate) fn read_output(
    identity: &SessionKey,
    digest: Digest,
    body: &[u8],
) -> Result<String, JournalError> {
    let session = identity.to_string();
    let place = Place::Output { session: &session, digest: &digest.0 };
    Ok(body::read(&place, OUTPUT_VERSION, body)?)
}
