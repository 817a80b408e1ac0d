//! Appending to one session's stream: deciding on what is stored, and storing what was decided.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, PoisonError},
};

use planwright_domain::{
    backoff::is_progress,
    id::{CommandId, Seq},
    identity::SessionKey,
    session::Session,
    time::Time,
};
use planwright_format::{
    body::Packer,
    event::{StoredEvent, known_level},
};
use planwright_runtime::{
    failpoint,
    ports::journal::{
        Answer, Append, Decide, JournalError, KeptAnswer, Recorded, Stream, Undecided,
    },
};
use rusqlite::{OptionalExtension as _, params};

use super::{Change, Group, Writer};
use crate::{
    journal::{
        LISTED_MICROS, Listed, SNAPSHOT_EVERY, due_column, last_anchor,
        outputs::SealedOutput,
        remembering::{Whose, of_session},
        sealed::{AnswerRow, event_place, seal_snapshot},
        search::has_words,
        verdicts, waiting_column,
    },
    journal_sqlite::{
        erase, memory,
        read::{self, Indexed, StreamRow},
        sqlite, usage,
    },
};

/// What was decided and packed before it was the writer's turn. It holds if the session has not moved since.
pub(in crate::journal_sqlite) struct Prepared {
    before: Seq,
    append: Append,
    rows: Vec<StoredEvent>,
}

impl Prepared {
    /// Decides on this session. What is refused, or breaks down, is left to the writer: it decides on what is stored.
    pub(in crate::journal_sqlite) fn new(
        packer: &mut Packer,
        session: &Session,
        at: Time,
        decide: &Decide,
    ) -> Option<Box<Self>> {
        let decided = panic::catch_unwind(AssertUnwindSafe(|| decide(session)));
        let append = decided.ok()?.ok()?;
        let rows = packed(packer, &session.key(), &append, |_| at).ok()?;
        Some(Box::new(Self { before: session.version, append, rows }))
    }
}

/// The events of what was decided, each with its own time, as their rows hold them.
fn packed(
    packer: &mut Packer,
    identity: &SessionKey,
    append: &Append,
    times: impl Fn(usize) -> Time,
) -> Result<Vec<StoredEvent>, JournalError> {
    let (key, level, first) = (identity.to_string(), known_level(), first_of(append));
    let row = |(number, event)| {
        let (seq, at) = (first + number as u64, times(number));
        Ok(packer.seal_event(event_place(&key, seq, at), event, level)?)
    };
    append.events.iter().enumerate().map(row).collect()
}

/// The number of the first event of what was decided.
fn first_of(append: &Append) -> u64 {
    append.after.version.0 + 1 - append.events.len() as u64
}

impl Writer {
    /// Stores a whole stream that is not there yet.
    pub(super) fn restore(
        &mut self,
        group: &Group,
        stream: Stream,
        append: Append,
        outputs: &[SealedOutput],
    ) -> Result<(bool, Option<Change>), JournalError> {
        let (_, found) = self.load(group, &stream.key)?;
        if found.is_some() || erase::is_erased(&self.connection, &stream.key)? {
            return Ok((false, None));
        }
        let at = stream.events.last().map_or(Time(0), |recorded| recorded.at);
        let times = |event: usize| stream.events.get(event).map_or(at, |recorded| recorded.at);
        let change = self.store(&stream.key, None, at, times, append, None)?;
        for (command, KeptAnswer { at, answer }) in &stream.answers {
            self.keep_answer(&stream.key, change.stream, (*command, *at), answer)?;
        }
        for output in outputs {
            self.keep_output(&stream.key, output)?;
        }
        Ok((true, Some(change)))
    }

    pub(super) fn append(
        &mut self,
        group: &Group,
        identity: &SessionKey,
        (command, at): (Option<CommandId>, Time),
        decide: &Decide,
        prepared: Option<Box<Prepared>>,
    ) -> Result<(Answer, Option<Change>), JournalError> {
        let (session, stream) = self.load(group, identity)?;
        if let (Some(stream), Some(command)) = (stream, command)
            && let Some(answer) = self.answered(identity, stream, command)?
        {
            // What was decided before is not what is stored; whoever asked goes by what is decided last.
            if prepared.is_some() {
                drop(decide(&session));
            }
            return Ok((answer, None));
        }
        let before = session.version;
        let prepared = prepared.filter(|prepared| prepared.before == before && stream.is_some());
        let (decided, rows) = match prepared.map(|prepared| *prepared) {
            Some(Prepared { append, rows, .. }) => (Ok(append), Some(rows)),
            None => (decide(&session), None),
        };
        match self.admitted(&session, decided)? {
            Err(Undecided::Corrupt(corrupt)) => Err(corrupt.into()),
            Err(Undecided::Refused(refusal)) => {
                let is_kept = refusal.is_final();
                let answer = Answer::Refused(refusal);
                if let (Some(stream), Some(command)) = (stream, command)
                    && is_kept
                {
                    self.keep_answer(identity, stream, (command, at), &answer)?;
                }
                Ok((answer, None))
            }
            Ok(append) => {
                let version = append.after.version;
                let change = self.store(identity, stream, at, |_| at, append, rows)?;
                let answer = Answer::Accepted { before, version };
                if let Some(command) = command {
                    self.keep_answer(identity, change.stream, (command, at), &answer)?;
                }
                Ok((answer, Some(change)))
            }
        }
    }

    /// What was decided, if the owner has room for it.
    pub(super) fn admitted(
        &self,
        session: &Session,
        decided: Result<Append, Undecided>,
    ) -> Result<Result<Append, Undecided>, JournalError> {
        if let Ok(Append { turns: Some(room), .. }) = &decided
            && let Err(refusal) = usage::check_room(&self.connection, session.owner, room)?
        {
            return Ok(Err(refusal.into()));
        }
        Ok(decided)
    }

    /// The session with what this group has done to it, and its row.
    pub(super) fn load(
        &mut self,
        group: &Group,
        identity: &SessionKey,
    ) -> Result<(Arc<Session>, Option<StreamRow>), JournalError> {
        if group.erased.contains(identity) {
            return Ok((Arc::new(Session::erased(identity.clone())), None));
        }
        let stream = group.streams.get(identity).or_else(|| self.streams.get(identity)).copied();
        if let (Some(session), Some(stream)) = (group.sessions.get(identity), stream) {
            return Ok((session.clone(), Some(stream)));
        }
        let warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner).get(identity);
        if let Some(session) = warm {
            let stream = match stream {
                Some(stream) => Some(stream),
                None => read::stream(&self.connection, identity)?,
            };
            // A reader may have warmed it: what is decided on is what is stored.
            if let Some(stream) = stream.filter(|stream| stream.version == session.version) {
                return Ok((session, Some(stream)));
            }
        }
        let (session, stream) = read::session(&self.connection, identity)?;
        Ok((Arc::new(session), stream))
    }

    pub(super) fn answered(
        &self,
        identity: &SessionKey,
        stream: StreamRow,
        command: CommandId,
    ) -> Result<Option<Answer>, JournalError> {
        let sql = "SELECT before, version, refusal, checksum FROM answers WHERE stream = ?1 AND command = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let row = statement
            .query_row(params![stream.id, command.0.as_bytes()], read::answer_row)
            .optional()
            .map_err(sqlite)?;
        row.map(|row| row.answer(identity, command)).transpose()
    }

    pub(super) fn keep_answer(
        &self,
        identity: &SessionKey,
        stream: StreamRow,
        (command, at): (CommandId, Time),
        answer: &Answer,
    ) -> Result<(), JournalError> {
        let AnswerRow { columns, checksum } = AnswerRow::new(identity, command, answer)?;
        let sql = "INSERT INTO answers (stream, command, before, version, refusal, checksum, at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (before, version) = (columns.before, columns.version);
        self.execute(
            sql,
            params![
                stream.id,
                command.0.as_bytes(),
                before,
                version,
                columns.refusal,
                checksum,
                at.0
            ],
        )
    }

    /// Writes the row of a stream anew, or makes it. Its events take so many bytes more.
    pub(super) fn move_stream(
        &self,
        identity: &SessionKey,
        stream: Option<StreamRow>,
        at: Time,
        append: &Append,
        bytes: i64,
    ) -> Result<StreamRow, JournalError> {
        let Append { events, after, due, waiting, turns: _ } = append;
        let version = after.version.0.cast_signed();
        let (due, waiting) = (due_column(*due), waiting_column(*waiting));
        let logged = last_anchor(first_of(append), events);
        let Listed { title, life, plan, running, takes_room, used } = Listed::of(after);
        let (tokens, cost) = (used.tokens.cast_signed(), used.cost_micros.cast_signed());
        let indexed = Indexed { listed_at: at, due, takes_room, waiting, plan };
        let stream = match stream {
            Some(stream) => {
                let sql = "UPDATE streams SET version = ?2, updated_at = ?3, title = ?4, life = ?5, running = ?6,
                           tokens = ?7, cost_micros = ?8, bytes = bytes + ?9,
                           failures = CASE WHEN parked IS NULL AND NOT ?10 THEN failures ELSE 0 END WHERE id = ?1";
                let (id, progress) = (stream.id, is_progress(events));
                self.execute(
                    sql,
                    params![id, version, at.0, title, life, running, tokens, cost, bytes, progress],
                )?;
                StreamRow { indexed: Some(self.index(stream, indexed, logged)?), ..stream }
            }
            None => {
                let sql = "INSERT INTO streams (owner, identity, version, updated_at, listed_at, due_at, waiting, title, life, plan,
                           logged, running, tokens, cost_micros, bytes, counted_tokens, counted_cost_micros, takes_room)
                           VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9, COALESCE(?10, 0), ?11, ?12, ?13, ?14, ?12, ?13, ?15)";
                let (owner, text) = read::columns(identity);
                self.execute(
                    sql,
                    params![
                        owner, text, version, at.0, due, waiting, title, life, plan, logged,
                        running, tokens, cost, bytes, takes_room
                    ],
                )?;
                let id = self.connection.last_insert_rowid();
                let (version, snapshot) = (after.version, Seq(0));
                StreamRow { id, version, snapshot, indexed: Some(indexed) }
            }
        };
        let owner = identity.owner.0.as_bytes();
        usage::uncounted(&self.connection, owner, stream.id)?;
        if has_words(Seq(first_of(append) - 1), events) {
            let sql = "INSERT OR IGNORE INTO unindexed (owner, stream) VALUES (?1, ?2)";
            self.execute(sql, params![owner, stream.id])?;
        }
        Ok(stream)
    }

    /// Writes what is in indexes, as far as it changed: what they hold then.
    fn index(
        &self,
        stream: StreamRow,
        now: Indexed,
        logged: Option<i64>,
    ) -> Result<Indexed, JournalError> {
        let StreamRow { id, indexed, .. } = stream;
        let listed_at = match indexed {
            Some(indexed) => indexed.listed_at,
            None => {
                let sql = "SELECT listed_at FROM streams WHERE id = ?1";
                let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
                Time(statement.query_row([id], |row| row.get(0)).map_err(sqlite)?)
            }
        };
        let keeps_place = now.listed_at.0.abs_diff(listed_at.0) < LISTED_MICROS.unsigned_abs();
        let now = if keeps_place { Indexed { listed_at, ..now } } else { now };
        let Indexed { due, takes_room, waiting, plan, .. } = now;
        let is_due = |indexed: Indexed| (indexed.due, indexed.takes_room) == (due, takes_room);
        if !indexed.is_some_and(is_due) {
            let sql =
                "UPDATE streams SET due_at = ?2, takes_room = ?3, parked = NULL WHERE id = ?1";
            self.execute(sql, params![id, due, takes_room])?;
        }
        let is_listed = |indexed: Indexed| {
            (indexed.listed_at, indexed.waiting, indexed.plan) == (now.listed_at, waiting, plan)
        };
        if !indexed.is_some_and(is_listed) {
            let sql = "UPDATE streams SET listed_at = ?2, waiting = ?3, plan = ?4 WHERE id = ?1";
            self.execute(sql, params![id, now.listed_at.0, waiting, plan])?;
        }
        if let Some(logged) = logged {
            self.execute("UPDATE streams SET logged = ?2 WHERE id = ?1", params![id, logged])?;
        }
        Ok(now)
    }

    /// Stores what was decided, each event with its own time. Everything is packed before anything is written; the events may
    /// have been packed before.
    pub(super) fn store(
        &mut self,
        identity: &SessionKey,
        stream: Option<StreamRow>,
        at: Time,
        times: impl Fn(usize) -> Time,
        append: Append,
        rows: Option<Vec<StoredEvent>>,
    ) -> Result<Change, JournalError> {
        let rows = match rows {
            Some(rows) => rows,
            None => packed(&mut self.packer, identity, &append, &times)?,
        };
        let (first, level) = (first_of(&append), known_level());
        let last = stream.map_or(Seq(0), |stream| stream.snapshot);
        let is_snapshot_due = append.after.version.0 >= last.0 + SNAPSHOT_EVERY;
        let after = &append.after;
        let snapshot =
            is_snapshot_due.then(|| seal_snapshot(&mut self.packer, after, level)).transpose()?;
        let bytes = rows.iter().map(|row| row.body.len() as i64).sum::<i64>();
        let mut stream = self.move_stream(identity, stream, at, &append, bytes)?;
        let Append { events, after, .. } = append;
        stream.version = after.version;
        for (seq, (number, row)) in (first..).zip(rows.into_iter().enumerate()) {
            let sql = "INSERT INTO events (id, at, kind, body) VALUES (?1, ?2, ?3, ?4)";
            let (id, at) = (read::event_id(stream.id, seq)?, times(number).0);
            self.execute(sql, params![id, at, row.kind, row.body])?;
        }
        for seq in verdicts(first, &events) {
            let sql = "INSERT INTO decisions (event, owner, at) VALUES (?1, ?2, ?3)";
            let at = times((seq - first) as usize).0;
            self.execute(
                sql,
                params![read::event_id(stream.id, seq)?, identity.owner.0.as_bytes(), at],
            )?;
        }
        let changes = of_session(&events);
        memory::change(&self.connection, &mut self.packer, Whose::Session(identity), &changes)?;
        failpoint::hit("journal.after_events");
        if let Some(body) = snapshot {
            self.write_snapshot(stream.id, after.version, &body)?;
            stream.snapshot = after.version;
        }
        failpoint::hit("journal.after_snapshot");
        let recorded = events.into_iter().enumerate().map(|(number, event)| Recorded {
            seq: Seq(first + number as u64),
            at: times(number),
            event,
        });
        Ok(Change { stream, news: recorded.collect(), session: Arc::new(after) })
    }
}
