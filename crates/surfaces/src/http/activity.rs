//! Read-only endpoints: timeline, schedule slots, recent decisions, spend, change hints.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{Response, sse::Event},
};
use futures_util::stream;
use planwright_domain::{
    id::{PlanId, RunId},
    time::Time,
};
use planwright_runtime::{
    ports::signal::{Hint, Hints},
    queries::timeline::{Bar, BarKind, BarState, Part},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::http::{
    app::App,
    auth::Caller,
    params::InPath,
    problem::bad_query,
    problem::{Problem, Problems},
    sessions::access::seen,
    streams::sse::sse,
    time::time,
};

/// How long moves are gathered before a hint is sent.
const GATHER: Duration = Duration::from_millis(60);
/// A day.
const DAY_MICROS: i64 = 86_400_000_000;

/// A stretch of time, and what it was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BarDto {
    /// The event that it began with.
    pub seq: u64,
    /// `message`, `turn`, `model`, `tool`, `wait` or `mark`.
    pub kind: String,
    /// In a few words.
    pub words: String,
    /// When it began, in milliseconds since 1970.
    pub begun: i64,
    /// When it ended; none while it goes on.
    pub ended: Option<i64>,
    /// `open`, `done`, `failed`, `doubt` or `stopped`.
    pub state: String,
    /// What there is to say of it besides.
    pub note: String,
    /// The step of the plan that it belongs to.
    pub step: Option<u32>,
}

impl From<Bar> for BarDto {
    fn from(bar: Bar) -> Self {
        let kind = match bar.kind {
            BarKind::Message => "message",
            BarKind::Turn => "turn",
            BarKind::Model => "model",
            BarKind::Tool => "tool",
            BarKind::Wait => "wait",
            BarKind::Mark => "mark",
        };
        let state = match bar.state {
            BarState::Open => "open",
            BarState::Done => "done",
            BarState::Failed => "failed",
            BarState::Doubt => "doubt",
            BarState::Stopped => "stopped",
        };
        let millis = |time: Time| time.0 / 1_000;
        Self {
            seq: bar.seq.0,
            kind: kind.into(),
            words: bar.words,
            begun: millis(bar.begun),
            ended: bar.ended.map(millis),
            state: state.into(),
            note: bar.note,
            step: bar.step,
        }
    }
}

/// Which part of a session.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichPart {
    /// The work on one plan.
    pub plan: Option<Uuid>,
    /// One run.
    pub run: Option<Uuid>,
}

/// What happened when, oldest first: all of a session, one plan of it, or one run.
#[utoipa::path(get, path = "/api/sessions/{id}/timeline", params(InPath, WhichPart), responses((status = 200, body = [BarDto]), Problems))]
pub(crate) async fn get_timeline(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<WhichPart>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<BarDto>>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let Query(which) = query.map_err(bad_query)?;
    let part = match (which.plan, which.run) {
        (_, Some(run)) => Part::Run(RunId(run)),
        (Some(plan), None) => Part::Plan(PlanId(plan)),
        (None, None) => Part::Whole,
    };
    let bars = app.queries.timeline(&identity, part).await?;
    Ok(Json(bars.into_iter().map(BarDto::from).collect()))
}

/// A slot of a schedule, and how it came out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotDto {
    /// The schedule, by its title.
    pub schedule: String,
    /// When it was due.
    pub slot: String,
    /// How it came out: `run`, `done`, `failed`, `skipped` or `missed (n)`.
    pub verdict: String,
}

/// The slots of a session's schedules that came out, newest first.
#[utoipa::path(get, path = "/api/sessions/{id}/slots", params(InPath), responses((status = 200, body = [SlotDto]), Problems))]
pub(crate) async fn list_slots(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<SlotDto>>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let rows = app.queries.slots(&identity).await?.into_iter();
    let row = |row: planwright_runtime::queries::activity::SlotRow| SlotDto {
        schedule: row.schedule,
        slot: time(row.slot),
        verdict: row.verdict,
    };
    Ok(Json(rows.map(row).collect()))
}

/// Something that a person decided.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecidedDto {
    /// The session, as the caller names it.
    pub session_id: String,
    /// What the session is called.
    pub title: String,
    /// When.
    pub at: String,
    /// What happened, by name.
    pub kind: String,
    /// Who.
    pub who: String,
    /// Where they stood.
    pub surface: String,
    /// What it is about: a digest, a call, a step.
    pub subject: String,
    /// What was decided.
    pub verdict: String,
}

/// Since when.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Since {
    /// In milliseconds since 1970; the last 24 hours if it is not said.
    pub since: Option<i64>,
}

impl Since {
    fn time(&self, app: &App) -> Time {
        let day = app.queries.now().plus_micros(-DAY_MICROS);
        self.since.map_or(day, |millis| Time(millis.saturating_mul(1_000)))
    }
}

/// What people decided lately, newest first: in the caller's sessions, and in everyone's if the caller may decide.
#[utoipa::path(get, path = "/api/decisions", params(Since), responses((status = 200, body = [DecidedDto]), Problems))]
pub(crate) async fn list_decisions(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Since>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<DecidedDto>>, Problem> {
    let Query(since) = query.map_err(bad_query)?;
    let rows = app.queries.decided(&caller.person, since.time(&app)).await?.into_iter();
    let row = |decided: planwright_runtime::queries::activity::Decided| DecidedDto {
        session_id: caller.name_of(&decided.session),
        title: decided.title,
        at: time(decided.at),
        verdict: decided.entry.text(),
        kind: decided.entry.kind,
        who: decided.entry.who.unwrap_or_default(),
        surface: decided.entry.surface.unwrap_or_default(),
        subject: decided.entry.subject,
    };
    Ok(Json(rows.map(row).collect()))
}

/// What the model has cost.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// In millionths of a dollar, in all of the caller's sessions.
    pub micros: u64,
}

/// What the model has cost lately in all of the caller's sessions.
#[utoipa::path(get, path = "/api/spend", params(Since), responses((status = 200, body = Spent), Problems))]
pub(crate) async fn get_spend(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<Since>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Spent>, Problem> {
    let Query(since) = query.map_err(bad_query)?;
    Ok(Json(Spent { micros: app.queries.spent(&caller.person, since.time(&app)).await? }))
}

/// Which sessions move, for those who keep lists: an event `moved` with `sessionId` for each that the caller may see,
/// and `missed` where everything should be read again.
#[utoipa::path(get, path = "/api/hints", params(("ticket" = Option<String>, Query, description = "A ticket of /api/tickets: a page cannot send its key here")), responses((status = 200, content_type = "text/event-stream", body = Object), Problems))]
pub(crate) async fn stream_hints(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, Problem> {
    let subscription = app.queries.hints();
    let begun = vec![Event::default().event("missed").data("{}")];
    let state = (app.clone(), caller.clone(), subscription, begun);
    let events = stream::unfold(state, |(app, caller, mut subscription, mut ready)| async move {
        loop {
            if let Some(event) = ready.pop() {
                return Some((event, (app, caller, subscription, ready)));
            }
            ready = gathered(&app, &caller, &mut *subscription).await?;
        }
    });
    sse(&app, &caller, events)
}

/// The moves of a moment, as events; only of what the caller may see.
async fn gathered(app: &App, caller: &Caller, subscription: &mut dyn Hints) -> Option<Vec<Event>> {
    let (mut moved, mut missed) = (BTreeSet::new(), false);
    let mut take = |hint, missed: &mut bool| match hint {
        Hint::Moved(identity) => {
            moved.insert(identity);
        }
        Hint::Missed => *missed = true,
    };
    take(subscription.next().await?, &mut missed);
    let end = tokio::time::sleep(GATHER);
    tokio::pin!(end);
    loop {
        tokio::select! {
            hint = subscription.next() => take(hint?, &mut missed),
            () = &mut end => break,
        }
    }
    let mut events = Vec::new();
    for identity in moved {
        match app.queries.is_visible(&caller.person, &identity).await {
            Ok(true) => {
                let data = json!({"sessionId": caller.name_of(&identity)}).to_string();
                events.push(Event::default().event("moved").data(data));
            }
            Ok(false) => {}
            // A session that could not be read may have moved all the same.
            Err(_) => missed = true,
        }
    }
    if missed {
        return Some(vec![Event::default().event("missed").data("{}")]);
    }
    Some(events)
}
