//! The conversation as it is sent to the model: a fold over the recorded events.
//!
//! Every call of an answer is followed by exactly one result, in the order of the calls, whatever
//! order the results were recorded in. What became known late is told as a note, after them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use planwright_domain::{
    autonomy::event::AutoEvent,
    command::Verdict,
    digest::Digest,
    id::{CallId, PlanId, Seq, TaskId},
    identity::SessionKey,
    openings,
    plan::{
        Revision, Strategy,
        approval::Approval,
        event::{Account, PlanEvent},
        review::Comment,
        step::{PlanStep, StepEnd},
    },
    prompt,
    session::{CorruptJournal, SessionEvent},
    turn::{
        Answer, CallStatus, ToolReply,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    engine::message_digest::{chain, link},
    event_pages::for_each_event,
    ports::{
        journal::{Journal, JournalError, Recorded},
        model::{KeptBy, Message, WireCall},
    },
};

/// One conversation, folded up to one place in its stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    pub(super) upto: Seq,
    pub(super) view_from: Seq,
    /// Where it was last summed up.
    pub(super) compacted: Option<Seq>,
    /// What was said with the person, and apart from it what was said in the turns of each task.
    #[serde(with = "pairs")]
    threads: BTreeMap<Option<TaskId>, Thread>,
    /// The thread of the turn that began last.
    here: Option<TaskId>,
    /// What each task is, in words.
    tasks: BTreeMap<TaskId, String>,
    /// Causes that wait for their turn.
    waiting: BTreeMap<Seq, Opening>,
    /// The calls of the last answer, in order, with their results.
    calls: Vec<Called>,
    /// The recorded calls that were made, with their steps.
    replayed: BTreeMap<CallId, u32>,
    /// How the steps of the plan came out.
    outcomes: BTreeMap<u32, StepEnd>,
    /// What was said of the steps that came out.
    results: BTreeMap<u32, String>,
    /// The plans of this view, in words.
    plans: Vec<(PlanId, String)>,
    revisions: BTreeMap<Digest, Arc<Revision>>,
    approval: Option<Approval>,
}

/// What was said in turns that see each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Thread {
    messages: Arc<Vec<Message>>,
    /// Where each message comes from, and how long it is.
    places: Vec<Place>,
    /// The bytes in all messages.
    bytes: usize,
    /// The chain of all messages; none before the first.
    messages_digest: Option<Digest>,
    notes: Vec<String>,
    /// What opened the last turn: it is never summed up while the turn goes on.
    opened: BTreeSet<Seq>,
    /// What carries comments that nobody replied to yet.
    comments: Option<Seq>,
    /// Up to where results were shortened when the model answered last.
    shortened: Option<Seq>,
}

/// Where a message comes from, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// The event that added it.
    pub(crate) seq: Seq,
    /// The event that it is read again from.
    pub(crate) from: Seq,
    /// Its bytes.
    pub(crate) bytes: usize,
    /// Whether it stays, whatever is summed up.
    pub(crate) stays: bool,
}

/// What the model is given of a session, for the turn that is open.
pub(crate) struct View {
    /// What was said.
    pub(crate) messages: Arc<Vec<Message>>,
    /// Where each of it comes from.
    pub(crate) places: Vec<Place>,
    /// How many bytes that is.
    pub(crate) bytes: usize,
    /// The chain of what was said.
    pub(crate) messages_digest: Digest,
    /// Up to where results were shortened when the model answered last.
    pub(crate) shortened: Option<Seq>,
}

/// A call of the last answer, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    id: CallId,
    wire_id: String,
    tool: String,
    /// Whether what it gives is from outside.
    is_outside: bool,
    /// The event that it is read again from, and what it was.
    result: Option<(Seq, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Opening {
    Task(TaskId, String),
    Message(String),
    Changes(u32, Vec<Comment>),
    Execution { again: bool },
    Step,
    Compaction,
}

/// The bytes of a message, with what every message costs besides.
pub(crate) fn bytes_of(message: &Message) -> usize {
    let words = match message {
        Message::User(text) => text.len(),
        Message::Tool { text, .. } => text.len(),
        Message::Assistant { text, calls, kept } => {
            let call = |call: &WireCall| call.tool.len() + call.arguments.len();
            let kept = kept.iter().flat_map(|kept| &kept.items).map(|kept| kept.item.len());
            text.len() + calls.iter().map(call).sum::<usize>() + kept.sum::<usize>()
        }
    };
    words + 16
}

/// A map whose keys are no texts, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<
        'de,
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    >(
        deserializer: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

impl History {
    /// Nothing yet of what was said since this place.
    pub(super) fn since(view_from: Seq) -> Self {
        Self { upto: view_from, view_from, ..Self::default() }
    }

    /// Reads what happened up to here.
    pub(super) async fn read(
        &mut self,
        journal: &dyn Journal,
        identity: &SessionKey,
        upto: Seq,
    ) -> Result<(), JournalError> {
        if self.upto >= upto {
            return Ok(());
        }
        for_each_event(journal, identity, self.upto, |recorded| {
            if recorded.seq > upto {
                return Ok(ControlFlow::Break(()));
            }
            self.apply(identity, recorded)?;
            Ok::<_, JournalError>(ControlFlow::Continue(()))
        })
        .await
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let place = size_of::<Place>() + size_of::<Message>();
        let thread = |thread: &Thread| thread.bytes + thread.places.len() * place + 256;
        let threads: usize = self.threads.values().map(thread).sum();
        // Twice, as its steps hold their words once more.
        let revisions = self.revisions.values().map(|revision| revision.markdown.len() * 2 + 512);
        let result = |called: &Called| called.result.as_ref().map_or(0, |(_, text)| text.len());
        let results = self.calls.iter().map(result);
        let kept = revisions.chain(results).sum::<usize>();
        threads + kept + self.waiting.len() * 1_024 + self.plans.len() * 64 + 1_024
    }

    pub(super) fn seen(&self) -> View {
        let thread = self.threads.get(&self.here).cloned().unwrap_or_default();
        let Thread { messages, mut places, bytes, opened, comments, shortened, .. } = thread;
        for place in &mut places {
            place.stays = opened.contains(&place.seq) || comments == Some(place.seq);
        }
        let messages_digest = thread.messages_digest.unwrap_or_else(|| chain(&[]));
        View { messages, places, bytes, messages_digest, shortened }
    }

    /// Everything up to here gives way to its summary, but for what must stay.
    fn compact(&mut self, upto: Seq, summary: &str) {
        let thread = self.threads.entry(self.here).or_default();
        let stays = |place: &Place| {
            place.seq > upto
                || thread.opened.contains(&place.seq)
                || thread.comments == Some(place.seq)
        };
        let reply = Message::User(prompt::summary_opening(summary));
        let first = Place { seq: upto, from: upto, bytes: bytes_of(&reply), stays: false };
        let (mut messages, mut places) = (vec![reply], vec![first]);
        for (message, place) in thread.messages.iter().zip(&thread.places) {
            if stays(place) {
                messages.push(message.clone());
                places.push(*place);
            }
        }
        self.compacted = Some(self.upto);
        let (newest, approved) = (self.plans.last(), self.approval.as_ref());
        self.revisions.retain(|digest, revision| {
            newest.is_some_and(|(plan, _)| *plan == revision.plan)
                || approved.is_some_and(|approval| approval.revision_digest == *digest)
        });
        thread.shortened = None;
        thread.bytes = places.iter().map(|place| place.bytes).sum();
        thread.messages_digest = Some(chain(&messages));
        (thread.messages, thread.places) = (Arc::new(messages), places);
    }

    fn apply(&mut self, identity: &SessionKey, recorded: Recorded) -> Result<(), CorruptJournal> {
        let Recorded { seq, event, .. } = recorded;
        self.upto = seq;
        match event {
            SessionEvent::MessageQueued { text, .. } => {
                self.waiting.insert(seq, Opening::Message(text));
            }
            SessionEvent::CauseWithdrawn { queued, .. } => {
                self.waiting.remove(&queued);
            }
            SessionEvent::ViewReset { .. }
            // A foreign agent keeps its own conversation.
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. }
            | SessionEvent::Memory(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_) => {}
            SessionEvent::CompactionAsked { .. } => {
                self.waiting.insert(seq, Opening::Compaction);
            }
            SessionEvent::Auto(event) => self.apply_auto(seq, event),
            SessionEvent::Plan(event) => self.apply_plan(identity, seq, event)?,
            SessionEvent::Turn(event) => self.apply_turn(seq, event)?,
        }
        Ok(())
    }

    fn apply_auto(&mut self, seq: Seq, event: AutoEvent) {
        match event {
            AutoEvent::Ticked { context, words } => {
                self.waiting.insert(seq, Opening::Task(context.task_id, words));
            }
            AutoEvent::TaskAdded { task, title, .. } => {
                self.tasks.insert(task, title);
            }
            AutoEvent::TaskEnded { task, end } => {
                let title = self.tasks.remove(&task).unwrap_or_default();
                let note = format!("[Task {title:?} is {}: {}]", end.label(), end.summary());
                self.threads.entry(None).or_default().notes.push(note);
            }
            AutoEvent::RunEnded { context, .. } => {
                // Its thread ends with it, unless its turn is still open.
                if self.here != Some(context.task_id) {
                    self.threads.remove(&Some(context.task_id));
                }
            }
            AutoEvent::GoalAdded { .. }
            | AutoEvent::GoalEnded { .. }
            | AutoEvent::RunStarted { .. }
            | AutoEvent::RunMoved { .. }
            | AutoEvent::RunPinned { .. }
            | AutoEvent::RunWarned { .. }
            | AutoEvent::RunPaused { .. }
            | AutoEvent::RunResumed { .. }
            | AutoEvent::ScheduleAdded { .. }
            | AutoEvent::SlotsMissed { .. }
            | AutoEvent::SlotClaimed { .. }
            | AutoEvent::SlotEnded { .. }
            | AutoEvent::ScheduleEnded { .. } => {}
        }
    }

    /// Nobody waits for a reply to comments any more.
    fn replied(&mut self) {
        self.threads.values_mut().for_each(|thread| thread.comments = None);
    }

    fn note(&mut self, note: String) {
        self.threads.entry(self.here).or_default().notes.push(note);
    }

    fn apply_plan(
        &mut self,
        identity: &SessionKey,
        seq: Seq,
        event: PlanEvent,
    ) -> Result<(), CorruptJournal> {
        match event {
            PlanEvent::RevisionAdded { revision, digest, .. } => {
                if revision.digest(identity) != digest {
                    return Err(CorruptJournal::new(
                        seq,
                        "a revision that does not match its digest",
                    ));
                }
                if let Some((_, words)) = self.plans.iter_mut().find(|(id, _)| *id == revision.plan)
                {
                    *words = format!("revision {}: {}", revision.number, revision.title);
                }
                self.revisions.insert(digest, Arc::from(revision));
                self.replied();
            }
            PlanEvent::ChangesRequested { digest, comments, .. } => {
                let number = self.revisions.get(&digest).map_or(0, |revision| revision.number);
                self.waiting.insert(seq, Opening::Changes(number, comments));
            }
            PlanEvent::PlanApproved { approval, digest, .. } => {
                if approval.digest() != digest {
                    return Err(CorruptJournal::new(
                        seq,
                        "an approval that does not match its digest",
                    ));
                }
                self.approval = Some(*approval);
            }
            PlanEvent::ExecutionStarted { number, .. } => {
                self.waiting.insert(seq, Opening::Execution { again: number > 1 });
            }
            PlanEvent::StepQueued { .. } => {
                self.waiting.insert(seq, Opening::Step);
            }
            PlanEvent::PlanStarted { plan, .. } => {
                self.plans.push((plan, "Drafting".into()));
                self.outcomes.clear();
                self.results.clear();
            }
            PlanEvent::StepEnded { step, end, summary } => {
                let result = summary.unwrap_or_else(|| end.label().to_owned());
                self.results.insert(step, result);
                self.outcomes.insert(step, end);
            }
            PlanEvent::PlanEnded { plan, ended, account, .. } => {
                self.replied();
                if let Some((_, words)) = self.plans.iter_mut().find(|(id, _)| *id == plan) {
                    *words = format!("{}, {}", ended.label(), account.in_words());
                }
                if let Account::Steps { .. } = account {
                    self.note(format!("[The approved plan has ended: {}.]", account.in_words()));
                }
            }
            PlanEvent::PlanFailed { summary } if !self.replayed.is_empty() => {
                self.note(format!("[The execution of the approved plan failed: {summary}]"));
            }
            PlanEvent::DraftChanged { .. }
            | PlanEvent::StepBegun { .. }
            | PlanEvent::DecisionReminded { .. }
            | PlanEvent::DecisionExpired { .. }
            | PlanEvent::RevisionShown { .. }
            | PlanEvent::BlocksSeen { .. }
            | PlanEvent::Discussed { .. }
            | PlanEvent::ExecutionPaused { .. }
            | PlanEvent::PlanFailed { .. } => {}
        }
        Ok(())
    }

    fn apply_turn(&mut self, seq: Seq, event: TurnEvent) -> Result<(), CorruptJournal> {
        match event {
            TurnEvent::TurnStarted { queued, recalled, stage, .. } => {
                self.here = match self.waiting.get(&queued) {
                    Some(Opening::Task(task, _)) => Some(*task),
                    Some(_) | None => None,
                };
                self.threads.entry(self.here).or_default().opened.clear();
                self.open(seq, queued, &prompt::turn_note(stage, &recalled))?;
            }
            TurnEvent::ModelCallStarted { entered, .. } => {
                entered.into_iter().try_for_each(|queued| self.open(seq, queued, ""))?;
            }
            TurnEvent::ModelAnswered { answer, arrival: Arrival::InTime, .. } => {
                self.answer(seq, answer);
            }
            TurnEvent::ViewCompacted { upto, summary, arrival: Arrival::InTime, .. } => self.compact(upto, &summary),
            TurnEvent::CallStarted { call, step: Some(step), .. } => {
                self.replayed.insert(call, step);
            }
            TurnEvent::CallFinished { call, result, .. } => {
                let text = match result.status {
                    CallStatus::Done => result.output,
                    CallStatus::Failed => format!("failed: {}", result.output),
                };
                self.output(seq, call, text);
            }
            TurnEvent::CallAnswered { call, reply } => {
                let text = match reply {
                    ToolReply::Text { text } => text,
                    ToolReply::Refused { words, .. } => words,
                    ToolReply::Planned => "[Planned]".into(),
                    ToolReply::Plans => self.plans.iter().map(|(plan, words)| format!("{plan}: {words}\n")).collect(),
                    ToolReply::LeftRunning => "the turn was stopped while this ran; its outcome is not known yet".into(),
                    ToolReply::Revision { digest, heading } => match self.revisions.get(&digest) {
                        Some(revision) => format!("{heading}\n\n{}", revision.markdown),
                        None => return Err(CorruptJournal::new(seq, "a revision that is not in the view")),
                    },
                };
                self.result(seq, call, text);
            }
            TurnEvent::CallInDoubt { call, .. } => {
                self.result(seq, call, "outcome unknown: the process ended while this ran; a person is asked".into());
            }
            TurnEvent::DoubtSettled { verdict, .. } => self.note(match verdict {
                Verdict::Happened => "[A person looked: the call whose outcome was unknown took effect. Do not repeat it.]".into(),
                Verdict::DidNotHappen => "[A person looked: the call whose outcome was unknown did not take effect.]".into(),
            }),
            TurnEvent::TurnFinished { end: TurnEnd::Stopped { .. }, .. } => {
                self.note("[The person stopped the turn here.]".into());
            }
            TurnEvent::ModelAnswered { arrival: Arrival::Late, .. }
            | TurnEvent::ViewCompacted { arrival: Arrival::Late, .. }
            | TurnEvent::ModelCallFailed { .. }
            | TurnEvent::TurnPaused { .. }
            | TurnEvent::TurnResumed { .. }
            | TurnEvent::LimitWarned { .. }
            | TurnEvent::ModelCallAbandoned { .. }
            | TurnEvent::ModelCallOrphaned { .. }
            | TurnEvent::CallStarted { step: None, .. }
            | TurnEvent::PermissionAsked { .. }
            | TurnEvent::PermissionDecided { .. }
            | TurnEvent::CallAbandoned { .. }
            | TurnEvent::CallOrphaned { .. }
            | TurnEvent::TurnFinished { .. } => {}
        }
        Ok(())
    }

    /// An answer of the model, with the calls that it asks for.
    fn answer(&mut self, seq: Seq, answer: Answer) {
        let calls = answer.calls.into_iter();
        let calls: Vec<_> = calls
            .map(|call| {
                let (wire_id, tool) = (call.wire_id.clone(), call.tool.clone());
                let is_outside = call.kind.effect().brings_outside();
                self.calls.push(Called { id: call.id, wire_id, tool, is_outside, result: None });
                WireCall { wire_id: call.wire_id, tool: call.tool, arguments: call.arguments }
            })
            .collect();
        if let Some(sent) = &answer.sent {
            self.threads.entry(self.here).or_default().shortened = sent.shortened;
        }
        let by = answer.sent.map(|sent| sent.model).filter(|_| !answer.kept.is_empty());
        let kept = by.map(|by| Arc::new(KeptBy { by, items: answer.kept }));
        if !answer.text.is_empty() || !calls.is_empty() {
            self.push(seq, Message::Assistant { text: answer.text, calls, kept });
        }
    }

    /// A cause enters the conversation, with this note after it.
    fn open(&mut self, seq: Seq, queued: Seq, note: &str) -> Result<(), CorruptJournal> {
        let missing = |what: &str| CorruptJournal::new(seq, what);
        let text = match self
            .waiting
            .remove(&queued)
            .ok_or_else(|| missing("a cause that never waited"))?
        {
            Opening::Message(text) | Opening::Task(_, text) => text,
            Opening::Compaction => return Ok(()),
            Opening::Changes(number, comments) => {
                self.threads.entry(self.here).or_default().comments = Some(seq);
                openings::changes_opening(number, &comments)
            }
            opening @ (Opening::Execution { .. } | Opening::Step) => {
                let approval = self
                    .approval
                    .as_ref()
                    .ok_or_else(|| missing("an execution without an approval"))?;
                let revision = self.revisions.get(&approval.revision_digest);
                let revision =
                    revision.ok_or_else(|| missing("an approval without its revision"))?;
                // Recorded calls are made without the model; it is told what came of them.
                if revision.strategy == Strategy::Collect {
                    return Ok(());
                }
                let plan = match opening {
                    Opening::Execution { again } => {
                        prompt::execution_opening(revision, approval, again)
                    }
                    Opening::Step
                    | Opening::Message(_)
                    | Opening::Task(..)
                    | Opening::Compaction
                    | Opening::Changes(..) => String::new(),
                };
                let settled = |step: &&PlanStep| {
                    self.outcomes.get(&step.number).is_some_and(StepEnd::is_settled)
                };
                match revision.steps.iter().find(|step| !settled(step)) {
                    Some(step) => format!("{plan}\n{}", prompt::step_opening(step, &self.results)),
                    None => plan,
                }
            }
        };
        self.flush_notes(seq);
        self.threads.entry(self.here).or_default().opened.insert(seq);
        self.push(seq, Message::User(format!("{text}{note}")));
        Ok(())
    }

    /// What a tool gave: labelled as from outside, unless the tool is ours.
    fn output(&mut self, seq: Seq, call: CallId, text: String) {
        if let Some(step) = self.replayed.get(&call) {
            self.note(format!("[Step {step} of the approved plan was run; from outside: {text}]"));
            return;
        }
        match self.calls.iter().find(|called| called.id == call && called.result.is_none()) {
            Some(Called { is_outside: true, .. }) => {
                self.result(seq, call, format!("{}{text}", prompt::OUTSIDE_LABEL));
            }
            Some(Called { is_outside: false, .. }) => self.result(seq, call, text),
            None => {
                self.note(format!("[A call that was left running has ended; from outside: {text}]"))
            }
        }
    }

    /// Gives a call its result; once all have theirs they enter the conversation in order.
    fn result(&mut self, seq: Seq, call: CallId, text: String) {
        match self.calls.iter_mut().find(|called| called.id == call && called.result.is_none()) {
            Some(called) => called.result = Some((seq, text)),
            None => self.note(format!("[A call that was left running has ended: {text}]")),
        }
        if self.calls.iter().all(|called| called.result.is_some()) {
            for Called { wire_id, tool, result, .. } in std::mem::take(&mut self.calls) {
                let (from, text) = result.unwrap_or((seq, String::new()));
                self.push_from(seq, from, Message::Tool { wire_id, tool, text });
            }
        }
    }

    fn flush_notes(&mut self, seq: Seq) {
        let notes =
            self.threads.get_mut(&self.here).map(|thread| std::mem::take(&mut thread.notes));
        for note in notes.unwrap_or_default() {
            self.push(seq, Message::User(note));
        }
    }

    pub(super) fn push(&mut self, seq: Seq, message: Message) {
        self.push_from(seq, seq, message);
    }

    fn push_from(&mut self, seq: Seq, from: Seq, message: Message) {
        let thread = self.threads.entry(self.here).or_default();
        let place = Place { seq, from, bytes: bytes_of(&message), stays: false };
        thread.bytes += place.bytes;
        thread.messages_digest =
            Some(link(thread.messages_digest.unwrap_or_else(|| chain(&[])), &message));
        thread.places.push(place);
        Arc::make_mut(&mut thread.messages).push(message);
    }
}
