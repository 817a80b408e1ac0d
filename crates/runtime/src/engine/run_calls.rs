//! Makes the tool calls of a turn that are due: each is an attempt with its start and its outcome recorded.

use std::time::Duration;

use futures_util::future::join_all;
use planwright_domain::{
    attempt::CallAttempt,
    command::{StartingCall, SystemCommand},
    effect::Repeat,
    id::{CallId, Incarnation},
    identity::SessionKey,
    session::{Session, leased_hosts},
    turn::{CallResult, CallState, CallStatus, OpenCall},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    engine::{
        Engine,
        advance::{LAST_CHECK, NOT_IN_TIME, WHY_CHARS_MAX},
        attempt::{Attempt, OpenAttempt, Outcome},
        output::shortened,
        replay,
    },
    failpoint,
    ids::report_id,
    ports::{
        journal::JournalError,
        toolbox::{Ran, ToolRun},
    },
};

/// Whether the turn still waits for this attempt.
fn is_wanted(session: &Session, attempt: CallAttempt) -> bool {
    let CallAttempt { call, number } = attempt;
    session.turn.as_ref().is_some_and(|turn| {
        let is_open = CallState::Open(number);
        turn.calls().iter().any(|one| one.requested.id == call && one.state == is_open)
    })
}

/// A call that was started, and what it needs.
struct Started {
    attempt: CallAttempt,
    open: OpenAttempt,
    run: Run,
    call: OpenCall,
}

/// What a started call needs to be made.
enum Run {
    Ready(Box<ToolRun>),
    /// The turn has ended meanwhile.
    Unwanted,
    /// The arguments that were recorded for its step are not there.
    WithoutArguments,
}

impl Engine {
    /// Makes the calls that are due. Gives why some of them did not begin, if that is so.
    pub(crate) async fn run_calls(
        &self,
        identity: &SessionKey,
        life: Incarnation,
        session: &Session,
        due: &[CallAttempt],
    ) -> Result<Option<String>, JournalError> {
        failpoint::hit("tool.before_start");
        let Some(turn) = &session.turn else { return Ok(None) };
        self.tools.refresh().await;
        let recorded = replay::arguments(&*self.journal, identity, session).await?;
        let requested = |call: CallId| {
            turn.calls().iter().map(|call| &call.requested).find(|asked| asked.id == call)
        };
        let calls = due.iter().map(|attempt| {
            let (name, arguments) =
                requested(attempt.call).map_or(("", ""), |asked| (&asked.tool, &asked.arguments));
            let aim = self.tools.aim(session.root.as_ref(), name, arguments);
            let tool = self.tools.tool(name).map(|tool| tool.facts);
            StartingCall { attempt: *attempt, tool, aim }
        });
        let (bracket, begun) = (self.bracket(life, self.settings.tool_deadline_ms), Instant::now());
        let ask_until = self.in_ms(self.settings.permission_ms);
        let start = SystemCommand::StartCalls { calls: calls.collect(), bracket, ask_until };
        let attempts =
            due.iter().map(|attempt| self.attempts.open(Attempt::Call(*attempt))).collect();
        let attempts = self.start(identity, attempts, start).await?;
        if attempts.is_empty() {
            return Ok(None);
        }
        failpoint::hit("tool.after_start");
        let after = match self.journal.session(identity).await {
            Ok(after) => after,
            Err(error) => {
                for (attempt, open) in due.iter().zip(attempts) {
                    self.abandon_call(identity, *attempt, open, &error.to_string()).await;
                }
                return Err(error);
            }
        };
        let context = after.turn.as_ref().and_then(|turn| after.auto.context(turn)).cloned();
        let note_every = self.tools.note_every(&after);
        let started = due.iter().zip(attempts).filter_map(|(attempt, open)| {
            let CallAttempt { call, number } = *attempt;
            let Some(made) = after.open.get(&call).filter(|made| made.attempt == number) else {
                // The gate let it wait for a person, or answered it.
                open.close(Outcome::NotStarted);
                return None;
            };
            let arguments = match made.step {
                Some(step) => recorded.get(&step).cloned(),
                None => requested(call).map(|asked| asked.arguments.clone()),
            };
            let run = match arguments {
                _ if !is_wanted(&after, *attempt) => Run::Unwanted,
                None => Run::WithoutArguments,
                Some(arguments) => Run::Ready(Box::new(ToolRun {
                    identity: identity.clone(),
                    call,
                    attempt: number,
                    tool: made.tool.clone(),
                    arguments,
                    plan: made.plan,
                    context: context.clone(),
                    root: after.root.clone(),
                    hosts: leased_hosts(&after, &made.tool, &made.facts, self.clock.now()),
                })),
            };
            Some(Started { attempt: *attempt, open, run, call: made.clone() })
        });
        let runs = started.map(|started| self.run_call(identity, started, note_every, begun));
        let outcomes: Result<Vec<_>, _> = join_all(runs).await.into_iter().collect();
        Ok(outcomes?.into_iter().flatten().next())
    }

    /// Makes one call, and records what came of it. Gives why it did not begin, if that is so.
    async fn run_call(
        &self,
        identity: &SessionKey,
        started: Started,
        note_every: u64,
        begun: Instant,
    ) -> Result<Option<String>, JournalError> {
        let Started { attempt, open, run, call: made } = started;
        let run = match run {
            Run::Ready(run) => *run,
            Run::Unwanted => {
                self.abandon_call(identity, attempt, open, "the turn ended first").await;
                return Ok(None);
            }
            Run::WithoutArguments => {
                let why = "its recorded arguments are not there";
                return Ok(self.abandon_call(identity, attempt, open, why).await);
            }
        };
        let tools = self.tools.clone();
        let limit = Duration::from_millis(self.settings.tool_deadline_ms.cast_unsigned());
        let start_by = Duration::from_millis(self.settings.start_by_ms.cast_unsigned());
        let mut acting = tokio::spawn(async move {
            // The last look at the clock stands immediately before the act.
            tracing::trace!(name: LAST_CHECK, event = LAST_CHECK);
            if begun.elapsed() > start_by {
                return None;
            }
            Some(tools.run(run).await)
        });
        let acted = timeout(limit, &mut acting).await;
        failpoint::hit("tool.before_record");
        let result = match (acted, made.facts.repeat) {
            (Ok(Ok(None)), _) => {
                return Ok(self.abandon_call(identity, attempt, open, NOT_IN_TIME).await);
            }
            (Ok(Ok(Some(Ran::Ended(result)))), _) => result,
            (Ok(Ok(Some(Ran::Unknown { why }))), Repeat::Harmless) => CallResult::failed(why),
            (Ok(Ok(Some(Ran::Unknown { why }))), Repeat::AskFirst) => {
                tracing::warn!(session_identity = %identity, why, event = "outcome_unknown");
                return self.orphan(identity, attempt, open).await;
            }
            (Ok(Err(_)), Repeat::Harmless) => {
                CallResult::failed("the tool broke down; nothing was changed")
            }
            (Err(_), Repeat::Harmless) => {
                acting.abort();
                CallResult::failed(format!("no result within {} s", limit.as_secs()))
            }
            // The outcome is unknown, and only a person may say whether it is repeated.
            (Ok(Err(_)), Repeat::AskFirst) => return self.orphan(identity, attempt, open).await,
            (Err(_), Repeat::AskFirst) => {
                self.record_late(identity, attempt, acting);
                return self.orphan(identity, attempt, open).await;
            }
        };
        let outcome = match result.status {
            CallStatus::Done => Outcome::Finished,
            CallStatus::Failed => Outcome::Failed,
        };
        let id = report_id(attempt.call.0, "result", 0, attempt.number);
        let result = shortened(&*self.journal, identity, result).await;
        let shown = result.clone();
        let command = SystemCommand::RecordResult { attempt, result, note_every };
        let recorded = self.end(identity, open, id, command, outcome).await?;
        failpoint::hit("tool.after_record");
        if note_every > 0 {
            self.tools.note(identity, &recorded, &made, attempt.call, &shown).await;
        }
        Ok(None)
    }

    /// Records that nobody knows what came of a call, and closes the attempt.
    async fn orphan(
        &self,
        identity: &SessionKey,
        attempt: CallAttempt,
        open: OpenAttempt,
    ) -> Result<Option<String>, JournalError> {
        let orphaned = self.orphan_call(identity, attempt).await;
        open.close(if orphaned.is_ok() { Outcome::Orphaned } else { Outcome::NotRecorded });
        orphaned.map(|()| None)
    }

    /// Records that nobody works on a call any more.
    pub(crate) async fn orphan_call(
        &self,
        identity: &SessionKey,
        attempt: CallAttempt,
    ) -> Result<(), JournalError> {
        let id = report_id(attempt.call.0, "orphan-call", 0, attempt.number);
        self.dispatcher
            .report(identity, Some(id), SystemCommand::OrphanCall { attempt })
            .await
            .map(drop)
    }

    async fn abandon_call(
        &self,
        identity: &SessionKey,
        attempt: CallAttempt,
        open: OpenAttempt,
        why: &str,
    ) -> Option<String> {
        let id = report_id(attempt.call.0, "abandon-call", 0, attempt.number);
        let why: String = why.chars().take(WHY_CHARS_MAX).collect();
        let command = SystemCommand::AbandonCall { attempt, why: why.clone() };
        self.abandon(identity, open, id, command, why).await
    }

    /// Nobody waits for a result any more; when it comes, it is recorded all the same.
    fn record_late(
        &self,
        identity: &SessionKey,
        attempt: CallAttempt,
        acting: JoinHandle<Option<Ran>>,
    ) {
        let (dispatcher, journal) = (self.dispatcher.clone(), self.journal.clone());
        let identity = identity.clone();
        tokio::spawn(async move {
            let Ok(Some(Ran::Ended(result))) = acting.await else { return };
            let result = shortened(&*journal, &identity, result).await;
            let command = SystemCommand::RecordResult { attempt, result, note_every: 0 };
            let id = report_id(attempt.call.0, "result", 0, attempt.number);
            if let Err(error) = dispatcher.record(&identity, id, command).await {
                tracing::error!(session_identity = %identity, %error, event = "late_result_lost");
            }
        });
    }
}
