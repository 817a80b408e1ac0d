//! The receipt of a plan's work: what its executions cost, how long they took, and what they made of which files.

use std::{collections::BTreeSet, ops::ControlFlow};

use planwright_domain::{
    effect::FileChange,
    id::{CallId, PlanId, Seq, TurnId},
    identity::SessionKey,
    plan::event::PlanEvent,
    session::SessionEvent,
    time::Time,
    turn::{Usage, event::TurnEvent},
};

use crate::{
    event_pages::for_each_event,
    ports::journal::{JournalError, Recorded},
    queries::Queries,
};

/// How many changes of files a receipt lists.
const FILES_MAX: usize = 1_000;
/// How many bytes of differences it lists.
const LISTED_BYTES_MAX: usize = 1024 * 1024;

/// What came of a plan's work, beside what its card says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptView {
    /// Which plan.
    pub plan: PlanId,
    /// What the model cost while it executed the plan, in millionths of a dollar.
    pub cost_micros: u64,
    /// When its first execution began.
    pub begun: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// What it made of files, oldest first.
    pub files: Vec<FileRow>,
    /// How many more changes there were than are listed.
    pub files_more: u64,
}

/// What a call made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// The call.
    pub call: CallId,
    /// When it ended.
    pub at: Time,
    /// What became of the file.
    pub change: FileChange,
}

impl Queries {
    /// The receipt of the session's plan, or of the one that ended last; none if it was never written.
    pub async fn receipt(
        &self,
        identity: &SessionKey,
    ) -> Result<Option<ReceiptView>, JournalError> {
        let session = self.session(identity).await?;
        let written = match (session.plan(), &session.last_ended) {
            (Some(plan), _) => plan.revisions.last().map(|seq| (plan.id, *seq)),
            (None, Some(ended)) => ended.revision.map(|seq| (ended.plan, seq)),
            (None, None) => None,
        };
        // What is executed is its last revision: all of its work stands after that.
        let Some((plan, since)) = written else { return Ok(None) };
        let mut fold = Fold::new(plan);
        for_each_event(&*self.journal, identity, since, |recorded| {
            fold.take(recorded);
            let is_over = fold.is_over();
            Ok::<_, JournalError>(if is_over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })
        .await?;
        Ok(Some(fold.view))
    }
}

struct Fold {
    view: ReceiptView,
    /// Where the causes of its executions stand.
    causes: BTreeSet<Seq>,
    /// The turns that executed it.
    turns: BTreeSet<TurnId>,
    /// The one that does now.
    turn: Option<TurnId>,
    /// The calls that were made under its lease.
    calls: BTreeSet<CallId>,
    /// Those whose result may still come.
    open: BTreeSet<CallId>,
    diff_bytes: usize,
}

impl Fold {
    fn new(plan: PlanId) -> Self {
        let (begun, ended, files) = (None, None, Vec::new());
        let view = ReceiptView { plan, cost_micros: 0, begun, ended, files, files_more: 0 };
        Self {
            view,
            causes: BTreeSet::new(),
            turns: BTreeSet::new(),
            turn: None,
            calls: BTreeSet::new(),
            open: BTreeSet::new(),
            diff_bytes: 0,
        }
    }

    /// A plan may end while a call is under way, and before the turn does that executed it.
    fn is_over(&self) -> bool {
        self.view.ended.is_some() && self.turn.is_none() && self.open.is_empty()
    }

    fn take(&mut self, recorded: Recorded) {
        let Recorded { seq, at, event, .. } = recorded;
        match event {
            SessionEvent::Plan(event) => self.plan(seq, at, &event),
            SessionEvent::Turn(event) => self.turn(at, event),
            SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Auto(_)
            | SessionEvent::Memory(_)
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::Logged { .. } => {}
        }
    }

    fn plan(&mut self, seq: Seq, at: Time, event: &PlanEvent) {
        let this = self.view.plan;
        if let PlanEvent::ExecutionStarted { plan, .. } | PlanEvent::StepQueued { plan, .. } = event
            && *plan == this
        {
            self.view.begun.get_or_insert(at);
            self.causes.insert(seq);
        }
        if let PlanEvent::PlanEnded { plan, .. } = event
            && *plan == this
        {
            self.view.ended = Some(at);
        }
    }

    fn turn(&mut self, at: Time, event: TurnEvent) {
        if let TurnEvent::TurnStarted { turn, queued, .. } = &event {
            self.turn = self.causes.contains(queued).then_some(*turn);
            self.turns.extend(self.turn);
        } else if let TurnEvent::TurnFinished { turn, .. } = &event
            && self.turn == Some(*turn)
        {
            self.turn = None;
        } else if let TurnEvent::ModelAnswered { turn, answer, .. } = &event {
            self.spend(*turn, answer.usage);
        } else if let TurnEvent::ViewCompacted { turn, usage, .. } = &event {
            // The lease pays for it, too.
            self.spend(*turn, *usage);
        } else if let TurnEvent::CallStarted { call, plan, .. } = &event
            && *plan == Some(self.view.plan)
        {
            self.calls.insert(*call);
            self.open.insert(*call);
        } else if let TurnEvent::CallAbandoned { call, .. }
        | TurnEvent::CallOrphaned { call, .. }
        | TurnEvent::DoubtSettled { call, .. } = &event
        {
            self.open.remove(call);
        } else if let TurnEvent::CallFinished { call, result, .. } = event
            && self.calls.contains(&call)
        {
            self.open.remove(&call);
            result.changes.into_iter().for_each(|change| self.list(call, at, change));
        }
    }

    fn spend(&mut self, turn: TurnId, usage: Usage) {
        if self.turns.contains(&turn) {
            self.view.cost_micros = self.view.cost_micros.saturating_add(usage.cost_micros);
        }
    }

    /// Lists a change whole, or counts it among those that are not listed.
    fn list(&mut self, call: CallId, at: Time, change: FileChange) {
        let bytes = change.diff.as_ref().map_or(0, String::len);
        if self.view.files.len() >= FILES_MAX || self.diff_bytes + bytes > LISTED_BYTES_MAX {
            self.view.files_more += 1;
            return;
        }
        self.diff_bytes += bytes;
        self.view.files.push(FileRow { call, at, change });
    }
}

#[cfg(test)]
mod tests {
    use planwright_domain::{
        digest::Digest,
        effect::FileChange,
        id::{CallId, PlanId},
        time::Time,
    };
    use uuid::Uuid;

    use super::{FILES_MAX, Fold, LISTED_BYTES_MAX};

    fn listed(changes: usize, bytes: usize) -> (usize, u64) {
        let mut fold = Fold::new(PlanId(Uuid::nil()));
        for _ in 0..changes {
            let (path, after) = ("a".into(), Digest::of(b"a"));
            let change = FileChange { path, before: None, after, diff: Some("+".repeat(bytes)) };
            fold.list(CallId(Uuid::nil()), Time(1), change);
        }
        (fold.view.files.len(), fold.view.files_more)
    }

    #[test]
    fn what_a_receipt_has_no_room_for_is_counted() {
        assert_eq!(listed(FILES_MAX, 1), (FILES_MAX, 0));
        assert_eq!(listed(FILES_MAX + 2, 1), (FILES_MAX, 2));
        assert_eq!(listed(17, LISTED_BYTES_MAX / 16), (16, 1));
    }
}
