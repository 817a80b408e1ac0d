//! OpenAI's Chat Completions.

use serde_json::{Value, json};

use super::{Ends, Had, Reply, bearer, event, is_name, list, only, text};

pub(super) fn check(had: &Had) -> Result<(), String> {
    bearer(had)?;
    if had.path != "/v1/chat/completions" {
        return Err(format!("there is nothing at {}", had.path));
    }
    let body = &had.body;
    only(
        body,
        &["model", "messages", "stream", "stream_options", "tools", "reasoning_effort"],
        "body",
    )?;
    crate::scripted_model::strict::check(body)?;
    for message in list(&body["messages"]) {
        for call in list(&message["tool_calls"]) {
            let id = text(&call["id"], "tool_calls.id")?;
            if id.len() > 40 {
                return Err(format!("tool_calls.id: string too long, at most 40: {id:?}"));
            }
        }
    }
    for tool in list(&body["tools"]) {
        let name = text(&tool["function"]["name"], "tools.function.name")?;
        if !is_name(name, 64) {
            return Err(format!("tools.function.name: {name:?} does not match"));
        }
    }
    Ok(())
}

pub(super) fn pieces(reply: &Reply, number: usize) -> Vec<String> {
    let chunk = |delta: Value, stop: Option<&str>| {
        event(
            None,
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": null}),
        )
    };
    let mut pieces = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    if reply.thinks {
        pieces.push(chunk(json!({"reasoning_content": format!("signed-by-chat-{number}")}), None));
    }
    for word in reply.text.split_inclusive(' ') {
        pieces.push(chunk(json!({"content": word}), None));
    }
    for (at, (tool, arguments)) in reply.calls.iter().enumerate() {
        let id = format!("call_{number}_{at}");
        pieces.push(chunk(
            json!({"tool_calls": [{"index": at, "id": id, "type": "function",
            "function": {"name": tool, "arguments": ""}}]}),
            None,
        ));
        let half = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at));
        let (first, second) = arguments.split_at(half.unwrap_or(0));
        for part in [first, second] {
            pieces.push(chunk(
                json!({"tool_calls": [{"index": at, "function": {"arguments": part}}]}),
                None,
            ));
        }
    }
    let stop = match reply.ends {
        Ends::WithoutReason => return pieces,
        Ends::WithError => {
            let error = json!({"error": {"message": "The server had an error", "type": "server_error", "code": null}});
            pieces.push(event(None, &error));
            return pieces;
        }
        Ends::TooLong => "length",
        Ends::Withheld => "content_filter",
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled if reply.calls.is_empty() => "stop",
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled => "tool_calls",
    };
    pieces.push(chunk(json!({}), Some(stop)));
    pieces.push(event(
        None,
        &json!({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 200,
        "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 128}}}),
    ));
    pieces.push("data: [DONE]\n\n".into());
    pieces
}
