//! The decision log: who decided what, where, on which digest, and what the gate said; hash-chained.
//!
//! Every entry is folded into the head of its session's chain. A batch in which somebody decided, or was
//! asked to, ends with the head as it then stands; a journal in which an entry was changed, dropped or
//! moved does not fold to it, and is corrupt.

use serde::{Deserialize, Serialize};

use crate::{
    actor::Person,
    command::{Permit, Verdict},
    digest::{Digest, Encoder},
    id::Seq,
    identity::SessionIdentity,
    plan::{
        event::{PlanEvent, Word},
        step::StepEnd,
    },
    session::{Session, SessionEvent, life::LifeEvent},
    turn::{
        Told,
        event::{TurnEnd, TurnEvent},
    },
};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// What happened, by name.
    pub kind: String,
    /// Who decided; nobody, where the runtime did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Where they stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// What it is about: a digest, a call, a step.
    pub subject: String,
    /// What was decided, or what the gate said.
    pub verdict: String,
}

/// The head of a chain in which nothing was decided yet.
#[must_use]
pub fn beginning(identity: &SessionIdentity) -> Digest {
    Encoder::of("log").field("session", &identity.to_string()).digest()
}

/// The head after one more entry.
#[must_use]
pub fn head_after(head: Digest, seq: Seq, entry: &Entry) -> Digest {
    Encoder::of("log-entry")
        .bytes("head", &head.0)
        .number("seq", seq.0)
        .field("kind", &entry.kind)
        .optional("who", entry.who.as_deref())
        .optional("surface", entry.surface.as_deref())
        .field("subject", &entry.subject)
        .field("verdict", &entry.verdict)
        .digest()
}

/// The head that these events, coming next in this session, end with; none if nobody decided in them.
pub(crate) fn anchor(session: &Session, events: &[SessionEvent]) -> Option<Digest> {
    let seqs = (session.version.0 + 1..).map(Seq);
    let entries = seqs.zip(events).filter_map(|(seq, event)| Some((seq, Entry::of(event)?)));
    let entries: Vec<_> = entries.collect();
    if !entries.iter().any(|(_, entry)| entry.who.is_some() || entry.kind == "permission_asked") {
        return None;
    }
    Some(entries.iter().fold(session.log, |head, (seq, entry)| head_after(head, *seq, entry)))
}

impl Entry {
    /// What the log says of an event; nothing of most.
    #[must_use]
    pub fn of(event: &SessionEvent) -> Option<Self> {
        let kind = event.kind();
        let by = |by: Option<&Person>, subject: String, verdict: String| {
            Some(Self {
                kind: kind.to_owned(),
                who: by.map(|by| by.id.0.clone()),
                surface: by.map(|by| by.surface.0.clone()),
                subject,
                verdict,
            })
        };
        match event {
            SessionEvent::Plan(event) => match event {
                PlanEvent::RevisionShown { digest, to } => {
                    by(Some(to), digest.to_string(), "shown".into())
                }
                PlanEvent::ChangesRequested { digest, by: who, comments } => {
                    by(Some(who), digest.to_string(), format!("{} comments", comments.len()))
                }
                PlanEvent::PlanApproved { approval, digest, .. } => by(
                    Some(&approval.by),
                    approval.revision_digest.to_string(),
                    format!("approved, record {digest}"),
                ),
                PlanEvent::DecisionExpired { digest } => {
                    by(None, digest.to_string(), "expired".into())
                }
                PlanEvent::StepEnded { step, end: StepEnd::Skipped { by: who }, .. } => {
                    by(Some(who), format!("step {step}"), "skipped".into())
                }
                PlanEvent::ExecutionStarted { plan, number } => {
                    by(None, plan.to_string(), format!("execution {number}"))
                }
                PlanEvent::PlanEnded {
                    plan, ended, word: Word::Person { by: who, .. }, ..
                } => by(Some(who), plan.to_string(), ended.word().into()),
                PlanEvent::PlanStarted { .. }
                | PlanEvent::DraftChanged { .. }
                | PlanEvent::RevisionAdded { .. }
                | PlanEvent::DecisionReminded { .. }
                | PlanEvent::StepQueued { .. }
                | PlanEvent::StepBegun { .. }
                | PlanEvent::StepEnded { .. }
                | PlanEvent::ExecutionPaused { .. }
                | PlanEvent::PlanFailed { .. }
                | PlanEvent::PlanEnded { .. } => None,
            },
            SessionEvent::AgentCalled { agent, tool, told: Told::Refused { kind, .. }, .. } => {
                by(None, tool.clone(), format!("refused to {agent}: {kind}"))
            }
            SessionEvent::Turn(event) => match event {
                TurnEvent::PermissionAsked { digest, why, .. } => {
                    by(None, digest.to_string(), why.clone())
                }
                TurnEvent::PermissionDecided { digest, permit, by: who, .. } => {
                    let verdict = match permit {
                        Permit::Once => "allowed once",
                        Permit::UntilPlanEnds => "allowed until the plan ends",
                        Permit::Deny if who.is_none() => "denied: nobody decided in time",
                        Permit::Deny => "denied",
                        Permit::Replan { .. } => "denied: to be revised",
                    };
                    by(who.as_ref(), digest.to_string(), verdict.into())
                }
                TurnEvent::CallStarted { call, plan: Some(plan), .. } => {
                    by(None, call.to_string(), format!("open: leased by plan {plan}"))
                }
                TurnEvent::CallAnswered { call, told: Told::Refused { kind, .. } } => {
                    by(None, call.to_string(), format!("shut: {kind}"))
                }
                TurnEvent::DoubtSettled { call, verdict, by: who } => {
                    let verdict = match verdict {
                        Verdict::Happened => "happened",
                        Verdict::DidNotHappen => "did not happen",
                    };
                    by(Some(who), call.to_string(), verdict.into())
                }
                TurnEvent::TurnFinished { turn, end: TurnEnd::Stopped { by: who } } => {
                    by(Some(who), turn.to_string(), "stopped".into())
                }
                TurnEvent::TurnStarted { .. }
                | TurnEvent::ModelCallStarted { .. }
                | TurnEvent::ModelAnswered { .. }
                | TurnEvent::ModelCallFailed { .. }
                | TurnEvent::ModelCallOrphaned { .. }
                | TurnEvent::ViewCompacted { .. }
                | TurnEvent::CallStarted { .. }
                | TurnEvent::CallFinished { .. }
                | TurnEvent::CallAnswered { .. }
                | TurnEvent::CallOrphaned { .. }
                | TurnEvent::CallInDoubt { .. }
                | TurnEvent::TurnFinished { .. } => None,
            },
            SessionEvent::Life(LifeEvent::Deleted { by: who }) => {
                by(Some(who), "session".into(), "deleted".into())
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
            | SessionEvent::Logged { .. } => None,
        }
    }
}
