//! Our wire code against a strict local server, in every shape that real servers send.

#![expect(clippy::unwrap_used, reason = "a broken expectation in a test is a failed test")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use planwright_domain::{
    effect::Effect,
    tools::ToolSpec,
    turn::{FailureKind, ModelFailure, Usage},
};
use planwright_outbound::model_http::{HttpModel, HttpSettings, Wire};
use planwright_runtime::ports::model::{Message, Model, ModelAnswer, ModelRequest, WireCall};
use planwright_testkit::scripted_model::{ScriptedModel, ScriptedReply, Shape};
use serde_json::{Value, json};

fn model(base_url: String, api_key: Option<&str>) -> HttpModel {
    let api_key = api_key.map(str::to_owned);
    HttpModel::new(HttpSettings {
        api_key,
        window_tokens: 1_000,
        ..HttpSettings::new(Wire::Chat, &base_url, "scripted")
    })
    .unwrap()
}

fn request() -> ModelRequest {
    let parameters = json!({"type": "object"});
    let tool = |name: &str| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: "d".into(),
            parameters: parameters.clone(),
            effect: Effect::Read,
        })
    };
    let call = |id: &str, arguments: &str| WireCall {
        wire_id: id.into(),
        tool: "read_file".into(),
        arguments: arguments.into(),
    };
    let messages = vec![
        Message::User("hello".into()),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("a", "{\"path\":\"x\"}"), call("b", "{broken")],
            kept: None,
        },
        Message::Tool { wire_id: "a".into(), tool: "t".into(), text: "contents".into() },
        Message::Tool {
            wire_id: "b".into(),
            tool: "t".into(),
            text: "the arguments do not fit".into(),
        },
    ];
    ModelRequest {
        system: "be brief".into(),
        messages: Arc::new(messages),
        tools: vec![tool("read_file"), tool("write_file")],
        cache_key: Some("a conversation".into()),
    }
}

fn said() -> ScriptedReply {
    let words = "Zwei Dateien, übersetzt: 文件 🗂 fertig.";
    ScriptedReply::call("read_file", &json!({"path": "ä/文件.txt"}))
        .and("write_file", &json!({"path": "b", "content": "x \"y\" \\ 🗂"}))
        .with_text(words)
}

trait WithText {
    fn with_text(self, text: &str) -> Self;
}

impl WithText for ScriptedReply {
    fn with_text(self, text: &str) -> Self {
        Self { text: text.into(), ..self }
    }
}

async fn answer(said: ScriptedReply) -> (Result<ModelAnswer, ModelFailure>, String) {
    let server = ScriptedModel::saying(vec![said]).await.unwrap();
    let heard = Mutex::new(String::new());
    let answer = model(server.base_url(), None)
        .answer(&request(), &|piece| heard.lock().unwrap().push_str(piece))
        .await;
    (answer, heard.into_inner().unwrap())
}

#[tokio::test]
async fn every_shape_of_a_good_answer_gives_the_same_answer() {
    let shapes = [
        Shape::Plain,
        Shape::Interleaved,
        Shape::ByteSplit,
        Shape::IndexAlwaysZero,
        Shape::IndexMissing,
        Shape::WholeWithoutIds,
        Shape::RepeatedHeads,
        Shape::Chatty,
        Shape::NoUsage,
    ];
    for shape in shapes {
        let (answer, heard) = answer(said().shaped(shape)).await;
        let answer = answer.unwrap_or_else(|failure| panic!("{shape:?}: {failure:?}"));
        let calls: Vec<_> =
            answer.calls.iter().map(|call| (call.tool.clone(), call.arguments.clone())).collect();
        assert_eq!(
            (&answer.text, &calls, &heard),
            (&said().text, &said().calls, &said().text),
            "{shape:?}"
        );
        let ids: std::collections::BTreeSet<_> =
            answer.calls.iter().map(|call| call.wire_id.clone()).collect();
        assert_eq!(ids.len(), 2, "{shape:?}");
        let usage = (shape != Shape::NoUsage).then_some(Usage::tokens(100, 10));
        assert_eq!(answer.usage, usage, "{shape:?}");
    }
}

#[tokio::test]
async fn what_broke_off_is_never_an_answer() {
    for (shape, kind) in [
        (Shape::Truncated, FailureKind::Malformed),
        (Shape::Cut, FailureKind::Malformed),
        (Shape::InStreamError, FailureKind::Transient),
        (Shape::LengthLimit, FailureKind::Malformed),
    ] {
        let (answer, _) = answer(said().shaped(shape)).await;
        assert_eq!(answer.unwrap_err().kind, kind, "{shape:?}");
    }
}

#[tokio::test]
async fn words_that_were_cut_off_at_the_length_limit_say_so() {
    let (answer, _) = answer(ScriptedReply::text("half a").shaped(Shape::LengthLimit)).await;
    assert_eq!(answer.unwrap().text, "half a\n[cut off at the model's length limit]");
}

#[tokio::test]
async fn a_busy_server_is_passing_and_its_wait_is_kept() {
    let (answer, _) = answer(said().shaped(Shape::TooManyRequests)).await;
    let failure = answer.unwrap_err();
    assert_eq!((failure.kind, failure.retry_after_micros), (FailureKind::Transient, Some(20_000)));
    assert_eq!(
        failure.message,
        "scripted is busy or out of order (429 Too Many Requests): Rate limit reached"
    );
}

#[tokio::test]
async fn who_can_mend_a_refusal_is_told_by_its_kind() {
    let (busy, _) = answer(said().shaped(Shape::ServerError)).await;
    assert_eq!(busy.unwrap_err().kind, FailureKind::Transient);
    let (long, _) = answer(said().shaped(Shape::TooLong)).await;
    assert_eq!(long.unwrap_err().kind, FailureKind::TooLarge);
}

#[tokio::test]
async fn a_wrong_key_is_permanent_and_never_shown() {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let conduct =
        Arc::new(|_: &planwright_testkit::scripted_model::SeenRequest| ScriptedReply::text("hi"));
    let server = ScriptedModel::start_at(address, Some("right".into()), conduct).await.unwrap();
    let failure = model(server.base_url(), Some("wrong-secret"))
        .answer(&request(), &|_| {})
        .await
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Permanent);
    assert!(!failure.message.contains("wrong-secret"));
    assert_eq!(
        model(server.base_url(), Some("right")).answer(&request(), &|_| {}).await.unwrap().text,
        "hi"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_passing() {
    let failure =
        model("http://127.0.0.1:9/v1".into(), None).answer(&request(), &|_| {}).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.message.contains("cannot be reached"), "{}", failure.message);
}

#[tokio::test]
async fn the_history_is_sent_as_a_strict_server_wants_it() {
    let server = ScriptedModel::saying(vec![ScriptedReply::text("ok")]).await.unwrap();
    model(server.base_url(), None).answer(&request(), &|_| {}).await.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(sent["messages"][2]["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(sent["tools"][0]["function"]["name"], "read_file");
}

fn body(wire: Wire, base_url: &str, request: &ModelRequest) -> Value {
    HttpModel::new(HttpSettings::new(wire, base_url, "a-model")).unwrap().body(request)
}

/// A look back for what was kept ends after twenty blocks, and an answer may ask for more calls than that.
#[test]
fn anthropic_keeps_the_system_text_the_last_block_and_the_last_but_one_that_a_person_wrote() {
    let calls = |turn: usize| (0..25).map(move |at| format!("call_{turn}_{at}"));
    let mut messages = Vec::new();
    for turn in 0..3 {
        messages.push(Message::User(format!("words {turn}")));
        let call = |wire_id| WireCall { wire_id, tool: "read_file".into(), arguments: "{}".into() };
        let asked = calls(turn).map(call).collect();
        messages.push(Message::Assistant { text: String::new(), calls: asked, kept: None });
        messages.extend(calls(turn).map(|wire_id| Message::Tool {
            wire_id,
            tool: "read_file".into(),
            text: "a line".into(),
        }));
    }
    let told = ModelRequest { messages: Arc::new(messages), ..request() };
    let body = body(Wire::Anthropic, Wire::Anthropic.home(), &told);
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
    let marked = blocks.filter(|block| !block["cache_control"].is_null());
    let marked: Vec<_> = marked.map(|block| (&block["text"], &block["tool_use_id"])).collect();
    assert_eq!(marked, [(&json!("words 1"), &Value::Null), (&Value::Null, &json!("call_2_24"))]);
}

#[test]
fn openai_finds_a_conversation_by_its_key_and_others_are_not_sent_one() {
    let key = |wire, url| body(wire, url, &request())["prompt_cache_key"].clone();
    assert_eq!(key(Wire::Responses, Wire::Responses.home()), "a conversation");
    assert_eq!(key(Wire::Chat, "https://api.openai.com/v1"), "a conversation");
    for url in ["http://127.0.0.1:11434/v1", "https://api.openai.com.example.org/v1"] {
        assert_eq!(key(Wire::Chat, url), Value::Null, "{url} may refuse what it does not know");
    }
    for wire in [Wire::Anthropic, Wire::Gemini, Wire::Ollama] {
        assert_eq!(key(wire, wire.home()), Value::Null, "{wire:?}");
    }
}
