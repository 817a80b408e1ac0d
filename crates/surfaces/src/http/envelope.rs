//! One envelope for everything that is streamed, over WebSocket and server-sent events alike.

use planwright_domain::session::SessionEvent;
use planwright_runtime::ports::{journal::Recorded, signal::Preview};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{session_event::SessionEventDto, time::time};

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
    /// The plan or turn it is about.
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
        Self {
            id: Some(format!("{session_id}/{}", recorded.seq)),
            source: "planwright".into(),
            kind,
            time: Some(time(recorded.at)),
            subject: subject(&recorded.event),
            data: event["data"].take(),
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

fn subject(event: &SessionEvent) -> Option<String> {
    use planwright_domain::{
        autonomy::event::AutoEvent, memory::MemoryEvent, notebook::NotebookEvent,
        plan::event::PlanEvent, turn::event::TurnEvent,
    };
    match event {
        SessionEvent::Plan(event) => match event {
            PlanEvent::PlanStarted { plan, .. }
            | PlanEvent::ExecutionStarted { plan, .. }
            | PlanEvent::StepQueued { plan, .. }
            | PlanEvent::PlanEnded { plan, .. } => Some(plan.to_string()),
            PlanEvent::RevisionAdded { revision, .. } => Some(revision.plan.to_string()),
            PlanEvent::PlanApproved { approval, .. } => Some(approval.plan.to_string()),
            PlanEvent::DraftChanged { .. }
            | PlanEvent::StepBegun { .. }
            | PlanEvent::StepEnded { .. }
            | PlanEvent::DecisionReminded { .. }
            | PlanEvent::DecisionExpired { .. }
            | PlanEvent::RevisionShown { .. }
            | PlanEvent::BlocksSeen { .. }
            | PlanEvent::ChangesRequested { .. }
            | PlanEvent::ExecutionPaused { .. }
            | PlanEvent::PlanFailed { .. } => None,
        },
        SessionEvent::Turn(event) => match event {
            TurnEvent::TurnStarted { turn, .. }
            | TurnEvent::ModelCallStarted { turn, .. }
            | TurnEvent::ModelAnswered { turn, .. }
            | TurnEvent::ModelCallFailed { turn, .. }
            | TurnEvent::ModelCallAbandoned { turn, .. }
            | TurnEvent::ModelCallOrphaned { turn, .. }
            | TurnEvent::ViewCompacted { turn, .. }
            | TurnEvent::TurnFinished { turn, .. } => Some(turn.to_string()),
            TurnEvent::CallStarted { call, .. }
            | TurnEvent::PermissionAsked { call, .. }
            | TurnEvent::PermissionDecided { call, .. }
            | TurnEvent::CallFinished { call, .. }
            | TurnEvent::CallAnswered { call, .. }
            | TurnEvent::CallAbandoned { call, .. }
            | TurnEvent::CallOrphaned { call, .. }
            | TurnEvent::CallInDoubt { call, .. }
            | TurnEvent::DoubtSettled { call, .. } => Some(call.to_string()),
        },
        SessionEvent::Auto(event) => match event {
            AutoEvent::GoalAdded { goal, .. } | AutoEvent::GoalEnded { goal, .. } => {
                Some(goal.to_string())
            }
            AutoEvent::TaskAdded { task, .. } | AutoEvent::TaskEnded { task, .. } => {
                Some(task.to_string())
            }
            AutoEvent::RunStarted { context, .. }
            | AutoEvent::Ticked { context, .. }
            | AutoEvent::RunEnded { context, .. } => Some(context.run_id.to_string()),
            AutoEvent::RunMoved { run, .. }
            | AutoEvent::RunPinned { run, .. }
            | AutoEvent::RunWarned { run, .. }
            | AutoEvent::RunPaused { run, .. }
            | AutoEvent::RunResumed { run, .. } => Some(run.to_string()),
            AutoEvent::ScheduleAdded { schedule, .. }
            | AutoEvent::SlotsMissed { schedule, .. }
            | AutoEvent::SlotClaimed { schedule, .. }
            | AutoEvent::SlotEnded { schedule, .. }
            | AutoEvent::ScheduleEnded { schedule, .. } => Some(schedule.to_string()),
        },
        SessionEvent::Memory(event) => match event {
            MemoryEvent::Saved { item } => Some(item.id.to_string()),
            MemoryEvent::Changed { id, .. } | MemoryEvent::Forgotten { id } => Some(id.to_string()),
        },
        SessionEvent::Notebook(
            NotebookEvent::NoteDue { call, .. } | NotebookEvent::AgentCallStarted { call, .. },
        ) => Some(call.to_string()),
        SessionEvent::AgentCalled { call, .. } => Some(call.to_string()),
        SessionEvent::Notebook(
            NotebookEvent::Switched { .. }
            | NotebookEvent::PagesRemoved { .. }
            | NotebookEvent::RemovalStarted { .. }
            | NotebookEvent::RemovalFailed { .. }
            | NotebookEvent::RemovalOrphaned { .. },
        )
        | SessionEvent::Life(_)
        | SessionEvent::MessageQueued { .. }
        | SessionEvent::CauseWithdrawn { .. }
        | SessionEvent::ViewReset { .. }
        | SessionEvent::CompactionAsked { .. }
        | SessionEvent::Logged { .. } => None,
    }
}
