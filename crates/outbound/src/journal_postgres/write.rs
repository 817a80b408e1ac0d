//! Writing: everything that one append stores, in one statement.

use deadpool_postgres::GenericClient;
use planwright_domain::{
    backoff::{again_at, is_progress},
    id::{CommandId, Seq},
    identity::SessionKey,
    log::beginning,
    session::FOLD_VERSION,
    time::Time,
};
use planwright_format::body::Packer;
use planwright_runtime::ports::journal::{
    Append, BackedOff, DueRow, JournalError, KeptAnswer, Reserved, Stream,
};
use tokio_postgres::{error::SqlState, types::ToSql};

use super::{
    AppendRequest,
    read::{Known, due_row, row, rows},
};
use crate::{
    journal::{
        Listed, SNAPSHOT_EVERY, due_column, engine, last_anchor,
        outputs::SealedOutput,
        sealed::{AnswerRow, event_place, seal_snapshot},
        verdicts, waiting_column,
    },
    statement_count,
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
    times: Vec<i64>,
    kinds: Vec<&'static str>,
    bodies: Vec<Vec<u8>>,
    snapshot: Option<Vec<u8>>,
}

impl Rows {
    pub(super) fn pack(
        packer: &mut Packer,
        append: &Append,
        known: Option<Known>,
        times: impl Fn(usize) -> Time,
        level: u32,
    ) -> Result<Self, JournalError> {
        let Append { events, after, .. } = append;
        let last = known.map_or(0, |known| known.snapshot.0);
        let due = after.version.0 >= last + SNAPSHOT_EVERY;
        let snapshot = if due { Some(seal_snapshot(packer, after, level)?) } else { None };
        let mut rows = Self {
            seqs: Vec::new(),
            times: Vec::new(),
            kinds: Vec::new(),
            bodies: Vec::new(),
            snapshot,
        };
        let (session, first) = (after.key().to_string(), after.version.0 + 1 - events.len() as u64);
        for (number, event) in events.iter().enumerate() {
            let (seq, at) = (first + number as u64, times(number));
            let stored = packer.seal_event(event_place(&session, seq, at), event, level)?;
            rows.seqs.push(seq.cast_signed());
            rows.times.push(at.0);
            rows.kinds.push(stored.kind);
            rows.bodies.push(stored.body);
        }
        Ok(rows)
    }

    /// How many bytes they take.
    fn bytes(&self) -> i64 {
        self.bodies.iter().map(|body| body.len() as i64).sum()
    }
}

const MOVE: &str = "
    WITH moved AS (
        UPDATE streams SET version = $3, updated_at = $4, due_at = $5, reserved_until = 0, waiting = $6,
            title = $14, life = $15, plan = $16, logged = COALESCE($18, logged),
            running = $19, takes_room = $23, tokens = $20, cost_micros = $21, bytes = bytes + $22,
            failures = CASE WHEN parked IS NULL AND NOT $13 THEN failures ELSE 0 END, parked = NULL,
            snapshot = COALESCE($7, snapshot),
            snapshot_version = CASE WHEN $7::bytea IS NULL THEN snapshot_version ELSE $3 END,
            fold_version = CASE WHEN $7::bytea IS NULL THEN fold_version ELSE $8 END
        WHERE id = $1 AND version = $2 RETURNING id, owner
    ), decided AS (
        INSERT INTO decisions (stream, seq, owner, at) SELECT moved.id, seq, owner, $4 FROM moved, unnest($24::bigint[]) AS seq
    ), told AS (
        INSERT INTO answers (stream, command, before, version, checksum, at)
        SELECT id, $9, $2, $3, $17, $4 FROM moved WHERE $9::uuid IS NOT NULL
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, $4, news.kind, news.body
        FROM moved, unnest($10::bigint[], $11::text[], $12::bytea[]) AS news (seq, kind, body)
    ) SELECT id FROM moved";

const BEGIN: &str = "
    WITH moved AS (
        INSERT INTO streams (owner, identity, version, updated_at, due_at, waiting, title, life, plan, logged,
            running, tokens, cost_micros, bytes, counted_tokens, counted_cost_micros, takes_room)
        SELECT $10, $1, $2, $3, $4, $5, $11, $12, $13, COALESCE($15::bigint, 0), $16, $17, $18, $19, $17, $18, $21
        WHERE NOT EXISTS (SELECT 1 FROM erased WHERE session = $20) ON CONFLICT (owner, identity) DO NOTHING RETURNING id, owner
    ), decided AS (
        INSERT INTO decisions (stream, seq, owner, at) SELECT moved.id, seq, owner, $3 FROM moved, unnest($22::bigint[]) AS seq
    ), told AS (
        INSERT INTO answers (stream, command, before, version, checksum, at)
        SELECT id, $6, 0, $2, $14, $3 FROM moved WHERE $6::uuid IS NOT NULL
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, $3, news.kind, news.body
        FROM moved, unnest($7::bigint[], $8::text[], $9::bytea[]) AS news (seq, kind, body)
    ) SELECT id FROM moved";

/// Stores everything, if the stream is still where the decision found it.
#[expect(clippy::too_many_lines, reason = "one line for each column")]
pub(super) async fn store(
    client: &impl GenericClient,
    known: Option<Known>,
    request: &AppendRequest<'_>,
    answer: &AnswerRow,
    append: &Append,
    rows: &Rows,
) -> Result<Stored, JournalError> {
    let version = append.after.version.0.cast_signed();
    let (due, waiting) = (due_column(append.due), waiting_column(append.waiting));
    let (text, fold) = (append.after.identity.to_string(), FOLD_VERSION.cast_signed());
    let command = request.command.map(|command| command.0);
    let progress = is_progress(&append.events);
    let first = append.after.version.0 + 1 - append.events.len() as u64;
    let logged = last_anchor(first, &append.events);
    let decided: Vec<_> = verdicts(first, &append.events).map(u64::cast_signed).collect();
    let owner = append.after.owner.0;
    let Listed { title, life, plan, running, takes_room, used } = Listed::of(&append.after);
    let (tokens, cost) = (used.tokens.cast_signed(), used.cost_micros.cast_signed());
    let bytes = rows.bytes();
    let begins = beginning(&append.after.key());
    let erased = begins.0.as_slice();
    let (sql, parameters): (_, Vec<&(dyn ToSql + Sync)>) = match &known {
        Some(known) => (
            MOVE,
            vec![
                &known.id,
                &answer.columns.before,
                &version,
                &request.at.0,
                &due,
                &waiting,
                &rows.snapshot,
                &fold,
                &command,
                &rows.seqs,
                &rows.kinds,
                &rows.bodies,
                &progress,
                &title,
                &life,
                &plan,
                &answer.checksum,
                &logged,
                &running,
                &tokens,
                &cost,
                &bytes,
                &takes_room,
                &decided,
            ],
        ),
        None => (
            BEGIN,
            vec![
                &text,
                &version,
                &request.at.0,
                &due,
                &waiting,
                &command,
                &rows.seqs,
                &rows.kinds,
                &rows.bodies,
                &owner,
                &title,
                &life,
                &plan,
                &answer.checksum,
                &logged,
                &running,
                &tokens,
                &cost,
                &bytes,
                &erased,
                &takes_room,
                &decided,
            ],
        ),
    };
    statement_count::add();
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

const RESTORE: &str = "
    WITH moved AS (
        INSERT INTO streams (identity, version, updated_at, due_at, waiting, snapshot, snapshot_version, fold_version,
            owner, title, life, plan, logged, running, tokens, cost_micros, bytes, counted_tokens, counted_cost_micros,
            takes_room)
        SELECT $1, $2, $3, $4, $5, $6, CASE WHEN $6::bytea IS NULL THEN 0::bigint ELSE $2 END, $7, $16, $17, $18, $19,
            COALESCE($21::bigint, 0), $22, $23, $24, $25, $23, $24, $27
        WHERE NOT EXISTS (SELECT 1 FROM erased WHERE session = $26)
        ON CONFLICT (owner, identity) DO NOTHING RETURNING id, owner
    ), decided AS (
        INSERT INTO decisions (stream, seq, owner, at)
        SELECT moved.id, news.seq, owner, news.at FROM moved, unnest($8::bigint[], $9::bigint[]) AS news (seq, at)
        WHERE news.seq = ANY($28::bigint[])
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT moved.id, news.seq, news.at, news.kind, news.body
        FROM moved, unnest($8::bigint[], $9::bigint[], $10::text[], $11::bytea[]) AS news (seq, at, kind, body)
    ), told AS (
        INSERT INTO answers (stream, command, before, version, refusal, checksum, at)
        SELECT moved.id, given.command, given.before, given.version, given.refusal, given.checksum, given.at
        FROM moved, unnest($12::uuid[], $13::bigint[], $14::bigint[], $15::text[], $20::bigint[], $29::bigint[])
            AS given (command, before, version, refusal, checksum, at)
    ) SELECT id FROM moved";

/// Stores a whole stream that is not there yet; whether it was stored.
pub(super) async fn restore(
    client: &impl GenericClient,
    stream: &Stream,
    append: &Append,
    rows: &Rows,
) -> Result<bool, JournalError> {
    let updated = rows.times.last().copied().unwrap_or_default();
    let version = append.after.version.0.cast_signed();
    let (due, waiting) = (due_column(append.due), waiting_column(append.waiting));
    let commands: Vec<_> = stream.answers.keys().map(|command| command.0).collect();
    let (mut befores, mut versions) = (Vec::new(), Vec::new());
    let (mut refusals, mut checksums) = (Vec::new(), Vec::new());
    let mut answered = Vec::new();
    for (command, KeptAnswer { at, answer }) in &stream.answers {
        answered.push(at.0);
        let AnswerRow { columns, checksum } = AnswerRow::new(&stream.key, *command, answer)?;
        befores.push(columns.before);
        versions.push(columns.version);
        refusals.push(columns.refusal);
        checksums.push(checksum);
    }
    let (text, fold) = (stream.key.identity.to_string(), FOLD_VERSION.cast_signed());
    let owner = stream.key.owner.0;
    let Listed { title, life, plan, running, takes_room, used } = Listed::of(&append.after);
    let (tokens, cost) = (used.tokens.cast_signed(), used.cost_micros.cast_signed());
    let bytes = rows.bytes();
    let begins = beginning(&stream.key);
    let erased = begins.0.as_slice();
    let logged = last_anchor(1, &append.events);
    let decided: Vec<_> = verdicts(1, &append.events).map(u64::cast_signed).collect();
    let parameters: [&(dyn ToSql + Sync); 29] = [
        &text,
        &version,
        &updated,
        &due,
        &waiting,
        &rows.snapshot,
        &fold,
        &rows.seqs,
        &rows.times,
        &rows.kinds,
        &rows.bodies,
        &commands,
        &befores,
        &versions,
        &refusals,
        &owner,
        &title,
        &life,
        &plan,
        &checksums,
        &logged,
        &running,
        &tokens,
        &cost,
        &bytes,
        &erased,
        &takes_room,
        &decided,
        &answered,
    ];
    Ok(row(client, RESTORE, &parameters).await?.is_some())
}

/// Keeps an output, unless it is there already; whether the session has it, which it does not if it is not there any more.
pub(super) async fn output(
    client: &impl GenericClient,
    identity: &SessionKey,
    output: &SealedOutput,
) -> Result<bool, JournalError> {
    // Under the stream's lock: what is being erased gets no output any more.
    let sql = "WITH stream AS (SELECT id FROM streams WHERE owner = $1 AND identity = $2 FOR NO KEY UPDATE),
               kept AS (INSERT INTO outputs (stream, digest, body) SELECT id, $3, $4 FROM stream ON CONFLICT DO NOTHING RETURNING stream),
               counted AS (UPDATE streams SET bytes = bytes + $5 FROM kept WHERE id = kept.stream)
               SELECT 1 FROM stream";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let SealedOutput { digest, bytes, body, .. } = output;
    let found = row(client, sql, &[&owner, &text, &digest.0.as_slice(), body, bytes]).await?;
    Ok(found.is_some())
}

/// Keeps a session as it stood at this version, unless what is kept is newer or of a newer fold.
pub(super) async fn snapshot(
    client: &impl GenericClient,
    known: Known,
    version: Seq,
    body: &[u8],
) -> Result<(), JournalError> {
    let sql = "UPDATE streams SET snapshot = $2, snapshot_version = $3, fold_version = $4
               WHERE id = $1 AND (fold_version < $4 OR fold_version = $4 AND snapshot_version < $3)";
    let (version, fold) = (version.0.cast_signed(), FOLD_VERSION.cast_signed());
    execute(client, sql, &[&known.id, &body, &version, &fold]).await
}

/// Keeps a conversation instead of what was kept of it. Under the stream's lock: what is being erased gets none any more.
pub(super) async fn view(
    client: &impl GenericClient,
    identity: &SessionKey,
    (upto, form): (Seq, u32),
    body: &[u8],
) -> Result<(), JournalError> {
    let sql = "WITH stream AS (SELECT id FROM streams WHERE owner = $1 AND identity = $2 FOR NO KEY UPDATE)
               INSERT INTO views (stream, upto, form, body) SELECT id, $3, $4, $5 FROM stream
               ON CONFLICT (stream) DO UPDATE SET upto = excluded.upto, form = excluded.form, body = excluded.body";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let (upto, form) = (upto.0.cast_signed(), form.cast_signed());
    execute(client, sql, &[&owner, &text, &upto, &form, &body]).await
}

/// Keeps an answer, unless the command has one already.
pub(super) async fn answer(
    client: &impl GenericClient,
    known: Known,
    (command, at): (CommandId, Time),
    row: &AnswerRow,
) -> Result<(), JournalError> {
    let AnswerRow { columns, checksum } = row;
    let (before, version, refusal) = (columns.before, columns.version, &columns.refusal);
    // Under the stream's lock: what is being erased gets no answer any more.
    let sql = "INSERT INTO answers (stream, command, before, version, refusal, checksum, at)
               SELECT id, $2, $3, $4, $5, $6, $7 FROM streams WHERE id = $1 FOR KEY SHARE ON CONFLICT DO NOTHING";
    execute(client, sql, &[&known.id, &command.0, &before, &version, refusal, checksum, &at.0])
        .await
}

pub(super) async fn forget_answers(
    client: &impl GenericClient,
    before: Time,
    limit: usize,
) -> Result<usize, JournalError> {
    let sql = "DELETE FROM answers USING (SELECT stream, command FROM answers WHERE at < $1 ORDER BY at LIMIT $2) old
               WHERE answers.stream = old.stream AND answers.command = old.command RETURNING 1";
    Ok(rows(client, sql, &[&before.0, &(limit as i64)]).await?.len())
}

pub(super) async fn back_off(
    client: &impl GenericClient,
    identity: &SessionKey,
    now: Time,
    why: &str,
) -> Result<BackedOff, JournalError> {
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let sql = "UPDATE streams SET failures = failures + 1 WHERE owner = $1 AND identity = $2 RETURNING failures, life = 'deleted'";
    let row = row(client, sql, &[&owner, &text]).await?;
    let (failures, is_deleted) =
        row.map_or((1, false), |row| (row.get::<_, i32>(0).cast_unsigned(), row.get(1)));
    let Some(until) = again_at(now, failures, is_deleted) else {
        let sql = "UPDATE streams SET parked = $3 WHERE owner = $1 AND identity = $2";
        execute(client, sql, &[&owner, &text, &why]).await?;
        return Ok(BackedOff::Parked);
    };
    let sql =
        "UPDATE streams SET due_at = $3, reserved_until = 0 WHERE owner = $1 AND identity = $2";
    execute(client, sql, &[&owner, &text, &until.0]).await?;
    Ok(BackedOff::Until(until))
}

pub(super) async fn postpone(
    client: &impl GenericClient,
    identity: &SessionKey,
    version: Seq,
    until: Time,
) -> Result<(), JournalError> {
    let sql = "UPDATE streams SET due_at = $4, reserved_until = 0 WHERE owner = $1 AND identity = $2 AND version = $3";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    execute(client, sql, &[&owner, &text, &version.0.cast_signed(), &until.0]).await
}

/// Among how many times the rows that are taken owners take turns: those that are due longest.
const OWNERS_TAKE_TURNS_IN: usize = 64;
/// How many times the rows that are taken are looked at, as other nodes are taking some of them.
const LOOKED_AT: usize = 8;

/// How many times the rows that are taken at once may be reserved for one node: more would wait longer for their turn than
/// they are reserved for, and be taken again.
const RESERVED_AT_ONCE: usize = 2;

/// Takes up rows that are due: each goes to one node, and is due for the others again when its time is over. Rows that another
/// node is taking are passed over, so more are looked at than are taken; owners take turns among those that are due longest.
/// What is reserved for twice as long as it can be was reserved by a clock that was ahead.
pub(super) async fn take_due(
    client: &impl GenericClient,
    by: Time,
    reserved: Reserved,
    limit: usize,
) -> Result<Vec<DueRow>, JournalError> {
    let of_due = "due_at IS NOT NULL AND parked IS NULL AND due_at <= $1 AND updated_at <= $1";
    let is_reserved = "reserved_until > $2 AND reserved_until <= 2 * $3::bigint - $2::bigint";
    let due = format!("{of_due} AND NOT ({is_reserved})");
    let sql = format!(
        "WITH soonest AS MATERIALIZED (
             SELECT id, row_number() OVER (ORDER BY turn, due_at) AS place FROM (
                 SELECT id, due_at, row_number() OVER (PARTITION BY owner ORDER BY due_at) AS turn FROM (
                     SELECT id, owner, due_at FROM streams WHERE {due} ORDER BY due_at LIMIT $5
                 ) longest
             ) in_turn ORDER BY place LIMIT $6
         ), mine AS MATERIALIZED (
             SELECT streams.id FROM streams JOIN soonest ON soonest.id = streams.id WHERE {due}
             ORDER BY soonest.place
             LIMIT greatest(0, least($4, $7 - (SELECT count(*) FROM streams WHERE {of_due} AND {is_reserved} AND reserved_by = $8)))
             FOR UPDATE OF streams SKIP LOCKED
         )
         UPDATE streams SET reserved_until = $3, reserved_by = $8 FROM mine WHERE streams.id = mine.id
         RETURNING owner, identity, version, due_at"
    );
    let many = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let longest = many(limit.saturating_mul(OWNERS_TAKE_TURNS_IN));
    let soonest = many(limit.saturating_mul(LOOKED_AT));
    let at_once = many(limit.saturating_mul(RESERVED_AT_ONCE));
    let named: [&(dyn ToSql + Sync); 8] = [
        &by.0,
        &reserved.from.0,
        &reserved.until.0,
        &many(limit),
        &longest,
        &soonest,
        &at_once,
        &reserved.by.0,
    ];
    rows(client, &sql, &named).await?.iter().map(due_row).collect()
}

pub(super) async fn unpark(
    client: &impl GenericClient,
    identity: &SessionKey,
    now: Time,
) -> Result<(), JournalError> {
    let sql = "UPDATE streams SET failures = 0, due_at = CASE WHEN parked IS NULL THEN due_at ELSE $3 END,
               parked = NULL WHERE owner = $1 AND identity = $2";
    execute(client, sql, &[&identity.owner.0, &identity.identity.to_string(), &now.0]).await
}

pub(super) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), JournalError> {
    statement_count::add();
    let statement = client.prepare_cached(sql).await.map_err(engine)?;
    client.execute(&statement, parameters).await.map(drop).map_err(engine)
}
