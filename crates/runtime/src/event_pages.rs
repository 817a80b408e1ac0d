//! Reading a session's events page by page: the one loop that does.

use std::ops::ControlFlow;

use planwright_domain::{id::Seq, identity::SessionKey};

use crate::ports::journal::{Journal, JournalError, Recorded, Since};

/// How many events are read at once.
const PAGE: usize = 512;

/// Visits the events of a session after this place, oldest first, until there are no more or the visitor breaks off.
pub(crate) async fn for_each_event<E: From<JournalError>>(
    journal: &dyn Journal,
    session: &SessionKey,
    mut after: Seq,
    mut visit: impl FnMut(Recorded) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    loop {
        let page = journal.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for recorded in page {
            if visit(recorded)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Visits the events of a session that were recorded since a time, of certain kinds; oldest first.
pub(crate) async fn for_each_event_since(
    journal: &dyn Journal,
    session: &SessionKey,
    since: Since,
    mut visit: impl FnMut(Recorded),
) -> Result<(), JournalError> {
    let mut after = Seq(0);
    loop {
        let page = journal.events_since(session, since, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.into_iter().for_each(&mut visit);
    }
}
