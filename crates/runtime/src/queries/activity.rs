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
    ports::journal::{
        DecisionPage, DecisionPlace, DecisionQuery, DecisionRow, JournalError, ListPlace,
        SessionPage, SessionQuery, Since,
    },
    queries::Queries,
};

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

/// Whose sessions this person sees in lists: their own alone, or everyone's if they may decide.
pub(crate) fn seen_by(person: &Person) -> Option<OwnerId> {
    (person.standing != Standing::Decides).then_some(person.owner)
}

impl Queries {
    /// The sessions that wait for a person: this person's own, or everyone's if they may decide.
    pub async fn approvals(
        &self,
        person: &Person,
        after: Option<ListPlace>,
        limit: usize,
    ) -> Result<SessionPage, JournalError> {
        let (owner, text) = (seen_by(person), String::new());
        self.journal.session_page(&SessionQuery { owner, waiting: true, text, after, limit }).await
    }

    /// What people decided since then, newest first: in this person's sessions, or in all if they may decide. A page, and where
    /// the next one begins.
    pub async fn decided(
        &self,
        person: &Person,
        since: Time,
        after: Option<DecisionPlace>,
        limit: usize,
    ) -> Result<(Vec<Decided>, Option<DecisionPlace>), JournalError> {
        let query = DecisionQuery { owner: seen_by(person), since, after, limit };
        let DecisionPage { rows, next } = self.journal.decisions(&query).await?;
        let decided = rows.into_iter().filter_map(|DecisionRow { session, title, recorded }| {
            let entry = Entry::of(&recorded.event)?;
            Some(Decided { session, title, at: recorded.at, entry })
        });
        Ok((decided.collect(), next))
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
}
