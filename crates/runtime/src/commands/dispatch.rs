//! Decides one command under its session's lock: the only caller of `decide`.

use std::sync::{Arc, Mutex, PoisonError};

use planwright_domain::{
    command::{Asked, SessionCommand},
    id::CommandId,
    identity::SessionKey,
    next::{Due, next, waiting},
    refusal::Refusal,
    session::decide,
    time::Time,
};

use crate::{
    failpoint,
    metrics::Happened,
    ports::journal::{Answer, Append, Journal, JournalError, Undecided},
};

/// Decides one command under the session's lock.
pub async fn dispatch(
    journal: &dyn Journal,
    identity: &SessionKey,
    asked: Asked<SessionCommand>,
) -> Result<Answer, JournalError> {
    Ok(decided(journal, identity, asked).await?.answer)
}

/// A command that was decided.
pub(crate) struct Decided {
    /// The answer.
    pub(crate) answer: Answer,
    /// What is due since, and what is to be counted; nothing if the answer was there before.
    pub(crate) since: Option<(Due, Happened)>,
}

/// The same, with what is due since. The only caller of `decide`.
pub(crate) async fn decided(
    journal: &dyn Journal,
    identity: &SessionKey,
    asked: Asked<SessionCommand>,
) -> Result<Decided, JournalError> {
    failpoint::hit("dispatch.before_append");
    let (id, at) = (asked.id, asked.at);
    let last = Arc::new(Mutex::new(None));
    let told = last.clone();
    let decide = move |session: &_| {
        let events = decide(session, &asked)?;
        let after = session.fold(&events)?;
        let due = next(&after).due();
        *told.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((due, Happened::of(session, &events)));
        Ok(Append { due, waiting: waiting(&after), events, after })
    };
    let answer = journal.append(identity, id, at, Box::new(decide)).await;
    failpoint::hit("dispatch.after_append");
    let since = last.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(Decided { answer: answer?, since })
}

/// The answer to a command that could not even be formed: the one that its id was given before, else this
/// refusal.
pub(crate) async fn refused(
    journal: &dyn Journal,
    identity: &SessionKey,
    id: CommandId,
    at: Time,
    refusal: Refusal,
) -> Result<Answer, JournalError> {
    let refuse = move |_: &_| Err(Undecided::Refused(refusal.clone()));
    journal.append(identity, id, at, Box::new(refuse)).await
}
