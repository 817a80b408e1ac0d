//! What belongs to the installation: a stream of its own.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    installation::{AccountRefusal, Installation},
    time::Time,
};
use planwright_runtime::ports::journal::{DecideInstallation, JournalError};

use super::{PostgresJournal, read::rows, write::execute};
use crate::journal::{
    engine,
    sealed::{read_installation_events, seal_installation_event},
};

/// Who decides on the installation does so one after the other.
const INSTALLATION_LOCK: i64 = 0x706c_616f;

/// The installation as it stands, from what it was.
pub(super) async fn read(
    client: &impl GenericClient,
    before: &Installation,
) -> Result<Installation, JournalError> {
    let sql = "SELECT seq, at, kind, body FROM installation_events WHERE seq > $1 ORDER BY seq";
    let rows = rows(client, sql, &[&before.version.0.cast_signed()]).await?;
    let row =
        |row: &tokio_postgres::Row| Ok((row.get(0), Time(row.get(1)), row.get(2), row.get(3)));
    Ok(before.fold(&read_installation_events(before.version, rows.iter().map(row))?)?)
}

impl PostgresJournal {
    /// Decides under the installation's lock and stores.
    pub(super) async fn decide_installation(
        &self,
        client: &mut Object,
        at: Time,
        decide: &DecideInstallation,
    ) -> Result<Result<Installation, AccountRefusal>, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        execute(&transaction, "SELECT pg_advisory_xact_lock($1)", &[&INSTALLATION_LOCK]).await?;
        let before = read(&transaction, &Installation::default()).await?;
        let events = match decide(&before) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (after, level) = (before.fold(&events)?, self.level());
        let sql = "INSERT INTO installation_events (seq, at, kind, body) VALUES ($1, $2, $3, $4)";
        for (seq, event) in (before.version.following().0..).zip(&events) {
            let row =
                self.with_packer(|packer| seal_installation_event(packer, seq, at, event, level))?;
            let seq = seq.cast_signed();
            execute(&transaction, sql, &[&seq, &at.0, &row.kind, &row.body]).await?;
        }
        transaction.commit().await.map_err(engine)?;
        Ok(Ok(after))
    }
}
