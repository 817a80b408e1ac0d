//! Putting a streamed answer together from the pieces that real servers send.
//!
//! The rules: a call is keyed by index and id, where either may be missing; a stream without a
//! stop reason is an error, never an answer; an error inside the stream is an error.

use planwright_domain::turn::{FailureKind, ModelFailure, Usage};
use planwright_runtime::ports::model::{ModelAnswer, WireCall};
use serde::Deserialize;

/// An answer in the making.
#[derive(Debug, Default)]
pub struct Assembly {
    text: String,
    calls: Vec<Part>,
    stop: Option<String>,
    usage: Option<Usage>,
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

impl Assembly {
    /// Takes one piece; gives back the text in it, if any.
    pub fn take(&mut self, data: &str) -> Result<Option<String>, ModelFailure> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            failure(
                FailureKind::Malformed,
                format!("a piece of the answer cannot be read: {error}"),
            )
        })?;
        if let Some(error) = chunk.error {
            return Err(in_stream(&error));
        }
        if let Some(ChunkUsage { prompt_tokens, completion_tokens }) = chunk.usage {
            self.usage = Some(Usage::tokens(prompt_tokens, completion_tokens));
        }
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(None) };
        if choice.finish_reason.is_some() {
            self.stop = choice.finish_reason;
        }
        let Some(delta) = choice.delta else { return Ok(None) };
        for call in delta.tool_calls.unwrap_or_default() {
            self.take_call(call);
        }
        let text = delta.content.filter(|text| !text.is_empty());
        self.text.push_str(text.as_deref().unwrap_or_default());
        Ok(text)
    }

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

    /// The answer, if the stream ended as it should.
    pub fn finish(self) -> Result<ModelAnswer, ModelFailure> {
        let malformed = |words: &str| failure(FailureKind::Malformed, words.into());
        let mut text = self.text;
        match self.stop.as_deref() {
            None => return Err(malformed("the answer broke off without a stop reason")),
            Some("content_filter") => {
                return Err(failure(
                    FailureKind::Permanent,
                    "the model's server withheld the answer (content_filter)".into(),
                ));
            }
            Some("length") if !self.calls.is_empty() => {
                return Err(malformed(
                    "the answer was cut off at the model's length limit inside a tool call",
                ));
            }
            Some("length") => text.push_str("\n[cut off at the model's length limit]"),
            Some(_) => {}
        }
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(malformed("a tool call without a name"));
        }
        let calls = self.calls.into_iter().enumerate().map(|(at, part)| WireCall {
            wire_id: if part.id.is_empty() { format!("call_{at}") } else { part.id },
            tool: part.name,
            arguments: if part.arguments.trim().is_empty() { "{}".into() } else { part.arguments },
        });
        Ok(ModelAnswer { text, calls: calls.collect(), usage: self.usage })
    }
}

fn in_stream(error: &ChunkError) -> ModelFailure {
    let words = error.message.as_deref().unwrap_or("no reason given");
    let code = error.code.as_ref().map(ToString::to_string).unwrap_or_default();
    let kind = format!("{} {code}", error.kind.as_deref().unwrap_or_default());
    let passing =
        ["server_error", "overloaded", "rate_limit", "timeout", "429", "500", "502", "503", "529"];
    let kind = if passing.iter().any(|word| kind.contains(word)) {
        FailureKind::Transient
    } else {
        FailureKind::Permanent
    };
    failure(kind, format!("the model's server broke off: {words}"))
}

/// A failure of this kind, in these words.
#[must_use]
pub fn failure(kind: FailureKind, message: String) -> ModelFailure {
    ModelFailure { kind, message, retry_after_micros: None }
}
