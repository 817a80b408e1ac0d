//! Views of a session for people, read from its state and its journal.

use std::ops::ControlFlow;

use planwright_domain::{
    actor::PersonId,
    agent::{declared, is_foreign},
    diff::{self, DiffRow, Part},
    digest::Digest,
    effect::Envelope,
    id::{CallId, PlanId, Seq},
    identity::{Root, SessionIdentity, SessionKey},
    next::{Next, Waiting, next, waiting},
    outcome::{self, PlanCard, allows, outside, quick_commands},
    plan::{Ended, Plan, Revision, event::PlanEvent},
    quota::LimitReached,
    session::{Session, SessionEvent},
    time::Time,
    turn::{Usage, ask::Ask},
};
use serde::{Deserialize, Serialize};

use crate::{
    event_pages::for_each_event,
    ports::{journal::JournalError, toolbox::schemas},
    queries::Queries,
    revisions::{of_plan, revision_at},
};

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// Which session.
    pub session: SessionIdentity,
    /// How many events it has.
    pub version: Seq,
    /// The directory that it works in; none while it has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
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
    /// The call that waits for permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskView>,
    /// The limit of its owner for which a turn waits: one that is under way, or one that has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReached>,
    /// What the model cost.
    pub usage: Usage,
    /// How many tokens one request to the model may hold.
    #[serde(default)]
    pub window_tokens: usize,
    /// What people call it.
    #[serde(default)]
    pub title: String,
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

/// A call that waits for permission, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskView {
    /// The call.
    pub call: CallId,
    /// What a decision names.
    pub digest: Digest,
    /// The tool.
    pub tool: String,
    /// What it does to the world, by name.
    pub effect: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// Why it asks.
    pub why: String,
    /// What allowing it until the plan ends would cover; none if it can only be allowed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// When it is denied by itself.
    pub expires: Time,
}

impl AskView {
    fn of(ask: &Ask) -> Self {
        let pattern = ask.plan.and_then(|_| ask.aim.pattern());
        Self {
            call: ask.call,
            digest: ask.digest,
            tool: ask.tool.clone(),
            effect: ask.facts.effect.name().into(),
            arguments: ask.arguments.clone(),
            why: ask.why.clone(),
            pattern: pattern.map(|pattern| format!("{} on {}", ask.tool, pattern.in_words())),
            expires: ask.expires,
        }
    }
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
    /// What came from outside and was read before it was written, if it is the current one and anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
}

/// What changed between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffView {
    /// The earlier revision.
    pub from: u32,
    /// The later one.
    pub to: u32,
    /// What the earlier one is to the reader.
    pub since: String,
    /// The rows that lead from one to the other.
    pub rows: Vec<DiffRow>,
    /// What became of each step or section.
    pub parts: Vec<Part>,
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

impl Queries {
    /// Where a session stands.
    pub async fn status(&self, identity: &SessionKey) -> Result<StatusView, JournalError> {
        let session = self.session(identity).await?;
        Ok(StatusView {
            session: identity.identity.clone(),
            version: session.version,
            root: session.root.clone(),
            plan_active: session.plan().is_some(),
            plan: self.card(&session),
            waiting: waiting(&session),
            quick_commands: quick_commands(&session),
            resting: next(&session).is_rest(),
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
            ask: session.ask.as_ref().map(AskView::of),
            limit: self.limit(&session).await?,
            usage: session.usage,
            window_tokens: self.model.window_tokens(),
            title: session.title.clone(),
            degraded: self.trouble(),
        })
    }

    /// The limit for which a turn of this session waits.
    async fn limit(&self, session: &Session) -> Result<Option<LimitReached>, JournalError> {
        match (&session.turn, next(session)) {
            (Some(turn), _) => Ok(turn.paused.clone()),
            (None, Next::StartTurn(_)) => self.quotas().full(session.owner).await,
            (None, _) => Ok(None),
        }
    }

    /// The card of the session's plan, or of the one that ended last.
    #[must_use]
    pub fn card(&self, session: &Session) -> Option<PlanCard> {
        let envelope = session.plan().map(|plan| self.would_lease(session, plan));
        let envelope = envelope.unwrap_or_default();
        let mut card = PlanCard::of(session, &envelope)?;
        if !card.allows.is_empty() {
            card.allows.extend(self.unconfined(&envelope));
        }
        Some(card)
    }

    /// The leased tools that this machine does not confine, in words.
    fn unconfined(&self, envelope: &Envelope) -> Option<String> {
        let tools = self.tools.toolbox.tools();
        let unconfined = tools.iter().filter(|tool| tool.is_unconfined);
        outcome::unconfined(envelope, unconfined.map(|tool| tool.spec.name.as_str()))
    }

    /// What an approval of this plan would lease now.
    fn would_lease(&self, session: &Session, plan: &Plan) -> Envelope {
        let now = self.clock.now();
        if is_foreign(session) {
            return plan.envelope(&declared(plan), now);
        }
        plan.envelope(&schemas(&*self.tools.toolbox), now)
    }

    /// A revision of the active plan, in full: the current one, or the one with this number; else the last one
    /// of the plan that ended last.
    pub async fn revision(
        &self,
        identity: &SessionKey,
        number: Option<u32>,
    ) -> Result<Option<RevisionView>, JournalError> {
        let session = self.session(identity).await?;
        let Some(plan) = session.plan() else {
            // What ended last can still be read.
            let ended = session.last_ended.as_ref().and_then(|ended| ended.revision);
            let Some(seq) = ended else { return Ok(None) };
            let (revision, digest) = revision_at(&*self.journal, identity, seq).await?;
            let is_meant = number.is_none_or(|number| number == revision.number);
            let (allows, outside) = (Vec::new(), None);
            let view = RevisionView { current: false, allows, outside, revision, digest };
            return Ok(is_meant.then_some(view));
        };
        let current = plan.current.as_ref().map(|head| head.number);
        let Some(number) = number.or(current) else { return Ok(None) };
        let found = of_plan(&*self.journal, identity, plan, number).await?;
        let envelope = self.would_lease(&session, plan);
        let allows = allows(&session, &envelope).into_iter().chain(self.unconfined(&envelope));
        Ok(found.map(|(revision, digest)| RevisionView {
            current: current == Some(number),
            allows: allows.collect(),
            outside: outside(&session).filter(|_| current == Some(number)),
            revision,
            digest,
        }))
    }

    /// What changed between two revisions of the active plan; without numbers, what changed since this
    /// person last saw or decided on it, or since the plan that it replaced.
    pub async fn diff(
        &self,
        identity: &SessionKey,
        person: &PersonId,
        numbers: Option<(u32, u32)>,
    ) -> Result<Option<DiffView>, JournalError> {
        let session = self.session(identity).await?;
        let Some(plan) = session.plan() else { return Ok(None) };
        let current = plan.current.as_ref().map_or(0, |head| head.number);
        let (from, to) = numbers.unwrap_or_else(|| (plan.read_against(person), current));
        let text = async |number| {
            let found = of_plan(&*self.journal, identity, plan, number).await?;
            Ok::<_, JournalError>(found.map(|(revision, _)| revision.markdown))
        };
        let (before, after) = (text(from).await?, text(to).await?);
        let replaced =
            session.last_ended.as_ref().filter(|ended| plan.predecessor == Some(ended.plan));
        let (before, since) = match (from, replaced.and_then(|ended| ended.revision), numbers) {
            (0, Some(seq), None) => {
                let revision = revision_at(&*self.journal, identity, seq).await?.0;
                (Some(revision.markdown), "the plan that it replaces".to_owned())
            }
            (0, _, _) => (Some(String::new()), "nothing: all of it is new".into()),
            (from, _, None) => (before, format!("revision {from}, which you saw last")),
            (from, _, Some(_)) => (before, format!("revision {from}")),
        };
        Ok(before.zip(after).map(|(before, after)| DiffView {
            from,
            to,
            since,
            rows: diff::rows(&before, &after),
            parts: diff::parts(&before, &after),
        }))
    }

    /// The plans of a session, oldest first.
    pub async fn plans(&self, identity: &SessionKey) -> Result<Vec<PlanRow>, JournalError> {
        let session = self.session(identity).await?;
        let mut rows: Vec<PlanRow> = Vec::new();
        for_each_event(&*self.journal, identity, Seq(0), |recorded| {
            if let SessionEvent::Plan(event) = recorded.event {
                list(&mut rows, event);
            }
            Ok::<_, JournalError>(ControlFlow::Continue(()))
        })
        .await?;
        if let (Some(plan), Some(row)) = (session.plan(), rows.last_mut()) {
            row.status = plan.status.label().into();
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
                row.status = Ended::label(ended).into();
            }
        }
        PlanEvent::DraftChanged { .. }
        | PlanEvent::StepQueued { .. }
        | PlanEvent::StepBegun { .. }
        | PlanEvent::StepEnded { .. }
        | PlanEvent::RevisionShown { .. }
        | PlanEvent::BlocksSeen { .. }
        | PlanEvent::Discussed { .. }
        | PlanEvent::DecisionReminded { .. }
        | PlanEvent::DecisionExpired { .. }
        | PlanEvent::ChangesRequested { .. }
        | PlanEvent::PlanApproved { .. }
        | PlanEvent::ExecutionStarted { .. }
        | PlanEvent::ExecutionPaused { .. }
        | PlanEvent::PlanFailed { .. } => {}
    }
}
