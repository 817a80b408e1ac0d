//! Anthropic's Messages: blocks of content, results of calls in the next message of the person, thinking with signatures.

use planwright_domain::turn::{FailureKind, Kept, ModelFailure, Usage};
use planwright_runtime::ports::model::{Message, ModelAnswer, ModelRequest, WireCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Assemble, CUT_OFF, CUT_OFF_IN_CALL, HttpSettings, NO_STOP, back, malformed,
    names::Names,
    object, own, piece, place,
    refused::{in_stream, withheld},
};

pub(super) fn body(settings: &HttpSettings, request: &ModelRequest) -> Value {
    let by = settings.id();
    let mut names = Names::of(64);
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role, mut blocks: Vec<Value>| match messages.last_mut() {
        // Roles take turns: what one says in a row is one message.
        Some((last, there)) if *last == role => there.append(&mut blocks),
        Some(_) | None => messages.push((role, blocks)),
    };
    for message in request.messages.iter() {
        match message {
            Message::User(text) => say("user", vec![json!({"type": "text", "text": text})]),
            Message::Tool { wire_id, text, .. } => {
                let id = names.result(wire_id);
                say(
                    "user",
                    vec![json!({"type": "tool_result", "tool_use_id": id, "content": text})],
                );
            }
            Message::Assistant { text, calls, kept } => {
                let kept = own(kept, &by);
                let mut blocks: Vec<Value> = back(kept, 0).collect();
                if !text.trim().is_empty() {
                    blocks.push(json!({"type": "text", "text": text}));
                }
                for (at, (id, call)) in names.calls(calls).into_iter().enumerate() {
                    blocks.extend(back(kept, at + 1));
                    let input = object(&call.arguments);
                    blocks.push(
                        json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}),
                    );
                }
                say("assistant", blocks);
            }
        }
    }
    if messages.first().is_none_or(|(role, _)| *role != "user") {
        messages.insert(0, ("user", vec![json!({"type": "text", "text": "Go on."})]));
    }
    // What does not change from one request to the next is marked, so that it is read once.
    let mark = json!({"type": "ephemeral"});
    marked(&mut messages, &mark);
    let messages: Vec<_> = messages
        .into_iter()
        .filter(|(_, blocks)| !blocks.is_empty())
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect();
    let mut body = json!({
        "model": settings.model,
        "max_tokens": settings.answer_tokens,
        "system": [{"type": "text", "text": request.system, "cache_control": mark}],
        "messages": messages,
        "stream": true,
    });
    if !request.tools.is_empty() {
        let tool = |tool: &std::sync::Arc<planwright_domain::tools::ToolSpec>| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(effort) = settings.effort {
        let budget = effort.tokens();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        body["max_tokens"] = (settings.answer_tokens + budget).into();
    }
    body
}

/// Marks the last block of the person's side, and the last-but-one that the person wrote: a look back for what was kept ends
/// after twenty blocks, and an answer may ask for more calls than that.
fn marked(messages: &mut [(&str, Vec<Value>)], mark: &Value) {
    let blocks = messages.iter_mut().filter(|(role, _)| *role == "user");
    let mut blocks: Vec<_> = blocks.flat_map(|(_, blocks)| blocks).collect();
    let last = blocks.len().checked_sub(1);
    let wrote = (0..blocks.len()).rev().filter(|at| blocks[*at]["type"] == "text").nth(1);
    for at in [last, wrote].into_iter().flatten() {
        blocks[at]["cache_control"] = mark.clone();
    }
}

/// An answer in the making.
#[derive(Default)]
pub(super) struct Assembly {
    blocks: Vec<Block>,
    stop: Option<String>,
    input: u64,
    cached: u64,
    cache_written: u64,
    output: Option<u64>,
    is_whole: bool,
}

struct Block {
    index: u64,
    start: Value,
    text: String,
    signature: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    content_block: Value,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

impl Assemble for Assembly {
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        let event: Event = piece(data)?;
        match event.kind.as_str() {
            "message_start" => {
                let usage = &event.message["usage"];
                let count = |name: &str| usage[name].as_u64().unwrap_or(0);
                self.cached = count("cache_read_input_tokens");
                self.cache_written = count("cache_creation_input_tokens");
                self.input = count("input_tokens") + self.cache_written + self.cached;
            }
            "content_block_start" => {
                let text = event.content_block["text"].as_str().unwrap_or_default().to_owned();
                let (index, start) = (event.index, event.content_block);
                self.blocks.push(Block { index, start, text, signature: String::new() });
            }
            "content_block_delta" => {
                let block = self.blocks.iter_mut().find(|block| block.index == event.index);
                let block =
                    block.ok_or_else(|| malformed("a piece of a block that never began"))?;
                let text = |name: &str| event.delta[name].as_str().unwrap_or_default();
                match event.delta["type"].as_str().unwrap_or_default() {
                    "text_delta" => {
                        block.text.push_str(text("text"));
                        return Ok(Some(text("text").to_owned()).filter(|text| !text.is_empty()));
                    }
                    "input_json_delta" => block.text.push_str(text("partial_json")),
                    "thinking_delta" => block.text.push_str(text("thinking")),
                    "signature_delta" => block.signature.push_str(text("signature")),
                    _ => {}
                }
            }
            "message_delta" => {
                if let Some(stop) = event.delta["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
                self.output = event.usage["output_tokens"].as_u64().or(self.output);
            }
            "message_stop" => self.is_whole = true,
            "error" => {
                let text = |name: &str| event.error[name].as_str().unwrap_or_default();
                return Err(in_stream(text("type"), text("message")));
            }
            // What comes later than this program is left alone; a stop reason is wanted all the same.
            _ => {}
        }
        Ok(None)
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure> {
        let (mut text, mut calls, mut kept) = (String::new(), Vec::new(), Vec::new());
        for Block { mut start, text: words, signature, .. } in self.blocks {
            match start["type"].as_str().unwrap_or_default() {
                "text" => text.push_str(&words),
                "tool_use" => {
                    let name = start["name"].as_str().filter(|name| !name.is_empty());
                    let name = name.ok_or_else(|| malformed("a tool call without a name"))?;
                    let given = start["input"].as_object().filter(|input| !input.is_empty());
                    let arguments = match (words.is_empty(), given) {
                        (true, Some(_)) => start["input"].to_string(),
                        (true, None) => "{}".into(),
                        (false, _) => words,
                    };
                    let wire_id = start["id"].as_str().unwrap_or_default().to_owned();
                    calls.push(WireCall { wire_id, tool: name.to_owned(), arguments });
                }
                "thinking" => {
                    start["thinking"] = words.into();
                    start["signature"] = signature.into();
                    let at = place(&text, calls.len());
                    kept.push(Kept { at, item: start.to_string() });
                }
                "redacted_thinking" => {
                    let at = place(&text, calls.len());
                    kept.push(Kept { at, item: start.to_string() });
                }
                _ => {}
            }
        }
        match self.stop.as_deref() {
            None => return Err(malformed(NO_STOP)),
            Some("refusal") => return Err(withheld("refusal")),
            Some("model_context_window_exceeded") => {
                let words = "the answer reached the end of the model's window";
                return Err(ModelFailure::new(FailureKind::TooLarge, words));
            }
            Some("max_tokens") if !calls.is_empty() => return Err(malformed(CUT_OFF_IN_CALL)),
            Some("max_tokens") => text.push_str(CUT_OFF),
            Some(_) => {}
        }
        let (cached, cache_written) = (self.cached, self.cache_written);
        let counted = Usage::tokens(self.input, self.output.unwrap_or(0));
        let usage = Usage { cached, cache_written, ..counted };
        Ok(ModelAnswer { text, calls, usage: (self.input > 0).then_some(usage), kept })
    }
}
