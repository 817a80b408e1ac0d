//! What is kept beside the events of a session: answers, outputs, conversations and snapshots.

use planwright_domain::{
    id::Seq,
    identity::SessionKey,
    session::{FOLD_VERSION, Session},
    time::Time,
};
use planwright_format::event::known_level;
use planwright_runtime::ports::journal::JournalError;
use rusqlite::params;

use super::Writer;
use crate::{
    journal::{outputs::SealedOutput, sealed::seal_snapshot},
    journal_sqlite::{read, sqlite, usage},
};

impl Writer {
    pub(super) fn forget_answers(&self, before: Time, limit: usize) -> Result<usize, JournalError> {
        let sql = "DELETE FROM answers WHERE (stream, command) IN
                   (SELECT stream, command FROM answers WHERE at < ?1 ORDER BY at LIMIT ?2)";
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        statement.execute(params![before.0, limit as i64]).map_err(sqlite)
    }

    /// Keeps an output; whether the session has it, which it does not if it is not there any more.
    pub(super) fn keep_output(
        &self,
        identity: &SessionKey,
        output: &SealedOutput,
    ) -> Result<bool, JournalError> {
        let sql = "INSERT OR IGNORE INTO outputs (stream, digest, body) SELECT id, ?3, ?4 FROM streams WHERE owner = ?1 AND identity = ?2";
        let (owner, text) = read::columns(identity);
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let row = params![owner, text, output.digest.0, output.body];
        if statement.execute(row).map_err(sqlite)? == 0 {
            return Ok(read::output(&self.connection, identity, output.digest)?.is_some());
        }
        let sql =
            "UPDATE streams SET bytes = bytes + ?3 WHERE owner = ?1 AND identity = ?2 RETURNING id";
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let moved = params![owner, text, output.bytes];
        let stream = statement.query_row(moved, |row| row.get(0)).map_err(sqlite)?;
        usage::uncounted(&self.connection, identity.owner.0.as_bytes(), stream)?;
        Ok(true)
    }

    pub(super) fn keep_view(
        &self,
        identity: &SessionKey,
        upto: Seq,
        form: u32,
        body: &[u8],
    ) -> Result<(), JournalError> {
        let (owner, text) = read::columns(identity);
        let sql = "INSERT OR REPLACE INTO views (stream, upto, form, body)
                   SELECT id, ?3, ?4, ?5 FROM streams WHERE owner = ?1 AND identity = ?2";
        self.execute(sql, params![owner, text, upto.0.cast_signed(), form, body])
    }

    pub(super) fn keep_snapshot(&mut self, session: &Session) -> Result<(), JournalError> {
        let stream = read::stream(&self.connection, &session.key())?;
        let Some(stream) = stream.filter(|stream| stream.snapshot < session.version) else {
            return Ok(());
        };
        let body = seal_snapshot(&mut self.packer, session, known_level())?;
        self.write_snapshot(stream.id, session.version, &body)?;
        if let Some(known) = self.streams.get_mut(&session.key()) {
            known.snapshot = session.version;
        }
        Ok(())
    }

    pub(super) fn write_snapshot(
        &self,
        stream: i64,
        version: Seq,
        body: &[u8],
    ) -> Result<(), JournalError> {
        let sql = "INSERT OR REPLACE INTO snapshots (stream, version, fold_version, body) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![stream, version.0.cast_signed(), FOLD_VERSION, body])
    }
}
