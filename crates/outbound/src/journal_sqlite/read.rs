//! Reading: sessions, events, revisions and lists.

use std::collections::BTreeMap;

use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, SessionIdentity},
    session::{FOLD_VERSION, Session},
    time::Time,
};
use planwright_runtime::ports::journal::{Answer, DueRow, JournalError, Recorded, SessionRow};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::journal::{
    EventRow, Reading, answered, codec, engine, fold, identity_of, waiting_of, whole,
};

/// A stream's row id, and the version of its last snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamRow {
    pub(super) id: i64,
    pub(super) snapshot: Seq,
}

/// The session as it stands: its snapshot, if one fits, and the events after it.
pub(super) fn session(
    connection: &Connection,
    identity: &SessionIdentity,
) -> Result<(Session, Option<StreamRow>), JournalError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT id, snapshot, snapshot_version, fold_version, version FROM streams WHERE identity = ?1",
        )
        .map_err(engine)?;
    let row = statement
        .query_row([identity.to_string()], |row| {
            let snapshot: Option<Vec<u8>> = row.get(1)?;
            Ok((
                row.get::<_, i64>(0)?,
                snapshot,
                row.get::<_, i64>(2)?,
                row.get::<_, u32>(3)?,
                row.get::<_, i64>(4)?,
            ))
        })
        .optional()
        .map_err(engine)?;
    let Some((id, snapshot, snapshot_version, fold_version, version)) = row else {
        return Ok((Session::new(identity.clone()), None));
    };
    let snapshot = snapshot.filter(|_| fold_version == FOLD_VERSION);
    let start = snapshot.and_then(|body| codec::unpack_snapshot(&body));
    let start = start.unwrap_or_else(|| Session::new(identity.clone()));
    let snapshot = Seq(snapshot_version.cast_unsigned());
    let events = events(connection, identity, start.version, usize::MAX)?;
    let session = whole(fold(start, &events)?, Seq(version.cast_unsigned()))?;
    Ok((session, Some(StreamRow { id, snapshot })))
}

pub(super) fn events(
    connection: &Connection,
    identity: &SessionIdentity,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT seq, at, kind, body FROM events
             WHERE stream = (SELECT id FROM streams WHERE identity = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3",
        )
        .map_err(engine)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement
        .query_map(params![identity.to_string(), after.0.cast_signed(), limit], event_row)
        .map_err(engine)?;
    let mut reading = Reading::after(identity, after);
    rows.map(|row| reading.read(row.map_err(engine)?)).collect()
}

pub(super) fn due(
    connection: &Connection,
    by: Option<Time>,
    limit: usize,
) -> Result<Vec<DueRow>, JournalError> {
    let by = by.map_or(i64::MAX, |time| time.0);
    let mut statement = connection
        .prepare_cached(
            "SELECT identity, version, due_at FROM streams
             WHERE due_at IS NOT NULL AND parked IS NULL AND due_at <= ?1 AND updated_at <= ?1 ORDER BY due_at LIMIT ?2",
        )
        .map_err(engine)?;
    let rows = statement
        .query_map(params![by, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })
        .map_err(engine)?;
    rows.map(|row| {
        let (text, version, at) = row.map_err(engine)?;
        let at = (at > 0).then_some(Time(at));
        Ok(DueRow { identity: identity_of(&text)?, version: Seq(version.cast_unsigned()), at })
    })
    .collect()
}

pub(super) fn sessions(
    connection: &Connection,
    owner: Option<&PersonId>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let of_owner =
        "SELECT identity, version, updated_at, waiting, parked, owner, title, life FROM streams
                    WHERE owner = ?2 AND life != 'deleted' ORDER BY updated_at DESC LIMIT ?1";
    let all =
        "SELECT identity, version, updated_at, waiting, parked, owner, title, life FROM streams
               WHERE life != 'deleted' ORDER BY updated_at DESC LIMIT ?1";
    session_rows(connection, if owner.is_some() { of_owner } else { all }, limit, owner)
}

pub(super) fn newest(
    connection: &Connection,
    owner: &PersonId,
    channel: ChannelType,
) -> Result<Option<SessionIdentity>, JournalError> {
    let sql = "SELECT identity FROM streams
               WHERE owner = ?1 AND life = 'open' AND identity LIKE ?2 ORDER BY updated_at DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let text: Option<String> = statement
        .query_row(params![owner.0, format!("{}:%", channel.name())], |row| row.get(0))
        .optional()
        .map_err(engine)?;
    text.map(|text| identity_of(&text)).transpose()
}

pub(super) fn planning(connection: &Connection) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM streams WHERE planning";
    let many: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(engine)?;
    Ok(many.cast_unsigned())
}

pub(super) fn waiting(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let sql =
        "SELECT identity, version, updated_at, waiting, parked, owner, title, life FROM streams
               WHERE waiting IS NOT NULL AND life != 'deleted' ORDER BY updated_at DESC LIMIT ?1";
    session_rows(connection, sql, limit, None)
}

fn session_rows(
    connection: &Connection,
    sql: &str,
    limit: usize,
    owner: Option<&PersonId>,
) -> Result<Vec<SessionRow>, JournalError> {
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = match owner {
        Some(owner) => statement.query(params![limit, owner.0]),
        None => statement.query([limit]),
    }
    .map_err(engine)?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next().map_err(engine)? {
        listed.push(session_row(row)?);
    }
    Ok(listed)
}

fn session_row(row: &Row<'_>) -> Result<SessionRow, JournalError> {
    let text: String = row.get(0).map_err(engine)?;
    let life: String = row.get(7).map_err(engine)?;
    let owner: Option<String> = row.get(5).map_err(engine)?;
    Ok(SessionRow {
        identity: identity_of(&text)?,
        version: Seq(row.get::<_, i64>(1).map_err(engine)?.cast_unsigned()),
        updated: Time(row.get(2).map_err(engine)?),
        waiting: waiting_of(row.get(3).map_err(engine)?),
        parked: row.get(4).map_err(engine)?,
        owner: owner.map(PersonId),
        title: row.get(6).map_err(engine)?,
        archived: life == "archived",
    })
}

pub(super) fn identities(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<SessionIdentity>, JournalError> {
    let sql = "SELECT identity FROM streams WHERE identity > ?1 ORDER BY identity LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement
        .query_map(params![after, limit], |row| row.get::<_, String>(0))
        .map_err(engine)?;
    rows.map(|row| identity_of(&row.map_err(engine)?)).collect()
}

pub(super) fn answers(
    connection: &Connection,
    identity: &SessionIdentity,
) -> Result<BTreeMap<CommandId, Answer>, JournalError> {
    let sql = "SELECT before, version, refusal, command FROM answers
               WHERE stream = (SELECT id FROM streams WHERE identity = ?1)";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let rows = statement
        .query_map([identity.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, [u8; 16]>(3)?))
        })
        .map_err(engine)?;
    rows.map(|row| {
        let (before, version, refusal, command) = row.map_err(engine)?;
        Ok((uuid::Uuid::from_bytes(command).into(), answered(before, version, refusal)?))
    })
    .collect()
}

pub(super) fn output(
    connection: &Connection,
    identity: &SessionIdentity,
    digest: Digest,
) -> Result<Option<String>, JournalError> {
    let sql = "SELECT body FROM outputs WHERE stream = (SELECT id FROM streams WHERE identity = ?1) AND digest = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let body: Option<Vec<u8>> = statement
        .query_row(params![identity.to_string(), digest.0], |row| row.get(0))
        .optional()
        .map_err(engine)?;
    body.map(|body| codec::unpack_output(&body)).transpose()
}

pub(super) fn outputs(
    connection: &Connection,
    identity: &SessionIdentity,
) -> Result<Vec<Digest>, JournalError> {
    let sql = "SELECT digest FROM outputs WHERE stream = (SELECT id FROM streams WHERE identity = ?1) ORDER BY digest";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let rows = statement.query_map([identity.to_string()], |row| row.get(0)).map_err(engine)?;
    rows.map(|row| row.map(Digest).map_err(engine)).collect()
}

fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let seq: i64 = row.get(0)?;
    let (at, kind, body) = (Time(row.get(1)?), row.get(2)?, row.get(3)?);
    Ok(EventRow { seq: Seq(seq.cast_unsigned()), at, kind, body })
}
