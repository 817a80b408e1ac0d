//! What owners use: turns, tokens, money and bytes.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    owner::{DayUse, Owner},
    quota::{Day, TurnRoom, Used},
    refusal::Refusal,
    time::Time,
};
use planwright_runtime::{failpoint, ports::journal::JournalError};

use super::{
    PostgresJournal, owner,
    read::{row, rows},
    write::execute,
};
use crate::journal::{Uncounted, engine};

/// What belongs to an owner, and what they have used but for bytes.
pub(super) async fn used(
    client: &mut Object,
    id: OwnerId,
    day: Day,
) -> Result<(Owner, Used), JournalError> {
    // Both in one look: what is taken up in between would be counted twice, or not at all.
    let transaction = client.transaction().await.map_err(engine)?;
    execute(&transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", &[]).await?;
    let owner = owner::read(&transaction, id).await?;
    let sql = "SELECT COALESCE(SUM(tokens - counted_tokens), 0)::bigint, COALESCE(SUM(cost_micros - counted_cost_micros), 0)::bigint
               FROM streams WHERE owner = $1 AND (tokens > counted_tokens OR cost_micros > counted_cost_micros)
               AND updated_at >= $2";
    let since = Day(day.0 - 1).ends().0;
    let found = row(&transaction, sql, &[&id.0, &since]).await?;
    let uncounted = found.map_or_else(DayUse::default, |row| DayUse {
        tokens: row.get::<_, i64>(0).cast_unsigned(),
        cost_micros: row.get::<_, i64>(1).cast_unsigned(),
    });
    let turns = under_way(&transaction, id).await?;
    transaction.commit().await.map_err(engine)?;
    let DayUse { tokens, cost_micros } = owner.used_on(day).plus(uncounted);
    Ok((owner, Used { turns, tokens, cost_micros, bytes: 0 }))
}

async fn under_way(client: &impl GenericClient, id: OwnerId) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM streams WHERE owner = $1 AND running AND parked IS NULL";
    let found = row(client, sql, &[&id.0]).await?;
    Ok(found.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

/// Whether the owner may have another turn under way. Who begins one waits for whoever else begins one.
pub(super) async fn check_room(
    client: &impl GenericClient,
    id: OwnerId,
    room: &TurnRoom,
) -> Result<Result<(), Refusal>, JournalError> {
    execute(client, "SELECT 1 FROM owners WHERE id = $1 FOR UPDATE", &[&id.0]).await?;
    Ok(room.check(under_way(client, id).await?).map_err(Refusal::LimitReached))
}

pub(super) async fn stored_bytes(
    client: &impl GenericClient,
    id: OwnerId,
) -> Result<u64, JournalError> {
    let sql = "SELECT COALESCE(SUM(bytes), 0)::bigint FROM streams WHERE owner = $1";
    let found = row(client, sql, &[&id.0]).await?;
    Ok(found.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

pub(super) async fn name(
    client: &impl GenericClient,
    id: OwnerId,
) -> Result<Option<PersonId>, JournalError> {
    let found = row(client, "SELECT name FROM owners WHERE id = $1", &[&id.0]).await?;
    Ok(found.map(|row| PersonId(row.get(0))))
}

/// Which sessions are counted.
pub(super) enum Counted {
    /// So many that nobody else writes at the moment.
    Some(usize),
    /// This stream.
    One(i64),
}

impl PostgresJournal {
    /// Takes up what was used. Of how many sessions.
    pub(super) async fn count(
        &self,
        client: &mut Object,
        at: Time,
        limit: usize,
    ) -> Result<usize, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        let counted = self.count_in(&transaction, at, &Counted::Some(limit)).await?;
        transaction.commit().await.map_err(engine)?;
        Ok(counted)
    }

    /// The same, in the transaction that is open.
    pub(super) async fn count_in(
        &self,
        client: &impl GenericClient,
        at: Time,
        which: &Counted,
    ) -> Result<usize, JournalError> {
        let (only, limit) = match which {
            Counted::Some(limit) => (None, i64::try_from(*limit).unwrap_or(i64::MAX)),
            Counted::One(stream) => (Some(*stream), 1),
        };
        let sql = "SELECT id, owner, updated_at, tokens - counted_tokens, cost_micros - counted_cost_micros FROM streams
                   WHERE (tokens > counted_tokens OR cost_micros > counted_cost_micros)
                   AND ($1::bigint IS NULL OR id = $1) LIMIT $2 FOR UPDATE SKIP LOCKED";
        let (mut uncounted, mut streams) = (Uncounted::default(), Vec::new());
        for row in rows(client, sql, &[&only, &limit]).await? {
            let number = |column| row.get::<_, i64>(column).cast_unsigned();
            let used = DayUse { tokens: number(3), cost_micros: number(4) };
            uncounted.add(OwnerId(row.get(1)), Time(row.get(2)), used);
            streams.push(row.get::<_, i64>(0));
        }
        failpoint::hit("usage.before_facts");
        for (id, decide) in uncounted.decisions() {
            match self.decide_owner_in(client, id, at, &decide).await? {
                // Counting is never refused.
                Some(_) => {}
                None => tracing::error!(owner = %id, event = "usage_of_nobody"),
            }
        }
        let sql = "UPDATE streams SET counted_tokens = tokens, counted_cost_micros = cost_micros WHERE id = ANY($1)";
        execute(client, sql, &[&streams]).await?;
        failpoint::hit("usage.after_facts");
        Ok(streams.len())
    }
}
