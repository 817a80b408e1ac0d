//! The audit log: what belongs to the installation, as a stream of its own.

use planwright_domain::{
    id::Seq,
    installation::{
        self, AccountRefusal, INSTALLATION_FOLD_VERSION, Installation, InstallationCommand,
        InstallationEvent,
    },
    time::Time,
};
use planwright_format::{body::Packer, event::known_level};
use planwright_runtime::{
    failpoint,
    ports::journal::{DecideInstallation, InstallationRecorded, JournalError, TakenHeads},
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{read, sqlite};
use crate::journal::{
    EventRow, SNAPSHOT_EVERY, head_at, key_of,
    sealed::{
        fold_installation, read_installation, read_installation_events, seal_installation,
        seal_installation_event,
    },
};

/// The installation as it stands.
pub(super) fn read(connection: &Connection) -> Result<Installation, JournalError> {
    let sql = "SELECT version, body FROM installation_state WHERE fold_version = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let kept: Option<(i64, Vec<u8>)> = statement
        .query_row([INSTALLATION_FOLD_VERSION], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(sqlite)?;
    let kept = kept.and_then(|(version, body)| read_installation(version, &body));
    let kept = kept.unwrap_or_default();
    fold_installation(&kept, &events_after(connection, kept.version, i64::MAX)?)
}

/// The entries of the audit log after this one, at most so many.
pub(super) fn events(
    connection: &Connection,
    after: Seq,
    limit: usize,
) -> Result<Vec<InstallationRecorded>, JournalError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let numbered = (after.following().0..).zip(events_after(connection, after, limit)?);
    let recorded =
        numbered.map(|(seq, (at, event))| InstallationRecorded { seq: Seq(seq), at, event });
    Ok(recorded.collect())
}

fn events_after(
    connection: &Connection,
    after: Seq,
    limit: i64,
) -> Result<Vec<(Time, InstallationEvent)>, JournalError> {
    let sql =
        "SELECT seq, at, kind, body FROM installation_events WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement
        .query_map([after.0.cast_signed(), limit], |row| {
            Ok((row.get(0)?, Time(row.get(1)?), row.get(2)?, row.get(3)?))
        })
        .map_err(sqlite)?;
    read_installation_events(after, rows.map(|row| row.map_err(sqlite)))
}

/// Decides and stores, in the transaction that is open.
pub(super) fn append(
    connection: &Connection,
    packer: &mut Packer,
    at: Time,
    decide: &DecideInstallation,
) -> Result<Result<Installation, AccountRefusal>, JournalError> {
    let before = read(connection)?;
    match decide(&before) {
        Ok(events) => store(connection, packer, &before, at, &events).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

fn store(
    connection: &Connection,
    packer: &mut Packer,
    before: &Installation,
    at: Time,
    events: &[InstallationEvent],
) -> Result<Installation, JournalError> {
    let after = before.fold(at, events)?;
    let sql = "INSERT INTO installation_events (seq, at, kind, body) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    for (seq, event) in (before.version.following().0..).zip(events) {
        let row = seal_installation_event(packer, seq, at, event, known_level())?;
        statement.execute(params![seq.cast_signed(), at.0, row.kind, row.body]).map_err(sqlite)?;
    }
    if before.version.0 / SNAPSHOT_EVERY < after.version.0 / SNAPSHOT_EVERY {
        let body = seal_installation(packer, &after, known_level())?;
        let sql = "INSERT OR REPLACE INTO installation_state (id, version, fold_version, body) VALUES (1, ?1, ?2, ?3)";
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        let version = after.version.0.cast_signed();
        statement.execute(params![version, INSTALLATION_FOLD_VERSION, body]).map_err(sqlite)?;
    }
    Ok(after)
}

/// Takes up how far the decisions of sessions have come, in the transaction that is open: of streams after this one, at most so
/// many.
pub(super) fn take_heads(
    connection: &Connection,
    packer: &mut Packer,
    at: Time,
    after: i64,
    limit: usize,
) -> Result<(TakenHeads, Installation), JournalError> {
    let sql = "SELECT streams.id, logged, at, kind, body, owner, identity FROM streams JOIN events ON events.id = streams.id << 32 | logged
               WHERE logged > taken AND streams.id > ?1 ORDER BY streams.id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement
        .query_map([after, limit], |row| {
            let seq = Seq(row.get::<_, i64>(1)?.cast_unsigned());
            let event =
                EventRow { seq, at: Time(row.get(2)?), kind: row.get(3)?, body: row.get(4)? };
            Ok((row.get::<_, i64>(0)?, event, read::key_columns_at(row, 5)?))
        })
        .map_err(sqlite)?;
    let (mut taken, mut heads) = (TakenHeads::default(), Vec::new());
    let mark = "UPDATE streams SET taken = ?2 WHERE id = ?1";
    let mut mark = connection.prepare_cached(mark).map_err(sqlite)?;
    for row in rows {
        let (stream, event, (owner, identity)) = row.map_err(sqlite)?;
        taken.last = Some(stream);
        let seq = event.seq.0.cast_signed();
        let Some(head) = head_at(&key_of(owner, &identity)?, event) else { continue };
        mark.execute([stream, seq]).map_err(sqlite)?;
        heads.push(head);
    }
    taken.count = heads.len();
    failpoint::hit("audit.before_entries");
    let before = read(connection)?;
    let command = InstallationCommand::TakeHeads(heads);
    let events = installation::decide(&before, &command).unwrap_or_default();
    let after = store(connection, packer, &before, at, &events)?;
    failpoint::hit("audit.after_entries");
    Ok((taken, after))
}
