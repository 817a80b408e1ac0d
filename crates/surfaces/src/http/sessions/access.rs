//! What handlers of several subjects do with a session that a caller names: look whether they may see it, and ask for
//! something in it.

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
};
use planwright_domain::{
    command::PersonCommand,
    id::CommandId,
    identity::{ChannelType, SessionKey, Transport},
    refusal::Refusal,
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::journal::Answer,
};
use serde_json::Value;

use crate::http::{
    app::App,
    auth::{Caller, decides},
    dto::Accepted,
    problem::Problem,
};

/// Does what a line says in this session, from this chat.
pub(crate) async fn handle_line(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    identity: SessionKey,
    transport: Transport,
    line: String,
) -> Result<Value, Problem> {
    let (id, person) = (caller.command_id(app, headers)?, caller.person.clone());
    let spoken = Spoken { identity, transport: Some(transport), person, id, line };
    let reply = app.commands.handle_line(spoken).await?;
    // A terminal says a refusal in its own way; a page shows it like every other.
    if let (Reply::Refused(refusal), ChannelType::Web) = (&reply, caller.channel) {
        return Err(refusal.clone().into());
    }
    Ok(serde_json::to_value(reply).unwrap_or_default())
}

/// The session that the caller names, if they may see it.
pub(crate) async fn seen(app: &App, caller: &Caller, named: &str) -> Result<SessionKey, Problem> {
    let identity = caller.session(named)?;
    if !app.queries.sees(&caller.person, &identity).await? {
        return Err(no_such_session(named));
    }
    Ok(identity)
}

fn no_such_session(named: &str) -> Problem {
    let words = format!("you have no session {named}; /api/sessions lists yours");
    Problem::new(StatusCode::NOT_FOUND, "no_such_session", words)
}

/// Asks for something to happen in a session, by a person.
pub(crate) async fn ask(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    command: PersonCommand,
) -> Result<Json<Accepted>, Problem> {
    let identity = caller.session(id)?;
    let command_id: CommandId = caller.command_id(app, headers)?;
    let answer = app.commands.dispatch(&identity, command_id, &caller.person, command).await?;
    said(caller, id, &identity, answer)
}

/// What an answer is to a caller who named the session so.
pub(crate) fn said(
    caller: &Caller,
    id: &str,
    identity: &SessionKey,
    answer: Answer,
) -> Result<Json<Accepted>, Problem> {
    match answer {
        Answer::Accepted { version, .. } => {
            Ok(Json(Accepted { session_id: caller.name_of(identity), version: version.0 }))
        }
        // Who may not see it is not told that it is there. The decision has looked already.
        Answer::Refused(Refusal::NotYours { .. }) if !decides(caller.person.standing) => {
            Err(no_such_session(id))
        }
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}
