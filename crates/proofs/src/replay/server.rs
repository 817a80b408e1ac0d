//! The servers whose tools are called, and their ledgers: ours, which is strict, and one that others published.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use planwright_testkit::scratch;
use serde_json::{Value, json};

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours.
    Strict,
    /// `@modelcontextprotocol/server-filesystem`, as it is published.
    Published,
}

/// A server, and where its ledger lies.
#[derive(Clone)]
pub(super) struct Server {
    kind: Kind,
    home: Arc<tempfile::TempDir>,
}

const END: &str = "that is all";

/// Where the servers that others published are installed.
fn published() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/mcp")
}

impl Server {
    pub(super) fn new(kind: Kind) -> anyhow::Result<Self> {
        let home = Arc::new(scratch::directory("server")?);
        let server = Self { kind, home };
        if kind == Kind::Published {
            fs::write(server.ledger(), END)?;
        }
        let program = server.command()[usize::from(kind == Kind::Published)].clone();
        anyhow::ensure!(
            PathBuf::from(&program).exists(),
            "{program} is not there; build the package planwright-testkit, and run: npm ci --prefix tools/mcp --ignore-scripts"
        );
        Ok(server)
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Strict => "a strict server",
            Kind::Published => "server-filesystem from npm",
        }
    }

    fn ledger(&self) -> PathBuf {
        self.home.path().join("ledger.txt")
    }

    fn command(&self) -> Vec<String> {
        let words = match self.kind {
            Kind::Strict => {
                let own = std::env::current_exe().unwrap_or_default();
                vec![own.with_file_name("strict-mcp"), self.ledger()]
            }
            Kind::Published => {
                let file = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
                vec!["node".into(), published().join(file), self.home.path().to_owned()]
            }
        };
        words.iter().map(|word| word.display().to_string()).collect()
    }

    /// What the configuration says of it. It is confined, and may write its ledger.
    pub(super) fn config(&self) -> anyhow::Result<String> {
        let seconds = super::TOOL_SECONDS;
        let read = match self.kind {
            Kind::Strict => std::env::current_exe()?.with_file_name("strict-mcp"),
            Kind::Published => published(),
        };
        let (read, write) = (read.canonicalize()?, self.home.path().canonicalize()?);
        Ok(format!(
            "[effects]\ntool_seconds = {seconds}\n[mcp.there]\ncommand = {:?}\nread = [{read:?}]\nwrite = [{write:?}]\n",
            self.command()
        ))
    }

    /// The call that notes this.
    pub(super) fn call(&self, note: &str) -> (&'static str, Value) {
        match self.kind {
            Kind::Strict => ("there__note", json!({"text": note})),
            Kind::Published => {
                let edits = json!([{"oldText": END, "newText": format!("{note}\n{END}")}]);
                ("there__edit_file", json!({"path": self.ledger(), "edits": edits}))
            }
        }
    }

    /// How often it noted what.
    pub(super) fn noted(&self) -> anyhow::Result<BTreeMap<String, u32>> {
        let mut noted = BTreeMap::new();
        for line in fs::read_to_string(self.ledger()).unwrap_or_default().lines() {
            *noted.entry(line.to_owned()).or_default() += 1;
        }
        Ok(noted)
    }

    /// What became of the call in doubt of this plan, as the ledger has it.
    pub(super) fn verdict(&self, status: &Value, plan: u32) -> anyhow::Result<&'static str> {
        let steps = status["plan"]["steps"].as_array();
        let doubted = |step: &&Value| step["came_out"] == "in doubt";
        let step = steps.into_iter().flatten().find(doubted).context("a step in doubt says so")?;
        let number = step["number"].as_u64().context("a step has a number")?;
        let note = format!("plan {plan} step {}", number - 1);
        Ok(if self.noted()?.contains_key(&note) { "happened" } else { "not" })
    }

    /// When after its start, in milliseconds, its calls are under way.
    pub(super) fn busy(&self) -> std::ops::Range<u64> {
        match self.kind {
            Kind::Strict => 20..160,
            Kind::Published => 250..650,
        }
    }

    /// How long it may need to end what it had begun when its caller was killed.
    pub(super) fn ends_within(&self) -> Duration {
        match self.kind {
            Kind::Strict => Duration::from_millis(50),
            Kind::Published => Duration::from_millis(400),
        }
    }
}
