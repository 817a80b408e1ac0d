//! Changes what is remembered, as a person asks for it.

use planwright_domain::{
    actor::Person,
    command::PersonCommand,
    id::{CommandId, MemoryId},
    identity::SessionKey,
    memory::{Item, MemoryCommand},
    owner::OwnerCommand,
    refusal::Refusal,
    session::life::may_promote,
};
use uuid::Uuid;

use crate::{
    commands::{
        Commands,
        reply::{Reply, Spoken},
    },
    ports::journal::{Answer, JournalError},
};

impl Commands {
    pub(super) async fn promote_named(
        &self,
        spoken: &Spoken,
        id: &str,
    ) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        let Some(item) = self.queries.remembered(identity, id).await? else {
            return Ok(Reply::Refused(Refusal::NotThere { what: "memory".into() }));
        };
        let promoted = self.promote(&spoken.person, identity, item.id, &item.text).await?;
        Ok(match promoted {
            Ok(_) => {
                let version = self.queries.session(identity).await?.version;
                let words = format!("known everywhere now: {}", item.text);
                Reply::Accepted { session: spoken.session_name(), version, words }
            }
            Err(refusal) => Reply::Refused(refusal),
        })
    }

    pub(super) async fn forget_named(
        &self,
        spoken: &Spoken,
        id: &str,
    ) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        let Some(item) = self.queries.remembered(identity, id).await? else {
            return Ok(Reply::Refused(Refusal::NotThere { what: "memory".into() }));
        };
        Ok(match self.forget(&spoken.person, identity, spoken.id, &item).await? {
            Answer::Accepted { version, .. } => {
                let words = format!("forgotten: {}", item.text);
                Reply::Accepted { session: spoken.session_name(), version, words }
            }
            Answer::Refused(refusal) => Reply::Refused(refusal),
        })
    }

    /// Makes something known everywhere. The text is what the person read.
    pub async fn promote(
        &self,
        person: &Person,
        identity: &SessionKey,
        id: MemoryId,
        text: &str,
    ) -> Result<Result<MemoryId, Refusal>, JournalError> {
        let session = self.queries.session(identity).await?;
        let (now, policy) = (self.clock.now(), self.dispatcher.policy());
        if let Err(refusal) = may_promote(&session, person, now, policy) {
            return Ok(Err(refusal));
        }
        let Some(item) = self.queries.remembered_item(&session, id).await? else {
            return Ok(Err(Refusal::NotThere { what: "memory".into() }));
        };
        let global = MemoryId(Uuid::new_v5(&id.0, b"global"));
        let (item, by) = (Box::new(item), person.id.clone());
        let command = OwnerCommand::Promote { item, text: text.into(), id: global, by };
        let promoted = self.own(person.owner, command).await?;
        if promoted.is_ok() {
            tracing::info!(session_identity = %identity, event = "memory_promoted");
        }
        Ok(promoted.map(|_| global))
    }

    /// Forgets something of a session, or something that is known everywhere.
    pub async fn forget(
        &self,
        person: &Person,
        identity: &SessionKey,
        command: CommandId,
        item: &Item,
    ) -> Result<Answer, JournalError> {
        if item.scope.session().is_none() {
            let forgotten = self.own(person.owner, OwnerCommand::Forget { id: item.id }).await?;
            let version = self.queries.session(identity).await?.version;
            return Ok(match forgotten {
                Ok(_) => Answer::Accepted { before: version, version },
                Err(refusal) => Answer::Refused(refusal),
            });
        }
        let forget = PersonCommand::Memory(MemoryCommand::Forget { id: item.id });
        self.dispatch(identity, command, person, forget).await
    }
}
