//! What is remembered: found by scope first, then by word.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use planwright_domain::{
    id::{MemoryId, OwnerId},
    memory::{
        Chain, Item, Question, Scope,
        rank::{Candidates, rarest},
    },
};
use planwright_runtime::ports::journal::JournalError;
use tokio_postgres::{Row, types::ToSql};

use super::{
    read::{row, rows},
    write::execute,
};
use crate::journal::remembering::{Change, ItemPlace, Whose, columns};

struct ScopeRow {
    id: i64,
    items: u64,
    words: u64,
}

async fn find(
    client: &impl GenericClient,
    owner: OwnerId,
    scope: &Scope,
) -> Result<Option<ScopeRow>, JournalError> {
    let (session, part) = columns(scope);
    let sql = "SELECT id, items, words FROM memory_scopes WHERE session = $1 AND part = $2 AND owner = $3";
    Ok(row(client, sql, &[&session, &part, &owner.0]).await?.map(|row| ScopeRow {
        id: row.get(0),
        items: row.get::<_, i64>(1).cast_unsigned(),
        words: row.get::<_, i64>(2).cast_unsigned(),
    }))
}

pub(super) async fn candidates(
    client: &impl GenericClient,
    chain: &Chain,
    question: &Question,
    limit: usize,
) -> Result<Vec<Candidates>, JournalError> {
    let sql = "SELECT $4::uuid, $5::text, $6::text, item, body FROM memory
               WHERE scope = $1 AND found_by @@ $2::text::tsquery ORDER BY id DESC LIMIT $3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    for scope in chain.scopes() {
        let (owner, (session, part)) = (chain.owner().0, columns(scope));
        let Some(scope) = find(client, chain.owner(), scope).await? else {
            found.push(Candidates::default());
            continue;
        };
        let (words, frequency) = looked_up(client, &scope, question.words(), limit).await?;
        let (items, count) = (Vec::new(), scope.items);
        let of_scope = Candidates { items, count, words: scope.words, frequency };
        if words.is_empty() {
            found.push(of_scope);
            continue;
        }
        // Words hold letters and digits alone, so they need no quoting inside the quotes.
        let any: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let any = any.join(" | ");
        let named: [&(dyn ToSql + Sync); 6] = [&scope.id, &any, &limit, &owner, &session, &part];
        let bodies = rows(client, sql, &named).await?;
        let items: Result<_, _> = bodies.iter().map(item_of).collect();
        found.push(Candidates { items: items?, ..of_scope });
    }
    Ok(found)
}

/// The words by which a scope is looked through, and how many of its items have each, where that was counted.
async fn looked_up(
    client: &impl GenericClient,
    scope: &ScopeRow,
    words: &[String],
    limit: i64,
) -> Result<(Vec<String>, BTreeMap<String, u64>), JournalError> {
    if scope.items <= limit.cast_unsigned() {
        return Ok((words.to_vec(), BTreeMap::new()));
    }
    let sql = "SELECT word, (SELECT count(*) FROM (
                   SELECT 1 FROM memory WHERE scope = $1 AND found_by @@ ('''' || word || '''')::tsquery LIMIT $3
               ) few) FROM unnest($2::text[]) word";
    let counted = rows(client, sql, &[&scope.id, &words, &limit.saturating_add(1)]).await?;
    let counted = counted.iter().map(|row| {
        // More than are looked at may be all of them.
        let items: i64 = row.get(1);
        (row.get(0), if items > limit { scope.items } else { items.cast_unsigned() })
    });
    let frequency: BTreeMap<_, _> = counted.collect();
    Ok((rarest(&frequency, limit.cast_unsigned()), frequency))
}

pub(super) async fn everything(
    client: &impl GenericClient,
    chain: &Chain,
    limit: usize,
) -> Result<Vec<Item>, JournalError> {
    let sql = "SELECT memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body
               FROM memory_scopes JOIN memory ON memory.scope = memory_scopes.id
               WHERE memory_scopes.owner = $3 AND memory_scopes.session IN ($1, '')
               ORDER BY memory_scopes.session = '', memory.at DESC, memory.id DESC LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let session = chain.session().to_string();
    let bodies = rows(client, sql, &[&session, &limit, &chain.owner().0]).await?;
    bodies.iter().map(item_of).collect()
}

/// The columns owner, session, part, item and body.
fn stored(row: &Row) -> (ItemPlace, &[u8]) {
    let (owner, session, part) = (row.get(0), row.get(1), row.get(2));
    (ItemPlace { owner, session, part, item: row.get(3) }, row.get(4))
}

fn item_of(row: &Row) -> Result<Item, JournalError> {
    let (place, body) = stored(row);
    place.read(body)
}

pub(super) async fn elsewhere(
    client: &impl GenericClient,
    chain: &Chain,
) -> Result<u64, JournalError> {
    let sql = "SELECT COALESCE(SUM(items), 0)::bigint FROM memory_scopes WHERE owner = $1 AND session NOT IN ($2, '')";
    let session = chain.session().to_string();
    let found = row(client, sql, &[&chain.owner().0, &session]).await?;
    let count: i64 = found.map_or(0, |row| row.get(0));
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) async fn item(
    client: &impl GenericClient,
    chain: &Chain,
    id: MemoryId,
) -> Result<Option<Item>, JournalError> {
    let sql = "SELECT memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body
               FROM memory JOIN memory_scopes ON memory.scope = memory_scopes.id
               WHERE memory.item = $1 AND memory_scopes.owner = $3 AND memory_scopes.session IN ($2, '')";
    let session = chain.session().to_string();
    let found = row(client, sql, &[&id.0, &session, &chain.owner().0]).await?;
    found.as_ref().map(item_of).transpose()
}

/// Changes what is looked up, in the transaction that stores the events.
pub(super) async fn change(
    client: &impl GenericClient,
    seal: &(impl Fn(&ItemPlace, &Item) -> Result<Vec<u8>, JournalError> + Sync),
    whose: Whose<'_>,
    changes: &[Change<'_>],
) -> Result<(), JournalError> {
    for change in changes {
        match change {
            Change::Put(item) => put(client, seal, whose, item).await?,
            Change::Reword(id, text) => {
                if let Some(row) = take(client, whose, *id).await? {
                    let mut item = item_of(&row)?;
                    item.text = (*text).to_owned();
                    put(client, seal, whose, &item).await?;
                }
            }
            Change::Drop(id) => {
                take(client, whose, *id).await?;
            }
            Change::DropAll => drop_all(client, whose).await?,
        }
    }
    Ok(())
}

async fn put(
    client: &impl GenericClient,
    seal: &(impl Fn(&ItemPlace, &Item) -> Result<Vec<u8>, JournalError> + Sync),
    whose: Whose<'_>,
    item: &Item,
) -> Result<(), JournalError> {
    let owner = whose.writes_into(&item.scope)?;
    let (session, part) = columns(&item.scope);
    let place = ItemPlace { owner: owner.0, session, part, item: item.id.0 };
    let (words, body) = (item.words(), seal(&place, item)?);
    let many = i64::try_from(words.len()).unwrap_or(i64::MAX);
    let mut distinct = words;
    distinct.sort_unstable();
    distinct.dedup();
    let sql = "INSERT INTO memory_scopes (owner, session, part) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    execute(client, sql, &[&place.owner, &place.session, &place.part]).await?;
    let scope = find(client, owner, &item.scope).await?.map_or(0, |row| row.id);
    let sql = "WITH stored AS (
                   INSERT INTO memory (scope, item, at, words, found_by, body)
                   VALUES ($1, $2, $3, $4, array_to_tsvector($5::text[]), $6) ON CONFLICT DO NOTHING RETURNING scope
               ) UPDATE memory_scopes SET items = items + 1, words = memory_scopes.words + $4 FROM stored WHERE id = stored.scope";
    execute(client, sql, &[&scope, &item.id.0, &item.at.0, &many, &distinct, &body]).await
}

/// Takes an item out, if it is theirs, and gives its row. One that cannot be read can be forgotten.
async fn take(
    client: &impl GenericClient,
    whose: Whose<'_>,
    id: MemoryId,
) -> Result<Option<Row>, JournalError> {
    let (session, owner) = whose.columns();
    let sql = "WITH gone AS (
                   DELETE FROM memory USING memory_scopes WHERE memory.item = $1 AND memory.scope = memory_scopes.id
                   AND memory_scopes.session = $2 AND memory_scopes.owner = $3
                   RETURNING memory_scopes.owner, memory_scopes.session, memory_scopes.part, memory.item, memory.body,
                       memory.scope, memory.words
               ), fewer AS (
                   UPDATE memory_scopes SET items = items - 1, words = memory_scopes.words - gone.words
                   FROM gone WHERE memory_scopes.id = gone.scope
               ) SELECT owner, session, part, item, body FROM gone";
    row(client, sql, &[&id.0, &session, &owner.0]).await
}

async fn drop_all(client: &impl GenericClient, whose: Whose<'_>) -> Result<(), JournalError> {
    let Whose::Session(key) = whose else { return Ok(()) };
    let (owner, session) = (key.owner.0, key.identity.to_string());
    let sql = "DELETE FROM memory USING memory_scopes WHERE memory.scope = memory_scopes.id
               AND memory_scopes.session = $1 AND memory_scopes.owner = $2";
    execute(client, sql, &[&session, &owner]).await?;
    let sql = "DELETE FROM memory_scopes WHERE session = $1 AND owner = $2";
    execute(client, sql, &[&session, &owner]).await
}
