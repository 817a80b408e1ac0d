//! Writing: everything that one append stores, in one statement.

use deadpool_postgres::GenericClient;
use planwright_domain::{
    digest::Digest,
    id::{CommandId, Seq},
    identity::SessionIdentity,
    refusal::Refusal,
    session::FOLD_VERSION,
    time::Time,
};
use planwright_runtime::ports::journal::{Append, BackedOff, JournalError, Stream};
use tokio_postgres::{error::SqlState, types::ToSql};

use super::{Asking, read::Known};
use crate::journal::{
    FAILURES_MAX, SNAPSHOT_EVERY, answer_columns, codec::Packer, due_column, engine, is_progress,
    retry_at, waiting_column,
};

/// What became of an append.
pub(super) enum Stored {
    /// It is stored, in this stream.
    Yes(Known),
    /// The stream had moved on; nothing is stored.
    Moved,
    /// The command has an answer already; nothing is stored.
    Answered,
}

/// The rows of one append.
pub(super) struct Rows {
    seqs: Vec<i64>,
    kinds: Vec<&'static str>,
    bodies: Vec<Vec<u8>>,
    snapshot: Option<Vec<u8>>,
}

impl Rows {
    pub(super) fn pack(
        packer: &mut Packer,
        append: &Append,
        known: Option<Known>,
        before: Seq,
        level: u32,
    ) -> Result<Self, JournalError> {
        let last = known.map_or(0, |known| known.snapshot.0);
        let due = append.after.version.0 >= last + SNAPSHOT_EVERY;
        let snapshot = if due { Some(packer.pack(&append.after)?) } else { None };
        let first = before.following().0.cast_signed();
        let events = append.events.iter().map(|event| packer.pack_event(event, level));
        let (kinds, bodies) = events.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let seqs = (first..).take(append.events.len()).collect();
        Ok(Self { seqs, kinds, bodies, snapshot })
    }
}

const MOVE: &str = "
    WITH moved AS (
        UPDATE streams SET version = $3, updated_at = $4, due_at = $5, waiting = $6,
            owner = $14, title = $15, life = $16, planning = $17,
            failures = CASE WHEN parked IS NULL AND NOT $13 THEN failures ELSE 0 END, parked = NULL,
            snapshot = COALESCE($7, snapshot),
            snapshot_version = CASE WHEN $7::bytea IS NULL THEN snapshot_version ELSE $3 END,
            fold_version = CASE WHEN $7::bytea IS NULL THEN fold_version ELSE $8 END
        WHERE id = $1 AND version = $2 RETURNING id
    ), told AS (
        INSERT INTO answers (stream, command, before, version) SELECT id, $9, $2, $3 FROM moved
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, $4, news.kind, news.body
        FROM moved, unnest($10::bigint[], $11::text[], $12::bytea[]) AS news (seq, kind, body)
    ) SELECT id FROM moved";

const BEGIN: &str = "
    WITH moved AS (
        INSERT INTO streams (identity, version, updated_at, due_at, waiting, owner, title, life, planning)
        VALUES ($1, $2, $3, $4, $5, $10, $11, $12, $13) ON CONFLICT (identity) DO NOTHING RETURNING id
    ), told AS (
        INSERT INTO answers (stream, command, before, version) SELECT id, $6, 0, $2 FROM moved
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, $3, news.kind, news.body
        FROM moved, unnest($7::bigint[], $8::text[], $9::bytea[]) AS news (seq, kind, body)
    ) SELECT id FROM moved";

/// Stores everything, if the stream is still where the decision found it.
pub(super) async fn store(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    known: Option<Known>,
    asked: &Asking<'_>,
    before: Seq,
    append: &Append,
    rows: &Rows,
) -> Result<Stored, JournalError> {
    let version = append.after.version.0.cast_signed();
    let (due, waiting) = (due_column(append.due), waiting_column(append.waiting));
    let (text, fold) = (identity.to_string(), FOLD_VERSION.cast_signed());
    let (before, progress) = (before.0.cast_signed(), is_progress(&append.events));
    let (owner, title, life, planning) = listed(append);
    let (sql, parameters): (_, Vec<&(dyn ToSql + Sync)>) = match &known {
        Some(known) => (
            MOVE,
            vec![
                &known.id,
                &before,
                &version,
                &asked.at.0,
                &due,
                &waiting,
                &rows.snapshot,
                &fold,
                &asked.command.0,
                &rows.seqs,
                &rows.kinds,
                &rows.bodies,
                &progress,
                &owner,
                &title,
                &life,
                &planning,
            ],
        ),
        None => (
            BEGIN,
            vec![
                &text,
                &version,
                &asked.at.0,
                &due,
                &waiting,
                &asked.command.0,
                &rows.seqs,
                &rows.kinds,
                &rows.bodies,
                &owner,
                &title,
                &life,
                &planning,
            ],
        ),
    };
    let statement = client.prepare_cached(sql).await.map_err(engine)?;
    match client.query_opt(&statement, &parameters).await {
        Ok(Some(row)) => {
            let snapshot = match (&rows.snapshot, known) {
                (Some(_), _) => append.after.version,
                (None, Some(known)) => known.snapshot,
                (None, None) => Seq(0),
            };
            Ok(Stored::Yes(Known { id: row.get(0), snapshot }))
        }
        Ok(None) => Ok(Stored::Moved),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(Stored::Answered),
        Err(error) => Err(engine(error)),
    }
}

/// What lists show of a session: its owner, its title, whether it is there, whether it has plan work.
fn listed(append: &Append) -> (Option<&str>, &str, &'static str, bool) {
    let Append { after, .. } = append;
    let owner = after.owner.as_ref().map(|owner| owner.0.as_str());
    (owner, &after.title, after.life.name(), after.plan().is_some())
}

const RESTORE: &str = "
    WITH moved AS (
        INSERT INTO streams (identity, version, updated_at, due_at, waiting, snapshot, snapshot_version, fold_version,
            owner, title, life, planning)
        VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $6::bytea IS NULL THEN 0::bigint ELSE $2 END, $7, $16, $17, $18, $19)
        ON CONFLICT (identity) DO NOTHING RETURNING id
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, news.at, news.kind, news.body
        FROM moved, unnest($8::bigint[], $9::bigint[], $10::text[], $11::bytea[]) AS news (seq, at, kind, body)
    ), told AS (
        INSERT INTO answers (stream, command, before, version, refusal)
        SELECT moved.id, given.command, given.before, given.version, given.refusal
        FROM moved, unnest($12::uuid[], $13::bigint[], $14::bigint[], $15::text[]) AS given (command, before, version, refusal)
    ) SELECT id FROM moved";

/// Stores a whole stream that is not there yet; whether it was stored.
pub(super) async fn restore(
    client: &impl GenericClient,
    stream: &Stream,
    append: &Append,
    rows: &Rows,
) -> Result<bool, JournalError> {
    let times: Vec<i64> = stream.events.iter().map(|recorded| recorded.at.0).collect();
    let updated = times.last().copied().unwrap_or_default();
    let version = append.after.version.0.cast_signed();
    let (due, waiting) = (due_column(append.due), waiting_column(append.waiting));
    let commands: Vec<_> = stream.answers.keys().map(|command| command.0).collect();
    let (mut befores, mut versions, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for answer in stream.answers.values() {
        let (before, version, refusal) = answer_columns(answer)?;
        befores.push(before);
        versions.push(version);
        refusals.push(refusal);
    }
    let (text, fold) = (stream.identity.to_string(), FOLD_VERSION.cast_signed());
    let statement = client.prepare_cached(RESTORE).await.map_err(engine)?;
    let (owner, title, life, planning) = listed(append);
    let parameters: [&(dyn ToSql + Sync); 19] = [
        &text,
        &version,
        &updated,
        &due,
        &waiting,
        &rows.snapshot,
        &fold,
        &rows.seqs,
        &times,
        &rows.kinds,
        &rows.bodies,
        &commands,
        &befores,
        &versions,
        &refusals,
        &owner,
        &title,
        &life,
        &planning,
    ];
    Ok(client.query_opt(&statement, &parameters).await.map_err(engine)?.is_some())
}

/// Keeps an output, unless it is there already.
pub(super) async fn output(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    digest: Digest,
    body: &[u8],
) -> Result<(), JournalError> {
    let sql = "INSERT INTO outputs (stream, digest, body) SELECT id, $2, $3 FROM streams WHERE identity = $1
               ON CONFLICT DO NOTHING";
    execute(client, sql, &[&identity.to_string(), &digest.0.as_slice(), &body]).await
}

/// Keeps a refusal, unless the command has an answer already.
pub(super) async fn refusal(
    client: &impl GenericClient,
    known: Known,
    command: CommandId,
    version: Seq,
    refusal: &Refusal,
) -> Result<(), JournalError> {
    let words = serde_json::to_string(refusal).map_err(engine)?;
    let sql = "INSERT INTO answers (stream, command, before, version, refusal) VALUES ($1, $2, $3, $3, $4)
               ON CONFLICT DO NOTHING";
    let version = version.0.cast_signed();
    execute(client, sql, &[&known.id, &command.0, &version, &words]).await
}

pub(super) async fn back_off(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    now: Time,
    why: &str,
) -> Result<BackedOff, JournalError> {
    let text = identity.to_string();
    let sql = "UPDATE streams SET failures = failures + 1 WHERE identity = $1 RETURNING failures";
    let statement = client.prepare_cached(sql).await.map_err(engine)?;
    let row = client.query_opt(&statement, &[&text]).await.map_err(engine)?;
    let failures = row.map_or(1, |row| row.get::<_, i32>(0).cast_unsigned());
    if failures >= FAILURES_MAX {
        let sql = "UPDATE streams SET parked = $2 WHERE identity = $1";
        execute(client, sql, &[&text, &why]).await?;
        return Ok(BackedOff::Parked);
    }
    let until = retry_at(now, failures);
    let sql = "UPDATE streams SET due_at = $2 WHERE identity = $1";
    execute(client, sql, &[&text, &until.0]).await?;
    Ok(BackedOff::Until(until))
}

pub(super) async fn unpark(
    client: &impl GenericClient,
    identity: &SessionIdentity,
    now: Time,
) -> Result<(), JournalError> {
    let sql = "UPDATE streams SET failures = 0, due_at = CASE WHEN parked IS NULL THEN due_at ELSE $2 END,
               parked = NULL WHERE identity = $1";
    execute(client, sql, &[&identity.to_string(), &now.0]).await
}

pub(super) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), JournalError> {
    let statement = client.prepare_cached(sql).await.map_err(engine)?;
    client.execute(&statement, parameters).await.map(drop).map_err(engine)
}
