//! Executes tool calls: by the toolbox, by the notebook, and `read_result` for outputs that were truncated.

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
    prompt,
    session::{Session, SessionEvent},
    tools::{READ_RESULT, ToolSpec},
    turn::{CallResult, CallStatus, ToolReply, event::TurnEvent},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    engine::context_window::result_key,
    engine::output::{until, whole_output},
    ports::{
        Clock, Ports,
        journal::{Journal, JournalError},
        notebook::Notebooks,
        toolbox::{Ran, Tool, ToolRun, Toolbox},
    },
    secrets::Secrets,
    settings::{NotebookSettings, Settings},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadResult {
    key: String,
}

/// The tool that reads what was shortened, as the model is told of it: while plan work is active, and where something was.
pub(crate) fn read_result() -> Arc<ToolSpec> {
    static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
        Arc::new(ToolSpec {
            name: READ_RESULT.into(),
            description: "Read a shortened result.".into(),
            parameters: json!({"type": "object", "required": ["key"], "properties": {
                "key": {"type": "string"}}}),
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
            Ran::Ended(result) => Ran::Ended(self.secrets.hide_in(result)),
            Ran::Unknown { why } => Ran::Unknown { why: self.secrets.hide(why) },
        }
    }

    /// A page of a result that was shortened. A key is what stands where it was, or the digest of an output that was kept whole;
    /// `KEY:BYTE` reads on from there.
    async fn read_again(&self, run: &ToolRun) -> Result<Ran, JournalError> {
        let failed = |words: String| Ok(ended(CallStatus::Failed, words));
        let asked = match serde_json::from_str(&run.arguments) {
            Ok(ReadResult { key }) => key,
            Err(error) => return failed(error.to_string()),
        };
        let (key, from) = asked.trim().split_once(':').unwrap_or((asked.trim(), "0"));
        let Some(text) = self.result_of(&run.identity, key).await? else {
            return failed(format!(
                "no result of this session has the key {key:?}; give the one that stands where a result was shortened"
            ));
        };
        match from.parse().ok().filter(|from| *from < text.len().max(1)) {
            Some(from) => Ok(ended(CallStatus::Done, page(&text, key, from))),
            None => {
                failed(format!("it has {} bytes; say {key}, or {key}:BYTE to read on", text.len()))
            }
        }
    }

    async fn result_of(
        &self,
        identity: &SessionKey,
        key: &str,
    ) -> Result<Option<String>, JournalError> {
        if let Some(whole) = Digest::parse(key) {
            return whole_output(&*self.journal, identity, whole).await;
        }
        let seq = key.split('-').next().and_then(|seq| seq.parse::<u64>().ok());
        let Some(before) = seq.and_then(|seq| seq.checked_sub(1)) else { return Ok(None) };
        let found = self.journal.events(identity, Seq(before), 1).await?.pop();
        let text = match found.map(|recorded| recorded.event) {
            Some(SessionEvent::Turn(TurnEvent::CallFinished { result, .. })) => {
                Some(match result.status {
                    CallStatus::Done => result.output,
                    CallStatus::Failed => format!("failed: {}", result.output),
                })
            }
            Some(SessionEvent::Turn(TurnEvent::CallAnswered { reply, .. })) => match reply {
                ToolReply::Text { text } => Some(text),
                ToolReply::Refused { words, .. } => Some(words),
                ToolReply::Plans => {
                    return Ok(Some("plan_list lists them as they stand now".into()));
                }
                ToolReply::Revision { heading, .. } => {
                    return Ok(Some(format!(
                        "{heading}; plan_get loads the plan as it stands now"
                    )));
                }
                ToolReply::Planned | ToolReply::LeftRunning => None,
            },
            Some(_) | None => None,
        };
        let is_meant = |text: &String| result_key(Seq(before + 1), text) == key;
        Ok(text.filter(is_meant))
    }
}

/// How much of a result is read at once.
const PAGE_BYTES: usize = 16 * 1024;

/// What stands there from this byte on, to the end of a line if there is one, and how the rest is read. Who gave it is not known
/// here, so it is labelled.
fn page(text: &str, key: &str, from: usize) -> String {
    let from = until(text, from).len();
    let (rest, label) = (&text[from..], prompt::OUTSIDE_LABEL);
    let shown = until(rest, PAGE_BYTES);
    if shown.len() == rest.len() {
        return format!("{label}{rest}");
    }
    let shown = shown.rfind('\n').map_or(shown, |end| &shown[..=end]);
    format!("{label}{shown}\n[read_result {key}:{} reads on]", from + shown.len())
}

/// A call that ended so.
pub(crate) fn ended(status: CallStatus, output: String) -> Ran {
    Ran::Ended(CallResult::of(status, output))
}

/// Where copies of pages are put among the person's files.
const EXPORTED_TO: &str = "planning";

/// Where a page is written to in the workspace.
pub(crate) fn exported(page: Page) -> String {
    format!("{EXPORTED_TO}/{}", page.file())
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, page};

    #[test]
    fn pages_of_a_result_give_every_byte_once() {
        let lines: String = (1..5_000).map(|line| format!("line {line}: ä\n")).collect();
        for text in [lines, "ä".repeat(30_000), "short".into()] {
            let (mut read, mut from) = (String::new(), 0);
            loop {
                let given = page(&text, "42-abcd", from);
                assert!(given.len() < PAGE_BYTES + 100, "{} bytes", given.len());
                let given = given.strip_prefix("[from outside]\n").expect("a label");
                let Some((some, on)) = given.split_once("\n[read_result 42-abcd:") else {
                    read.push_str(given);
                    break;
                };
                read.push_str(some);
                from = on.split(' ').next().expect("a byte").parse().expect("a number");
            }
            assert!(read == text, "{} of {} bytes", read.len(), text.len());
        }
    }
}
