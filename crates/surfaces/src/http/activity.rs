//! Timeline, schedule slots, recent decisions, usage and its limits, change hints.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, Query, State},
    http::HeaderMap,
    response::{Response, sse::Event},
};
use futures_util::stream;
use planwright_domain::{
    id::{PlanId, RunId},
    quota::{Day, Limit, QuotaUse},
    time::Time,
};
use planwright_runtime::{
    ports::signal::{Hint, Hints, ListChange},
    queries::timeline::{Bar, BarKind, BarState, Part},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::http::{
    app::App,
    auth::Caller,
    dto::SessionRowDto,
    pages::{ROWS, next_page, page_asked},
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

/// Which decisions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DecisionRows {
    /// Those since this time, in milliseconds since 1970; of the last 24 hours if it is not said.
    pub since: Option<i64>,
    /// At most so many; 100, if it is not said.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Those after this place: `x-next-page` of the page before.
    pub after: Option<String>,
}

/// What people decided lately, newest first, a page at a time: in the caller's sessions, and in everyone's if the caller may
/// decide. `x-next-page` says where the next page begins, if there is one.
#[utoipa::path(get, path = "/api/decisions", params(DecisionRows), responses((status = 200, body = [DecidedDto], headers(("x-next-page" = Option<String>, description = "what `after` of the next page is; none on the last"))), Problems))]
pub(crate) async fn list_decisions(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<DecisionRows>, axum::extract::rejection::QueryRejection>,
) -> Result<(HeaderMap, Json<Vec<DecidedDto>>), Problem> {
    let Query(DecisionRows { since, limit, after }) = query.map_err(bad_query)?;
    let (limit, after) = page_asked(limit.unwrap_or(ROWS), after.as_deref())?;
    let day = app.queries.now().plus_micros(-DAY_MICROS);
    let since = since.map_or(day, |millis| Time(millis.saturating_mul(1_000)));
    let (rows, next) = app.queries.decided(&caller.person, since, after, limit).await?;
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
    Ok((next_page(next), Json(rows.into_iter().map(row).collect())))
}

/// What an owner has used, and how much they may.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageDto {
    /// Whose.
    pub owner: String,
    /// When the day (UTC) ends by which money and tokens are counted.
    pub until: String,
    /// Money today, in millionths of a dollar, where the price of the model is known.
    pub money: MeterDto,
    /// Tokens today, read and written.
    pub tokens: MeterDto,
    /// Turns that are under way and wait for nobody.
    pub turns: MeterDto,
    /// Bytes that the sessions take.
    pub bytes: MeterDto,
    /// Whether every model has a price: without one, money is not counted.
    pub priced: bool,
}

/// How much of something is used.
#[derive(Debug, Serialize, ToSchema)]
pub struct MeterDto {
    /// So much is.
    pub used: u64,
    /// So much may be; as much as they like, if none.
    pub max: Option<u64>,
}

impl UsageDto {
    fn of(stands: QuotaUse, at: Time, priced: bool) -> Self {
        let QuotaUse { owner, quota, used } = stands;
        let meter = |limit: Limit| MeterDto { used: used.of(limit), max: quota.of(limit) };
        Self {
            owner: owner.0,
            until: time(Day::of(at).ends()),
            money: meter(Limit::Money),
            tokens: meter(Limit::Tokens),
            turns: meter(Limit::Turns),
            bytes: meter(Limit::Bytes),
            priced,
        }
    }
}

/// What the caller has used today in all of their sessions, also in those that were deleted, and how much they may use.
#[utoipa::path(get, path = "/api/usage", responses((status = 200, body = UsageDto), Problems))]
pub(crate) async fn get_usage(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<UsageDto>, Problem> {
    let (_, stands) = app.queries.quotas().now(caller.person.owner).await?;
    let priced = app.queries.terms().priced;
    Ok(Json(UsageDto::of(stands, app.queries.now(), priced)))
}

/// Lets the owner of a session use as much again today of what is used up; their turns that wait for it go on. Only who may
/// decide can, a short while after their passphrase.
#[utoipa::path(post, path = "/api/sessions/{id}/raise-limit", params(InPath), responses((status = 200, body = UsageDto), Problems))]
pub(crate) async fn raise_limit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<UsageDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let stands = app.commands.raise_limit(&caller.person, &identity).await??;
    let priced = app.queries.terms().priced;
    Ok(Json(UsageDto::of(stands, app.queries.now(), priced)))
}

/// A row of a list that changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListChangeDto {
    /// The row as it is now.
    pub row: SessionRowDto,
    /// Whether it is the caller's own.
    pub own: bool,
    /// Whether the session began with it.
    pub begun: bool,
    /// Whether the session was deleted: no list shows it any more.
    pub deleted: bool,
    /// Whether a person decided something in it: `/api/decisions` has more.
    pub decided: bool,
    /// So many tokens more were used in it, which count towards today's usage of its owner.
    pub used_tokens: u64,
    /// So many millionths of a dollar.
    pub used_cost_micros: u64,
}

impl ListChangeDto {
    fn of(caller: &Caller, change: ListChange) -> Self {
        Self {
            own: change.row.session.owner == caller.person.owner,
            row: SessionRowDto::of(caller, change.row),
            begun: change.begun,
            deleted: change.deleted,
            decided: change.decided,
            used_tokens: change.used.tokens,
            used_cost_micros: change.used.cost_micros,
        }
    }
}

/// What changes in the lists that the caller sees: an event `changed` with the row (`ListChangeDto`), and `missed` where
/// everything should be read again.
#[utoipa::path(get, path = "/api/hints", params(("ticket" = Option<String>, Query, description = "A ticket of /api/tickets: a page cannot send its key here")), responses((status = 200, content_type = "text/event-stream", body = ListChangeDto), Problems))]
pub(crate) async fn stream_hints(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, Problem> {
    let subscription = app.queries.hints(&caller.person);
    let begun = vec![missed()];
    let state = (caller.clone(), subscription, begun);
    let events = stream::unfold(state, |(caller, mut subscription, mut ready)| async move {
        loop {
            if let Some(event) = ready.pop() {
                return Some((event, (caller, subscription, ready)));
            }
            ready = gathered(&caller, &mut *subscription).await?;
        }
    });
    sse(&app, &caller, events)
}

fn missed() -> Event {
    Event::default().event("missed").data("{}")
}

/// What changed in a moment, as events: one for each row.
async fn gathered(caller: &Caller, subscription: &mut dyn Hints) -> Option<Vec<Event>> {
    let (mut changed, mut is_missed) = (BTreeMap::<_, ListChange>::new(), false);
    let mut take = |hint, is_missed: &mut bool| match hint {
        Hint::Changed(change) => {
            let session = change.row.session.clone();
            // Two nodes may be heard the wrong way round.
            let all = match changed.remove(&session) {
                Some(before) => before.with(*change),
                None => *change,
            };
            changed.insert(session, all);
        }
        Hint::Missed => *is_missed = true,
    };
    take(subscription.next().await?, &mut is_missed);
    let end = tokio::time::sleep(GATHER);
    tokio::pin!(end);
    loop {
        tokio::select! {
            hint = subscription.next() => take(hint?, &mut is_missed),
            () = &mut end => break,
        }
    }
    if is_missed {
        return Some(vec![missed()]);
    }
    let event = |change| {
        let data = serde_json::to_string(&ListChangeDto::of(caller, change)).unwrap_or_default();
        Event::default().event("changed").data(data)
    };
    Some(changed.into_values().map(event).collect())
}
