//! Ollama's own format: a line of JSON for each piece, whole calls, and the context that is wanted, which it would
//! otherwise cut without a word.

use planwright_domain::turn::{ModelFailure, Usage};
use planwright_runtime::ports::model::{Message, ModelAnswer, ModelRequest, WireCall};
use serde_json::{Value, json};

use super::{
    Assemble, CUT_OFF, CUT_OFF_IN_CALL, HttpSettings, NO_STOP, malformed, object, piece,
    refused::in_stream,
};

pub(super) fn body(settings: &HttpSettings, request: &ModelRequest) -> Value {
    let mut messages = vec![json!({"role": "system", "content": request.system})];
    messages.extend(request.messages.iter().map(|message| match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Tool { tool, text, .. } => {
            json!({"role": "tool", "tool_name": tool, "content": text})
        }
        Message::Assistant { text, calls, .. } => {
            let call = |call: &WireCall| {
                json!({"function": {"name": call.tool, "arguments": object(&call.arguments)}})
            };
            let calls: Vec<_> = calls.iter().map(call).collect();
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            message
        }
    }));
    let mut body = json!({
        "model": settings.model,
        "messages": messages,
        "stream": true,
        "options": {"num_ctx": settings.window_tokens, "num_predict": settings.answer_tokens},
    });
    if !request.tools.is_empty() {
        let tool = |tool: &std::sync::Arc<planwright_domain::tools::ToolSpec>| {
            json!({"type": "function", "function": {"name": tool.name,
                "description": tool.description, "parameters": tool.parameters}})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if settings.effort.is_some() {
        body["think"] = true.into();
    }
    body
}

/// An answer in the making.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<WireCall>,
    stop: Option<String>,
    usage: Option<Usage>,
}

impl Assemble for Assembly {
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        if data.is_empty() {
            return Ok(None);
        }
        let chunk: Value = piece(data)?;
        if let Some(error) = chunk.get("error") {
            let words = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(in_stream("server_error", &words));
        }
        let message = &chunk["message"];
        for call in message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let tool = call["function"]["name"].as_str().filter(|name| !name.is_empty());
            let tool = tool.ok_or_else(|| malformed("a tool call without a name"))?.to_owned();
            let arguments = match &call["function"]["arguments"] {
                Value::Null => "{}".into(),
                Value::String(text) => text.clone(),
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    other.to_string()
                }
            };
            let wire_id = call["id"].as_str().unwrap_or_default().to_owned();
            self.calls.push(WireCall { wire_id, tool, arguments });
        }
        if chunk["done"] == true {
            self.stop = Some(chunk["done_reason"].as_str().unwrap_or("stop").to_owned());
            let count = |name: &str| chunk[name].as_u64();
            self.usage = count("prompt_eval_count")
                .map(|input| Usage::tokens(input, count("eval_count").unwrap_or(0)));
        }
        let text = message["content"].as_str().unwrap_or_default();
        self.text.push_str(text);
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    fn is_whole(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure> {
        let mut text = self.text;
        match self.stop.as_deref() {
            None => return Err(malformed(NO_STOP)),
            Some("length") if !self.calls.is_empty() => return Err(malformed(CUT_OFF_IN_CALL)),
            Some("length") => text.push_str(CUT_OFF),
            Some(_) => {}
        }
        Ok(ModelAnswer { text, calls: self.calls, usage: self.usage, kept: Vec::new() })
    }
}
