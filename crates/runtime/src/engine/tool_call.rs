//! Executes tool calls: by the toolbox, by the notebook, and `read_result` for outputs that were truncated.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use planwright_domain::{
    digest::Digest,
    effect::{Aim, Effect, Repeat},
    id::Seq,
    identity::{Root, SessionKey},
    notebook::{
        NotebookRefusal, Page,
        tool::{NotebookCall, NotebookTool},
    },
    session::{Session, SessionEvent},
    tools::ToolSpec,
    turn::{CallResult, CallStatus, event::TurnEvent},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    engine::output::whole_output,
    event_pages::for_each_event,
    ports::{
        Clock, Ports,
        journal::{Journal, JournalError},
        notebook::Notebooks,
        toolbox::{Ran, Tool, ToolRun, Toolbox},
    },
    secrets::Secrets,
    settings::{NotebookSettings, Settings},
};

/// The tool that reads what was shortened.
const READ_RESULT: &str = "read_result";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadResult {
    digest: String,
    first_line: Option<usize>,
    lines: Option<usize>,
}

/// The tool that reads what was shortened, as the model is told of it: only where something was.
pub(crate) fn read_result() -> Arc<ToolSpec> {
    static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
        Arc::new(ToolSpec {
            name: READ_RESULT.into(),
            description: "Read a shortened result.".into(),
            parameters: json!({"type": "object", "required": ["digest"], "properties": {
                "digest": {"type": "string"}, "first_line": {"type": "integer"},
                "lines": {"type": "integer"}}}),
            effect: Effect::Internal,
        })
    });
    SPEC.clone()
}

/// What runs tools: the toolbox, and the notebook over its pages.
#[derive(Clone)]
pub(crate) struct ToolRunner {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) toolbox: Arc<dyn Toolbox>,
    pub(crate) notebook: Arc<dyn Notebooks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: NotebookSettings,
    secrets: Arc<Secrets>,
}

impl ToolRunner {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            journal: ports.journal.clone(),
            toolbox: ports.toolbox.clone(),
            notebook: ports.notebook.clone(),
            clock: ports.clock.clone(),
            settings: settings.notebook,
            secrets: settings.secrets.clone(),
        }
    }

    /// Lists the tools again, where that takes a while.
    pub(crate) async fn refresh(&self) {
        self.toolbox.refresh().await;
    }

    /// The tool of this name, of the notebook or of the toolbox.
    pub(crate) fn tool(&self, name: &str) -> Option<Tool> {
        if name == READ_RESULT {
            return Some(Tool::new((*read_result()).clone(), Repeat::Harmless));
        }
        if let Some(tool) = NotebookTool::named(name) {
            return Some(Tool { spec: tool.spec(), facts: tool.facts(), is_unconfined: false });
        }
        self.toolbox.tools().iter().find(|tool| tool.spec.name == name).cloned()
    }

    /// Whether a tool can take these arguments in this session; in words if not.
    pub(crate) fn check(
        &self,
        session: &Session,
        name: &str,
        arguments: &str,
    ) -> Result<(), String> {
        if name == READ_RESULT {
            return serde_json::from_str::<ReadResult>(arguments)
                .map(drop)
                .map_err(|error| format!("the arguments of {name} do not fit: {error}"));
        }
        match NotebookTool::named(name) {
            Some(_) if !self.has_notebook(session) => Err(NotebookRefusal::Off.to_string()),
            Some(tool) => {
                tool.parse_call(arguments).map(drop).map_err(|refusal| refusal.to_string())
            }
            None => self.toolbox.check(name, arguments),
        }
    }

    /// What a call is aimed at.
    pub(crate) fn aim(&self, root: Option<&Root>, name: &str, arguments: &str) -> Aim {
        if name == READ_RESULT {
            return Aim::default();
        }
        match NotebookTool::named(name).map(|tool| tool.parse_call(arguments)) {
            Some(Ok(NotebookCall::Export(page))) => {
                let write = json!({"path": exported(page), "content": ""}).to_string();
                self.toolbox.aim(root, "write_file", &write)
            }
            Some(_) => Aim::default(),
            None => self.toolbox.aim(root, name, arguments),
        }
    }

    /// Makes a call, of the notebook or of the toolbox.
    pub(crate) async fn run(&self, run: ToolRun) -> Ran {
        if run.tool == READ_RESULT {
            return self
                .read_again(&run)
                .await
                .unwrap_or_else(|error| ended(CallStatus::Failed, error.to_string()));
        }
        let Some(tool) = NotebookTool::named(&run.tool) else {
            return self.without_secrets(self.toolbox.run(run).await);
        };
        self.use_notebook(tool, &run).await
    }

    /// What a tool gave, without the values that the installation knows as secrets.
    fn without_secrets(&self, ran: Ran) -> Ran {
        match ran {
            Ran::Ended(result) => {
                Ran::Ended(CallResult { output: self.secrets.hide(result.output), ..result })
            }
            Ran::Unknown { why } => Ran::Unknown { why: self.secrets.hide(why) },
        }
    }

    /// A result that was shortened, whole or in part: found by the beginning of its digest.
    async fn read_again(&self, run: &ToolRun) -> Result<Ran, JournalError> {
        let failed = |words: String| Ok(ended(CallStatus::Failed, words));
        let ReadResult { digest, first_line, lines } = match serde_json::from_str(&run.arguments) {
            Ok(asked) => asked,
            Err(error) => return failed(error.to_string()),
        };
        if digest.len() < 8 {
            return failed("give at least eight digits of the digest".into());
        }
        let Some(text) = self.result_of(&run.identity, &digest).await? else {
            return failed(format!("no result of this session has a digest that begins {digest}"));
        };
        let first = first_line.unwrap_or(1).max(1);
        let part: Vec<_> = text.lines().skip(first - 1).take(lines.unwrap_or(usize::MAX)).collect();
        Ok(ended(CallStatus::Done, part.join("\n")))
    }

    async fn result_of(
        &self,
        identity: &SessionKey,
        digest: &str,
    ) -> Result<Option<String>, JournalError> {
        if let Some(whole) = Digest::parse(digest)
            && let Some(kept) = whole_output(&*self.journal, identity, whole).await?
        {
            return Ok(Some(kept));
        }
        let mut found = None;
        for_each_event(&*self.journal, identity, Seq(0), |recorded| {
            let SessionEvent::Turn(TurnEvent::CallFinished { result, .. }) = recorded.event else {
                return Ok::<_, JournalError>(ControlFlow::Continue(()));
            };
            // As the model was given it.
            let text = match result.status {
                CallStatus::Done => result.output,
                CallStatus::Failed => format!("failed: {}", result.output),
            };
            if !Digest::of(text.as_bytes()).to_string().starts_with(digest) {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(text);
            Ok(ControlFlow::Break(()))
        })
        .await?;
        Ok(found)
    }
}

/// A call that ended so.
pub(crate) fn ended(status: CallStatus, output: String) -> Ran {
    Ran::Ended(CallResult { status, output, touched: Vec::new() })
}

/// Where copies of pages are put among the person's files.
const EXPORTED_TO: &str = "planning";

/// Where a page is written to in the workspace.
pub(crate) fn exported(page: Page) -> String {
    format!("{EXPORTED_TO}/{}", page.file())
}
