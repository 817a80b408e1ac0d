//! Chats, and the conversation that each of them talks to.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use planwright_domain::{identity::ConversationKey, owner::OwnerCommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::{
    app::App,
    auth::Caller,
    body::Body,
    params::{InChat, Once},
    problem::{Problem, Problems},
    sessions::{NewLine, access::handle_line},
};

/// A chat, and the conversation that is active in it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    /// The key of the conversation.
    #[schema(min_length = 1, max_length = 256)]
    pub key: Option<String>,
}

/// The conversation that this chat of the caller talks to. One that is gone is repaired first.
#[utoipa::path(get, path = "/api/pointers/{chat}", params(InChat), responses((status = 200, body = Pointer), Problems))]
pub(crate) async fn get_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
) -> Result<Json<Pointer>, Problem> {
    let transport = caller.chat(&chat)?;
    let identity = app.commands.resolve(caller.person.owner, &transport).await?;
    Ok(Json(Pointer { key: Some(identity.identity.key.as_str().to_owned()) }))
}

/// Lets this chat of the caller talk to another conversation of theirs, or to a new one.
#[utoipa::path(put, path = "/api/pointers/{chat}", params(InChat), request_body = Pointer, responses((status = 204), Problems))]
pub(crate) async fn move_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
    Body(pointer): Body<Pointer>,
) -> Result<StatusCode, Problem> {
    let refused = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", words);
    let key = pointer.key.ok_or_else(|| refused("name the key of a conversation".into()))?;
    let key = ConversationKey::legacy(&key).map_err(|error| refused(error.to_string()))?;
    let transport = caller.chat(&chat)?;
    app.commands.bind(&caller.person, &transport, &key).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Does what a line says, in the conversation that this chat talks to now. The reply names it.
#[utoipa::path(post, path = "/api/chats/{chat}/lines", params(InChat, Once), request_body = NewLine, responses((status = 200, body = Object, description = "What the line came to, with the session that it went to; a refusal is one of them"), Problems))]
pub(crate) async fn say_in_chat(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
    headers: HeaderMap,
    Body(line): Body<NewLine>,
) -> Result<Json<Value>, Problem> {
    let transport = caller.chat(&chat)?;
    let identity = app.commands.resolve(caller.person.owner, &transport).await?;
    let reply = handle_line(&app, &caller, &headers, identity.clone(), transport, line.line);
    let reply = reply.await?;
    Ok(Json(serde_json::json!({"sessionId": caller.name_of(&identity), "reply": reply})))
}

/// The chat talks to nothing any more: only this route goes, runs go on.
#[utoipa::path(delete, path = "/api/pointers/{chat}", params(InChat), responses((status = 204), Problems))]
pub(crate) async fn drop_pointer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(chat): Path<String>,
) -> Result<StatusCode, Problem> {
    let transport = caller.chat(&chat)?;
    let unbind = OwnerCommand::Unbind { transport };
    app.commands.own(caller.person.owner, unbind).await??;
    Ok(StatusCode::NO_CONTENT)
}
