//! The index of words by which sessions are found.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use planwright_domain::{
    id::{OwnerId, Seq},
    time::Time,
};
use planwright_runtime::ports::journal::JournalError;
use tokio_postgres::Row;

use super::{read::rows, write::execute};
use crate::journal::{
    EventRow,
    search::{EVENTS_MAX, Indexed, STREAMS_MAX, Unindexed, indexed_names, question},
};

const READ: &str = "
    SELECT next.stream, next.seq, next.at, next.kind, next.body
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS unindexed (stream, since, upto) CROSS JOIN LATERAL (
        SELECT * FROM events
        WHERE events.stream = unindexed.stream AND seq > unindexed.since AND seq <= unindexed.upto AND kind = ANY($4)
        ORDER BY seq LIMIT $5
    ) next ORDER BY next.stream, next.seq";

// A stream that somebody moves just now is indexed the next time.
const ADD: &str = "
    WITH free AS (
        SELECT id, done.upto FROM streams JOIN unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS done (stream, since, upto)
            ON id = done.stream AND searched = done.since
        ORDER BY id FOR NO KEY UPDATE OF streams SKIP LOCKED
    ), moved AS (
        UPDATE streams SET searched = free.upto FROM free WHERE streams.id = free.id
        RETURNING streams.id, owner, searched = version AS is_whole
    ), done AS (
        DELETE FROM unindexed USING moved WHERE is_whole AND unindexed.owner = moved.owner AND stream = id
    ) INSERT INTO said_words (stream, seq, words)
    SELECT news.stream, news.seq, array_to_tsvector(string_to_array(news.words, ' '))
    FROM moved JOIN unnest($4::bigint[], $5::bigint[], $6::text[]) AS news (stream, seq, words) ON news.stream = moved.id
    ON CONFLICT (stream, seq) DO UPDATE SET words = excluded.words";

/// The streams whose events are to be put into the index next.
pub(super) async fn unindexed(client: &impl GenericClient) -> Result<Vec<Unindexed>, JournalError> {
    let sql = "SELECT id, streams.owner, identity, title, searched, version FROM unindexed JOIN streams ON id = stream
               ORDER BY unindexed.owner, stream LIMIT $1";
    let unindexed = |row: &Row| Unindexed {
        stream: row.get(0),
        owner: row.get(1),
        identity: row.get(2),
        title: row.get(3),
        from: seq(row.get(4)),
        version: seq(row.get(5)),
    };
    Ok(rows(client, sql, &[&STREAMS_MAX]).await?.iter().map(unindexed).collect())
}

/// Their events, by stream.
pub(super) async fn events(
    client: &impl GenericClient,
    streams: &[Unindexed],
) -> Result<BTreeMap<i64, Vec<EventRow>>, JournalError> {
    let ids: Vec<_> = streams.iter().map(|unindexed| unindexed.stream).collect();
    let column = |of: fn(&Unindexed) -> Seq| -> Vec<i64> {
        streams.iter().map(|unindexed| of(unindexed).0.cast_signed()).collect()
    };
    let (since, upto) = (column(|of| of.from), column(|of| of.version));
    let mut events = BTreeMap::<i64, Vec<EventRow>>::new();
    let asked = (indexed_names(), EVENTS_MAX as i64);
    for row in rows(client, READ, &[&ids, &since, &upto, &asked.0, &asked.1]).await? {
        let (seq, at) = (seq(row.get(1)), Time(row.get(2)));
        let event = EventRow { seq, at, kind: row.get(3), body: row.get(4) };
        events.entry(row.get(0)).or_default().push(event);
    }
    Ok(events)
}

fn seq(number: i64) -> Seq {
    Seq(number.cast_unsigned())
}

/// Puts it there.
pub(super) async fn add(client: &impl GenericClient, all: &[Indexed]) -> Result<(), JournalError> {
    let column = |of: fn(&Indexed) -> i64| -> Vec<i64> { all.iter().map(of).collect() };
    let streams = column(|of| of.stream);
    let (since, upto) =
        (column(|of| of.from.0.cast_signed()), column(|of| of.upto.0.cast_signed()));
    let (mut of, mut seqs, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for Indexed { stream, rows, .. } in all {
        for (seq, found_by) in rows {
            of.push(*stream);
            seqs.push(seq.cast_signed());
            words.push(found_by.as_str());
        }
    }
    execute(client, ADD, &[&streams, &since, &upto, &of, &seqs, &words]).await
}

/// What is looked for, as the engine takes it; none, if no word is.
pub(super) fn sought(owner: Option<OwnerId>, text: &str) -> Option<String> {
    question(owner, text, |word| format!("'{word}'"), |beginning| format!("'{beginning}':*"), " & ")
}
