//! Handles a line that a person typed on any surface: it becomes a command or a view.

use planwright_domain::{
    actor::Person,
    chat::{
        Act, ChatCommand, Line, Look, Route,
        approval::{RevisionName, last_shown},
        parse,
        work::WorkAct,
    },
    command::{
        Approving, Decision, LifeCommand, Permit, PersonCommand, SessionCommand, Start, Verdict,
    },
    digest::Digest,
    id::Seq,
    identity::{ChannelType, ConversationKey, SessionIdentity, SessionKey},
    memory::{Item, ItemKind, MemoryCommand, Provenance},
    plan::{Strategy, refusal::PlanRefusal, review::Comment},
    refusal::Refusal,
    session::Session,
};

use crate::{
    commands::{
        Commands,
        dispatch::Origin,
        reply::{LISTED_MAX, Reply, SessionLine, Spoken},
        routing::key_of,
    },
    ports::journal::{Answer, JournalError},
    queries::autonomy::WorkView,
};

/// The fewest digits that name a call.
const NAMED_DIGITS_MIN: usize = 8;

impl Commands {
    /// Does what a line says.
    pub async fn handle_line(&self, spoken: Spoken) -> Result<Reply, JournalError> {
        let identity = &spoken.identity;
        let (words, command) = match parse(&spoken.line) {
            Err(refusal) => return Ok(Reply::Unreadable(refusal.to_string())),
            Ok(Line::Message(text)) => ("queued", Ok(PersonCommand::Say { text })),
            Ok(Line::Command(ChatCommand::Help)) => return Ok(Reply::Help),
            Ok(Line::Command(ChatCommand::Route(route))) => {
                return self.route(&spoken, route).await;
            }
            Ok(Line::Command(ChatCommand::Act(Act::MemoryPromote(id)))) => {
                return self.promote_named(&spoken, &id).await;
            }
            Ok(Line::Command(ChatCommand::Act(Act::MemoryForget(id)))) => {
                return self.forget_named(&spoken, &id).await;
            }
            Ok(Line::Command(ChatCommand::Act(Act::RaiseLimit))) => {
                return self.raise_spoken(&spoken).await;
            }
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
                let from = Origin { transport: spoken.transport.clone(), project: None };
                self.dispatcher.dispatch_detached(from, identity, spoken.id, command).await?
            }
            // What the words name may be gone because they were heard before: the same id, the same answer.
            Err(refusal) => self.dispatcher.refuse(identity, spoken.id, refusal).await?,
        };
        Ok(match answer {
            Answer::Accepted { version, .. } => {
                Reply::Accepted { session: spoken.session_name(), version, words: words.into() }
            }
            Answer::Refused(refusal) => {
                let (who, surface) = (&spoken.person.id.0, &spoken.person.surface.0);
                let kind = refusal.kind();
                tracing::warn!(session_identity = %identity, who, surface, kind, event = "line_refused");
                Reply::Refused(refusal)
            }
        })
    }

    async fn look(
        &self,
        identity: &SessionKey,
        person: &Person,
        look: Look,
    ) -> Result<Reply, JournalError> {
        let nothing = |words: &str| Reply::Nothing(words.into());
        if look != Look::Sessions && !self.queries.sees(person, identity).await? {
            return Ok(Reply::Refused(Refusal::NotYours { identity: identity.to_string() }));
        }
        Ok(match look {
            Look::Sessions => {
                let rows = self.queries.sessions(person.owner, LISTED_MAX + 1).await?;
                Reply::Sessions(rows.into_iter().map(SessionLine::from).collect())
            }
            Look::Work => {
                let session = self.queries.session(identity).await?;
                Reply::Work(Box::new(WorkView::of(&session, self.queries.now())))
            }
            Look::Memory(text) => {
                Reply::Memory(Box::new(self.queries.memory(identity, &text).await?))
            }
            Look::Notebook(named) => {
                Reply::Notebook(Box::new(self.queries.notebook(identity, named.as_deref()).await?))
            }
            Look::Limits => {
                let (_, stands) = self.queries.quotas().now(identity.owner).await?;
                let words = stands.in_words(self.queries.now());
                let unpriced =
                    " The price of a model is not known, so money is not counted for it.";
                let more = if self.queries.terms().priced { "" } else { unpriced };
                nothing(&format!("{words}{more}"))
            }
            Look::Deletion => nothing(&self.deletion(identity).await?),
            Look::Status => Reply::Status(Box::new(self.queries.status(identity).await?)),
            Look::List => Reply::Plans(self.queries.plans(identity).await?),
            Look::Show(number) => match self.queries.revision(identity, number).await? {
                Some(view) => Reply::Revision(Box::new(view)),
                None => nothing("there is no such revision; /plan list shows what there is"),
            },
            Look::Comments => Reply::Comments(self.queries.comments(identity).await?),
            Look::Diff(numbers) => match self.queries.diff(identity, &person.id, numbers).await? {
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
        let (plan, reads) = (self.ids.ordered().into(), self.settings.collect_reads);
        PersonCommand::StartPlan { plan, strategy, reads }
    }

    /// A surface has shown a revision in full.
    pub async fn shown(
        &self,
        identity: &SessionKey,
        person: &Person,
        digest: Digest,
    ) -> Result<Answer, JournalError> {
        let command = PersonCommand::RecordShown { digest };
        self.dispatch(identity, self.ids.command(), person, command).await
    }

    /// The command behind the words, or why it cannot be formed.
    async fn command(
        &self,
        identity: &SessionKey,
        person: &Person,
        act: Act,
    ) -> Result<Result<PersonCommand, Refusal>, JournalError> {
        let session = self.queries.session(identity).await?;
        let decide = |decision| Ok(Ok(PersonCommand::Decide(decision)));
        match act {
            Act::PlanOn(strategy) => Ok(Ok(self.plan_on(strategy))),
            Act::PlanEnd(ending) => Ok(Ok(PersonCommand::EndPlan(ending))),
            Act::Approve { named, start, on_failure, grant, note } => {
                let digest = match self.named(identity, &session, person, named).await? {
                    Ok(digest) => digest,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let plain = Approving::of(digest, self.queries.terms());
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
                let (fresh, suggested) = (self.ids.ordered().into(), false);
                Ok(Ok(PersonCommand::EditPlan { base, markdown, fresh, suggested }))
            }
            Act::Reject(why) => match seen(&session, person) {
                Ok(digest) => decide(Decision::Reject { digest, why }),
                Err(refusal) => Ok(Err(refusal)),
            },
            Act::Resume => decide(Decision::Resume),
            Act::Permit { named, permit } => {
                Ok(permitted(&session, named.as_deref(), permit).map(PersonCommand::Decide))
            }
            Act::Skip(step) => decide(Decision::SkipStep { step }),
            Act::Settle { call, verdict } => {
                Ok(settled(&session, call, verdict).map(PersonCommand::Decide))
            }
            Act::Work(act) => Ok(self.work(&session, act).map(PersonCommand::Auto)),
            Act::Rename(title) => Ok(Ok(PersonCommand::Life(LifeCommand::Rename { title }))),
            Act::Archive => Ok(Ok(PersonCommand::Life(LifeCommand::Archive))),
            Act::Notebook(on) => Ok(Ok(PersonCommand::Notebook { on })),
            Act::Delete => Ok(Ok(PersonCommand::Life(LifeCommand::Delete))),
            Act::MemorySave(text) => {
                let (id, kind) = (self.ids.ordered().into(), ItemKind::Fact);
                Ok(Ok(PersonCommand::Memory(MemoryCommand::Save { id, kind, text })))
            }
            Act::MemoryEdit(id, text) => Ok(match self.queries.remembered(identity, &id).await? {
                Some(item) if item.scope.session().is_some() => {
                    Ok(PersonCommand::Memory(MemoryCommand::Change { id: item.id, text }))
                }
                Some(_) | None => Err(Refusal::NotThere { what: "memory".into() }),
            }),
            Act::MemoryForget(_) | Act::MemoryPromote(_) => {
                Ok(Err(Refusal::NotThere { what: "memory".into() }))
            }
            Act::RaiseLimit => Ok(Err(Refusal::NothingToRaise)),
            Act::PlanStop => Ok(Ok(PersonCommand::PausePlan)),
            Act::Stop => Ok(Ok(PersonCommand::Stop)),
            Act::Compact => Ok(Ok(PersonCommand::Compact)),
            Act::Reset => Ok(Ok(PersonCommand::Reset)),
        }
    }

    /// Lets the chat talk to another conversation.
    async fn route(&self, spoken: &Spoken, route: Route) -> Result<Reply, JournalError> {
        let Some(transport) = &spoken.transport else {
            let words = "there is no chat here to move; name the session that you mean";
            return Ok(Reply::Nothing(words.into()));
        };
        let is_new = route == Route::New;
        let key = match route {
            // The same request again, under its id, begins the same session.
            Route::New => key_of(spoken.id),
            Route::Switch(named) => match SessionKey::named(&named, spoken.person.owner) {
                Ok(SessionKey { owner, identity })
                    if owner == spoken.person.owner && identity.channel == transport.channel =>
                {
                    Ok(identity.key)
                }
                // A page shows any session of its reader; there is no chat to move.
                Ok(session) if transport.channel == ChannelType::Web => {
                    return self.open(&spoken.person, session).await;
                }
                Ok(_) => {
                    let words =
                        format!("{named} is of another channel or another owner; talk to it there");
                    return Ok(Reply::Nothing(words));
                }
                Err(_) => ConversationKey::legacy(&named),
            },
        };
        let key = match key {
            Ok(key) => key,
            Err(refusal) => return Ok(Reply::Unreadable(refusal.to_string())),
        };
        let named = SessionIdentity::new(transport.channel, key.clone());
        let session = SessionKey::new(spoken.person.owner, named.clone());
        if !is_new && self.queries.session(&session).await?.version == Seq(0) {
            let words =
                format!("there is no session {named}; /sessions lists yours, /new begins one");
            return Ok(Reply::Nothing(words));
        }
        Ok(match self.bind(&spoken.person, transport, &key).await? {
            Ok(session) => {
                let session = session.identity.to_string();
                let words = format!("{session} is now the active session");
                Reply::Moved { session, words }
            }
            Err(refusal) => Reply::Refused(refusal),
        })
    }

    /// Lets a page go to another session that its reader may see.
    async fn open(&self, person: &Person, key: SessionKey) -> Result<Reply, JournalError> {
        let (session, is_there) =
            (key.name_for(person.owner), self.queries.session(&key).await?.version != Seq(0));
        if !is_there || !self.queries.sees(person, &key).await? {
            let words = format!("there is no session {session}; /sessions lists yours");
            return Ok(Reply::Nothing(words));
        }
        let words = format!("{session} is now the active session");
        Ok(Reply::Moved { session, words })
    }

    /// What goes when a session is deleted, in words.
    async fn deletion(&self, identity: &SessionKey) -> Result<String, JournalError> {
        let session = self.queries.session(identity).await?;
        let items = self.queries.memory(identity, "").await?.items;
        let remembered =
            items.iter().filter(|ranked| ranked.item.scope.session().is_some()).count();
        let stays = items.iter().filter(|ranked| is_promoted_from(&ranked.item, &session));
        let stays: Vec<_> = stays.map(|ranked| format!("“{}”", ranked.item.text)).collect();
        let stays = match stays.as_slice() {
            [] => String::new(),
            stays => format!("; what you made known everywhere stays: {}", stays.join(", ")),
        };
        let plan = session.plan().map_or("no plan", |_| "its plan");
        let many = |many: usize, what: &str| {
            let one = what.strip_suffix("ies").map(|stem| format!("{stem}y"));
            let one = one.unwrap_or_else(|| what.trim_end_matches('s').to_owned());
            if many == 1 { format!("1 {one}") } else { format!("{many} {what}") }
        };
        Ok(format!(
            "deleting {} ends {plan}, {} and {}, leaves {} unanswered, forgets {}, and erases everything in it, which cannot be undone{stays}; send /delete yes",
            session.identity,
            many(session.auto.runs.len(), "runs"),
            many(session.auto.schedules.len(), "schedules"),
            many(session.queue.len(), "messages"),
            many(remembered, "memories"),
        ))
    }

    /// The digest of the revision that an approval names, or of what was shown here last.
    async fn named(
        &self,
        identity: &SessionKey,
        session: &Session,
        person: &Person,
        named: Option<RevisionName>,
    ) -> Result<Result<Digest, Refusal>, JournalError> {
        let Some(name) = named else { return Ok(seen(session, person)) };
        let Some(plan) = session.plan() else { return Ok(Err(PlanRefusal::WorkInactive.into())) };
        let numbered = match name {
            RevisionName::Number(number) => self.queries.revision(identity, Some(number)).await?,
            RevisionName::Plan(_) | RevisionName::Digest(_) => None,
        };
        let numbered = numbered.map(|view| view.digest);
        Ok(name.digest(plan, person, numbered).map_err(Refusal::Plan))
    }
}

/// The decision on the call that asks for permission, if it is the one that is named.
fn permitted(session: &Session, named: Option<&str>, permit: Permit) -> Result<Decision, Refusal> {
    let ask = session.ask.as_ref().filter(|ask| {
        // What allows must name what was shown.
        let unnamed = matches!(permit, Permit::Deny | Permit::Replan { .. });
        named.map_or(unnamed, |id| {
            id.len() >= NAMED_DIGITS_MIN && ask.digest.to_string().starts_with(id)
        })
    });
    let digest = ask.ok_or(Refusal::NoSuchAsk)?.digest;
    Ok(Decision::Permit { digest, permit })
}

/// The decision on the one call in doubt that these digits name.
fn settled(session: &Session, call: String, verdict: Verdict) -> Result<Decision, Refusal> {
    let is_long = call.len() >= NAMED_DIGITS_MIN;
    let mut found = session.doubts.keys().filter(|id| is_long && id.to_string().starts_with(&call));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(Decision::SettleDoubt { call: *id, verdict }),
        (_, _) => Err(Refusal::NoSuchDoubt { call }),
    }
}

/// Whether something that is known everywhere was promoted from this session.
fn is_promoted_from(item: &Item, session: &Session) -> bool {
    matches!(&item.provenance, Provenance::Promoted { from, .. } if *from == session.identity)
}

fn seen(session: &Session, person: &Person) -> Result<Digest, Refusal> {
    let plan = session.plan().ok_or(PlanRefusal::WorkInactive)?;
    Ok(last_shown(plan, person)?)
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
        Act::RaiseLimit => "raised for today",
        Act::Compact => "what was said before is being summed up",
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
        Act::Work(act) => match act {
            WorkAct::AddGoal(_) => "the goal is set; add tasks with /task add g<n>, see /goal",
            WorkAct::EndGoal { reached: true, .. } => "the goal is reached",
            WorkAct::EndGoal { reached: false, .. } => "the goal is dropped",
            WorkAct::AddTask { .. } => "the task is added; /auto on starts work on it",
            WorkAct::EndTask { done: true, .. } => "the task is done",
            WorkAct::EndTask { done: false, .. } => "the task is dropped",
            WorkAct::On { .. } => "the run has started; /auto status shows it, /auto off ends it",
            WorkAct::Off(_) => "off; nothing new of it starts",
            WorkAct::Resume(_) => "the run goes on",
            WorkAct::AddSchedule { .. } => "the schedule is on; /schedule shows its next time",
            WorkAct::EndSchedule(_) => "the schedule is off",
        },
        Act::Rename(_) => "renamed",
        Act::Archive => "put away; what you say here brings it back",
        Act::Delete => "deleted; everything in it has ended",
        Act::Notebook(true) => "the notebook is on; /notebook shows its pages",
        Act::Notebook(false) => "the notebook is off; its pages stay",
        Act::MemorySave(_) => "remembered in this session",
        Act::MemoryEdit(..) => "remembered in other words",
        Act::MemoryForget(_) => "forgotten",
        Act::MemoryPromote(_) => "known everywhere now",
        Act::Skip(_) => "skipped; /plan resume goes on without it",
        Act::Settle { .. } => "settled",
    }
}
