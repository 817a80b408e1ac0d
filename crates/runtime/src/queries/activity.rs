//! Activity since a given time: what waits for a person, who decided what, and how each slot of a
//! schedule came out.

use planwright_domain::{
    actor::{Person, Standing},
    autonomy::event::AutoEvent,
    id::OwnerId,
    identity::SessionKey,
    log::Entry,
    session::SessionEvent,
    time::Time,
};
use serde::{Deserialize, Serialize};

use crate::{
    event_pages::for_each_event_since,
    ports::journal::{JournalError, Recorded, SessionRow, Since},
    queries::{Queries, sessions::unreadable},
};

/// How many sessions are read at once.
const SESSIONS: usize = 256;
/// How far the clocks of nodes may lie apart: the last event of a session may carry an earlier time than one before it.
const CLOCK_SKEW_MICROS_MAX: i64 = 3_600_000_000;
/// How many slots are listed.
const SLOTS_MAX: usize = 200;

/// Something that a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// In which session.
    pub session: SessionKey,
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

/// A page of the sessions that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// The sessions of this page, newest first.
    pub rows: Vec<SessionRow>,
    /// How many there are on all pages.
    pub total: u64,
}

/// Whose sessions this person sees in lists: their own alone, or everyone's if they may decide.
fn seen_by(person: &Person) -> Option<OwnerId> {
    (person.standing != Standing::Decides).then_some(person.owner)
}

impl Queries {
    /// The sessions that wait for a person: this person's own, or everyone's if they may decide.
    pub async fn approvals(
        &self,
        person: &Person,
        offset: usize,
        limit: usize,
    ) -> Result<Approvals, JournalError> {
        let (journal, owner) = (&self.journal, seen_by(person));
        let rows = journal.waiting(owner, offset, limit).await?;
        let is_last_page = !rows.is_empty() && rows.len() < limit;
        let total = if is_last_page {
            (offset + rows.len()) as u64
        } else {
            journal.waiting_count(owner).await?
        };
        Ok(Approvals { rows, total })
    }

    /// What people decided since then, newest first: in this person's sessions, or in all if they may decide.
    pub async fn decided(
        &self,
        person: &Person,
        since: Time,
    ) -> Result<Vec<Decided>, JournalError> {
        let mut decided = Vec::new();
        let since = Since { time: since, kinds: &[] };
        self.each_since(seen_by(person), since, |row, Recorded { at, event, .. }| {
            let entry = Entry::of(&event).filter(|entry| entry.who.is_some());
            if let Some(entry) = entry.filter(|entry| entry.kind != "revision_shown") {
                let (session, title) = (row.session.clone(), row.title.clone());
                decided.push(Decided { session, title, at, entry });
            }
        })
        .await?;
        decided.sort_by_key(|decided| std::cmp::Reverse(decided.at));
        Ok(decided)
    }

    /// The slots of a session's schedules that came out, newest first.
    pub async fn slots(&self, identity: &SessionKey) -> Result<Vec<SlotRow>, JournalError> {
        let (mut rows, mut titles) = (Vec::new(), std::collections::HashMap::new());
        let mut events = Vec::new();
        let since = Since { time: Time(i64::MIN), kinds: &[] };
        for_each_event_since(&*self.journal, identity, since, |recorded| {
            events.push(recorded.event);
        })
        .await?;
        for event in events {
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
                    (schedule, slot, end.label().to_owned())
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

    /// Visits what was recorded since then, in every session of this owner or of everyone.
    async fn each_since(
        &self,
        owner: Option<OwnerId>,
        since: Since,
        mut visit: impl FnMut(&SessionRow, Recorded),
    ) -> Result<(), JournalError> {
        let journal = &*self.journal;
        let active = since.time.plus_micros(-CLOCK_SKEW_MICROS_MAX);
        let mut last: Option<SessionKey> = None;
        loop {
            let rows = journal.active(owner, active, last.as_ref(), SESSIONS).await?;
            for row in &rows {
                let read = for_each_event_since(journal, &row.session, since, |recorded| {
                    visit(row, recorded)
                })
                .await;
                if let Err(error) = read {
                    unreadable(&row.session, error)?;
                }
            }
            match rows.into_iter().next_back() {
                Some(row) => last = Some(row.session),
                None => return Ok(()),
            }
        }
    }
}
