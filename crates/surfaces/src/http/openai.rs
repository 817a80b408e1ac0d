//! The API that other programs know: chat completions and responses, as OpenAI describes them.
//!
//! A conversation is a session of ours. Which one is said by what the client sends back: the id of the last response, or
//! the link at the end of the last answer; where there is neither, a new one begins. Nobody decides here: a plan is text
//! with a link to where it is reviewed.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use planwright_domain::{
    actor::{Person, Standing},
    id::{Seq, TurnId},
    identity::{ChannelType, ConversationKey, SessionIdentity},
    next::{Waiting, next, waiting},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::{
        Usage,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};
use planwright_runtime::{
    inbound::{Reply, Spoken},
    ports::{
        journal::JournalError,
        signal::{Signal, Subscription},
    },
    routing::new_key,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{App, body::Body, problem::Problem, who::Caller};

/// The name of the one model there is: the agent of this installation.
const MODEL: &str = "planwright";
/// How long an answer is waited for; what goes on then is read in the dashboard.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// A request for a chat completion. What is not understood is left alone: clients send much.
#[derive(Deserialize)]
pub(crate) struct Completion {
    messages: Vec<Said>,
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
    Items(Vec<Said>),
}

/// Something that was said.
#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
}

impl Said {
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
    Body(asked): Body<Completion>,
) -> Result<Response, Problem> {
    let last = asked.messages.iter().rev().find(|said| said.role == "user");
    let line = last.map(Said::text).unwrap_or_default();
    let answers = asked.messages.iter().rev().filter(|said| said.role == "assistant");
    let named = answers.map(Said::text).find_map(|text| linked(&text));
    let talk = Talk::begin(&app, &caller, &headers, named, line).await?;
    let id = format!("chatcmpl-{}", talk.spoken.id);
    if !asked.stream {
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
    Ok(sse(events))
}

/// `POST /v1/responses`
pub(crate) async fn respond(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(asked): Body<Wanted>,
) -> Result<Response, Problem> {
    let line = match &asked.input {
        Input::Text(text) => text.clone(),
        Input::Items(items) => {
            items.iter().rev().find(|said| said.role == "user").map(Said::text).unwrap_or_default()
        }
    };
    let named = match &asked.previous_response_id {
        None => None,
        Some(id) => Some(session_of(id).ok_or_else(|| {
            let words =
                format!("there is no response {id:?} to go on from; leave it out to begin anew");
            Problem::new(StatusCode::NOT_FOUND, "no_such_response", words)
        })?),
    };
    let talk = Talk::begin(&app, &caller, &headers, named, line).await?;
    let id = format!("resp_{}_{}", talk.spoken.identity.key.as_str(), talk.spoken.id.0.simple());
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
    if !asked.stream {
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
    Ok(sse(events.map(|value| {
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        Event::default().event(kind).data(value.to_string())
    })))
}

fn sse(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.map(Ok::<_, Infallible>);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
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

/// A piece of what is said.
enum Piece {
    Text(String),
    End(Usage),
}

/// One thing that was said, and the answer to it.
struct Talk {
    app: Arc<App>,
    spoken: Spoken,
    ear: Box<dyn Subscription>,
    /// What was answered at once, if it was.
    at_once: Option<String>,
    /// Events up to here were looked at.
    seen: Seq,
    /// How much of each answer was told.
    told: HashMap<(TurnId, u32), String>,
    usage: Usage,
    until: Instant,
    /// Whether a revision came of it.
    planned: bool,
    stage: Stage,
}

impl Talk {
    async fn begin(
        app: &Arc<App>,
        caller: &Caller,
        headers: &HeaderMap,
        named: Option<SessionIdentity>,
        line: String,
    ) -> Result<Self, Problem> {
        let refused =
            |kind: &str, words: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, kind, words);
        if line.trim().is_empty() {
            return Err(refused("nothing_said", "the last message of the user has no text"));
        }
        // Whoever asks here speaks, whatever their token may do elsewhere.
        let person = Person { standing: Standing::Speaks, ..caller.person.clone() };
        let identity = match named.filter(|named| named.channel == ChannelType::Api) {
            Some(identity) => {
                let session = app.runtime.session(&identity).await?;
                if session.owner.as_ref().is_some_and(|owner| *owner != person.id) {
                    let words = "that conversation is someone else's; begin one of your own";
                    return Err(Problem::new(StatusCode::FORBIDDEN, "not_yours", words));
                }
                identity
            }
            None => {
                let key = new_key().map_err(|_| refused("no_key", "no new key could be made"))?;
                SessionIdentity::new(ChannelType::Api, key)
            }
        };
        let ear = app.runtime.ports.broadcast.subscribe(&identity);
        let seen = app.runtime.session(&identity).await?.version;
        let id = caller.command_id(headers)?;
        let spoken = Spoken { identity, transport: None, person, id, line };
        let at_once = match app.runtime.hear(spoken.clone()).await? {
            // A message is answered by a turn; a command by words.
            Reply::Accepted { .. } if !spoken.line.trim_start().starts_with('/') => None,
            Reply::Accepted { words, .. } => Some(words),
            Reply::Refused(refusal) => Some(refusal.to_string()),
            Reply::Unreadable(words) | Reply::Nothing(words) | Reply::Moved { words, .. } => {
                Some(words)
            }
            Reply::Status(_)
            | Reply::Revision(_)
            | Reply::Diff(_)
            | Reply::Plans(_)
            | Reply::Comments(_)
            | Reply::Sessions(_)
            | Reply::Work(_)
            | Reply::Memory(_)
            | Reply::Notebook(_)
            | Reply::Help => Some("That is shown in the dashboard.".into()),
        };
        let (told, usage, until) = (HashMap::new(), Usage::default(), Instant::now() + ANSWER_MAX);
        let (app, planned, stage) = (app.clone(), false, Stage::Answers);
        Ok(Self { app, spoken, ear, at_once, seen, told, usage, until, planned, stage })
    }

    /// All of it.
    async fn whole(self) -> Result<(String, Usage), Problem> {
        let mut pieces = std::pin::pin!(self.pieces());
        let (mut text, mut usage) = (String::new(), Usage::default());
        while let Some(piece) = pieces.next().await {
            match piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::End(used) => usage = used,
            }
        }
        Ok((text, usage))
    }

    /// Piece by piece, as it comes.
    fn pieces(self) -> impl Stream<Item = Piece> + Send {
        stream::unfold(self, |mut talk| async move {
            let piece = match talk.stage {
                Stage::Answers => talk.next().await.unwrap_or_else(|error| {
                    tracing::error!(%error, event = "completion_not_read");
                    talk.stage = Stage::Ends;
                    Piece::Text(
                        "\n\nThe journal does not answer now; look again in a moment.".into(),
                    )
                }),
                Stage::Ends => {
                    talk.stage = Stage::Over;
                    Piece::End(talk.usage)
                }
                Stage::Over => return None,
            };
            Some((piece, talk))
        })
    }

    async fn next(&mut self) -> Result<Piece, JournalError> {
        if let Some(words) = self.at_once.take() {
            return Ok(Piece::Text(words));
        }
        loop {
            if let Some(text) = self.recorded().await? {
                return Ok(Piece::Text(text));
            }
            let session = self.app.runtime.session(&self.spoken.identity).await?;
            if (next(&session).is_rest() && session.version == self.seen)
                || self.until < Instant::now()
            {
                self.stage = Stage::Ends;
                let (app, identity) = (self.app.clone(), self.spoken.identity.clone());
                let footer = footer(&app, &identity, &session, self.planned).await;
                return footer.map(Piece::Text);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if let Ok(Some(Signal::Preview(preview))) = timeout(left, self.ear.next()).await {
                let gap = self.gap(preview.turn, preview.round);
                let told = self.told.entry((preview.turn, preview.round)).or_default();
                if told.len() == preview.offset && !preview.text.is_empty() {
                    told.push_str(&preview.text);
                    return Ok(Piece::Text(format!("{gap}{}", preview.text)));
                }
            }
        }
    }

    /// What stands between one answer and the next.
    fn gap(&self, turn: TurnId, round: u32) -> &'static str {
        let is_new = self.told.get(&(turn, round)).is_none_or(String::is_empty);
        if is_new && self.told.values().any(|told| !told.is_empty()) { "\n\n" } else { "" }
    }

    /// What was recorded since, as far as it was not told yet.
    async fn recorded(&mut self) -> Result<Option<String>, JournalError> {
        let journal = &self.app.runtime.ports.journal;
        loop {
            let page = journal.events(&self.spoken.identity, self.seen, 1).await?;
            let Some(recorded) = page.into_iter().next() else { return Ok(None) };
            self.seen = recorded.seq;
            match recorded.event {
                SessionEvent::Turn(TurnEvent::ModelAnswered {
                    turn,
                    round,
                    answer,
                    arrival: Arrival::InTime,
                }) => {
                    self.usage.input += answer.usage.input;
                    self.usage.output += answer.usage.output;
                    let gap = self.gap(turn, round);
                    let told = self.told.entry((turn, round)).or_default();
                    let rest = match answer.text.strip_prefix(told.as_str()) {
                        Some(rest) => format!("{gap}{rest}"),
                        // Another try said something else: it stands beside what was told of the first.
                        None => format!("\n\n{}", answer.text),
                    };
                    *told = answer.text;
                    if !rest.trim().is_empty() {
                        return Ok(Some(rest));
                    }
                }
                SessionEvent::Turn(TurnEvent::TurnFinished {
                    end: TurnEnd::Failed { failure },
                    ..
                }) => {
                    return Ok(Some(format!("\n\n{}", failure.message)));
                }
                SessionEvent::Plan(PlanEvent::RevisionAdded { .. }) => self.planned = true,
                SessionEvent::Turn(_)
                | SessionEvent::Plan(_)
                | SessionEvent::Auto(_)
                | SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::Logged { .. } => {}
            }
        }
    }
}

/// What waits for a person, and the link by which this conversation is found again.
async fn footer(
    app: &App,
    identity: &SessionIdentity,
    session: &Session,
    planned: bool,
) -> Result<String, JournalError> {
    let here = format!("{}/s/{identity}", app.settings.url);
    let words = match waiting(session) {
        Some(Waiting::Decision) => {
            let view = app.runtime.revision(identity, None).await?.filter(|_| planned);
            let plan = view.map(|view| {
                format!(
                    "Plan, revision {}:\n\n{}\n\n",
                    view.revision.number, view.revision.markdown
                )
            });
            let plan = plan.unwrap_or_default();
            return Ok(format!("\n\n{plan}[It waits for your decision: review it]({here}/plan)"));
        }
        Some(Waiting::Permission) => "A call waits for your permission: decide on it",
        Some(Waiting::Resume | Waiting::Doubt | Waiting::Run) => "Something waits for you: look",
        None if next(session).is_rest() => "Planwright",
        None => "It still works: look",
    };
    Ok(format!("\n\n[{words}]({here})"))
}

/// Where an answer stands.
enum Stage {
    Answers,
    Ends,
    Over,
}
