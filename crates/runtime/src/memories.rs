//! Recalls what is remembered: for a turn that begins, for a call of a memory tool, for a person who looks.

use std::sync::Arc;

use planwright_domain::{
    autonomy::AutoExecutionContext,
    id::Seq,
    memory::{
        Chain, Item, Question, ScopeKind,
        apply::{Wants, wants},
        rank::Recalled,
        select::select,
    },
    session::{Session, SessionEvent},
    turn::{Cause, RequestedCall},
};

use crate::{
    ports::{
        Clock, Ports,
        journal::{Journal, JournalError},
        memory::Memory,
    },
    settings::{MemorySettings, Settings},
};

/// How many candidates each scope gives to one question.
const CANDIDATES_MAX: usize = 512;

/// What is remembered, over its port.
#[derive(Clone)]
pub(crate) struct Memories {
    pub(crate) memory: Arc<dyn Memory>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    settings: Option<MemorySettings>,
}

impl Memories {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            memory: ports.memory.clone(),
            journal: ports.journal.clone(),
            clock: ports.clock.clone(),
            settings: settings.memory,
        }
    }

    /// What fits these words, in the scopes that this work may see.
    pub(crate) async fn recall(
        &self,
        session: &Session,
        context: Option<&AutoExecutionContext>,
        text: &str,
        budget_tokens: usize,
    ) -> Result<Recalled, JournalError> {
        let chain = Chain::in_session(session, context);
        let question = Question::new(text);
        let found = self.memory.candidates(&chain, &question, CANDIDATES_MAX).await?;
        if found.iter().all(|found| found.items.is_empty()) {
            return Ok(Recalled::default());
        }
        let recalled = select(&chain, question.words(), found, self.clock.now(), budget_tokens);
        count(&recalled);
        Ok(recalled)
    }

    /// What fits the cause of a turn that is about to begin.
    pub(crate) async fn recall_for(
        &self,
        session: &Session,
        queued: Seq,
    ) -> Result<Recalled, JournalError> {
        let Some(memory) = self.settings else { return Ok(Recalled::default()) };
        let cause = session.queue.iter().find(|waiting| waiting.seq == queued);
        let Some(cause) = cause.map(|waiting| waiting.cause) else {
            return Ok(Recalled::default());
        };
        let context = session.auto.run_of(cause).map(|run| &run.context);
        let before = Seq(queued.0 - 1);
        let event = self.journal.events(&session.key(), before, 1).await?;
        let text = match (cause, event.into_iter().next().map(|recorded| recorded.event)) {
            (Cause::Message, Some(SessionEvent::MessageQueued { text, .. })) => text,
            (Cause::Tick { .. }, _) => {
                let task = context.and_then(|context| session.auto.tasks.get(&context.task_id));
                let goal = context.and_then(|context| session.auto.goals.get(&context.goal_id?));
                let title = |title: Option<&String>| title.cloned().unwrap_or_default();
                let (task, goal) = (task.map(|task| &task.title), goal.map(|goal| &goal.title));
                format!("{} {}", title(task), title(goal))
            }
            (
                Cause::Message
                | Cause::ChangesRequested { .. }
                | Cause::Execution { .. }
                | Cause::Compaction,
                _,
            ) => {
                return Ok(Recalled::default());
            }
        };
        self.recall(session, context, &text, memory.budget_tokens).await
    }

    /// Looks up what a call of a memory tool needs, from the scopes of its own turn; none if memory is off.
    pub(crate) async fn look_up(
        &self,
        session: &Session,
        context: Option<&AutoExecutionContext>,
        requested: Option<&RequestedCall>,
    ) -> Result<Option<Vec<Item>>, JournalError> {
        let Some(memory) = self.settings else { return Ok(None) };
        let found = match requested.and_then(wants) {
            None => Vec::new(),
            Some(Wants::Search(text)) => {
                let found = self.recall(session, context, &text, memory.budget_tokens).await?;
                found.items.into_iter().map(|ranked| ranked.item).collect()
            }
            Some(Wants::Item(id)) => {
                let chain = Chain::in_session(session, context);
                let found = self.memory.item(&chain, id).await?;
                found.into_iter().filter(|item| chain.admits(item)).collect()
            }
        };
        Ok(Some(found))
    }
}

fn count(recalled: &Recalled) {
    let many = |kind| recalled.of(kind) as u64;
    metrics::counter!("memory.scope.goal.selected.count").increment(many(ScopeKind::Goal));
    metrics::counter!("memory.scope.task.selected.count").increment(many(ScopeKind::Task));
    metrics::counter!("memory.scope.cross_session_blocked.count").increment(recalled.blocked);
}
