//! Foreign agents: the tools advertised to one, and its calls.
//!
//! An agent's call is a command with an id of its own: asked again, after whatever happened to either side, it has
//! one effect and one answer.

use std::{sync::Arc, time::Duration};

use planwright_domain::{
    actor::Person,
    agent::{self, AgentCall, Answered, AskWish, PLAN_ASK, PROFILE},
    command::{Given, PersonCommand, SessionCommand, SystemCommand},
    digest::Digest,
    id::{CallId, CommandId, PlanId, Seq},
    identity::{Root, SessionKey},
    next::{Waiting, waiting},
    notebook::tool::{NotebookTool, bound},
    plan::{Plan, Revision, Strategy, event::PlanEvent},
    session::{Session, SessionEvent, life::Life},
    tools::{ToolSpec, own::OwnTool},
    turn::{CallKind, CallStatus, RequestedCall, ToolReply},
};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::{
    commands::{Commands, dispatch::Origin},
    engine::attempt::{Attempt, Outcome},
    failpoint,
    ids::report_id,
    ports::{
        access::AgentGrant,
        journal::{Answer, JournalError},
        toolbox::{Ran, ToolRun},
    },
    revisions::{of_plan, revision_at},
};

/// The longest that a call waits for a person's decision: clients give up after a minute.
pub const WAIT_SECONDS_MAX: u64 = 50;
/// How long someone waits before they look again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Why a foreign agent cannot export a page.
const NO_EXPORT: &str = "policy_denied: files of the workspace are not written for a foreign agent; read the page and write it yourself";

/// Where a foreign agent sits.
#[derive(Debug, Clone)]
pub struct Seat {
    /// In this session.
    pub identity: SessionKey,
    /// Whose agent it is.
    pub person: Person,
    /// As it names itself.
    pub agent: String,
    /// The project that it works in.
    pub project: Option<Root>,
    /// The plan work with which its session begins, as its person chose.
    pub plan: Option<Strategy>,
    /// Whether it may only look.
    pub is_reader: bool,
    /// Whether it is told of every tool of its plan work, whatever the state; what is not available is refused.
    pub always: bool,
}

/// What a foreign agent asks.
#[derive(Debug, Clone)]
pub struct AgentAsks {
    /// Asked again under the same id, it has one effect and one answer.
    pub id: CommandId,
    /// The tool.
    pub tool: String,
    /// The arguments, as JSON.
    pub arguments: String,
}

/// What it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReply {
    /// The words.
    pub text: String,
    /// Whether they refuse.
    pub is_refused: bool,
    /// The revision that waits for a decision, if one does.
    pub waits: Option<Digest>,
}

/// A place that was given out, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The session.
    pub session: SessionKey,
    /// The project.
    pub root: String,
    /// Whether its plan is written and has not come to an end.
    pub is_unfinished: bool,
    /// Whether its agent is there.
    pub is_there: bool,
}

impl Held {
    /// A place in this session.
    #[must_use]
    pub fn new(session: &Session, place: &AgentGrant, is_there: bool) -> Self {
        let written = |plan: &Plan| plan.current.is_some() || plan.draft.is_some();
        Self {
            session: place.session.clone(),
            root: place.root.clone(),
            is_unfinished: session.plan().is_some_and(written) && session.life != Life::Deleted,
            is_there,
        }
    }
}

/// The session that an agent takes up without naming it: the only one of its project that has unfinished work and nobody
/// there. Where there are more, nobody can know which was meant.
pub fn reattached<'a>(held: impl Iterator<Item = &'a Held>, root: &str) -> Option<&'a SessionKey> {
    let is_left = |held: &&Held| held.root == root && held.is_unfinished && !held.is_there;
    let mut left = held.filter(is_left);
    match (left.next(), left.next()) {
        (Some(only), None) => Some(&only.session),
        (Some(_) | None, Some(_) | None) => None,
    }
}

impl Commands {
    /// The tools that the agent in this seat is told of now.
    pub async fn agent_tools(&self, seat: &Seat) -> Result<Vec<Arc<ToolSpec>>, JournalError> {
        let session = self.seen_from(seat).await?;
        let mut specs = match (session.plan(), seat.plan) {
            (Some(plan), _) if seat.always => agent::all_specs(plan.strategy),
            (None, Some(strategy)) if seat.always => agent::all_specs(strategy),
            (Some(_) | None, Some(_) | None) => agent::specs(&session),
        };
        if self.settings.memory.is_some() {
            specs.extend(OwnTool::MEMORY.map(OwnTool::spec));
        }
        if self.tools.has_notebook(&session) {
            specs.extend(offered().map(NotebookTool::spec));
        }
        specs.retain(|spec| !seat.is_reader || is_read_only(&spec.name));
        Ok(specs)
    }

    /// The session as its agent finds it: where nothing has happened yet, plan work is what its person chose.
    async fn seen_from(&self, seat: &Seat) -> Result<Arc<Session>, JournalError> {
        let session = self.queries.session(&seat.identity).await?;
        let (Seq(0), Some(strategy)) = (session.version, seat.plan) else { return Ok(session) };
        let (plan, reads) = (Self::first_plan(seat), self.settings.collect_reads);
        let (predecessor, by) = (None, Some(seat.person.clone()));
        let (carried, claimed) = (Vec::new(), Vec::new());
        let begins =
            PlanEvent::PlanStarted { plan, strategy, predecessor, reads, carried, claimed, by };
        Ok(Arc::new(session.fold(self.queries.now(), &[SessionEvent::Plan(begins)])?))
    }

    /// The id of the plan with which its session begins.
    fn first_plan(seat: &Seat) -> PlanId {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("plan {}", seat.identity).as_bytes()).into()
    }

    /// The command that begins its plan work: the same one, however often it is asked.
    fn opening(&self, seat: &Seat) -> Option<(CommandId, SessionCommand)> {
        let (strategy, plan) = (seat.plan?, Self::first_plan(seat));
        let reads = self.settings.collect_reads;
        let command = PersonCommand::StartPlan { plan, strategy, reads };
        let command = SessionCommand::Person(seat.person.clone(), command);
        let name = format!("plan on {}", seat.identity);
        Some((Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).into(), command))
    }

    /// Answers a call. The same id has one effect and one answer.
    pub async fn agent_call(
        &self,
        seat: &Seat,
        asks: AgentAsks,
    ) -> Result<AgentReply, JournalError> {
        if seat.is_reader && !is_read_only(&asks.tool) {
            let words = format!(
                "policy_denied: this connection may only look; {} changes something",
                asks.tool
            );
            return Ok(AgentReply { text: words, is_refused: true, waits: None });
        }
        let identity = &seat.identity;
        if let Some((id, command)) = self.opening(seat)
            && self.queries.session(identity).await?.version == Seq(0)
        {
            self.dispatch_of(seat, id, command).await?;
        }
        failpoint::hit("agent.before_call");
        if asks.tool == PLAN_ASK
            && let Ok(AskWish { wait_seconds: Some(seconds) }) = AskWish::read(&asks.arguments)
        {
            self.until_decided(identity, Duration::from_secs(seconds.min(WAIT_SECONDS_MAX)))
                .await?;
        }
        let call = RequestedCall {
            id: CallId(asks.id.0),
            wire_id: String::new(),
            tool: asks.tool,
            arguments: asks.arguments,
            kind: CallKind::Plan,
        };
        let prepared = self.prepared(seat, call.clone()).await?;
        let runs = prepared.answered == Answered::ByNotebook;
        let command = SessionCommand::Agent(Box::new(prepared));
        failpoint::hit("agent.before_dispatch");
        let mut answer = self.dispatch_of(seat, asks.id, command).await?;
        failpoint::hit("agent.after_dispatch");
        if runs && !answer.is_refused() {
            answer = self.run_notebook_call(identity, &call).await?;
        }
        self.reply_to(identity, asks.id, answer).await
    }

    /// Decides a command that comes from a seat: its session begins in the agent's project.
    async fn dispatch_of(
        &self,
        seat: &Seat,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        let from = Origin { transport: None, project: seat.project.clone() };
        self.dispatcher.dispatch_detached(from, &seat.identity, id, command).await
    }

    /// Makes a notebook call that was recorded as started, unless it has ended, and records what came of it. A call
    /// that nobody here works on any more is made again: each of them is harmless to repeat.
    async fn run_notebook_call(
        &self,
        identity: &SessionKey,
        call: &RequestedCall,
    ) -> Result<Answer, JournalError> {
        let open = loop {
            match self.attempts.claim(Attempt::AgentCall(call.id)) {
                Some(open) => break open,
                None => sleep(LOOK_AGAIN).await,
            }
        };
        let (reply, outcome) = match self.queries.session(identity).await {
            Ok(session) if session.notebook.open_agent_call(call.id).is_some() => {
                (self.notebook_answers(identity, call).await, Outcome::Finished)
            }
            Ok(_) => {
                let words = "this call is not open".into();
                (ToolReply::Refused { kind: "notebook".into(), words }, Outcome::NotStarted)
            }
            Err(error) => {
                open.close(Outcome::NotRecorded);
                return Err(error);
            }
        };
        failpoint::hit("agent.before_record");
        // Recorded before, it has the answer that it was given then.
        let id = report_id(call.id.0, "agent-result", 0, 1);
        let command = SystemCommand::RecordAgentCall { call: call.id, reply };
        let command = SessionCommand::System(command);
        let answer =
            self.dispatcher.dispatch_detached(Origin::default(), identity, id, command).await;
        open.close(if answer.is_ok() { outcome } else { Outcome::NotRecorded });
        answer
    }

    /// What the decision on a call needs from outside; what is not the domain's to answer is answered here.
    async fn prepared(&self, seat: &Seat, call: RequestedCall) -> Result<AgentCall, JournalError> {
        let identity = &seat.identity;
        let session = self.queries.session(identity).await?;
        let plan = session.plan();
        let revision = match plan.and_then(|plan| plan.current.as_ref()) {
            Some(_) => self.queries.revision(identity, None).await?.map(|view| view.revision),
            None => None,
        };
        let comments = if plan.is_some_and(|plan| !plan.comments_open.is_empty()) {
            let rows = self.queries.comments(identity).await?.into_iter();
            rows.filter(|row| row.status() == "open").filter_map(|row| row.asked).collect()
        } else {
            Vec::new()
        };
        let answered = match NotebookTool::named(&call.tool) {
            Some(_)
                if plan.is_some()
                    && bound(&call).is_some()
                    && self.tools.has_notebook(&session) =>
            {
                Answered::ByDecision
            }
            Some(NotebookTool::Export) => Answered::Refused(NO_EXPORT.into()),
            Some(_) => match self.tools.check(&session, &call.tool, &call.arguments) {
                Ok(()) => Answered::ByNotebook,
                Err(words) => Answered::Refused(words),
            },
            None => Answered::ByDecision,
        };
        let given = Given {
            fresh: Uuid::new_v5(&call.id.0, b"fresh").into(),
            profiles: [PROFILE.to_owned()].into(),
            memory: self.memories.look_up(&session, None, Some(&call)).await?,
            markdown: revision.as_ref().map(|revision: &Revision| revision.markdown.clone()),
        };
        let (owner, of) = (seat.person.owner, seat.person.id.clone());
        let agent = seat.agent.clone();
        Ok(AgentCall { owner, of, agent, call, given, revision, comments, answered })
    }

    async fn notebook_answers(&self, identity: &SessionKey, call: &RequestedCall) -> ToolReply {
        let refused = |words: String| ToolReply::Refused { kind: "notebook".into(), words };
        let run = ToolRun {
            identity: identity.clone(),
            call: call.id,
            attempt: 1,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            plan: None,
            context: None,
            root: None,
            hosts: std::collections::BTreeSet::new(),
        };
        match self.tools.run(run).await {
            Ran::Ended(result) => match result.status {
                CallStatus::Done => ToolReply::Text { text: result.output },
                CallStatus::Failed => refused(result.output),
            },
            Ran::Unknown { why } => refused(why),
        }
    }

    /// Waits while a person is asked to decide, but not longer than this.
    async fn until_decided(
        &self,
        identity: &SessionKey,
        limit: Duration,
    ) -> Result<(), JournalError> {
        let until = Instant::now() + limit;
        let mut subscription = self.broadcast.subscribe(identity);
        loop {
            let asks = matches!(
                waiting(&*self.queries.session(identity).await?),
                Some(Waiting::Decision | Waiting::Resume)
            );
            if !asks {
                return Ok(());
            }
            match timeout_at(until, subscription.next()).await {
                Err(_) => return Ok(()),
                Ok(Some(_)) => {}
                // Nobody tells any more: look again now and then.
                Ok(None) => {
                    sleep(LOOK_AGAIN).await;
                    subscription = self.broadcast.subscribe(identity);
                }
            }
        }
    }

    /// The words of an answer, read from where it is recorded.
    async fn reply_to(
        &self,
        identity: &SessionKey,
        id: CommandId,
        answer: Answer,
    ) -> Result<AgentReply, JournalError> {
        let session = self.queries.session(identity).await?;
        let plan = session.plan().filter(|plan| plan.awaits_decision());
        let waits = plan.and_then(|plan| plan.current.as_ref()).map(|head| head.digest);
        let reply = |text: String, is_refused: bool| AgentReply { text, is_refused, waits };
        let (before, version) = match answer {
            Answer::Accepted { before, version } => (before, version),
            Answer::Refused(refusal) => return Ok(reply(refusal.to_string(), true)),
        };
        let many = usize::try_from(version.0 - before.0).unwrap_or(usize::MAX);
        let events = self.journal.events(identity, before, many).await?;
        let found = events.iter().find_map(|recorded| answers(&recorded.event, CallId(id.0)));
        Ok(match found {
            Some(ToolReply::Text { text }) => reply(text.clone(), false),
            Some(ToolReply::Refused { words, .. }) => reply(words.clone(), true),
            Some(ToolReply::Revision { digest, heading }) => {
                let revision = self.revision_of(&session, *digest).await?;
                let markdown = revision.map(|revision| revision.markdown).unwrap_or_default();
                reply(format!("{heading}\n\n{markdown}"), false)
            }
            Some(ToolReply::Plans) => {
                let rows = self.queries.plans(identity).await?.into_iter();
                let lines =
                    rows.map(|row| format!("{}: {}, {}\n", row.plan, row.status, row.title));
                reply(lines.collect(), false)
            }
            Some(ToolReply::Planned | ToolReply::LeftRunning) | None => {
                reply("the call was recorded, and nothing came of it".into(), true)
            }
        })
    }

    /// The revision of this digest, of the plan that is there or of the one that ended last.
    async fn revision_of(
        &self,
        session: &Session,
        digest: Digest,
    ) -> Result<Option<Revision>, JournalError> {
        let (journal, identity) = (&*self.journal, &session.key());
        if let Some(plan) = session.plan() {
            for number in (1..=plan.revisions.len() as u32).rev() {
                let found = of_plan(journal, identity, plan, number).await?;
                if let Some((revision, _)) = found.filter(|(_, found)| *found == digest) {
                    return Ok(Some(revision));
                }
            }
        }
        let ended = session.last_ended.as_ref().and_then(|ended| ended.revision);
        let Some(seq) = ended else { return Ok(None) };
        let (revision, found) = revision_at(journal, identity, seq).await?;
        Ok((found == digest).then_some(revision))
    }
}

/// The tools of the notebook that a foreign agent gets: those that stay inside.
fn offered() -> impl Iterator<Item = NotebookTool> {
    NotebookTool::ALL.into_iter().filter(|tool| *tool != NotebookTool::Export)
}

/// Whether a tool of this name changes nothing.
fn is_read_only(name: &str) -> bool {
    ["plan_get", "plan_list", "memory_search", "read_plan", "list_plans"].contains(&name)
}

fn answers(event: &SessionEvent, id: CallId) -> Option<&ToolReply> {
    match event {
        SessionEvent::AgentCalled { call, reply, .. } if *call == id => Some(reply),
        SessionEvent::AgentCalled { .. }
        | SessionEvent::Plan(_)
        | SessionEvent::Turn(_)
        | SessionEvent::Auto(_)
        | SessionEvent::Memory(_)
        | SessionEvent::Notebook(_)
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::Logged { .. } => None,
    }
}
