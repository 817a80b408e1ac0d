//! What belongs to an owner: a stream of its own, with its state beside it.

use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    owner::{OWNER_FOLD_VERSION, Owner},
    refusal::Refusal,
    time::Time,
};
use planwright_format::{body::Packer, event::known_level};
use planwright_runtime::ports::journal::{DecideOwner, JournalError, OwnerRecorded};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::{memory, sqlite};
use crate::journal::{
    nobody,
    remembering::{Whose, of_owner},
    sealed::{read_owner, read_owner_events, seal_owner, seal_owner_event},
};

pub(super) fn read(connection: &Connection, id: OwnerId) -> Result<Owner, JournalError> {
    let sql = "SELECT version, fold_version, state FROM owners WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let row: Option<(i64, u32, Option<Vec<u8>>)> = statement
        .query_row([id.0.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
        .map_err(sqlite)?;
    if row.as_ref().is_none_or(|(version, ..)| *version == 0) {
        return Ok(Owner::new(id));
    }
    let kept = row.filter(|(_, fold, _)| *fold == OWNER_FOLD_VERSION);
    if let Some(owner) = kept.and_then(|(version, _, state)| read_owner(id, version, &state?)) {
        return Ok(owner);
    }
    let events: Vec<_> = events(connection, id)?.into_iter().map(|kept| kept.event).collect();
    Ok(Owner::new(id).fold(&events)?)
}

pub(super) fn events(
    connection: &Connection,
    id: OwnerId,
) -> Result<Vec<OwnerRecorded>, JournalError> {
    let sql = "SELECT COALESCE(MAX(version), 0) FROM owners WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let version = statement.query_row([id.0.as_bytes()], |row| row.get(0)).map_err(sqlite)?;
    let sql = "SELECT seq, at, kind, body FROM owner_events WHERE owner = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement
        .query_map([id.0.as_bytes()], |row| {
            Ok((row.get(0)?, Time(row.get(1)?), row.get(2)?, row.get(3)?))
        })
        .map_err(sqlite)?;
    read_owner_events(id, version, rows.map(|row| row.map_err(sqlite)))
}

pub(super) fn owners(connection: &Connection) -> Result<Vec<(PersonId, OwnerId)>, JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT name, id FROM owners ORDER BY name").map_err(sqlite)?;
    let owner = |row: &Row<'_>| Ok((PersonId(row.get(0)?), OwnerId(Uuid::from_bytes(row.get(1)?))));
    let rows = statement.query_map([], owner).map_err(sqlite)?;
    rows.map(|row| row.map_err(sqlite)).collect()
}

pub(super) fn named(
    connection: &Connection,
    name: &PersonId,
) -> Result<Option<OwnerId>, JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM owners WHERE name = ?1").map_err(sqlite)?;
    let found = statement.query_row([&name.0], |row| row.get(0)).optional().map_err(sqlite)?;
    Ok(found.map(|id| OwnerId(Uuid::from_bytes(id))))
}

/// The owner of this name; a new one with this id, if there was none.
pub(super) fn made(
    connection: &Connection,
    name: &PersonId,
    fresh: OwnerId,
) -> Result<OwnerId, JournalError> {
    let sql = "INSERT INTO owners (id, name) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.execute(params![fresh.0.as_bytes(), name.0]).map_err(sqlite)?;
    named(connection, name)?.ok_or_else(|| nobody(fresh))
}

/// Gives the owner of this name this id, unless something is stored under the one that they have.
pub(super) fn adopt(
    connection: &Connection,
    name: &PersonId,
    id: OwnerId,
) -> Result<bool, JournalError> {
    let sql = "UPDATE owners SET id = ?1 WHERE name = ?2 AND version = 0
               AND NOT EXISTS (SELECT 1 FROM streams WHERE streams.owner = owners.id)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.execute(params![id.0.as_bytes(), name.0]).map_err(sqlite)?;
    Ok(made(connection, name, id)? == id)
}

/// Decides and stores, in the transaction that is open.
pub(super) fn append(
    connection: &Connection,
    packer: &mut Packer,
    id: OwnerId,
    at: Time,
    decide: &DecideOwner,
) -> Result<Result<Owner, Refusal>, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM owners WHERE id = ?1)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    if !statement.query_row([id.0.as_bytes()], |row| row.get(0)).map_err(sqlite)? {
        return Err(nobody(id));
    }
    let owner = read(connection, id)?;
    let events = match decide(&owner) {
        Ok(events) => events,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let after = owner.fold(&events)?;
    if events.is_empty() {
        return Ok(Ok(after));
    }
    let first = owner.version.following().0;
    let level = known_level();
    let rows: Vec<_> = (first..)
        .zip(&events)
        .map(|(seq, event)| seal_owner_event(packer, id, seq, at, event, level))
        .collect::<Result<_, _>>()?;
    let state = seal_owner(packer, &after, level)?;
    let sql = "INSERT INTO owner_events (owner, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    for (seq, row) in (first..).zip(rows) {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement
            .execute(params![id.0.as_bytes(), seq.cast_signed(), at.0, row.kind, row.body])
            .map_err(sqlite)?;
    }
    let sql = "UPDATE owners SET version = ?2, fold_version = ?3, state = ?4 WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let version = after.version.0.cast_signed();
    statement
        .execute(params![id.0.as_bytes(), version, OWNER_FOLD_VERSION, state])
        .map_err(sqlite)?;
    memory::change(connection, packer, Whose::Owner(id), &of_owner(&events))?;
    Ok(Ok(after))
}
