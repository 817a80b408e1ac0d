//! What belongs to an owner: a stream of its own, with its state beside it.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    actor::PersonId,
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
    codec::{unpack_owner, unpack_owner_event},
    engine,
    remembering::{Whose, of_owner},
};

pub(super) async fn read(
    client: &impl GenericClient,
    id: &PersonId,
) -> Result<Owner, JournalError> {
    let sql = "SELECT fold_version, state FROM owners WHERE id = $1";
    let kept = row(client, sql, &[&id.0]).await?;
    let kept = kept.filter(|row| row.get::<_, i32>(0).cast_unsigned() == OWNER_FOLD_VERSION);
    if let Some(owner) = kept.and_then(|row| unpack_owner(row.get(1))) {
        return Ok(owner);
    }
    let events: Vec<_> = events(client, id).await?.into_iter().map(|kept| kept.event).collect();
    Ok(Owner::new(id.clone()).fold(&events)?)
}

pub(super) async fn events(
    client: &impl GenericClient,
    id: &PersonId,
) -> Result<Vec<OwnerRecorded>, JournalError> {
    let sql = "SELECT at, body FROM owner_events WHERE owner = $1 ORDER BY seq";
    let rows = rows(client, sql, &[&id.0]).await?;
    rows.iter()
        .map(|row| {
            let event = unpack_owner_event(row.get(1))?;
            Ok(OwnerRecorded { at: Time(row.get(0)), event })
        })
        .collect()
}

pub(super) async fn owners(client: &impl GenericClient) -> Result<Vec<PersonId>, JournalError> {
    let rows = rows(client, "SELECT id FROM owners ORDER BY id COLLATE \"C\"", &[]).await?;
    Ok(rows.iter().map(|row| PersonId(row.get(0))).collect())
}

impl PostgresJournal {
    /// Decides under the owner's lock and stores.
    pub(super) async fn decide_owner(
        &self,
        client: &mut Object,
        id: &PersonId,
        at: Time,
        decide: &DecideOwner,
    ) -> Result<Result<Owner, Refusal>, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        // An owner to whom nothing has happened has no row to lock yet.
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        execute(&transaction, lock, &[&format!("owner {}", id.0)]).await?;
        let owner = read(&transaction, id).await?;
        let events = match decide(&owner) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let after = owner.fold(&events)?;
        if events.is_empty() {
            return Ok(Ok(after));
        }
        let sql = "INSERT INTO owner_events (owner, seq, at, body) VALUES ($1, $2, $3, $4)";
        for (seq, event) in (owner.version.following().0..).zip(&events) {
            let body = self.packed(event)?;
            execute(&transaction, sql, &[&id.0, &seq.cast_signed(), &at.0, &body]).await?;
        }
        let sql = "INSERT INTO owners (id, version, fold_version, state) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (id) DO UPDATE SET version = excluded.version,
                   fold_version = excluded.fold_version, state = excluded.state";
        let (version, state) = (after.version.0.cast_signed(), self.packed(&after)?);
        let fold = OWNER_FOLD_VERSION.cast_signed();
        execute(&transaction, sql, &[&id.0, &version, &fold, &state]).await?;
        let pack = |item: &_| self.packed(item);
        memory::change(&transaction, &pack, Whose::Owner(id), &of_owner(&events)).await?;
        transaction.commit().await.map_err(engine)?;
        Ok(Ok(after))
    }
}
