//! Raises a limit of an owner for a day, as a person asks for it.

use planwright_domain::{
    actor::Person,
    command::{SessionCommand, SystemCommand},
    identity::SessionKey,
    next::Waiting,
    owner::{self, Owner, OwnerCommand},
    quota::{Day, Limit, QuotaUse},
    refusal::Refusal,
    session::may_raise,
};

use crate::{
    commands::{
        Commands,
        dispatch::Origin,
        reply::{Reply, Spoken},
    },
    ports::journal::{JournalError, SessionPage, SessionQuery},
};

/// How many waiting sessions are looked at in one read.
const PAGE: usize = 256;

impl Commands {
    pub(super) async fn raise_spoken(&self, spoken: &Spoken) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        Ok(match self.raise_limit(&spoken.person, identity).await? {
            Ok(stands) => {
                let version = self.queries.session(identity).await?.version;
                let words = format!("raised for today: {}", stands.in_words(self.clock.now()));
                Reply::Accepted { session: spoken.session_name(), version, words }
            }
            Err(refusal) => Reply::Refused(refusal),
        })
    }

    /// Lets the owner of a session use as much again today of what is used up, and their turns that wait for it go on. How they
    /// stand then, or why not.
    pub async fn raise_limit(
        &self,
        person: &Person,
        identity: &SessionKey,
    ) -> Result<Result<QuotaUse, Refusal>, JournalError> {
        if !self.queries.sees(person, identity).await? {
            return Ok(Err(Refusal::NotYours { identity: identity.to_string() }));
        }
        let (at, policy, quotas) =
            (self.clock.now(), self.dispatcher.policy(), self.dispatcher.quotas());
        if let Err(refusal) = may_raise(person, at, policy) {
            return Ok(Err(refusal));
        }
        let (_, stands) = quotas.now(identity.owner).await?;
        let Some(read) = stands.reached(&[Limit::Money, Limit::Tokens], at) else {
            // The limit may be another one since: what waits for it goes on.
            let resumed = self.resume_turns(identity).await?;
            return Ok(if resumed > 0 { Ok(stands) } else { Err(Refusal::NothingToRaise) });
        };
        let (quota, day) = (quotas.usual(identity.owner).await?, Day::of(at));
        let (limit, who) = (read.limit.name(), person.id.0.clone());
        let command = OwnerCommand::RaiseLimit { read, quota, day, by: person.id.clone() };
        let decide = move |owner: &Owner| owner::decide(owner, &command);
        if let Err(refusal) =
            self.journal.append_owner(identity.owner, at, Box::new(decide)).await?
        {
            return Ok(Err(refusal));
        }
        tracing::info!(owner = %identity.owner, limit, who, event = "limit_raised");
        self.resume_turns(identity).await?;
        Ok(Ok(quotas.now(identity.owner).await?.1))
    }

    /// The turns of the session's owner that wait for a limit look again; how many. What is missed here looks by itself when the limit no
    /// longer holds.
    async fn resume_turns(&self, identity: &SessionKey) -> Result<usize, JournalError> {
        let (mut after, mut all) = (None, 0);
        loop {
            let (owner, text) = (Some(identity.owner), String::new());
            let query = SessionQuery { owner, waiting: true, text, after, limit: PAGE };
            let SessionPage { rows, next, .. } = self.journal.session_page(&query).await?;
            let waits = rows.iter().filter(|row| row.waiting == Some(Waiting::Limit));
            for row in waits {
                let (id, command) = (self.ids.command(), SystemCommand::ResumeTurn);
                let (of, command) = (&row.session, SessionCommand::System(command));
                let answer =
                    self.dispatcher.dispatch_detached(Origin::default(), of, id, command).await?;
                all += usize::from(!answer.is_refused());
            }
            if next.is_none() {
                return Ok(all);
            }
            after = next;
        }
    }
}
