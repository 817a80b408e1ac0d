//! Ollama's own format.

use serde_json::{Value, json};

use super::{Ends, Had, Reply, list, only, text};

pub(super) fn check(had: &Had) -> Result<(), String> {
    if had.path != "/api/chat" {
        return Err(format!("there is nothing at {}", had.path));
    }
    let body = &had.body;
    only(body, &["model", "messages", "stream", "options", "tools", "think"], "body")?;
    text(&body["model"], "model")?;
    if body["options"]["num_ctx"].as_u64().is_none() {
        return Err("without num_ctx the prompt is cut without a word".into());
    }
    let mut called: Vec<String> = Vec::new();
    for (at, message) in list(&body["messages"]).iter().enumerate() {
        let place = format!("messages[{at}]");
        only(message, &["role", "content", "tool_calls", "tool_name"], &place)?;
        match message["role"].as_str().unwrap_or_default() {
            "tool" => {
                let name = text(&message["tool_name"], &place)?;
                if called.is_empty() || called.remove(0) != name {
                    return Err(format!("{place}: a result of {name} that nobody asked for"));
                }
            }
            _ if !called.is_empty() => return Err(format!("{place}: {called:?} have no result")),
            "assistant" => {
                for call in list(&message["tool_calls"]) {
                    if !call["function"]["arguments"].is_object() {
                        return Err(format!("{place}: json: cannot unmarshal into arguments"));
                    }
                    called.push(text(&call["function"]["name"], &place)?.to_owned());
                }
            }
            "system" | "user" => {
                text(&message["content"], &place)?;
            }
            other => return Err(format!("{place}: invalid role {other:?}")),
        }
    }
    if called.is_empty() { Ok(()) } else { Err(format!("{called:?} have no result")) }
}

pub(super) fn pieces(reply: &Reply, _: usize) -> Vec<String> {
    let line = |message: Value, done: Value| {
        let mut line = json!({"model": "m", "created_at": "2026-11-15T00:00:00Z", "message": message, "done": false});
        if let Value::Object(fields) = done {
            fields.into_iter().for_each(|(name, value)| line[name] = value);
        }
        format!("{line}\n")
    };
    let mut pieces = Vec::new();
    if reply.thinks {
        pieces.push(line(
            json!({"role": "assistant", "content": "", "thinking": "Let me see."}),
            Value::Null,
        ));
    }
    for word in reply.text.split_inclusive(' ') {
        pieces.push(line(json!({"role": "assistant", "content": word}), Value::Null));
    }
    for (tool, arguments) in &reply.calls {
        let arguments =
            serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| arguments.as_str().into());
        let call = json!({"function": {"name": tool, "arguments": arguments}});
        pieces.push(line(
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            Value::Null,
        ));
    }
    let end = |reason: &str| json!({"done": true, "done_reason": reason, "prompt_eval_count": 200, "eval_count": 20});
    let empty = json!({"role": "assistant", "content": ""});
    match reply.ends {
        Ends::WithoutReason => {}
        Ends::WithError => pieces.push(format!(
            "{}\n",
            json!({"error": "an error was encountered while running the model"})
        )),
        Ends::TooLong => pieces.push(line(empty, end("length"))),
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled | Ends::Withheld => {
            pieces.push(line(empty, end("stop")))
        }
    }
    pieces
}
