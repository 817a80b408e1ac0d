//! A small stage for proofs in this process: a planner that is no model, a tool that only counts, and a runtime
//! over any journal that moves when it is told to.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::Context as _;
use async_trait::async_trait;
use planwright_domain::{
    actor::{Person, Standing},
    command::{Approving, Decision, PersonCommand, SessionCommand, Start},
    digest::Digest,
    effect::{Effect, Repeat},
    id::Seq,
    identity::SessionKey,
    next::{Due, Next, next},
    plan::{Reads, Strategy},
    tools::ToolSpec,
    turn::{CallResult, ModelFailure},
};
use planwright_outbound::ids_random::RandomIds;
use planwright_outbound::ids_random::fresh_id;
use planwright_outbound::{
    broadcast_in_process::InProcessBroadcast,
    clock_system::SystemClock,
    toolbox_mcp::{McpServer, McpToolbox, Pins},
};
use planwright_runtime::{
    ports::Ports,
    ports::{
        memory::Store,
        model::{
            Message, Model, ModelAnswer, ModelRequest, OnPreview, Profiles, WireCall,
            default_profiles,
        },
        signal::Lane,
        toolbox::{Ran, Tool, ToolRun, Toolbox},
    },
    runtime::Runtime,
    settings::Settings,
};
use planwright_testkit::people::{ada_key, person};
use serde_json::{Value, json};

/// The document that the planner writes first, for this tool.
pub(crate) fn document(tool: &str) -> String {
    format!("---\ntools: {tool}\n---\n# One file\n\n1. Put it.\n")
}

/// A runtime over this journal, with these tools and the planner. Nobody wakes anybody: the proof acts itself.
pub(crate) fn runtime(journal: Arc<dyn Store>, toolbox: Arc<dyn Toolbox>) -> Runtime {
    Runtime::new(&planner_ports(journal, toolbox), &Settings::default())
}

/// What such a runtime is made of.
pub(crate) fn planner_ports(journal: Arc<dyn Store>, toolbox: Arc<dyn Toolbox>) -> Ports {
    let model: Arc<dyn Model> = Arc::new(Planner);
    let profiles = default_profiles(&model);
    ports(journal, toolbox, model, profiles)
}

/// The same, with a model and profiles of its own.
pub(crate) fn ports(
    journal: Arc<dyn Store>,
    toolbox: Arc<dyn Toolbox>,
    model: Arc<dyn Model>,
    profiles: Profiles,
) -> Ports {
    Ports {
        journal: journal.clone(),
        memory: journal,
        lane: Arc::new(ByHand),
        broadcast: Arc::new(InProcessBroadcast::default()),
        profiles,
        model,
        toolbox,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        policy: Arc::default(),
        handover: None,
        session_label: false,
        notebook: Arc::new(planwright_outbound::notebook_object_store::NoNotebooks),
        roles: planwright_runtime::ports::model::Roles::default(),
    }
}

/// The tools of a strict MCP server of its own, which keeps `ledger` here and looks for `changed`.
pub(crate) fn strict_mcp(home: &Path) -> anyhow::Result<Arc<dyn Toolbox>> {
    let server = std::env::current_exe()?.with_file_name("strict-mcp");
    let words = [server, home.join("ledger"), home.join("changed")];
    let child = McpServer::Child {
        command: words.iter().map(|path| path.display().to_string()).collect(),
        environment: BTreeMap::new(),
        directory: home.to_owned(),
        confinement: None,
    };
    let pins = Arc::new(Pins::open(home.join("pins"))?);
    Ok(Arc::new(McpToolbox::new("strict", child, BTreeMap::new(), pins)))
}

/// A session by its key.
pub(crate) fn talk(key: &str) -> SessionKey {
    ada_key(&format!("cli:{key}")).unwrap_or_else(|_| unreachable!("a key that fits"))
}

/// A person who may decide.
pub(crate) fn ada() -> Person {
    person("ada", "cli", Standing::Decides)
}

/// One session on the stage.
pub(crate) struct Staged<'a> {
    /// Who acts.
    pub(crate) runtime: &'a Runtime,
    /// On what.
    pub(crate) identity: &'a SessionKey,
}

impl Staged<'_> {
    /// Ada asks for something that is granted.
    pub(crate) async fn ask(&self, command: PersonCommand) -> anyhow::Result<()> {
        let command = SessionCommand::Person(ada(), command);
        let answer = self.runtime.engine.dispatch(self.identity, fresh_id(), command).await?;
        anyhow::ensure!(!answer.is_refused(), "{answer:?}");
        Ok(())
    }

    /// Acts as long as something is due now.
    pub(crate) async fn drive(&self) -> anyhow::Result<()> {
        self.drive_until(|_| false).await
    }

    /// The same, until this is what comes next.
    pub(crate) async fn drive_until(&self, is_so: impl Fn(&Next) -> bool) -> anyhow::Result<()> {
        for _ in 0..60 {
            if is_so(&next(&*self.runtime.queries.session(self.identity).await?)) {
                return Ok(());
            }
            match self.runtime.engine.advance(self.identity).await?.due {
                Due::Now => {}
                Due::Never | Due::At(_) => return Ok(()),
            }
        }
        anyhow::bail!("it does not come to rest")
    }

    /// A plan that was written and read; the digest of its revision.
    pub(crate) async fn ready(&self, strategy: Strategy) -> anyhow::Result<Digest> {
        let plan = uuid::Uuid::now_v7().into();
        self.ask(PersonCommand::StartPlan { plan, strategy, reads: Reads::Record }).await?;
        self.ask(PersonCommand::Say { text: "plan it".into() }).await?;
        self.drive().await?;
        let session = self.runtime.queries.session(self.identity).await?;
        let head = session.plan().and_then(|plan| plan.current.as_ref()).context("a revision")?;
        let digest = head.digest;
        self.ask(PersonCommand::RecordShown { digest }).await?;
        Ok(digest)
    }

    /// The word that approves it.
    pub(crate) fn approve(&self, digest: Digest, start: Start) -> PersonCommand {
        let plain = Approving::of(digest, self.runtime.queries.terms());
        let notes = vec!["mind the gap".to_owned()];
        PersonCommand::Decide(Decision::Approve(Approving { notes, start, ..plain }))
    }
}

pub(crate) struct ByHand;

impl Lane for ByHand {
    fn wake(&self, _: &SessionKey, _: Seq, _: Due) {}
}

/// Whether the turn was opened while its plan runs.
pub(crate) fn executes(request: &ModelRequest) -> bool {
    let opening = request.messages.iter().rev().find_map(|message| match message {
        Message::User(text) => Some(text),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    opening.is_some_and(|text| text.ends_with("[The plan is Running.]"))
}

/// Plans one write, plans it anew whenever it is spoken to, and makes it when it executes.
struct Planner;

#[async_trait]
impl Model for Planner {
    async fn answer(
        &self,
        request: &ModelRequest,
        _: OnPreview<'_>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        let call = |tool: &str, arguments: Value| WireCall {
            wire_id: format!("w{tool}"),
            tool: tool.into(),
            arguments: arguments.to_string(),
        };
        let tool = request.tools.iter().find(|tool| !tool.name.starts_with("plan_"));
        let tool = tool.map_or("put", |tool| tool.name.as_str());
        let write = || call(tool, json!({"text": "x"}));
        let answered = matches!(request.messages.last(), Some(Message::Tool { .. }));
        let spoken =
            request.messages.iter().filter(|said| matches!(said, Message::User(_))).count();
        let calls = if answered {
            Vec::new()
        } else if executes(request) {
            vec![write()]
        } else if has("plan_finalize") {
            vec![write(), call("plan_finalize", json!({"summary": "one file"}))]
        } else if has("plan_set_content") {
            let more = "\nOnce more.".repeat(spoken - 1);
            let markdown = format!("{}{more}", document(tool));
            vec![call("plan_set_content", json!({"plan_markdown": markdown}))]
        } else {
            Vec::new()
        };
        Ok(ModelAnswer { text: "so be it".into(), calls, usage: None, kept: Vec::new() })
    }

    fn window_tokens(&self) -> usize {
        100_000
    }

    fn name(&self) -> String {
        "planner".into()
    }
}

/// One tool that changes things, and counts.
#[derive(Default)]
pub(crate) struct Counting {
    /// Its schema, as a live server would change it.
    pub(crate) schema: u32,
    /// How often it was called.
    pub(crate) ran: Arc<AtomicU32>,
}

#[async_trait]
impl Toolbox for Counting {
    fn tools(&self) -> Arc<Vec<Tool>> {
        let parameters = match self.schema {
            0 => json!({"type": "object"}),
            other => json!({"type": "object", "title": other.to_string()}),
        };
        let (name, description, effect) = ("put".into(), "Put.".into(), Effect::Write);
        let spec = ToolSpec { name, description, parameters, effect };
        Arc::new(vec![Tool::new(spec, Repeat::AskFirst)])
    }

    fn check(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn run(&self, _: ToolRun) -> Ran {
        self.ran.fetch_add(1, Ordering::SeqCst);
        Ran::Ended(CallResult::done("put"))
    }
}
