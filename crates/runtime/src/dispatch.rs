//! The way in: one command, decided under its session's lock.

use planwright_domain::{
    command::{Asked, SessionCommand},
    identity::SessionIdentity,
    next::{next, waiting},
    session::decide,
};

use crate::{
    failpoint,
    ports::{Answer, Append, Journal, JournalError},
};

/// Decides one command under the session's lock. The only caller of `decide`.
pub async fn dispatch(
    journal: &dyn Journal,
    identity: &SessionIdentity,
    asked: Asked<SessionCommand>,
) -> Result<Answer, JournalError> {
    failpoint::hit("dispatch.before_append");
    let (id, at) = (asked.id, asked.at);
    let answer = journal
        .append(
            identity,
            id,
            at,
            Box::new(move |session| {
                let events = decide(session, &asked)?;
                let after = session.fold(&events)?;
                Ok(Append { due: next(&after).due(), waiting: waiting(&after), events, after })
            }),
        )
        .await;
    failpoint::hit("dispatch.after_append");
    answer
}
