//! The audit log: what belongs to the installation, as a stream of its own.

use deadpool_postgres::{GenericClient, Object};
use planwright_domain::{
    id::Seq,
    installation::{
        self, AccountRefusal, INSTALLATION_FOLD_VERSION, Installation, InstallationCommand,
        InstallationEvent,
    },
    time::Time,
};
use planwright_runtime::{
    failpoint,
    ports::journal::{DecideInstallation, InstallationRecorded, JournalError, TakenHeads},
};
use tokio_postgres::Row;

use super::{
    PostgresJournal,
    read::{row, rows},
    write::execute,
};
use crate::journal::{
    EventRow, SNAPSHOT_EVERY, engine, head_at, key_of,
    sealed::{
        fold_installation, read_installation, read_installation_events, seal_installation,
        seal_installation_event,
    },
};

/// Who decides on the installation does so one after the other.
pub(super) const INSTALLATION_LOCK: i64 = 0x706c_616f;
/// One node takes up heads at a time; the others go on with what they do.
const SEQUENCER_LOCK: i64 = 0x706c_6170;

/// The installation as it stands, from what it was or from its snapshot.
pub(super) async fn read(
    client: &impl GenericClient,
    known: &Installation,
) -> Result<Installation, JournalError> {
    let mut before = known.clone();
    if known.version == Seq(0) {
        let sql = "SELECT version, body FROM installation_state WHERE fold_version = $1";
        let fold = INSTALLATION_FOLD_VERSION.cast_signed();
        let kept = row(client, sql, &[&fold]).await?;
        let kept = kept.and_then(|row| read_installation(row.get(0), row.get(1)));
        before = kept.unwrap_or(before);
    }
    fold_installation(&before, &events_after(client, before.version, i64::MAX).await?)
}

/// The entries of the audit log after this one, at most so many.
pub(super) async fn events(
    client: &impl GenericClient,
    after: Seq,
    limit: usize,
) -> Result<Vec<InstallationRecorded>, JournalError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let numbered = (after.following().0..).zip(events_after(client, after, limit).await?);
    let recorded =
        numbered.map(|(seq, (at, event))| InstallationRecorded { seq: Seq(seq), at, event });
    Ok(recorded.collect())
}

async fn events_after(
    client: &impl GenericClient,
    after: Seq,
    limit: i64,
) -> Result<Vec<(Time, InstallationEvent)>, JournalError> {
    let sql =
        "SELECT seq, at, kind, body FROM installation_events WHERE seq > $1 ORDER BY seq LIMIT $2";
    let rows = rows(client, sql, &[&after.0.cast_signed(), &limit]).await?;
    let row = |row: &Row| Ok((row.get(0), Time(row.get(1)), row.get(2), row.get(3)));
    read_installation_events(after, rows.iter().map(row))
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
        let before = read(&transaction, &self.installation.latest()).await?;
        let events = match decide(&before) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let after = self.store_installation(&transaction, &before, at, &events).await?;
        transaction.commit().await.map_err(engine)?;
        Ok(Ok(after))
    }

    pub(super) async fn store_installation(
        &self,
        client: &impl GenericClient,
        before: &Installation,
        at: Time,
        events: &[InstallationEvent],
    ) -> Result<Installation, JournalError> {
        let (after, level) = (before.fold(at, events)?, self.level());
        let sql = "INSERT INTO installation_events (seq, at, kind, body) VALUES ($1, $2, $3, $4)";
        for (seq, event) in (before.version.following().0..).zip(events) {
            let row =
                self.with_packer(|packer| seal_installation_event(packer, seq, at, event, level))?;
            let seq = seq.cast_signed();
            execute(client, sql, &[&seq, &at.0, &row.kind, &row.body]).await?;
        }
        if before.version.0 / SNAPSHOT_EVERY < after.version.0 / SNAPSHOT_EVERY {
            let body = self.with_packer(|packer| seal_installation(packer, &after, level))?;
            let sql = "INSERT INTO installation_state (id, version, fold_version, body) VALUES (1, $1, $2, $3)
                       ON CONFLICT (id) DO UPDATE SET version = $1, fold_version = $2, body = $3";
            let (version, fold) =
                (after.version.0.cast_signed(), INSTALLATION_FOLD_VERSION.cast_signed());
            execute(client, sql, &[&version, &fold, &body]).await?;
        }
        Ok(after)
    }

    /// Takes up how far the decisions of sessions have come: of streams after this one, at most so many. Nothing, while
    /// another node does.
    pub(super) async fn take_up(
        &self,
        client: &mut Object,
        at: Time,
        after: i64,
        limit: usize,
    ) -> Result<TakenHeads, JournalError> {
        let transaction = client.transaction().await.map_err(engine)?;
        let sql = "SELECT pg_try_advisory_xact_lock($1)";
        let is_ours = row(&transaction, sql, &[&SEQUENCER_LOCK]).await?;
        if !is_ours.is_some_and(|row| row.get(0)) {
            return Ok(TakenHeads::default());
        }
        execute(&transaction, "SELECT pg_advisory_xact_lock($1)", &[&INSTALLATION_LOCK]).await?;
        let sql = "SELECT id, logged, at, kind, body, owner, identity FROM streams JOIN events ON stream = id AND seq = logged
                   WHERE logged > taken AND id > $1 ORDER BY id LIMIT $2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (mut taken, mut heads) = (TakenHeads::default(), Vec::new());
        for row in rows(&transaction, sql, &[&after, &limit]).await? {
            let stream: i64 = row.get(0);
            taken.last = Some(stream);
            let seq = Seq(row.get::<_, i64>(1).cast_unsigned());
            let event = EventRow { seq, at: Time(row.get(2)), kind: row.get(3), body: row.get(4) };
            let Some(head) = head_at(&key_of(row.get(5), row.get(6))?, event) else { continue };
            let mark = "UPDATE streams SET taken = $2 WHERE id = $1";
            execute(&transaction, mark, &[&stream, &seq.0.cast_signed()]).await?;
            heads.push(head);
        }
        taken.count = heads.len();
        failpoint::hit("audit.before_entries");
        let before = read(&transaction, &self.installation.latest()).await?;
        let command = InstallationCommand::TakeHeads(heads);
        let events = installation::decide(&before, &command).unwrap_or_default();
        let after = self.store_installation(&transaction, &before, at, &events).await?;
        failpoint::hit("audit.after_entries");
        transaction.commit().await.map_err(engine)?;
        failpoint::hit("audit.after_commit");
        self.installation.keep(after);
        Ok(taken)
    }
}
