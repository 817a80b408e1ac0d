//! Reading: sessions, events, revisions and lists.

use std::collections::BTreeMap;

use planwright_domain::{
    digest::Digest,
    id::{CommandId, OwnerId, Seq},
    identity::{ChannelType, SessionKey},
    session::{FOLD_VERSION, Session, life::Life},
    time::Time,
};
use planwright_format::{answer::AnswerColumns, event::stored_names};
use planwright_runtime::ports::journal::{
    DecisionPage, DecisionPlace, DecisionQuery, DueRow, JournalError, KeptAnswer, KeptView,
    ListPlace, Recorded, SessionPage, SessionQuery, SessionRow, Since, TOTAL_MAX,
};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use uuid::Uuid;

use super::{erase, search, sqlite};
use crate::journal::{
    EventRow, LISTED_MICROS, Reading, decision_at, decision_page, fold, in_order_of_moves, key_of,
    outputs::OutputRow,
    page_of, plan_of, read_alone,
    sealed::{AnswerRow, read_output, read_snapshot, read_view},
    search::FOUND_MAX,
    to_the_end, waiting_of,
};

/// A stream's row id, how far it has come, and the version of its last snapshot that fits this fold: 0 if none does,
/// so that the next append writes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamRow {
    pub(super) id: i64,
    pub(super) version: Seq,
    pub(super) snapshot: Seq,
    /// What its indexes hold, if this process wrote it last.
    pub(super) indexed: Option<Indexed>,
}

/// What of the row is in indexes. They are written with it, whatever changed of it, so it is written when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) listed_at: Time,
    pub(super) due: Option<i64>,
    pub(super) takes_room: bool,
    pub(super) waiting: Option<&'static str>,
    pub(super) plan: Option<&'static str>,
}

/// A session's row without the session, which may be warm.
pub(super) fn stream(
    connection: &Connection,
    identity: &SessionKey,
) -> Result<Option<StreamRow>, JournalError> {
    let sql = "SELECT streams.id, streams.version, snapshots.version
               FROM streams LEFT JOIN snapshots ON stream = id AND fold_version = ?2
               WHERE owner = ?3 AND identity = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (owner, text) = columns(identity);
    statement
        .query_row(params![text, FOLD_VERSION, owner], |row| {
            let (version, snapshot): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
            let snapshot = Seq(snapshot.unwrap_or(0).cast_unsigned());
            let version = Seq(version.cast_unsigned());
            Ok(StreamRow { id: row.get(0)?, version, snapshot, indexed: None })
        })
        .optional()
        .map_err(sqlite)
}

/// The session as it stands: its snapshot, if one fits, and the events after it.
pub(super) fn session(
    connection: &Connection,
    identity: &SessionKey,
) -> Result<(Session, Option<StreamRow>), JournalError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT id, body, snapshots.version FROM streams
             LEFT JOIN snapshots ON stream = id AND fold_version = ?3
             WHERE owner = ?1 AND identity = ?2",
        )
        .map_err(sqlite)?;
    let (owner, text) = columns(identity);
    let row = statement
        .query_row(params![owner, text, FOLD_VERSION], |row| {
            let taken: Option<i64> = row.get(2)?;
            let taken = Seq(taken.unwrap_or(0).cast_unsigned());
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?, taken))
        })
        .optional()
        .map_err(sqlite)?;
    let Some((id, snapshot, taken)) = row else {
        let is_erased = erase::is_erased(connection, identity)?;
        let new = if is_erased { Session::erased } else { Session::new };
        return Ok((new(identity.clone()), None));
    };
    let start = snapshot.and_then(|body| read_snapshot(identity, taken, &body));
    let snapshot = start.as_ref().map_or(Seq(0), |_| taken);
    let start = start.unwrap_or_else(|| Session::new(identity.clone()));
    let events = events(connection, identity, start.version, usize::MAX)?;
    let session = fold(start, &events)?;
    let stream = StreamRow { id, version: session.version, snapshot, indexed: None };
    Ok((session, Some(stream)))
}

/// No stream has more events.
const EVENTS_MAX: u64 = 0xFFFF_FFFF;

/// The number of an event in its table: those of one stream follow each other.
pub(super) fn event_id(stream: i64, seq: u64) -> Result<i64, JournalError> {
    let is_whole = seq <= EVENTS_MAX && stream >> 31 == 0;
    let id = is_whole.then(|| stream << 32 | seq.cast_signed());
    id.ok_or_else(|| {
        JournalError::Engine("there are more streams or events than are numbered".into())
    })
}

/// Between which numbers the events of a stream are: after the first, up to the last.
pub(super) fn event_ids(stream: i64, after: Seq) -> Result<(i64, i64), JournalError> {
    Ok((event_id(stream, after.0.min(EVENTS_MAX))?, event_id(stream, EVENTS_MAX)?))
}

pub(super) fn events(
    connection: &Connection,
    identity: &SessionKey,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    let Some(StreamRow { id, version, .. }) = stream(connection, identity)? else {
        return Ok(Vec::new());
    };
    let sql =
        "SELECT seq, at, kind, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (first, last) = event_ids(id, after)?;
    let rows =
        statement.query_map(params![first, last, count(limit)], event_row).map_err(sqlite)?;
    let mut reading = Reading::after(identity, after);
    let events = rows.map(|row| reading.read(row.map_err(sqlite)?)).collect::<Result<_, _>>()?;
    to_the_end(events, after, limit, version)
}

pub(super) fn events_since(
    connection: &Connection,
    identity: &SessionKey,
    since: Since,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    let sql = "SELECT seq, at, kind, body FROM events
               WHERE id > ?1 AND id <= ?2 AND at >= ?3 AND (?5 = '' OR instr(?5, ' ' || kind || ' ') > 0)
               ORDER BY id LIMIT ?4";
    let Some(StreamRow { id, .. }) = stream(connection, identity)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (first, last) = event_ids(id, after)?;
    let kinds: String = stored_names(since.kinds).iter().map(|kind| format!(" {kind} ")).collect();
    let rows = statement
        .query_map(params![first, last, since.time.0, count(limit), kinds], event_row)
        .map_err(sqlite)?;
    rows.map(|row| read_alone(identity, row.map_err(sqlite)?)).collect()
}

pub(super) fn due(
    connection: &Connection,
    by: Option<Time>,
    limit: usize,
) -> Result<Vec<DueRow>, JournalError> {
    // The first of every owner, then the second of each, so that no backlog of one owner fills a page.
    let sql = "SELECT owner, identity, version, due_at FROM streams
               WHERE due_at IS NOT NULL AND parked IS NULL AND due_at <= ?1 AND updated_at <= ?1
               ORDER BY row_number() OVER (PARTITION BY owner ORDER BY due_at), due_at LIMIT ?2";
    let by = by.map_or(i64::MAX, |time| time.0);
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement
        .query_map(params![by, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok((key_columns(row)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        })
        .map_err(sqlite)?;
    rows.map(|row| {
        let ((owner, text), version, at) = row.map_err(sqlite)?;
        Ok(DueRow {
            session: key_of(owner, &text)?,
            version: Seq(version.cast_unsigned()),
            at: (at > 0).then_some(Time(at)),
        })
    })
    .collect()
}

/// What a list shows of a session. Without an owner, it shows everyone's.
const ALL: &str = "SELECT owner, identity, version, updated_at, waiting, parked, title, life, running, plan, cost_micros, id, listed_at
                   FROM streams WHERE true";
/// Only sessions that are there. What a deleted one cost, and what was decided in it, counts all the same.
const LIVE: &str = "AND life != 'deleted'";

fn of_owner(owner: Option<OwnerId>) -> (&'static str, [u8; 16]) {
    match owner {
        Some(owner) => ("AND owner = ?1", owner.0.into_bytes()),
        None => ("AND ?1 IS NOT NULL", [0; 16]),
    }
}

/// The columns that name a session: owner, identity.
pub(super) fn columns(key: &SessionKey) -> ([u8; 16], String) {
    (key.owner.0.into_bytes(), key.identity.to_string())
}

/// The columns owner and identity, if they come first.
fn key_columns(row: &Row<'_>) -> rusqlite::Result<(Uuid, String)> {
    key_columns_at(row, 0)
}

/// The columns owner and identity, from this one on.
pub(super) fn key_columns_at(row: &Row<'_>, at: usize) -> rusqlite::Result<(Uuid, String)> {
    Ok((Uuid::from_bytes(row.get(at)?), row.get(at + 1)?))
}

/// Whether there are decisions that the audit log did not take up.
pub(super) fn has_untaken(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM streams WHERE logged > taken)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement.query_row([], |row| row.get(0)).map_err(sqlite)
}

pub(super) fn session_row_of(
    connection: &Connection,
    session: &SessionKey,
) -> Result<Option<SessionRow>, JournalError> {
    let sql = format!("{ALL} AND owner = ?1 AND identity = ?2");
    let (owner, text) = columns(session);
    Ok(session_rows(connection, &sql, params![owner, text])?.pop())
}

pub(super) fn sessions(
    connection: &Connection,
    owner: Option<OwnerId>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let (whose, owner) = of_owner(owner);
    let sql = format!("{ALL} {LIVE} {whose} ORDER BY listed_at DESC, id DESC LIMIT ?2");
    Ok(in_order_of_moves(session_rows(connection, &sql, params![owner, count(limit)])?))
}

pub(super) fn active(
    connection: &Connection,
    owner: Option<OwnerId>,
    since: Time,
    after: Option<&SessionKey>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let (whose, owner) = of_owner(owner);
    let sql = format!(
        "{ALL} {whose} AND updated_at >= ?2 AND (owner, identity) > (?3, ?4) ORDER BY owner, identity LIMIT ?5"
    );
    let (after, text) = after.map(columns).unwrap_or_default();
    session_rows(connection, &sql, params![owner, since.0, after, text, count(limit)])
}

pub(super) fn unused_since(
    connection: &Connection,
    life: Life,
    since: Time,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let sql = format!("{ALL} AND life = ?1 AND updated_at < ?2 ORDER BY updated_at LIMIT ?3");
    session_rows(connection, &sql, params![life.name(), since.0, count(limit)])
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn session_page(
    connection: &Connection,
    query: &SessionQuery,
) -> Result<SessionPage, JournalError> {
    let (whose, owner) = of_owner(query.owner);
    let which = if query.waiting { "AND waiting IS NOT NULL" } else { "" };
    let sought = search::sought(query.owner, &query.text);
    let found = match (&sought, query.text.is_empty()) {
        (_, true) => "",
        // Nothing that is a word is looked for.
        (None, false) => return Ok(page_of(Vec::new(), query.limit, 0)),
        (Some(_), false) => {
            "AND id IN (SELECT rowid >> 32 FROM said_words WHERE said_words MATCH ?5 GROUP BY 1 ORDER BY 1 DESC LIMIT ?6)"
        }
    };
    let ListPlace { listed, stream } = query.after.unwrap_or(ListPlace::BEGINNING);
    let sql = format!(
        "{ALL} {LIVE} {whose} {which} {found} AND (listed_at, id) < (?3, ?4) ORDER BY listed_at DESC, id DESC LIMIT ?2"
    );
    let (more, most) = (count(query.limit).saturating_add(1), TOTAL_MAX.cast_signed());
    let mut statement = connection.prepare_cached(&sql).map_err(sqlite)?;
    let asked = statement.parameter_count();
    let all: [&dyn ToSql; 6] = [&owner, &more, &listed.0, &stream, &sought, &FOUND_MAX];
    let mut read = statement.query(&all[..asked]).map_err(sqlite)?;
    let mut rows = Vec::new();
    while let Some(row) = read.next().map_err(sqlite)? {
        let listed = Time(row.get(12).map_err(sqlite)?);
        let place = ListPlace { listed, stream: row.get(11).map_err(sqlite)? };
        rows.push((session_row(row)?, place));
    }
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM streams WHERE true {LIVE} {whose} {which} {found} LIMIT ?2)"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sqlite)?;
    let asked = statement.parameter_count();
    let all: [&dyn ToSql; 6] = [&owner, &most, &listed.0, &stream, &sought, &FOUND_MAX];
    let total = statement.query_row(&all[..asked], |row| row.get(0)).map_err(sqlite)?;
    Ok(page_of(rows, query.limit, total))
}

pub(super) fn decisions(
    connection: &Connection,
    query: DecisionQuery,
) -> Result<DecisionPage, JournalError> {
    let DecisionQuery { owner, since, after, limit } = query;
    let (whose, owner) = match owner {
        Some(owner) => ("decisions.owner = ?1", owner.0.into_bytes()),
        None => ("?1 IS NOT NULL", [0; 16]),
    };
    let sql = format!(
        "SELECT events.seq, events.at, kind, body, streams.owner, identity, title, events.stream
         FROM decisions JOIN events ON events.id = event JOIN streams ON streams.id = events.stream
         WHERE {whose} AND decisions.at >= ?2 AND (decisions.at, event) < (?3, ?4)
         ORDER BY decisions.at DESC, event DESC LIMIT ?5"
    );
    let DecisionPlace { at, stream, seq } = after.unwrap_or(DecisionPlace::BEGINNING);
    // A place beyond all numbers is before every decision of its time.
    let event = event_id(stream, seq.0.min(EVENTS_MAX)).unwrap_or(i64::MAX);
    let more = count(limit).saturating_add(1);
    let mut statement = connection.prepare_cached(&sql).map_err(sqlite)?;
    let mut found = statement.query(params![owner, since.0, at.0, event, more]).map_err(sqlite)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next().map_err(sqlite)? {
        let (owner, text) = key_columns_at(row, 4).map_err(sqlite)?;
        let (title, stream) = (row.get(6).map_err(sqlite)?, row.get(7).map_err(sqlite)?);
        let event = event_row(row).map_err(sqlite)?;
        let place = DecisionPlace { at: event.at, stream, seq: event.seq };
        rows.push((place, decision_at(key_of(owner, &text)?, title, event)));
    }
    Ok(decision_page(rows, limit))
}

pub(super) fn newest(
    connection: &Connection,
    owner: OwnerId,
    channel: ChannelType,
) -> Result<Option<SessionKey>, JournalError> {
    // None that is listed further back can have moved since.
    let of = "FROM streams WHERE owner = ?1 AND life = 'open' AND identity LIKE ?2";
    let sql = format!(
        "SELECT identity {of} AND listed_at >= (SELECT listed_at {of} ORDER BY listed_at DESC LIMIT 1) - {LISTED_MICROS}
         ORDER BY updated_at DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sqlite)?;
    let text: Option<String> = statement
        .query_row(params![owner.0.as_bytes(), format!("{}:%", channel.name())], |row| row.get(0))
        .optional()
        .map_err(sqlite)?;
    text.map(|text| key_of(owner.0, &text)).transpose()
}

pub(super) fn planning(connection: &Connection) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM streams WHERE plan IS NOT NULL";
    let many: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(sqlite)?;
    Ok(many.cast_unsigned())
}

fn session_rows(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<Vec<SessionRow>, JournalError> {
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let mut rows = statement.query(parameters).map_err(sqlite)?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next().map_err(sqlite)? {
        listed.push(session_row(row)?);
    }
    Ok(listed)
}

fn session_row(row: &Row<'_>) -> Result<SessionRow, JournalError> {
    let (owner, text) = key_columns(row).map_err(sqlite)?;
    let life: String = row.get(7).map_err(sqlite)?;
    Ok(SessionRow {
        session: key_of(owner, &text)?,
        version: Seq(row.get::<_, i64>(2).map_err(sqlite)?.cast_unsigned()),
        updated: Time(row.get(3).map_err(sqlite)?),
        waiting: waiting_of(row.get(4).map_err(sqlite)?),
        parked: row.get(5).map_err(sqlite)?,
        title: row.get(6).map_err(sqlite)?,
        archived: life == "archived",
        running: row.get(8).map_err(sqlite)?,
        plan: plan_of(row.get(9).map_err(sqlite)?),
        cost_micros: row.get::<_, i64>(10).map_err(sqlite)?.cast_unsigned(),
    })
}

pub(super) fn keys(
    connection: &Connection,
    after: Option<&SessionKey>,
    limit: usize,
) -> Result<Vec<SessionKey>, JournalError> {
    let sql = "SELECT owner, identity FROM streams WHERE (owner, identity) > (?1, ?2)
               ORDER BY owner, identity LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (owner, text) = after.map(columns).unwrap_or_default();
    let rows =
        statement.query_map(params![owner, text, count(limit)], key_columns).map_err(sqlite)?;
    rows.map(|row| {
        let (owner, text) = row.map_err(sqlite)?;
        key_of(owner, &text)
    })
    .collect()
}

pub(super) fn answers(
    connection: &Connection,
    identity: &SessionKey,
) -> Result<BTreeMap<CommandId, KeptAnswer>, JournalError> {
    let sql = "SELECT before, version, refusal, checksum, command, at FROM answers
               WHERE stream = (SELECT id FROM streams WHERE owner = ?1 AND identity = ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement
        .query_map(columns(identity), |row| {
            Ok((row.get::<_, [u8; 16]>(4)?, Time(row.get(5)?), answer_row(row)?))
        })
        .map_err(sqlite)?;
    rows.map(|row| {
        let (command, at, row) = row.map_err(sqlite)?;
        let command = uuid::Uuid::from_bytes(command).into();
        Ok((command, KeptAnswer { at, answer: row.answer(identity, command)? }))
    })
    .collect()
}

/// The columns before, version, refusal and checksum.
pub(super) fn answer_row(row: &Row<'_>) -> rusqlite::Result<AnswerRow> {
    let columns = AnswerColumns { before: row.get(0)?, version: row.get(1)?, refusal: row.get(2)? };
    Ok(AnswerRow { columns, checksum: row.get(3)? })
}

pub(super) fn output(
    connection: &Connection,
    identity: &SessionKey,
    digest: Digest,
) -> Result<Option<OutputRow>, JournalError> {
    let sql = "SELECT body FROM outputs WHERE stream = (SELECT id FROM streams WHERE owner = ?1 AND identity = ?2) AND digest = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (owner, text) = columns(identity);
    let row: Option<Option<Vec<u8>>> = statement
        .query_row(params![owner, text, digest.0], |row| row.get(0))
        .optional()
        .map_err(sqlite)?;
    row.map(|body| match body {
        Some(body) => read_output(identity, digest, &body).map(OutputRow::Here),
        None => Ok(OutputRow::Beside),
    })
    .transpose()
}

/// Whether a row names this output.
pub(super) fn has_output(
    connection: &Connection,
    identity: &SessionKey,
    digest: Digest,
) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outputs
               WHERE stream = (SELECT id FROM streams WHERE owner = ?1 AND identity = ?2) AND digest = ?3)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (owner, text) = columns(identity);
    statement.query_row(params![owner, text, digest.0], |row| row.get(0)).map_err(sqlite)
}

pub(super) fn kept_view(
    connection: &Connection,
    identity: &SessionKey,
) -> Result<Option<KeptView>, JournalError> {
    let sql = "SELECT upto, form, body FROM views WHERE stream = (SELECT id FROM streams WHERE owner = ?1 AND identity = ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let found = statement
        .query_row(columns(identity), |row| {
            let (upto, form, body): (i64, u32, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(read_view(identity, Seq(upto.cast_unsigned()), form, &body))
        })
        .optional()
        .map_err(sqlite)?;
    Ok(found.flatten())
}

pub(super) fn outputs(
    connection: &Connection,
    identity: &SessionKey,
) -> Result<Vec<Digest>, JournalError> {
    let sql = "SELECT digest FROM outputs WHERE stream = (SELECT id FROM streams WHERE owner = ?1 AND identity = ?2) ORDER BY digest";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let rows = statement.query_map(columns(identity), |row| row.get(0)).map_err(sqlite)?;
    rows.map(|row| row.map(Digest).map_err(sqlite)).collect()
}

pub(super) fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let seq: i64 = row.get(0)?;
    let (at, kind, body) = (Time(row.get(1)?), row.get(2)?, row.get(3)?);
    Ok(EventRow { seq: Seq(seq.cast_unsigned()), at, kind, body })
}
