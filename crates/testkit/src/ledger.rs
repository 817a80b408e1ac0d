//! A ledger around the tools: every effect leaves one line that no crash takes back.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use planwright_domain::{
    effect::{Aim, Effect},
    id::CallId,
    identity::Root,
    turn::CallResult,
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};
use uuid::Uuid;

/// The environment variable that names the ledger's file.
pub const LEDGER: &str = "PLANWRIGHT_LEDGER";

/// Tools that keep a ledger.
pub struct LedgerToolbox {
    inner: Arc<dyn Toolbox>,
    path: PathBuf,
}

/// Puts the ledger that the environment names around tools.
#[must_use]
pub fn wrap(inner: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
    match std::env::var_os(LEDGER) {
        Some(path) => Arc::new(LedgerToolbox { inner, path: path.into() }),
        None => inner,
    }
}

#[async_trait]
impl Toolbox for LedgerToolbox {
    fn tools(&self) -> Arc<Vec<Tool>> {
        self.inner.tools()
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        self.inner.check(tool, arguments)
    }

    fn aim(&self, root: Option<&Root>, tool: &str, arguments: &str) -> Aim {
        self.inner.aim(root, tool, arguments)
    }

    async fn refresh(&self) {
        self.inner.refresh().await;
    }

    async fn run(&self, run: ToolRun) -> Ran {
        let tools = self.tools();
        let effect =
            tools.iter().find(|tool| tool.spec.name == run.tool).map(|tool| tool.spec.effect);
        if effect != Some(Effect::Read)
            && let Err(error) = append(&self.path, run.call, run.attempt)
        {
            return Ran::Ended(CallResult::failed(format!("the ledger failed: {error}")));
        }
        self.inner.run(run).await
    }
}

/// One line, in one write, at the end of the file.
fn append(path: &Path, call: CallId, attempt: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{call} {attempt}\n").as_bytes())
}

/// How often each call took effect.
pub fn read(path: &Path) -> io::Result<BTreeMap<CallId, u32>> {
    let mut counts = BTreeMap::new();
    let text = fs::read_to_string(path).or_else(|error| {
        if error.kind() == io::ErrorKind::NotFound { Ok(String::new()) } else { Err(error) }
    })?;
    for line in text.lines() {
        let call = line.split(' ').next().and_then(|call| Uuid::parse_str(call).ok());
        *counts
            .entry(
                call.ok_or_else(|| io::Error::other(format!("not a line of a ledger: {line}")))?
                    .into(),
            )
            .or_default() += 1;
    }
    Ok(counts)
}
