//! Words for people who start, revise or execute a plan with a foreign agent.

use rmcp::{
    ErrorData,
    model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};

const START: &str = "plan";
const REVISE: &str = "revise";
const EXECUTE: &str = "execute";

/// The prompts there are.
#[must_use]
pub fn all() -> Vec<Prompt> {
    let argument = |name: &str, words: &str| {
        vec![PromptArgument::new(name).with_description(words).with_required(true)]
    };
    vec![
        Prompt::new(
            START,
            Some("Plan something, and ask for approval"),
            Some(argument("task", "What is to be done")),
        ),
        Prompt::new(
            REVISE,
            Some("Revise the plan as the reviewer asked"),
            None::<Vec<PromptArgument>>,
        ),
        Prompt::new(
            EXECUTE,
            Some("Execute the approved plan step by step"),
            None::<Vec<PromptArgument>>,
        ),
    ]
}

/// One of them, filled in.
pub fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let words = match request.name.as_str() {
        START => {
            let arguments = request.arguments.as_ref();
            let task = arguments.and_then(|given| given.get("task")).and_then(|task| task.as_str());
            let missing = || ErrorData::invalid_params("say what is to be done, as task", None);
            format!(
                "Look around, change nothing, and write a plan with numbered steps for this: {}\n\nSave it with the plan \
                 tools, call plan_ask, and tell me the link. Do not begin before it is approved.",
                task.ok_or_else(missing)?
            )
        }
        REVISE => "Load the plan with plan_get, address or decline every comment, save it again with a reply to each, \
                   and call plan_ask."
            .to_owned(),
        EXECUTE => "Load the plan with plan_get. If it is approved, do the step that it gives you and no other, report it \
                    with plan_report and evidence, and go on until every step is reported. If it is not approved, call \
                    plan_ask and tell me the link."
            .to_owned(),
        other => {
            let words = format!("there is no prompt {other:?}; there are {START}, {REVISE} and {EXECUTE}");
            return Err(ErrorData::invalid_params(words, None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, words)]))
}
