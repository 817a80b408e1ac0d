//! A call of a tool, as a toolbox is asked to make it.

use std::{collections::BTreeSet, fmt::Display};

use planwright_runtime::ports::toolbox::ToolRun;
use uuid::Uuid;

use crate::people::ada_key;

/// A call by nobody's plan, in ada's session. A test that is about more says so in its own fields.
#[must_use]
pub fn tool_run(tool: &str, arguments: impl Display) -> ToolRun {
    ToolRun {
        identity: ada_key("cli:talk-0001").expect("a key"),
        call: Uuid::now_v7().into(),
        attempt: 1,
        tool: tool.into(),
        arguments: arguments.to_string(),
        plan: None,
        context: None,
        root: None,
        hosts: BTreeSet::new(),
    }
}
