//! The one match that joins the folds of all events.

use crate::{
    model::{
        id::{PlanId, Seq},
        notebook::Removal,
        plan::{
            PlanWork,
            event::{Account, PlanEvent},
        },
        session::{
            CorruptJournal, EndedPlan, Session, SessionEvent, is_foreign,
            life::{Deletion, Life, LifeEvent},
        },
        time::Time,
        tools::{PLAN_ASK, PlanTool},
        turn::{Cause, Queued, ToolReply, Turn, Work},
    },
    rules::{
        autonomy,
        log::{self, Entry},
        notebook, plan, turn,
    },
};

/// The version of the fold. A snapshot of another version is discarded.
pub const FOLD_VERSION: u32 = 20;

/// How many characters of a first message become the title.
const TITLE_CHARS: usize = 60;

impl Session {
    /// The state after these events, which were decided together at this time.
    pub fn fold(&self, at: Time, events: &[SessionEvent]) -> Result<Self, CorruptJournal> {
        self.fold_all(events.iter().map(|event| (at, event)))
    }

    /// The state after these events, each with the time at which it was recorded.
    pub fn fold_all<'a>(
        &self,
        events: impl IntoIterator<Item = (Time, &'a SessionEvent)>,
    ) -> Result<Self, CorruptJournal> {
        events.into_iter().try_fold(self.clone(), |session, (at, event)| session.evolve(at, event))
    }

    /// Applies a fact that was recorded at this time. Never judges it: that was `decide`'s job, once.
    pub fn evolve(mut self, at: Time, event: &SessionEvent) -> Result<Self, CorruptJournal> {
        let seq = self.version.following();
        self.version = seq;
        if let Some(entry) = Entry::of(event) {
            self.log = log::head_after(self.log, seq, at, &entry);
        }
        match event {
            SessionEvent::Plan(event) => self.evolve_plan(seq, event)?,
            SessionEvent::Turn(event) => turn::evolve::evolve(&mut self, seq, event)?,
            SessionEvent::Auto(event) => autonomy::evolve::evolve(&mut self, seq, event)?,
            SessionEvent::Memory(_) => {}
            SessionEvent::Notebook(event) => notebook::evolve(&mut self, event),
            SessionEvent::Life(event) => match event {
                LifeEvent::Opened { root } => {
                    self.root = Some(root.clone());
                    self.view_from = seq;
                }
                LifeEvent::Renamed { title, .. } => self.title.clone_from(title),
                LifeEvent::Archived { .. } => self.life = Life::Archived,
                LifeEvent::Restored { .. } => self.life = Life::Open,
                LifeEvent::Deleted { by } => {
                    self.life = Life::Deleted;
                    self.deletion = Some(Deletion { by: by.id.clone(), at });
                    self.notebook.removal = Some(Removal::wanted(self.notebook.removal));
                }
            },
            SessionEvent::MessageQueued { text, .. } => {
                if self.title.is_empty() {
                    self.title = first_words(text);
                }
                self.queue.push(Queued { seq, cause: Cause::Message });
            }
            SessionEvent::CauseWithdrawn { queued, .. } => {
                self.queue.retain(|waiting| waiting.seq != *queued);
            }
            SessionEvent::CompactionAsked { .. } => {
                self.queue.push(Queued { seq, cause: Cause::Compaction });
            }
            SessionEvent::AgentCalled { call, tool, reply, .. } => {
                let acted = self.notebook.open_agent_call(*call).is_some();
                self.notebook.agent_calls.retain(|open| open.call != *call);
                if acted && self.life == Life::Deleted {
                    // It may have written a page after the pages were removed.
                    self.notebook.removal = Some(Removal::wanted(self.notebook.removal));
                }
                let reading_tools = [PlanTool::Get.name(), PlanTool::Report.name(), PLAN_ASK];
                if reading_tools.contains(&tool.as_str())
                    && !matches!(reply, ToolReply::Refused { .. })
                {
                    self.agent_looked = seq;
                }
            }
            SessionEvent::ViewReset { .. } => {
                self.view_from = seq;
                self.outside.clear();
            }
            SessionEvent::Logged { head } if *head == self.log => {}
            SessionEvent::Logged { .. } => {
                return Err(CorruptJournal::new(
                    seq,
                    "a decision that is not the one that was logged",
                ));
            }
        }
        Ok(self)
    }

    fn evolve_plan(&mut self, seq: Seq, event: &PlanEvent) -> Result<(), CorruptJournal> {
        if let PlanEvent::PlanApproved { approval, .. } = event
            && approval.root != self.root
        {
            let what = "an approval for another root than that of its session";
            return Err(CorruptJournal::new(seq, what));
        }
        let plan = self.plan().map(|plan| plan.id);
        match (event, plan) {
            // A foreign agent has no turns here: it asks for what is due.
            (
                PlanEvent::ChangesRequested { .. }
                | PlanEvent::ExecutionStarted { .. }
                | PlanEvent::StepQueued { .. },
                _,
            ) if is_foreign(self) => {}
            (PlanEvent::ChangesRequested { .. }, Some(plan)) => {
                self.queue.push(Queued { seq, cause: Cause::ChangesRequested { plan } });
            }
            (PlanEvent::ExecutionStarted { plan, .. } | PlanEvent::StepQueued { plan, .. }, _) => {
                self.queue.push(Queued { seq, cause: Cause::Execution { plan: *plan } });
            }
            (PlanEvent::RevisionAdded { revision, .. }, _) => {
                if is_foreign(self) && self.title.is_empty() {
                    self.title = first_words(&revision.title);
                }
                self.planned(revision.plan);
            }
            (PlanEvent::DraftChanged { .. }, Some(plan)) => self.planned(plan),
            (PlanEvent::StepEnded { step, .. }, Some(plan)) => {
                if let Some(turn) = &mut self.turn
                    && turn.work == (Work::Does { step: *step })
                {
                    (turn.reported, turn.planned) = (true, Some(plan));
                }
            }
            (PlanEvent::PlanFailed { .. } | PlanEvent::ExecutionPaused { .. }, Some(plan))
                if self.turn.as_ref().and_then(Turn::executes) == Some(plan) =>
            {
                self.planned(plan);
            }
            (
                PlanEvent::PlanEnded { plan, ended, account, touched, touched_more, observation },
                _,
            ) => {
                let writes = self.turn.as_ref().is_some_and(|turn| turn.executes() == Some(*plan));
                if writes || matches!(account, Account::Model { .. }) {
                    self.planned(*plan);
                }
                self.auto.plan_ended(*plan);
                let revision = self.plan().and_then(|plan| plan.revisions.last().copied());
                let title = self.plan().and_then(|plan| plan.current.as_ref());
                self.last_ended = Some(EndedPlan {
                    plan: *plan,
                    title: title.map(|head| head.title.clone()).unwrap_or_default(),
                    ended: *ended,
                    account: account.clone(),
                    touched: touched.clone(),
                    touched_more: *touched_more,
                    observation: observation.clone(),
                    revision,
                });
            }
            (_, _) => {}
        }
        self.work = plan::evolve::evolve(std::mem::take(&mut self.work), seq, event)?;
        if let (PlanEvent::RevisionAdded { .. }, PlanWork::Active(plan)) = (event, &mut self.work)
            && let Some(head) = &mut plan.current
        {
            head.outside.clone_from(&self.outside);
        }
        Ok(())
    }

    fn planned(&mut self, plan: PlanId) {
        if let Some(turn) = &mut self.turn {
            turn.planned = Some(plan);
        }
    }
}

/// The first words of a message: what a session is called until someone calls it something.
fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    line.chars().take(TITLE_CHARS).collect()
}
