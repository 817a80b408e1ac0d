//! The log of model requests: what was sent to which model, what it cost, what was left out and why.

use std::ops::ControlFlow;

use planwright_domain::{
    id::{Seq, TurnId},
    identity::SessionKey,
    session::{Session, SessionEvent},
    time::Time,
    turn::{Sent, Usage, event::TurnEvent},
};
use serde::{Deserialize, Serialize};

use crate::{
    engine::context_window::{digest, shortened_upto},
    engine::histories::view_at,
    engine::message_digest::chain,
    event_pages::for_each_event,
    ports::{
        journal::{JournalError, Recorded},
        model::Message,
    },
    queries::Queries,
};

/// One request to a model, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestRow {
    /// Where in the stream its end stands: its number in the log.
    pub seq: Seq,
    /// When it ended.
    pub at: Time,
    /// In this turn.
    pub turn: TurnId,
    /// The number of the request within its turn, from 1.
    pub round: u32,
    /// What was sent; none, if it did not come to that.
    pub sent: Option<Sent>,
    /// What it cost.
    pub usage: Usage,
    /// What came of it, in words.
    pub came: String,
}

/// A request, read again from the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestView {
    /// The row of the log.
    pub row: RequestRow,
    /// What the model was told about itself and its work.
    pub system: String,
    /// What was said, message by message: who, and what.
    pub messages: Vec<(String, String)>,
    /// Whether this is what was sent, byte for byte. Settings that changed since are a reason why not.
    pub same: bool,
}

impl Queries {
    /// The requests of a session, the oldest first.
    pub async fn requests(&self, identity: &SessionKey) -> Result<Vec<RequestRow>, JournalError> {
        let mut rows = Vec::new();
        for_each_event(&*self.journal, identity, Seq(0), |recorded| {
            rows.extend(row(&recorded));
            Ok::<_, JournalError>(ControlFlow::Continue(()))
        })
        .await?;
        Ok(rows)
    }

    /// One request, read again from the facts as they stood.
    pub async fn request_at(
        &self,
        identity: &SessionKey,
        seq: Seq,
    ) -> Result<Option<RequestView>, JournalError> {
        let Some(row) = self.requests(identity).await?.into_iter().find(|row| row.seq == seq)
        else {
            return Ok(None);
        };
        let Some(sent) = &row.sent else { return Ok(None) };
        let (mut session, mut session_then) = (Some(Session::new(identity.clone())), None);
        for_each_event(&*self.journal, identity, Seq(0), |recorded| {
            if recorded.seq >= seq {
                return Ok::<_, JournalError>(ControlFlow::Break(()));
            }
            session = session
                .take()
                .map(|before| before.evolve(recorded.at, &recorded.event))
                .transpose()?;
            if let SessionEvent::Turn(TurnEvent::ModelCallStarted { turn, .. }) = recorded.event
                && turn == row.turn
            {
                session_then.clone_from(&session);
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        let Some(session_then) = session_then else { return Ok(None) };
        let mut view =
            view_at(&*self.journal, identity, session_then.view_from, session_then.version).await?;
        if let Some(upto) = sent.shortened {
            view.messages = shortened_upto(&view, upto).messages;
        }
        let request =
            self.requests.request(&session_then, &view, self.requests.profile(&session_then));
        let same = digest(&request.system, chain(&request.messages)) == sent.digest;
        let messages = request.messages.iter().map(role_and_text).collect();
        Ok(Some(RequestView { system: request.system, messages, same, row }))
    }
}

fn row(recorded: &Recorded) -> Option<RequestRow> {
    let Recorded { seq, at, event } = recorded;
    let SessionEvent::Turn(event) = event else { return None };
    let row = |turn: &TurnId, round: &u32, sent: Option<Sent>, usage, came| RequestRow {
        seq: *seq,
        at: *at,
        turn: *turn,
        round: *round,
        sent,
        usage,
        came,
    };
    if let TurnEvent::ModelAnswered { turn, round, answer, .. } = event {
        let calls: Vec<_> = answer.calls.iter().map(|call| call.tool.as_str()).collect();
        let came = match (answer.text.is_empty(), calls.is_empty()) {
            (_, true) => "answered".to_owned(),
            (true, false) => format!("calls {}", calls.join(", ")),
            (false, false) => format!("answered, calls {}", calls.join(", ")),
        };
        let sent = answer.sent.as_deref().cloned();
        return Some(row(turn, round, sent, answer.usage, came));
    }
    if let TurnEvent::ModelCallFailed { turn, round, failure, sent, .. } = event {
        let came = format!("failed: {}", failure.message);
        return Some(row(turn, round, sent.as_deref().cloned(), Usage::default(), came));
    }
    if let TurnEvent::ViewCompacted { turn, round, messages, usage, by, .. } = event {
        let came = format!("{by} summed up {messages} messages, because they no longer fitted");
        return Some(row(turn, round, None, *usage, came));
    }
    None
}

fn role_and_text(message: &Message) -> (String, String) {
    match message {
        Message::User(text) => ("user".into(), text.clone()),
        Message::Tool { tool, text, .. } => (format!("result of {tool}"), text.clone()),
        Message::Assistant { text, calls, .. } => {
            let calls: String =
                calls.iter().map(|call| format!("\n→ {} {}", call.tool, call.arguments)).collect();
            ("assistant".into(), format!("{text}{calls}"))
        }
    }
}
