//! What belongs to the installation: a stream of its own.

use planwright_domain::{
    id::Seq,
    installation::{AccountRefusal, Installation, InstallationEvent},
    time::Time,
};
use planwright_format::{body::Packer, event::known_level};
use planwright_runtime::ports::journal::{DecideInstallation, JournalError};
use rusqlite::{Connection, params};

use super::sqlite;
use crate::journal::sealed::{read_installation_events, seal_installation_event};

/// The installation as it stands, from what it was.
pub(super) fn read(
    connection: &Connection,
    before: &Installation,
) -> Result<Installation, JournalError> {
    Ok(before.fold(&events_after(connection, before.version)?)?)
}

/// Everything that happened to it.
pub(super) fn events(connection: &Connection) -> Result<Vec<InstallationEvent>, JournalError> {
    events_after(connection, Seq(0))
}

fn events_after(
    connection: &Connection,
    after: Seq,
) -> Result<Vec<InstallationEvent>, JournalError> {
    let sql = "SELECT seq, at, kind, body FROM installation_events WHERE seq > ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement
        .query_map([after.0.cast_signed()], |row| {
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
    let before = read(connection, &Installation::default())?;
    let events = match decide(&before) {
        Ok(events) => events,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let after = before.fold(&events)?;
    let sql = "INSERT INTO installation_events (seq, at, kind, body) VALUES (?1, ?2, ?3, ?4)";
    for (seq, event) in (before.version.following().0..).zip(&events) {
        let row = seal_installation_event(packer, seq, at, event, known_level())?;
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(params![seq.cast_signed(), at.0, row.kind, row.body]).map_err(sqlite)?;
    }
    Ok(Ok(after))
}
