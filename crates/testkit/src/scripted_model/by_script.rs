//! A model that says what it is asked to say: the last message that holds a script decides.
//!
//! A script stands in one line, as `script {…}`: with plan work active it is a plan, then what is written when changes
//! are requested; executing, it is a list of calls; else it is calls and words.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Conduct, ScriptedReply, SeenRequest, Shape, worker::left_unanswered};

/// What a model is asked to say.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The plan that is written.
    plan: Option<String>,
    /// The plan that is written when changes are requested.
    revised: Option<String>,
    /// What is answered to each comment then.
    answer: Option<String>,
    /// What is called while the plan is executed, one call a round.
    work: Vec<(String, Value)>,
    /// What is called outside of plan work, one call a round.
    calls: Vec<(String, Value)>,
    /// What is called outside of plan work, all at once.
    calls_at_once: Vec<(String, Value)>,
    /// The words at the end.
    say: String,
    /// The words at the end, repeated so often.
    times: usize,
    /// How long it thinks first.
    thinks_ms: u64,
    /// How long it pauses between two pieces.
    pace_ms: u64,
    /// Whether the server fails for the first time.
    stumbles: bool,
}

/// A model that says what it is asked to say. Messages that hold one of these phrases need no script of their own.
#[must_use]
pub fn by_script(known: BTreeMap<String, Script>) -> Conduct {
    Arc::new(move |seen: &SeenRequest| {
        let script = script(seen, &known);
        let executing = seen.last_message.starts_with("Execute the approved plan")
            || seen.last_message.starts_with("Go on with");
        let planning = seen.tools.iter().any(|tool| tool == "plan_set_content");
        let left = left_unanswered(seen);
        let call = |(tool, arguments): &(String, Value)| ScriptedReply::call(tool, arguments);
        let mut said = if executing {
            match script.work.get(seen.rounds) {
                Some(work) => call(work),
                None if seen.rounds == script.work.len() => ScriptedReply::call(
                    "plan_report",
                    &json!({"status": "done", "summary": "as planned"}),
                ),
                None => ScriptedReply::text("Executed, as planned."),
            }
        } else if let (false, true, Some(plan)) = (left.is_empty(), planning, &script.revised) {
            let reply = |number| json!({"comment": number, "answer": script.answer});
            let replies: Vec<_> = left.iter().map(reply).collect();
            ScriptedReply::call(
                "plan_set_content",
                &json!({"plan_markdown": plan, "replies": replies}),
            )
        } else if let (0, true, Some(plan)) = (seen.rounds, planning, &script.plan) {
            ScriptedReply::call("plan_set_content", &json!({"plan_markdown": plan}))
        } else if let Some(next) = script.calls.get(seen.rounds).filter(|_| script.plan.is_none()) {
            call(next)
        } else if seen.rounds == 0 && !script.calls_at_once.is_empty() {
            let calls = script.calls_at_once.iter();
            calls
                .fold(ScriptedReply::default(), |said, (tool, arguments)| said.and(tool, arguments))
        } else {
            let words = if script.say.is_empty() { "As you say." } else { &script.say };
            ScriptedReply::text(&words.repeat(script.times.max(1)))
        };
        said.thinks = Duration::from_millis(script.thinks_ms);
        said.pace = Duration::from_millis(script.pace_ms);
        if script.stumbles && seen.earlier == 0 {
            said.shape = Shape::ServerError;
        }
        said
    })
}

fn script(seen: &SeenRequest, known: &BTreeMap<String, Script>) -> Script {
    let messages = seen.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = messages.iter().rev().filter(|message| message["role"] == "user");
    let mut lines = texts.flat_map(|message| message["content"].as_str().unwrap_or("").lines());
    let found = lines.find_map(|line| {
        if let Some((_, script)) = known.iter().find(|(phrase, _)| line.contains(*phrase)) {
            return Some(script.clone());
        }
        let at = line.find("script {")? + "script ".len();
        serde_json::Deserializer::from_str(&line[at..]).into_iter().next()?.ok()
    });
    found.unwrap_or_default()
}
