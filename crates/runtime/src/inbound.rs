//! The way in for every surface: a line that a person typed becomes a command or a view.

use planwright_domain::{
    actor::Person,
    chat::{Act, ChatCommand, Line, Look, parse},
    command::{Approving, Decision, Permit, PersonCommand, SessionCommand, Start},
    digest::Digest,
    id::{CommandId, Seq},
    identity::SessionIdentity,
    plan::{Strategy, refusal::PlanRefusal, review::Comment},
    refusal::Refusal,
    session::Session,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    dispatch::refused,
    ports::journal::{Answer, JournalError},
    runtime::Runtime,
    view::{CommentRow, DiffView, PlanRow, RevisionView, StatusView},
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
    /// The comments on the plan, and what became of each.
    Comments(Vec<CommentRow>),
    /// There is nothing of the kind.
    Nothing(String),
    /// The commands there are.
    Help,
}

impl Runtime {
    /// Does what a line says.
    pub async fn hear(&self, spoken: Spoken) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        let (words, command) = match parse(&spoken.line) {
            Err(refusal) => return Ok(Reply::Unreadable(refusal.to_string())),
            Ok(Line::Message(text)) => ("queued", Ok(PersonCommand::Say { text })),
            Ok(Line::Command(ChatCommand::Help)) => return Ok(Reply::Help),
            Ok(Line::Command(ChatCommand::Look(look))) => {
                return self.look(identity, &spoken.person, look).await;
            }
            Ok(Line::Command(ChatCommand::Act(act))) => {
                (acknowledgement(&act), self.command(identity, &spoken.person, act).await?)
            }
        };
        let answer = match command {
            Ok(command) => {
                let command = SessionCommand::Person(spoken.person.clone(), command);
                self.dispatch(identity, spoken.id, command).await?
            }
            // What the words name may be gone because they were heard before: the same id, the same answer.
            Err(refusal) => {
                let (journal, now) = (&*self.ports.journal, self.ports.clock.now());
                refused(journal, identity, spoken.id, now, refusal).await?
            }
        };
        Ok(match answer {
            Answer::Accepted { version, .. } => Reply::Accepted { version, words: words.into() },
            Answer::Refused(refusal) => Reply::Refused(refusal),
        })
    }

    async fn look(
        &self,
        identity: &SessionIdentity,
        person: &Person,
        look: Look,
    ) -> Result<Reply, JournalError> {
        let nothing = |words: &str| Reply::Nothing(words.into());
        Ok(match look {
            Look::Status => Reply::Status(Box::new(self.status(identity).await?)),
            Look::List => Reply::Plans(self.plans(identity).await?),
            Look::Show(number) => match self.revision(identity, number).await? {
                Some(view) => Reply::Revision(Box::new(view)),
                None => nothing("there is no such revision; /plan list shows what there is"),
            },
            Look::Comments => Reply::Comments(self.comments(identity).await?),
            Look::Diff(numbers) => match self.diff(identity, &person.id, numbers).await? {
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
            Act::Approve { named, start, on_failure, grant, note } => {
                let digest = match self.named(identity, &session, person, named.as_deref()).await? {
                    Ok(digest) => digest,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let plain = Approving::of(digest, self.terms());
                let notes = note.into_iter().collect();
                decide(Decision::Approve(Approving { notes, start, on_failure, grant, ..plain }))
            }
            Act::Changes(text) => match seen(&session, person) {
                Ok(digest) => {
                    decide(Decision::RequestChanges { digest, comments: vec![comment(&text)] })
                }
                Err(refusal) => Ok(Err(refusal)),
            },
            Act::Edit(markdown) => {
                let has_revision = session.plan().is_some_and(|plan| plan.current.is_some());
                let base = match seen(&session, person) {
                    Ok(digest) => Some(digest),
                    Err(refusal) if has_revision => return Ok(Err(refusal)),
                    Err(_) => None,
                };
                Ok(Ok(PersonCommand::EditPlan { base, markdown, fresh: Uuid::now_v7().into() }))
            }
            Act::Reject(why) => match seen(&session, person) {
                Ok(digest) => decide(Decision::Reject { digest, why }),
                Err(refusal) => Ok(Err(refusal)),
            },
            Act::Resume => decide(Decision::Resume),
            Act::Permit { named, permit } => {
                let named = named.as_deref();
                let ask = session.ask.as_ref().filter(|ask| {
                    // What allows must name what was shown.
                    let unnamed = matches!(permit, Permit::Deny | Permit::Replan { .. });
                    named.map_or(unnamed, |id| {
                        id.len() >= 8 && ask.digest.to_string().starts_with(id)
                    })
                });
                match ask {
                    Some(ask) => decide(Decision::Permit { digest: ask.digest, permit }),
                    None => Ok(Err(Refusal::NoSuchAsk)),
                }
            }
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

/// `12: text` speaks of line 12, `step 2: text` of step 2.
fn comment(text: &str) -> Comment {
    let Some((place, rest)) = text.split_once(':') else { return Comment::on_the_whole(text) };
    let (place, rest) = (place.trim(), rest.trim());
    let step = place.strip_prefix("step").and_then(|step| step.trim().parse().ok());
    match (place.parse(), step) {
        (Ok(line), _) => Comment::on_line(line, rest),
        (Err(_), Some(step)) => Comment::on_step(step, rest),
        (Err(_), None) => Comment::on_the_whole(text),
    }
}

fn acknowledgement(act: &Act) -> &'static str {
    match act {
        Act::PlanOn(_) => "plan work is on; say what you want planned",
        Act::PlanEnd(_) => "plan work has ended",
        Act::Reset => "everything here has ended; a new view begins",
        Act::Stop => "stopped",
        Act::PlanStop => "the execution is paused; /plan resume goes on",
        Act::Edit(_) => "saved; this revision is yours",
        Act::Approve { start: Start::AtOnce, .. } => "approved; the execution starts",
        Act::Approve { start: Start::Hold, .. } => "approved and held; /plan resume starts it",
        Act::Changes(_) => "changes requested; a newer revision is needed",
        Act::Reject(_) => "rejected; plan work has ended",
        Act::Resume => "the execution goes on",
        Act::Permit { permit, .. } => match permit {
            Permit::Once => "allowed, once",
            Permit::UntilPlanEnds => "allowed, until the plan ends",
            Permit::Deny => "denied",
            Permit::Replan { .. } => "denied; the plan is to be revised",
        },
        Act::Skip(_) => "skipped; /plan resume goes on without it",
        Act::Settle { .. } => "settled",
    }
}
