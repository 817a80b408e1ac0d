//! The API that other programs know: chat completions and responses, as OpenAI describes them.
//!
//! A conversation is a session of ours. Which one is said by what the client sends back: the id of the last response, or
//! the link at the end of the last answer; where there is neither, a new one begins. Nobody decides here: a plan is text
//! with a link to where it is reviewed.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response, sse::Event},
};
use futures_util::{StreamExt as _, stream};
use planwright_domain::{
    identity::{ChannelType, ConversationKey, SessionIdentity},
    turn::Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{app::App, auth::Caller, body::Body, problem::Problem, streams::sse::sse};

mod talk;

use talk::{Piece, Talk};

/// The name of the one model there is: the agent of this installation.
const MODEL: &str = "planwright";

/// A request for a chat completion. What is not understood is left alone: clients send much.
#[derive(Deserialize)]
pub(crate) struct Completion {
    messages: Vec<ChatMessage>,
    #[serde(default)]
    stream: bool,
}

/// A request for a response.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    input: Input,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<ChatMessage>),
}

/// Something that was said.
#[derive(Deserialize)]
struct ChatMessage {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
}

impl ChatMessage {
    fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
        }
    }
}

/// The models there are: one.
pub(crate) async fn models() -> Json<Value> {
    Json(
        json!({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": MODEL, "created": 0}]}),
    )
}

/// `POST /v1/chat/completions`
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(request): Body<Completion>,
) -> Result<Response, Problem> {
    let last = request.messages.iter().rev().find(|message| message.role == "user");
    let line = last.map(ChatMessage::text).unwrap_or_default();
    let answers = request.messages.iter().rev().filter(|message| message.role == "assistant");
    let named = answers.map(ChatMessage::text).find_map(|text| linked(&text));
    let talk = Talk::begin(&app, &caller, &headers, named, line).await?;
    let id = format!("chatcmpl-{}", talk.spoken.id);
    if !request.stream {
        let (text, usage) = talk.whole().await?;
        let message = json!({"role": "assistant", "content": text});
        return Ok(Json(
            json!({"id": id, "object": "chat.completion", "created": 0, "model": MODEL,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": counted(usage, ["prompt_tokens", "completion_tokens"])}),
        )
        .into_response());
    }
    let chunk = move |delta: Value, reason: Option<&str>| {
        json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let first = chunk(json!({"role": "assistant", "content": ""}), None);
    let pieces = talk.pieces().map({
        let chunk = chunk.clone();
        move |piece| match piece {
            Piece::Text(text) => vec![chunk(json!({"content": text}), None)],
            Piece::End(_) => vec![chunk(json!({}), Some("stop"))],
        }
    });
    let data = |value: Value| Event::default().data(value.to_string());
    let events = stream::once(async { vec![first] })
        .chain(pieces)
        .flat_map(stream::iter)
        .map(data)
        .chain(stream::once(async { Event::default().data("[DONE]") }));
    sse(&app, &caller, events)
}

/// `POST /v1/responses`
pub(crate) async fn respond(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(request): Body<Wanted>,
) -> Result<Response, Problem> {
    let line = match &request.input {
        Input::Text(text) => text.clone(),
        Input::Items(items) => items
            .iter()
            .rev()
            .find(|message| message.role == "user")
            .map(ChatMessage::text)
            .unwrap_or_default(),
    };
    let named = match &request.previous_response_id {
        None => None,
        Some(id) => Some(session_of(id).ok_or_else(|| {
            let words =
                format!("there is no response {id:?} to go on from; leave it out to begin anew");
            Problem::new(StatusCode::NOT_FOUND, "no_such_response", words)
        })?),
    };
    let talk = Talk::begin(&app, &caller, &headers, named, line).await?;
    let id = format!(
        "resp_{}_{}",
        talk.spoken.identity.identity.key.as_str(),
        talk.spoken.id.0.simple()
    );
    let item = {
        let id = format!("msg_{}", talk.spoken.id.0.simple());
        move |text: &str| {
            json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
    };
    let response = {
        let (id, item) = (id.clone(), item.clone());
        move |status: &str, text: Option<&str>, usage: Usage| {
            json!({"id": id, "object": "response", "created_at": 0, "model": MODEL, "status": status,
                "output": text.map(&item).into_iter().collect::<Vec<_>>(),
                "usage": counted(usage, ["input_tokens", "output_tokens"])})
        }
    };
    if !request.stream {
        let (text, usage) = talk.whole().await?;
        return Ok(Json(response("completed", Some(&text), usage)).into_response());
    }
    let begun = vec![
        json!({"type": "response.created", "response": response("in_progress", None, Usage::default())}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
    ];
    let mut whole = String::new();
    let pieces = talk.pieces().map(move |piece| match piece {
        Piece::Text(text) => {
            whole.push_str(&text);
            vec![json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})]
        }
        Piece::End(usage) => vec![
            json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": whole}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item(&whole)}),
            json!({"type": "response.completed", "response": response("completed", Some(&whole), usage)}),
        ],
    });
    let events = stream::once(async { begun }).chain(pieces).flat_map(stream::iter);
    let events = events.map(|value| {
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        Event::default().event(kind).data(value.to_string())
    });
    sse(&app, &caller, events)
}

fn counted(usage: Usage, [read, wrote]: [&str; 2]) -> Value {
    json!({read: usage.input, wrote: usage.output, "total_tokens": usage.input + usage.output})
}

/// The session that our link at the end of an answer leads to.
fn linked(text: &str) -> Option<SessionIdentity> {
    let last = text.trim_end().lines().last()?;
    let (_, rest) = last.split_once("](")?;
    let (_, named) = rest.strip_suffix(')')?.rsplit_once("/s/")?;
    SessionIdentity::parse(named.strip_suffix("/plan").unwrap_or(named)).ok()
}

/// The session that the id of a response names.
fn session_of(id: &str) -> Option<SessionIdentity> {
    let (key, _) = id.strip_prefix("resp_")?.rsplit_once('_')?;
    Some(SessionIdentity::new(ChannelType::Api, ConversationKey::new(key).ok()?))
}
