//! What is remembered: recalled for a turn, looked at and changed by a person.

use planwright_domain::{
    actor::Person,
    autonomy::AutoExecutionContext,
    command::{PersonCommand, SessionCommand},
    id::{CommandId, MemoryId, Seq},
    identity::SessionKey,
    memory::{
        Chain, Item, MemoryCommand, Scope, ScopeKind,
        rank::Recalled,
        rank::{Ranked, Why},
        select::select,
        words,
    },
    owner::OwnerCommand,
    refusal::Refusal,
    session::{Session, SessionEvent, life::may_promote},
    turn::Cause,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    ports::journal::{Answer, JournalError},
    runtime::Runtime,
};

/// How many candidates each scope gives to one question.
const CANDIDATES_MAX: usize = 512;
/// How many words of a question are looked up.
const WORDS_MAX: usize = 32;
/// How many items are listed.
const LISTED_MAX: usize = 200;

/// What is remembered, as a person looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryView {
    /// The scopes that were looked at, nearest first, with how many items of each are shown.
    pub chain: Vec<(String, usize)>,
    /// The items, with why each was found where words were asked for.
    pub items: Vec<Ranked>,
    /// How many items of other sessions an engine gave: dropped, counted, never shown.
    pub blocked: u64,
}

impl Runtime {
    /// What fits these words, in the scopes that this work may see.
    pub async fn recall(
        &self,
        session: &Session,
        context: Option<&AutoExecutionContext>,
        text: &str,
        budget_tokens: usize,
    ) -> Result<Recalled, JournalError> {
        let chain = Chain::in_session(session, context);
        let mut question = words(text);
        question.sort_unstable();
        question.dedup();
        question.truncate(WORDS_MAX);
        if question.is_empty() {
            return Ok(Recalled::default());
        }
        let found = self.ports.memory.candidates(&chain, &question, CANDIDATES_MAX).await?;
        let recalled = select(&chain, &question, found, self.ports.clock.now(), budget_tokens);
        count(&recalled);
        Ok(recalled)
    }

    /// What fits the cause of a turn that is about to begin.
    pub(crate) async fn recall_for(
        &self,
        session: &Session,
        queued: Seq,
    ) -> Result<Recalled, JournalError> {
        let Some(memory) = self.settings.memory else { return Ok(Recalled::default()) };
        let cause = session.queue.iter().find(|waiting| waiting.seq == queued);
        let Some(cause) = cause.map(|waiting| waiting.cause) else {
            return Ok(Recalled::default());
        };
        let context = session.auto.run_of(cause).map(|run| &run.context);
        let before = Seq(queued.0 - 1);
        let event = self.ports.journal.events(&session.key(), before, 1).await?;
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

    /// What a person sees of what is remembered: everything of the session, or what fits these words.
    pub async fn memory(
        &self,
        identity: &SessionKey,
        text: &str,
    ) -> Result<MemoryView, JournalError> {
        let session = self.session(identity).await?;
        let chain = Chain::in_session(&session, None);
        if text.trim().is_empty() {
            let items = self.ports.memory.everything(&chain, LISTED_MAX).await?;
            let ranked = items.into_iter().map(|item| Ranked { why: told(&item), item });
            let items: Vec<_> = ranked.collect();
            return Ok(view(&chain, items, 0));
        }
        let recalled = self.recall(&session, None, text, usize::MAX / 8).await?;
        Ok(view(&chain, recalled.items, recalled.blocked))
    }

    /// How many items this person's other sessions remember: counted for them, never shown, never looked at by a turn.
    pub async fn elsewhere(
        &self,
        person: &Person,
        identity: &SessionKey,
    ) -> Result<u64, JournalError> {
        let session = self.session(identity).await?;
        if session.owner != person.owner {
            return Ok(0);
        }
        self.ports.memory.elsewhere(&Chain::in_session(&session, None)).await
    }

    /// The one item of a session, or of what is known everywhere, whose id this is, or how it ends.
    pub async fn remembered(
        &self,
        identity: &SessionKey,
        id: &str,
    ) -> Result<Option<Item>, JournalError> {
        let session = self.session(identity).await?;
        let chain = Chain::in_session(&session, None);
        if let Ok(whole) = id.parse::<Uuid>() {
            return self.ports.memory.item(&chain, whole.into()).await;
        }
        if id.len() < 4 {
            return Ok(None);
        }
        // People name the end of an id: the beginning of those that were made together is the same.
        let found = self.memory(identity, "").await?.items.into_iter();
        let mut found = found.filter(|ranked| ranked.item.id.to_string().ends_with(id));
        Ok(match (found.next(), found.next()) {
            (Some(one), None) => Some(one.item),
            (_, _) => None,
        })
    }

    /// Makes something known everywhere. The text is what the person read.
    pub async fn promote(
        &self,
        person: &Person,
        identity: &SessionKey,
        id: MemoryId,
        text: &str,
    ) -> Result<Result<MemoryId, Refusal>, JournalError> {
        let session = self.session(identity).await?;
        if let Err(refusal) = may_promote(&session, person) {
            return Ok(Err(refusal));
        }
        let Some(item) = self.ports.memory.item(&Chain::in_session(&session, None), id).await?
        else {
            return Ok(Err(Refusal::NotThere { what: "memory".into() }));
        };
        let global = MemoryId(Uuid::new_v5(&id.0, b"global"));
        let (item, by) = (Box::new(item), person.id.clone());
        let command = OwnerCommand::Promote { item, text: text.into(), id: global, by };
        let promoted = self.own(person.owner, command).await?;
        if promoted.is_ok() {
            tracing::info!(session_identity = %identity, event = "memory_promoted");
        }
        Ok(promoted.map(|_| global))
    }

    /// Forgets something of a session, or something that is known everywhere.
    pub async fn forget(
        &self,
        person: &Person,
        identity: &SessionKey,
        command: CommandId,
        item: &Item,
    ) -> Result<Answer, JournalError> {
        if item.scope.session().is_none() {
            let forgotten = self.own(person.owner, OwnerCommand::Forget { id: item.id }).await?;
            let version = self.session(identity).await?.version;
            return Ok(match forgotten {
                Ok(_) => Answer::Accepted { before: version, version },
                Err(refusal) => Answer::Refused(refusal),
            });
        }
        let forget = PersonCommand::Memory(MemoryCommand::Forget { id: item.id });
        let forget = SessionCommand::Person(person.clone(), forget);
        self.dispatch(identity, command, forget).await
    }
}

fn view(chain: &Chain, items: Vec<Ranked>, blocked: u64) -> MemoryView {
    let of =
        |scope: &Scope| items.iter().filter(|ranked: &&Ranked| ranked.item.scope == *scope).count();
    let scopes = chain.scopes().iter().map(|scope| (scope.to_string(), of(scope))).collect();
    MemoryView { chain: scopes, items, blocked }
}

/// Why an item is listed that nobody asked for by words.
fn told(item: &Item) -> Why {
    let sure = item.confidence;
    let matched = Vec::new();
    Why { matched, fits: 0, sure, fresh: 0, score: 0 }
}

fn count(recalled: &Recalled) {
    let many = |kind| recalled.of(kind) as u64;
    metrics::counter!("memory.scope.goal.selected.count").increment(many(ScopeKind::Goal));
    metrics::counter!("memory.scope.task.selected.count").increment(many(ScopeKind::Task));
    metrics::counter!("memory.scope.cross_session_blocked.count").increment(recalled.blocked);
}
