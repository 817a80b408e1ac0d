//! What owners use: turns, tokens, money and bytes.

use std::collections::BTreeSet;

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
use tokio_postgres::IsolationLevel;

use super::{
    PostgresJournal, owner,
    read::{row, rows},
    write::execute,
};
use crate::journal::{Uncounted, engine};

/// What belongs to an owner, and what they have used.
pub(super) async fn used(
    client: &mut Object,
    id: OwnerId,
    day: Day,
) -> Result<(Owner, Used), JournalError> {
    // Both in one look: what is taken up in between would be counted twice, or not at all.
    let read = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let transaction = read.read_only(true).start().await.map_err(engine)?;
    let owner = owner::read(&transaction, id).await?;
    let sql = "SELECT COALESCE(SUM(tokens - counted_tokens) FILTER (WHERE updated_at >= $2), 0)::bigint,
                   COALESCE(SUM(cost_micros - counted_cost_micros) FILTER (WHERE updated_at >= $2), 0)::bigint,
                   (COALESCE(SUM(bytes - counted_bytes), 0) + COALESCE((SELECT bytes FROM owners WHERE id = $1), 0))::bigint,
                   (SELECT COUNT(*) FROM due WHERE owner = $1 AND takes_room AND NOT parked)
               FROM uncounted JOIN streams ON id = uncounted.stream WHERE uncounted.owner = $1";
    let since = Day(day.0 - 1).ends().0;
    let found = row(&transaction, sql, &[&id.0, &since]).await?;
    transaction.commit().await.map_err(engine)?;
    let number = |column| found.as_ref().map_or(0, |row| row.get::<_, i64>(column).cast_unsigned());
    let uncounted = DayUse { tokens: number(0), cost_micros: number(1) };
    let DayUse { tokens, cost_micros } = owner.used_on(day).plus(uncounted);
    let (bytes, turns) = (number(2), number(3));
    Ok((owner, Used { turns, tokens, cost_micros, bytes }))
}

async fn under_way(client: &impl GenericClient, id: OwnerId) -> Result<u64, JournalError> {
    let sql = "SELECT COUNT(*) FROM due WHERE owner = $1 AND takes_room AND NOT parked";
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
        // By the number alone: by the owner as well, the server expects to find fewer than there are, and reads all streams.
        let (which, many) = match which {
            Counted::Some(limit) => (
                "true ORDER BY uncounted.owner, uncounted.stream LIMIT $1",
                i64::try_from(*limit).unwrap_or(i64::MAX),
            ),
            Counted::One(stream) => {
                ("id = $1 AND uncounted.owner = (SELECT owner FROM streams WHERE id = $1)", *stream)
            }
        };
        let sql = format!(
            "SELECT id, streams.owner, updated_at, tokens - counted_tokens, cost_micros - counted_cost_micros, bytes - counted_bytes
             FROM uncounted JOIN streams ON id = uncounted.stream WHERE {which} FOR NO KEY UPDATE OF streams SKIP LOCKED"
        );
        let (mut uncounted, mut streams) = (Uncounted::default(), Vec::new());
        for row in rows(client, &sql, &[&many]).await? {
            let number = |column| row.get::<_, i64>(column).cast_unsigned();
            let used = DayUse { tokens: number(3), cost_micros: number(4) };
            uncounted.add(OwnerId(row.get(1)), Time(row.get(2)), used, row.get(5));
            streams.push(row.get::<_, i64>(0));
        }
        failpoint::hit("usage.before_facts");
        // In the order of their ids, so that nodes that count at once do not wait for each other in a circle.
        let add = "WITH known AS (SELECT id FROM owners WHERE id = ANY($1) ORDER BY id FOR UPDATE)
                   UPDATE owners SET bytes = bytes + used.more FROM known, unnest($1::uuid[], $2::bigint[]) AS used (owner, more)
                   WHERE owners.id = known.id AND owners.id = used.owner RETURNING owners.id";
        let owners: Vec<_> = uncounted.0.keys().map(|owner| owner.0).collect();
        let bytes: Vec<_> = uncounted.0.values().map(|used| used.bytes).collect();
        let known = rows(client, add, &[&owners, &bytes]).await?;
        let known: BTreeSet<_> = known.iter().map(|row| OwnerId(row.get(0))).collect();
        for (id, used) in uncounted.0 {
            if !known.contains(&id) {
                tracing::error!(owner = %id, event = "usage_of_nobody");
                continue;
            }
            for decide in used.decisions() {
                // Counting is never refused.
                self.decide_owner_in(client, id, at, &decide).await?;
            }
        }
        let sql = "WITH counted AS (
                       UPDATE streams SET counted_tokens = tokens, counted_cost_micros = cost_micros, counted_bytes = bytes
                       WHERE id = ANY($1) RETURNING owner, id
                   ) DELETE FROM uncounted USING counted WHERE uncounted.owner = counted.owner AND stream = id";
        execute(client, sql, &[&streams]).await?;
        failpoint::hit("usage.after_facts");
        Ok(streams.len())
    }
}
