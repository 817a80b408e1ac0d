//! The providers' servers refuse what the providers refuse: one that takes everything proves nothing.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use planwright_outbound::model_http::Wire;
use planwright_testkit::providers::{KEY, MODEL, Provider};
use serde_json::{Value, json};

/// Sends a body as it stands, and gives back why it was found wrong.
async fn sent(wire: Wire, body: &Value) -> Option<String> {
    let server = Provider::start(wire, Vec::new()).await.unwrap();
    let base = server.settings().base_url;
    let path = match wire {
        Wire::Chat => "/chat/completions".to_owned(),
        Wire::Responses => "/responses".into(),
        Wire::Anthropic => "/v1/messages".into(),
        Wire::Gemini => format!("/models/{MODEL}:streamGenerateContent?alt=sse"),
        Wire::Ollama => "/api/chat".into(),
    };
    let sending = reqwest::Client::new()
        .post(format!("{base}{path}"))
        .header("authorization", format!("Bearer {KEY}"))
        .header("x-api-key", KEY)
        .header("x-goog-api-key", KEY)
        .header("anthropic-version", "2023-06-01")
        .json(body);
    let status = sending.send().await.unwrap().status();
    let wrong = server.had().pop().unwrap().wrong;
    assert_eq!(status == 400, wrong.is_some());
    wrong
}

/// A good body, and what each change to it makes wrong.
async fn refuses(wire: Wire, good: Value, changes: &[(&str, Value, &str)]) {
    assert_eq!(sent(wire, &good).await, None, "{} takes a good request", wire.name());
    for (place, value, words) in changes {
        let mut body = good.clone();
        *body.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value.clone();
        let wrong =
            sent(wire, &body).await.unwrap_or_else(|| panic!("{} took {body}", wire.name()));
        assert!(wrong.contains(words), "{}: {wrong}", wire.name());
    }
}

#[tokio::test]
async fn messages_are_refused_as_anthropic_refuses_them() {
    let calls = json!([
        {"type": "thinking", "thinking": "t", "signature": "signed-by-anthropic-1"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
        {"type": "tool_use", "id": "b", "name": "look", "input": {}}]);
    let results = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        {"type": "tool_result", "tool_use_id": "b", "content": "x"}]);
    let good = json!({"model": "m", "max_tokens": 9, "stream": true, "system": [], "tools": [], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": calls}, {"role": "user", "content": results}]});
    refuses(
        Wire::Anthropic,
        good,
        &[
            ("/messages/1/role", json!("user"), "alternate"),
            ("/messages/0/content/0/text", json!(" "), "non-empty"),
            ("/messages/1/content/0/signature", json!("forged"), "signature"),
            ("/messages/1/content/1/id", json!("b"), "unique"),
            ("/messages/1/content/1/id", json!("a.b"), "pattern"),
            ("/messages/1/content/1/input", json!("{}"), "dictionary"),
            ("/messages/2/content/1/tool_use_id", json!("c"), "unexpected tool_use_id"),
            (
                "/messages/2/content",
                json!([{"type": "text", "text": "no"}]),
                "without `tool_result`",
            ),
            ("/max_tokens", json!(0), "max_tokens"),
            (
                "/tools",
                json!([{"name": "a b", "input_schema": {"type": "object"}}]),
                "does not fit",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn items_are_refused_as_responses_refuses_them() {
    let good = json!({"model": "m", "instructions": "s", "stream": true, "store": false,
        "prompt_cache_key": "k".repeat(64), "include": ["reasoning.encrypted_content"], "tools": [], "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "signed-by-responses-1"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"}]});
    refuses(
        Wire::Responses,
        good,
        &[
            ("/store", json!(true), "included encrypted"),
            ("/prompt_cache_key", json!("k".repeat(65)), "too long"),
            ("/input/0/content/0/type", json!("output_text"), "Supported: input_text"),
            ("/input/1/encrypted_content", json!("forged"), "verified"),
            ("/input/2/arguments", json!("{oh"), "does not fit"),
            ("/input/3/call_id", json!("b"), "No tool call found"),
            (
                "/input/3",
                json!({"type": "message", "role": "user", "content": []}),
                "No tool output found",
            ),
            (
                "/input/2",
                json!({"type": "function_call_output", "call_id": "z", "output": ""}),
                "required following item",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn contents_are_refused_as_gemini_refuses_them() {
    let good = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "signed-by-gemini-1"},
            {"functionCall": {"name": "hear", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "look", "response": {}}},
            {"functionResponse": {"name": "hear", "response": {}}}]}]});
    refuses(
        Wire::Gemini,
        good,
        &[
            ("/contents/1/parts/0/thoughtSignature", json!("forged"), "not valid"),
            (
                "/contents/1/parts/0",
                json!({"functionCall": {"name": "look", "args": {}}}),
                "missing a thought_signature",
            ),
            ("/contents/2/parts/1", json!({"text": "later"}), "equal to the number"),
            ("/contents/1/parts", json!([{"text": "no"}]), "immediately after"),
            ("/contents/1/role", json!("assistant"), "a role is user or model"),
        ],
    )
    .await;
}

#[tokio::test]
async fn messages_are_refused_as_ollama_and_chat_refuse_them() {
    let good = json!({"model": "m", "stream": true, "options": {"num_ctx": 1}, "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"role": "tool", "tool_name": "look", "content": "x"}]});
    refuses(
        Wire::Ollama,
        good,
        &[
            ("/options", json!({}), "num_ctx"),
            ("/messages/1/tool_calls/0/function/arguments", json!("{}"), "unmarshal"),
            ("/messages/2/tool_name", json!("hear"), "nobody asked for"),
            ("/messages/2", json!({"role": "user", "content": "x"}), "have no result"),
        ],
    )
    .await;
    let good = json!({"model": "m", "stream": true, "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}]});
    refuses(
        Wire::Chat,
        good,
        &[
            ("/messages/1/tool_calls/0/function/arguments", json!("{oh"), "JSON object"),
            ("/messages/1/tool_calls/0/id", json!("x".repeat(41)), ""),
            ("/messages/2/tool_call_id", json!("b"), "must follow"),
        ],
    )
    .await;
}
