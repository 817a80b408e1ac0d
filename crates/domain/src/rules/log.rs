//! The decision log: who decided what, where, on which digest, and what the gate said; hash-chained.
//!
//! An entry holds codes, numbers and identifiers, and these are hashed. The text that people read is made from them
//! when it is shown, so that a reworded sentence changes no hash. The time at which it was recorded is hashed with it.
//!
//! Every entry is folded into the head of its session's chain. A batch in which somebody decided, or was
//! asked to, ends with the head as it then stands; a journal in which an entry was changed, dropped or
//! moved does not fold to it, and is corrupt.

use crate::model::{
    actor::{Person, Standing},
    command::{Permit, Start, Verdict},
    digest::{Digest, Encoder},
    effect::Touched,
    id::Seq,
    plan::{
        event::{Account, PlanEvent},
        observation::{Basis, Observation},
        review::Comment,
        step::StepEnd,
    },
    session::{Session, SessionEvent, life::LifeEvent},
    time::Time,
    turn::{
        ToolReply,
        event::{TurnEnd, TurnEvent},
    },
};
pub use crate::model::{
    log::{Entry, Erased, SessionHead, head_after},
    session::log_beginning as beginning,
};

/// The head that these events, coming next in this session, end with; none if nobody decided in them.
pub(crate) fn anchor(session: &Session, at: Time, events: &[SessionEvent]) -> Option<Digest> {
    let seqs = (session.version.0 + 1..).map(Seq);
    let entries = seqs.zip(events).filter_map(|(seq, event)| Some((seq, Entry::of(event)?)));
    let entries: Vec<_> = entries.collect();
    if !entries.iter().any(|(_, entry)| entry.is_decision()) {
        return None;
    }
    Some(entries.iter().fold(session.log, |head, (seq, entry)| head_after(head, *seq, at, entry)))
}

/// How far the chain of a session has come once these events are stored, which end with its anchor; nothing if nobody decided in
/// them.
#[must_use]
pub fn head_with(session: &Session, events: &[SessionEvent]) -> Option<SessionHead> {
    let Some(SessionEvent::Logged { head }) = events.last() else { return None };
    let seq = Seq(session.version.0 + events.len() as u64);
    Some(SessionHead { session: beginning(&session.key()), seq, head: *head })
}

impl Entry {
    /// What the log says of an event; nothing of most.
    #[must_use]
    pub fn of(event: &SessionEvent) -> Option<Self> {
        let Line { by, subject, verdict, mut arguments, said } = match event {
            SessionEvent::Plan(event) => of_plan(event)?,
            SessionEvent::Turn(event) => of_turn(event)?,
            SessionEvent::AgentCalled {
                agent,
                tool,
                reply: ToolReply::Refused { kind, .. },
                ..
            } => line_with(None, tool.clone(), "refused", vec![agent.to_string(), kind.clone()])?,
            SessionEvent::Life(LifeEvent::Deleted { by }) => {
                line(Some(by), "session".into(), "deleted")?
            }
            SessionEvent::Auto(_)
            | SessionEvent::Memory(_)
            | SessionEvent::Notebook(_)
            | SessionEvent::Life(_)
            | SessionEvent::MessageQueued { .. }
            | SessionEvent::CauseWithdrawn { .. }
            | SessionEvent::ViewReset { .. }
            | SessionEvent::CompactionAsked { .. }
            | SessionEvent::AgentCalled { .. }
            | SessionEvent::Logged { .. } => return None,
        };
        arguments.extend(by.map(|by| of_decision(by, said).to_string()));
        Some(Self {
            kind: event.kind().to_owned(),
            who: by.map(|by| by.id.0.clone()),
            owner: by.map(|by| by.owner),
            surface: by.map(|by| by.surface.0.clone()),
            subject,
            verdict: verdict.to_owned(),
            arguments,
        })
    }

    /// The verdict as people read it.
    #[must_use]
    pub fn text(&self) -> String {
        let argument = |at: usize| self.arguments.get(at).map_or("", String::as_str);
        match self.verdict.as_str() {
            "changes_requested" => format!("{} comments", argument(0)),
            "approved" => format!("approved, record {}", argument(0)),
            "started" => format!("execution {}", argument(0)),
            "refused" if self.arguments.len() == 2 => {
                format!("refused to {}: {}", argument(0), argument(1))
            }
            "refused" => format!("refused: {}", argument(0)),
            "leased" => format!("allowed by the approval of plan {}", argument(0)),
            "allowed_once" => "allowed once".to_owned(),
            "allowed_until_plan_ends" => "allowed until the plan ends".to_owned(),
            "denied_by_nobody" => "denied: nobody decided in time".to_owned(),
            "denied_for_revision" => "denied: to be revised".to_owned(),
            "did_not_happen" => "did not happen".to_owned(),
            code => code.to_owned(),
        }
    }
}

/// What an event says that belongs into the log, beside its kind.
struct Line<'a> {
    by: Option<&'a Person>,
    subject: String,
    verdict: &'a str,
    arguments: Vec<String>,
    /// What was said with the decision: only its digest is part of the log.
    said: Option<Digest>,
}

impl Line<'_> {
    fn saying(self, said: Digest) -> Self {
        Self { said: Some(said), ..self }
    }
}

/// What a decision says beside its line: in which standing it was made, and in which words.
fn of_decision(by: &Person, said: Option<Digest>) -> Digest {
    let standing = match by.standing {
        Standing::Speaks => "speaks",
        Standing::Decides => "decides",
    };
    Encoder::of("decision", 1)
        .field("standing", standing)
        .optional("authenticated", by.authenticated.map(|at| at.0.to_string()).as_deref())
        .optional("said", said.map(|said| said.to_string()).as_deref())
        .digest()
}

fn of_touched(touched: &[Touched], more: u64) -> Digest {
    let encoder = Encoder::of("touched", 1).number("more", more);
    let encoder = touched.iter().fold(encoder, |encoder, touched| match touched {
        Touched::Wrote { path, bytes } => encoder.field("wrote", path).number("bytes", *bytes),
        Touched::Reached { host } => encoder.field("reached", host),
    });
    encoder.digest()
}

fn of_observation(observation: &Observation) -> Digest {
    let Observation { calls_done, calls_failed, steps_without_calls, basis } = observation;
    let encoder = Encoder::of("observation", 1)
        .number("calls-done", (*calls_done).into())
        .number("calls-failed", (*calls_failed).into())
        .optional("basis", basis.map(Basis::name));
    let encoder = steps_without_calls.iter().fold(encoder, |encoder, step| {
        encoder.number("number", step.number.into()).field("title", &step.title)
    });
    encoder.digest()
}

/// The words of comments, and what they speak of.
fn of_comments(comments: &[Comment]) -> Digest {
    let place = |place: Option<u32>| place.map(|place| place.to_string());
    let encoder = Encoder::of("comments", 1).number("comments", comments.len() as u64);
    let encoder = comments.iter().fold(encoder, |encoder, comment| {
        let encoder = encoder
            .number("number", comment.number.into())
            .optional("line", place(comment.line).as_deref())
            .optional("step", place(comment.step).as_deref())
            .field("text", &comment.text);
        // Named only where they are: what was logged before they were is verified as it was.
        let parts = [("last-line", comment.last_line), ("reply-to", comment.reply_to)];
        parts.into_iter().fold(encoder, |encoder, (name, part)| match part {
            Some(part) => encoder.number(name, part.into()),
            None => encoder,
        })
    });
    encoder.digest()
}

fn line<'a>(by: Option<&'a Person>, subject: String, verdict: &'a str) -> Option<Line<'a>> {
    line_with(by, subject, verdict, Vec::new())
}

fn line_with<'a>(
    by: Option<&'a Person>,
    subject: String,
    verdict: &'a str,
    arguments: Vec<String>,
) -> Option<Line<'a>> {
    Some(Line { by, subject, verdict, arguments, said: None })
}

fn of_plan(event: &PlanEvent) -> Option<Line<'_>> {
    match event {
        PlanEvent::RevisionShown { digest, to } => line(Some(to), digest.to_string(), "shown"),
        PlanEvent::ChangesRequested { digest, by: who, comments } => {
            let (said, many) = (of_comments(comments), vec![comments.len().to_string()]);
            let line = line_with(Some(who), digest.to_string(), "changes_requested", many);
            line.map(|line| line.saying(said))
        }
        PlanEvent::PlanApproved { approval, digest, start } => {
            let subject = approval.revision_digest.to_string();
            let starts: &[u8] = match start {
                Start::AtOnce => b"at once",
                Start::Hold => b"hold",
            };
            let line = line_with(Some(&approval.by), subject, "approved", vec![digest.to_string()]);
            line.map(|line| line.saying(Digest::of(starts)))
        }
        PlanEvent::DecisionExpired { digest } => line(None, digest.to_string(), "expired"),
        PlanEvent::StepEnded { step, end: StepEnd::Skipped { by: who }, summary } => {
            let said = summary.as_ref().map(|summary| Digest::of(summary.as_bytes()));
            let line = line(Some(who), step.to_string(), "skipped");
            line.map(|line| Line { said, ..line })
        }
        PlanEvent::ExecutionStarted { plan, number } => {
            line_with(None, plan.to_string(), "started", vec![number.to_string()])
        }
        PlanEvent::PlanEnded {
            plan,
            ended,
            account: Account::Person { by: who, note },
            touched,
            touched_more,
            observation,
        } => {
            let said = Encoder::of("ended", 1)
                .optional("note", note.as_deref())
                .bytes("touched", &of_touched(touched, *touched_more).0)
                .bytes("observation", &of_observation(observation).0);
            line(Some(who), plan.to_string(), ended.name()).map(|line| line.saying(said.digest()))
        }
        PlanEvent::PlanStarted { .. }
        | PlanEvent::DraftChanged { .. }
        | PlanEvent::RevisionAdded { .. }
        | PlanEvent::BlocksSeen { .. }
        | PlanEvent::Discussed { .. }
        | PlanEvent::DecisionReminded { .. }
        | PlanEvent::StepQueued { .. }
        | PlanEvent::StepBegun { .. }
        | PlanEvent::StepEnded { .. }
        | PlanEvent::ExecutionPaused { .. }
        | PlanEvent::PlanFailed { .. }
        | PlanEvent::PlanEnded { .. } => None,
    }
}

fn of_turn(event: &TurnEvent) -> Option<Line<'_>> {
    match event {
        TurnEvent::PermissionAsked { digest, .. } => line(None, digest.to_string(), "asked"),
        TurnEvent::PermissionDecided { call, digest, permit, by: who } => {
            let words = match permit {
                Permit::Replan { text } => text.as_str(),
                Permit::Once | Permit::UntilPlanEnds | Permit::Deny => "",
            };
            let said = Digest::of(format!("{call} {words}").as_bytes());
            let verdict = match permit {
                Permit::Once => "allowed_once",
                Permit::UntilPlanEnds => "allowed_until_plan_ends",
                Permit::Deny if who.is_none() => "denied_by_nobody",
                Permit::Deny => "denied",
                Permit::Replan { .. } => "denied_for_revision",
            };
            line(who.as_ref(), digest.to_string(), verdict).map(|line| line.saying(said))
        }
        TurnEvent::CallStarted { call, plan: Some(plan), .. } => {
            line_with(None, call.to_string(), "leased", vec![plan.to_string()])
        }
        TurnEvent::CallAnswered { call, reply: ToolReply::Refused { kind, .. } } => {
            line_with(None, call.to_string(), "refused", vec![kind.clone()])
        }
        TurnEvent::DoubtSettled { call, verdict, by: who } => {
            let verdict = match verdict {
                Verdict::Happened => "happened",
                Verdict::DidNotHappen => "did_not_happen",
            };
            line(Some(who), call.to_string(), verdict)
        }
        TurnEvent::TurnFinished { turn, end: TurnEnd::Stopped { by: who } } => {
            line(Some(who), turn.to_string(), "stopped")
        }
        TurnEvent::TurnStarted { .. }
        | TurnEvent::ModelCallStarted { .. }
        | TurnEvent::ModelAnswered { .. }
        | TurnEvent::ModelCallFailed { .. }
        | TurnEvent::TurnPaused { .. }
        | TurnEvent::TurnResumed { .. }
        | TurnEvent::LimitWarned { .. }
        | TurnEvent::ModelCallAbandoned { .. }
        | TurnEvent::ModelCallOrphaned { .. }
        | TurnEvent::ViewCompacted { .. }
        | TurnEvent::CallStarted { .. }
        | TurnEvent::CallFinished { .. }
        | TurnEvent::CallAnswered { .. }
        | TurnEvent::CallAbandoned { .. }
        | TurnEvent::CallOrphaned { .. }
        | TurnEvent::CallInDoubt { .. }
        | TurnEvent::TurnFinished { .. } => None,
    }
}
