//! Google's Gemini.

use serde_json::{Value, json};

use super::{Ends, Had, KEY, MODEL, Reply, SIGNED, event, is_name, list, only, text};

pub(super) fn check(had: &Had) -> Result<(), String> {
    if had.path != format!("/v1beta/models/{MODEL}:streamGenerateContent?alt=sse") {
        return Err(format!("there is nothing at {}", had.path));
    }
    if had.header("x-goog-api-key") != Some(KEY) {
        return Err("API key not valid. Please pass a valid API key.".into());
    }
    let body = &had.body;
    only(body, &["systemInstruction", "contents", "generationConfig", "tools"], "body")?;
    for tool in list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"])) {
        only(tool, &["name", "description", "parametersJsonSchema"], "functionDeclarations")?;
        if !is_name(text(&tool["name"], "functionDeclarations.name")?, 64) {
            return Err("functionDeclarations.name: Invalid function name".into());
        }
    }
    let contents = list(&body["contents"]);
    if contents.is_empty() {
        return Err("contents is not specified".into());
    }
    let mut called: Vec<String> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let place = format!("contents[{at}]");
        only(content, &["role", "parts"], &place)?;
        let (role, parts) = (text(&content["role"], &place)?, list(&content["parts"]));
        if parts.is_empty() || !["user", "model"].contains(&role) {
            return Err(format!(
                "{place}: contents.parts must not be empty, and a role is user or model"
            ));
        }
        let answers: Vec<_> =
            parts.iter().filter_map(|part| part["functionResponse"]["name"].as_str()).collect();
        if !called.is_empty() && answers != called {
            return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into());
        }
        if called.is_empty() && !answers.is_empty() {
            return Err("Please ensure that function response turn comes immediately after a function call turn.".into());
        }
        called.clear();
        for part in parts {
            only(part, &["text", "functionCall", "functionResponse", "thoughtSignature"], &place)?;
            let signature = part["thoughtSignature"].as_str();
            if signature.is_some_and(|signed| {
                !signed.starts_with(SIGNED) && signed != "skip_thought_signature_validator"
            }) {
                return Err("Thought signature is not valid".into());
            }
            if let Some(call) = part.get("functionCall") {
                if role != "model" || !call["args"].is_object() {
                    return Err(format!("{place}: a call does not fit"));
                }
                if called.is_empty() && signature.is_none() {
                    return Err(
                        "Function call is missing a thought_signature in functionCall parts."
                            .into(),
                    );
                }
                called.push(text(&call["name"], &place)?.to_owned());
            }
        }
    }
    if called.is_empty() { Ok(()) } else { Err("a function call has no response".into()) }
}

pub(super) fn pieces(reply: &Reply, number: usize) -> Vec<String> {
    let usage = json!({"promptTokenCount": 200, "candidatesTokenCount": 12, "thoughtsTokenCount": 8, "cachedContentTokenCount": 128, "totalTokenCount": 220});
    let chunk = |parts: Vec<Value>, stop: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(stop) = stop {
            candidate["finishReason"] = stop.into();
        }
        event(
            None,
            &json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}),
        )
    };
    let mut pieces = Vec::new();
    if reply.thinks {
        pieces.push(chunk(vec![json!({"text": "Let me see.", "thought": true})], None));
    }
    for word in reply.text.split_inclusive(' ') {
        pieces.push(chunk(vec![json!({"text": word})], None));
    }
    for (at, (tool, arguments)) in reply.calls.iter().enumerate() {
        let args = serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object);
        let mut part = json!({"functionCall": {"name": tool, "args": args.unwrap_or_else(|| json!({"broken": arguments}))}});
        if at == 0 {
            part["thoughtSignature"] = format!("{SIGNED}gemini-{number}").into();
        }
        pieces.push(chunk(vec![part], None));
    }
    let stop = match reply.ends {
        Ends::WithoutReason => return pieces,
        Ends::WithError => {
            pieces.push(event(None, &json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})));
            return pieces;
        }
        Ends::TooLong => "MAX_TOKENS",
        Ends::Withheld => "SAFETY",
        Ends::Well | Ends::Cut | Ends::Silent | Ends::Garbled => "STOP",
    };
    pieces.push(chunk(vec![json!({"text": ""})], Some(stop)));
    pieces
}
