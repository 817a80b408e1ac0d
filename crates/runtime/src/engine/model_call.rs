//! One model call: the request is built, trimmed to the context window, sent once inside its bracket, and its outcome recorded.
//!
//! One bracket holds one request. If what was said must be summed up first, that is the request of this bracket, and the
//! answer is asked for in the next.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use planwright_domain::{
    attempt::ModelAttempt,
    command::{Summed, SystemCommand},
    id::{Incarnation, Seq},
    identity::SessionKey,
    limits, prompt,
    refusal::Refusal,
    session::Session,
    turn::{
        Answer as TurnAnswer, CallKind, FailureKind, ModelFailure, RequestedCall, Sent, Turn,
        Usage, Work, asking::Asking, decide::profile_of, role::Role,
    },
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
    time::{Instant, sleep, timeout},
};

use crate::{
    engine::Engine,
    engine::advance::{NOT_IN_TIME, TurnStart, WHY_CHARS_MAX},
    engine::attempt::{Attempt, OpenAttempt, Outcome},
    engine::context_window::{self, Bytes, Cut, Room, Shortened},
    engine::conversation::View,
    engine::histories::view,
    engine::message_digest,
    engine::places::Place,
    engine::tool_call::read_result,
    failpoint,
    ids::report_id,
    ports::{
        journal::{Answer, JournalError},
        model::{AgentProfile, Message, Model, ModelAnswer, ModelRequest, Price},
        signal::{Preview, Signal},
    },
};

/// How much of the room what is not summed up may take, in hundredths.
const KEPT_OF_ROOM: u64 = 35;
/// The same, where a person asked for it.
const KEPT_WHEN_ASKED: u64 = 5;

/// How long a subscription that ended is left alone before there is another.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// From how many bytes on a conversation is not looked through on a thread that others wait for.
const LONG_BYTES: usize = 256 * 1024;

/// Looks through a conversation of so many bytes: whoever else is served by this thread does not wait for it, if it is long.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is waited for: it is work, and others are served meanwhile"
)]
fn beside<T>(bytes: usize, look: impl FnOnce() -> T) -> T {
    let has_others = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    if bytes >= LONG_BYTES && has_others { block_in_place(look) } else { look() }
}

/// A request that fits, or what must be done before one does.
enum Fitted {
    Send(ModelRequest, Box<Sent>),
    Sum(Cut, View, Option<(ModelRequest, Box<Sent>)>),
    Nothing,
    Not(ModelFailure),
}

/// A model call that can be sent.
struct Prepared {
    model: Arc<dyn Model>,
    others: u32,
    fitted: Fitted,
}

impl Prepared {
    /// How many tokens the request is expected to be, and at what price.
    fn expected(&self) -> (u64, Option<Price>) {
        let tokens = match &self.fitted {
            Fitted::Send(_, sent) | Fitted::Sum(_, _, Some((_, sent))) => sent.estimate,
            Fitted::Sum(_, _, None) | Fitted::Nothing | Fitted::Not(_) => 0,
        };
        (tokens, self.model.price())
    }
}

/// What is recorded of a call that was cut off: late, with what it is expected to have used.
fn cancelled(
    attempt: ModelAttempt,
    (input, price): (u64, Option<Price>),
    streamed: usize,
) -> SystemCommand {
    let usage = priced(Usage::tokens(input, (streamed as u64).div_ceil(4)), price);
    let answer = TurnAnswer { usage, ..TurnAnswer::default() };
    SystemCommand::RecordAnswer { attempt, answer, others: 0 }
}

impl Engine {
    /// Begins a turn and its first model call in one commit, asks, and records what came of it.
    pub(crate) async fn start_turn(
        &self,
        identity: &SessionKey,
        life: Incarnation,
        session: &Session,
        queued: Seq,
        place: &mut Place,
    ) -> Result<TurnStart, JournalError> {
        // One that waits for room looks often: it asks nobody for their tools before there is any.
        if self.is_held(identity) && self.dispatcher.quotas().full(identity.owner).await?.is_some()
        {
            return Ok(TurnStart::Held);
        }
        let turn = self.ids.ordered().into();
        let named = profile_of(session, queued);
        let profile = named.and_then(|name| self.requests.profiles.get(name));
        let profile = profile.map(|profile| profile.facts.clone());
        let recalled = self.memories.recall_for(session, queued).await?;
        // Before the bracket, as for every call of the model.
        self.tools.refresh().await;
        let (attempt, begun) = (ModelAttempt::first(turn), Instant::now());
        let open = self.attempts.open(Attempt::Model(attempt));
        let call = Some(self.bracket(life, self.settings.model_deadline_ms));
        let start = SystemCommand::StartTurn { turn, queued, profile, recalled, call };
        match self.dispatcher.report(identity, None, start).await {
            Ok(Answer::Refused(refusal)) => {
                open.close(Outcome::NotStarted);
                let is_held = matches!(refusal, Refusal::LimitReached(_));
                Ok(if is_held { TurnStart::Held } else { TurnStart::NotStarted })
            }
            Ok(Answer::Accepted { .. }) => {
                self.no_longer_held(identity);
                let session = self.journal.session(identity).await;
                let is_open = |session: &Arc<Session>| {
                    session.turn.as_ref().and_then(Turn::open_attempt) == Some(attempt)
                };
                if session.as_ref().is_ok_and(|session| !is_open(session)) {
                    open.close(Outcome::NotStarted);
                    return Ok(TurnStart::NotStarted);
                }
                let not_begun =
                    self.ask_and_record(identity, attempt, (open, begun), place).await?;
                Ok(TurnStart::Asked { not_begun })
            }
            Err(error) => {
                open.close(Outcome::NotRecorded);
                Err(error)
            }
        }
    }

    /// Asks the model once, and records what came of it. Gives why it did not begin, if that is so.
    pub(crate) async fn call_model(
        &self,
        identity: &SessionKey,
        life: Incarnation,
        attempt: ModelAttempt,
        place: &mut Place,
    ) -> Result<Option<String>, JournalError> {
        failpoint::hit("model.before_start");
        // Before the bracket: a server that is slow to list its tools must not use up the time to begin.
        self.tools.refresh().await;
        let bracket = self.bracket(life, self.settings.model_deadline_ms);
        let begun = Instant::now();
        let open = self.attempts.open(Attempt::Model(attempt));
        let start = SystemCommand::StartModelCall { attempt, bracket };
        let Some(open) = self.start(identity, vec![open], start).await?.pop() else {
            return Ok(None);
        };
        self.ask_and_record(identity, attempt, (open, begun), place).await
    }

    /// The same for a call whose start is committed.
    async fn ask_and_record(
        &self,
        identity: &SessionKey,
        attempt: ModelAttempt,
        (open, begun): (OpenAttempt, Instant),
        place: &mut Place,
    ) -> Result<Option<String>, JournalError> {
        failpoint::hit("model.after_start");
        let (session, prepared) = match self.prepared_request(identity, attempt).await {
            Ok(Some(prepared)) => prepared,
            Ok(None) => {
                open.close(Outcome::Overtaken);
                return Ok(None);
            }
            Err(error) => {
                self.abandon_model_call(identity, attempt, open, &error.to_string()).await;
                return Err(error);
            }
        };
        if begun.elapsed() > Duration::from_millis(self.settings.start_by_ms.cast_unsigned()) {
            return Ok(self.abandon_model_call(identity, attempt, open, NOT_IN_TIME).await);
        }
        let (expected, streamed) = (prepared.expected(), AtomicUsize::new(0));
        let id = report_id(attempt.turn.0, "model", attempt.round, attempt.number);
        let asking = async {
            tokio::select! {
                // In this order, always: what happens must not depend on a throw of the dice.
                biased;
                command = self.perform(&session, attempt, prepared, &streamed) => Some(command),
                () = self.overtaken(identity, attempt) => None,
            }
        };
        let Some(command) = place.left_for(asking).await else {
            open.close(Outcome::Overtaken);
            // Its maker charges for it all the same.
            let command = cancelled(attempt, expected, streamed.into_inner());
            self.dispatcher.record(identity, id, command).await?;
            return Ok(None);
        };
        failpoint::hit("model.before_record");
        let has_failed = matches!(command, SystemCommand::RecordModelFailure { .. });
        let outcome = if has_failed { Outcome::Failed } else { Outcome::Finished };
        self.end(identity, open, id, command, outcome).await.map(|_| None)
    }

    /// The session and the request of an open model call; nothing if it is no longer open.
    async fn prepared_request(
        &self,
        identity: &SessionKey,
        attempt: ModelAttempt,
    ) -> Result<Option<(Arc<Session>, Prepared)>, JournalError> {
        let session = self.journal.session(identity).await?;
        let Some(open) = session.turn.as_ref().filter(|turn| turn.open_attempt() == Some(attempt))
        else {
            return Ok(None);
        };
        let profile = self.requests.profile(&session);
        let (model, others) = self.model_of(&session, open, profile);
        let fitted = self.fitted(&session, open, profile, &*model).await?;
        Ok(Some((session.clone(), Prepared { model, others, fitted })))
    }

    /// Records that a model call did not begin, and gives why.
    async fn abandon_model_call(
        &self,
        identity: &SessionKey,
        attempt: ModelAttempt,
        open: OpenAttempt,
        why: &str,
    ) -> Option<String> {
        let id = report_id(attempt.turn.0, "abandon-model", attempt.round, attempt.number);
        let why: String = why.chars().take(WHY_CHARS_MAX).collect();
        let command = SystemCommand::AbandonModelCall { attempt, why: why.clone() };
        self.abandon(identity, open, id, command, why).await
    }

    /// Sends the request, or a request for a summary; gives the command that records the outcome.
    async fn perform(
        &self,
        session: &Session,
        attempt: ModelAttempt,
        prepared: Prepared,
        streamed: &AtomicUsize,
    ) -> SystemCommand {
        let Prepared { model, others, fitted } = prepared;
        let failed =
            |failure, sent| SystemCommand::RecordModelFailure { attempt, failure, others, sent };
        let (request, sent) = match fitted {
            Fitted::Not(failure) => return failed(failure, None),
            Fitted::Nothing => {
                return SystemCommand::RecordCompaction { attempt, summed: None };
            }
            Fitted::Send(request, sent) => (request, sent),
            Fitted::Sum(cut, view, fits) => match (self.sum_up(&model, &cut, &view).await, fits) {
                (Ok(summed), _) => {
                    let summed = Some(summed);
                    return SystemCommand::RecordCompaction { attempt, summed };
                }
                (Err(failure), Some(fits)) => {
                    let why = failure.message;
                    tracing::warn!(session_identity = %session.identity, why, event = "not_summed_up");
                    fits
                }
                (Err(failure), None) => {
                    let message = format!(
                        "what was said no longer fits and could not be summed up, so nothing was dropped: {}",
                        failure.message
                    );
                    return failed(ModelFailure { message, ..failure }, None);
                }
            },
        };
        match self.ask(&session.key(), attempt, &*model, &request, streamed).await {
            Ok(answer) => {
                let answer = self.known_calls(session, answer, &request, model.price(), sent);
                SystemCommand::RecordAnswer { attempt, answer, others }
            }
            Err(failure) => failed(failure, Some(sent)),
        }
    }

    /// The model that is asked, and how many others could be. A step's profile names its own, and no other.
    fn model_of(
        &self,
        session: &Session,
        turn: &Turn,
        profile: Option<&AgentProfile>,
    ) -> (Arc<dyn Model>, u32) {
        if let Some(profile) = profile {
            return (profile.model.clone(), 0);
        }
        let roles = &self.roles;
        let others = u32::try_from(roles.fallbacks.len()).unwrap_or(u32::MAX);
        let fallback = (turn.asking.model as usize).checked_sub(1);
        if let Some(fallback) = fallback.and_then(|at| roles.fallbacks.get(at)) {
            return (fallback.clone(), others);
        }
        let named = match Role::of(session, turn) {
            Role::Talk => None,
            Role::Plan => roles.plan.as_ref(),
            Role::Execute => roles.execute.as_ref(),
            Role::SumUp => roles.summary.as_ref(),
        };
        (named.unwrap_or(&self.model).clone(), others)
    }

    /// The request, made to fit the window of this model.
    async fn fitted(
        &self,
        session: &Session,
        turn: &Turn,
        profile: Option<&AgentProfile>,
        model: &dyn Model,
    ) -> Result<Fitted, JournalError> {
        let identity = &session.key();
        let view = view(&*self.journal, &self.histories, identity, session).await?;
        Ok(beside(view.bytes, || self.fit(session, turn, profile, model, view)))
    }

    fn fit(
        &self,
        session: &Session,
        turn: &Turn,
        profile: Option<&AgentProfile>,
        model: &dyn Model,
        view: View,
    ) -> Fitted {
        let measure = session.measures.get(&model.id()).copied().unwrap_or_default();
        let Asking { halved, .. } = turn.asking;
        let room = Room::of(model.window_tokens(), self.settings.answer_tokens, halved, measure)
            .soft_from(model.soft_tokens());
        if turn.work == Work::Compacts {
            let cut = self.cut(&view, room, KEPT_WHEN_ASKED, model);
            return cut.map_or(Fitted::Nothing, |cut| Fitted::Sum(cut, view, None));
        }
        let sized =
            |request: ModelRequest, bytes, messages_digest, shortened: Option<&Shortened>| {
                let bytes = Bytes::of(&request, bytes);
                let estimate = measure.expect(bytes.all());
                let sent = context_window::sent(
                    &request,
                    model.id(),
                    bytes,
                    estimate,
                    messages_digest,
                    shortened,
                );
                (request, Box::new(sent))
            };
        let whole = self.requests.request(session, &view, profile);
        let with = |short: &Shortened| {
            let mut request = ModelRequest { messages: short.messages.clone(), ..whole.clone() };
            if short.upto.is_some() && session.plan().is_none() {
                request.tools.push(read_result());
            }
            let messages_digest = message_digest::chain(&short.messages);
            sized(request, short.bytes, messages_digest, Some(short))
        };
        // What was shortened stays so: to give it back would have everything after it read again.
        let (request, sent) = match view.shortened {
            None => sized(whole.clone(), view.bytes, view.messages_digest, None),
            Some(upto) => with(&context_window::shortened_upto(&view, upto)),
        };
        if sent.estimate <= room.soft() {
            return Fitted::Send(request, sent);
        }
        let (request, sent) = with(&context_window::shortened(&view));
        if sent.estimate <= room.soft() {
            return Fitted::Send(request, sent);
        }
        let (needed, fits) = (sent.estimate, sent.estimate <= room.tokens);
        let whole = fits.then_some((request, sent));
        match (self.cut(&view, room, KEPT_OF_ROOM, model), whole) {
            (Some(cut), whole) => Fitted::Sum(cut, view, whole),
            (None, Some((request, sent))) => Fitted::Send(request, sent),
            (None, None) => Fitted::Not(ModelFailure::new(
                FailureKind::TooLarge,
                format!(
                    "this needs about {needed} tokens and {} takes {}; say less at once, use fewer tools, or send /reset to start a new view (plans and history stay recorded)",
                    model.name(),
                    room.tokens
                ),
            )),
        }
    }

    /// Where what was said is cut, given what the one who sums it up can take in.
    fn cut(&self, view: &View, room: Room, kept: u64, model: &dyn Model) -> Option<Cut> {
        let window = self.roles.summary.as_ref().map(|model| model.window_tokens());
        let window = window.unwrap_or_else(|| model.window_tokens());
        let taken = Room::of(window, self.settings.answer_tokens, 0, room.measure).bytes(80);
        context_window::cut(view, room.bytes(kept), taken)
    }

    async fn sum_up(
        &self,
        model: &Arc<dyn Model>,
        cut: &Cut,
        view: &View,
    ) -> Result<Summed, ModelFailure> {
        let model = self.roles.summary.as_ref().unwrap_or(model);
        let transcript = beside(view.bytes, || cut.transcript(view));
        let words = (transcript.len() / 60).clamp(60, 800);
        let request = ModelRequest {
            system: prompt::summary_prompt(words),
            messages: Arc::new(vec![Message::User(transcript.clone())]),
            tools: Vec::new(),
            cache_key: None,
        };
        let limit = Duration::from_millis(self.settings.model_deadline_ms.cast_unsigned());
        let answered = timeout(limit, model.answer(&request, &|_| {})).await;
        let answer = answered.unwrap_or_else(|_| Err(too_late(&**model, limit)));
        let answer = self.noted(&**model, answer)?;
        let summary = answer.text.trim();
        if summary.is_empty() {
            let words = format!("{} summed nothing up", model.name());
            return Err(ModelFailure::new(FailureKind::Empty, words));
        }
        if summary.len() >= transcript.len().min(limits::SUMMARY_VIEW_BYTES_MAX) {
            let words = format!("{} summed up with more words than there were", model.name());
            return Err(ModelFailure::new(FailureKind::Malformed, words));
        }
        let usage = priced(answer.usage.unwrap_or_default(), model.price());
        let messages = u32::try_from(cut.messages).unwrap_or(u32::MAX);
        let (upto, summary, by) = (cut.upto, summary.to_owned(), model.id());
        Ok(Summed { upto, messages, summary, usage, by })
    }

    async fn ask(
        &self,
        identity: &SessionKey,
        attempt: ModelAttempt,
        model: &dyn Model,
        request: &ModelRequest,
        streamed: &AtomicUsize,
    ) -> Result<ModelAnswer, ModelFailure> {
        let ModelAttempt { turn, round, number: attempt } = attempt;
        let preview = |text: &str| {
            failpoint::hit("model.mid_stream");
            let offset = streamed.fetch_add(text.len(), Ordering::Relaxed);
            let piece = Preview { turn, round, attempt, offset, text: text.to_owned() };
            self.broadcast.publish(identity, Signal::Preview(piece));
        };
        let limit = Duration::from_millis(self.settings.model_deadline_ms.cast_unsigned());
        let answered = timeout(limit, model.answer(request, &preview)).await;
        self.noted(model, answered.unwrap_or_else(|_| Err(too_late(model, limit))))
    }

    /// What a model answered, noted for those who operate it.
    fn noted(
        &self,
        model: &dyn Model,
        answered: Result<ModelAnswer, ModelFailure>,
    ) -> Result<ModelAnswer, ModelFailure> {
        let failure = answered.as_ref().err();
        self.model_health.note(&model.name(), failure, self.clock.now());
        if let Some(ModelFailure { kind, message, .. }) = failure {
            tracing::warn!(model = model.name(), ?kind, why = message, event = "model_call_failed");
        }
        answered
    }

    /// Ends when the model call is no longer wanted: the turn was stopped, or is over.
    async fn overtaken(&self, identity: &SessionKey, attempt: ModelAttempt) {
        let mut subscription = self.broadcast.subscribe(identity);
        loop {
            if let Ok(session) = self.journal.session(identity).await {
                let open = session.turn.as_ref().and_then(Turn::open_attempt);
                if open != Some(attempt) {
                    return;
                }
            }
            loop {
                match subscription.next().await {
                    Some(Signal::Preview(_)) => {}
                    Some(Signal::Moved(_) | Signal::Missed) => break,
                    // Nobody tells any more: look again now and then.
                    None => {
                        sleep(LOOK_AGAIN).await;
                        subscription = self.broadcast.subscribe(identity);
                        break;
                    }
                }
            }
        }
    }

    /// Gives every call our id and says what kind of tool it names.
    fn known_calls(
        &self,
        session: &Session,
        answer: ModelAnswer,
        request: &ModelRequest,
        price: Option<Price>,
        sent: Box<Sent>,
    ) -> TurnAnswer {
        let calls = answer.calls.into_iter().enumerate().map(|(at, call)| {
            let kind = match self.tools.tool(&call.tool) {
                _ if planwright_domain::tools::is_answered_here(&call.tool) => CallKind::Plan,
                Some(tool) => match self.tools.check(session, &call.tool, &call.arguments) {
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
                id: self.ids.ordered().into(),
                wire_id,
                tool: call.tool,
                arguments: call.arguments,
                kind,
            }
        });
        let usage = priced(answer.usage.unwrap_or_default(), price);
        let (text, calls, kept) = (answer.text, calls.collect(), answer.kept);
        TurnAnswer { text, calls, usage, kept, sent: Some(sent) }
    }
}

fn priced(usage: Usage, price: Option<Price>) -> Usage {
    let cost_micros = price.map_or(0, |price| price.of(usage));
    Usage { cost_micros, ..usage }
}

fn too_late(model: &dyn Model, limit: Duration) -> ModelFailure {
    let words = format!("{} did not answer within {} s", model.name(), limit.as_secs());
    ModelFailure::new(FailureKind::Transient, words)
}
