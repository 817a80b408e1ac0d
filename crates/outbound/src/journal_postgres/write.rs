//! Writing: everything that one append stores, in one statement.

use std::sync::LazyLock;

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
use uuid::Uuid;

use super::{
    AppendRequest,
    read::{Known, due_row, row, rows},
};
use crate::{
    journal::{
        LISTED_MICROS, Listed, SNAPSHOT_EVERY, due_column, engine, last_anchor,
        outputs::SealedOutput,
        sealed::{AnswerRow, event_place, seal_snapshot},
        search::has_words,
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

/// Moves a stream, if it is where it was found.
const MOVE: &str = "
    WITH moved AS (
        UPDATE streams SET version = $13, updated_at = $17,
            listed_at = CASE WHEN abs($17 - listed_at) >= $31 THEN $17 ELSE listed_at END,
            waiting = $19, title = $20, life = $21, plan = $22, logged = COALESCE($23, logged), running = $24,
            takes_room = $18, tokens = $25, cost_micros = $26, bytes = bytes + $27,
            failures = CASE WHEN parked IS NULL AND NOT $30 THEN failures ELSE 0 END, parked = NULL
        WHERE id = $28 AND version = $29 RETURNING id, owner
    )";

/// Makes a stream, if there is none. What was counted before it came here is not counted again.
const BEGIN: &str = "
    WITH moved AS (
        INSERT INTO streams (owner, identity, version, updated_at, listed_at, waiting, title, life, plan, logged, running,
            takes_room, tokens, cost_micros, bytes, counted_tokens, counted_cost_micros)
        SELECT $28, $29, $13, $17, $17, $19, $20, $21, $22, COALESCE($23::bigint, 0), $24, $18, $25, $26, $27, $25, $26
        WHERE NOT EXISTS (SELECT 1 FROM erased WHERE session = $30)
        ON CONFLICT (owner, identity) DO NOTHING RETURNING id, owner
    )";

/// What is stored beside the row of a stream that was made or moved.
const BESIDE: &str = "
    , decided AS (
        INSERT INTO decisions (stream, seq, owner, at)
        SELECT id, news.seq, owner, news.at FROM moved, unnest($1::bigint[], $2::bigint[]) AS news (seq, at)
        WHERE news.seq = ANY($5::bigint[])
    ), happened AS (
        INSERT INTO events (stream, seq, at, kind, body)
        SELECT id, news.seq, news.at, news.kind, news.body
        FROM moved, unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[]) AS news (seq, at, kind, body)
    ), told AS (
        INSERT INTO answers (stream, command, before, version, refusal, checksum, at)
        SELECT id, given.command, given.before, given.version, given.refusal, given.checksum, given.at
        FROM moved, unnest($6::uuid[], $7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[])
            AS given (command, before, version, refusal, checksum, at)
    ), kept AS (
        INSERT INTO snapshots (stream, version, fold_version, body)
        SELECT id, $13, $15, $14 FROM moved WHERE $14::bytea IS NOT NULL
        ON CONFLICT (stream) DO UPDATE SET version = excluded.version, fold_version = excluded.fold_version, body = excluded.body
    ), queued AS (
        INSERT INTO due (stream, owner, due_at, moved_at, takes_room)
        SELECT id, owner, $12, $17, $18 FROM moved WHERE $12::bigint IS NOT NULL OR $18::boolean
        ON CONFLICT (stream) DO UPDATE SET due_at = excluded.due_at, moved_at = excluded.moved_at,
            takes_room = excluded.takes_room, parked = false, reserved_until = 0
    ), unqueued AS (
        DELETE FROM due USING moved WHERE due.stream = moved.id AND $12::bigint IS NULL AND NOT $18::boolean
    ), charged AS (
        INSERT INTO uncounted (owner, stream) SELECT owner, id FROM moved ON CONFLICT DO NOTHING
    ), found AS (
        INSERT INTO unindexed (owner, stream) SELECT owner, id FROM moved WHERE $16::boolean ON CONFLICT DO NOTHING
    ) SELECT id FROM moved";

static MOVE_ALL: LazyLock<String> = LazyLock::new(|| [MOVE, BESIDE].concat());
static BEGIN_ALL: LazyLock<String> = LazyLock::new(|| [BEGIN, BESIDE].concat());

/// The statement that stores an append to a session that is there, as the benchmark runs it beside us.
#[must_use]
pub fn append_statement() -> &'static str {
    &MOVE_ALL
}

/// Answers, column by column.
#[derive(Default)]
pub(super) struct Answers {
    commands: Vec<Uuid>,
    befores: Vec<i64>,
    versions: Vec<i64>,
    refusals: Vec<Option<String>>,
    checksums: Vec<i64>,
    times: Vec<i64>,
}

impl Answers {
    pub(super) fn add(&mut self, command: CommandId, row: AnswerRow, at: Time) {
        let AnswerRow { columns, checksum } = row;
        self.commands.push(command.0);
        self.befores.push(columns.before);
        self.versions.push(columns.version);
        self.refusals.push(columns.refusal);
        self.checksums.push(checksum);
        self.times.push(at.0);
    }
}

/// Which stream is written.
enum Written {
    /// This one, if it is at this version, and whether that is progress.
    Moved { id: i64, before: Seq, is_progress: bool },
    /// One that is not there yet.
    Begun,
}

/// Stores an append in one statement: the number of its stream, unless that was moved, is there already, or was erased.
async fn write(
    client: &impl GenericClient,
    written: Written,
    updated: Time,
    append: &Append,
    rows: &Rows,
    answers: &Answers,
) -> Result<Option<i64>, tokio_postgres::Error> {
    let Append { events, after, due, waiting, turns: _ } = append;
    let first = after.version.0 + 1 - events.len() as u64;
    let version = after.version.0.cast_signed();
    let (due, waiting) = (due_column(*due), waiting_column(*waiting));
    let (fold, has_words) = (FOLD_VERSION.cast_signed(), has_words(Seq(first - 1), events));
    let logged = last_anchor(first, events);
    let decided: Vec<_> = verdicts(first, events).map(u64::cast_signed).collect();
    let Listed { title, life, plan, running, takes_room, used } = Listed::of(after);
    let (tokens, cost) = (used.tokens.cast_signed(), used.cost_micros.cast_signed());
    let bytes = rows.bytes();
    let common: [&(dyn ToSql + Sync); 27] = [
        &rows.seqs,
        &rows.times,
        &rows.kinds,
        &rows.bodies,
        &decided,
        &answers.commands,
        &answers.befores,
        &answers.versions,
        &answers.refusals,
        &answers.checksums,
        &answers.times,
        &due,
        &version,
        &rows.snapshot,
        &fold,
        &has_words,
        &updated.0,
        &takes_room,
        &waiting,
        &title,
        &life,
        &plan,
        &logged,
        &running,
        &tokens,
        &cost,
        &bytes,
    ];
    statement_count::add();
    let row = match written {
        Written::Moved { id, before, is_progress } => {
            let before = before.0.cast_signed();
            let which: [&(dyn ToSql + Sync); 4] = [&id, &before, &is_progress, &LISTED_MICROS];
            let statement = client.prepare_cached(&MOVE_ALL).await?;
            client.query_opt(&statement, &[&common[..], &which].concat()).await?
        }
        Written::Begun => {
            let (text, begins) = (after.identity.to_string(), beginning(&after.key()));
            let erased = begins.0.as_slice();
            let which: [&(dyn ToSql + Sync); 3] = [&after.owner.0, &text, &erased];
            let statement = client.prepare_cached(&BEGIN_ALL).await?;
            client.query_opt(&statement, &[&common[..], &which].concat()).await?
        }
    };
    Ok(row.map(|row| row.get(0)))
}

/// Stores everything, if the stream is still where the decision found it.
pub(super) async fn store(
    client: &impl GenericClient,
    known: Option<Known>,
    request: &AppendRequest<'_>,
    answer: AnswerRow,
    append: &Append,
    rows: &Rows,
) -> Result<Stored, JournalError> {
    let before = Seq(answer.columns.before.cast_unsigned());
    let is_progress = is_progress(&append.events);
    let written = match known {
        Some(Known { id, .. }) => Written::Moved { id, before, is_progress },
        None => Written::Begun,
    };
    let mut answers = Answers::default();
    if let Some(command) = request.command {
        answers.add(command, answer, request.at);
    }
    match write(client, written, request.at, append, rows, &answers).await {
        Ok(Some(id)) => {
            let snapshot = match (&rows.snapshot, known) {
                (Some(_), _) => append.after.version,
                (None, Some(known)) => known.snapshot,
                (None, None) => Seq(0),
            };
            Ok(Stored::Yes(Known { id, snapshot }))
        }
        Ok(None) => Ok(Stored::Moved),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(Stored::Answered),
        Err(error) => Err(engine(error)),
    }
}

/// Stores a whole stream that is not there yet; whether it was stored.
pub(super) async fn restore(
    client: &impl GenericClient,
    stream: &Stream,
    append: &Append,
    rows: &Rows,
) -> Result<bool, JournalError> {
    let updated = Time(rows.times.last().copied().unwrap_or_default());
    let mut answers = Answers::default();
    for (command, KeptAnswer { at, answer }) in &stream.answers {
        answers.add(*command, AnswerRow::new(&stream.key, *command, answer)?, *at);
    }
    let written = write(client, Written::Begun, updated, append, rows, &answers).await;
    Ok(written.map_err(engine)?.is_some())
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
               moved AS (UPDATE streams SET bytes = bytes + $5 FROM kept WHERE id = kept.stream RETURNING owner, id),
               charged AS (INSERT INTO uncounted (owner, stream) SELECT owner, id FROM moved ON CONFLICT DO NOTHING)
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
    // Under the stream's lock: what is being erased gets none any more.
    let sql = "INSERT INTO snapshots (stream, version, fold_version, body)
               SELECT id, $3, $4, $2 FROM streams WHERE id = $1 FOR KEY SHARE
               ON CONFLICT (stream) DO UPDATE SET version = excluded.version, fold_version = excluded.fold_version, body = excluded.body
               WHERE (snapshots.fold_version, snapshots.version) < (excluded.fold_version, excluded.version)";
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

/// In a transaction: the first statement locks the stream, so that the next ones see what was done to it meanwhile.
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
        let sql = "WITH moved AS (
                       UPDATE streams SET parked = $3 WHERE owner = $1 AND identity = $2 RETURNING id, owner, updated_at, takes_room
                   ) INSERT INTO due (stream, owner, due_at, moved_at, takes_room, parked)
                   SELECT id, owner, NULL, updated_at, takes_room, true FROM moved
                   ON CONFLICT (stream) DO UPDATE SET parked = true";
        execute(client, sql, &[&owner, &text, &why]).await?;
        return Ok(BackedOff::Parked);
    };
    later(client, identity, None, until).await?;
    Ok(BackedOff::Until(until))
}

pub(super) async fn postpone(
    client: &impl GenericClient,
    identity: &SessionKey,
    version: Seq,
    until: Time,
) -> Result<(), JournalError> {
    later(client, identity, Some(version), until).await
}

/// A session is due then, unless it is parked, or has moved from this version.
async fn later(
    client: &impl GenericClient,
    identity: &SessionKey,
    version: Option<Seq>,
    until: Time,
) -> Result<(), JournalError> {
    let sql = "INSERT INTO due (stream, owner, due_at, moved_at, takes_room)
               SELECT id, owner, $3, updated_at, takes_room FROM streams
               WHERE owner = $1 AND identity = $2 AND parked IS NULL AND version = COALESCE($4, version) FOR NO KEY UPDATE
               ON CONFLICT (stream) DO UPDATE SET due_at = excluded.due_at, reserved_until = 0";
    let (owner, text) = (identity.owner.0, identity.identity.to_string());
    let version = version.map(|version| version.0.cast_signed());
    execute(client, sql, &[&owner, &text, &until.0, &version]).await
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
    let of_due = "due_at IS NOT NULL AND NOT parked AND due_at <= $1 AND moved_at <= $1";
    let is_reserved = "reserved_until > $2 AND reserved_until <= 2 * $3::bigint - $2::bigint";
    let of_due_and_free = format!("{of_due} AND NOT ({is_reserved})");
    let sql = format!(
        "WITH soonest AS MATERIALIZED (
             SELECT stream, row_number() OVER (ORDER BY turn, due_at) AS place FROM (
                 SELECT stream, due_at, row_number() OVER (PARTITION BY owner ORDER BY due_at) AS turn FROM (
                     SELECT stream, owner, due_at FROM due WHERE {of_due_and_free} ORDER BY due_at LIMIT $5
                 ) longest
             ) in_turn ORDER BY place LIMIT $6
         ), mine AS MATERIALIZED (
             SELECT due.stream FROM due JOIN soonest ON soonest.stream = due.stream WHERE {of_due_and_free}
             ORDER BY soonest.place
             LIMIT greatest(0, least($4, $7 - (SELECT count(*) FROM due WHERE {of_due} AND {is_reserved} AND reserved_by = $8)))
             FOR UPDATE OF due SKIP LOCKED
         ), taken AS (
             UPDATE due SET reserved_until = $3, reserved_by = $8 FROM mine WHERE due.stream = mine.stream
             RETURNING due.stream, due.due_at
         )
         SELECT owner, identity, version, taken.due_at FROM taken JOIN streams ON id = taken.stream"
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
    let sql = "WITH found AS (
                   SELECT id FROM streams WHERE owner = $1 AND identity = $2 FOR NO KEY UPDATE
               ), freed AS (
                   UPDATE streams SET failures = 0, parked = NULL FROM found WHERE streams.id = found.id
               )
               UPDATE due SET due_at = $3, parked = false, reserved_until = 0 FROM found
               WHERE due.stream = found.id AND due.parked";
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
