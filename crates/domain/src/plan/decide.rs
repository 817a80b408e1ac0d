//! Which plan commands may happen. Every arm either states events or refuses in words.

use std::collections::BTreeMap;

use crate::{
    actor::{Person, Standing},
    command::{Decision, Ending, Start},
    digest::Digest,
    id::{PlanId, Seq},
    identity::SessionIdentity,
    limits,
    plan::{
        Approval, Comment, Ended, POLICY_VERSION, PauseReason, Plan, PlanEvent, PlanStatus,
        PlanWork, Progress, Review, Revision, RevisionHead, Strategy, Word, refusal::PlanRefusal,
    },
    time::Time,
};

/// `/plan on`.
pub(crate) fn start(
    work: &PlanWork,
    plan: PlanId,
    strategy: Strategy,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    match (work, strategy) {
        (PlanWork::Active(_), _) => Err(PlanRefusal::WorkAlreadyActive),
        (PlanWork::Inactive, Strategy::Document) => {
            Ok(vec![PlanEvent::PlanStarted { plan, strategy, predecessor: None }])
        }
        (PlanWork::Inactive, Strategy::Collect | Strategy::Build) => {
            Err(PlanRefusal::StrategyUnavailable { strategy: strategy.name().into() })
        }
    }
}

/// `/plan off` and `/plan done`. Nothing that never ran is called complete.
pub(crate) fn end(
    work: &PlanWork,
    ending: Ending,
    by: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let plan = active(work)?;
    let ended = match (ending, &plan.status) {
        (Ending::Done, PlanStatus::Executing(..)) => Ended::Completed,
        (Ending::Done | Ending::Off, _) => Ended::Cancelled,
    };
    Ok(vec![ending_of(plan, ended, Word::Person { by: by.clone(), said: None })])
}

/// `/plan stop`, and the plan's share of `/stop`.
pub(crate) fn pause(work: &PlanWork) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let plan = active(work)?;
    match plan.status {
        PlanStatus::Executing(..) => {
            Ok(vec![PlanEvent::ExecutionPaused { reason: PauseReason::Stopped }])
        }
        PlanStatus::Collecting
        | PlanStatus::Ready
        | PlanStatus::Approved(_)
        | PlanStatus::Failed(_) => {
            Err(PlanRefusal::NothingToStop { status: plan.status.word().into() })
        }
    }
}

/// A surface showed the current revision in full.
pub(crate) fn shown(
    work: &PlanWork,
    digest: Digest,
    to: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let plan = active(work)?;
    match &plan.current {
        Some(head) if head.digest == digest && plan.shown_to(to) == Some(digest) => Ok(vec![]),
        Some(head) if head.digest == digest => {
            Ok(vec![PlanEvent::RevisionShown { digest, to: to.clone() }])
        }
        Some(_) | None => Err(PlanRefusal::ShownNotCurrent { seen: digest }),
    }
}

/// What only a person can decide. Doubts are settled one level up: they belong to the session.
pub(crate) fn decision(
    work: &PlanWork,
    doubts_open: usize,
    by: &Person,
    at: Time,
    decision: &Decision,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    if by.standing != Standing::Decides {
        return Err(PlanRefusal::MayNotDecide);
    }
    let plan = active(work)?;
    match decision {
        Decision::Approve { digest, notes, start, schemas } => {
            approve(plan, *digest, notes, *start, schemas, by, at)
        }
        Decision::RequestChanges { digest, comments } => {
            let head = decidable(plan, *digest)?;
            bounded_comments(comments)?;
            let digest = head.digest;
            Ok(vec![PlanEvent::ChangesRequested {
                digest,
                comments: comments.clone(),
                by: by.clone(),
            }])
        }
        Decision::Reject { digest, why } => {
            decidable(plan, *digest)?;
            bounded("the reason", why.as_deref().unwrap_or_default(), limits::COMMENT_BYTES_MAX)?;
            let word = Word::Person { by: by.clone(), said: why.clone() };
            Ok(vec![ending_of(plan, Ended::Rejected, word)])
        }
        Decision::Resume => resume(plan, doubts_open),
        Decision::SettleDoubt { .. } => Ok(vec![]),
    }
}

fn approve(
    plan: &Plan,
    digest: Digest,
    notes: &[String],
    start: Start,
    schemas: &BTreeMap<String, Digest>,
    by: &Person,
    at: Time,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let head = decidable(plan, digest)?;
    if head.review == Review::Withdrawn {
        return Err(PlanRefusal::RevisionWithdrawn { number: head.number });
    }
    if plan.shown_to(by) != Some(digest) {
        return Err(PlanRefusal::NotShown { number: head.number });
    }
    counted("the list of notes", notes.len())?;
    notes.iter().try_for_each(|note| bounded("a note", note, limits::COMMENT_BYTES_MAX))?;
    let approval = Approval {
        plan: plan.id,
        revision: head.number,
        revision_digest: head.digest,
        envelope: plan.envelope(schemas),
        notes: notes.to_vec(),
        policy: POLICY_VERSION,
        by: by.clone(),
        at,
    };
    let digest = approval.digest();
    let mut events = vec![PlanEvent::PlanApproved { approval, digest, start }];
    if start == Start::AtOnce {
        events.push(started(plan));
    }
    Ok(events)
}

fn resume(plan: &Plan, doubts_open: usize) -> Result<Vec<PlanEvent>, PlanRefusal> {
    match &plan.status {
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_)
            if doubts_open > 0 =>
        {
            Err(PlanRefusal::DoubtsOpen { count: doubts_open })
        }
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_) => Ok(vec![started(plan)]),
        PlanStatus::Collecting
        | PlanStatus::Ready
        | PlanStatus::Executing(_, Progress::Running) => {
            Err(PlanRefusal::NothingToResume { status: plan.status.word().into() })
        }
    }
}

/// What `plan_set_content` needs to know of the turn that calls it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authoring<'a> {
    /// The session.
    pub(crate) identity: &'a SessionIdentity,
    /// Where in the stream the turn began.
    pub(crate) turn_started: Seq,
    /// The id of a successor, should there be one.
    pub(crate) fresh: PlanId,
}

/// New content: the next revision, or a successor if the plan was already decided.
pub(crate) fn set_content(
    plan: &Plan,
    authoring: Authoring<'_>,
    markdown: &str,
    title: Option<&str>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    if markdown.trim().is_empty() {
        return Err(PlanRefusal::EmptyPlan);
    }
    bounded("plan_markdown", markdown, limits::PLAN_MARKDOWN_BYTES_MAX)?;
    bounded("the title", title.unwrap_or_default(), limits::TITLE_BYTES_MAX)?;
    let title = title.map_or_else(|| title_of(markdown), str::to_owned);
    let revision = |plan: PlanId, number: u32, strategy| {
        let revision = Revision { plan, number, strategy, title, markdown: markdown.to_owned() };
        let digest = revision.digest(authoring.identity);
        PlanEvent::RevisionAdded { revision, digest }
    };
    match &plan.status {
        PlanStatus::Collecting | PlanStatus::Ready => {
            let number = plan.current.as_ref().map_or(0, |head| head.number) + 1;
            Ok(vec![revision(plan.id, number, plan.strategy)])
        }
        PlanStatus::Approved(_) | PlanStatus::Executing(..) | PlanStatus::Failed(_)
            if plan.approved_seq.is_some_and(|approved| authoring.turn_started < approved) =>
        {
            Err(PlanRefusal::TurnOlderThanApproval)
        }
        PlanStatus::Approved(_) | PlanStatus::Executing(..) | PlanStatus::Failed(_) => {
            let successor = authoring.fresh;
            Ok(vec![
                ending_of(plan, Ended::Superseded, Word::Successor { plan: successor }),
                PlanEvent::PlanStarted {
                    plan: successor,
                    strategy: plan.strategy,
                    predecessor: Some(plan.id),
                },
                revision(successor, 1, plan.strategy),
            ])
        }
    }
}

/// What the model reports of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// It is done.
    Done { summary: String, evidence: Option<String> },
    /// It failed.
    Failed { summary: String },
    /// It cannot go on without a person.
    Blocked { summary: String },
}

/// `plan_report`, called inside an execution of this plan.
pub(crate) fn report(plan: &Plan, report: Report) -> PlanEvent {
    match report {
        Report::Done { summary, evidence } => {
            ending_of(plan, Ended::Completed, Word::Model { summary, evidence })
        }
        Report::Failed { summary } => PlanEvent::PlanFailed { summary },
        Report::Blocked { summary } => {
            PlanEvent::ExecutionPaused { reason: PauseReason::Blocked { summary } }
        }
    }
}

/// An execution of this plan starts or goes on.
pub(crate) fn started(plan: &Plan) -> PlanEvent {
    PlanEvent::ExecutionStarted { plan: plan.id, number: plan.executions + 1 }
}

pub(crate) fn ending_of(plan: &Plan, ended: Ended, word: Word) -> PlanEvent {
    PlanEvent::PlanEnded {
        plan: plan.id,
        ended,
        word,
        touched: plan.touched.clone(),
        touched_more: plan.touched_more,
    }
}

pub(crate) fn active(work: &PlanWork) -> Result<&Plan, PlanRefusal> {
    match work {
        PlanWork::Active(plan) => Ok(plan),
        PlanWork::Inactive => Err(PlanRefusal::WorkInactive),
    }
}

/// The current revision, if it is the one that the person read and nobody decided yet.
fn decidable(plan: &Plan, digest: Digest) -> Result<&RevisionHead, PlanRefusal> {
    match (&plan.status, &plan.current) {
        (PlanStatus::Ready, Some(head)) if head.digest == digest => Ok(head),
        (PlanStatus::Ready, Some(head)) => Err(PlanRefusal::StaleDecision {
            seen: digest,
            current: head.digest,
            current_number: head.number,
        }),
        (PlanStatus::Approved(approval) | PlanStatus::Executing(approval, _), _) => {
            Err(PlanRefusal::AlreadyDecided {
                revision: approval.revision,
                by: approval.by.id.0.clone(),
                surface: approval.by.surface.0.clone(),
            })
        }
        (PlanStatus::Collecting | PlanStatus::Ready | PlanStatus::Failed(_), _) => {
            Err(PlanRefusal::NothingToDecide { status: plan.status.word().into() })
        }
    }
}

fn bounded_comments(comments: &[Comment]) -> Result<(), PlanRefusal> {
    if comments.iter().all(|comment| comment.text.trim().is_empty()) {
        return Err(PlanRefusal::NoComments);
    }
    counted("the list of comments", comments.len())?;
    comments
        .iter()
        .try_for_each(|comment| bounded("a comment", &comment.text, limits::COMMENT_BYTES_MAX))
}

fn counted(what: &str, size: usize) -> Result<(), PlanRefusal> {
    let limit = limits::COMMENTS_MAX;
    if size <= limit {
        Ok(())
    } else {
        Err(PlanRefusal::TooLong { what: what.into(), size, limit })
    }
}

fn bounded(what: &str, text: &str, limit: usize) -> Result<(), PlanRefusal> {
    let size = text.len();
    if size <= limit {
        Ok(())
    } else {
        Err(PlanRefusal::TooLong { what: what.into(), size, limit })
    }
}

/// The first heading, or the first line, cut to the longest title.
fn title_of(markdown: &str) -> String {
    let lines = || markdown.lines().map(str::trim).filter(|line| !line.is_empty());
    let line =
        lines().find(|line| line.starts_with('#')).or_else(|| lines().next()).unwrap_or_default();
    let title = line.trim_start_matches('#').trim();
    let mut end = title.len().min(limits::TITLE_BYTES_MAX);
    while !title.is_char_boundary(end) {
        end -= 1;
    }
    if title.is_empty() { "Plan".into() } else { title[..end].to_owned() }
}
