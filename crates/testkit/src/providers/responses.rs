//! OpenAI's Responses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Ends, Had, Reply, SIGNED, bearer, event, is_name, list, only, text};

const FIELDS: [&str; 10] = [
    "model",
    "instructions",
    "input",
    "stream",
    "store",
    "include",
    "max_output_tokens",
    "tools",
    "reasoning",
    "prompt_cache_key",
];

pub(super) fn check(had: &Had) -> Result<(), String> {
    bearer(had)?;
    if had.path != "/v1/responses" {
        return Err(format!("there is nothing at {}", had.path));
    }
    let body = &had.body;
    only(body, &FIELDS, "body")?;
    text(&body["model"], "model")?;
    if body.get("prompt_cache_key").is_some() {
        let key = text(&body["prompt_cache_key"], "prompt_cache_key")?;
        if key.chars().count() > 64 {
            return Err(format!("prompt_cache_key: string too long, at most 64: {key:?}"));
        }
    }
    if body["store"] != false
        || !list(&body["include"]).contains(&json!("reasoning.encrypted_content"))
    {
        return Err(
            "reasoning can be taken back without storage only if it was included encrypted".into(),
        );
    }
    for tool in list(&body["tools"]) {
        only(tool, &["type", "name", "description", "parameters", "strict"], "tools")?;
        if tool["type"] != "function" || !is_name(text(&tool["name"], "tools.name")?, 64) {
            return Err("tools: Missing required parameter: 'tools[0].name'".into());
        }
    }
    check_input(list(&body["input"]))
}

fn check_input(input: &[Value]) -> Result<(), String> {
    if input.is_empty() {
        return Err("input: Field required".into());
    }
    let (mut open, mut given) = (BTreeSet::new(), BTreeSet::new());
    for (at, item) in input.iter().enumerate() {
        let place = format!("input[{at}]");
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                only(item, &["type", "role", "content"], &place)?;
                let kind = if item["role"] == "assistant" { "output_text" } else { "input_text" };
                for part in list(&item["content"]) {
                    if part["type"] != kind {
                        return Err(format!(
                            "{place}: Invalid value: {}. Supported: {kind}",
                            part["type"]
                        ));
                    }
                    text(&part["text"], &place)?;
                }
            }
            "function_call" => {
                only(item, &["type", "call_id", "name", "arguments", "id"], &place)?;
                let id = text(&item["call_id"], &place)?.to_owned();
                let arguments = text(&item["arguments"], &place)?;
                if id.len() > 64 || serde_json::from_str::<Value>(arguments).is_err() {
                    return Err(format!("{place}: the call does not fit"));
                }
                if !given.insert(id.clone()) {
                    return Err(format!("{place}: Duplicate item found with call_id {id}"));
                }
                open.insert(id);
            }
            "function_call_output" => {
                only(item, &["type", "call_id", "output"], &place)?;
                let id = text(&item["call_id"], &place)?;
                if !open.remove(id) {
                    return Err(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
            }
            "reasoning" => {
                only(item, &["type", "id", "summary", "encrypted_content"], &place)?;
                if !text(&item["encrypted_content"], &place)?.starts_with(SIGNED) {
                    return Err(format!("{place}: the encrypted content could not be verified"));
                }
                let next = input.get(at + 1).map(|next| next["type"].clone());
                if !matches!(
                    next.as_ref().and_then(Value::as_str),
                    Some("message" | "function_call" | "reasoning")
                ) {
                    return Err("Item of type 'reasoning' was provided without its required following item.".into());
                }
            }
            other => return Err(format!("{place}: Invalid value: {other:?}")),
        }
    }
    match open.first() {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

pub(super) fn pieces(reply: &Reply, number: usize) -> Vec<String> {
    let mut sequence = 0;
    let mut named = |name: &str, mut data: Value| {
        data["type"] = name.into();
        data["sequence_number"] = sequence.into();
        sequence += 1;
        event(Some(name), &data)
    };
    let mut pieces = vec![named(
        "response.created",
        json!({"response": {"id": "resp_1", "status": "in_progress"}}),
    )];
    let mut index = 0;
    if reply.thinks {
        let item = json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [], "encrypted_content": format!("{SIGNED}responses-{number}")});
        pieces.push(named(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        ));
        pieces
            .push(named("response.output_item.done", json!({"output_index": index, "item": item})));
        index += 1;
    }
    if !reply.text.is_empty() {
        for word in reply.text.split_inclusive(' ') {
            pieces.push(named(
                "response.output_text.delta",
                json!({"output_index": index, "content_index": 0, "delta": word}),
            ));
        }
        let part = if reply.ends == Ends::Withheld {
            json!({"type": "refusal", "refusal": "I cannot."})
        } else {
            json!({"type": "output_text", "text": reply.text, "annotations": []})
        };
        let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
        pieces
            .push(named("response.output_item.done", json!({"output_index": index, "item": item})));
        index += 1;
    }
    for (at, (tool, arguments)) in reply.calls.iter().enumerate() {
        let id = format!("call_{number}_{at}");
        pieces.push(named(
            "response.function_call_arguments.delta",
            json!({"output_index": index, "item_id": "fc_1", "delta": arguments}),
        ));
        let item = json!({"type": "function_call", "id": format!("fc_{number}_{at}"), "call_id": id, "name": tool, "arguments": arguments, "status": "completed"});
        pieces
            .push(named("response.output_item.done", json!({"output_index": index, "item": item})));
        index += 1;
    }
    let usage = json!({"input_tokens": 200, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 128}});
    match reply.ends {
        Ends::WithoutReason => {}
        Ends::WithError => pieces.push(named("error", json!({"code": "server_error", "message": "The server had an error"}))),
        Ends::TooLong => pieces.push(named("response.incomplete", json!({"response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": usage}}))),
        Ends::Withheld => pieces.push(named("response.incomplete", json!({"response": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "usage": usage}}))),
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled => {
            pieces.push(named("response.completed", json!({"response": {"status": "completed", "usage": usage}})));
        }
    }
    pieces
}
