//! One helper touches the API, so that a hundred scenarios survive a refactor.

use std::collections::BTreeMap;

use planwright_domain::{
    actor::{Person, Standing},
    attempt::{CallAttempt, ModelAttempt},
    command::{
        Approving, Decision, Ending, Given, Issued, ModelCommand, Permit, PersonCommand,
        SessionCommand, Start, StartingCall, SystemCommand, Terms, Verdict,
    },
    digest::Digest,
    effect::{Aim, Bracket, Effect, Repeat, ToolFacts, Touched},
    id::{CallId, Incarnation, OwnerId, PlanId},
    identity::SessionKey,
    next::{Next, next},
    plan::{
        Plan, Reads, Strategy,
        event::PlanEvent,
        review::Comment,
        step::{PlanStep, StepEnd, StepWork},
    },
    policy::Policy,
    refusal::Refusal,
    session::{CorruptJournal, Session, SessionEvent, decide},
    time::Time,
    turn::{
        Answer, CallKind, CallResult, FailureKind, ModelFailure, RequestedCall, ToolReply,
        decide::profile_of, event::TurnEvent, profile::Profile,
    },
};
use uuid::Uuid;

/// A session, the events that made it, and what will be used next for ids and times.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) events: Vec<SessionEvent>,
    /// When each of them was recorded.
    pub(crate) times: Vec<Time>,
    pub(crate) now: Time,
    pub(crate) counter: u128,
    pub(crate) policy: Policy,
}

/// The digest that every tool's schema has until a scenario changes it.
pub(crate) fn schema() -> Digest {
    Digest::of(b"schema")
}

pub(crate) fn schemas() -> BTreeMap<String, Digest> {
    planwright_domain::tools::FILE_TOOLS
        .into_iter()
        .chain(["web_fetch", "send_mail"])
        .map(|name| (name.to_owned(), schema()))
        .collect()
}

/// Tools and profiles as they stand in every scenario.
pub(crate) fn terms() -> Terms {
    let profile = |name: &str| (name.to_owned(), a_profile(name).digest);
    Terms { schemas: schemas(), profiles: ["coder", "writer"].map(profile).into(), priced: true }
}

/// A profile; the writer may only read and write files.
pub(crate) fn a_profile(name: &str) -> Profile {
    let tools = (name == "writer").then(|| ["read_file", "write_file"].map(str::to_owned).into());
    Profile::new(name, "be careful", "scripted", tools, None)
}

pub(crate) fn start_plan(plan: PlanId, strategy: Strategy) -> PersonCommand {
    PersonCommand::StartPlan { plan, strategy, reads: Reads::Record }
}

pub(crate) fn a_task(number: u32, profile: &str) -> PlanStep {
    let (title, instructions) = ("do it".into(), "with care".into());
    PlanStep { number, work: StepWork::Task { title, instructions, profile: profile.into() } }
}

pub(crate) fn a_call(number: u32, arguments: &str) -> PlanStep {
    let facts = ToolFacts { effect: Effect::Write, repeat: Repeat::AskFirst, schema: schema() };
    let (tool, arguments) = ("write_file".into(), arguments.into());
    PlanStep { number, work: StepWork::Call { tool, arguments, facts } }
}

/// The id of whoever has this name.
pub(crate) fn owner_id(name: &str) -> OwnerId {
    let digest = Digest::of(name.as_bytes());
    OwnerId(Uuid::from_slice(&digest.0[..16]).unwrap())
}

pub(crate) fn person(name: &str, surface: &str, standing: Standing) -> Person {
    Person::new(owner_id(name), name, surface, standing)
}

/// A session of ada's.
pub(crate) fn ada_key(identity: &str) -> SessionKey {
    SessionKey::named(identity, owner_id("ada")).unwrap()
}

pub(crate) fn ada() -> Person {
    person("ada", "cli", Standing::Decides)
}

pub(crate) fn a_guest() -> Person {
    person("guest", "cli", Standing::Speaks)
}

pub(crate) fn a_session() -> World {
    World {
        session: Session::new(ada_key("cli:talk-0001")),
        events: Vec::new(),
        times: Vec::new(),
        now: Time(1_000_000),
        counter: 0,
        policy: Policy::default(),
    }
}

pub(crate) const FIRST: &str = "# Move the photos\n\n1. Stop the service\n2. Copy the files\n";
pub(crate) const SECOND: &str =
    "# Move the photos\n\n1. Back up\n2. Stop the service\n3. Copy the files\n";

/// A plan tool with these arguments.
pub(crate) fn tool(name: &'static str, arguments: serde_json::Value) -> Asks {
    Asks(name, arguments.to_string(), CallKind::Plan)
}

pub(crate) fn finalize() -> Asks {
    tool("plan_finalize", serde_json::json!({"summary": "Write two files"}))
}

/// How long a call waits for a person in every scenario.
pub(crate) const ASK_MICROS: i64 = 3_600_000_000;

/// What a call is aimed at, as its tool would say.
pub(crate) fn aim_of(tool: &str, arguments: &str) -> Aim {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let texts = |key: &str| arguments[key].as_str().map(str::to_owned).into_iter().collect();
    match tool {
        "write_file" | "edit_file" => Aim { paths: texts("path"), ..Aim::default() },
        "web_fetch" => Aim { hosts: texts("host"), ..Aim::default() },
        _ => Aim::default(),
    }
}

/// A call that reaches outside.
pub(crate) fn fetch(host: &str) -> Asks {
    let facts = ToolFacts { effect: Effect::External, repeat: Repeat::AskFirst, schema: schema() };
    Asks("web_fetch", serde_json::json!({"host": host}).to_string(), CallKind::Tool(facts))
}

/// A call of a tool that does not say what it is aimed at.
pub(crate) fn mail() -> Asks {
    let facts = ToolFacts { effect: Effect::External, repeat: Repeat::AskFirst, schema: schema() };
    Asks("send_mail", "{}".into(), CallKind::Tool(facts))
}

/// A call of a tool, before it has an id.
pub(crate) struct Asks(pub(crate) &'static str, pub(crate) String, pub(crate) CallKind);

pub(crate) fn set_content(markdown: &str) -> Asks {
    Asks(
        "plan_set_content",
        serde_json::json!({"plan_markdown": markdown}).to_string(),
        CallKind::Plan,
    )
}

pub(crate) fn get() -> Asks {
    Asks("plan_get", "{}".into(), CallKind::Plan)
}

pub(crate) fn report(status: &str) -> Asks {
    let arguments = serde_json::json!({"status": status, "summary": "as asked"});
    Asks("plan_report", arguments.to_string(), CallKind::Plan)
}

pub(crate) fn read(path: &str) -> Asks {
    let facts = ToolFacts { effect: Effect::Read, repeat: Repeat::Harmless, schema: schema() };
    Asks("read_file", serde_json::json!({"path": path}).to_string(), CallKind::Tool(facts))
}

pub(crate) fn write(path: &str) -> Asks {
    let facts = ToolFacts { effect: Effect::Write, repeat: Repeat::AskFirst, schema: schema() };
    Asks(
        "write_file",
        serde_json::json!({"path": path, "content": "x"}).to_string(),
        CallKind::Tool(facts),
    )
}

pub(crate) fn unusable() -> Asks {
    Asks("fly", "{}".into(), CallKind::Unusable { problem: "there is no tool \"fly\"".into() })
}

pub(crate) fn done(output: &str) -> CallResult {
    CallResult::done(output)
}

pub(crate) fn wrote(path: &str) -> CallResult {
    let touched = vec![Touched::Wrote { path: path.into(), bytes: 1 }];
    CallResult { touched, ..CallResult::done(format!("wrote {path}")) }
}

pub(crate) fn a_failure(kind: FailureKind) -> ModelFailure {
    ModelFailure { kind, message: "busy".into(), retry_after_micros: None }
}

impl World {
    /// These events in the place of its own, recorded when those were, folded.
    pub(crate) fn folded(&self, events: &[SessionEvent]) -> Result<Session, CorruptJournal> {
        Session::new(self.session.key()).fold_all(self.times.iter().copied().zip(events))
    }

    pub(crate) fn fresh(&mut self) -> Uuid {
        self.counter += 1;
        Uuid::from_u128(self.counter)
    }

    /// Asks; what is accepted is folded in.
    pub(crate) fn ask(&mut self, command: SessionCommand) -> Result<Vec<SessionEvent>, Refusal> {
        self.now = self.now.plus_micros(1_000);
        let asked = Issued::new(self.fresh(), self.now, command).under(self.policy.clone().into());
        let events = decide(&self.session, &asked)?;
        self.session = self.session.fold(self.now, &events).unwrap();
        self.times.extend(events.iter().map(|_| self.now));
        self.events.extend(events.clone());
        Ok(events)
    }

    /// From here on this policy holds.
    pub(crate) fn under(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    pub(crate) fn person(&mut self, command: PersonCommand) -> Result<Vec<SessionEvent>, Refusal> {
        self.ask(SessionCommand::Person(ada(), command))
    }

    pub(crate) fn system(&mut self, command: SystemCommand) -> Result<Vec<SessionEvent>, Refusal> {
        self.ask(SessionCommand::System(command))
    }

    /// The same, for what must be accepted.
    pub(crate) fn does(mut self, command: PersonCommand) -> Self {
        self.person(command).unwrap();
        self
    }

    pub(crate) fn plan_on(mut self) -> Self {
        let plan = self.fresh().into();
        self.does(start_plan(plan, Strategy::Document))
    }

    pub(crate) fn plan_on_with(mut self, strategy: Strategy) -> Self {
        let plan = self.fresh().into();
        self.does(start_plan(plan, strategy))
    }

    pub(crate) fn says(self, text: &str) -> Self {
        self.does(PersonCommand::Say { text: text.into() })
    }

    /// Begins the turn that is next.
    pub(crate) fn turn_starts(mut self) -> Self {
        let Next::StartTurn(queued) = next(&self.session) else {
            panic!("no turn is due: {:?}", next(&self.session))
        };
        let turn = self.fresh().into();
        let profile = profile_of(&self.session, queued).map(a_profile);
        self.system(SystemCommand::StartTurn {
            turn,
            queued,
            profile,
            recalled: Default::default(),
            call: None,
        })
        .unwrap();
        self
    }

    pub(crate) fn bracket(&self) -> Bracket {
        Bracket {
            incarnation: Incarnation(Uuid::from_u128(7)),
            start_by: self.now.plus_micros(1_000_000),
            deadline: self.now.plus_micros(10_000_000),
        }
    }

    /// The model is being asked.
    pub(crate) fn model_is_asked(mut self) -> Self {
        let Next::CallModel { attempt, .. } = next(&self.session) else {
            panic!("no model call is due: {:?}", next(&self.session))
        };
        let bracket = self.bracket();
        self.system(SystemCommand::StartModelCall { attempt, bracket }).unwrap();
        self
    }

    pub(crate) fn open_model_call(&self) -> ModelAttempt {
        let Next::AwaitModel { attempt, .. } = next(&self.session) else {
            panic!("no model call is open: {:?}", next(&self.session))
        };
        attempt
    }

    pub(crate) fn answer(&mut self, text: &str, calls: Vec<Asks>) -> Answer {
        let calls = calls.into_iter().map(|Asks(tool, arguments, kind)| {
            let id: CallId = self.fresh().into();
            RequestedCall { id, wire_id: format!("wire-{id}"), tool: tool.into(), arguments, kind }
        });
        let calls = calls.collect();
        Answer { text: text.into(), calls, ..Answer::default() }
    }

    /// The model, asked if it was not, answers.
    pub(crate) fn answers(mut self, text: &str, calls: Vec<Asks>) -> Self {
        if !matches!(next(&self.session), Next::AwaitModel { .. }) {
            self = self.model_is_asked();
        }
        let attempt = self.open_model_call();
        let answer = self.answer(text, calls);
        self.system(SystemCommand::RecordAnswer { attempt, answer, others: 0 }).unwrap();
        self
    }

    /// The model that is being asked fails, where so many others can be asked.
    pub(crate) fn fails(mut self, failure: ModelFailure, others: u32) -> Self {
        if !matches!(next(&self.session), Next::AwaitModel { .. }) {
            self = self.model_is_asked();
        }
        let attempt = self.open_model_call();
        let sent = None;
        let failed = SystemCommand::RecordModelFailure { attempt, failure, others, sent };
        self.system(failed).unwrap();
        self
    }

    pub(crate) fn given(&mut self) -> Given {
        let profiles = terms().profiles.into_keys().collect();
        Given { fresh: self.fresh().into(), profiles, memory: Some(Vec::new()), markdown: None }
    }

    /// Answers every plan tool that is next.
    pub(crate) fn plan_tools_run(mut self) -> Self {
        while let Next::UsePlanTool { turn, call } = next(&self.session) {
            let given = self.given();
            self.ask(SessionCommand::Model(turn, ModelCommand::UsePlanTool { call, given }))
                .unwrap();
        }
        self
    }

    pub(crate) fn due_calls(&self) -> Vec<CallAttempt> {
        match next(&self.session) {
            Next::RunCalls(calls) => calls,
            other => panic!("no calls are due: {other:?}"),
        }
    }

    /// The calls that are due start, with tools as they were.
    pub(crate) fn calls_start(self) -> Self {
        self.calls_start_with(schema())
    }

    pub(crate) fn calls_start_with(mut self, schema: Digest) -> Self {
        let starting = |due: CallAttempt| {
            let asked = self.session.turn.as_ref().unwrap().calls();
            let kind =
                &asked.iter().find(|call| call.requested.id == due.call).unwrap().requested.kind;
            let CallKind::Tool(facts) = kind else { panic!("not a tool: {kind:?}") };
            let tool = Some(ToolFacts { schema, ..facts.clone() });
            let arguments =
                &asked.iter().find(|call| call.requested.id == due.call).unwrap().requested;
            let aim = aim_of(&arguments.tool, &arguments.arguments);
            StartingCall { attempt: due, tool, aim }
        };
        let calls = self.due_calls().into_iter().map(starting).collect();
        self.system(self.start_calls(calls)).unwrap();
        self
    }

    pub(crate) fn start_calls(&self, calls: Vec<StartingCall>) -> SystemCommand {
        let ask_until = self.now.plus_micros(ASK_MICROS);
        SystemCommand::StartCalls { calls, bracket: self.bracket(), ask_until }
    }

    /// The digest of the call that waits for permission.
    pub(crate) fn asks(&self) -> Digest {
        self.session.ask.as_ref().expect("a call waits").digest
    }

    pub(crate) fn permit(&mut self, permit: Permit) -> Result<Vec<SessionEvent>, Refusal> {
        let digest = self.asks();
        self.person(PersonCommand::Decide(Decision::Permit { digest, permit }))
    }

    pub(crate) fn permitted(mut self, permit: Permit) -> Self {
        self.permit(permit).unwrap();
        self
    }

    /// The calls that are open, with their tries.
    pub(crate) fn open_calls(&self) -> Vec<CallAttempt> {
        self.session
            .open
            .iter()
            .map(|(call, open)| CallAttempt { call: *call, number: open.attempt })
            .collect()
    }

    /// Every open call gives this.
    pub(crate) fn calls_give(mut self, result: &CallResult) -> Self {
        for attempt in self.open_calls() {
            self.system(SystemCommand::RecordResult {
                attempt,
                result: result.clone(),
                note_every: 0,
            })
            .unwrap();
        }
        self
    }

    /// The process dies: what was open is reported as orphaned.
    pub(crate) fn the_process_dies(mut self) -> Self {
        if let Next::AwaitModel { attempt, .. } = next(&self.session) {
            self.system(SystemCommand::OrphanModelCall { attempt }).unwrap();
        }
        for attempt in self.open_calls() {
            self.system(SystemCommand::OrphanCall { attempt }).unwrap();
        }
        self
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.session.plan().expect("plan work is active")
    }

    pub(crate) fn digest(&self) -> Digest {
        self.plan().current.as_ref().expect("there is a revision").digest
    }

    /// Where the plan stands, by name; ended plans by how they ended.
    pub(crate) fn status(&self) -> String {
        match (self.session.plan(), &self.session.last_ended) {
            (Some(plan), _) => plan.status.name().into(),
            (None, Some(ended)) => ended.ended.label().to_lowercase(),
            (None, None) => "inactive".into(),
        }
    }

    pub(crate) fn shown(self) -> Self {
        let digest = self.digest();
        self.does(PersonCommand::RecordShown { digest })
    }

    pub(crate) fn approve_command(&self, digest: Digest, start: Start) -> PersonCommand {
        PersonCommand::Decide(Decision::Approve(Approving {
            start,
            ..Approving::of(digest, terms())
        }))
    }

    pub(crate) fn approved(self) -> Self {
        let world = self.shown();
        let command = world.approve_command(world.digest(), Start::AtOnce);
        world.does(command)
    }

    pub(crate) fn changes_command(&self, digest: Digest) -> PersonCommand {
        let comments = vec![Comment::on_line(3, "back up first")];
        PersonCommand::Decide(Decision::RequestChanges { digest, comments })
    }

    pub(crate) fn reject_command(&self, digest: Digest) -> PersonCommand {
        PersonCommand::Decide(Decision::Reject { digest, why: Some("not now".into()) })
    }

    pub(crate) fn resume_command(&self) -> PersonCommand {
        PersonCommand::Decide(Decision::Resume)
    }

    pub(crate) fn settle_command(&self, call: CallId, verdict: Verdict) -> PersonCommand {
        PersonCommand::Decide(Decision::SettleDoubt { call, verdict })
    }

    pub(crate) fn ends(self, ending: Ending) -> Self {
        self.does(PersonCommand::EndPlan(ending))
    }
}

// Plans in every status.

pub(crate) fn collecting() -> World {
    a_session().plan_on()
}

pub(crate) fn ready() -> World {
    collecting()
        .says("plan it")
        .turn_starts()
        .answers("", vec![set_content(FIRST)])
        .plan_tools_run()
        .answers("there", vec![])
}

pub(crate) fn withdrawn() -> World {
    let world = ready().shown();
    let command = world.changes_command(world.digest());
    world.does(command)
}

pub(crate) fn held() -> World {
    let world = ready().shown();
    let command = world.approve_command(world.digest(), Start::Hold);
    world.does(command)
}

/// Approved, with its execution turn open and the model due.
pub(crate) fn running() -> World {
    ready().approved().turn_starts()
}

pub(crate) fn paused() -> World {
    running().answers("I am off", vec![])
}

pub(crate) fn failed() -> World {
    running().answers("", vec![report("failed")]).plan_tools_run().answers("sorry", vec![])
}

/// A write has started and its process is gone.
pub(crate) fn in_doubt() -> World {
    running().answers("", vec![write("a.txt"), write("b.txt")]).calls_start().the_process_dies()
}

/// A turn in which the model may write new content for a plan that stands so.
pub(crate) fn new_content(world: World) -> World {
    let world =
        if world.session.turn.is_some() { world } else { world.says("rework it").turn_starts() };
    let replies: Vec<_> =
        world.session.plan().into_iter().flat_map(|plan| &plan.comments_open).collect();
    let replies: Vec<_> =
        replies.iter().map(|number| serde_json::json!({"comment": number})).collect();
    let content = serde_json::json!({"plan_markdown": SECOND, "replies": replies});
    world.answers("", vec![tool("plan_set_content", content)]).plan_tools_run()
}

// Plans whose steps are recorded calls, and plans that are built.

/// Two writes were recorded, and the plan waits for its reader.
pub(crate) fn collected() -> World {
    collected_of(vec![write("a.txt"), write("b.txt")])
}

pub(crate) fn collected_of(mut calls: Vec<Asks>) -> World {
    calls.push(finalize());
    a_session()
        .plan_on_with(Strategy::Collect)
        .says("plan it")
        .turn_starts()
        .answers("", calls)
        .plan_tools_run()
        .answers("there", vec![])
}

/// Approved, with the turn open that makes the recorded calls.
pub(crate) fn replaying() -> World {
    collected().approved().turn_starts()
}

pub(crate) fn add_step(title: &str, profile: &str) -> Asks {
    tool(
        "plan_add_step",
        serde_json::json!({"title": title, "instructions": format!("{title}, well"), "profile": profile}),
    )
}

pub(crate) fn create() -> Asks {
    tool("plan_create", serde_json::json!({"goal": "Move the photos"}))
}

pub(crate) fn metadata() -> Asks {
    tool(
        "plan_set_metadata",
        serde_json::json!({"assumptions": ["a"], "risks": ["r"], "verification": ["v"], "files": ["f"]}),
    )
}

pub(crate) fn submit() -> Asks {
    tool("plan_submit", serde_json::json!({}))
}

/// A plan of two steps, and it waits for its reader.
pub(crate) fn built() -> World {
    a_session()
        .plan_on_with(Strategy::Build)
        .says("plan it")
        .turn_starts()
        .answers(
            "",
            vec![
                create(),
                metadata(),
                add_step("copy", "coder"),
                add_step("check", "writer"),
                submit(),
            ],
        )
        .plan_tools_run()
        .answers("there", vec![])
}

/// Approved, with the turn of its first step open.
pub(crate) fn building() -> World {
    built().approved().turn_starts()
}

impl World {
    /// What the calls of the last answer were told.
    pub(crate) fn reply(&self) -> Vec<ToolReply> {
        let reply = |event: &SessionEvent| match event {
            SessionEvent::Turn(TurnEvent::CallAnswered { reply, .. }) => Some(reply.clone()),
            _ => None,
        };
        self.events.iter().filter_map(reply).collect()
    }

    /// The words of the last refusal that the model read.
    pub(crate) fn last_refusal(&self) -> String {
        let reply = self.reply();
        let refused = reply.iter().rev().find_map(|reply| match reply {
            ToolReply::Refused { words, .. } => Some(words.clone()),
            _ => None,
        });
        refused.expect("something was refused")
    }

    /// How the steps of the plan came out, by number.
    pub(crate) fn step_ends(&self) -> Vec<(u32, &'static str)> {
        let ended = |event: &SessionEvent| match event {
            SessionEvent::Plan(PlanEvent::StepEnded { step, end, .. }) => {
                Some((*step, StepEnd::label(end)))
            }
            _ => None,
        };
        self.events.iter().filter_map(ended).collect()
    }
}
