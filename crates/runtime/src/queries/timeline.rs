//! The timeline of a session: turns, answers, calls and waits, with their times.

use std::collections::HashMap;
use std::ops::ControlFlow;

use planwright_domain::{
    autonomy::{TaskEnd, event::AutoEvent},
    id::{CallId, PlanId, RunId, Seq, TurnId},
    identity::SessionKey,
    plan::{event::PlanEvent, observation::Basis},
    session::SessionEvent,
    time::Time,
    turn::{
        CallStatus, ToolReply,
        event::{TurnEnd, TurnEvent},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    event_pages::for_each_event,
    ports::journal::{JournalError, Recorded},
    queries::Queries,
};

/// The longest words of a bar.
const WORDS_MAX: usize = 160;

/// Which part of a session a timeline is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The work on one plan.
    Plan(PlanId),
    /// One run.
    Run(RunId),
}

/// A stretch of time, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// The event that it began with.
    pub seq: Seq,
    /// What it was.
    pub kind: BarKind,
    /// In a few words.
    pub words: String,
    /// When it began.
    pub begun: Time,
    /// When it ended; none while it goes on.
    pub ended: Option<Time>,
    /// How it came out.
    pub state: BarState,
    /// What there is to say of it besides.
    pub note: String,
    /// The step of the plan that it belongs to.
    pub step: Option<u32>,
}

/// What a stretch of time was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BarKind {
    /// Something was said.
    Message,
    /// A turn.
    Turn,
    /// The model was asked.
    Model,
    /// A tool was called.
    Tool,
    /// A person was waited for.
    Wait,
    /// Something became of a plan or a run.
    Mark,
}

/// How a stretch of time came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BarState {
    /// It goes on.
    Open,
    /// Well.
    Done,
    /// It failed.
    Failed,
    /// Nobody knows.
    Doubt,
    /// It was ended.
    Stopped,
}

impl Queries {
    /// What happened when in a session, or in a part of it; oldest first.
    pub async fn timeline(
        &self,
        identity: &SessionKey,
        part: Part,
    ) -> Result<Vec<Bar>, JournalError> {
        let mut fold = Fold::new(part);
        for_each_event(&*self.journal, identity, Seq(0), |recorded| {
            fold.take(&recorded);
            Ok::<_, JournalError>(ControlFlow::Continue(()))
        })
        .await?;
        Ok(fold.bars)
    }
}

/// What a bar is about, while it is open.
#[derive(PartialEq, Eq, Hash)]
enum Open {
    Turn(TurnId),
    Model(TurnId),
    Tool(CallId),
    Permission(CallId),
    Decision,
    Execution,
    Run(RunId),
    Limit(TurnId),
}

struct Fold {
    part: Part,
    /// Whether what happens now belongs to the part that is looked at.
    inside: bool,
    bars: Vec<Bar>,
    open: HashMap<Open, usize>,
    calls: HashMap<CallId, (String, String)>,
}

impl Fold {
    fn new(part: Part) -> Self {
        let inside = part == Part::Whole;
        Self { part, inside, bars: Vec::new(), open: HashMap::new(), calls: HashMap::new() }
    }

    fn begin(&mut self, at: &Recorded, about: Open, kind: BarKind, words: &str, step: Option<u32>) {
        if !self.inside {
            return;
        }
        self.open.insert(about, self.bars.len());
        self.bars.push(Bar {
            seq: at.seq,
            kind,
            words: short(words),
            begun: at.at,
            ended: None,
            state: BarState::Open,
            note: String::new(),
            step,
        });
    }

    fn end(&mut self, at: &Recorded, about: &Open, state: BarState, note: &str) {
        if let Some(bar) = self.open.remove(about).and_then(|place| self.bars.get_mut(place)) {
            (bar.ended, bar.state, bar.note) = (Some(at.at), state, short(note));
        }
    }

    fn mark(&mut self, at: &Recorded, kind: BarKind, words: &str, state: BarState) {
        if self.inside {
            self.bars.push(Bar {
                seq: at.seq,
                kind,
                words: short(words),
                begun: at.at,
                ended: Some(at.at),
                state,
                note: String::new(),
                step: None,
            });
        }
    }

    fn take(&mut self, at: &Recorded) {
        match &at.event {
            SessionEvent::Plan(event) => self.plan(at, event),
            SessionEvent::Turn(event) => self.turn(at, event),
            SessionEvent::Auto(event) => self.auto(at, event),
            SessionEvent::MessageQueued { text, .. } => {
                self.mark(at, BarKind::Message, text, BarState::Done);
            }
            SessionEvent::CauseWithdrawn { why, .. } => {
                self.mark(at, BarKind::Mark, why, BarState::Stopped);
            }
            SessionEvent::ViewReset { .. } => {
                self.mark(at, BarKind::Mark, "a new view began", BarState::Done);
            }
            SessionEvent::AgentCalled { agent, tool, arguments, reply, .. } => {
                let state = match reply {
                    ToolReply::Refused { .. } => BarState::Failed,
                    ToolReply::Text { .. }
                    | ToolReply::Revision { .. }
                    | ToolReply::Plans
                    | ToolReply::Planned
                    | ToolReply::LeftRunning => BarState::Done,
                };
                self.mark(at, BarKind::Tool, &format!("{agent}: {tool} {arguments}"), state);
            }
            SessionEvent::Memory(_)
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::Logged { .. } => {}
        }
    }

    fn plan(&mut self, at: &Recorded, event: &PlanEvent) {
        match event {
            PlanEvent::PlanStarted { plan, .. } => {
                self.inside |= self.part == Part::Plan(*plan);
                self.mark(at, BarKind::Mark, "plan work began", BarState::Done);
            }
            PlanEvent::RevisionAdded { revision, .. } => {
                self.end(at, &Open::Decision, BarState::Stopped, "a newer revision took its place");
                let words = format!("revision {}: {}", revision.number, revision.title);
                self.mark(at, BarKind::Mark, &words, BarState::Done);
                let words = format!("revision {} waits for a decision", revision.number);
                self.begin(at, Open::Decision, BarKind::Wait, &words, None);
            }
            PlanEvent::ChangesRequested { by, .. } => {
                let note = format!("changes requested by {}", by.id.0);
                self.end(at, &Open::Decision, BarState::Done, &note);
            }
            PlanEvent::PlanApproved { approval, .. } => {
                let note = format!("approved by {}", approval.by.id.0);
                self.end(at, &Open::Decision, BarState::Done, &note);
                self.mark(at, BarKind::Mark, &note, BarState::Done);
            }
            PlanEvent::DecisionExpired { .. } => {
                self.end(at, &Open::Decision, BarState::Failed, "nobody decided in time");
            }
            PlanEvent::ExecutionStarted { number, .. } => {
                self.end(at, &Open::Execution, BarState::Done, "it goes on");
                let words = format!("execution {number} starts");
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            PlanEvent::StepBegun { step, title, by } => {
                let words = format!("step {step} given to {by}: {title}");
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            PlanEvent::StepEnded { step, end, summary } => {
                let words = format!("step {step} {}", end.label_with(summary.as_deref()));
                let words =
                    summary.as_ref().map_or(words.clone(), |said| format!("{words}: {said}"));
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            PlanEvent::ExecutionPaused { reason } => {
                self.begin(at, Open::Execution, BarKind::Wait, &reason.in_words(), None);
            }
            PlanEvent::PlanFailed { summary } => {
                self.mark(at, BarKind::Mark, summary, BarState::Failed);
            }
            PlanEvent::PlanEnded { plan, ended, account, observation, .. } => {
                for about in [Open::Decision, Open::Execution] {
                    self.end(at, &about, BarState::Stopped, ended.label());
                }
                let status = observation.basis.map_or(ended.label(), Basis::status);
                let words = format!("{status}: {}", observation.claim(account));
                self.mark(at, BarKind::Mark, &words, BarState::Done);
                self.inside &= self.part != Part::Plan(*plan);
            }
            PlanEvent::DraftChanged { .. }
            | PlanEvent::DecisionReminded { .. }
            | PlanEvent::RevisionShown { .. }
            | PlanEvent::BlocksSeen { .. }
            | PlanEvent::Discussed { .. }
            | PlanEvent::StepQueued { .. } => {}
        }
    }

    fn turn(&mut self, at: &Recorded, event: &TurnEvent) {
        match event {
            TurnEvent::TurnStarted { turn, context, .. } => {
                if let Part::Run(run) = self.part {
                    self.inside = context.as_ref().is_some_and(|context| context.run_id == run);
                }
                self.begin(at, Open::Turn(*turn), BarKind::Turn, "turn", None);
            }
            TurnEvent::TurnPaused { turn, reached, .. } => {
                self.end(at, &Open::Limit(*turn), BarState::Stopped, "it was looked at again");
                self.begin(at, Open::Limit(*turn), BarKind::Wait, &reached.in_words(), None);
            }
            TurnEvent::TurnResumed { turn } => {
                self.end(at, &Open::Limit(*turn), BarState::Done, "the limit was raised");
            }
            TurnEvent::LimitWarned { near } => {
                let words = format!("most is used: {}", near.in_words());
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            TurnEvent::ModelCallStarted { turn, attempt, .. } => {
                self.end(at, &Open::Limit(*turn), BarState::Done, "it goes on");
                let words =
                    if *attempt > 1 { format!("model, try {attempt}") } else { "model".into() };
                self.begin(at, Open::Model(*turn), BarKind::Model, &words, None);
            }
            TurnEvent::ModelAnswered { turn, answer, .. } => {
                for call in &answer.calls {
                    self.calls.insert(call.id, (call.tool.clone(), call.arguments.clone()));
                }
                self.end(at, &Open::Model(*turn), BarState::Done, &answer.text);
            }
            TurnEvent::ModelCallFailed { turn, failure, .. } => {
                self.end(at, &Open::Model(*turn), BarState::Failed, &failure.message);
            }
            TurnEvent::ModelCallAbandoned { turn, why, .. } => {
                let note = format!("it did not begin: {why}");
                self.end(at, &Open::Model(*turn), BarState::Stopped, &note);
            }
            TurnEvent::ModelCallOrphaned { turn, .. } => {
                let note = "nobody worked on it any more; it is asked again";
                self.end(at, &Open::Model(*turn), BarState::Stopped, note);
            }
            TurnEvent::ViewCompacted { turn, messages, .. } => {
                let note = format!("{messages} messages were summed up");
                self.end(at, &Open::Model(*turn), BarState::Done, &note);
            }
            TurnEvent::CallStarted { .. }
            | TurnEvent::PermissionAsked { .. }
            | TurnEvent::PermissionDecided { .. }
            | TurnEvent::CallFinished { .. }
            | TurnEvent::CallAbandoned { .. }
            | TurnEvent::CallOrphaned { .. }
            | TurnEvent::CallInDoubt { .. } => self.call(at, event),
            TurnEvent::DoubtSettled { by, .. } => {
                let words = format!("a doubt was settled by {}", by.id.0);
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            TurnEvent::TurnFinished { turn, end } => {
                self.end_turn(at, *turn, end);
            }
            TurnEvent::CallAnswered { .. } => {}
        }
    }

    fn call(&mut self, at: &Recorded, event: &TurnEvent) {
        match event {
            TurnEvent::CallStarted { call, attempt, step, .. } => {
                let (tool, arguments) = self.calls.get(call).cloned().unwrap_or_default();
                let again = if *attempt > 1 { format!(", try {attempt}") } else { String::new() };
                let words = format!("{tool}{again} {arguments}");
                self.begin(at, Open::Tool(*call), BarKind::Tool, &words, *step);
            }
            TurnEvent::PermissionAsked { call, why, .. } => {
                self.begin(at, Open::Permission(*call), BarKind::Wait, why, None);
            }
            TurnEvent::PermissionDecided { call, by, .. } => {
                let (state, note) = match by {
                    Some(by) => (BarState::Done, format!("decided by {}", by.id.0)),
                    None => (BarState::Failed, "nobody decided in time".to_owned()),
                };
                self.end(at, &Open::Permission(*call), state, &note);
            }
            TurnEvent::CallFinished { call, result, .. } => {
                let state = match result.status {
                    CallStatus::Done => BarState::Done,
                    CallStatus::Failed => BarState::Failed,
                };
                self.end(at, &Open::Tool(*call), state, &result.output);
            }
            TurnEvent::CallAbandoned { call, why, .. } => {
                let note = format!("it did not begin: {why}");
                self.end(at, &Open::Tool(*call), BarState::Stopped, &note);
            }
            TurnEvent::CallOrphaned { call, .. } => {
                let note = "nobody worked on it any more; it is made again";
                self.end(at, &Open::Tool(*call), BarState::Stopped, note);
            }
            TurnEvent::CallInDoubt { call, .. } => {
                self.end(at, &Open::Tool(*call), BarState::Doubt, "nobody knows what became of it");
            }
            TurnEvent::TurnStarted { .. }
            | TurnEvent::TurnPaused { .. }
            | TurnEvent::TurnResumed { .. }
            | TurnEvent::LimitWarned { .. }
            | TurnEvent::ModelCallStarted { .. }
            | TurnEvent::ModelAnswered { .. }
            | TurnEvent::ModelCallFailed { .. }
            | TurnEvent::ModelCallAbandoned { .. }
            | TurnEvent::ModelCallOrphaned { .. }
            | TurnEvent::ViewCompacted { .. }
            | TurnEvent::CallAnswered { .. }
            | TurnEvent::DoubtSettled { .. }
            | TurnEvent::TurnFinished { .. } => {}
        }
    }

    fn end_turn(&mut self, at: &Recorded, turn: TurnId, end: &TurnEnd) {
        let (state, note) = match end {
            TurnEnd::Answered | TurnEnd::Planned { .. } | TurnEnd::Compacted { .. } => {
                (BarState::Done, String::new())
            }
            TurnEnd::Failed { failure } => (BarState::Failed, failure.message.clone()),
            TurnEnd::Stopped { by } => (BarState::Stopped, format!("stopped by {}", by.id.0)),
            TurnEnd::Yielded => (BarState::Stopped, "it made way for you".to_owned()),
            TurnEnd::InDoubt { .. } => {
                (BarState::Doubt, "the outcome of a call is unknown".to_owned())
            }
        };
        self.end(at, &Open::Model(turn), BarState::Stopped, "the turn ended");
        self.end(at, &Open::Limit(turn), BarState::Stopped, "the turn ended");
        self.end(at, &Open::Turn(turn), state, &note);
        if let Part::Run(_) = self.part {
            self.inside = false;
        }
    }

    /// Does this as if the run's own turn was open, if the run belongs to what is looked at.
    fn of_run(&mut self, run: RunId, act: impl FnOnce(&mut Self)) {
        if self.part == Part::Whole || self.part == Part::Run(run) {
            let inside = std::mem::replace(&mut self.inside, true);
            act(self);
            self.inside = inside;
        }
    }

    fn auto(&mut self, at: &Recorded, event: &AutoEvent) {
        match event {
            AutoEvent::RunStarted { context, .. } => self.of_run(context.run_id, |fold| {
                let words = format!("a {} begins", context.kind.name());
                fold.mark(at, BarKind::Mark, &words, BarState::Done);
            }),
            AutoEvent::RunWarned { run, meter } => self.of_run(*run, |fold| {
                let words = format!("most of its {} is used", meter.words());
                fold.mark(at, BarKind::Mark, &words, BarState::Done);
            }),
            AutoEvent::RunPaused { run, why } => self.of_run(*run, |fold| {
                fold.begin(at, Open::Run(*run), BarKind::Wait, &why.in_words(), None);
            }),
            AutoEvent::RunResumed { run, .. } => {
                self.end(at, &Open::Run(*run), BarState::Done, "it goes on");
            }
            AutoEvent::RunEnded { context, .. } => self.of_run(context.run_id, |fold| {
                fold.end(at, &Open::Run(context.run_id), BarState::Stopped, "the run ended");
                fold.mark(at, BarKind::Mark, "the run ended", BarState::Done);
            }),
            AutoEvent::TaskEnded { end, .. } => {
                let word = match end {
                    TaskEnd::Done { .. } => "reported done",
                    TaskEnd::Failed { .. } | TaskEnd::Dropped => end.label(),
                };
                let words = format!("task {word}: {}", end.summary());
                self.mark(at, BarKind::Mark, &words, BarState::Done);
            }
            AutoEvent::GoalAdded { .. }
            | AutoEvent::GoalEnded { .. }
            | AutoEvent::TaskAdded { .. }
            | AutoEvent::Ticked { .. }
            | AutoEvent::RunMoved { .. }
            | AutoEvent::RunPinned { .. }
            | AutoEvent::ScheduleAdded { .. }
            | AutoEvent::SlotsMissed { .. }
            | AutoEvent::SlotClaimed { .. }
            | AutoEvent::SlotEnded { .. }
            | AutoEvent::ScheduleEnded { .. } => {}
        }
    }
}

/// The first line, cut where it is long.
fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= WORDS_MAX {
        return line.to_owned();
    }
    let cut: String = line.chars().take(WORDS_MAX).collect();
    format!("{cut}…")
}
