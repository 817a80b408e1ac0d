//! OpenAI's Responses: a list of items, reasoning among them, which comes back encrypted and nothing is stored there.

use planwright_domain::turn::{Kept, ModelFailure, Usage};
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
    let mut input: Vec<Value> = Vec::new();
    for message in request.messages.iter() {
        match message {
            Message::User(text) => input.push(json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text}]})),
            Message::Tool { wire_id, text, .. } => {
                let id = names.result(wire_id);
                input.push(json!({"type": "function_call_output", "call_id": id, "output": text}));
            }
            Message::Assistant { text, calls, kept } => {
                let kept = own(kept, &by);
                input.extend(back(kept, 0));
                if !text.is_empty() {
                    input.push(json!({"type": "message", "role": "assistant",
                        "content": [{"type": "output_text", "text": text}]}));
                }
                for (at, (id, call)) in names.calls(calls).into_iter().enumerate() {
                    input.extend(back(kept, at + 1));
                    let arguments = object(&call.arguments).to_string();
                    input.push(json!({"type": "function_call", "call_id": id, "name": call.tool,
                        "arguments": arguments}));
                }
            }
        }
    }
    let mut body = json!({
        "model": settings.model,
        "instructions": request.system,
        "input": input,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": settings.answer_tokens,
    });
    if !request.tools.is_empty() {
        let tool = |tool: &std::sync::Arc<planwright_domain::tools::ToolSpec>| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(key) = &request.cache_key {
        body["prompt_cache_key"] = key.as_str().into();
    }
    if let Some(effort) = settings.effort {
        body["reasoning"] = json!({"effort": effort.name()});
    }
    body
}

/// An answer in the making.
#[derive(Default)]
pub(super) struct Assembly {
    items: Vec<Value>,
    end: Option<End>,
    usage: Option<Usage>,
}

enum End {
    Completed,
    Incomplete(String),
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    item: Value,
    #[serde(default)]
    response: Value,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    error: Value,
}

impl Assemble for Assembly {
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        let event: Event = piece(data)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event.kind.as_str() {
            "response.output_text.delta" => {
                return Ok(Some(text(&event.delta)).filter(|text| !text.is_empty()));
            }
            "response.output_item.done" => self.items.push(event.item),
            "response.completed" | "response.incomplete" => {
                let response = &event.response;
                let usage = &response["usage"];
                let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
                self.usage = count("/input_tokens").map(|input| Usage {
                    cached: count("/input_tokens_details/cached_tokens").unwrap_or(0),
                    ..Usage::tokens(input, count("/output_tokens").unwrap_or(0))
                });
                let why = response.pointer("/incomplete_details/reason").map(text);
                self.end = Some(match event.kind.as_str() {
                    "response.completed" => End::Completed,
                    _ => End::Incomplete(why.unwrap_or_default()),
                });
            }
            "response.failed" => {
                let error = &event.response["error"];
                return Err(in_stream(&text(&error["code"]), &text(&error["message"])));
            }
            "error" => {
                // Told flat, or inside an object of that name.
                let inside = &event.error;
                let code = [&event.code, &inside["code"], &inside["type"]].map(text).join(" ");
                let message = [&event.message, &inside["message"]].map(text).concat();
                return Err(in_stream(&code, &message));
            }
            _ => {}
        }
        Ok(None)
    }

    fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure> {
        let (mut text, mut calls, mut kept) = (String::new(), Vec::new(), Vec::new());
        let Self { items, end, usage } = *self;
        for item in items {
            let words = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            match item["type"].as_str().unwrap_or_default() {
                "message" => {
                    for part in item["content"].as_array().map(Vec::as_slice).unwrap_or_default() {
                        match part["type"].as_str().unwrap_or_default() {
                            "output_text" => {
                                text.push_str(part["text"].as_str().unwrap_or_default());
                            }
                            "refusal" => return Err(withheld("refusal")),
                            _ => {}
                        }
                    }
                }
                "function_call" => {
                    let (wire_id, tool, arguments) =
                        (words("call_id"), words("name"), words("arguments"));
                    if tool.is_empty() {
                        return Err(malformed("a tool call without a name"));
                    }
                    let arguments =
                        if arguments.trim().is_empty() { "{}".into() } else { arguments };
                    calls.push(WireCall { wire_id, tool, arguments });
                }
                "reasoning" => {
                    let at = place(&text, calls.len());
                    kept.push(Kept { at, item: item.to_string() });
                }
                _ => {}
            }
        }
        match end {
            None => return Err(malformed(NO_STOP)),
            Some(End::Completed) => {}
            Some(End::Incomplete(why)) if why == "content_filter" => return Err(withheld(&why)),
            Some(End::Incomplete(_)) if !calls.is_empty() => {
                return Err(malformed(CUT_OFF_IN_CALL));
            }
            Some(End::Incomplete(_)) => text.push_str(CUT_OFF),
        }
        Ok(ModelAnswer { text, calls, usage, kept })
    }
}
