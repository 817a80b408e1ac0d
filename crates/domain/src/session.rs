//! The session: a fold over one stream of events, and the one place where commands are decided.
//!
//! [`decide`] joins the deciders of plan and turn with one `match`; [`Session::evolve`] joins
//! their folds. The folded session holds only what `decide` and `next` need: texts, outputs and
//! old revisions stay in the journal.
//!
//! Must always hold:
//! - `replay-equals-state`: folding the recorded events gives the state again.
//! - `facts-only-grow`: an event is never changed or taken back; late results are added.
//! - `session-isolation`: a command on one session reads and writes that session alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    actor::{Person, PersonId},
    agent,
    autonomy::{self, Autonomy, event::AutoEvent},
    command::{Asked, Decision, Given, PersonCommand, SessionCommand, Verdict},
    digest::Digest,
    effect::Touched,
    id::{CallId, OwnerId, PlanId, Seq},
    identity::{Root, SessionIdentity, SessionKey},
    limits,
    log::{self, Entry},
    memory::{self, MemoryEvent},
    notebook::{self, Notebook, NotebookEvent, Removal},
    plan::decide::Deciding,
    plan::{
        self, Ended, PauseReason, Plan, PlanStatus, PlanWork, Progress,
        authoring::Authoring,
        event::{PlanEvent, Word},
        observation::Observation,
        refusal::PlanRefusal,
        step::StepEnd,
    },
    refusal::Refusal,
    tools::PlanTool,
    turn::{
        self, Cause, Doubt, Measure, OpenCall, Queued, Told, Turn, Usage, Work,
        decide::moved_on,
        event::{TurnEnd, TurnEvent},
        permission::Ask,
    },
};

pub mod life;

use life::{Life, LifeEvent};

/// The version of the fold. A snapshot of another version is discarded.
pub const FOLD_VERSION: u32 = 10;

/// How many characters of a first message become the title.
const TITLE_CHARS: usize = 60;

/// One session, folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Whose it is.
    pub owner: OwnerId,
    /// Which of theirs.
    pub identity: SessionIdentity,
    /// How many events it has.
    pub version: Seq,
    /// The directory that its file tools and its envelope's paths are relative to; none where the operator names no roots.
    pub root: Option<Root>,
    /// What people call it.
    pub title: String,
    /// Whether it is there.
    pub life: Life,
    /// Its goals, tasks, runs and schedules.
    pub auto: Autonomy,
    /// Its plan work.
    pub work: PlanWork,
    /// The plan that ended last, for those who come late.
    pub last_ended: Option<EndedPlan>,
    /// The open turn.
    pub turn: Option<Turn>,
    /// The causes that wait, in commit order.
    pub queue: Vec<Queued>,
    /// The effects that have started and not ended.
    pub open: BTreeMap<CallId, OpenCall>,
    /// The calls whose outcome nobody knows.
    pub doubts: BTreeMap<CallId, Doubt>,
    /// The call that waits for a person's permission.
    pub ask: Option<Ask>,
    /// What it knows of its notebook.
    pub notebook: Notebook,
    /// How the models that answered here count.
    pub measures: BTreeMap<String, Measure>,
    /// What the model cost, all in all.
    pub usage: Usage,
    /// Where a foreign agent last looked at the plan.
    pub agent_looked: Seq,
    /// Where the view that the model is given begins.
    pub view_from: Seq,
    /// The head of the decision log.
    pub log: Digest,
}

/// A plan that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedPlan {
    /// Which plan.
    pub plan: PlanId,
    /// Its last title.
    pub title: String,
    /// How it ended.
    pub ended: Ended,
    /// Whose word that is.
    pub word: Word,
    /// What its executions did to the world.
    pub touched: Vec<Touched>,
    /// How many more touched things there were than are listed.
    pub touched_more: u64,
    /// What was observed of its work, whatever anybody says.
    #[serde(default)]
    pub observation: Observation,
    /// Where in the stream its last revision stands.
    pub revision: Option<Seq>,
}

/// Everything that can happen in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// To its plan.
    Plan(PlanEvent),
    /// In its turns.
    Turn(TurnEvent),
    /// To its goals, tasks, runs and schedules.
    Auto(AutoEvent),
    /// To what is remembered in it.
    Memory(MemoryEvent),
    /// To its notebook.
    Notebook(NotebookEvent),
    /// To the session itself.
    Life(LifeEvent),
    /// A person said something; it waits for a turn.
    MessageQueued {
        /// The words.
        text: String,
        /// Who.
        by: Person,
    },
    /// A cause left the queue without a turn.
    CauseWithdrawn {
        /// The cause.
        queued: Seq,
        /// Why, in words that the person reads.
        why: String,
    },
    /// A person asked that what was said before be summed up; it waits for a turn.
    CompactionAsked {
        /// Who.
        by: Person,
    },
    /// A foreign agent called a tool, and was answered.
    AgentCalled {
        /// The call.
        call: CallId,
        /// Whose agent it is.
        of: PersonId,
        /// Who called, as it names itself.
        agent: String,
        /// The tool.
        tool: String,
        /// The arguments, cut for display.
        arguments: String,
        /// What it was told.
        told: Told,
    },
    /// A new view begins: the model is given nothing older.
    ViewReset {
        /// Who asked.
        by: Person,
    },
    /// The decision log stands so; what was decided before cannot be another.
    Logged {
        /// The head of its chain.
        head: Digest,
    },
}

/// The journal holds what cannot have happened. Only a developer can mend this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal is corrupt at event {seq}: {what}")]
pub struct CorruptJournal {
    /// Where.
    pub seq: Seq,
    /// What is wrong.
    pub what: String,
}

impl CorruptJournal {
    /// At this event, this is wrong.
    pub fn new(seq: Seq, what: impl Into<String>) -> Self {
        Self { seq, what: what.into() }
    }
}

impl Session {
    /// A session in which nothing has happened.
    #[must_use]
    pub fn new(key: SessionKey) -> Self {
        let log = log::beginning(&key);
        let SessionKey { owner, identity } = key;
        Self {
            owner,
            identity,
            log,
            version: Seq(0),
            root: None,
            title: String::new(),
            life: Life::Open,
            auto: Autonomy::default(),
            work: PlanWork::Inactive,
            last_ended: None,
            turn: None,
            queue: Vec::new(),
            open: BTreeMap::new(),
            doubts: BTreeMap::new(),
            ask: None,
            notebook: Notebook::default(),
            measures: BTreeMap::new(),
            usage: Usage::default(),
            agent_looked: Seq(0),
            view_from: Seq(0),
        }
    }

    /// The session in the store.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.owner, self.identity.clone())
    }

    /// Whether nothing has happened in it but that it began.
    #[must_use]
    pub(crate) fn is_new(&self) -> bool {
        self.version.0 == u64::from(self.root.is_some())
    }

    /// The plan it is working on.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        match &self.work {
            PlanWork::Active(plan) => Some(plan),
            PlanWork::Inactive => None,
        }
    }

    /// The state after these events.
    pub fn fold(&self, events: &[SessionEvent]) -> Result<Self, CorruptJournal> {
        events.iter().try_fold(self.clone(), Self::evolve)
    }

    /// Applies a fact. Never judges it: that was `decide`'s job, once.
    pub fn evolve(mut self, event: &SessionEvent) -> Result<Self, CorruptJournal> {
        let seq = self.version.following();
        self.version = seq;
        if let Some(entry) = Entry::of(event) {
            self.log = log::head_after(self.log, seq, &entry);
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
                LifeEvent::Deleted { .. } => {
                    self.life = Life::Deleted;
                    self.notebook.removal = Some(Removal::due(self.notebook.removal));
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
            SessionEvent::AgentCalled { call, tool, told, .. } => {
                let acted = self.notebook.open_agent_call(*call).is_some();
                self.notebook.agent_calls.retain(|open| open.call != *call);
                if acted && self.life == Life::Deleted {
                    // It may have written a page after the pages were removed.
                    self.notebook.removal = Some(Removal::due(self.notebook.removal));
                }
                let looks = [PlanTool::Get.name(), PlanTool::Report.name(), agent::PLAN_ASK];
                if looks.contains(&tool.as_str()) && !matches!(told, Told::Refused { .. }) {
                    self.agent_looked = seq;
                }
            }
            SessionEvent::ViewReset { .. } => self.view_from = seq,
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
            ) if agent::is_foreign(self) => {}
            (PlanEvent::ChangesRequested { .. }, Some(plan)) => {
                self.queue.push(Queued { seq, cause: Cause::ChangesRequested { plan } });
            }
            (PlanEvent::ExecutionStarted { plan, .. } | PlanEvent::StepQueued { plan, .. }, _) => {
                self.queue.push(Queued { seq, cause: Cause::Execution { plan: *plan } });
            }
            (PlanEvent::RevisionAdded { revision, .. }, _) => {
                if agent::is_foreign(self) && self.title.is_empty() {
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
            (PlanEvent::PlanEnded { plan, ended, word, touched, touched_more, observation }, _) => {
                let writes = self.turn.as_ref().is_some_and(|turn| turn.executes() == Some(*plan));
                if writes || matches!(word, Word::Model { .. }) {
                    self.planned(*plan);
                }
                self.auto.plan_ended(*plan);
                let revision = self.plan().and_then(|plan| plan.revisions.last().copied());
                let title = self.plan().and_then(|plan| plan.current.as_ref());
                self.last_ended = Some(EndedPlan {
                    plan: *plan,
                    title: title.map(|head| head.title.clone()).unwrap_or_default(),
                    ended: *ended,
                    word: word.clone(),
                    touched: touched.clone(),
                    touched_more: *touched_more,
                    observation: observation.clone(),
                    revision,
                });
            }
            (_, _) => {}
        }
        self.work = plan::evolve::evolve(std::mem::take(&mut self.work), seq, event)?;
        Ok(())
    }

    fn planned(&mut self, plan: PlanId) {
        if let Some(turn) = &mut self.turn {
            turn.planned = Some(plan);
        }
    }
}

/// Decides one command: events, or a refusal in words. Pure.
pub fn decide(
    session: &Session,
    asked: &Asked<SessionCommand>,
) -> Result<Vec<SessionEvent>, Refusal> {
    if session.version != Seq(0) {
        return decide_in(session, asked);
    }
    let Some(root) = life::opens_in(session, asked)? else { return decide_in(session, asked) };
    let mut events = vec![SessionEvent::Life(LifeEvent::Opened { root: root.clone() })];
    if life::wished_root(asked).is_some() {
        return Ok(events);
    }
    let opened =
        Session { version: Seq(1), view_from: Seq(1), root: Some(root), ..session.clone() };
    let decided = decide_in(&opened, asked)?;
    if decided.is_empty() {
        // What changes nothing begins nothing.
        return Ok(decided);
    }
    events.extend(decided);
    Ok(events)
}

/// The same, in a session that has begun or has no root.
fn decide_in(
    session: &Session,
    asked: &Asked<SessionCommand>,
) -> Result<Vec<SessionEvent>, Refusal> {
    let mut events = match &asked.command {
        SessionCommand::Person(person, command) => decide_person(session, asked, person, command),
        SessionCommand::Model(turn, command) => {
            turn::decide::decide_model(session, asked.at, *turn, command)
        }
        SessionCommand::Agent(call) => agent::decide(session, asked.at, call),
        SessionCommand::System(command) => turn::decide::decide_system(session, asked.at, command),
    }?;
    for event in &mut events {
        if let SessionEvent::Plan(PlanEvent::RevisionAdded { waits, .. }) = event {
            *waits = asked.policy.waits(asked.at);
        }
    }
    let followed = autonomy::react::follow(session, asked.at, &events)?;
    events.extend(followed);
    events.extend(log::anchor(session, &events).map(|head| SessionEvent::Logged { head }));
    Ok(events)
}

fn decide_person(
    session: &Session,
    asked: &Asked<SessionCommand>,
    person: &Person,
    command: &PersonCommand,
) -> Result<Vec<SessionEvent>, Refusal> {
    if session.version == Seq(0) {
        life::may_begin(session)?;
    }
    life::may_ask(session, person, command)?;
    if agent::is_foreign(session) {
        agent::may_be_told(session, command)?;
    }
    match command {
        PersonCommand::Say { text } => say(session, person, text),
        PersonCommand::Auto(command) => {
            autonomy::decide::decide(session, asked.at, person, command)
        }
        PersonCommand::Memory(command) => {
            let decided = memory::decide(session, asked.at, person, command)?;
            Ok(decided.into_iter().map(SessionEvent::Memory).collect())
        }
        PersonCommand::Notebook { on } => {
            if session.notebook.switched == Some(*on) {
                return Ok(Vec::new());
            }
            let switched = NotebookEvent::Switched { on: *on, by: person.clone() };
            Ok(vec![SessionEvent::Notebook(switched)])
        }
        PersonCommand::Life(command) => life::lives(session, person, command),
        PersonCommand::StartPlan { plan, strategy, reads } => {
            Ok(of_plan(plan::decide::start(&session.work, *plan, *strategy, *reads, person)?))
        }
        PersonCommand::EndPlan(ending) => {
            let ended = plan::decide::end(&session.work, *ending, person)?;
            Ok(ending_plan(session, person, ended, OpenTurn::StopIfItExecutes))
        }
        PersonCommand::Reset => Ok(reset(session, person)),
        PersonCommand::Compact if session.view_from == session.version => {
            Err(Refusal::NothingToCompact)
        }
        PersonCommand::Compact
            if session.queue.iter().any(|due| due.cause == Cause::Compaction) =>
        {
            Ok(Vec::new())
        }
        PersonCommand::Compact => Ok(vec![SessionEvent::CompactionAsked { by: person.clone() }]),
        PersonCommand::Stop => stop(session, person),
        PersonCommand::PausePlan => {
            let paused = plan::decide::pause(&session.work)?;
            Ok(ending_plan(session, person, paused, OpenTurn::StopIfItExecutes))
        }
        PersonCommand::EditPlan { base, markdown, fresh } => {
            plan::decide::may_decide(person, &asked.policy)?;
            edit(session, person, *base, markdown, *fresh)
        }
        PersonCommand::RecordShown { digest } => {
            Ok(of_plan(plan::rendering::shown(&session.work, *digest, person)?))
        }
        PersonCommand::MarkSeen { digest, blocks } => {
            Ok(of_plan(plan::rendering::seen(&session.work, *digest, blocks, person)?))
        }
        PersonCommand::Decide(Decision::SettleDoubt { call, verdict }) => {
            settle(session, asked, person, *call, *verdict)
        }
        PersonCommand::Decide(Decision::Permit { digest, permit }) => {
            plan::decide::may_decide(person, &asked.policy)?;
            turn::permission::decide(session, asked.at, person, *digest, permit)
        }
        PersonCommand::Decide(Decision::SkipStep { step }) if is_unsettled(session, *step) => {
            plan::decide::may_decide(person, &asked.policy)?;
            Err(PlanRefusal::StepUnderWay { step: *step }.into())
        }
        PersonCommand::Decide(decision) => {
            let doubts = session.doubts.len();
            let foreign = agent::deciding(session, decision);
            let decision = foreign.as_ref().unwrap_or(decision);
            let deciding = Deciding {
                by: person,
                at: asked.at,
                policy: &asked.policy,
                root: session.root.as_ref(),
            };
            let decided = plan::decide::decision(&session.work, doubts, deciding, decision)?;
            Ok(match decision {
                Decision::Reject { .. } => ending_plan(session, person, decided, OpenTurn::Stop),
                Decision::Approve(_)
                | Decision::RequestChanges { .. }
                | Decision::Resume
                | Decision::SkipStep { .. }
                | Decision::Permit { .. }
                | Decision::SettleDoubt { .. } => of_plan(decided),
            })
        }
    }
}

fn say(session: &Session, person: &Person, text: &str) -> Result<Vec<SessionEvent>, Refusal> {
    let (bytes, limit) = (text.len(), limits::MESSAGE_BYTES_MAX);
    if text.trim().is_empty() {
        return Err(Refusal::EmptyMessage);
    }
    if bytes > limit {
        return Err(Refusal::MessageTooLong { bytes, limit });
    }
    if session.queue.len() >= limits::QUEUE_MAX {
        return Err(Refusal::QueueFull { limit: limits::QUEUE_MAX });
    }
    let queued = SessionEvent::MessageQueued { text: text.to_owned(), by: person.clone() };
    let by = person.clone();
    let restored =
        (session.life == Life::Archived).then_some(SessionEvent::Life(LifeEvent::Restored { by }));
    Ok(restored.into_iter().chain([queued]).collect())
}

/// The first words of a message: what a session is called until someone calls it something.
fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    line.chars().take(TITLE_CHARS).collect()
}

/// A person writes the document anew. What executes or waits for the plan that it replaces ends.
fn edit(
    session: &Session,
    person: &Person,
    base: Option<Digest>,
    markdown: &str,
    fresh: PlanId,
) -> Result<Vec<SessionEvent>, Refusal> {
    let plan = plan::decide::active(&session.work)?;
    let given = Given { fresh, profiles: BTreeSet::new(), memory: None, markdown: None };
    let key = session.key();
    let writing = Authoring {
        session: &key,
        // A person's word is newer than any approval.
        turn_started: session.version.following(),
        given: &given,
    };
    let edited = plan::authoring::edit(plan, writing, base, markdown, person)?;
    let replaces = edited.iter().any(|event| matches!(event, PlanEvent::PlanEnded { .. }));
    if replaces {
        Ok(ending_plan(session, person, edited, OpenTurn::StopIfItExecutes))
    } else {
        Ok(of_plan(edited))
    }
}

/// What becomes of the open turn when a person ends or pauses plan work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenTurn {
    Stop,
    StopIfItExecutes,
}

/// The plan's events, the turn's end where it is due, and the withdrawal of what waited for it.
fn ending_plan(
    session: &Session,
    person: &Person,
    decided: Vec<PlanEvent>,
    open: OpenTurn,
) -> Vec<SessionEvent> {
    let plan = session.plan().map(|plan| plan.id);
    let stops =
        session.turn.as_ref().is_some_and(|turn| open == OpenTurn::Stop || turn.executes() == plan);
    let mut events = if stops { turn::decide::stopped(session, person) } else { Vec::new() };
    events.extend(plan.into_iter().flat_map(|plan| withdrawn(session, plan)));
    events.extend(of_plan(decided));
    events
}

/// What waits for a plan that has ended or paused leaves the queue.
pub(crate) fn withdrawn(session: &Session, plan: PlanId) -> impl Iterator<Item = SessionEvent> {
    let about = move |waiting: &&Queued| waiting.cause.plan() == Some(plan);
    session.queue.iter().filter(about).map(|waiting| SessionEvent::CauseWithdrawn {
        queued: waiting.seq,
        why: "the plan was ended, paused or replaced before its turn came".into(),
    })
}

fn stop(session: &Session, person: &Person) -> Result<Vec<SessionEvent>, Refusal> {
    match plan::decide::pause(&session.work) {
        Ok(paused) => Ok(ending_plan(session, person, paused, OpenTurn::Stop)),
        Err(_) if session.turn.is_some() => Ok(turn::decide::stopped(session, person)),
        Err(PlanRefusal::NothingToStop { .. } | PlanRefusal::WorkInactive) | Err(_) => {
            Err(Refusal::NothingRunning)
        }
    }
}

fn reset(session: &Session, person: &Person) -> Vec<SessionEvent> {
    let mut events = everything_ends(session, person);
    events.push(SessionEvent::ViewReset { by: person.clone() });
    events
}

/// Turn, queue, plan work and runs end.
pub(crate) fn everything_ends(session: &Session, person: &Person) -> Vec<SessionEvent> {
    let mut events = turn::decide::stopped(session, person);
    events.extend(session.queue.iter().map(|waiting| SessionEvent::CauseWithdrawn {
        queued: waiting.seq,
        why: "not answered: the session was reset before its turn came".into(),
    }));
    if let Some(plan) = session.plan() {
        let word = Word::Person { by: person.clone(), said: None };
        events.extend(of_plan(vec![plan::decide::ending_of(plan, Ended::Cancelled, word)]));
    }
    events.extend(autonomy::decide::end_all(session, person));
    events
}

fn settle(
    session: &Session,
    asked: &Asked<SessionCommand>,
    person: &Person,
    call: CallId,
    verdict: Verdict,
) -> Result<Vec<SessionEvent>, Refusal> {
    plan::decide::may_decide(person, &asked.policy)?;
    let doubt =
        session.doubts.get(&call).ok_or_else(|| Refusal::NoSuchDoubt { call: call.to_string() })?;
    if verdict == Verdict::DidNotHappen && asked.at < doubt.deadline {
        return Err(Refusal::DoubtTooFresh);
    }
    let settled = TurnEvent::DoubtSettled { call, verdict, by: person.clone() };
    let mut events = vec![SessionEvent::Turn(settled)];
    if session.plan().is_some_and(|plan| doubt.plan == Some(plan.id))
        && let Some(step) = doubt.step
        && verdict == Verdict::Happened
    {
        events.push(SessionEvent::Plan(plan::decide::step_ended(step, StepEnd::Done)));
    }
    let after = session.fold(&events).map_err(|corrupt| moved_on(&corrupt.to_string()))?;
    if let Some(plan) = after.plan()
        && waits_for_doubts(plan)
        && after.doubts.is_empty()
    {
        events.push(SessionEvent::Plan(plan::decide::going_on(plan)));
    }
    Ok(events)
}

/// Whether a call of this step is under way, or nobody knows what became of it.
fn is_unsettled(session: &Session, step: u32) -> bool {
    let plan = session.plan().map(|plan| plan.id);
    let of_step = |of: (Option<PlanId>, Option<u32>)| of == (plan, Some(step));
    session.open.values().any(|open| of_step((open.plan, open.step)))
        || session.doubts.values().any(|doubt| of_step((doubt.plan, doubt.step)))
}

fn waits_for_doubts(plan: &Plan) -> bool {
    matches!(plan.status, PlanStatus::Executing(_, Progress::Paused(PauseReason::InDoubt)))
}

fn of_plan(events: Vec<PlanEvent>) -> Vec<SessionEvent> {
    events.into_iter().map(SessionEvent::Plan).collect()
}

impl SessionEvent {
    /// The name of the event, as programs read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(event) => match event {
                PlanEvent::PlanStarted { .. } => "plan_started",
                PlanEvent::DraftChanged { .. } => "draft_changed",
                PlanEvent::RevisionAdded { .. } => "revision_added",
                PlanEvent::RevisionShown { .. } => "revision_shown",
                PlanEvent::BlocksSeen { .. } => "blocks_seen",
                PlanEvent::DecisionReminded { .. } => "decision_reminded",
                PlanEvent::DecisionExpired { .. } => "decision_expired",
                PlanEvent::ChangesRequested { .. } => "changes_requested",
                PlanEvent::PlanApproved { .. } => "plan_approved",
                PlanEvent::ExecutionStarted { .. } => "execution_started",
                PlanEvent::StepQueued { .. } => "step_queued",
                PlanEvent::StepBegun { .. } => "step_begun",
                PlanEvent::StepEnded { .. } => "step_ended",
                PlanEvent::ExecutionPaused { .. } => "execution_paused",
                PlanEvent::PlanFailed { .. } => "plan_failed",
                PlanEvent::PlanEnded { .. } => "plan_ended",
            },
            Self::Turn(event) => match event {
                TurnEvent::TurnStarted { .. } => "turn_started",
                TurnEvent::ModelCallStarted { .. } => "model_call_started",
                TurnEvent::ModelAnswered { .. } => "model_answered",
                TurnEvent::ModelCallFailed { .. } => "model_call_failed",
                TurnEvent::ModelCallAbandoned { .. } => "model_call_abandoned",
                TurnEvent::ModelCallOrphaned { .. } => "model_call_orphaned",
                TurnEvent::ViewCompacted { .. } => "view_compacted",
                TurnEvent::CallStarted { .. } => "call_started",
                TurnEvent::PermissionAsked { .. } => "permission_asked",
                TurnEvent::PermissionDecided { .. } => "permission_decided",
                TurnEvent::CallFinished { .. } => "call_finished",
                TurnEvent::CallAnswered { .. } => "call_answered",
                TurnEvent::CallAbandoned { .. } => "call_abandoned",
                TurnEvent::CallOrphaned { .. } => "call_orphaned",
                TurnEvent::CallInDoubt { .. } => "call_in_doubt",
                TurnEvent::DoubtSettled { .. } => "doubt_settled",
                TurnEvent::TurnFinished { end: TurnEnd::Failed { .. }, .. } => "turn_failed",
                TurnEvent::TurnFinished { .. } => "turn_finished",
            },
            Self::Auto(event) => event.kind(),
            Self::Memory(event) => event.kind(),
            Self::Notebook(event) => event.kind(),
            Self::Life(event) => match event {
                LifeEvent::Opened { .. } => "session_opened",
                LifeEvent::Renamed { .. } => "session_renamed",
                LifeEvent::Archived { .. } => "session_archived",
                LifeEvent::Restored { .. } => "session_restored",
                LifeEvent::Deleted { .. } => "session_deleted",
            },
            Self::MessageQueued { .. } => "message_queued",
            Self::CauseWithdrawn { .. } => "cause_withdrawn",
            Self::AgentCalled { .. } => "agent_called",
            Self::ViewReset { .. } => "view_reset",
            Self::CompactionAsked { .. } => "compaction_asked",
            Self::Logged { .. } => "logged",
        }
    }
}
