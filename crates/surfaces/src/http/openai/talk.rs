//! One thing that was said to our agent, and the answer to it, piece by piece.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::http::{HeaderMap, StatusCode};
use futures_util::{Stream, StreamExt as _, stream};
use planwright_domain::{
    actor::{Person, Standing},
    id::{Seq, TurnId},
    identity::{ChannelType, SessionIdentity, SessionKey},
    next::{Waiting, next, waiting},
    plan::event::PlanEvent,
    session::{Session, SessionEvent},
    turn::{
        Usage,
        event::{Arrival, TurnEnd, TurnEvent},
    },
};
use planwright_runtime::{
    commands::reply::{Reply, Spoken},
    ports::{
        journal::JournalError,
        signal::{Signal, Subscription},
    },
    reply_text::text_of,
};
use tokio::time::{Instant, timeout};

use crate::http::{app::App, auth::Caller, problem::Problem};

/// How long an answer is waited for; what goes on then is read in the dashboard.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// A piece of what is said.
pub(super) enum Piece {
    Text(String),
    End(Usage),
}

/// One thing that was said, and the answer to it.
pub(super) struct Talk {
    app: Arc<App>,
    pub(super) spoken: Spoken,
    subscription: Box<dyn Subscription>,
    /// What was answered at once, if it was.
    at_once: Option<String>,
    /// Events up to here were looked at.
    seen: Seq,
    /// How much of each answer was told.
    sent: HashMap<(TurnId, u32), String>,
    usage: Usage,
    until: Instant,
    /// Whether a revision came of it.
    planned: bool,
    stage: Stage,
}

impl Talk {
    pub(super) async fn begin(
        app: &Arc<App>,
        caller: &Caller,
        headers: &HeaderMap,
        named: Option<SessionIdentity>,
        line: String,
    ) -> Result<Self, Problem> {
        let refused =
            |kind: &str, words: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, kind, words);
        if line.trim().is_empty() {
            return Err(refused("nothing_said", "the last message of the user has no text"));
        }
        // Whoever asks here speaks, whatever their token may do elsewhere.
        let person = Person { standing: Standing::Speaks, ..caller.person.clone() };
        let key = match named.filter(|named| named.channel == ChannelType::Api) {
            Some(identity) => identity.key,
            None => {
                app.commands.new_key().map_err(|_| refused("no_key", "no new key could be made"))?
            }
        };
        let identity = caller.own_session(ChannelType::Api, key);
        let subscription = app.queries.subscribe(&identity);
        let seen = app.queries.session(&identity).await?.version;
        let id = caller.command_id(app, headers)?;
        let spoken = Spoken { identity, transport: None, person, id, line };
        let at_once = match app.commands.handle_line(spoken.clone()).await? {
            // A message is answered by a turn; a command by words.
            Reply::Accepted { .. } if !spoken.line.trim_start().starts_with('/') => None,
            Reply::Accepted { words, .. } => Some(words),
            Reply::Refused(refusal) => Some(refusal.to_string()),
            Reply::Unreadable(words) | Reply::Nothing(words) | Reply::Moved { words, .. } => {
                Some(words)
            }
            shown @ (Reply::Status(_)
            | Reply::Revision(_)
            | Reply::Diff(_)
            | Reply::Plans(_)
            | Reply::Comments(_)
            | Reply::Sessions(_)
            | Reply::Work(_)
            | Reply::Memory(_)
            | Reply::Notebook(_)
            | Reply::Help) => Some(text_of(&shown).plain()),
        };
        let (sent, usage, until) = (HashMap::new(), Usage::default(), Instant::now() + ANSWER_MAX);
        let (app, planned, stage) = (app.clone(), false, Stage::Answers);
        Ok(Self { app, spoken, subscription, at_once, seen, sent, usage, until, planned, stage })
    }

    /// All of it.
    pub(super) async fn whole(self) -> Result<(String, Usage), Problem> {
        let mut pieces = std::pin::pin!(self.pieces());
        let (mut text, mut usage) = (String::new(), Usage::default());
        while let Some(piece) = pieces.next().await {
            match piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::End(used) => usage = used,
            }
        }
        Ok((text, usage))
    }

    /// Piece by piece, as it comes.
    pub(super) fn pieces(self) -> impl Stream<Item = Piece> + Send {
        stream::unfold(self, |mut talk| async move {
            let piece = match talk.stage {
                Stage::Answers => talk.next().await.unwrap_or_else(|error| {
                    tracing::error!(%error, event = "completion_not_read");
                    talk.stage = Stage::Ends;
                    let words = if error.is_newer() || error.is_corrupt() {
                        error.to_string()
                    } else {
                        "The journal does not answer now; look again in a moment.".into()
                    };
                    Piece::Text(format!("\n\n{words}"))
                }),
                Stage::Ends => {
                    talk.stage = Stage::Over;
                    Piece::End(talk.usage)
                }
                Stage::Over => return None,
            };
            Some((piece, talk))
        })
    }

    async fn next(&mut self) -> Result<Piece, JournalError> {
        if let Some(words) = self.at_once.take() {
            return Ok(Piece::Text(words));
        }
        loop {
            if let Some(text) = self.recorded().await? {
                return Ok(Piece::Text(text));
            }
            let session = self.app.queries.session(&self.spoken.identity).await?;
            if (next(&session).is_rest() && session.version == self.seen)
                || self.until < Instant::now()
            {
                self.stage = Stage::Ends;
                let (app, identity) = (self.app.clone(), self.spoken.identity.clone());
                let footer = footer(&app, &identity, &session, self.planned).await;
                return footer.map(Piece::Text);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if let Ok(Some(Signal::Preview(preview))) =
                timeout(left, self.subscription.next()).await
            {
                let gap = self.gap(preview.turn, preview.round);
                let sent = self.sent.entry((preview.turn, preview.round)).or_default();
                if sent.len() == preview.offset && !preview.text.is_empty() {
                    sent.push_str(&preview.text);
                    return Ok(Piece::Text(format!("{gap}{}", preview.text)));
                }
            }
        }
    }

    /// What stands between one answer and the next.
    fn gap(&self, turn: TurnId, round: u32) -> &'static str {
        let is_new = self.sent.get(&(turn, round)).is_none_or(String::is_empty);
        if is_new && self.sent.values().any(|sent| !sent.is_empty()) { "\n\n" } else { "" }
    }

    /// What was recorded since, as far as it was not told yet.
    async fn recorded(&mut self) -> Result<Option<String>, JournalError> {
        loop {
            let page = self.app.queries.events(&self.spoken.identity, self.seen, 1).await?;
            let Some(recorded) = page.into_iter().next() else { return Ok(None) };
            self.seen = recorded.seq;
            match recorded.event {
                SessionEvent::Turn(TurnEvent::ModelAnswered {
                    turn,
                    round,
                    answer,
                    arrival: Arrival::InTime,
                }) => {
                    self.usage.input += answer.usage.input;
                    self.usage.output += answer.usage.output;
                    let gap = self.gap(turn, round);
                    let sent = self.sent.entry((turn, round)).or_default();
                    let rest = match answer.text.strip_prefix(sent.as_str()) {
                        Some(rest) => format!("{gap}{rest}"),
                        // Another try said something else: it stands beside what was told of the first.
                        None => format!("\n\n{}", answer.text),
                    };
                    *sent = answer.text;
                    if !rest.trim().is_empty() {
                        return Ok(Some(rest));
                    }
                }
                SessionEvent::Turn(TurnEvent::TurnFinished {
                    end: TurnEnd::Failed { failure },
                    ..
                }) => {
                    return Ok(Some(format!("\n\n{}", failure.message)));
                }
                SessionEvent::Plan(PlanEvent::RevisionAdded { .. }) => self.planned = true,
                SessionEvent::Turn(_)
                | SessionEvent::Plan(_)
                | SessionEvent::Auto(_)
                | SessionEvent::Memory(_)
                | SessionEvent::Notebook(_)
                | SessionEvent::Life(_)
                | SessionEvent::MessageQueued { .. }
                | SessionEvent::CauseWithdrawn { .. }
                | SessionEvent::CompactionAsked { .. }
                | SessionEvent::AgentCalled { .. }
                | SessionEvent::ViewReset { .. }
                | SessionEvent::Logged { .. } => {}
            }
        }
    }
}

/// What waits for a person, and the link by which this conversation is found again.
async fn footer(
    app: &App,
    identity: &SessionKey,
    session: &Session,
    planned: bool,
) -> Result<String, JournalError> {
    let here = format!("{}/s/{}", app.settings.url, identity.identity);
    let words = match waiting(session) {
        Some(Waiting::Decision) => {
            let view = app.queries.revision(identity, None).await?.filter(|_| planned);
            let plan = view.map(|view| {
                format!(
                    "Plan, revision {}:\n\n{}\n\n",
                    view.revision.number, view.revision.markdown
                )
            });
            let plan = plan.unwrap_or_default();
            return Ok(format!("\n\n{plan}[It waits for your decision: review it]({here}/plan)"));
        }
        Some(Waiting::Permission) => "A call waits for your permission: decide on it",
        Some(Waiting::Resume | Waiting::Doubt | Waiting::Run) => "Something waits for you: look",
        Some(Waiting::Limit) => "A limit is reached, and the turn waits: raise it",
        None if next(session).is_rest() => "Planwright",
        None => "It still works: look",
    };
    Ok(format!("\n\n[{words}]({here})"))
}

/// Where an answer stands.
enum Stage {
    Answers,
    Ends,
    Over,
}
