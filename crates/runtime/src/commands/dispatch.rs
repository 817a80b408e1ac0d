//! Decides one command under its session's lock, then tells the lane and the watchers: the only caller of `decide`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use planwright_domain::{
    command::{
        AutoCommand, Decision, Issued, LifeCommand, PersonCommand, SessionCommand, SystemCommand,
    },
    id::{CommandId, Seq},
    identity::{Root, SessionKey, Transport},
    log::{SessionHead, head_with},
    next::{Due, next, waiting},
    plan::review::{Comment, Said},
    policy::Policy,
    refusal::Refusal,
    session::{begins_turn, decide, life::Life, limits_of},
    turn::Usage,
};
use tokio::time::sleep;

use crate::{
    audit::head::Statement,
    failpoint,
    metrics::{self, Happened, OfTurn},
    ports::{
        Clock, Ports,
        audit::Handover,
        journal::{Answer, Append, Journal, JournalError, Undecided},
        signal::{Broadcast, Lane, ListChange, Signal},
    },
    quotas::Quotas,
    settings::Settings,
};

/// How often a decision is handed over, in a session that moves on meanwhile.
const HANDOVERS_MAX: u32 = 5;
/// How often the result of an effect is offered to the journal before the lane backs off.
const RECORD_ATTEMPTS_MAX: u32 = 8;

/// Decides one command under the session's lock.
pub async fn dispatch(
    journal: &dyn Journal,
    identity: &SessionKey,
    issued: Issued<SessionCommand>,
) -> Result<Answer, JournalError> {
    Ok(decided(journal, identity, issued).await?.answer)
}

/// A command that was decided.
pub(crate) struct Decided {
    /// The answer.
    pub(crate) answer: Answer,
    /// What came of it; nothing if the answer was there before.
    pub(crate) since: Option<Since>,
}

/// What came of a command.
pub(crate) struct Since {
    due: Due,
    happened: Happened,
    change: ListChange,
}

/// The same, with what is due since.
pub(crate) async fn decided(
    journal: &dyn Journal,
    identity: &SessionKey,
    issued: Issued<SessionCommand>,
) -> Result<Decided, JournalError> {
    decided_as(journal, identity, issued, None).await
}

/// The same, if the session's chain of decisions comes to this with it. The only caller of `decide` that stores.
async fn decided_as(
    journal: &dyn Journal,
    identity: &SessionKey,
    issued: Issued<SessionCommand>,
    handed: Option<SessionHead>,
) -> Result<Decided, JournalError> {
    failpoint::hit("dispatch.before_append");
    let (id, at) = (issued.id, issued.at);
    let last = Arc::new(Mutex::new(None));
    let decided_here = last.clone();
    let decide = move |session: &_| {
        // It may be asked more than once: what counts is what it said last.
        *decided_here.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let events = decide(session, &issued)?;
        if handed.is_some_and(|handed| head_with(session, &events) != Some(handed)) {
            let what = "something else happened in it meanwhile".into();
            return Err(Undecided::Refused(Refusal::MovedOn { what }));
        }
        let after = session.fold(at, &events)?;
        let due = next(&after).due();
        let since = Since {
            due,
            happened: Happened::of(session, &events),
            change: ListChange::of(session, &after, &events, at),
        };
        *decided_here.lock().unwrap_or_else(PoisonError::into_inner) = Some(since);
        let turns = begins_turn(session, &events)
            .then(|| issued.quota.as_ref().and_then(|quota| quota.turn_room()))
            .flatten();
        Ok(Append { due, waiting: waiting(&after), events, after, turns })
    };
    let answer = journal.append(identity, id, at, Box::new(decide)).await;
    failpoint::hit("dispatch.after_append");
    let (answer, since) = (answer?, last.lock().unwrap_or_else(PoisonError::into_inner).take());
    // It may have been decided and found to have an answer already.
    let is_of = |since: &Since| match &answer {
        Answer::Accepted { version, .. } => since.change.row.version == *version,
        Answer::Refused(_) => false,
    };
    let since = since.filter(is_of);
    Ok(Decided { answer, since })
}

/// Where a command came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The chat.
    pub(crate) transport: Option<Transport>,
    /// The project of a foreign agent.
    pub(crate) project: Option<Root>,
}

/// Decides commands and tells of them: what every change of a session goes through.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    journal: Arc<dyn Journal>,
    lane: Arc<dyn Lane>,
    broadcast: Arc<dyn Broadcast>,
    clock: Arc<dyn Clock>,
    policy: Arc<Policy>,
    handover: Option<Handover>,
    quotas: Quotas,
    session_label: bool,
}

impl Dispatcher {
    pub(crate) fn new(ports: &Ports, settings: &Settings) -> Self {
        Self {
            quotas: Quotas::new(ports, settings),
            journal: ports.journal.clone(),
            lane: ports.lane.clone(),
            broadcast: ports.broadcast.clone(),
            clock: ports.clock.clone(),
            policy: ports.policy.clone(),
            handover: ports.handover.clone(),
            session_label: ports.session_label,
        }
    }

    /// What owners may use.
    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Lets someone act on a session that waited for something outside of it.
    pub(crate) fn wake(&self, identity: &SessionKey, version: Seq) {
        // A time of its own: a lane may take two wake-ups for one version for the same.
        self.lane.wake(identity, version, Due::At(self.clock.now()));
    }

    /// The operator's rules.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides a command, then tells the lane and the watchers, whether or not the caller waits for it: what a
    /// disconnected client asked for is either not done, or done and told.
    pub(crate) async fn dispatch_detached(
        &self,
        from: Origin,
        identity: &SessionKey,
        id: CommandId,
        command: SessionCommand,
    ) -> Result<Answer, JournalError> {
        let (dispatcher, identity) = (self.clone(), identity.clone());
        let dispatching =
            tokio::spawn(
                async move { dispatcher.dispatch(&identity, Some(id), command, from).await },
            );
        match dispatching.await {
            Ok(answer) => answer,
            Err(broke) => Err(JournalError::Engine(Box::new(broke))),
        }
    }

    /// Decides a command, then tells the lane and the watchers. Nothing leaves before it is durable. Not safe
    /// against a caller that goes away: a lane calls it from a task of its own, everyone else goes through
    /// [`Dispatcher::dispatch_detached`].
    pub(crate) async fn dispatch(
        &self,
        identity: &SessionKey,
        id: Option<CommandId>,
        command: SessionCommand,
        from: Origin,
    ) -> Result<Answer, JournalError> {
        let (log_event, usage) = (log_event_name(&command), usage_of(&command));
        let bytes = bytes_of(&command);
        let Origin { transport, project } = from;
        let at = self.clock.now();
        let quota = self.quotas.of(identity.owner, limits_of(&command), at).await?;
        let issued = Issued { id, ..Issued::once(at, command) }.with_quota(quota);
        let issued = issued.under(self.policy.clone()).of_project(project);
        let decided = match &self.handover {
            Some(handover) if is_decision(&issued.command) => {
                self.hand_over_and_decide(handover, identity, issued).await
            }
            Some(_) | None => decided(&*self.journal, identity, issued).await,
        };
        let Decided { answer, since } = decided?;
        if let (Answer::Refused(refusal), Some(command)) = (&answer, log_event) {
            let kind = refusal.kind();
            tracing::warn!(session_identity = %identity, command, kind, event = "command_refused");
        }
        if let Answer::Accepted { before, version } = answer
            && before < version
        {
            self.quotas.add(identity.owner, usage);
            self.quotas.add_bytes(identity.owner, bytes);
            if let Some(event) = log_event {
                metrics::line(identity, None, transport.as_ref(), &OfTurn::default(), event);
            }
            failpoint::hit("dispatch.before_wake");
            self.broadcast.publish(identity, Signal::Moved(version));
            let due = match since {
                Some(Since { due, happened, change }) => {
                    happened.record(identity, self.session_label);
                    self.broadcast.hint(change);
                    due
                }
                // Who was first to ask may never have learnt that it was stored, and then told nobody.
                None => {
                    let session = self.journal.session(identity).await?;
                    if let Some(row) = self.journal.row(identity).await? {
                        let deleted = session.life == Life::Deleted;
                        self.broadcast.hint(ListChange { deleted, ..ListChange::read(row) });
                    }
                    next(&session).due()
                }
            };
            match due {
                Due::Never => {}
                due @ (Due::Now | Due::At(_)) => self.lane.wake(identity, version, due),
            }
        }
        Ok(answer)
    }

    /// Decides a command once its head was handed over: one that cannot be handed over is refused, and nothing is stored.
    async fn hand_over_and_decide(
        &self,
        handover: &Handover,
        identity: &SessionKey,
        issued: Issued<SessionCommand>,
    ) -> Result<Decided, JournalError> {
        let Handover { signer, keeper } = handover;
        let mut attempt = 1;
        loop {
            let session = self.journal.session(identity).await?;
            let head =
                decide(&session, &issued).ok().and_then(|events| head_with(&session, &events));
            // What is refused, or was answered before, has its answer without anybody's help.
            let Some(of) = head else {
                return decided(&*self.journal, identity, issued).await;
            };
            let told = Statement::Decision { of, at: issued.at }.signed_by(&**signer);
            if let Err(why) = keeper.hand_over(&told.text()).await {
                tracing::error!(session_identity = %identity, why, event = "decision_not_handed_over");
                let answer = Answer::Refused(Refusal::NotHandedOver { why });
                return Ok(Decided { answer, since: None });
            }
            let stored = decided_as(&*self.journal, identity, issued.clone(), Some(of)).await?;
            // Without it, the answer is one that was given before, or the session moved on.
            if stored.since.is_some() {
                return Ok(stored);
            }
            let told = Statement::NotStored { of, at: self.clock.now() }.signed_by(&**signer);
            if let Err(why) = keeper.hand_over(&told.text()).await {
                tracing::error!(session_identity = %identity, why, event = "decision_not_handed_over");
            }
            let moved_on = matches!(stored.answer, Answer::Refused(Refusal::MovedOn { .. }));
            if !moved_on || attempt >= HANDOVERS_MAX {
                return Ok(stored);
            }
            attempt += 1;
        }
    }

    /// The answer to a command that could not even be formed: the one that its id was given before, else this
    /// refusal.
    pub(crate) async fn refuse(
        &self,
        identity: &SessionKey,
        id: CommandId,
        refusal: Refusal,
    ) -> Result<Answer, JournalError> {
        let refuse = move |_: &_| Err(Undecided::Refused(refusal.clone()));
        self.journal.append(identity, Some(id), self.clock.now(), Box::new(refuse)).await
    }

    /// Decides what the runtime reports; without an id, if it is not reported again.
    pub(crate) async fn report(
        &self,
        identity: &SessionKey,
        id: Option<CommandId>,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let answer =
            self.dispatch(identity, id, SessionCommand::System(command), Origin::default()).await?;
        if let Answer::Refused(refusal) = &answer {
            tracing::debug!(session_identity = %identity, %refusal, event = "report_refused");
        }
        Ok(answer)
    }

    /// Stores the result of an effect, and tries again while the journal fails.
    pub(crate) async fn record(
        &self,
        identity: &SessionKey,
        id: CommandId,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let mut attempt = 1;
        loop {
            match self.report(identity, Some(id), command.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt >= RECORD_ATTEMPTS_MAX => return Err(error),
                Err(error) => {
                    tracing::warn!(session_identity = %identity, %error, attempt, event = "result_not_stored");
                    sleep(Duration::from_millis(50 << attempt)).await;
                    attempt += 1;
                }
            }
        }
    }
}

/// Whether this is a person's decision.
fn is_decision(command: &SessionCommand) -> bool {
    matches!(command, SessionCommand::Person(_, PersonCommand::Decide(_)))
}

/// What a model was used for what is recorded.
fn usage_of(command: &SessionCommand) -> Usage {
    match command {
        SessionCommand::System(SystemCommand::RecordAnswer { answer, .. }) => answer.usage,
        SessionCommand::System(SystemCommand::RecordCompaction {
            summed: Some(summed), ..
        }) => summed.usage,
        SessionCommand::System(_)
        | SessionCommand::Person(..)
        | SessionCommand::Model(..)
        | SessionCommand::Agent(_) => Usage::default(),
    }
}

/// How long a text is that a person or an agent sends to be stored.
fn bytes_of(command: &SessionCommand) -> usize {
    match command {
        SessionCommand::Person(_, PersonCommand::Say { text }) => text.len(),
        SessionCommand::Person(_, PersonCommand::EditPlan { markdown, .. }) => markdown.len(),
        SessionCommand::Person(
            _,
            PersonCommand::Discuss { said: Said::Edit { text, .. }, .. }
            | PersonCommand::Discuss {
                said: Said::Comment { comment: Comment { text, .. } }, ..
            },
        ) => text.len(),
        SessionCommand::Agent(call) => call.call.arguments.len(),
        SessionCommand::Person(..) | SessionCommand::Model(..) | SessionCommand::System(_) => 0,
    }
}

/// What the log says of a command; reports of the runtime and plain words are not logged.
fn log_event_name(command: &SessionCommand) -> Option<&'static str> {
    let SessionCommand::Person(_, command) = command else { return None };
    match command {
        PersonCommand::Say { .. }
        | PersonCommand::RecordShown { .. }
        | PersonCommand::MarkSeen { .. } => None,
        PersonCommand::Discuss { .. } => Some("plan_discussed"),
        PersonCommand::StartPlan { .. } => Some("plan_mode_enabled"),
        PersonCommand::EndPlan(_) => Some("plan_mode_disabled"),
        PersonCommand::Reset => Some("session_reset"),
        PersonCommand::Compact => Some("compaction_asked"),
        PersonCommand::EditPlan { .. } => Some("plan_edited"),
        PersonCommand::Auto(command) => Some(match command {
            AutoCommand::AddGoal { .. } => "goal_added",
            AutoCommand::EndGoal { .. } => "goal_ended",
            AutoCommand::AddTask { .. } => "task_added",
            AutoCommand::EndTask { .. } => "task_ended",
            AutoCommand::On { .. } => "auto_on",
            AutoCommand::Off { .. } => "auto_off",
            AutoCommand::Resume { .. } => "auto_resumed",
            AutoCommand::AddSchedule { .. } => "schedule_added",
            AutoCommand::EndSchedule { .. } => "schedule_ended",
        }),
        PersonCommand::Memory(_) => Some("memory_changed"),
        PersonCommand::Notebook { .. } => Some("notebook_switched"),
        PersonCommand::Life(command) => Some(match command {
            LifeCommand::Open { .. } => "session_opened",
            LifeCommand::Rename { .. } => "session_renamed",
            LifeCommand::Archive => "session_archived",
            LifeCommand::Restore => "session_restored",
            LifeCommand::Delete => "session_deleted",
        }),
        PersonCommand::Stop => Some("turn_stopped"),
        PersonCommand::PausePlan => Some("execution_paused"),
        PersonCommand::Decide(decision) => match decision {
            Decision::Approve(_) => Some("plan_approved"),
            Decision::RequestChanges { .. } => Some("changes_requested"),
            Decision::Reject { .. } => Some("plan_rejected"),
            Decision::Resume => Some("execution_resumed"),
            Decision::SkipStep { .. } => Some("step_skipped"),
            Decision::Permit { .. } => Some("permission_decided"),
            Decision::SettleDoubt { .. } => Some("doubt_settled"),
        },
    }
}
