//! Anthropic's Messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Ends, Had, KEY, Reply, SIGNED, event, is_name, list, only, text};

pub(super) fn check(had: &Had) -> Result<(), String> {
    if had.path != "/v1/messages" {
        return Err(format!("there is nothing at {}", had.path));
    }
    if had.header("x-api-key") != Some(KEY) {
        return Err("x-api-key header is required".into());
    }
    if had.header("anthropic-version") != Some("2023-06-01") {
        return Err("anthropic-version: header is required".into());
    }
    let body = &had.body;
    only(
        body,
        &["model", "max_tokens", "system", "messages", "stream", "tools", "thinking"],
        "body",
    )?;
    text(&body["model"], "model")?;
    let most =
        body["max_tokens"].as_u64().filter(|most| *most > 0).ok_or("max_tokens: Field required")?;
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64()
        && (budget < 1_024 || budget >= most)
    {
        return Err("thinking.budget_tokens: at least 1024, and less than max_tokens".into());
    }
    if body.to_string().matches("\"cache_control\"").count() > 4 {
        return Err("A maximum of 4 blocks with cache_control may be provided".into());
    }
    for tool in list(&body["tools"]) {
        only(tool, &["name", "description", "input_schema", "cache_control"], "tools")?;
        if !is_name(text(&tool["name"], "tools.name")?, 128)
            || tool["input_schema"]["type"] != "object"
        {
            return Err(format!("tools: {} does not fit", tool["name"]));
        }
    }
    check_messages(list(&body["messages"]))
}

/// The calls of a conversation, as far as it has been read.
#[derive(Default)]
struct Calls {
    /// Those that have no result yet.
    open: BTreeSet<String>,
    /// All of them.
    given: BTreeSet<String>,
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let (mut last, mut calls) = ("assistant", Calls::default());
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages.{at}");
        only(message, &["role", "content"], &place)?;
        let role = text(&message["role"], &place)?;
        if role == last {
            return Err(format!(
                "{place}: roles must alternate between \"user\" and \"assistant\""
            ));
        }
        let content = list(&message["content"]);
        if content.is_empty() {
            return Err(format!("{place}: all messages must have non-empty content"));
        }
        let mut has_text = false;
        for block in content {
            match (role, block["type"].as_str().unwrap_or_default()) {
                (_, "text") => {
                    only(block, &["type", "text", "cache_control"], &place)?;
                    if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
                        return Err(format!("{place}: text content blocks must be non-empty"));
                    }
                    has_text = true;
                }
                ("user", "tool_result") if has_text => {
                    return Err(format!("{place}: tool_result blocks must come first"));
                }
                ("user", "tool_result") => calls.result(block, &place)?,
                ("assistant", "tool_use") => calls.request(block, &place)?,
                ("assistant", "thinking") => {
                    only(block, &["type", "thinking", "signature"], &place)?;
                    if !text(&block["signature"], &place)?.starts_with(SIGNED) {
                        return Err(format!("{place}: Invalid `signature` in `thinking` block"));
                    }
                }
                (role, kind) => return Err(format!("{place}: {role} may not say {kind:?}")),
            }
        }
        if role == "user"
            && let Some(id) = calls.open.first()
        {
            return Err(format!(
                "{place}: `tool_use` ids were found without `tool_result` blocks: {id}"
            ));
        }
        last = if role == "user" { "user" } else { "assistant" };
    }
    if last != "user" {
        return Err("messages: the last one must be the user's".into());
    }
    Ok(())
}

impl Calls {
    fn result(&mut self, block: &Value, place: &str) -> Result<(), String> {
        only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"], place)?;
        let id = text(&block["tool_use_id"], place)?;
        if self.open.remove(id) {
            return Ok(());
        }
        Err(format!("{place}: unexpected tool_use_id found in tool_result blocks: {id}"))
    }

    fn request(&mut self, block: &Value, place: &str) -> Result<(), String> {
        only(block, &["type", "id", "name", "input"], place)?;
        let id = text(&block["id"], place)?.to_owned();
        if !is_name(&id, 256) {
            return Err(format!(
                "{place}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            ));
        }
        if !block["input"].is_object() {
            return Err(format!("{place}: tool_use.input: Input should be a valid dictionary"));
        }
        if !self.given.insert(id.clone()) {
            return Err(format!("{place}: `tool_use` ids must be unique: {id}"));
        }
        self.open.insert(id);
        Ok(())
    }
}

pub(super) fn pieces(reply: &Reply, number: usize) -> Vec<String> {
    let named = |name: &str, mut data: Value| {
        data["type"] = name.into();
        event(Some(name), &data)
    };
    let mut pieces = vec![
        named(
            "message_start",
            json!({"message": {"id": "msg_1", "role": "assistant", "content": [],
            "usage": {"input_tokens": 60, "cache_creation_input_tokens": 12, "cache_read_input_tokens": 128, "output_tokens": 1}}}),
        ),
        named("ping", json!({})),
    ];
    let mut index = 0;
    let mut block = |pieces: &mut Vec<String>, start: Value, deltas: Vec<Value>| {
        pieces.push(named("content_block_start", json!({"index": index, "content_block": start})));
        for delta in deltas {
            pieces.push(named("content_block_delta", json!({"index": index, "delta": delta})));
        }
        pieces.push(named("content_block_stop", json!({"index": index})));
        index += 1;
    };
    if reply.thinks {
        let signature = format!("{SIGNED}anthropic-{number}");
        block(
            &mut pieces,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "Let me "}),
                json!({"type": "thinking_delta", "thinking": "see."}),
                json!({"type": "signature_delta", "signature": signature}),
            ],
        );
    }
    if !reply.text.is_empty() {
        let words = reply.text.split_inclusive(' ');
        let deltas = words.map(|word| json!({"type": "text_delta", "text": word})).collect();
        block(&mut pieces, json!({"type": "text", "text": ""}), deltas);
    }
    for (at, (tool, arguments)) in reply.calls.iter().enumerate() {
        let id = format!("toolu_{number}_{at}");
        let half = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at));
        let (first, second) = arguments.split_at(half.unwrap_or(0));
        let deltas = ["", first, second]
            .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
        block(
            &mut pieces,
            json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
            deltas.into(),
        );
    }
    let stop = match reply.ends {
        Ends::WithoutReason => return pieces,
        Ends::WithError => {
            pieces.push(named(
                "error",
                json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ));
            return pieces;
        }
        Ends::TooLong => "max_tokens",
        Ends::Withheld => "refusal",
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled if reply.calls.is_empty() => {
            "end_turn"
        }
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled => "tool_use",
    };
    pieces.push(named("message_delta", json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 20}})));
    pieces.push(named("message_stop", json!({})));
    pieces
}
