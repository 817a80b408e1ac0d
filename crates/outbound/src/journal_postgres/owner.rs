//! What belongs to an owner: a stream of its own, with its state beside it.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    owner::{OWNER_FOLD_VERSION, Owner},
    refusal::Refusal,
    time::Time,
};
use planwright_runtime::ports::journal::{DecideOwner, JournalError, OwnerRecorded};

use super::{
    PostgresJournal, memory,
    read::{row, rows},
    write::execute,
};
use crate::journal::{
    engine, nobody,
    remembering::{Whose, of_owner},
    sealed::{read_owner, read_owner_events, seal_owner, seal_owner_event},
};

pub(super) async fn read(client: &impl GenericClient, id: OwnerId) -> Result<Owner, JournalError> {
    let sql = "SELECT fold_version, version, state FROM owners WHERE id = $1";
    let kept = row(client, sql, &[&id.0]).await?;
    if kept.as_ref().is_none_or(|row| row.get::<_, i64>(1) == 0) {
        return Ok(Owner::new(id));
    }
    let kept = kept.filter(|row| row.get::<_, i32>(0).cast_unsigned() == OWNER_FOLD_VERSION);
    if let Some(owner) =
        kept.and_then(|row| read_owner(id, row.get(1), row.get::<_, Option<&[u8]>>(2)?))
    {
        return Ok(owner);
    }
    let events: Vec<_> = events(client, id).await?.into_iter().map(|kept| kept.event).collect();
    Ok(Owner::new(id).fold(&events)?)
}

pub(super) async fn events(
    client: &impl GenericClient,
    id: OwnerId,
) -> Result<Vec<OwnerRecorded>, JournalError> {
    let sql = "SELECT version FROM owners WHERE id = $1";
    let version = row(client, sql, &[&id.0]).await?.map_or(0, |row| row.get(0));
    let sql = "SELECT seq, at, kind, body FROM owner_events WHERE owner = $1 ORDER BY seq";
    let rows = rows(client, sql, &[&id.0]).await?;
    read_owner_events(
        id,
        version,
        rows.iter().map(|row| Ok((row.get(0), Time(row.get(1)), row.get(2), row.get(3)))),
    )
}

pub(super) async fn owners(
    client: &impl GenericClient,
) -> Result<Vec<(PersonId, OwnerId)>, JournalError> {
    let sql = "SELECT name, id FROM owners ORDER BY name COLLATE \"C\"";
    let rows = rows(client, sql, &[]).await?;
    Ok(rows.iter().map(|row| (PersonId(row.get(0)), OwnerId(row.get(1)))).collect())
}

pub(super) async fn named(
    client: &impl GenericClient,
    name: &PersonId,
) -> Result<Option<OwnerId>, JournalError> {
    let found = row(client, "SELECT id FROM owners WHERE name = $1", &[&name.0]).await?;
    Ok(found.map(|row| OwnerId(row.get(0))))
}

/// The owner of this name; a new one with this id, if there was none.
pub(super) async fn made(
    client: &impl GenericClient,
    name: &PersonId,
    fresh: OwnerId,
) -> Result<OwnerId, JournalError> {
    let sql = "INSERT INTO owners (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    execute(client, sql, &[&fresh.0, &name.0]).await?;
    named(client, name).await?.ok_or_else(|| nobody(fresh))
}

/// Gives the owner of this name this id, unless something is stored under the one that they have.
pub(super) async fn adopt(
    client: &impl GenericClient,
    name: &PersonId,
    id: OwnerId,
) -> Result<bool, JournalError> {
    let sql = "UPDATE owners SET id = $1 WHERE name = $2 AND version = 0
               AND NOT EXISTS (SELECT 1 FROM streams WHERE streams.owner = owners.id)";
    execute(client, sql, &[&id.0, &name.0]).await?;
    Ok(made(client, name, id).await? == id)
}

impl PostgresJournal {
    /// Decides under the owner's lock and stores.
    pub(super) async fn decide_owner(
        &self,
        client: &mut Object,
        id: OwnerId,
        at: Time,
        decide: &DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        let decided = self.decide_owner_in(&transaction, id, at, decide).await?;
        let decided = decided.ok_or_else(|| nobody(id))?;
        transaction.commit().await.map_err(engine)?;
        Ok(decided)
    }

    /// The same, in the transaction that is open; nothing, if nobody has this id.
    pub(super) async fn decide_owner_in(
        &self,
        client: &impl GenericClient,
        id: OwnerId,
        at: Time,
        decide: &DecideOwner,
    ) -> Result<Option<Result<Owner, Refusal>>, JournalError> {
        let lock = "SELECT 1 FROM owners WHERE id = $1 FOR UPDATE";
        if row(client, lock, &[&id.0]).await?.is_none() {
            return Ok(None);
        }
        let owner = read(client, id).await?;
        let events = match decide(&owner) {
            Ok(events) => events,
            Err(refusal) => return Ok(Some(Err(refusal))),
        };
        let after = owner.fold(&events)?;
        if events.is_empty() {
            return Ok(Some(Ok(after)));
        }
        let level = self.level();
        let sql =
            "INSERT INTO owner_events (owner, seq, at, kind, body) VALUES ($1, $2, $3, $4, $5)";
        for (seq, event) in (owner.version.following().0..).zip(&events) {
            let row =
                self.with_packer(|packer| seal_owner_event(packer, id, seq, at, event, level))?;
            let seq = seq.cast_signed();
            execute(client, sql, &[&id.0, &seq, &at.0, &row.kind, &row.body]).await?;
        }
        let sql = "UPDATE owners SET version = $2, fold_version = $3, state = $4 WHERE id = $1";
        let version = after.version.0.cast_signed();
        let state = self.with_packer(|packer| seal_owner(packer, &after, level))?;
        let fold = OWNER_FOLD_VERSION.cast_signed();
        execute(client, sql, &[&id.0, &version, &fold, &state]).await?;
        let seal = |place: &_, item: &_| self.sealed_item(place, item);
        memory::change(client, &seal, Whose::Owner(id), &of_owner(&events)).await?;
        Ok(Some(Ok(after)))
    }
}
