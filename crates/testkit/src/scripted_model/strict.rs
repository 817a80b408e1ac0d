//! What a real server refuses, this one refuses: orphan results, missing results, broken arguments.

use std::collections::BTreeSet;

use serde_json::Value;

/// In words, what is wrong with a request.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    let text = |value: &Value, name: &str| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(drop)
            .ok_or(format!("{name} is required"))
    };
    text(&body["model"], "model")?;
    if body["stream"] != Value::Bool(true) {
        return Err("this server only streams".into());
    }
    for tool in body["tools"].as_array().map(Vec::as_slice).unwrap_or_default() {
        text(&tool["function"]["name"], "tools[].function.name")?;
        if tool["type"] != "function" || tool["function"]["parameters"]["type"] != "object" {
            return Err("tools[] must be functions whose parameters are an object".into());
        }
    }
    let messages = body["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty())
        .ok_or("messages is required")?;
    let mut awaited: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !awaited.remove(id) {
                return Err(format!(
                    "messages[{at}]: role 'tool' must follow a message with tool_calls that holds {id:?}"
                ));
            }
            text(&message["content"], "content of a tool message")
                .or_else(|words| if message["content"] == "" { Ok(()) } else { Err(words) })?;
            continue;
        }
        if let Some(id) = awaited.first() {
            return Err(format!(
                "messages[{at}]: the tool call {id:?} has no result before the next message"
            ));
        }
        match role {
            "system" | "user" => text(&message["content"], &format!("messages[{at}].content"))?,
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                if calls.is_empty() {
                    text(&message["content"], &format!("messages[{at}].content"))?;
                }
                for call in calls {
                    text(&call["id"], "tool_calls[].id")?;
                    text(&call["function"]["name"], "tool_calls[].function.name")?;
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(arguments)
                        .is_ok_and(|value| value.is_object())
                    {
                        return Err("tool_calls[].function.arguments must be a JSON object".into());
                    }
                    if !awaited.insert(call["id"].as_str().unwrap_or_default().to_owned()) {
                        return Err("tool_calls[].id must be unique within a message".into());
                    }
                }
            }
            other => return Err(format!("messages[{at}].role {other:?} is not known")),
        }
    }
    match awaited.first() {
        Some(id) => Err(format!("the tool call {id:?} has no result")),
        None => Ok(()),
    }
}
