//! Reading: sessions, events, answers and lists.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use planwright_domain::{
    digest::Digest,
    id::{CommandId, OwnerId, Seq},
    identity::{ChannelType, SessionKey},
    session::{CorruptJournal, FOLD_VERSION, Session, life::Life},
    time::Time,
};
use planwright_format::{answer::AnswerColumns, event::stored_names};
use planwright_runtime::ports::journal::{
    Answer, DecisionPage, DecisionPlace, DecisionQuery, DueRow, JournalError, KeptAnswer, KeptView,
    ListPlace, Recorded, SessionPage, SessionQuery, SessionRow, Since, TOTAL_MAX,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{erase::is_erased, search};
use crate::{
    journal::{
        EventRow, LISTED_MICROS, Reading, decision_at, decision_page, engine, fold,
        in_order_of_moves, key_of,
        outputs::OutputRow,
        page_of, plan_of, read_alone,
        sealed::{AnswerRow, read_output, read_snapshot, read_view},
        search::FOUND_MAX,
        to_the_end, waiting_of,
    },
    statement_count,
};

/// A stream's number, and the version of its last snapshot as far as this node knows: 0 if none fits this node's fold,
/// so that its next append writes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) id: i64,
    pub(super) snapshot: Seq,
}

pub(super) async fn rows(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, JournalError> {
    statement_count::add();
    let statement = client.prepare_cached(sql).await.map_err(engine)?;
    client.query(&statement, parameters).await.map_err(engine)
}

pub(super) async fn row(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, JournalError> {
    Ok(rows(client, sql, parameters).await?.into_iter().next())
}

pub(super) async fn known(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<Option<Known>, JournalError> {
    let sql =
        "SELECT id, COALESCE(snapshots.version, 0) FROM streams LEFT JOIN snapshots ON stream = id
               WHERE owner = $1 AND identity = $2";
    Ok(row(client, sql, &[&identity.owner.0, &identity.identity.to_string()])
        .await?
        .map(|row| Known { id: row.get(0), snapshot: seq(&row, 1) }))
}

/// The session as it stands: its snapshot, if one fits, and the events after it.
pub(super) async fn session(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<(Session, Option<Known>), JournalError> {
    let sql = "SELECT id, snapshots.version, fold_version, body, streams.version FROM streams
               LEFT JOIN snapshots ON stream = id WHERE owner = $1 AND identity = $2";
    let (session, row) = stream(client, identity, sql).await?;
    Ok((session, row.map(|(known, _)| known)))
}

/// The same, and nobody else may move it until the transaction ends.
pub(super) async fn locked(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<(Session, Option<Known>), JournalError> {
    let sql = "SELECT id, snapshots.version, fold_version, body, streams.version FROM streams
               LEFT JOIN snapshots ON stream = id WHERE owner = $1 AND identity = $2 FOR UPDATE OF streams";
    let (session, row) = stream(client, identity, sql).await?;
    if let Some((_, version)) = row
        && version != session.version
    {
        let what = format!("there are more events than the {version} of its stream");
        return Err(CorruptJournal::new(session.version, what).into());
    }
    Ok((session, row.map(|(known, _)| known)))
}

/// The session, and what its row says: its number, its snapshot, its version.
async fn stream(
    client: &impl GenericClient,
    identity: &SessionKey,
    sql: &str,
) -> Result<(Session, Option<(Known, Seq)>), JournalError> {
    let text = identity.identity.to_string();
    let Some(row) = row(client, sql, &[&identity.owner.0, &text]).await? else {
        let is_erased = is_erased(client, identity).await?;
        let new = if is_erased { Session::erased } else { Session::new };
        return Ok((new(identity.clone()), None));
    };
    let fits = row.get::<_, Option<i32>>(2).map(i32::cast_unsigned) == Some(FOLD_VERSION);
    let taken = if fits { seq(&row, 1) } else { Seq(0) };
    let snapshot: Option<&[u8]> = row.get(3);
    let start = snapshot.filter(|_| fits).and_then(|body| read_snapshot(identity, taken, body));
    let known = Known { id: row.get(0), snapshot: start.as_ref().map_or(Seq(0), |_| taken) };
    let start = start.unwrap_or_else(|| Session::new(identity.clone()));
    let events = events(client, identity, known, start.version, usize::MAX).await?;
    Ok((fold(start, &events)?, Some((known, seq(&row, 4)))))
}

pub(super) async fn events(
    client: &impl GenericClient,
    identity: &SessionKey,
    known: Known,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    Ok(events_if_there(client, identity, known, after, limit).await?.unwrap_or_default())
}

/// The same; nothing, if the stream is not there any more.
pub(super) async fn events_if_there(
    client: &impl GenericClient,
    identity: &SessionKey,
    known: Known,
    after: Seq,
    limit: usize,
) -> Result<Option<Vec<Recorded>>, JournalError> {
    // The stream's version comes with the events, so that both are of one moment: in a row without a kind. Nothing is
    // sorted, and whoever reads the rows notices one that is out of its place.
    let sql = "(SELECT version AS seq, 0::bigint AS at, NULL AS kind, NULL::bytea AS body FROM streams WHERE id = $1)
               UNION ALL
               (SELECT seq, at, kind, body FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3)";
    let rows = rows(client, sql, &[&known.id, &after.0.cast_signed(), &count(limit)]).await?;
    let (mut version, mut events) = (None, Vec::with_capacity(rows.len()));
    let mut reading = Reading::after(identity, after);
    for row in rows {
        let Some(kind) = row.get(2) else {
            version = Some(seq(&row, 0));
            continue;
        };
        let (at, body) = (Time(row.get(1)), row.get(3));
        events.push(reading.read(EventRow { seq: seq(&row, 0), at, kind, body })?);
    }
    version.map(|version| to_the_end(events, after, limit, version)).transpose()
}

pub(super) async fn events_since(
    client: &impl GenericClient,
    identity: &SessionKey,
    since: Since,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(Vec::new()) };
    let sql = "SELECT seq, at, kind, body FROM events
               WHERE stream = $1 AND seq > $2 AND at >= $3 AND (cardinality($5::text[]) = 0 OR kind = ANY($5))
               ORDER BY seq LIMIT $4";
    let (after, limit) = (after.0.cast_signed(), count(limit));
    let kinds = stored_names(since.kinds);
    rows(client, sql, &[&stream, &after, &since.time.0, &limit, &kinds])
        .await?
        .into_iter()
        .map(|row| {
            let (at, kind, body) = (Time(row.get(1)), row.get(2), row.get(3));
            read_alone(identity, EventRow { seq: seq(&row, 0), at, kind, body })
        })
        .collect()
}

/// The number of a session's stream. What is read by it is planned for the one part of a table that has it; by the session's
/// key, all parts would be locked.
async fn number_of(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<Option<i64>, JournalError> {
    Ok(known(client, identity).await?.map(|known| known.id))
}

/// The stream's version, and the answer that this command got by then or later, if it got one; nothing for a stream that does
/// not exist.
pub(super) async fn answer(
    client: &impl GenericClient,
    identity: &SessionKey,
    command: CommandId,
) -> Result<Option<(Seq, Option<Answer>)>, JournalError> {
    let sql = "SELECT id, version FROM streams WHERE owner = $1 AND identity = $2";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let Some(stream) = row(client, sql, &[&owner, &text]).await? else { return Ok(None) };
    let (id, version) = (stream.get::<_, i64>(0), seq(&stream, 1));
    let sql =
        "SELECT before, version, refusal, checksum FROM answers WHERE stream = $1 AND command = $2";
    let found = row(client, sql, &[&id, &command.0]).await?;
    let answer = found.map(|row| answer_row(&row).answer(identity, command)).transpose()?;
    Ok(Some((version, answer)))
}

/// The columns before, version, refusal and checksum.
fn answer_row(row: &Row) -> AnswerRow {
    let columns = AnswerColumns { before: row.get(0), version: row.get(1), refusal: row.get(2) };
    AnswerRow { columns, checksum: row.get(3) }
}

pub(super) async fn due(
    client: &impl GenericClient,
    by: Option<Time>,
    limit: usize,
) -> Result<Vec<DueRow>, JournalError> {
    // The first of every owner, then the second of each, so that no backlog of one owner fills a page.
    let sql = "SELECT streams.owner, identity, version, due_at
               FROM (SELECT stream, due_at, row_number() OVER (PARTITION BY owner ORDER BY due_at) AS turn FROM due
                     WHERE due_at IS NOT NULL AND NOT parked AND due_at <= $1 AND moved_at <= $1 ORDER BY turn, due_at LIMIT $2) due
               JOIN streams ON id = stream ORDER BY turn, due_at";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let by = by.map_or(i64::MAX, |time| time.0);
    rows(client, sql, &[&by, &limit]).await?.iter().map(due_row).collect()
}

/// The columns owner, identity, version and due_at.
pub(super) fn due_row(row: &Row) -> Result<DueRow, JournalError> {
    let at: i64 = row.get(3);
    Ok(DueRow {
        session: key_of(row.get(0), row.get(1))?,
        version: seq(row, 2),
        at: (at > 0).then_some(Time(at)),
    })
}

/// What a list shows of a session. Without an owner, it shows everyone's.
const ALL: &str = "SELECT owner, identity, version, updated_at, waiting, parked, title, life, running, plan, cost_micros, id, listed_at
                   FROM streams WHERE true";
/// Only sessions that are there. What a deleted one cost, and what was decided in it, counts all the same.
const LIVE: &str = "AND life != 'deleted'";

fn of_owner(owner: Option<OwnerId>) -> (&'static str, Uuid) {
    match owner {
        Some(owner) => ("AND owner = $1", owner.0),
        None => ("AND $1::uuid IS NOT NULL", Uuid::nil()),
    }
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) async fn session_row_of(
    client: &impl GenericClient,
    session: &SessionKey,
) -> Result<Option<SessionRow>, JournalError> {
    let sql = format!("{ALL} AND owner = $1 AND identity = $2");
    let (owner, text) = columns(Some(session));
    Ok(session_rows(rows(client, &sql, &[&owner, &text]).await?)?.pop())
}

pub(super) async fn sessions(
    client: &impl GenericClient,
    owner: Option<OwnerId>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let (whose, owner) = of_owner(owner);
    let sql = format!("{ALL} {LIVE} {whose} ORDER BY listed_at DESC, id DESC LIMIT $2");
    Ok(in_order_of_moves(session_rows(rows(client, &sql, &[&owner, &count(limit)]).await?)?))
}

pub(super) async fn active(
    client: &impl GenericClient,
    owner: Option<OwnerId>,
    since: Time,
    after: Option<&SessionKey>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let (whose, owner) = of_owner(owner);
    let sql = format!(
        "{ALL} {whose} AND updated_at >= $2 AND (owner, identity) > ($3, $4)
         ORDER BY owner, identity LIMIT $5"
    );
    let (after, text) = columns(after);
    session_rows(rows(client, &sql, &[&owner, &since.0, &after, &text, &count(limit)]).await?)
}

pub(super) async fn session_page(
    client: &impl GenericClient,
    query: &SessionQuery,
) -> Result<SessionPage, JournalError> {
    let (whose, owner) = of_owner(query.owner);
    let waiting = if query.waiting { "AND waiting IS NOT NULL" } else { "" };
    let sought = search::sought(query.owner, &query.text);
    // Without a text, the planner must not see that there could be one.
    let found = match (&sought, query.text.is_empty()) {
        (_, true) => "AND $2::text IS NULL AND $3::bigint > 0",
        // Nothing that is a word is looked for.
        (None, false) => return Ok(page_of(Vec::new(), query.limit, 0)),
        (Some(_), false) => {
            "AND id IN (WITH found AS MATERIALIZED (SELECT stream FROM said_words WHERE words @@ $2::text::tsquery)
                        SELECT DISTINCT stream FROM found ORDER BY stream DESC LIMIT $3)"
        }
    };
    let which = format!("{LIVE} {whose} {waiting} {found}");
    let sql =
        format!("SELECT COUNT(*) FROM (SELECT 1 FROM streams WHERE true {which} LIMIT $4) counted");
    let most = TOTAL_MAX.cast_signed();
    let counted = row(client, &sql, &[&owner, &sought, &FOUND_MAX, &most]).await?;
    let total = counted.map_or(0, |row| row.get(0));
    let sql = format!(
        "{ALL} {which} AND (listed_at, id) < ($4, $5) ORDER BY listed_at DESC, id DESC LIMIT $6"
    );
    let ListPlace { listed, stream } = query.after.unwrap_or(ListPlace::BEGINNING);
    let more = count(query.limit).saturating_add(1);
    let asked: [&(dyn ToSql + Sync); 6] = [&owner, &sought, &FOUND_MAX, &listed.0, &stream, &more];
    let found = rows(client, &sql, &asked).await?;
    let row = |row: &Row| {
        let place = ListPlace { listed: Time(row.get(12)), stream: row.get(11) };
        Ok((session_row(row)?, place))
    };
    let found = found.iter().map(row).collect::<Result<_, JournalError>>()?;
    Ok(page_of(found, query.limit, total))
}

pub(super) async fn decisions(
    client: &impl GenericClient,
    query: DecisionQuery,
) -> Result<DecisionPage, JournalError> {
    let DecisionQuery { owner, since, after, limit } = query;
    let (whose, owner) = match owner {
        Some(owner) => ("decisions.owner = $1", owner.0),
        None => ("$1::uuid IS NOT NULL", Uuid::nil()),
    };
    let sql = format!(
        "SELECT events.seq, events.at, kind, body, streams.owner, identity, title, decided.stream
         FROM (SELECT stream, seq, at FROM decisions WHERE {whose} AND at >= $2 AND (at, stream, seq) < ($3, $4, $5)
               ORDER BY at DESC, stream DESC, seq DESC LIMIT $6) decided
         JOIN events ON events.stream = decided.stream AND events.seq = decided.seq
         JOIN streams ON streams.id = decided.stream
         ORDER BY decided.at DESC, decided.stream DESC, decided.seq DESC"
    );
    let place = after.unwrap_or(DecisionPlace::BEGINNING);
    let (last, more) = (place.seq.0.cast_signed(), count(limit).saturating_add(1));
    let asked: [&(dyn ToSql + Sync); 6] =
        [&owner, &since.0, &place.at.0, &place.stream, &last, &more];
    let found = rows(client, &sql, &asked).await?;
    let mut decided = Vec::with_capacity(found.len());
    for row in found {
        let (at, kind, body) = (Time(row.get(1)), row.get(2), row.get(3));
        let event = EventRow { seq: seq(&row, 0), at, kind, body };
        let place = DecisionPlace { at, stream: row.get(7), seq: event.seq };
        decided.push((place, decision_at(key_of(row.get(4), row.get(5))?, row.get(6), event)));
    }
    Ok(decision_page(decided, limit))
}

pub(super) async fn newest(
    client: &impl GenericClient,
    owner: OwnerId,
    channel: ChannelType,
) -> Result<Option<SessionKey>, JournalError> {
    // None that is listed further back can have moved since.
    let of = "FROM streams WHERE owner = $1 AND life = 'open' AND identity LIKE $2";
    let sql = format!(
        "SELECT identity {of} AND listed_at >= (SELECT listed_at {of} ORDER BY listed_at DESC LIMIT 1) - {LISTED_MICROS}
         ORDER BY updated_at DESC LIMIT 1"
    );
    let found = row(client, &sql, &[&owner.0, &format!("{}:%", channel.name())]).await?;
    found.map(|row| key_of(owner.0, row.get(0))).transpose()
}

pub(super) async fn planning(client: &impl GenericClient) -> Result<u64, JournalError> {
    let found = row(client, "SELECT COUNT(*) FROM streams WHERE plan IS NOT NULL", &[]).await?;
    Ok(found.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

pub(super) async fn unused_since(
    client: &impl GenericClient,
    life: Life,
    since: Time,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let sql = format!("{ALL} AND life = $1 AND updated_at < $2 ORDER BY updated_at LIMIT $3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    session_rows(rows(client, &sql, &[&life.name(), &since.0, &limit]).await?)
}

fn session_rows(rows: Vec<Row>) -> Result<Vec<SessionRow>, JournalError> {
    rows.iter().map(session_row).collect()
}

fn session_row(row: &Row) -> Result<SessionRow, JournalError> {
    Ok(SessionRow {
        session: key_of(row.get(0), row.get(1))?,
        version: seq(row, 2),
        updated: Time(row.get(3)),
        waiting: waiting_of(row.get(4)),
        parked: row.get(5),
        title: row.get(6),
        archived: row.get::<_, &str>(7) == "archived",
        running: row.get(8),
        plan: plan_of(row.get(9)),
        cost_micros: row.get::<_, i64>(10).cast_unsigned(),
    })
}

/// The columns after which a page begins: owner, identity.
fn columns(after: Option<&SessionKey>) -> (Uuid, String) {
    after.map(|key| (key.owner.0, key.identity.to_string())).unwrap_or_default()
}

pub(super) async fn keys(
    client: &impl GenericClient,
    after: Option<&SessionKey>,
    limit: usize,
) -> Result<Vec<SessionKey>, JournalError> {
    let sql = "SELECT owner, identity FROM streams WHERE (owner, identity) > ($1, $2)
               ORDER BY owner, identity LIMIT $3";
    let (owner, text) = columns(after);
    let rows = rows(client, sql, &[&owner, &text, &count(limit)]).await?;
    rows.iter().map(|row| key_of(row.get(0), row.get(1))).collect()
}

pub(super) async fn answers(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<BTreeMap<CommandId, KeptAnswer>, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(BTreeMap::new()) };
    let sql =
        "SELECT before, version, refusal, checksum, command, at FROM answers WHERE stream = $1";
    rows(client, sql, &[&stream])
        .await?
        .iter()
        .map(|row| {
            let command = row.get::<_, uuid::Uuid>(4).into();
            let answer = answer_row(row).answer(identity, command)?;
            Ok((command, KeptAnswer { at: Time(row.get(5)), answer }))
        })
        .collect()
}

pub(super) async fn output(
    client: &impl GenericClient,
    identity: &SessionKey,
    digest: Digest,
) -> Result<Option<OutputRow>, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(None) };
    let sql = "SELECT body FROM outputs WHERE stream = $1 AND digest = $2";
    let found = row(client, sql, &[&stream, &digest.0.as_slice()]).await?;
    let row = |row: Row| match row.get::<_, Option<&[u8]>>(0) {
        Some(body) => read_output(identity, digest, body).map(OutputRow::Here),
        None => Ok(OutputRow::Beside),
    };
    found.map(row).transpose()
}

/// Whether a row names this output.
pub(super) async fn has_output(
    client: &impl GenericClient,
    identity: &SessionKey,
    digest: Digest,
) -> Result<bool, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(false) };
    let sql = "SELECT 1 FROM outputs WHERE stream = $1 AND digest = $2";
    Ok(row(client, sql, &[&stream, &digest.0.as_slice()]).await?.is_some())
}

/// Whether an output of this session lies beside the rows.
pub(super) async fn has_beside(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<bool, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(false) };
    let sql = "SELECT 1 FROM outputs WHERE stream = $1 AND body IS NULL LIMIT 1";
    Ok(row(client, sql, &[&stream]).await?.is_some())
}

pub(super) async fn kept_view(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<Option<KeptView>, JournalError> {
    let sql = "SELECT upto, form, body FROM views WHERE stream = (SELECT id FROM streams WHERE owner = $1 AND identity = $2)";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let found = row(client, sql, &[&owner, &text]).await?;
    let view = |row: Row| {
        let form = row.get::<_, i32>(1).cast_unsigned();
        read_view(identity, seq(&row, 0), form, row.get(2))
    };
    Ok(found.and_then(view))
}

pub(super) async fn outputs(
    client: &impl GenericClient,
    identity: &SessionKey,
) -> Result<Vec<Digest>, JournalError> {
    let Some(stream) = number_of(client, identity).await? else { return Ok(Vec::new()) };
    rows(client, "SELECT digest FROM outputs WHERE stream = $1 ORDER BY digest", &[&stream])
        .await?
        .iter()
        .map(|row| row.get::<_, &[u8]>(0).try_into().map(Digest).map_err(engine))
        .collect()
}

fn seq(row: &Row, at: usize) -> Seq {
    Seq(row.get::<_, i64>(at).cast_unsigned())
}
