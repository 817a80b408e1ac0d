//! What people are shown: read from the session and its journal, never decided here.

use planwright_domain::{
    diff::{self, DiffRow},
    digest::Digest,
    id::{CallId, PlanId, Seq},
    identity::SessionIdentity,
    next::{Next, Waiting, next, waiting},
    outcome::{PlanCard, quick_commands},
    plan::{Ended, Plan, PlanEvent, Revision},
    session::{CorruptJournal, Session, SessionEvent},
    turn::Usage,
};
use serde::{Deserialize, Serialize};

use crate::{
    ports::{Journal, JournalError, schemas},
    runtime::Runtime,
};

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// Which session.
    pub session: SessionIdentity,
    /// How many events it has.
    pub version: Seq,
    /// Whether plan work is active.
    pub plan_active: bool,
    /// The plan, or the one that ended last.
    pub plan: Option<PlanCard>,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// What the person can say next.
    pub quick_commands: Vec<String>,
    /// Whether nothing is under way, here or in the queue.
    pub resting: bool,
    /// Whether a turn is open.
    pub turn_open: bool,
    /// How many causes wait for a turn.
    pub queued: usize,
    /// The calls whose outcome nobody knows.
    pub doubts: Vec<DoubtView>,
    /// What the model cost.
    pub usage: Usage,
    /// What does not work as it should, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// A call whose outcome nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtView {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments, cut for display.
    pub arguments: String,
}

/// A revision, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionView {
    /// The contents.
    pub revision: Revision,
    /// Their digest.
    pub digest: Digest,
    /// Whether it is the current one of the active plan.
    pub current: bool,
    /// What approving it would allow.
    pub allows: Vec<String>,
}

/// What changed between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffView {
    /// The earlier revision.
    pub from: u32,
    /// The later one.
    pub to: u32,
    /// The rows that lead from one to the other.
    pub rows: Vec<DiffRow>,
}

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow {
    /// Which plan.
    pub plan: PlanId,
    /// Its last title.
    pub title: String,
    /// How many revisions it has.
    pub revisions: u32,
    /// Where it stands, as people read it.
    pub status: String,
}

impl Runtime {
    /// Where a session stands.
    pub async fn status(&self, identity: &SessionIdentity) -> Result<StatusView, JournalError> {
        let session = self.session(identity).await?;
        Ok(StatusView {
            session: identity.clone(),
            version: session.version,
            plan_active: session.plan().is_some(),
            plan: self.card(&session),
            waiting: waiting(&session),
            quick_commands: quick_commands(&session),
            resting: matches!(next(&session), Next::Nothing | Next::WaitForPerson(_)),
            turn_open: session.turn.is_some(),
            queued: session.queue.len(),
            doubts: session
                .doubts
                .iter()
                .map(|(call, doubt)| DoubtView {
                    call: *call,
                    tool: doubt.tool.clone(),
                    arguments: doubt.arguments.clone(),
                })
                .collect(),
            usage: session.usage,
            degraded: self.trouble(),
        })
    }

    /// The card of the session's plan, or of the one that ended last.
    #[must_use]
    pub fn card(&self, session: &Session) -> Option<PlanCard> {
        let envelope = session.plan().map(|plan| plan.envelope(&schemas(&*self.ports.toolbox)));
        PlanCard::of(session, &envelope.unwrap_or_default())
    }

    /// A revision of the active plan, in full: the current one, or the one with this number.
    pub async fn revision(
        &self,
        identity: &SessionIdentity,
        number: Option<u32>,
    ) -> Result<Option<RevisionView>, JournalError> {
        let session = self.session(identity).await?;
        let Some(plan) = session.plan() else { return Ok(None) };
        let current = plan.current.as_ref().map(|head| head.number);
        let Some(number) = number.or(current) else { return Ok(None) };
        let found = of_plan(&*self.ports.journal, identity, plan, number).await?;
        Ok(found.map(|(revision, digest)| RevisionView {
            current: current == Some(number),
            allows: plan.envelope(&schemas(&*self.ports.toolbox)).in_words(),
            revision,
            digest,
        }))
    }

    /// What changed between two revisions of the active plan; without numbers, the last change.
    pub async fn diff(
        &self,
        identity: &SessionIdentity,
        numbers: Option<(u32, u32)>,
    ) -> Result<Option<DiffView>, JournalError> {
        let session = self.session(identity).await?;
        let Some(plan) = session.plan() else { return Ok(None) };
        let current = plan.current.as_ref().map_or(0, |head| head.number);
        let (from, to) = numbers.unwrap_or((current.saturating_sub(1), current));
        let text = async |number| {
            let found = of_plan(&*self.ports.journal, identity, plan, number).await?;
            Ok::<_, JournalError>(found.map(|(revision, _)| revision.markdown))
        };
        let (before, after) = (text(from).await?, text(to).await?);
        let before = if from == 0 { Some(String::new()) } else { before };
        Ok(before.zip(after).map(|(before, after)| DiffView {
            from,
            to,
            rows: diff::rows(&before, &after),
        }))
    }

    /// The plans of a session, oldest first.
    pub async fn plans(&self, identity: &SessionIdentity) -> Result<Vec<PlanRow>, JournalError> {
        let session = self.session(identity).await?;
        let mut rows: Vec<PlanRow> = Vec::new();
        let mut after = Seq(0);
        loop {
            let page = self.ports.journal.events(identity, after, 512).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for recorded in page {
                if let SessionEvent::Plan(event) = recorded.event {
                    list(&mut rows, event);
                }
            }
        }
        if let (Some(plan), Some(row)) = (session.plan(), rows.last_mut()) {
            row.status = plan.status.word().into();
        }
        Ok(rows)
    }
}

fn list(rows: &mut Vec<PlanRow>, event: PlanEvent) {
    match event {
        PlanEvent::PlanStarted { plan, .. } => {
            rows.push(PlanRow { plan, title: String::new(), revisions: 0, status: String::new() });
        }
        PlanEvent::RevisionAdded { revision, .. } => {
            if let Some(row) = rows.last_mut() {
                row.title = revision.title;
                row.revisions = revision.number;
            }
        }
        PlanEvent::PlanEnded { ended, .. } => {
            if let Some(row) = rows.last_mut() {
                row.status = Ended::word(ended).into();
            }
        }
        PlanEvent::DraftChanged { .. }
        | PlanEvent::StepQueued { .. }
        | PlanEvent::StepEnded { .. }
        | PlanEvent::RevisionShown { .. }
        | PlanEvent::ChangesRequested { .. }
        | PlanEvent::PlanApproved { .. }
        | PlanEvent::ExecutionStarted { .. }
        | PlanEvent::ExecutionPaused { .. }
        | PlanEvent::PlanFailed { .. } => {}
    }
}

/// The revision of this number, read at its place in the stream and held against its digest.
async fn of_plan(
    journal: &dyn Journal,
    identity: &SessionIdentity,
    plan: &Plan,
    number: u32,
) -> Result<Option<(Revision, Digest)>, JournalError> {
    let Some(seq) = plan.revision_seq(number) else { return Ok(None) };
    let found = journal.events(identity, Seq(seq.0 - 1), 1).await?.into_iter().next();
    match found.map(|recorded| recorded.event) {
        Some(SessionEvent::Plan(PlanEvent::RevisionAdded { revision, digest }))
            if revision.digest(identity) == digest =>
        {
            Ok(Some((revision, digest)))
        }
        _ => Err(CorruptJournal::new(seq, "a revision that does not match its digest").into()),
    }
}
