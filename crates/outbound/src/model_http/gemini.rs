//! Google's Gemini: parts of contents, calls without ids, signatures of thoughts on the parts themselves.

use planwright_domain::turn::{Kept, ModelFailure, Usage};
use planwright_runtime::ports::model::{Message, ModelAnswer, ModelRequest, WireCall};
use serde_json::{Value, json};

use super::{
    Assemble, CUT_OFF, CUT_OFF_IN_CALL, HttpSettings, NO_STOP, malformed, object, piece,
    refused::{in_stream, withheld},
};

/// What Google says to put where a call of another model has no signature.
const FOREIGN: &str = "skip_thought_signature_validator";

pub(super) fn body(settings: &HttpSettings, request: &ModelRequest) -> Value {
    let by = settings.id();
    let signs = settings.model.contains("gemini-3");
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut say = |role, mut parts: Vec<Value>| match contents.last_mut() {
        Some((last, there)) if *last == role => there.append(&mut parts),
        Some(_) | None => contents.push((role, parts)),
    };
    for message in request.messages.iter() {
        match message {
            Message::User(text) => say("user", vec![json!({"text": text})]),
            Message::Tool { tool, text, .. } => {
                let response = json!({"name": tool, "response": {"result": text}});
                say("user", vec![json!({"functionResponse": response})]);
            }
            Message::Assistant { text, calls, kept } => {
                let own = kept.as_ref().filter(|kept| kept.by == by);
                let signature = |at: usize| {
                    let kept = own?.items.iter().find(|kept| kept.at as usize == at)?;
                    Some(Value::from(kept.item.as_str()))
                };
                let mut parts = Vec::new();
                if !text.is_empty() {
                    let mut part = json!({"text": text});
                    if let Some(signature) = signature(0) {
                        part["thoughtSignature"] = signature;
                    }
                    parts.push(part);
                }
                for (at, call) in calls.iter().enumerate() {
                    let call_part = json!({"name": call.tool, "args": object(&call.arguments)});
                    let mut part = json!({"functionCall": call_part});
                    let foreign = (signs && at == 0 && own.is_none()).then(|| FOREIGN.into());
                    if let Some(signature) = signature(at + 1).or(foreign) {
                        part["thoughtSignature"] = signature;
                    }
                    parts.push(part);
                }
                say("model", parts);
            }
        }
    }
    let contents: Vec<_> = contents
        .into_iter()
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(role, parts)| json!({"role": role, "parts": parts}))
        .collect();
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": contents,
        "generationConfig": {"maxOutputTokens": settings.answer_tokens},
    });
    if !request.tools.is_empty() {
        let tool = |tool: &std::sync::Arc<planwright_domain::tools::ToolSpec>| {
            json!({"name": tool.name, "description": tool.description,
                "parametersJsonSchema": tool.parameters})
        };
        let tools: Vec<_> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    if let Some(effort) = settings.effort {
        body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": effort.tokens()});
    }
    body
}

/// An answer in the making.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<WireCall>,
    kept: Vec<Kept>,
    stop: Option<String>,
    usage: Option<Usage>,
}

impl Assemble for Assembly {
    fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        let chunk: Value = piece(data)?;
        if let Some(error) = chunk.get("error") {
            let text = |name: &str| error[name].as_str().unwrap_or_default();
            return Err(in_stream(
                &format!("{} {}", text("status"), error["code"]),
                text("message"),
            ));
        }
        if let Some(why) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            return Err(withheld(why));
        }
        let count = |name: &str| chunk["usageMetadata"][name].as_u64();
        if let Some(input) = count("promptTokenCount") {
            let output = count("candidatesTokenCount").unwrap_or(0)
                + count("thoughtsTokenCount").unwrap_or(0);
            let cached = count("cachedContentTokenCount").unwrap_or(0);
            self.usage = Some(Usage { cached, ..Usage::tokens(input, output) });
        }
        let candidate = &chunk["candidates"][0];
        if let Some(stop) = candidate["finishReason"].as_str() {
            self.stop = Some(stop.to_owned());
        }
        let mut said = String::new();
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.map(Vec::as_slice).unwrap_or_default() {
            if part["thought"] == true {
                continue;
            }
            if let Some(text) = part["text"].as_str() {
                said.push_str(text);
            }
            if let Some(call) = part.get("functionCall") {
                let tool = call["name"].as_str().filter(|name| !name.is_empty());
                let tool = tool.ok_or_else(|| malformed("a tool call without a name"))?.to_owned();
                let arguments = call.get("args").filter(|args| !args.is_null());
                let arguments = arguments.map_or_else(|| "{}".into(), Value::to_string);
                let wire_id = call["id"].as_str().unwrap_or_default().to_owned();
                self.calls.push(WireCall { wire_id, tool, arguments });
            }
            if let Some(signature) = part["thoughtSignature"].as_str() {
                let at = if part.get("functionCall").is_some() { self.calls.len() } else { 0 };
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                self.kept.retain(|kept| kept.at != at);
                self.kept.push(Kept { at, item: signature.to_owned() });
            }
        }
        self.text.push_str(&said);
        Ok((!said.is_empty()).then_some(said))
    }

    fn is_whole(&self) -> bool {
        // The last piece may come with its usage after its stop reason.
        false
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, ModelFailure> {
        let mut text = self.text;
        match self.stop.as_deref() {
            None => return Err(malformed(NO_STOP)),
            Some("MAX_TOKENS") if !self.calls.is_empty() => {
                return Err(malformed(CUT_OFF_IN_CALL));
            }
            Some("MAX_TOKENS") => text.push_str(CUT_OFF),
            Some(why @ ("SAFETY" | "RECITATION" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII")) => {
                return Err(withheld(why));
            }
            Some(why @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL")) => {
                return Err(malformed(format!(
                    "the model wrote a call that cannot be read ({why})"
                )));
            }
            Some(_) => {}
        }
        Ok(ModelAnswer { text, calls: self.calls, usage: self.usage, kept: self.kept })
    }
}
