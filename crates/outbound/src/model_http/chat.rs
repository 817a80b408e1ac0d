//! Chat Completions, as many servers speak it, and the pieces that they really send.
//!
//! The rules: a call is keyed by index and id, where either may be missing; a stream without a
//! stop reason is an error, never an answer; an error inside the stream is an error.

use planwright_domain::{
    tools::ToolSpec,
    turn::{Kept, ModelFailure, Usage},
};
use planwright_runtime::ports::model::{Message, ModelAnswer, ModelRequest, WireCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Assemble, CUT_OFF, CUT_OFF_IN_CALL, HttpSettings, NO_STOP, malformed,
    names::Names,
    object, own, piece,
    refused::{in_stream, withheld},
};

pub(super) fn body(settings: &HttpSettings, request: &ModelRequest) -> Value {
    let by = settings.id();
    let mut names = Names::of(40);
    let mut messages = vec![json!({"role": "system", "content": request.system})];
    messages.extend(request.messages.iter().map(|said| message(said, &by, &mut names)));
    let mut body = json!({
        "model": settings.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|spec| tool(spec)).collect();
    }
    // Others that speak this format may refuse what they do not know.
    if let Some(key) = request.cache_key.as_deref().filter(|_| settings.is_openai()) {
        body["prompt_cache_key"] = key.into();
    }
    if let Some(effort) = settings.effort {
        body["reasoning_effort"] = effort.name().into();
    }
    body
}

fn message(message: &Message, by: &str, names: &mut Names) -> Value {
    match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Tool { wire_id, text, .. } => {
            let id = names.result(wire_id);
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
        Message::Assistant { text, calls, kept } => {
            let content = if text.is_empty() { Value::Null } else { text.as_str().into() };
            let mut said = json!({"role": "assistant", "content": content});
            let call = |(id, call): (String, &WireCall)| {
                let arguments = object(&call.arguments).to_string();
                let arguments = if arguments == "{}" { arguments } else { call.arguments.clone() };
                json!({"id": id, "type": "function",
                    "function": {"name": call.tool, "arguments": arguments}})
            };
            let calls: Vec<_> = names.calls(calls).into_iter().map(call).collect();
            if !calls.is_empty() {
                said["tool_calls"] = calls.into();
            }
            // Some servers want their thoughts back; each under the name that it gave them.
            for kept in own(kept, by) {
                if let Ok(Value::Object(fields)) = serde_json::from_str(&kept.item) {
                    fields.into_iter().for_each(|(name, value)| said[name] = value);
                }
            }
            said
        }
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, parameters, effect: _ } = spec;
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
}

/// An answer in the making.
#[derive(Debug, Default)]
pub struct Assembly {
    text: String,
    calls: Vec<Part>,
    stop: Option<String>,
    usage: Option<Usage>,
    reasoning: String,
    details: Vec<Value>,
    is_whole: bool,
}

#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<ChunkUsage>,
    #[serde(default)]
    error: Option<ChunkError>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ChunkUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<CachedTokens>,
}

#[derive(Deserialize)]
struct CachedTokens {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ChunkError {
    #[serde(default)]
    message: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    code: Option<serde_json::Value>,
}

impl Assemble for Assembly {
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        if data.trim() == "[DONE]" {
            self.is_whole = true;
            return Ok(None);
        }
        let chunk: Chunk = piece(data)?;
        if let Some(ChunkError { message, kind, code }) = chunk.error {
            let code = code.as_ref().map(ToString::to_string).unwrap_or_default();
            let kind = format!("{} {code}", kind.as_deref().unwrap_or_default());
            return Err(in_stream(&kind, message.as_deref().unwrap_or_default()));
        }
        if let Some(usage) = chunk.usage {
            let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
            let counted = Usage::tokens(usage.prompt_tokens, usage.completion_tokens);
            self.usage = Some(Usage { cached: cached.unwrap_or(0), ..counted });
        }
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(None) };
        if choice.finish_reason.is_some() {
            self.stop = choice.finish_reason;
        }
        let Some(delta) = choice.delta else { return Ok(None) };
        if delta.refusal.is_some_and(|refusal| !refusal.is_empty()) {
            self.stop = Some("refusal".into());
        }
        self.reasoning.push_str(delta.reasoning_content.as_deref().unwrap_or_default());
        self.details.extend(delta.reasoning_details.unwrap_or_default());
        for call in delta.tool_calls.unwrap_or_default() {
            self.take_call(call);
        }
        let text = delta.content.filter(|text| !text.is_empty());
        self.text.push_str(text.as_deref().unwrap_or_default());
        Ok(text)
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure> {
        let mut text = self.text;
        match self.stop.as_deref() {
            None => return Err(malformed(NO_STOP)),
            Some(why @ ("content_filter" | "refusal")) => return Err(withheld(why)),
            Some("length") if !self.calls.is_empty() => return Err(malformed(CUT_OFF_IN_CALL)),
            Some("length") => text.push_str(CUT_OFF),
            Some(_) => {}
        }
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(malformed("a tool call without a name"));
        }
        // Thoughts are wanted back only where a call interrupts them.
        let thoughts = match (self.calls.is_empty(), self.details.is_empty()) {
            (true, _) => None,
            (false, false) => Some(json!({"reasoning_details": self.details})),
            (false, true) if self.reasoning.is_empty() => None,
            (false, true) => Some(json!({"reasoning_content": self.reasoning})),
        };
        let kept = thoughts.map(|item| Kept { at: 0, item: item.to_string() });
        let calls = self.calls.into_iter().map(|part| WireCall {
            wire_id: part.id,
            tool: part.name,
            arguments: if part.arguments.trim().is_empty() { "{}".into() } else { part.arguments },
        });
        let (calls, kept) = (calls.collect(), kept.into_iter().collect());
        Ok(ModelAnswer { text, calls, usage: self.usage, kept })
    }
}

impl Assembly {
    fn take_call(&mut self, delta: CallDelta) {
        let id = delta.id.filter(|id| !id.is_empty());
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let at = self.place(delta.index, id.as_deref(), !name.is_empty());
        let part = match at {
            Some(at) => &mut self.calls[at],
            None => {
                self.calls.push(Part {
                    index: delta.index,
                    id: id.unwrap_or_default(),
                    ..Part::default()
                });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        if part.name != name && part.arguments.is_empty() {
            part.name.push_str(&name);
        }
        part.arguments.push_str(&function.arguments.unwrap_or_default());
    }

    /// The call that a piece belongs to; none if it begins a new one.
    fn place(&self, index: Option<u64>, id: Option<&str>, is_named: bool) -> Option<usize> {
        let same_index =
            |part: &Part| index.is_none() || part.index.is_none() || part.index == index;
        match (id, index) {
            (Some(id), _) => self.calls.iter().rposition(|part| part.id == id && same_index(part)),
            (None, Some(_)) => {
                let at = self.calls.iter().rposition(|part| part.index == index)?;
                // A server that sends whole calls without ids, all at index 0, names each anew.
                let begins_anew = is_named
                    && self.calls[at].id.is_empty()
                    && !self.calls[at].arguments.is_empty();
                (!begins_anew).then_some(at)
            }
            (None, None) if is_named => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
}
