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
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::{owner, sqlite};
use crate::journal::Uncounted;

/// What belongs to an owner, and what they have used.
pub(super) fn used(
    connection: &Connection,
    id: OwnerId,
    day: Day,
) -> Result<(Owner, Used), JournalError> {
    // Both in one look: what is taken up in between would be counted twice, or not at all.
    let read = connection.unchecked_transaction().map_err(sqlite)?;
    let owner = owner::read(&read, id)?;
    let sql = "SELECT COALESCE(SUM(CASE WHEN updated_at >= ?2 THEN tokens - counted_tokens END), 0),
                   COALESCE(SUM(CASE WHEN updated_at >= ?2 THEN cost_micros - counted_cost_micros END), 0),
                   COALESCE(SUM(bytes - counted_bytes), 0) + COALESCE((SELECT bytes FROM owners WHERE id = ?1), 0),
                   (SELECT COUNT(*) FROM streams WHERE owner = ?1 AND takes_room AND parked IS NULL)
               FROM uncounted JOIN streams ON id = uncounted.stream WHERE uncounted.owner = ?1";
    let mut statement = read.prepare_cached(sql).map_err(sqlite)?;
    let since = Day(day.0 - 1).ends().0;
    let number = |row: &Row<'_>, column| row.get(column).map(i64::cast_unsigned);
    let (uncounted, bytes, turns) = statement
        .query_row(params![id.0.as_bytes(), since], |row| {
            let uncounted = DayUse { tokens: number(row, 0)?, cost_micros: number(row, 1)? };
            Ok((uncounted, number(row, 2)?, number(row, 3)?))
        })
        .map_err(sqlite)?;
    let DayUse { tokens, cost_micros } = owner.used_on(day).plus(uncounted);
    Ok((owner, Used { turns, tokens, cost_micros, bytes }))
}

fn under_way(connection: &Connection, id: OwnerId) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM streams WHERE owner = ?1 AND takes_room AND parked IS NULL";
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

/// Whether something was used that no owner was charged.
pub(super) fn has_uncounted(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM uncounted)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.query_row([], |row| row.get(0)).map_err(sqlite)
}

/// That a stream used something its owner is to be charged.
pub(super) fn uncounted(
    connection: &Connection,
    owner: &[u8; 16],
    stream: i64,
) -> Result<(), JournalError> {
    let sql = "INSERT OR IGNORE INTO uncounted (owner, stream) VALUES (?1, ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.execute(params![owner, stream]).map(drop).map_err(sqlite)
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
    let sql = "SELECT id, streams.owner, updated_at, tokens - counted_tokens, cost_micros - counted_cost_micros, bytes - counted_bytes
               FROM uncounted JOIN streams ON id = uncounted.stream
               WHERE ?1 IS NULL OR id = ?1 ORDER BY uncounted.owner, uncounted.stream LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let mut rows = statement.query(params![only, limit]).map_err(sqlite)?;
    let (mut uncounted, mut streams) = (Uncounted::default(), Vec::new());
    while let Some(row) = rows.next().map_err(sqlite)? {
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned).map_err(sqlite);
        let used = DayUse { tokens: number(3)?, cost_micros: number(4)? };
        let owner = OwnerId(Uuid::from_bytes(row.get(1).map_err(sqlite)?));
        let bytes = row.get(5).map_err(sqlite)?;
        uncounted.add(owner, Time(row.get(2).map_err(sqlite)?), used, bytes);
        streams.push(row.get::<_, i64>(0).map_err(sqlite)?);
    }
    failpoint::hit("usage.before_facts");
    let add = "UPDATE owners SET bytes = bytes + ?2 WHERE id = ?1";
    let mut add = connection.prepare_cached(add).map_err(sqlite)?;
    for (id, used) in uncounted.0 {
        if add.execute(params![id.0.as_bytes(), used.bytes]).map_err(sqlite)? == 0 {
            tracing::error!(owner = %id, event = "usage_of_nobody");
            continue;
        }
        for decide in used.decisions() {
            // Counting is never refused.
            owner::append(connection, packer, id, at, &decide)?.ok();
        }
    }
    let sql = "UPDATE streams SET counted_tokens = tokens, counted_cost_micros = cost_micros, counted_bytes = bytes WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let done = "DELETE FROM uncounted WHERE stream = ?1 AND owner = (SELECT owner FROM streams WHERE id = ?1)";
    let mut done = connection.prepare_cached(done).map_err(sqlite)?;
    for stream in &streams {
        statement.execute([stream]).map_err(sqlite)?;
        done.execute([stream]).map_err(sqlite)?;
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
