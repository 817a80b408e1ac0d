//! A tool that counts how often it was run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use planwright_domain::{
    effect::{Effect, Repeat},
    tools::ToolSpec,
    turn::CallResult,
};
use planwright_runtime::ports::toolbox::{Ran, Tool, ToolRun, Toolbox};
use serde::Deserialize;
use serde_json::json;

/// One tool, `look`, which counts.
#[derive(Default)]
pub(super) struct Counting(AtomicUsize);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    at: String,
}

impl Counting {
    pub(super) fn runs(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Toolbox for Counting {
    fn tools(&self) -> Arc<Vec<Tool>> {
        let spec = ToolSpec {
            name: "look".into(),
            description: "Look at something.".into(),
            parameters: json!({"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}}),
            effect: Effect::Read,
        };
        Arc::new(vec![Tool::new(spec, Repeat::Harmless)])
    }

    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        if tool != "look" {
            return Err(format!("there is no tool {tool}"));
        }
        serde_json::from_str::<Look>(arguments)
            .map(drop)
            .map_err(|error| format!("the arguments of look do not fit: {error}"))
    }

    async fn run(&self, run: ToolRun) -> Ran {
        self.0.fetch_add(1, Ordering::SeqCst);
        let looked = serde_json::from_str::<Look>(&run.arguments).map(|look| look.at);
        let output = format!("seen: {}", looked.unwrap_or_default());
        Ran::Ended(CallResult::done(output))
    }
}
