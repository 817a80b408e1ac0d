//! What belongs to an owner: a stream of its own, with its state beside it.

use planwright_domain::{
    actor::PersonId,
    owner::{OWNER_FOLD_VERSION, Owner},
    refusal::Refusal,
    time::Time,
};
use planwright_runtime::ports::journal::{DecideOwner, JournalError, OwnerRecorded};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::memory;
use crate::journal::{
    codec::{Packer, unpack_owner, unpack_owner_event},
    engine,
    remembering::{Whose, of_owner},
};

pub(super) fn read(connection: &Connection, id: &PersonId) -> Result<Owner, JournalError> {
    let sql = "SELECT fold_version, state FROM owners WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let row: Option<(u32, Vec<u8>)> = statement
        .query_row([&id.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(engine)?;
    let kept = row.filter(|(version, _)| *version == OWNER_FOLD_VERSION);
    if let Some(owner) = kept.and_then(|(_, state)| unpack_owner(&state)) {
        return Ok(owner);
    }
    let events: Vec<_> = events(connection, id)?.into_iter().map(|kept| kept.event).collect();
    Ok(Owner::new(id.clone()).fold(&events)?)
}

pub(super) fn events(
    connection: &Connection,
    id: &PersonId,
) -> Result<Vec<OwnerRecorded>, JournalError> {
    let sql = "SELECT at, body FROM owner_events WHERE owner = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let rows = statement
        .query_map([&id.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
        .map_err(engine)?;
    rows.map(|row| {
        let (at, body) = row.map_err(engine)?;
        Ok(OwnerRecorded { at: Time(at), event: unpack_owner_event(&body)? })
    })
    .collect()
}

pub(super) fn owners(connection: &Connection) -> Result<Vec<PersonId>, JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM owners ORDER BY id").map_err(engine)?;
    let rows = statement.query_map([], |row| row.get(0)).map_err(engine)?;
    rows.map(|row| row.map(PersonId).map_err(engine)).collect()
}

/// Decides and stores, in the transaction that is open.
pub(super) fn append(
    connection: &Connection,
    packer: &mut Packer,
    id: &PersonId,
    at: Time,
    decide: &DecideOwner,
) -> Result<Result<Owner, Refusal>, JournalError> {
    let owner = read(connection, id)?;
    let events = match decide(&owner) {
        Ok(events) => events,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let after = owner.fold(&events)?;
    if events.is_empty() {
        return Ok(Ok(after));
    }
    let sql = "INSERT INTO owner_events (owner, seq, at, body) VALUES (?1, ?2, ?3, ?4)";
    for (seq, event) in (owner.version.following().0..).zip(&events) {
        let body = packer.pack(event)?;
        let mut statement = connection.prepare_cached(sql).map_err(engine)?;
        statement.execute(params![id.0, seq.cast_signed(), at.0, body]).map_err(engine)?;
    }
    let sql = "INSERT INTO owners (id, version, fold_version, state) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (id) DO UPDATE SET version = excluded.version,
               fold_version = excluded.fold_version, state = excluded.state";
    let state = packer.pack(&after)?;
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let version = after.version.0.cast_signed();
    statement.execute(params![id.0, version, OWNER_FOLD_VERSION, state]).map_err(engine)?;
    memory::change(connection, packer, Whose::Owner(id), &of_owner(&events))?;
    Ok(Ok(after))
}
