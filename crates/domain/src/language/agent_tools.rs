//! Tool specifications advertised to foreign agents.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use crate::{
    model::{
        effect::Effect,
        plan::Strategy,
        session::Session,
        tools::{PLAN_ASK, PlanTool, ToolSpec},
    },
    rules::{
        agent::{available, may_ask},
        tools::of_strategy,
    },
};

/// As a foreign agent is told of its plan tools now.
#[must_use]
pub fn specs(session: &Session) -> Vec<Arc<ToolSpec>> {
    let mut specs: Vec<_> =
        available(session).into_iter().map(|tool| described(tool, &tool.spec())).collect();
    specs.extend(may_ask(session).then(ask_spec));
    specs
}

/// Every tool of a strategy, for clients that never look again; what is not available is refused.
#[must_use]
pub fn all_specs(strategy: Strategy) -> Vec<Arc<ToolSpec>> {
    // An agent of its own makes its calls itself: there is nothing to collect.
    let tools = if strategy == Strategy::Collect { &[] } else { of_strategy(strategy) };
    tools.iter().map(|tool| described(*tool, &lasting(*tool))).chain([ask_spec()]).collect()
}

/// A plan tool for someone who never looks again, in fewer words: the title is the first heading.
fn lasting(tool: PlanTool) -> Arc<ToolSpec> {
    let mut spec = (*tool.spec()).clone();
    if tool == PlanTool::SetContent
        && let Some(fields) = spec.parameters["properties"].as_object_mut()
    {
        fields.remove("title");
    }
    Arc::new(spec)
}

/// A plan tool in the words that fit an agent of its own: it reports steps, and has no profiles.
fn described(tool: PlanTool, spec: &Arc<ToolSpec>) -> Arc<ToolSpec> {
    match tool {
        PlanTool::Report => {
            let mut spec = (**spec).clone();
            spec.description = "Report a step.".into();
            spec.parameters["properties"]["step"] = json!({"type": "integer"});
            Arc::new(spec)
        }
        PlanTool::AddStep | PlanTool::UpdateStep => {
            let mut spec = (**spec).clone();
            if let Some(fields) = spec.parameters["properties"].as_object_mut() {
                fields.remove("profile");
            }
            if let Some(required) = spec.parameters["required"].as_array_mut() {
                required.retain(|name| name != "profile");
            }
            Arc::new(spec)
        }
        PlanTool::Get
        | PlanTool::SetContent
        | PlanTool::Finalize
        | PlanTool::Create
        | PlanTool::SetMetadata
        | PlanTool::RemoveStep
        | PlanTool::Submit
        | PlanTool::List => spec.clone(),
    }
}

fn ask_spec() -> Arc<ToolSpec> {
    static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
        Arc::new(ToolSpec {
            name: PLAN_ASK.into(),
            description: "Ask a person to decide.".into(),
            parameters: json!({"type": "object", "properties": {"wait_seconds": {"type": "integer"}}}),
            effect: Effect::Internal,
        })
    });
    SPEC.clone()
}
