//! Goals, tasks, runs and schedules of a session: read, begun and ended, each by its number.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use planwright_domain::{
    autonomy::budget::Meter,
    chat::work::{Named, When, WorkAct},
};
use planwright_runtime::queries::autonomy::WorkView;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    app::App,
    auth::Caller,
    body::Body,
    dto::Accepted,
    params::{InPath, Numbered, Once},
    problem::{Problem, Problems},
    sessions::access::{said, seen},
};

/// One of the goals, tasks, runs or schedules of a session.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ByNumber {
    /// Its number, as `GET …/work` lists it.
    pub number: u32,
}

/// A goal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGoal {
    /// In words.
    pub title: String,
}

/// How a goal ends.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalEnd {
    /// Whether it was reached; given up, if not.
    pub reached: bool,
}

/// A task.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// In words.
    pub title: String,
    /// The number of the goal it belongs to.
    pub goal: Option<u32>,
}

/// How a task ends by a person's word.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEnding {
    /// Whether it is done; given up, if not.
    pub done: bool,
}

/// A run.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NewRun {
    /// The number of the goal whose tasks it works on, one after the other.
    pub goal: Option<u32>,
    /// The number of the one task it works on; neither for the oldest open task that stands alone.
    pub task: Option<u32>,
    /// Whether it drafts a plan first and waits for its approval.
    pub drafts: bool,
    /// The minutes it may take; what the operator set, where nothing is said. The same for the rest.
    pub minutes: Option<u64>,
    /// The calls of the model it may make.
    pub model_calls: Option<u64>,
    /// The calls of tools it may make.
    pub tool_calls: Option<u64>,
    /// The tokens it may use.
    pub tokens: Option<u64>,
    /// What it may cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
}

/// When a schedule gives work.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "snake_case")]
pub enum WhenDto {
    /// As a cron expression of five fields says.
    Cron {
        /// The five fields.
        expression: String,
        /// The time zone, as `Europe/Berlin`.
        zone: String,
    },
    /// After so long, again and again.
    Every {
        /// Minutes.
        #[schema(minimum = 1)]
        minutes: u64,
    },
    /// Once.
    Once {
        /// Date and time of day, as `2026-11-16T09:00`.
        at: String,
        /// The time zone.
        zone: String,
    },
}

/// A schedule.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScheduleDto {
    /// When.
    pub when: WhenDto,
    /// What is to be done then.
    pub title: String,
    /// The number of the goal it is for.
    pub goal: Option<u32>,
}

impl From<WhenDto> for When {
    fn from(when: WhenDto) -> Self {
        match when {
            WhenDto::Cron { expression, zone } => Self::Cron { expression, zone },
            WhenDto::Every { minutes } => {
                let micros = minutes.saturating_mul(60_000_000);
                Self::Every { micros: i64::try_from(micros).unwrap_or(i64::MAX) }
            }
            WhenDto::Once { at, zone } => Self::Once { at, zone },
        }
    }
}

/// Goals, tasks, runs and schedules of a session.
#[utoipa::path(get, path = "/api/sessions/{id}/work", params(InPath), responses((status = 200, body = Object, description = "goals, tasks, runs and schedules, each with its number"), Problems))]
pub(crate) async fn get_work(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WorkView>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let session = app.queries.session(&identity).await?;
    Ok(Json(WorkView::of(&session, app.queries.now())))
}

/// Does something to the goals, tasks, runs or schedules of a session.
async fn act(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    act: WorkAct,
) -> Result<Json<Accepted>, Problem> {
    let (identity, command) = (seen(app, caller, id).await?, caller.command_id(app, headers)?);
    let answer = app.commands.act_on_work(&identity, command, &caller.person, act).await?;
    said(caller, id, &identity, answer)
}

/// Adds a goal.
#[utoipa::path(post, path = "/api/sessions/{id}/goals", params(InPath, Once), request_body = NewGoal, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn add_goal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewGoal>,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::AddGoal(new.title)).await
}

/// Ends a goal, with its runs and tasks.
#[utoipa::path(patch, path = "/api/sessions/{id}/goals/{number}", params(InPath, ByNumber, Once), request_body = GoalEnd, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn end_goal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
    Body(end): Body<GoalEnd>,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::EndGoal { number, reached: end.reached }).await
}

/// Adds a task.
#[utoipa::path(post, path = "/api/sessions/{id}/tasks", params(InPath, Once), request_body = NewTask, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn add_task(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewTask>,
) -> Result<Json<Accepted>, Problem> {
    let (goal, title) = (new.goal, new.title);
    act(&app, &caller, &id, &headers, WorkAct::AddTask { goal, title }).await
}

/// Ends a task by the caller's word.
#[utoipa::path(patch, path = "/api/sessions/{id}/tasks/{number}", params(InPath, ByNumber, Once), request_body = TaskEnding, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn end_task(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
    Body(end): Body<TaskEnding>,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::EndTask { number, done: end.done }).await
}

/// Starts a run.
#[utoipa::path(post, path = "/api/sessions/{id}/runs", params(InPath, Once), request_body = Option<NewRun>, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn start_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewRun>,
) -> Result<Json<Accepted>, Problem> {
    let target = match (new.goal, new.task) {
        (Some(goal), None) => Some(Named::Goal(goal)),
        (None, Some(task)) => Some(Named::Task(task)),
        (None, None) => None,
        (Some(_), Some(_)) => {
            let words = "a run works on one goal or on one task";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "two_targets", words));
        }
    };
    let limits = [
        (Meter::Time, new.minutes.map(|minutes| minutes.saturating_mul(60_000_000))),
        (Meter::ModelCalls, new.model_calls),
        (Meter::ToolCalls, new.tool_calls),
        (Meter::Tokens, new.tokens),
        (Meter::Money, new.cost_micros),
    ];
    let budget: Vec<_> =
        limits.into_iter().filter_map(|(meter, limit)| Some((meter, limit?))).collect();
    if budget.iter().any(|(_, limit)| *limit == 0) {
        let words =
            "a run that may use nothing does nothing; leave a limit out, or say more than 0";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "zero_limit", words));
    }
    act(&app, &caller, &id, &headers, WorkAct::On { target, drafts: new.drafts, budget }).await
}

/// Ends every run of a session.
#[utoipa::path(delete, path = "/api/sessions/{id}/runs", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn stop_runs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::Off(None)).await
}

/// Ends a run.
#[utoipa::path(delete, path = "/api/sessions/{id}/runs/{number}", params(InPath, ByNumber, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn stop_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::Off(Some(number))).await
}

/// Lets a run go on that paused by itself.
#[utoipa::path(post, path = "/api/sessions/{id}/runs/{number}/resume", params(InPath, ByNumber, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn resume_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::Resume(Some(number))).await
}

/// Lets the run go on that waits.
#[utoipa::path(post, path = "/api/sessions/{id}/runs/resume", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn resume_runs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::Resume(None)).await
}

/// Adds a schedule.
#[utoipa::path(post, path = "/api/sessions/{id}/schedules", params(InPath, Once), request_body = NewScheduleDto, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn add_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewScheduleDto>,
) -> Result<Json<Accepted>, Problem> {
    let (when, goal, title) = (new.when.into(), new.goal, new.title);
    act(&app, &caller, &id, &headers, WorkAct::AddSchedule { when, goal, title }).await
}

/// Ends a schedule.
#[utoipa::path(delete, path = "/api/sessions/{id}/schedules/{number}", params(InPath, ByNumber, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn end_schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    act(&app, &caller, &id, &headers, WorkAct::EndSchedule(number)).await
}
