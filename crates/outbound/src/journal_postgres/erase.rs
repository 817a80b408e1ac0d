//! Erasing sessions: every row, in one transaction. What the database keeps of removed rows goes with `VACUUM`, and with its logs.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    actor::PersonId,
    id::OwnerId,
    identity::SessionKey,
    installation::{self, InstallationCommand},
    log::beginning,
    session::erasure,
    time::Time,
};
use planwright_runtime::{failpoint, ports::journal::JournalError};

use super::{
    PostgresJournal,
    installation::{INSTALLATION_LOCK, read},
    read::{locked, row},
    usage::Counted,
    write::execute,
};
use crate::journal::engine;

/// Whether a session with this key was erased.
pub(super) async fn is_erased(
    client: &impl GenericClient,
    key: &SessionKey,
) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM erased WHERE session = $1";
    Ok(row(client, sql, &[&beginning(key).0.as_slice()]).await?.is_some())
}

impl PostgresJournal {
    /// Removes every row of a session whose erasure is due, and keeps that it was there. Its memory went when it was deleted.
    pub(super) async fn erase_rows(
        &self,
        client: &mut Object,
        key: &SessionKey,
        at: Time,
    ) -> Result<bool, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        // Before the stream's row, as whoever takes up heads does.
        execute(&transaction, "SELECT pg_advisory_xact_lock($1)", &[&INSTALLATION_LOCK]).await?;
        let (session, known) = locked(&transaction, key).await?;
        let (Some(erased), Some(known)) = (erasure(&session, at), known) else { return Ok(false) };
        failpoint::hit("erase.before_rows");
        // What it used stays counted.
        self.count_in(&transaction, at, &Counted::One(known.id)).await?;
        for sql in [
            "UPDATE owners SET bytes = owners.bytes - streams.counted_bytes FROM streams
             WHERE streams.id = $1 AND owners.id = streams.owner",
            "DELETE FROM unindexed USING streams WHERE id = $1 AND unindexed.owner = streams.owner AND stream = id",
            "DELETE FROM due WHERE stream = $1",
            "DELETE FROM decisions WHERE stream = $1",
            "DELETE FROM said_words WHERE stream = $1",
            "DELETE FROM snapshots WHERE stream = $1",
            "DELETE FROM views WHERE stream = $1",
            "DELETE FROM outputs WHERE stream = $1",
            "DELETE FROM answers WHERE stream = $1",
            "DELETE FROM events WHERE stream = $1",
            "DELETE FROM streams WHERE id = $1",
        ] {
            execute(&transaction, sql, &[&known.id]).await?;
        }
        let sql = "INSERT INTO erased (session) VALUES ($1) ON CONFLICT DO NOTHING";
        execute(&transaction, sql, &[&erased.of.session.0.as_slice()]).await?;
        let before = read(&transaction, &self.installation.latest()).await?;
        let command = InstallationCommand::Erase(erased);
        let events = installation::decide(&before, &command).unwrap_or_default();
        let after = self.store_installation(&transaction, &before, at, &events).await?;
        failpoint::hit("erase.after_rows");
        transaction.commit().await.map_err(engine)?;
        self.installation.keep(after);
        self.forget(key);
        Ok(true)
    }

    /// Removes what belongs to an owner beside their sessions: the person stays known by name.
    pub(super) async fn erase_owner_rows(
        &self,
        client: &mut Object,
        owner: OwnerId,
        by: &PersonId,
        at: Time,
    ) -> Result<(), JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        execute(&transaction, "SELECT pg_advisory_xact_lock($1)", &[&INSTALLATION_LOCK]).await?;
        for sql in [
            "UPDATE owners SET version = 0, fold_version = 0, state = NULL WHERE id = $1",
            "DELETE FROM memory WHERE scope IN (SELECT id FROM memory_scopes WHERE owner = $1)",
            "DELETE FROM memory_scopes WHERE owner = $1",
            "DELETE FROM owner_events WHERE owner = $1",
        ] {
            execute(&transaction, sql, &[&owner.0]).await?;
        }
        let command = InstallationCommand::EraseOwner { owner, by: by.clone() };
        let before = read(&transaction, &self.installation.latest()).await?;
        let events = installation::decide(&before, &command).unwrap_or_default();
        let after = self.store_installation(&transaction, &before, at, &events).await?;
        transaction.commit().await.map_err(engine)?;
        self.installation.keep(after);
        Ok(())
    }
}
