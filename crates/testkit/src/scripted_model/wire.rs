//! The shapes in which real servers stream an answer, awkward ones included.

use serde_json::{Value, json};

use super::ScriptedReply;

/// How the server sends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// As documented: text in words, then each call in pieces, by index.
    #[default]
    Plain,
    /// Pieces of parallel calls in turns.
    Interleaved,
    /// Network chunks that end in the middle of a character.
    ByteSplit,
    /// Several calls, all at index 0, told apart by id.
    IndexAlwaysZero,
    /// Calls without an index, told apart by id.
    IndexMissing,
    /// Whole calls, one chunk each, without ids.
    WholeWithoutIds,
    /// The id and the name again in every piece.
    RepeatedHeads,
    /// Line ends as CR LF, comments and blank keep-alives between events.
    Chatty,
    /// The stream ends without a stop reason.
    Truncated,
    /// The connection ends in the middle of an event.
    Cut,
    /// An error object in the stream.
    InStreamError,
    /// The answer is cut off at the length limit.
    LengthLimit,
    /// No usage at the end.
    NoUsage,
    /// 429 with a wait.
    TooManyRequests,
    /// 503.
    ServerError,
    /// 400: the request does not fit the window.
    TooLong,
}

/// The answer as network chunks.
pub(super) fn pieces(said: &ScriptedReply) -> Vec<Vec<u8>> {
    let mut events: Vec<String> = Vec::new();
    let mut event = |delta: Value, stop: Option<&str>| {
        events.push(json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}).to_string());
    };
    event(json!({"role": "assistant", "content": ""}), None);
    for word in said.text.split_inclusive(' ') {
        event(json!({"content": word}), None);
    }
    for delta in calls(said) {
        event(json!({"tool_calls": [delta]}), None);
    }
    let stop = match said.shape {
        Shape::LengthLimit => "length",
        _ if said.calls.is_empty() => "stop",
        _ => "tool_calls",
    };
    match said.shape {
        Shape::Truncated | Shape::Cut => {}
        Shape::InStreamError => events.push(
            json!({"error": {"message": "upstream failed", "type": "server_error"}}).to_string(),
        ),
        _ => event(json!({}), Some(stop)),
    }
    if !matches!(said.shape, Shape::NoUsage | Shape::Truncated | Shape::Cut | Shape::InStreamError)
    {
        events.push(
            json!({"choices": [], "usage": {"prompt_tokens": said.read.unwrap_or(100), "completion_tokens": 10}})
                .to_string(),
        );
        events.push("[DONE]".into());
    }
    frame(said.shape, &events)
}

fn calls(said: &ScriptedReply) -> Vec<Value> {
    let parts: Vec<Vec<Value>> = said
        .calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| call(said.shape, at, tool, arguments))
        .collect();
    match said.shape {
        Shape::Interleaved => {
            let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
            (0..longest)
                .flat_map(|at| parts.iter().filter_map(move |part| part.get(at).cloned()))
                .collect()
        }
        _ => parts.into_iter().flatten().collect(),
    }
}

fn call(shape: Shape, at: usize, tool: &str, arguments: &str) -> Vec<Value> {
    let id = format!("call_{at}_{:x}", arguments.len());
    if shape == Shape::WholeWithoutIds {
        return vec![json!({"index": 0, "function": {"name": tool, "arguments": arguments}})];
    }
    let middle =
        (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = arguments.split_at(middle);
    let head = json!({"index": at, "id": id, "type": "function", "function": {"name": tool, "arguments": ""}});
    let mut pieces = vec![head];
    for part in [first, second] {
        pieces.push(json!({"index": at, "function": {"arguments": part}}));
    }
    for piece in &mut pieces {
        match shape {
            Shape::IndexAlwaysZero => piece["index"] = 0.into(),
            Shape::IndexMissing => {
                piece.as_object_mut().map(|piece| piece.remove("index"));
            }
            Shape::RepeatedHeads => {
                piece["id"] = id.as_str().into();
                piece["function"]["name"] = tool.into();
            }
            _ => {}
        }
    }
    pieces
}

fn frame(shape: Shape, events: &[String]) -> Vec<Vec<u8>> {
    let end = if shape == Shape::Chatty { "\r\n" } else { "\n" };
    let between = if shape == Shape::Chatty { ": keep-alive\r\n\r\n" } else { "" };
    let frames: Vec<Vec<u8>> = events
        .iter()
        .map(|event| format!("{between}data: {event}{end}{end}").into_bytes())
        .collect();
    match shape {
        Shape::ByteSplit => frames.concat().chunks(7).map(<[u8]>::to_vec).collect(),
        Shape::Cut => {
            let whole = frames.concat();
            vec![whole[..whole.len() - whole.len() / 4].to_vec()]
        }
        _ => frames,
    }
}
