//! When a session is due again: after a failure, later, or now.

use planwright_domain::{backoff::again_at, id::Seq, identity::SessionKey, time::Time};
use planwright_runtime::ports::journal::{BackedOff, JournalError};
use rusqlite::{OptionalExtension as _, params};

use super::Writer;
use crate::journal_sqlite::{read, sqlite};

impl Writer {
    /// What its indexes hold is not known any more.
    fn forget_indexed(&mut self, session: &SessionKey) {
        if let Some(stream) = self.streams.get_mut(session) {
            stream.indexed = None;
        }
    }

    pub(super) fn back_off(
        &mut self,
        identity: &SessionKey,
        now: Time,
        why: &str,
    ) -> Result<BackedOff, JournalError> {
        self.forget_indexed(identity);
        let (owner, text) = read::columns(identity);
        let sql =
            "SELECT failures, life = 'deleted' FROM streams WHERE owner = ?1 AND identity = ?2";
        let found: Option<(u32, bool)> = self
            .connection
            .query_row(sql, params![owner, text], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(sqlite)?;
        let (failures, is_deleted) = found.unwrap_or_default();
        let failures = failures.saturating_add(1);
        let Some(until) = again_at(now, failures, is_deleted) else {
            let sql =
                "UPDATE streams SET failures = ?3, parked = ?4 WHERE owner = ?1 AND identity = ?2";
            self.execute(sql, params![owner, text, failures, why])?;
            return Ok(BackedOff::Parked);
        };
        let sql =
            "UPDATE streams SET failures = ?3, due_at = ?4 WHERE owner = ?1 AND identity = ?2";
        self.execute(sql, params![owner, text, failures, until.0])?;
        Ok(BackedOff::Until(until))
    }

    pub(super) fn postpone(
        &mut self,
        identity: &SessionKey,
        version: Seq,
        until: Time,
    ) -> Result<(), JournalError> {
        self.forget_indexed(identity);
        let sql =
            "UPDATE streams SET due_at = ?4 WHERE owner = ?1 AND identity = ?2 AND version = ?3";
        let (owner, text) = read::columns(identity);
        self.execute(sql, params![owner, text, version.0.cast_signed(), until.0])
    }

    pub(super) fn unpark(&mut self, identity: &SessionKey, now: Time) -> Result<(), JournalError> {
        self.forget_indexed(identity);
        let sql = "UPDATE streams SET failures = 0, due_at = CASE WHEN parked IS NULL THEN due_at ELSE ?3 END,
                   parked = NULL WHERE owner = ?1 AND identity = ?2";
        let (owner, text) = read::columns(identity);
        self.execute(sql, params![owner, text, now.0])
    }
}
