//! What a day came to: who decided what, what it cost, and how each slot of a schedule came out.

use planwright_domain::{
    actor::{Person, Standing},
    autonomy::event::AutoEvent,
    id::Seq,
    identity::SessionIdentity,
    log::Entry,
    session::SessionEvent,
    time::Time,
    turn::event::TurnEvent,
};
use serde::{Deserialize, Serialize};

use crate::{
    ports::journal::{JournalError, Recorded, SessionRow},
    runtime::Runtime,
};

/// How many events are read at once.
const PAGE: usize = 512;
/// How many sessions are looked at.
const SESSIONS_MAX: usize = 200;
/// How many slots are listed.
const SLOTS_MAX: usize = 200;

/// Something that a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// In which session.
    pub session: SessionIdentity,
    /// What the session is called.
    pub title: String,
    /// When.
    pub at: Time,
    /// The line of the log.
    pub entry: Entry,
}

/// A slot of a schedule, and how it came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRow {
    /// The schedule, by its title.
    pub schedule: String,
    /// When it was due.
    pub slot: Time,
    /// How it came out, in a word.
    pub verdict: String,
}

impl Runtime {
    /// What people decided since then, newest first: in this person's sessions, or in all if they may decide.
    pub async fn decided(
        &self,
        person: &Person,
        since: Time,
    ) -> Result<Vec<Decided>, JournalError> {
        let mut decided = Vec::new();
        for row in self.rows_since(person, since).await? {
            for recorded in self.events_since(&row.identity, since).await? {
                let entry = Entry::of(&recorded.event);
                let entry = entry.filter(|entry| entry.who.is_some());
                if let Some(entry) = entry.filter(|entry| entry.kind != "revision_shown") {
                    let (session, title) = (row.identity.clone(), row.title.clone());
                    decided.push(Decided { session, title, at: recorded.at, entry });
                }
            }
        }
        decided.sort_by_key(|decided| std::cmp::Reverse(decided.at));
        Ok(decided)
    }

    /// What the model has cost since then in this person's sessions, in millionths of a dollar.
    pub async fn spent(&self, person: &Person, since: Time) -> Result<u64, JournalError> {
        let mut spent = 0;
        for row in self.sessions(&person.id, SESSIONS_MAX).await? {
            if row.updated < since {
                continue;
            }
            for recorded in self.events_since(&row.identity, since).await? {
                if let SessionEvent::Turn(TurnEvent::ModelAnswered { answer, .. }) = recorded.event
                {
                    spent += answer.usage.cost_micros;
                }
            }
        }
        Ok(spent)
    }

    /// The slots of a session's schedules that came out, newest first.
    pub async fn slots(&self, identity: &SessionIdentity) -> Result<Vec<SlotRow>, JournalError> {
        let (mut rows, mut titles) = (Vec::new(), std::collections::HashMap::new());
        for Recorded { event, .. } in self.events_since(identity, Time(i64::MIN)).await? {
            let SessionEvent::Auto(event) = event else { continue };
            let (schedule, slot, verdict) = match event {
                AutoEvent::ScheduleAdded { schedule, title, .. } => {
                    titles.insert(schedule, title);
                    continue;
                }
                AutoEvent::SlotsMissed { schedule, last, count, .. } => {
                    (schedule, last, format!("missed ({count})"))
                }
                AutoEvent::SlotClaimed { schedule, slot, .. } => (schedule, slot, "run".to_owned()),
                AutoEvent::SlotEnded { schedule, slot, end } => {
                    rows.retain(|row: &SlotRow| row.slot != slot || row.verdict != "run");
                    (schedule, slot, end.word().to_owned())
                }
                AutoEvent::GoalAdded { .. }
                | AutoEvent::GoalEnded { .. }
                | AutoEvent::TaskAdded { .. }
                | AutoEvent::TaskEnded { .. }
                | AutoEvent::RunStarted { .. }
                | AutoEvent::Ticked { .. }
                | AutoEvent::RunMoved { .. }
                | AutoEvent::RunPinned { .. }
                | AutoEvent::RunWarned { .. }
                | AutoEvent::RunPaused { .. }
                | AutoEvent::RunResumed { .. }
                | AutoEvent::RunEnded { .. }
                | AutoEvent::ScheduleEnded { .. } => continue,
            };
            let schedule = titles.get(&schedule).cloned().unwrap_or_default();
            rows.push(SlotRow { schedule, slot, verdict });
        }
        rows.reverse();
        rows.truncate(SLOTS_MAX);
        Ok(rows)
    }

    async fn rows_since(
        &self,
        person: &Person,
        since: Time,
    ) -> Result<Vec<SessionRow>, JournalError> {
        let owner = (person.standing != Standing::Decides).then_some(&person.id);
        let mut rows = self.ports.journal.sessions(owner, SESSIONS_MAX).await?;
        rows.retain(|row| row.updated >= since);
        Ok(rows)
    }

    /// What was recorded since then. Its beginning is searched for, so that a long session costs little.
    async fn events_since(
        &self,
        identity: &SessionIdentity,
        since: Time,
    ) -> Result<Vec<Recorded>, JournalError> {
        let journal = &self.ports.journal;
        let (mut low, mut high) = (0, journal.session(identity).await?.version.0);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = journal.events(identity, Seq(middle), 1).await?;
            match found.first() {
                Some(recorded) if recorded.at < since => low = middle + 1,
                Some(_) | None => high = middle,
            }
        }
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(Seq(low), |last: &Recorded| last.seq);
            let page = journal.events(identity, after, PAGE).await?;
            if page.is_empty() {
                return Ok(events);
            }
            events.extend(page);
        }
    }
}
