//! The index of words by which sessions are found.

use planwright_domain::id::{OwnerId, Seq};
use planwright_runtime::ports::journal::JournalError;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{
    read::{event_id, event_ids, event_row},
    sqlite,
};
use crate::journal::search::{
    EVENTS_MAX, Indexed, STREAMS_MAX, Unindexed, WORDS_MAX, indexed_names, question,
};

/// What is to be put into the index next.
pub(super) fn unindexed(connection: &Connection) -> Result<Vec<Indexed>, JournalError> {
    let sql = "SELECT id, streams.owner, identity, title, searched, version FROM unindexed JOIN streams ON id = unindexed.stream
               ORDER BY unindexed.owner, unindexed.stream LIMIT ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let streams = statement.query_map([STREAMS_MAX], |row| {
        let seq = |column| row.get::<_, i64>(column).map(|seq| Seq(seq.cast_unsigned()));
        let owner = Uuid::from_bytes(row.get(1)?);
        let (stream, identity, title) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok(Unindexed { stream, owner, identity, title, from: seq(4)?, version: seq(5)? })
    });
    let streams: Vec<_> = streams.map_err(sqlite)?.collect::<Result<_, _>>().map_err(sqlite)?;
    let kinds: String = indexed_names().iter().map(|kind| format!(" {kind} ")).collect();
    let read = "SELECT seq, at, kind, body FROM events
                WHERE id > ?1 AND id <= ?2 AND instr(?3, ' ' || kind || ' ') > 0 ORDER BY id LIMIT ?4";
    let mut read = connection.prepare_cached(read).map_err(sqlite)?;
    let (mut all, mut words_left) = (Vec::new(), WORDS_MAX);
    for unindexed in streams {
        if words_left == 0 {
            break;
        }
        // What was stored since is indexed the next time.
        let (first, _) = event_ids(unindexed.stream, unindexed.from)?;
        let last = event_id(unindexed.stream, unindexed.version.0)?;
        let found = read
            .query_map(params![first, last, kinds, EVENTS_MAX as i64], event_row)
            .map_err(sqlite)?;
        let events: Vec<_> = found.collect::<Result<_, _>>().map_err(sqlite)?;
        all.push(unindexed.indexed(events, &mut words_left));
    }
    Ok(all)
}

/// Puts it there, in the transaction that is open.
pub(super) fn add(connection: &Connection, all: &[Indexed]) -> Result<(), JournalError> {
    let prepare = |sql| connection.prepare_cached(sql).map_err(sqlite);
    let mut done = prepare("UPDATE streams SET searched = ?3 WHERE id = ?1 AND searched = ?2")?;
    let mut whole = prepare(
        "DELETE FROM unindexed WHERE stream = ?1 AND owner = (SELECT owner FROM streams WHERE id = ?1 AND searched = version)",
    )?;
    let mut remove = prepare("DELETE FROM said_words WHERE rowid = ?1")?;
    let mut add = prepare("INSERT INTO said_words (rowid, words) VALUES (?1, ?2)")?;
    for Indexed { stream, from, upto, rows } in all {
        let moved = params![stream, from.0.cast_signed(), upto.0.cast_signed()];
        // It was erased, or somebody else was faster.
        if done.execute(moved).map_err(sqlite)? == 0 {
            continue;
        }
        whole.execute([stream]).map_err(sqlite)?;
        for (seq, words) in rows {
            let row = event_id(*stream, *seq)?;
            remove.execute([row]).map_err(sqlite)?;
            add.execute(params![row, words]).map_err(sqlite)?;
        }
    }
    Ok(())
}

/// What is looked for, as the engine takes it; none, if no word is.
pub(super) fn sought(owner: Option<OwnerId>, text: &str) -> Option<String> {
    question(
        owner,
        text,
        |word| format!("\"{word}\""),
        |beginning| format!("\"{beginning}\"*"),
        " AND ",
    )
}
