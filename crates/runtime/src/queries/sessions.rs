//! Sessions, their events and outputs, and which of them a person may see.

use std::sync::Arc;

use planwright_domain::{
    actor::Person,
    digest::Digest,
    id::{OwnerId, Seq},
    identity::SessionKey,
    session::{Session, life::may_see},
};

use crate::{
    engine::output::whole_output,
    ports::{
        journal::{JournalError, Recorded, SessionPage, SessionQuery, SessionRow},
        signal::{Hints, Subscription},
    },
    queries::{Queries, activity::seen_by},
};

impl Queries {
    /// The session as it stands.
    pub async fn session(&self, identity: &SessionKey) -> Result<Arc<Session>, JournalError> {
        self.journal.session(identity).await
    }

    /// The events of a session after this one, oldest first.
    pub async fn events(
        &self,
        identity: &SessionKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Recorded>, JournalError> {
        self.journal.events(identity, after, limit).await
    }

    /// An output that was kept, whole.
    pub async fn output(
        &self,
        identity: &SessionKey,
        digest: Digest,
    ) -> Result<Option<String>, JournalError> {
        whole_output(&*self.journal, identity, digest).await
    }

    /// Listens to one session.
    #[must_use]
    pub fn subscribe(&self, identity: &SessionKey) -> Box<dyn Subscription> {
        self.broadcast.subscribe(identity)
    }

    /// Listens to what changes in the lists that this person sees.
    #[must_use]
    pub fn hints(&self, person: &Person) -> Box<dyn Hints> {
        self.broadcast.hints(seen_by(person))
    }

    /// The sessions of this person, newest first.
    pub async fn sessions(
        &self,
        owner: OwnerId,
        limit: usize,
    ) -> Result<Vec<SessionRow>, JournalError> {
        self.journal.sessions(Some(owner), limit).await
    }

    /// A page of sessions, newest first.
    pub async fn session_page(&self, query: &SessionQuery) -> Result<SessionPage, JournalError> {
        self.journal.session_page(query).await
    }

    /// Whether this person, who asks for this session, may see it; a refusal is counted.
    pub async fn sees(&self, person: &Person, identity: &SessionKey) -> Result<bool, JournalError> {
        let sees = may_see(&*self.session(identity).await?, person);
        if !sees {
            metrics::counter!("routing.session_mismatch.blocked.count").increment(1);
        }
        Ok(sees)
    }
}
