//! The tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use planwright_domain::{
    autonomy::AutoExecutionContext,
    digest::Digest,
    effect::{Aim, Repeat, ToolFacts},
    id::{CallId, PlanId},
    identity::{Root, SessionKey},
    tools::ToolSpec,
    turn::CallResult,
};

/// A tool of the toolbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// As the model is told of it.
    pub spec: Arc<ToolSpec>,
    /// As the gate knows it.
    pub facts: ToolFacts,
    /// Whether it runs in a process beside us that this machine does not confine.
    pub is_unconfined: bool,
}

impl Tool {
    /// A tool, and whether a call whose outcome is unknown may be made again unasked.
    #[must_use]
    pub fn new(spec: ToolSpec, repeat: Repeat) -> Self {
        let facts = ToolFacts { effect: spec.effect, repeat, schema: spec.schema_digest() };
        Self { spec: Arc::new(spec), facts, is_unconfined: false }
    }
}

/// One call to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRun {
    /// In this session.
    pub identity: SessionKey,
    /// The call: also the idempotency key.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub arguments: String,
    /// The plan under whose lease it runs.
    pub plan: Option<PlanId>,
    /// Whose work it is, if it is a run's.
    pub context: Option<AutoExecutionContext>,
    /// The directory that its paths are relative to; the configured one, if the session has none.
    pub root: Option<Root>,
    /// The hosts that the lease under which it runs names.
    pub hosts: BTreeSet<String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It ended, well or badly.
    Ended(CallResult),
    /// Nobody knows whether it took effect.
    Unknown {
        /// In words.
        why: String,
    },
}

/// The tools there are.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// All of them, as they stand now.
    fn tools(&self) -> Arc<Vec<Tool>>;

    /// What a call with these arguments is aimed at, as far as the tool can say: paths by where they really are under the
    /// session's root, after links.
    fn aim(&self, root: Option<&Root>, tool: &str, arguments: &str) -> Aim {
        let _ = (root, tool, arguments);
        Aim::default()
    }

    /// Whether a tool can take these arguments; in words if not.
    fn check(&self, tool: &str, arguments: &str) -> Result<(), String>;

    /// Looks again which tools there are, where they may change by themselves. The gate asks for this
    /// before every call, so that what was approved is held against what is there now.
    async fn refresh(&self) {}

    /// Makes a call.
    async fn run(&self, run: ToolRun) -> Ran;
}

/// The schemas of a toolbox, by name.
pub fn schemas(toolbox: &dyn Toolbox) -> BTreeMap<String, Digest> {
    toolbox.tools().iter().map(|tool| (tool.spec.name.clone(), tool.facts.schema)).collect()
}

/// Why nothing is done in a root that is not among these any more.
#[must_use]
pub fn root_not_configured(root: Option<&Root>, roots: &[Root]) -> String {
    let root = root.map_or("the workspace", |root| root.0.as_str());
    let roots: Vec<_> = roots.iter().map(|root| root.0.as_str()).collect();
    format!(
        "this session works in {root}, which is not among the roots that are configured now ({}); nothing was done. The \
         operator adds it to workspace.roots, or a person begins a session elsewhere",
        roots.join(", ")
    )
}
