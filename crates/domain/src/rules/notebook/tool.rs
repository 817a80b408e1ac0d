//! The notebook's tools, spelled as published, and what each call asks for.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::json;

use super::refusal::NotebookRefusal;
use crate::model::{
    effect::{Effect, Repeat, ToolFacts},
    notebook::Page,
    plan::{Plan, PlanStatus, Strategy},
    tools::ToolSpec,
    turn::RequestedCall,
};

/// The notebook's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotebookTool {
    /// `init_plan`
    Init,
    /// `read_plan`
    Read,
    /// `write_plan`
    Write,
    /// `update_plan`
    Update,
    /// `clear_plan`
    Clear,
    /// `list_plans`
    List,
    /// `export_plan`
    Export,
}

/// What a call of a notebook tool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotebookCall {
    /// Begin a task; archive what is complete.
    Init {
        /// What the task is called.
        title: String,
        /// Whether what is there is archived even if it is not complete.
        force_new: bool,
    },
    /// Read a page.
    Read(Page),
    /// Write a whole page.
    Write(Page, String),
    /// Replace one section of a page.
    Update {
        /// The page.
        page: Page,
        /// The section.
        section: String,
        /// Its new body.
        content: String,
    },
    /// Remove the current pages.
    Clear,
    /// List the pages and the archive.
    List,
    /// Copy a page into the files of the person.
    Export(Page),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Init {
    task_title: String,
    #[serde(default)]
    force_new: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default)]
    which: Page,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    which: Page,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    which: Page,
    section: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clear {
    #[serde(default)]
    confirm: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl NotebookTool {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Init, Self::Read, Self::Write, Self::Update, Self::Clear, Self::List, Self::Export];

    /// The name as published.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "init_plan",
            Self::Read => "read_plan",
            Self::Write => "write_plan",
            Self::Update => "update_plan",
            Self::Clear => "clear_plan",
            Self::List => "list_plans",
            Self::Export => "export_plan",
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// As the model is told of it. Kept short: every token is paid for at every model call.
    #[must_use]
    pub fn spec(self) -> Arc<ToolSpec> {
        static SPECS: LazyLock<[Arc<ToolSpec>; 7]> =
            LazyLock::new(|| NotebookTool::ALL.map(|tool| Arc::new(tool.describe())));
        SPECS[self as usize].clone()
    }

    /// As the gate knows it. A page may be written twice; a file of the person's may not, unasked.
    #[must_use]
    pub fn facts(self) -> ToolFacts {
        let spec = self.spec();
        let repeat = match spec.effect {
            Effect::Internal | Effect::Read => Repeat::Harmless,
            Effect::Write | Effect::External => Repeat::AskFirst,
        };
        ToolFacts { effect: spec.effect, repeat, schema: spec.schema_digest() }
    }

    fn describe(self) -> ToolSpec {
        let which = json!({"enum": Page::ALL.map(Page::name)});
        let (text, yes) = (json!({"type": "string"}), json!({"type": "boolean"}));
        let (description, parameters) = match self {
            Self::Init => (
                "Begin a task's pages; archives a complete one.",
                json!({"type": "object", "required": ["task_title"], "properties": {
                    "task_title": text, "force_new": yes}}),
            ),
            Self::Read => {
                ("Read a page.", json!({"type": "object", "properties": {"which": which}}))
            }
            Self::Write => (
                "Write a whole page.",
                json!({"type": "object", "required": ["which", "content"], "properties": {
                    "which": which, "content": text}}),
            ),
            Self::Update => (
                "Replace the body under one heading.",
                json!({"type": "object", "required": ["which", "section", "content"], "properties": {
                    "which": which, "section": text, "content": text}}),
            ),
            Self::Clear => (
                "Remove the pages, not the archive.",
                json!({"type": "object", "properties": {"confirm": yes}}),
            ),
            Self::List => ("List pages and archive.", json!({"type": "object"})),
            Self::Export => (
                "Copy a page into the person's files.",
                json!({"type": "object", "properties": {"which": which}}),
            ),
        };
        let effect = match self {
            Self::Export => Effect::Write,
            Self::Init | Self::Read | Self::Write | Self::Update | Self::Clear | Self::List => {
                Effect::Internal
            }
        };
        ToolSpec { name: self.name().into(), description: description.into(), parameters, effect }
    }

    /// What a call with these arguments asks for.
    pub fn parse_call(self, arguments: &str) -> Result<NotebookCall, NotebookRefusal> {
        Ok(match self {
            Self::Init => {
                let Init { task_title: title, force_new } = self.parse(arguments)?;
                NotebookCall::Init { title, force_new }
            }
            Self::Read => NotebookCall::Read(self.parse::<Which>(arguments)?.which),
            Self::Write => {
                let Write { which, content } = self.parse(arguments)?;
                NotebookCall::Write(which, content)
            }
            Self::Update => {
                let Update { which: page, section, content } = self.parse(arguments)?;
                NotebookCall::Update { page, section, content }
            }
            Self::Clear if self.parse::<Clear>(arguments)?.confirm => NotebookCall::Clear,
            Self::Clear => return Err(NotebookRefusal::NotConfirmed),
            Self::List => {
                self.parse::<Nothing>(arguments)?;
                NotebookCall::List
            }
            Self::Export => NotebookCall::Export(self.parse::<Which>(arguments)?.which),
        })
    }

    fn parse<'a, T: Deserialize<'a>>(self, arguments: &'a str) -> Result<T, NotebookRefusal> {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        serde_json::from_str(arguments).map_err(|error| NotebookRefusal::BadArguments {
            tool: self.name().into(),
            problem: error.to_string(),
        })
    }
}

/// What a call of a notebook tool means for the plan: while plan work is active, `task_plan` is the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// Read the current revision.
    Read,
    /// Save this as the plan.
    Write(String),
    /// Save the plan with this section replaced.
    Update {
        /// The section.
        section: String,
        /// Its new body.
        content: String,
    },
}

/// What this call means for the plan, if it is about the page that the plan stands in for.
#[must_use]
pub fn bound(call: &RequestedCall) -> Option<Bound> {
    match NotebookTool::named(&call.tool)?.parse_call(&call.arguments).ok()? {
        NotebookCall::Read(Page::TaskPlan) => Some(Bound::Read),
        NotebookCall::Write(Page::TaskPlan, content) => Some(Bound::Write(content)),
        NotebookCall::Update { page: Page::TaskPlan, section, content } => {
            Some(Bound::Update { section, content })
        }
        NotebookCall::Init { .. }
        | NotebookCall::Read(_)
        | NotebookCall::Write(..)
        | NotebookCall::Update { .. }
        | NotebookCall::Clear
        | NotebookCall::List
        | NotebookCall::Export(_) => None,
    }
}

/// Whether writing `task_plan` writes this plan.
#[must_use]
pub fn writes_plan(plan: &Plan) -> bool {
    plan.strategy == Strategy::Document
        && matches!(plan.status, PlanStatus::Collecting | PlanStatus::Ready)
}
