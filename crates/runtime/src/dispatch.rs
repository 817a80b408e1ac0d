//! The way in: one command, decided under its session's lock.

use std::sync::{Arc, Mutex, PoisonError};

use planwright_domain::{
    command::{Asked, SessionCommand},
    identity::SessionIdentity,
    next::{Due, next, waiting},
    session::decide,
};

use crate::{
    failpoint,
    ports::{Answer, Append, Journal, JournalError},
};

/// Decides one command under the session's lock.
pub async fn dispatch(
    journal: &dyn Journal,
    identity: &SessionIdentity,
    asked: Asked<SessionCommand>,
) -> Result<Answer, JournalError> {
    Ok(decided(journal, identity, asked).await?.0)
}

/// The same, and what is due since; nothing if the answer was there before. The only caller of
/// `decide`.
pub(crate) async fn decided(
    journal: &dyn Journal,
    identity: &SessionIdentity,
    asked: Asked<SessionCommand>,
) -> Result<(Answer, Option<Due>), JournalError> {
    failpoint::hit("dispatch.before_append");
    let (id, at) = (asked.id, asked.at);
    let last = Arc::new(Mutex::new(None));
    let told = last.clone();
    let decide = move |session: &_| {
        let events = decide(session, &asked)?;
        let after = session.fold(&events)?;
        let due = next(&after).due();
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
        Ok(Append { due, waiting: waiting(&after), events, after })
    };
    let answer = journal.append(identity, id, at, Box::new(decide)).await;
    failpoint::hit("dispatch.after_append");
    let due = *last.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((answer?, due))
}
