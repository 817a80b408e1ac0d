//! Reading: sessions, events, answers and lists.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use planwright_domain::{
    actor::PersonId,
    digest::Digest,
    id::{CommandId, Seq},
    identity::{ChannelType, SessionIdentity},
    session::{FOLD_VERSION, Session},
    time::Time,
};
use planwright_runtime::ports::journal::{Answer, DueRow, JournalError, Recorded, SessionRow};
use tokio_postgres::{Row, types::ToSql};

use crate::journal::{
    EventRow, Reading, answered, codec, engine, fold, identity_of, waiting_of, whole,
};

/// A stream's number, and the version of its last snapshot as far as this node knows.
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
    identity: &SessionIdentity,
) -> Result<Option<Known>, JournalError> {
    let sql = "SELECT id, snapshot_version FROM streams WHERE identity = $1";
    Ok(row(client, sql, &[&identity.to_string()])
        .await?
        .map(|row| Known { id: row.get(0), snapshot: seq(&row, 1) }))
}

/// The session as it stands: its snapshot, if one fits, and the events after it.
pub(super) async fn session(
    client: &impl GenericClient,
    identity: &SessionIdentity,
) -> Result<(Session, Option<Known>), JournalError> {
    let sql = "SELECT id, snapshot_version, fold_version, snapshot, version FROM streams WHERE identity = $1";
    stream(client, identity, sql).await
}

/// The same, and nobody else may move it until the transaction ends.
pub(super) async fn locked(
    client: &impl GenericClient,
    identity: &SessionIdentity,
) -> Result<(Session, Option<Known>), JournalError> {
    let sql = "SELECT id, snapshot_version, fold_version, snapshot, version FROM streams WHERE identity = $1 FOR UPDATE";
    stream(client, identity, sql).await
}

async fn stream(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    sql: &str,
) -> Result<(Session, Option<Known>), JournalError> {
    let Some(row) = row(client, sql, &[&identity.to_string()]).await? else {
        return Ok((Session::new(identity.clone()), None));
    };
    let known = Known { id: row.get(0), snapshot: seq(&row, 1) };
    let fits = row.get::<_, i32>(2).cast_unsigned() == FOLD_VERSION;
    let snapshot: Option<Vec<u8>> = row.get(3);
    let start = snapshot.filter(|_| fits).and_then(|body| codec::unpack_snapshot(&body));
    let start = start.unwrap_or_else(|| Session::new(identity.clone()));
    let events = events(client, identity, known, start.version, usize::MAX).await?;
    let session = whole(fold(start, &events)?, seq(&row, 4))?;
    Ok((session, Some(known)))
}

pub(super) async fn events(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    known: Known,
    after: Seq,
    limit: usize,
) -> Result<Vec<Recorded>, JournalError> {
    let sql = "SELECT seq, at, kind, body FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = rows(client, sql, &[&known.id, &after.0.cast_signed(), &limit]).await?;
    let mut reading = Reading::after(identity, after);
    rows.into_iter()
        .map(|row| {
            let (at, kind, body) = (Time(row.get(1)), row.get(2), row.get(3));
            reading.read(EventRow { seq: seq(&row, 0), at, kind, body })
        })
        .collect()
}

/// The stream's version, and the answer that this command got, if it got one; nothing for a stream
/// that does not exist.
pub(super) async fn answer(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    command: CommandId,
) -> Result<Option<(Seq, Option<Answer>)>, JournalError> {
    let sql = "SELECT streams.version, answers.before, answers.version, answers.refusal
               FROM streams LEFT JOIN answers ON answers.stream = streams.id AND answers.command = $2
               WHERE streams.identity = $1";
    let Some(row) = row(client, sql, &[&identity.to_string(), &command.0]).await? else {
        return Ok(None);
    };
    let (before, version): (Option<i64>, Option<i64>) = (row.get(1), row.get(2));
    let refusal: Option<String> = row.get(3);
    let answer = match (before, version) {
        (Some(before), Some(version)) => Some(answered(before, version, refusal)?),
        (None, _) | (_, None) => None,
    };
    Ok(Some((seq(&row, 0), answer)))
}

pub(super) async fn due(
    client: &impl GenericClient,
    by: Option<Time>,
    limit: usize,
) -> Result<Vec<DueRow>, JournalError> {
    let sql = "SELECT identity, version, due_at FROM streams
               WHERE due_at IS NOT NULL AND parked IS NULL AND due_at <= $1 AND updated_at <= $1 ORDER BY due_at LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let by = by.map_or(i64::MAX, |time| time.0);
    rows(client, sql, &[&by, &limit])
        .await?
        .into_iter()
        .map(|row| {
            let at: i64 = row.get(2);
            let at = (at > 0).then_some(Time(at));
            Ok(DueRow { identity: identity_of(row.get(0))?, version: seq(&row, 1), at })
        })
        .collect()
}

const SESSION_COLUMNS: &str = "identity, version, updated_at, waiting, parked, owner, title, life";

pub(super) async fn sessions(
    client: &impl GenericClient,
    owner: Option<&PersonId>,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let there = format!("SELECT {SESSION_COLUMNS} FROM streams WHERE life <> 'deleted'");
    let newest = "ORDER BY updated_at DESC LIMIT $1";
    session_rows(match owner {
        Some(owner) => {
            let sql = format!("{there} AND owner = $2 {newest}");
            rows(client, &sql, &[&limit, &owner.0]).await?
        }
        None => rows(client, &format!("{there} {newest}"), &[&limit]).await?,
    })
}

pub(super) async fn newest(
    client: &impl GenericClient,
    owner: &PersonId,
    channel: ChannelType,
) -> Result<Option<SessionIdentity>, JournalError> {
    let sql = "SELECT identity FROM streams WHERE owner = $1 AND life = 'open' AND identity LIKE $2
               ORDER BY updated_at DESC LIMIT 1";
    let found = row(client, sql, &[&owner.0, &format!("{}:%", channel.name())]).await?;
    found.map(|row| identity_of(row.get(0))).transpose()
}

pub(super) async fn planning(client: &impl GenericClient) -> Result<u64, JournalError> {
    let found = row(client, "SELECT COUNT(*) FROM streams WHERE planning", &[]).await?;
    Ok(found.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

pub(super) async fn waiting(
    client: &impl GenericClient,
    limit: usize,
) -> Result<Vec<SessionRow>, JournalError> {
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM streams WHERE waiting IS NOT NULL AND life <> 'deleted' ORDER BY updated_at DESC LIMIT $1"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    session_rows(rows(client, &sql, &[&limit]).await?)
}

fn session_rows(rows: Vec<Row>) -> Result<Vec<SessionRow>, JournalError> {
    rows.into_iter()
        .map(|row| {
            let owner: Option<String> = row.get(5);
            Ok(SessionRow {
                identity: identity_of(row.get(0))?,
                version: seq(&row, 1),
                updated: Time(row.get(2)),
                waiting: waiting_of(row.get(3)),
                parked: row.get(4),
                owner: owner.map(PersonId),
                title: row.get(6),
                archived: row.get::<_, &str>(7) == "archived",
            })
        })
        .collect()
}

pub(super) async fn identities(
    client: &impl GenericClient,
    after: Option<&SessionIdentity>,
    limit: usize,
) -> Result<Vec<SessionIdentity>, JournalError> {
    let sql = "SELECT identity FROM streams WHERE identity COLLATE \"C\" > $1 ORDER BY identity COLLATE \"C\" LIMIT $2";
    let after = after.map(ToString::to_string).unwrap_or_default();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = rows(client, sql, &[&after, &limit]).await?;
    rows.iter().map(|row| identity_of(row.get(0))).collect()
}

pub(super) async fn answers(
    client: &impl GenericClient,
    identity: &SessionIdentity,
) -> Result<BTreeMap<CommandId, Answer>, JournalError> {
    let sql = "SELECT answers.before, answers.version, answers.refusal, answers.command
               FROM streams JOIN answers ON answers.stream = streams.id WHERE streams.identity = $1";
    rows(client, sql, &[&identity.to_string()])
        .await?
        .iter()
        .map(|row| {
            let answer = answered(row.get(0), row.get(1), row.get(2))?;
            Ok((row.get::<_, uuid::Uuid>(3).into(), answer))
        })
        .collect()
}

pub(super) async fn output(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    digest: Digest,
) -> Result<Option<String>, JournalError> {
    let sql = "SELECT body FROM outputs WHERE stream = (SELECT id FROM streams WHERE identity = $1) AND digest = $2";
    let found = row(client, sql, &[&identity.to_string(), &digest.0.as_slice()]).await?;
    found.map(|row| codec::unpack_output(row.get(0))).transpose()
}

pub(super) async fn outputs(
    client: &impl GenericClient,
    identity: &SessionIdentity,
) -> Result<Vec<Digest>, JournalError> {
    let sql = "SELECT digest FROM outputs WHERE stream = (SELECT id FROM streams WHERE identity = $1) ORDER BY digest";
    rows(client, sql, &[&identity.to_string()])
        .await?
        .iter()
        .map(|row| row.get::<_, &[u8]>(0).try_into().map(Digest).map_err(engine))
        .collect()
}

fn seq(row: &Row, at: usize) -> Seq {
    Seq(row.get::<_, i64>(at).cast_unsigned())
}
