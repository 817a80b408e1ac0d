//! Plans: read, reviewed, decided. A decision names what was read by `If-Match`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use planwright_domain::{
    command::{Approving, Decision, Ending, Permit, PersonCommand, Start, Verdict},
    effect::Declared,
    id::PlanId,
    plan::{
        block::BlockId,
        review::{Comment, Said},
    },
};

pub mod asks;

use asks::{
    Between, CommentChange, CommentDto, InSession, NewApproval, NewChanges, NewContent, NewPermit,
    NewPlan, NewRejection, NewReply, NewSeen, NewSkip, NewVerdict, OfSession, PermitName, PlanOn,
    PlanState,
};

use crate::http::{
    app::App,
    auth::Caller,
    body::{Body, if_match},
    dto::{
        Accepted, CommentRowDto, DiffDto, PlanDto, PlanRowDto, ReceiptDto, RevisionDto, SessionDto,
    },
    params::{AsRead, InPath, Numbered, Once},
    problem::bad_query,
    problem::{Problem, Problems},
    sessions::access::{ask, seen},
};

const NOTHING: &str = "there is no such plan or revision in this session";

/// The plan of a session, or the one that ended last.
#[utoipa::path(get, path = "/api/sessions/{id}/plan", params(InPath), responses((status = 200, body = PlanDto), Problems))]
pub(crate) async fn get_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PlanDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let view = app.queries.status(&identity).await?;
    let status = SessionDto::of(caller.name_of(&identity), view);
    status
        .plan
        .map(Json)
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no_such_plan", NOTHING))
}

/// Begins plan work.
#[utoipa::path(post, path = "/api/sessions/{id}/plan", params(InPath, Once), request_body = Option<NewPlan>, responses((status = 201, body = Accepted), Problems))]
pub(crate) async fn start_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewPlan>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let command = app.commands.plan_on(new.strategy.into());
    Ok((StatusCode::CREATED, ask(&app, &caller, &id, &headers, command).await?))
}

/// Ends plan work; the plan is cancelled.
#[utoipa::path(delete, path = "/api/sessions/{id}/plan", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn end_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::EndPlan(Ending::Off)).await
}

/// Ends plan work; an executing plan is complete by the person's word.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/done", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn finish_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::EndPlan(Ending::Done)).await
}

/// Pauses the execution.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/stop", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn pause_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::PausePlan).await
}

/// Starts a held plan, or goes on with a paused or failed one.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/resume", params(InPath, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn resume_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    ask(&app, &caller, &id, &headers, PersonCommand::Decide(Decision::Resume)).await
}

/// Decides on the call that `If-Match` names. 412: it does not wait, or not any more.
#[utoipa::path(post, path = "/api/sessions/{id}/permission", params(InPath, AsRead, Once), request_body = NewPermit, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn permit_call(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewPermit>,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    let permit = match new.permit {
        PermitName::Once => Permit::Once,
        PermitName::UntilPlanEnds => Permit::UntilPlanEnds,
        PermitName::Deny => Permit::Deny,
        PermitName::Replan => Permit::Replan { text: new.text },
    };
    let decision = Decision::Permit { digest, permit };
    ask(&app, &caller, &id, &headers, PersonCommand::Decide(decision)).await
}

/// Leaves a step out; the execution goes on when it is resumed.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/skip", params(InPath, Once), request_body = NewSkip, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn skip_step(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewSkip>,
) -> Result<Json<Accepted>, Problem> {
    let decision = Decision::SkipStep { step: new.step };
    ask(&app, &caller, &id, &headers, PersonCommand::Decide(decision)).await
}

/// Says what became of a call in doubt.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/settle", params(InPath, Once), request_body = NewVerdict, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn settle_doubt(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewVerdict>,
) -> Result<Json<Accepted>, Problem> {
    let verdict = if new.happened { Verdict::Happened } else { Verdict::DidNotHappen };
    let decision = Decision::SettleDoubt { call: new.call.into(), verdict };
    ask(&app, &caller, &id, &headers, PersonCommand::Decide(decision)).await
}

/// The plans of a session, oldest first.
#[utoipa::path(get, path = "/api/sessions/{id}/plans", params(InPath), responses((status = 200, body = [PlanRowDto]), Problems))]
pub(crate) async fn list_plans(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<PlanRowDto>>, Problem> {
    let rows = app.queries.plans(&seen(&app, &caller, &id).await?).await?;
    Ok(Json(rows.into_iter().map(PlanRowDto::from).collect()))
}

/// A revision of the active plan, in full: by number, or `current`.
#[utoipa::path(get, path = "/api/sessions/{id}/plan/revisions/{number}", params(InPath, ("number" = String, Path, description = "The number of a revision, or current")), responses((status = 200, body = RevisionDto), Problems))]
pub(crate) async fn get_revision(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, number)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let missing = || Problem::new(StatusCode::NOT_FOUND, "no_such_revision", NOTHING);
    let number = match number.as_str() {
        "current" => None,
        number => Some(number.parse().map_err(|_| missing())?),
    };
    let view = app.queries.revision_for(&identity, &caller.person, number).await?;
    let view = view.ok_or_else(missing)?;
    let tag =
        HeaderValue::from_str(&format!("\"{}\"", view.revision.digest)).map_err(|_| missing())?;
    let mut response = Json(RevisionDto::of(caller.name_of(&identity), view)).into_response();
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// What came of the work of a session's plan, or of the one that ended last: files with what changed in them, cost and time.
#[utoipa::path(get, path = "/api/sessions/{id}/plan/receipt", params(InPath), responses((status = 200, body = ReceiptDto), Problems))]
pub(crate) async fn get_receipt(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ReceiptDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let view = app.queries.receipt(&identity).await?;
    view.map(|view| Json(view.into()))
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no_such_plan", NOTHING))
}

/// What changed between two revisions of the active plan; without numbers, what changed since the caller last saw or decided on it.
#[utoipa::path(get, path = "/api/sessions/{id}/plan/diff", params(InPath, Between), responses((status = 200, body = DiffDto), Problems))]
pub(crate) async fn get_diff(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<Between>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<DiffDto>, Problem> {
    let identity = seen(&app, &caller, &id).await?;
    let Query(between) = query.map_err(bad_query)?;
    let numbers = match (between.from, between.to) {
        (Some(from), Some(to)) => Some((from, to)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let words = "name both from and to, or neither: one number says nothing";
            return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", words));
        }
    };
    let view = app.queries.diff(&identity, &caller.person.id, numbers).await?;
    view.map(|view| Json(DiffDto::of(caller.name_of(&identity), view)))
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no_such_revision", NOTHING))
}

/// Records which blocks of the current revision the caller has seen. With the last of them it was shown to them in full.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/seen", params(InPath, AsRead, Once), request_body = NewSeen, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn mark_seen(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewSeen>,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    let blocks = new.blocks.iter().map(|text| BlockId::parse(text).ok_or(text));
    let blocks = blocks.collect::<Result<_, _>>().map_err(|text| {
        let words = format!("{text:?} is no id of a block; an id has 32 hexadecimal digits");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_such_block", words)
    })?;
    ask(&app, &caller, &id, &headers, PersonCommand::MarkSeen { digest, blocks }).await
}

/// Records that the current revision was shown to the caller in full, by a surface that writes it out whole; a page in a
/// browser says which blocks were seen. Only what was shown can be approved.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/shown", params(InPath, AsRead, Once), responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn record_shown(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    ask(&app, &caller, &id, &headers, PersonCommand::RecordShown { digest }).await
}

/// Approves exactly the revision that `If-Match` names. 412: it was replaced. 409: it was decided.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/approve", params(InPath, AsRead, Once), request_body = Option<NewApproval>, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewApproval>,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    let start = if new.hold { Start::Hold } else { Start::AtOnce };
    let (notes, on_failure) = (new.notes, new.on_failure.into());
    let grant = new.grant.map(Declared::from);
    let plain = Approving::of(digest, app.queries.terms());
    let decision = Decision::Approve(Approving { notes, start, on_failure, grant, ..plain });
    ask(&app, &caller, &id, &headers, PersonCommand::Decide(decision)).await
}

/// The comments on the plan, oldest first, and what became of each.
#[utoipa::path(get, path = "/api/sessions/{id}/plan/comments", params(InPath), responses((status = 200, body = [CommentRowDto]), Problems))]
pub(crate) async fn list_comments(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<CommentRowDto>>, Problem> {
    let rows = app.queries.comments(&seen(&app, &caller, &id).await?).await?;
    Ok(Json(rows.into_iter().map(CommentRowDto::from).collect()))
}

/// Posts a comment on what `If-Match` names: everybody sees it, and the next request for changes takes it along. 412: it
/// was replaced.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/comments", params(InPath, AsRead, Once), request_body = CommentDto, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn post_comment(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<CommentDto>,
) -> Result<Json<Accepted>, Problem> {
    let (base, said) = (Some(if_match(&headers)?), Said::Comment { comment: new.into() });
    ask(&app, &caller, &id, &headers, PersonCommand::Discuss { plan: None, base, said }).await
}

/// Replies in the thread of a comment.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/comments/{number}/replies", params(InPath, ("number" = u32, Path, description = "The number of its first comment."), Once), request_body = NewReply, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn reply_to_comment(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
    Body(new): Body<NewReply>,
) -> Result<Json<Accepted>, Problem> {
    let comment = Comment { reply_to: Some(number), ..Comment::on_the_whole(&new.text) };
    let (plan, said) = (new.plan_id.map(PlanId), Said::Comment { comment });
    ask(&app, &caller, &id, &headers, PersonCommand::Discuss { plan, base: None, said }).await
}

/// Changes the words of a comment that was not asked for yet, or settles its thread. 409: it is not the caller's, or it was
/// asked for.
#[utoipa::path(patch, path = "/api/sessions/{id}/plan/comments/{number}", params(InPath, ("number" = u32, Path, description = "Its number."), Once), request_body = CommentChange, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn change_comment(
    State(app): State<Arc<App>>,
    caller: Caller,
    Numbered { id, number }: Numbered,
    headers: HeaderMap,
    Body(change): Body<CommentChange>,
) -> Result<Json<Accepted>, Problem> {
    let said = match (change.text, change.resolved) {
        (Some(text), None) => Said::Edit { number, text },
        (None, Some(true)) => Said::Resolve { number },
        (None, Some(false)) => Said::Reopen { number },
        (Some(_), Some(_)) | (None, None) => {
            let words = "say either other words (text) or whether it is settled (resolved)";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "one_change", words));
        }
    };
    let plan = change.plan_id.map(PlanId);
    ask(&app, &caller, &id, &headers, PersonCommand::Discuss { plan, base: None, said }).await
}

/// Writes the document anew: a revision by the caller. `If-Match` names what was edited. 412: it was replaced.
#[utoipa::path(put, path = "/api/sessions/{id}/plan/content", params(InPath, AsRead, Once), request_body = NewContent, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn edit_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewContent>,
) -> Result<Json<Accepted>, Problem> {
    let base = Some(if_match(&headers)?);
    let NewContent { markdown, suggested } = new;
    let fresh = app.commands.new_id().into();
    let edit = PersonCommand::EditPlan { base, markdown, fresh, suggested };
    ask(&app, &caller, &id, &headers, edit).await
}

/// Asks for a newer revision. 412: what was read was replaced.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/changes", params(InPath, AsRead, Once), request_body = NewChanges, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn request_changes(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewChanges>,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    let comments = new.comments.into_iter().map(Comment::from).collect();
    ask(
        &app,
        &caller,
        &id,
        &headers,
        PersonCommand::Decide(Decision::RequestChanges { digest, comments }),
    )
    .await
}

/// Ends the plan unexecuted. 412: what was read was replaced.
#[utoipa::path(post, path = "/api/sessions/{id}/plan/reject", params(InPath, AsRead, Once), request_body = Option<NewRejection>, responses((status = 200, body = Accepted), Problems))]
pub(crate) async fn reject(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewRejection>,
) -> Result<Json<Accepted>, Problem> {
    let digest = if_match(&headers)?;
    ask(
        &app,
        &caller,
        &id,
        &headers,
        PersonCommand::Decide(Decision::Reject { digest, why: new.why }),
    )
    .await
}

/// Plan mode of a session.
#[utoipa::path(get, path = "/api/plans", params(OfSession), responses((status = 200, body = PlanState), Problems))]
pub(crate) async fn plan_state(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<OfSession>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<PlanState>, Problem> {
    let Query(OfSession { session_id }) = query.map_err(bad_query)?;
    state(&app, &caller, &session_id).await
}

/// Switches plan mode on in a session.
#[utoipa::path(post, path = "/api/plans/enable", params(Once), request_body = PlanOn, responses((status = 200, body = PlanState), Problems))]
pub(crate) async fn enable_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<PlanOn>,
) -> Result<Json<PlanState>, Problem> {
    let command = app.commands.plan_on(body.strategy.into());
    let _ = ask(&app, &caller, &body.session_id, &headers, command).await?;
    state(&app, &caller, &body.session_id).await
}

/// Switches plan mode off in a session.
#[utoipa::path(post, path = "/api/plans/disable", params(Once), request_body = InSession, responses((status = 200, body = PlanState), Problems))]
pub(crate) async fn disable_plan(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<InSession>,
) -> Result<Json<PlanState>, Problem> {
    let _ =
        ask(&app, &caller, &body.session_id, &headers, PersonCommand::EndPlan(Ending::Off)).await?;
    state(&app, &caller, &body.session_id).await
}

async fn state(app: &App, caller: &Caller, id: &str) -> Result<Json<PlanState>, Problem> {
    let identity = seen(app, caller, id).await?;
    let view = app.queries.status(&identity).await?;
    let status = SessionDto::of(caller.name_of(&identity), view);
    let plan = status.plan.filter(|_| status.active);
    Ok(Json(PlanState {
        session_id: status.session_id,
        enabled: status.active,
        active_plan_id: plan.as_ref().map(|plan| plan.plan_id),
        plan,
    }))
}
