//! One envelope for everything that is streamed, over WebSocket and server-sent events alike.

use planwright_domain::session::SessionEvent;
use planwright_runtime::ports::{journal::Recorded, signal::Preview};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::{session_event::SessionEventDto, time::time};

/// Something that happened, or a preview of it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The session and the place in it; a preview has none of its own.
    pub id: Option<String>,
    /// Where it comes from.
    pub source: String,
    /// The type of the event, or `preview`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was recorded; a preview was not.
    pub time: Option<String>,
    /// What it is about: a turn, a call, a plan, a run, a schedule, a task, a goal or a memory.
    pub subject: Option<String>,
    /// What the event holds: its form depends on `type`.
    #[schema(value_type = Object)]
    pub data: Value,
    /// The session, as its reader names it.
    pub session_id: String,
    /// Its place in the session's stream; previews stand outside it.
    pub seq: Option<u64>,
    /// The form of `data`.
    pub schema: String,
}

impl Envelope {
    /// A recorded event.
    #[must_use]
    pub fn of(session_id: &str, recorded: &Recorded) -> Self {
        let event = SessionEventDto::from(&recorded.event);
        let mut event = serde_json::to_value(event).unwrap_or_default();
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let data = event["data"].take();
        Self {
            id: Some(format!("{session_id}/{}", recorded.seq)),
            source: "planwright".into(),
            kind,
            time: Some(time(recorded.at)),
            subject: subject(&data),
            data,
            session_id: session_id.to_owned(),
            seq: Some(recorded.seq.0),
            schema: "session_event/1".into(),
        }
    }

    /// The event that it carries, if it is one that was recorded and is known here.
    pub fn event(self) -> Result<SessionEvent, serde_json::Error> {
        let event = json!({"type": self.kind, "data": self.data});
        serde_json::from_value::<SessionEventDto>(event).map(SessionEvent::from)
    }

    /// A piece of an answer that is not committed yet.
    #[must_use]
    pub fn preview(session_id: &str, preview: &Preview) -> Self {
        let Preview { turn, round, attempt, offset, text } = preview;
        Self {
            id: None,
            source: "planwright".into(),
            kind: "preview".into(),
            time: None,
            subject: Some(turn.to_string()),
            data: json!({"turn": turn, "round": round, "attempt": attempt, "offset": offset, "text": text}),
            session_id: session_id.to_owned(),
            seq: None,
            schema: "preview/1".into(),
        }
    }
}

/// Where an event names what it is about, the most telling first.
const SUBJECTS: [&str; 12] = [
    "/turn",
    "/call",
    "/plan",
    "/revision/plan",
    "/approval/plan",
    "/run",
    "/context/run",
    "/schedule",
    "/task",
    "/goal",
    "/item/id",
    "/memory",
];

fn subject(data: &Value) -> Option<String> {
    SUBJECTS.iter().find_map(|place| data.pointer(place)?.as_str()).map(str::to_owned)
}
