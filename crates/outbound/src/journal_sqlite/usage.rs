//! What owners use: turns, tokens, money and bytes.

use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    owner::{DayUse, Owner},
    quota::{Day, TurnRoom, Used},
    refusal::Refusal,
    time::Time,
};
use planwright_format::body::Packer;
use planwright_runtime::{failpoint, ports::journal::JournalError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::{owner, sqlite};
use crate::journal::Uncounted;

/// What belongs to an owner, and what they have used but for bytes.
pub(super) fn used(
    connection: &Connection,
    id: OwnerId,
    day: Day,
) -> Result<(Owner, Used), JournalError> {
    // Both in one look: what is taken up in between would be counted twice, or not at all.
    let read = connection.unchecked_transaction().map_err(sqlite)?;
    let owner = owner::read(&read, id)?;
    let sql = "SELECT COALESCE(SUM(tokens - counted_tokens), 0), COALESCE(SUM(cost_micros - counted_cost_micros), 0)
               FROM streams WHERE owner = ?1 AND (tokens > counted_tokens OR cost_micros > counted_cost_micros)
               AND updated_at >= ?2";
    let mut statement = read.prepare_cached(sql).map_err(sqlite)?;
    let since = Day(day.0 - 1).ends().0;
    let (tokens, cost_micros): (i64, i64) = statement
        .query_row(params![id.0.as_bytes(), since], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(sqlite)?;
    let turns = under_way(&read, id)?;
    let uncounted =
        DayUse { tokens: tokens.cast_unsigned(), cost_micros: cost_micros.cast_unsigned() };
    let DayUse { tokens, cost_micros } = owner.used_on(day).plus(uncounted);
    Ok((owner, Used { turns, tokens, cost_micros, bytes: 0 }))
}

fn under_way(connection: &Connection, id: OwnerId) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM streams WHERE owner = ?1 AND running AND parked IS NULL";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let many: i64 = statement.query_row([id.0.as_bytes()], |row| row.get(0)).map_err(sqlite)?;
    Ok(many.cast_unsigned())
}

/// Whether the owner may have another turn under way.
pub(super) fn check_room(
    connection: &Connection,
    id: OwnerId,
    room: &TurnRoom,
) -> Result<Result<(), Refusal>, JournalError> {
    Ok(room.check(under_way(connection, id)?).map_err(Refusal::LimitReached))
}

pub(super) fn stored_bytes(connection: &Connection, id: OwnerId) -> Result<u64, JournalError> {
    let sql = "SELECT COALESCE(SUM(bytes), 0) FROM streams WHERE owner = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let bytes: i64 = statement.query_row([id.0.as_bytes()], |row| row.get(0)).map_err(sqlite)?;
    Ok(bytes.cast_unsigned())
}

/// Whether something was used that no owner took up.
pub(super) fn has_uncounted(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM streams WHERE tokens > counted_tokens OR cost_micros > counted_cost_micros)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.query_row([], |row| row.get(0)).map_err(sqlite)
}

/// Which sessions are counted.
pub(super) enum Counted {
    /// So many.
    Some(usize),
    /// This stream.
    One(i64),
}

/// Takes up what was used, in the transaction that is open. Of how many sessions.
pub(super) fn count(
    connection: &Connection,
    packer: &mut Packer,
    at: Time,
    which: &Counted,
) -> Result<usize, JournalError> {
    let (only, limit) = match which {
        Counted::Some(limit) => (None, i64::try_from(*limit).unwrap_or(i64::MAX)),
        Counted::One(stream) => (Some(*stream), 1),
    };
    let sql = "SELECT id, owner, updated_at, tokens - counted_tokens, cost_micros - counted_cost_micros FROM streams
               WHERE (tokens > counted_tokens OR cost_micros > counted_cost_micros) AND (?1 IS NULL OR id = ?1) LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let mut rows = statement.query(params![only, limit]).map_err(sqlite)?;
    let (mut uncounted, mut streams) = (Uncounted::default(), Vec::new());
    while let Some(row) = rows.next().map_err(sqlite)? {
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned).map_err(sqlite);
        let used = DayUse { tokens: number(3)?, cost_micros: number(4)? };
        let owner = OwnerId(Uuid::from_bytes(row.get(1).map_err(sqlite)?));
        uncounted.add(owner, Time(row.get(2).map_err(sqlite)?), used);
        streams.push(row.get::<_, i64>(0).map_err(sqlite)?);
    }
    failpoint::hit("usage.before_facts");
    for (id, decide) in uncounted.decisions() {
        if name(connection, id)?.is_none() {
            tracing::error!(owner = %id, event = "usage_of_nobody");
            continue;
        }
        // Counting is never refused.
        owner::append(connection, packer, id, at, &decide)?.ok();
    }
    let sql = "UPDATE streams SET counted_tokens = tokens, counted_cost_micros = cost_micros WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    for stream in &streams {
        statement.execute([stream]).map_err(sqlite)?;
    }
    failpoint::hit("usage.after_facts");
    Ok(streams.len())
}

pub(super) fn name(connection: &Connection, id: OwnerId) -> Result<Option<PersonId>, JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT name FROM owners WHERE id = ?1").map_err(sqlite)?;
    let name = statement.query_row([id.0.as_bytes()], |row| row.get(0)).optional();
    Ok(name.map_err(sqlite)?.map(PersonId))
}
