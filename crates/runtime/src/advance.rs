//! The way on: one effect of one session, as `next` says.
//!
//! Whoever drives a lane calls [`Runtime::advance`], one at a time per session. It loads, asks
//! `next`, commits the start, acts, commits the result, and returns. It may die anywhere.

use std::time::Duration;

use futures_util::future::join_all;
use planwright_domain::{
    command::{Claim, Given, ModelCommand, SessionCommand, StartingCall, SystemCommand},
    effect::{Bracket, Repeat},
    id::{CallId, CommandId, Incarnation, ScheduleId, Seq, TurnId},
    identity::SessionIdentity,
    memory::{
        Chain, Item,
        using::{Wants, wants},
    },
    next::{Due, DueCall, Next, StartedCall, next},
    notebook::tool::{Bound, NotebookTool, bound},
    session::Session,
    tools::own::{self, OwnTool},
    turn::{
        Answer as TurnAnswer, CallKind, CallResult, CallState, FailureKind, ModelFailure, OpenCall,
        RequestedCall, Step, Turn, decide::profile_of,
    },
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

use crate::{
    calendar, failpoint, history,
    ports::{
        journal::{Answer, JournalError},
        model::{AgentProfile, Model, ModelAnswer, ModelRequest, Price},
        signal::{Preview, Signal},
        toolbox::{Ran, ToolRun},
    },
    replay,
    runtime::{Ports, Runtime, fresh_id, report_id},
};

/// How often the result of an effect is offered to the journal before the lane backs off.
const RECORD_ATTEMPTS_MAX: u32 = 8;

/// What came of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advanced {
    /// When the next one is due.
    pub due: Due,
    /// Whether it reached outside: the model, or a tool.
    pub acted: bool,
    /// The version of the session.
    pub version: Seq,
}

impl Runtime {
    /// Does the one thing that should happen now, and says when the next one is due.
    pub async fn advance(&self, identity: &SessionIdentity) -> Result<Advanced, JournalError> {
        self.advance_as(identity, self.incarnation).await
    }

    /// The same for an engine that delivers: each delivery is a life of its own, and what an earlier
    /// one left open is nobody's.
    pub async fn advance_as(
        &self,
        identity: &SessionIdentity,
        life: Incarnation,
    ) -> Result<Advanced, JournalError> {
        let session = self.ports.journal.session(identity).await?;
        let (mut acted, version) = (false, session.version);
        match next(&session) {
            Next::Nothing | Next::WaitForPerson(_) => {
                return Ok(Advanced { due: Due::Never, acted, version });
            }
            Next::StartTurn(queued) => {
                failpoint::hit("advance.before_turn");
                let turn = Uuid::now_v7().into();
                let named = profile_of(&session, queued);
                let profile = named.and_then(|name| self.ports.profiles.get(name));
                let profile = profile.map(|profile| profile.facts.clone());
                let recalled = self.recall_for(&session, queued).await?;
                let start = SystemCommand::StartTurn { turn, queued, profile, recalled };
                self.ports.report(identity, fresh_id(), start).await?;
            }
            Next::UsePlanTool { turn, call } => {
                failpoint::hit("advance.before_plan_tool");
                let profiles = self.ports.profiles.keys().cloned().collect();
                let memory = self.looked_up(&session, call).await?;
                let markdown = self.planned(&session, call).await?;
                let given = Given { fresh: Uuid::now_v7().into(), profiles, memory, markdown };
                let command = ModelCommand::UsePlanTool { call, given };
                let id = report_id(call.0, "plan-tool", 0, 0);
                self.dispatch(identity, id, SessionCommand::Model(turn, command)).await?;
            }
            Next::CallModel { not_before: Some(time), .. } if time > self.ports.clock.now() => {
                return Ok(Advanced { due: Due::At(time), acted, version });
            }
            Next::CallModel { turn, round, attempt, .. } => {
                acted = true;
                self.call_model(identity, life, turn, round, attempt).await?;
            }
            Next::AwaitDecision { at } if at > self.ports.clock.now() => {
                return Ok(Advanced { due: Due::At(at), acted, version });
            }
            Next::AwaitDecision { .. } => {
                self.ports.report(identity, fresh_id(), SystemCommand::RingDecision).await?;
            }
            Next::AwaitSlot { at, .. } if at > self.ports.clock.now() => {
                return Ok(Advanced { due: Due::At(at), acted, version });
            }
            Next::AwaitSlot { schedule, .. } => {
                failpoint::hit("advance.before_claim");
                self.claim(identity, &session, schedule).await?;
            }
            Next::AwaitPermission { until, .. } if until > self.ports.clock.now() => {
                return Ok(Advanced { due: Due::At(until), acted, version });
            }
            Next::AwaitPermission { call, .. } => {
                let id = report_id(call.0, "expire-ask", 0, 0);
                self.ports.report(identity, id, SystemCommand::ExpireAsk { call }).await?;
            }
            Next::AwaitModel { turn, round, attempt, bracket } => {
                if !self.is_orphan(life, &bracket) {
                    return Ok(Advanced { due: Due::At(bracket.deadline), acted, version });
                }
                let id = report_id(turn.0, "orphan-model", round, attempt);
                let command = SystemCommand::OrphanModelCall { turn, round, attempt };
                self.ports.report(identity, id, command).await?;
            }
            Next::RunCalls(calls) => {
                acted = true;
                self.run_calls(identity, life, &session, &calls).await?;
            }
            Next::AwaitCalls(calls) => {
                let due = self.await_calls(identity, life, &calls).await?;
                return Ok(Advanced { due, acted, version });
            }
        }
        let after = self.ports.journal.session(identity).await?;
        Ok(Advanced { due: next(&after).due(), acted, version: after.version })
    }

    /// What a call of a memory tool needs, from the scopes of its own turn; none if memory is off.
    async fn looked_up(
        &self,
        session: &Session,
        call: CallId,
    ) -> Result<Option<Vec<Item>>, JournalError> {
        let (Some(memory), Some(turn)) = (self.settings.memory, &session.turn) else {
            return Ok(None);
        };
        let asked = turn.calls().iter().find(|asked| asked.requested.id == call);
        let context = session.auto.context(turn);
        let found = match asked.and_then(|asked| wants(&asked.requested)) {
            None => Vec::new(),
            Some(Wants::Search(text)) => {
                let found = self.recall(session, context, &text, memory.budget_tokens).await?;
                found.items.into_iter().map(|ranked| ranked.item).collect()
            }
            Some(Wants::Item(id)) => {
                let chain = Chain::in_session(session, context);
                let found = self.ports.memory.item(&chain, id).await?;
                found.into_iter().filter(|item| chain.admits(item)).collect()
            }
        };
        Ok(Some(found))
    }

    /// The document of the plan, where a call changes a section of the page that the plan stands in for.
    async fn planned(
        &self,
        session: &Session,
        call: CallId,
    ) -> Result<Option<String>, JournalError> {
        let calls = session.turn.as_ref().map(Turn::calls).unwrap_or_default();
        let asked = calls.iter().find(|asked| asked.requested.id == call);
        let updates = asked.and_then(|asked| bound(&asked.requested));
        if !matches!(updates, Some(Bound::Update { .. })) || session.plan().is_none() {
            return Ok(None);
        }
        Ok(self.revision(&session.identity, None).await?.map(|view| view.revision.markdown))
    }

    /// Claims the slot of a schedule that is due; those before it were missed.
    async fn claim(
        &self,
        identity: &SessionIdentity,
        session: &Session,
        schedule: ScheduleId,
    ) -> Result<(), JournalError> {
        let Some(known) = session.auto.schedules.get(&schedule) else { return Ok(()) };
        let Some(first) = known.next else { return Ok(()) };
        let due = calendar::due(&known.rhythm, first, self.ports.clock.now());
        let (missed, slot, next) = due.map_err(|why| JournalError::Engine(why.into()))?;
        let until = slot.plus_micros(self.settings.slot_window_ms * 1_000);
        let made = |what: &str| Uuid::new_v5(&schedule.0, format!("{what}:{}", slot.0).as_bytes());
        let (task, run) = (made("task").into(), made("run").into());
        let claim = Claim { schedule, missed, slot, next, until, task, run };
        let id = made("claim").into();
        self.ports.report(identity, id, SystemCommand::ClaimSlot(claim)).await.map(drop)
    }

    /// An effect is orphaned when its process is gone or its deadline has passed.
    fn is_orphan(&self, life: Incarnation, bracket: &Bracket) -> bool {
        bracket.incarnation != life || bracket.deadline <= self.ports.clock.now()
    }

    async fn await_calls(
        &self,
        identity: &SessionIdentity,
        life: Incarnation,
        calls: &[StartedCall],
    ) -> Result<Due, JournalError> {
        let mut first = None;
        for StartedCall { call, attempt, bracket } in calls {
            if self.is_orphan(life, bracket) {
                self.orphan(identity, *call, *attempt).await?;
                first = Some(Due::Now);
            } else if first.is_none() {
                first = Some(Due::At(bracket.deadline));
            }
        }
        Ok(first.unwrap_or(Due::Never))
    }

    async fn orphan(
        &self,
        identity: &SessionIdentity,
        call: CallId,
        attempt: u32,
    ) -> Result<(), JournalError> {
        let id = report_id(call.0, "orphan-call", 0, attempt);
        self.ports.report(identity, id, SystemCommand::OrphanCall { call, attempt }).await.map(drop)
    }

    async fn call_model(
        &self,
        identity: &SessionIdentity,
        life: Incarnation,
        turn: TurnId,
        round: u32,
        attempt: u32,
    ) -> Result<(), JournalError> {
        failpoint::hit("model.before_start");
        // Before the bracket: a server that is slow to list its tools must not use up the time to begin.
        self.ports.toolbox.refresh().await;
        let bracket = self.bracket(life, self.settings.model_deadline_ms);
        let begun = Instant::now();
        let start = SystemCommand::StartModelCall { turn, round, attempt, bracket };
        let id = fresh_id();
        if self.ports.report(identity, id, start).await?.is_refused() {
            return Ok(());
        }
        failpoint::hit("model.after_start");
        let session = self.ports.journal.session(identity).await?;
        let is_open = |session: &Session| {
            session.turn.as_ref().is_some_and(|open| {
                open.id == turn
                    && open.round == round
                    && matches!(open.step, Step::ModelOpen { attempt: now, .. } if now == attempt)
            })
        };
        if !is_open(&session) {
            return Ok(());
        }
        let profile = self.profile(&session);
        let (request, bytes) = self.request(identity, &session, profile).await?;
        let model = profile.map_or(&self.ports.model, |profile| &profile.model);
        if begun.elapsed() > Duration::from_millis(self.settings.start_by_ms.cast_unsigned()) {
            return Ok(());
        }
        let outcome = match self.too_large(&**model, &request, bytes) {
            Some(failure) => Err(failure),
            None => {
                let asked = self.ask(identity, turn, round, attempt, &**model, &request);
                tokio::select! {
                    outcome = asked => outcome,
                    () = self.closed(identity, is_open) => return Ok(()),
                }
            }
        };
        failpoint::hit("model.before_record");
        let id = report_id(turn.0, "model", round, attempt);
        let command = match outcome {
            Ok(answer) => {
                let answer = self.known_calls(&session, answer, &request, model.price());
                SystemCommand::RecordAnswer { turn, round, attempt, answer }
            }
            Err(failure) => SystemCommand::RecordModelFailure { turn, round, attempt, failure },
        };
        self.ports.record(identity, id, command).await.map(drop)
    }

    async fn ask(
        &self,
        identity: &SessionIdentity,
        turn: TurnId,
        round: u32,
        attempt: u32,
        model: &dyn Model,
        request: &ModelRequest,
    ) -> Result<ModelAnswer, ModelFailure> {
        let offset = std::sync::atomic::AtomicUsize::new(0);
        let preview = |text: &str| {
            failpoint::hit("model.mid_stream");
            let offset = offset.fetch_add(text.len(), std::sync::atomic::Ordering::Relaxed);
            let piece = Preview { turn, round, attempt, offset, text: text.to_owned() };
            self.ports.broadcast.publish(identity, Signal::Preview(piece));
        };
        let limit = Duration::from_millis(self.settings.model_deadline_ms.cast_unsigned());
        timeout(limit, model.answer(request, &preview)).await.unwrap_or_else(|_| {
            let message = format!("{} did not answer within {} s", model.name(), limit.as_secs());
            Err(ModelFailure { kind: FailureKind::Transient, message, retry_after_micros: None })
        })
    }

    /// Ends when the model call is no longer wanted: the turn was stopped, or is over.
    async fn closed(&self, identity: &SessionIdentity, is_open: impl Fn(&Session) -> bool) {
        let mut ear = self.ports.broadcast.subscribe(identity);
        loop {
            match self.ports.journal.session(identity).await {
                Ok(session) if !is_open(&session) => return,
                Ok(_) | Err(_) => {}
            }
            while let Some(Signal::Preview(_)) = ear.next().await {}
        }
    }

    async fn request(
        &self,
        identity: &SessionIdentity,
        session: &Session,
        profile: Option<&AgentProfile>,
    ) -> Result<(ModelRequest, usize), JournalError> {
        let history::View { messages, bytes, recalled } =
            history::view(&*self.ports.journal, &self.histories, identity, session).await?;
        let mut system = self.settings.system_prompt.clone();
        if let Some(paragraph) = planwright_domain::prompt::memory_paragraph(&recalled) {
            system.push_str("\n\n");
            system.push_str(&paragraph);
        }
        if let Some(profile) = profile.filter(|profile| !profile.prompt.is_empty()) {
            system.push_str("\n\n");
            system.push_str(&profile.prompt);
        }
        let mut tools: Vec<_> =
            self.ports.toolbox.tools().iter().map(|tool| tool.spec.clone()).collect();
        if let Some(turn) = &session.turn {
            tools.retain(|tool| turn.may_use(&tool.name));
            if let Some(paragraph) = planwright_domain::prompt::plan_paragraph(session, turn) {
                system.push_str("\n\n");
                system.push_str(&paragraph);
            }
            if let Some(paragraph) = planwright_domain::prompt::run_paragraph(session, turn) {
                system.push_str("\n\n");
                system.push_str(&paragraph);
            }
            tools.extend(own::of_run(session, turn).map(OwnTool::spec));
            if self.has_notebook(session) {
                let usable = NotebookTool::ALL.into_iter().filter(|tool| turn.may_use(tool.name()));
                tools.extend(usable.map(NotebookTool::spec));
                system.push_str("\n\n");
                system.push_str(planwright_domain::prompt::NOTEBOOK_PARAGRAPH);
            }
            if self.settings.memory.is_some() {
                let usable = OwnTool::MEMORY.into_iter().filter(|tool| turn.may_use(tool.name()));
                tools.extend(usable.map(OwnTool::spec));
            }
            let available = planwright_domain::tools::available(session, turn);
            tools.extend(available.into_iter().map(|tool| tool.spec_for(session.plan())));
        }
        Ok((ModelRequest { system, messages, tools }, bytes))
    }

    /// The profile that the open turn works under, as it stands now.
    fn profile(&self, session: &Session) -> Option<&AgentProfile> {
        let facts = session.turn.as_ref()?.profile.as_ref()?;
        self.ports.profiles.get(&facts.name).filter(|profile| profile.facts.digest == facts.digest)
    }

    fn too_large(
        &self,
        model: &dyn Model,
        request: &ModelRequest,
        bytes: usize,
    ) -> Option<ModelFailure> {
        let (needed, window) = (history::estimate_tokens(request, bytes), model.window_tokens());
        let room = window.saturating_sub(self.settings.answer_tokens);
        (needed > room).then(|| ModelFailure {
            kind: FailureKind::TooLarge,
            message: format!(
                "this conversation needs about {needed} tokens and {} takes {room}; send /reset to start a new view (plans and history stay recorded)",
                model.name()
            ),
            retry_after_micros: None,
        })
    }

    /// Gives every call our id and says what kind of tool it names.
    fn known_calls(
        &self,
        session: &Session,
        answer: ModelAnswer,
        request: &ModelRequest,
        price: Option<Price>,
    ) -> TurnAnswer {
        let calls = answer.calls.into_iter().enumerate().map(|(at, call)| {
            let kind = match self.tool(&call.tool) {
                _ if planwright_domain::tools::is_answered_here(&call.tool) => CallKind::Plan,
                Some(tool) => match self.check(session, &call.tool, &call.arguments) {
                    Ok(()) => CallKind::Tool(tool.facts),
                    Err(problem) => CallKind::Unusable { problem },
                },
                None => {
                    let known: Vec<_> =
                        request.tools.iter().map(|tool| tool.name.as_str()).collect();
                    let problem =
                        format!("there is no tool {:?}; there are {}", call.tool, known.join(", "));
                    CallKind::Unusable { problem }
                }
            };
            let wire_id = if call.wire_id.is_empty() { format!("call_{at}") } else { call.wire_id };
            RequestedCall {
                id: Uuid::now_v7().into(),
                wire_id,
                tool: call.tool,
                arguments: call.arguments,
                kind,
            }
        });
        let mut usage = answer.usage.unwrap_or_default();
        usage.cost_micros = price.map_or(0, |price| price.of(usage));
        TurnAnswer { text: answer.text, calls: calls.collect(), usage }
    }

    async fn run_calls(
        &self,
        identity: &SessionIdentity,
        life: Incarnation,
        session: &Session,
        due: &[DueCall],
    ) -> Result<(), JournalError> {
        failpoint::hit("tool.before_start");
        let Some(turn) = &session.turn else { return Ok(()) };
        self.ports.toolbox.refresh().await;
        let recorded = replay::arguments(&*self.ports.journal, identity, session).await?;
        let requested = |call: CallId| {
            turn.calls().iter().map(|call| &call.requested).find(|asked| asked.id == call)
        };
        let calls = due.iter().map(|DueCall { call, attempt }| {
            let name = requested(*call).map_or("", |asked| &asked.tool);
            let tool = self.tool(name).map(|tool| tool.facts);
            let arguments = requested(*call).map_or("", |asked| &asked.arguments);
            let aim = self.aim(name, arguments);
            StartingCall { call: *call, attempt: *attempt, tool, aim }
        });
        let bracket = self.bracket(life, self.settings.tool_deadline_ms);
        let begun = Instant::now();
        let ask_until = self.in_ms(self.settings.permission_ms);
        let start = SystemCommand::StartCalls { calls: calls.collect(), bracket, ask_until };
        self.ports.report(identity, fresh_id(), start).await?;
        failpoint::hit("tool.after_start");
        let after = self.ports.journal.session(identity).await?;
        let context = after.turn.as_ref().and_then(|turn| after.auto.context(turn)).cloned();
        let runs = due.iter().filter_map(|DueCall { call, attempt }| {
            let open = after.open.get(call).filter(|open| open.attempt == *attempt)?;
            let still = after.turn.as_ref()?.calls().iter().any(|asked| {
                asked.requested.id == *call && asked.state == CallState::Open(*attempt)
            });
            let arguments = match open.step {
                Some(step) => recorded.get(&step)?.clone(),
                None => requested(*call)?.arguments.clone(),
            };
            let run = ToolRun {
                identity: identity.clone(),
                call: *call,
                attempt: *attempt,
                tool: open.tool.clone(),
                arguments,
                plan: open.plan,
                context: context.clone(),
            };
            still.then_some((run, open.clone()))
        });
        let note_every = self.note_every(&after);
        let runs = runs.map(|(run, open)| self.run_call(identity, run, open, note_every, begun));
        join_all(runs).await.into_iter().collect()
    }

    async fn run_call(
        &self,
        identity: &SessionIdentity,
        run: ToolRun,
        open: OpenCall,
        note_every: u64,
        begun: Instant,
    ) -> Result<(), JournalError> {
        let (call, attempt, repeat) = (run.call, run.attempt, open.facts.repeat);
        let kit = self.kit();
        let limit = Duration::from_millis(self.settings.tool_deadline_ms.cast_unsigned());
        let start_by = Duration::from_millis(self.settings.start_by_ms.cast_unsigned());
        let mut acting = tokio::spawn(async move {
            // The last look at the clock stands immediately before the act.
            if begun.elapsed() > start_by {
                return None;
            }
            Some(kit.run(run).await)
        });
        let acted = timeout(limit, &mut acting).await;
        failpoint::hit("tool.before_record");
        let result = match (acted, repeat) {
            (Ok(Ok(None)), _) => return Ok(()),
            (Ok(Ok(Some(Ran::Ended(result)))), _) => result,
            (Ok(Ok(Some(Ran::Unknown { why }))), Repeat::Harmless) => failed(why),
            (Ok(Ok(Some(Ran::Unknown { why }))), Repeat::AskFirst) => {
                tracing::warn!(session_identity = %identity, why, event = "outcome_unknown");
                return self.orphan(identity, call, attempt).await;
            }
            (Ok(Err(_)), Repeat::Harmless) => {
                failed("the tool broke down; nothing was changed".into())
            }
            (Err(_), Repeat::Harmless) => {
                acting.abort();
                failed(format!("no result within {} s", limit.as_secs()))
            }
            // The outcome is unknown, and only a person may say whether it is repeated.
            (Ok(Err(_)), Repeat::AskFirst) => return self.orphan(identity, call, attempt).await,
            (Err(_), Repeat::AskFirst) => {
                self.record_late(identity, call, attempt, acting);
                return self.orphan(identity, call, attempt).await;
            }
        };
        let id = report_id(call.0, "result", 0, attempt);
        let result = self.ports.shortened(identity, result).await;
        let told = result.clone();
        let command = SystemCommand::RecordResult { call, attempt, result, note_every };
        let recorded = self.ports.record(identity, id, command).await?;
        failpoint::hit("tool.after_record");
        if note_every > 0 {
            self.kit().note(identity, &recorded, &open, call, &told).await;
        }
        Ok(())
    }

    /// Nobody waits for a result any more; when it comes, it is recorded all the same.
    fn record_late(
        &self,
        identity: &SessionIdentity,
        call: CallId,
        attempt: u32,
        acting: JoinHandle<Option<Ran>>,
    ) {
        let (ports, identity) = (self.ports.clone(), identity.clone());
        tokio::spawn(async move {
            let Ok(Some(Ran::Ended(result))) = acting.await else { return };
            let result = ports.shortened(&identity, result).await;
            let command = SystemCommand::RecordResult { call, attempt, result, note_every: 0 };
            let id = report_id(call.0, "result", 0, attempt);
            if let Err(error) = ports.record(&identity, id, command).await {
                tracing::error!(session_identity = %identity, %error, event = "late_result_lost");
            }
        });
    }

    fn bracket(&self, life: Incarnation, deadline_ms: i64) -> Bracket {
        Bracket {
            incarnation: life,
            start_by: self.in_ms(self.settings.start_by_ms),
            deadline: self.in_ms(deadline_ms),
        }
    }
}

impl Ports {
    async fn report(
        &self,
        identity: &SessionIdentity,
        id: CommandId,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let answer = self.dispatch(identity, id, SessionCommand::System(command), None).await?;
        if let Answer::Refused(refusal) = &answer {
            tracing::debug!(session_identity = %identity, %refusal, event = "report_refused");
        }
        Ok(answer)
    }

    /// Stores the result of an effect, and tries again while the journal fails.
    async fn record(
        &self,
        identity: &SessionIdentity,
        id: CommandId,
        command: SystemCommand,
    ) -> Result<Answer, JournalError> {
        let mut attempt = 1;
        loop {
            match self.report(identity, id, command.clone()).await {
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

impl Answer {
    /// Whether it says no.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

fn failed(output: String) -> CallResult {
    CallResult { status: planwright_domain::turn::CallStatus::Failed, output, touched: Vec::new() }
}
