//! What is remembered: found by scope first, then by word.

use std::collections::BTreeMap;

use planwright_domain::{
    id::{MemoryId, OwnerId},
    memory::{
        Chain, Item, Question, Scope,
        rank::{Candidates, rarest},
    },
};
use planwright_format::body::Packer;
use planwright_runtime::ports::journal::JournalError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::sqlite;
use crate::journal::remembering::{Change, ItemPlace, Whose, columns};

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
    owner: OwnerId,
    scope: &Scope,
) -> Result<Option<ScopeRow>, JournalError> {
    let (session, part) = columns(scope);
    let sql = "SELECT id, items, words FROM memory_scopes WHERE session = ?1 AND part = ?2 AND owner = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    statement
        .query_row(params![session, part, owner.0.as_bytes()], |row| {
            let (items, words): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(ScopeRow {
                id: row.get(0)?,
                items: items.cast_unsigned(),
                words: words.cast_unsigned(),
            })
        })
        .optional()
        .map_err(sqlite)
}

pub(super) fn candidates(
    connection: &Connection,
    chain: &Chain,
    question: &Question,
    limit: usize,
) -> Result<Vec<Candidates>, JournalError> {
    let sql = "SELECT ?4, ?5, ?6, memory.item, memory.body FROM memory_words JOIN memory ON memory.id = memory_words.rowid
               WHERE memory_words MATCH ?1 AND memory.scope = ?2 ORDER BY memory_words.rowid DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let mut found = Vec::new();
    for scope in chain.scopes() {
        let Some(row) = find(connection, chain.owner(), scope)? else {
            found.push(Candidates::default());
            continue;
        };
        let (words, frequency) = looked_up(connection, &row, question.words(), limit)?;
        let of_scope =
            Candidates { items: Vec::new(), count: row.items, words: row.words, frequency };
        if words.is_empty() {
            found.push(of_scope);
            continue;
        }
        let any: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let question = format!("\"{}\" AND ({})", scope_word(row.id), any.join(" OR "));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (owner, (session, part)) = (chain.owner().0, columns(scope));
        let rows = statement
            .query_map(params![question, row.id, limit, owner.as_bytes(), session, part], item_row)
            .map_err(sqlite)?;
        let items: Result<_, JournalError> = rows
            .map(|row| {
                let (place, body) = row.map_err(sqlite)?;
                place.read(&body)
            })
            .collect();
        found.push(Candidates { items: items?, ..of_scope });
    }
    Ok(found)
}

/// The words by which a scope is looked through, and how many of its items have each, where that was counted.
fn looked_up(
    connection: &Connection,
    scope: &ScopeRow,
    words: &[String],
    limit: usize,
) -> Result<(Vec<String>, BTreeMap<String, u64>), JournalError> {
    if scope.items <= limit as u64 {
        return Ok((words.to_vec(), BTreeMap::new()));
    }
    let sql =
        "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 LIMIT ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let counted: Result<BTreeMap<_, _>, JournalError> = words
        .iter()
        .map(|word| {
            let question = format!("\"{}\" AND \"{word}\"", scope_word(scope.id));
            let items: i64 =
                statement.query_row(params![question, more], |row| row.get(0)).map_err(sqlite)?;
            // More than are looked at may be all of them.
            let is_common = items == more;
            Ok((word.clone(), if is_common { scope.items } else { items.cast_unsigned() }))
        })
        .collect();
    let frequency = counted?;
    Ok((rarest(&frequency, limit as u64), frequency))
}

pub(super) fn everything(
    connection: &Connection,
    chain: &Chain,
    limit: usize,
) -> Result<Vec<Item>, JournalError> {
    let sql = "SELECT memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body
               FROM memory_scopes JOIN memory ON memory.scope = memory_scopes.id
               WHERE memory_scopes.owner = ?3 AND memory_scopes.session IN (?1, '')
               ORDER BY memory_scopes.session = '', memory.at DESC, memory.id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement
        .query_map(
            params![chain.session().to_string(), limit, chain.owner().0.as_bytes()],
            item_row,
        )
        .map_err(sqlite)?;
    rows.map(|row| {
        let (place, body) = row.map_err(sqlite)?;
        place.read(&body)
    })
    .collect()
}

pub(super) fn elsewhere(connection: &Connection, chain: &Chain) -> Result<u64, JournalError> {
    let sql = "SELECT COALESCE(SUM(items), 0) FROM memory_scopes WHERE owner = ?1 AND session NOT IN (?2, '')";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let (owner, session) = (chain.owner(), chain.session().to_string());
    let count: i64 = statement
        .query_row(params![owner.0.as_bytes(), session], |row| row.get(0))
        .map_err(sqlite)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn item(
    connection: &Connection,
    chain: &Chain,
    id: MemoryId,
) -> Result<Option<Item>, JournalError> {
    let session = chain.session().to_string();
    let sql = "SELECT memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body
               FROM memory JOIN memory_scopes ON memory.scope = memory_scopes.id
               WHERE memory.item = ?1 AND memory_scopes.owner = ?3 AND memory_scopes.session IN (?2, '')";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let found = statement
        .query_row(params![id.0.as_bytes(), session, chain.owner().0.as_bytes()], item_row)
        .optional()
        .map_err(sqlite)?;
    found.map(|(place, body)| place.read(&body)).transpose()
}

/// The columns owner, session, part, item and body.
fn item_row(row: &Row<'_>) -> rusqlite::Result<(ItemPlace, Vec<u8>)> {
    let (session, part) = (row.get(1)?, row.get(2)?);
    let owner = Uuid::from_bytes(row.get(0)?);
    let item = Uuid::from_bytes(row.get(3)?);
    Ok((ItemPlace { owner, session, part, item }, row.get(4)?))
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
                if let Some((place, body)) = take(connection, whose, *id)? {
                    let mut item = place.read(&body)?;
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
    let owner = whose.writes_into(&item.scope)?;
    let (session, part) = columns(&item.scope);
    let say = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(values).map_err(sqlite)
    };
    let words = item.words();
    let many = i64::try_from(words.len()).unwrap_or(i64::MAX);
    say(
        "INSERT INTO memory_scopes (owner, session, part) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![owner.0.as_bytes(), &session, &part],
    )?;
    let scope = find(connection, owner, &item.scope)?.map_or(0, |row| row.id);
    let place = ItemPlace { owner: owner.0, session, part, item: item.id.0 };
    let body = place.seal(packer, item)?;
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

/// Takes an item out, if it is theirs: where it was, and what was stored there. One that cannot be read can be forgotten.
fn take(
    connection: &Connection,
    whose: Whose<'_>,
    id: MemoryId,
) -> Result<Option<(ItemPlace, Vec<u8>)>, JournalError> {
    let (session, owner) = whose.columns();
    let sql = "SELECT memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body, memory.id, memory.scope, memory.words
               FROM memory JOIN memory_scopes ON memory.scope = memory_scopes.id
               WHERE memory.item = ?1 AND memory_scopes.session = ?2 AND memory_scopes.owner = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let found = statement
        .query_row(params![id.0.as_bytes(), session, owner.0.as_bytes()], |row| {
            let numbers: (i64, i64, i64) = (row.get(5)?, row.get(6)?, row.get(7)?);
            Ok((item_row(row)?, numbers))
        })
        .optional()
        .map_err(sqlite)?;
    let Some((stored, (row, scope, words))) = found else { return Ok(None) };
    let say = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(values).map_err(sqlite)
    };
    say("DELETE FROM memory_words WHERE rowid = ?1", params![row])?;
    say("DELETE FROM memory WHERE id = ?1", params![row])?;
    say(
        "UPDATE memory_scopes SET items = items - 1, words = words - ?2 WHERE id = ?1",
        params![scope, words],
    )?;
    Ok(Some(stored))
}

fn drop_all(connection: &Connection, whose: Whose<'_>) -> Result<(), JournalError> {
    let Whose::Session(key) = whose else { return Ok(()) };
    let (owner, session) = (key.owner.0.as_bytes(), key.identity.to_string());
    for sql in [
        "DELETE FROM memory_words WHERE rowid IN (SELECT memory.id FROM memory JOIN memory_scopes
         ON memory.scope = memory_scopes.id WHERE memory_scopes.session = ?1 AND memory_scopes.owner = ?2)",
        "DELETE FROM memory WHERE scope IN (SELECT id FROM memory_scopes WHERE session = ?1 AND owner = ?2)",
        "DELETE FROM memory_scopes WHERE session = ?1 AND owner = ?2",
    ] {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(params![session, owner]).map_err(sqlite)?;
    }
    Ok(())
}
