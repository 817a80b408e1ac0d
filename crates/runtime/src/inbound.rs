//! The way in for every surface: a line that a person typed becomes a command or a view.

use planwright_domain::{
    actor::Person,
    chat::{Act, ChatCommand, Line, Look, parse},
    command::{Approving, Decision, PersonCommand, SessionCommand, Start},
    digest::Digest,
    id::{CommandId, Seq},
    identity::SessionIdentity,
    plan::{Comment, Strategy, refusal::PlanRefusal},
    refusal::Refusal,
    session::Session,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    ports::{Answer, JournalError},
    runtime::Runtime,
    view::{DiffView, PlanRow, RevisionView, StatusView},
};

/// A line, by whom, where, and under which id: the same id twice has one effect.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// In this session.
    pub identity: SessionIdentity,
    /// By this person.
    pub person: Person,
    /// Under this id.
    pub id: CommandId,
    /// What they typed.
    pub line: String,
}

/// What a line comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It happened, and is durable.
    Accepted {
        /// The version of the session after it.
        version: Seq,
        /// In words.
        words: String,
    },
    /// It did not, and why.
    Refused(Refusal),
    /// It could not be read.
    Unreadable(String),
    /// Where the session stands.
    Status(Box<StatusView>),
    /// A revision. The surface records that it was shown, once it was, in full.
    Revision(Box<RevisionView>),
    /// What changed.
    Diff(DiffView),
    /// The plans of the session.
    Plans(Vec<PlanRow>),
    /// There is nothing of the kind.
    Nothing(String),
    /// The commands there are.
    Help,
}

impl Runtime {
    /// Does what a line says.
    pub async fn hear(&self, spoken: Spoken) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        let command = match parse(&spoken.line) {
            Err(refusal) => return Ok(Reply::Unreadable(refusal.to_string())),
            Ok(Line::Message(text)) => PersonCommand::Say { text },
            Ok(Line::Command(ChatCommand::Help)) => return Ok(Reply::Help),
            Ok(Line::Command(ChatCommand::Look(look))) => return self.look(identity, look).await,
            Ok(Line::Command(ChatCommand::Act(act))) => {
                match self.command(identity, &spoken.person, act).await? {
                    Ok(command) => command,
                    Err(refusal) => return Ok(Reply::Refused(refusal)),
                }
            }
        };
        let words = acknowledgement(&command);
        let command = SessionCommand::Person(spoken.person.clone(), command);
        Ok(match self.dispatch(identity, spoken.id, command).await? {
            Answer::Accepted { version, .. } => Reply::Accepted { version, words: words.into() },
            Answer::Refused(refusal) => Reply::Refused(refusal),
        })
    }

    async fn look(&self, identity: &SessionIdentity, look: Look) -> Result<Reply, JournalError> {
        let nothing = |words: &str| Reply::Nothing(words.into());
        Ok(match look {
            Look::Status => Reply::Status(Box::new(self.status(identity).await?)),
            Look::List => Reply::Plans(self.plans(identity).await?),
            Look::Show(number) => match self.revision(identity, number).await? {
                Some(view) => Reply::Revision(Box::new(view)),
                None => nothing("there is no such revision; /plan list shows what there is"),
            },
            Look::Diff(numbers) => match self.diff(identity, numbers).await? {
                Some(view) => Reply::Diff(view),
                None => nothing(
                    "there are no two such revisions to compare; /plan list shows what there is",
                ),
            },
        })
    }

    /// The command that begins plan work, with what the operator set.
    #[must_use]
    pub fn plan_on(&self, strategy: Strategy) -> PersonCommand {
        let (plan, reads) = (Uuid::now_v7().into(), self.settings.collect_reads);
        PersonCommand::StartPlan { plan, strategy, reads }
    }

    /// A surface has shown a revision in full.
    pub async fn shown(
        &self,
        identity: &SessionIdentity,
        person: &Person,
        digest: Digest,
    ) -> Result<Answer, JournalError> {
        let command = SessionCommand::Person(person.clone(), PersonCommand::RecordShown { digest });
        self.dispatch(identity, Uuid::now_v7().into(), command).await
    }

    /// The command behind the words, or why it cannot be formed.
    async fn command(
        &self,
        identity: &SessionIdentity,
        person: &Person,
        act: Act,
    ) -> Result<Result<PersonCommand, Refusal>, JournalError> {
        let session = self.session(identity).await?;
        let decide = |decision| Ok(Ok(PersonCommand::Decide(decision)));
        match act {
            Act::PlanOn(strategy) => Ok(Ok(self.plan_on(strategy))),
            Act::PlanEnd(ending) => Ok(Ok(PersonCommand::EndPlan(ending))),
            Act::Approve { named, start, on_failure } => {
                let digest = match self.named(identity, &session, person, named.as_deref()).await? {
                    Ok(digest) => digest,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let plain = Approving::of(digest, self.terms());
                decide(Decision::Approve(Approving { start, on_failure, ..plain }))
            }
            Act::Changes(text) => match seen(&session, person) {
                Ok(digest) => {
                    decide(Decision::RequestChanges { digest, comments: vec![comment(&text)] })
                }
                Err(refusal) => Ok(Err(refusal)),
            },
            Act::Reject(why) => match seen(&session, person) {
                Ok(digest) => decide(Decision::Reject { digest, why }),
                Err(refusal) => Ok(Err(refusal)),
            },
            Act::Resume => decide(Decision::Resume),
            Act::Skip(step) => decide(Decision::SkipStep { step }),
            Act::Settle { call, verdict } => {
                let mut found =
                    session.doubts.keys().filter(|id| id.to_string().starts_with(&call));
                match (found.next(), found.next()) {
                    (Some(id), None) => decide(Decision::SettleDoubt { call: *id, verdict }),
                    _ => Ok(Err(Refusal::NoSuchDoubt { call })),
                }
            }
            Act::PlanStop => Ok(Ok(PersonCommand::PausePlan)),
            Act::Stop => Ok(Ok(PersonCommand::Stop)),
            Act::Reset => Ok(Ok(PersonCommand::Reset)),
        }
    }

    /// The digest that an approval names: a revision by number, else what was shown here last.
    async fn named(
        &self,
        identity: &SessionIdentity,
        session: &Session,
        person: &Person,
        named: Option<&str>,
    ) -> Result<Result<Digest, Refusal>, JournalError> {
        let number =
            named.and_then(|named| named.trim_start_matches("rev").trim().parse::<u32>().ok());
        let Some(number) = number else { return Ok(seen(session, person)) };
        let found = self.revision(identity, Some(number)).await?;
        Ok(found.map(|view| view.digest).ok_or(Refusal::Plan(PlanRefusal::NotShown { number })))
    }
}

/// What this surface last showed this person in full.
fn seen(session: &Session, person: &Person) -> Result<Digest, Refusal> {
    let plan = session.plan().ok_or(PlanRefusal::WorkInactive)?;
    let number = plan.current.as_ref().map(|head| head.number);
    match (plan.shown_to(person), number) {
        (Some(digest), _) => Ok(digest),
        (None, Some(number)) => Err(PlanRefusal::NotShown { number }.into()),
        (None, None) => {
            Err(PlanRefusal::NothingToDecide { status: plan.status.word().into() }.into())
        }
    }
}

/// `12: text` speaks of line 12.
fn comment(text: &str) -> Comment {
    let line = text
        .split_once(':')
        .and_then(|(line, rest)| Some((line.trim().parse().ok()?, rest.trim())));
    match line {
        Some((line, rest)) => Comment { line: Some(line), text: rest.to_owned() },
        None => Comment { line: None, text: text.to_owned() },
    }
}

fn acknowledgement(command: &PersonCommand) -> &'static str {
    match command {
        PersonCommand::Say { .. } => "queued",
        PersonCommand::StartPlan { .. } => "plan work is on; say what you want planned",
        PersonCommand::EndPlan(_) => "plan work has ended",
        PersonCommand::Reset => "everything here has ended; a new view begins",
        PersonCommand::Stop => "stopped",
        PersonCommand::PausePlan => "the execution is paused; /plan resume goes on",
        PersonCommand::RecordShown { .. } => "shown",
        PersonCommand::Decide(decision) => match decision {
            Decision::Approve(approving) => match approving.start {
                Start::AtOnce => "approved; the execution starts",
                Start::Hold => "approved and held; /plan resume starts it",
            },
            Decision::RequestChanges { .. } => "changes requested; a newer revision is needed",
            Decision::Reject { .. } => "rejected; plan work has ended",
            Decision::Resume => "the execution goes on",
            Decision::SkipStep { .. } => "skipped; /plan resume goes on without it",
            Decision::SettleDoubt { .. } => "settled",
        },
    }
}
