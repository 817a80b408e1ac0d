//! What is remembered: found by scope first, then by word.

use planwright_domain::{
    actor::PersonId,
    id::MemoryId,
    memory::{Chain, Item, Scope, rank::Candidates},
};
use planwright_runtime::ports::journal::JournalError;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::journal::{
    codec::{Packer, unpack_item},
    engine,
    remembering::{Change, Whose, columns},
};

/// The word that stands for a scope. No text has it: words hold letters and digits alone.
fn scope_word(scope: i64) -> String {
    format!("_{scope}_")
}

struct ScopeRow {
    id: i64,
    items: u64,
    words: u64,
}

fn find(
    connection: &Connection,
    owner: &PersonId,
    scope: &Scope,
) -> Result<Option<ScopeRow>, JournalError> {
    let (owner, session, part) = columns(owner, scope);
    let sql = "SELECT id, items, words FROM memory_scopes WHERE session = ?1 AND part = ?2 AND owner = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    statement
        .query_row(params![session, part, owner], |row| {
            let (items, words): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(ScopeRow {
                id: row.get(0)?,
                items: items.cast_unsigned(),
                words: words.cast_unsigned(),
            })
        })
        .optional()
        .map_err(engine)
}

pub(super) fn candidates(
    connection: &Connection,
    chain: &Chain,
    words: &[String],
    limit: usize,
) -> Result<Vec<Candidates>, JournalError> {
    let any: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let any = any.join(" OR ");
    let sql = "SELECT memory.body FROM memory_words JOIN memory ON memory.id = memory_words.rowid
               WHERE memory_words MATCH ?1 AND memory.scope = ?2 ORDER BY memory_words.rowid DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let mut found = Vec::new();
    for scope in chain.scopes() {
        let Some(row) = find(connection, chain.owner(), scope)? else {
            found.push(Candidates::default());
            continue;
        };
        let question = format!("\"{}\" AND ({any})", scope_word(row.id));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let bodies = statement
            .query_map(params![question, row.id, limit], |row| row.get::<_, Vec<u8>>(0))
            .map_err(engine)?;
        let items: Result<_, JournalError> =
            bodies.map(|body| unpack_item(&body.map_err(engine)?)).collect();
        found.push(Candidates { items: items?, count: row.items, words: row.words });
    }
    Ok(found)
}

pub(super) fn everything(
    connection: &Connection,
    chain: &Chain,
    limit: usize,
) -> Result<Vec<Item>, JournalError> {
    let sql = "SELECT memory.body FROM memory_scopes JOIN memory ON memory.scope = memory_scopes.id
               WHERE (memory_scopes.session = ?1 AND memory_scopes.owner = '')
                   OR (memory_scopes.session = '' AND memory_scopes.owner = ?3)
               ORDER BY memory_scopes.session = '', memory.at DESC, memory.id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let bodies = statement
        .query_map(params![chain.session().to_string(), limit, chain.owner().0], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .map_err(engine)?;
    bodies.map(|body| unpack_item(&body.map_err(engine)?)).collect()
}

pub(super) fn elsewhere(connection: &Connection, chain: &Chain) -> Result<u64, JournalError> {
    let sql = "SELECT COALESCE(SUM(memory_scopes.items), 0) FROM streams JOIN memory_scopes ON memory_scopes.session = streams.identity
               WHERE streams.owner = ?1 AND streams.identity <> ?2 AND memory_scopes.owner = ''";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let named = params![chain.owner().0, chain.session().to_string()];
    let count: i64 = statement.query_row(named, |row| row.get(0)).map_err(engine)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn item(
    connection: &Connection,
    chain: &Chain,
    id: MemoryId,
) -> Result<Option<Item>, JournalError> {
    let session = chain.session().to_string();
    let sql = "SELECT memory.body FROM memory JOIN memory_scopes ON memory.scope = memory_scopes.id
               WHERE memory.item = ?1 AND ((memory_scopes.session = ?2 AND memory_scopes.owner = '')
                   OR (memory_scopes.session = '' AND memory_scopes.owner = ?3))";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let body: Option<Vec<u8>> = statement
        .query_row(params![id.0.as_bytes(), session, chain.owner().0], |row| row.get(0))
        .optional()
        .map_err(engine)?;
    body.map(|body| unpack_item(&body)).transpose()
}

/// Changes what is looked up, in the transaction that stores the events.
pub(super) fn change(
    connection: &Connection,
    packer: &mut Packer,
    whose: Whose<'_>,
    changes: &[Change<'_>],
) -> Result<(), JournalError> {
    for change in changes {
        match change {
            Change::Put(item) => put(connection, packer, whose, item)?,
            Change::Reword(id, text) => {
                if let Some((_, mut item)) = take(connection, whose, *id)? {
                    item.text = (*text).to_owned();
                    put(connection, packer, whose, &item)?;
                }
            }
            Change::Drop(id) => {
                take(connection, whose, *id)?;
            }
            Change::DropAll => drop_all(connection, whose)?,
        }
    }
    Ok(())
}

fn put(
    connection: &Connection,
    packer: &mut Packer,
    whose: Whose<'_>,
    item: &Item,
) -> Result<(), JournalError> {
    let owner = &whose.writes_into(&item.scope)?;
    let (of, session, part) = columns(owner, &item.scope);
    let say = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).map_err(engine)?;
        statement.execute(values).map_err(engine)
    };
    let words = item.words();
    let many = i64::try_from(words.len()).unwrap_or(i64::MAX);
    say(
        "INSERT INTO memory_scopes (owner, session, part) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![of, session, part],
    )?;
    let scope = find(connection, owner, &item.scope)?.map_or(0, |row| row.id);
    let body = packer.pack(item)?;
    let stored = say(
        "INSERT INTO memory (scope, item, at, words, body) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        params![scope, item.id.0.as_bytes(), item.at.0, many, body],
    )?;
    if stored == 0 {
        return Ok(());
    }
    let row = connection.last_insert_rowid();
    say(
        "UPDATE memory_scopes SET items = items + 1, words = words + ?2 WHERE id = ?1",
        params![scope, many],
    )?;
    let text = format!("{} {}", scope_word(scope), words.join(" "));
    say("INSERT INTO memory_words (rowid, words) VALUES (?1, ?2)", params![row, text])?;
    Ok(())
}

/// Takes an item out, if it is theirs.
fn take(
    connection: &Connection,
    whose: Whose<'_>,
    id: MemoryId,
) -> Result<Option<(i64, Item)>, JournalError> {
    let (session, owner) = whose.columns();
    let sql = "SELECT memory.id, memory.scope, memory.words, memory.body
               FROM memory JOIN memory_scopes ON memory.scope = memory_scopes.id
               WHERE memory.item = ?1 AND memory_scopes.session = ?2 AND memory_scopes.owner = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(engine)?;
    let found = statement
        .query_row(params![id.0.as_bytes(), session, owner], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, Vec<u8>>(3)?,
            ))
        })
        .optional()
        .map_err(engine)?;
    let Some((row, scope, words, body)) = found else { return Ok(None) };
    let say = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).map_err(engine)?;
        statement.execute(values).map_err(engine)
    };
    say("DELETE FROM memory_words WHERE rowid = ?1", params![row])?;
    say("DELETE FROM memory WHERE id = ?1", params![row])?;
    say(
        "UPDATE memory_scopes SET items = items - 1, words = words - ?2 WHERE id = ?1",
        params![scope, words],
    )?;
    Ok(Some((row, unpack_item(&body)?)))
}

fn drop_all(connection: &Connection, whose: Whose<'_>) -> Result<(), JournalError> {
    let Whose::Session(session) = whose else { return Ok(()) };
    let session = session.to_string();
    for sql in [
        "DELETE FROM memory_words WHERE rowid IN (SELECT memory.id FROM memory JOIN memory_scopes
         ON memory.scope = memory_scopes.id WHERE memory_scopes.session = ?1 AND memory_scopes.owner = '')",
        "DELETE FROM memory WHERE scope IN (SELECT id FROM memory_scopes WHERE session = ?1 AND owner = '')",
        "DELETE FROM memory_scopes WHERE session = ?1 AND owner = ''",
    ] {
        connection.prepare_cached(sql).map_err(engine)?.execute([&session]).map_err(engine)?;
    }
    Ok(())
}
