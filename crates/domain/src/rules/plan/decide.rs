//! Which plan commands may happen. Every arm either states events or refuses in words.

use std::collections::BTreeMap;

use crate::{
    model::{
        actor::{Person, Standing},
        command::{Approving, Decision, Ending, Start, Terms},
        digest::Digest,
        effect::{Declared, Envelope},
        id::PlanId,
        identity::Root,
        limits,
        plan::{
            Ended, PauseReason, Plan, PlanStatus, PlanWork, Progress, Reads, Review, RevisionHead,
            Strategy,
            approval::{Approval, POLICY_VERSION},
            event::{Account, PlanEvent},
            refusal::PlanRefusal,
            step::{HeadWork, StepEnd},
        },
        policy::{Policy, Risk},
        time::Time,
    },
    rules::plan::{
        bounds::{bounded, numbers, stale, within},
        comments as ledger,
        observe::observe_end,
    },
};

/// `/plan on`.
pub(crate) fn start(
    work: &PlanWork,
    plan: PlanId,
    strategy: Strategy,
    reads: Reads,
    by: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    match work {
        PlanWork::Active(_) => Err(PlanRefusal::WorkAlreadyActive),
        PlanWork::Inactive => {
            let (predecessor, by) = (None, Some(by.clone()));
            let (carried, claimed) = (Vec::new(), Vec::new());
            let started =
                PlanEvent::PlanStarted { plan, strategy, predecessor, reads, carried, claimed, by };
            Ok(vec![started])
        }
    }
}

/// Whether this person may decide, from where they stand, under this policy.
pub(crate) fn may_decide(
    by: &Person,
    at: Time,
    policy: &Policy,
    risk: Risk,
) -> Result<(), PlanRefusal> {
    match by.standing {
        Standing::Speaks => Err(PlanRefusal::MayNotDecide),
        Standing::Decides if policy.admits(by) => {
            policy.check_age(by, at, risk).map_err(|minutes| PlanRefusal::AskAgain { minutes })
        }
        Standing::Decides => Err(PlanRefusal::NotAnApprover {
            person: by.id.0.clone(),
            surface: by.surface.0.clone(),
        }),
    }
}

/// A revision has waited long: a person is reminded, or it can no longer be approved.
pub(crate) fn ring(work: &PlanWork, at: Time) -> Option<PlanEvent> {
    let plan = active(work).ok().filter(|plan| plan.awaits_decision())?;
    let (digest, waits) = (plan.current.as_ref()?.digest, plan.waits?);
    match (waits.expires_at, waits.remind_at, waits.remind_micros) {
        (Some(end), _, _) if end <= at => Some(PlanEvent::DecisionExpired { digest }),
        (_, Some(time), Some(every)) if time <= at => {
            Some(PlanEvent::DecisionReminded { digest, next: at.plus_micros(every.max(1)) })
        }
        (Some(_) | None, Some(_) | None, Some(_) | None) => None,
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
    Ok(vec![ending_of(plan, ended, Account::Person { by: by.clone(), note: None })])
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
            Err(PlanRefusal::NothingToStop { status: plan.status.label().into() })
        }
    }
}

/// Who decides, when, under which policy, and in which directory the work would be done.
#[derive(Clone, Copy)]
pub(crate) struct Deciding<'a> {
    pub(crate) by: &'a Person,
    pub(crate) at: Time,
    pub(crate) policy: &'a Policy,
    pub(crate) root: Option<&'a Root>,
}

/// What only a person can decide. Doubts are settled one level up: they belong to the session.
pub(crate) fn decision(
    work: &PlanWork,
    doubts_open: usize,
    deciding: Deciding<'_>,
    decision: &Decision,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let by = deciding.by;
    may_decide(by, deciding.at, deciding.policy, Risk::Usual)?;
    let plan = active(work)?;
    match decision {
        Decision::Approve(approving) => approve(plan, approving, deciding),
        Decision::RequestChanges { digest, comments } => {
            let head = decidable(plan, *digest)?;
            let (digest, comments) = (head.digest, ledger::asked(plan, head, comments)?);
            Ok(vec![PlanEvent::ChangesRequested { digest, comments, by: by.clone() }])
        }
        Decision::Reject { digest, why } => {
            decidable(plan, *digest)?;
            bounded("the reason", why.as_deref().unwrap_or_default(), limits::COMMENT_BYTES_MAX)?;
            let account = Account::Person { by: by.clone(), note: why.clone() };
            Ok(vec![ending_of(plan, Ended::Rejected, account)])
        }
        Decision::Resume => {
            let leased = plan.status.approval().map(|approval| &approval.envelope);
            let risk = risk_of(plan, leased, deciding.policy);
            may_decide(by, deciding.at, deciding.policy, risk)?;
            resume(plan, doubts_open)
        }
        Decision::SkipStep { step } => skip(plan, *step, by),
        Decision::SettleDoubt { .. } | Decision::Permit { .. } => Ok(vec![]),
    }
}

fn approve(
    plan: &Plan,
    approving: &Approving,
    deciding: Deciding<'_>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let Deciding { by, at, policy, root } = deciding;
    let Approving { digest, notes, start, on_failure, grant, terms } = approving;
    let head = approvable(plan, *digest, by)?;
    within("the list of notes", notes.len(), limits::COMMENTS_MAX)?;
    notes.iter().try_for_each(|note| bounded("a note", note, limits::COMMENT_BYTES_MAX))?;
    let envelope = leased(plan, grant.as_ref(), terms, at)?;
    may_decide(by, at, policy, risk_of(plan, Some(&envelope), policy))?;
    let approval = Approval {
        plan: plan.id,
        revision: head.number,
        revision_digest: head.digest,
        root: root.cloned(),
        envelope,
        notes: notes.clone(),
        profiles: profiles(head, terms)?,
        on_failure: *on_failure,
        rules: policy.digest(),
        policy: POLICY_VERSION,
        by: by.clone(),
        at,
    };
    Ok(approved(plan, approval, *start))
}

/// What can come of executing a plan under this lease: what is leased, and the calls that it recorded.
fn risk_of(plan: &Plan, lease: Option<&Envelope>, policy: &Policy) -> Risk {
    let calls = plan.current.iter().flat_map(|head| &head.steps).map(|step| match &step.work {
        HeadWork::Call { tool, .. } => Policy::risk_of_tool(tool),
        HeadWork::Task { .. } => Risk::Usual,
    });
    let all: Vec<_> = calls.chain(lease.map(|lease| policy.risk_of(lease))).collect();
    if all.contains(&Risk::More) { Risk::More } else { Risk::Usual }
}

/// What the approval leases: what the approver grants, else what the plan declares, else the default.
fn leased(
    plan: &Plan,
    grant: Option<&Declared>,
    terms: &Terms,
    at: Time,
) -> Result<Envelope, PlanRefusal> {
    let declared = plan.current.as_ref().and_then(|head| head.envelope.as_ref());
    let asked = grant.or(declared);
    let named = asked.into_iter().flat_map(|declared| &declared.tools);
    if let Some(tool) = named.into_iter().find(|tool| !terms.schemas.contains_key(*tool)) {
        return Err(PlanRefusal::ToolUnknown { tool: tool.clone() });
    }
    if asked.is_some_and(|declared| declared.spend_micros_max.is_some()) && !terms.priced {
        return Err(PlanRefusal::PriceUnknown);
    }
    Ok(match grant {
        Some(grant) => grant.lease(&terms.schemas, at),
        None => plan.envelope(&terms.schemas, at),
    })
}

/// The current revision, if this person may approve it now.
fn approvable<'a>(
    plan: &'a Plan,
    digest: Digest,
    by: &Person,
) -> Result<&'a RevisionHead, PlanRefusal> {
    let head = decidable(plan, digest)?;
    match head.review {
        Review::Open => {}
        Review::Withdrawn => {
            return Err(PlanRefusal::RevisionWithdrawn { number: head.number });
        }
        Review::Expired => return Err(PlanRefusal::RevisionExpired { number: head.number }),
    }
    if plan.shown_to(by) != Some(digest) {
        return Err(PlanRefusal::NotShown { number: head.number });
    }
    Ok(head)
}

/// The profiles that the steps name, as they stand now.
fn profiles(head: &RevisionHead, terms: &Terms) -> Result<BTreeMap<String, Digest>, PlanRefusal> {
    let named = head.steps.iter().filter_map(|step| match &step.work {
        HeadWork::Task { profile, .. } => Some(profile),
        HeadWork::Call { .. } => None,
    });
    named
        .map(|name| {
            let digest = terms.profiles.get(name).ok_or_else(|| PlanRefusal::ProfileUnknown {
                profile: name.clone(),
                known: terms.profiles.keys().cloned().collect(),
            })?;
            Ok((name.clone(), *digest))
        })
        .collect()
}

/// The approval, what it carries over as done, and the start.
fn approved(plan: &Plan, approval: Approval, start: Start) -> Vec<PlanEvent> {
    let digest = approval.digest();
    let mut events = vec![PlanEvent::PlanApproved { approval: Box::new(approval), digest, start }];
    let mut done = plan.carried.clone();
    for step in plan.steps() {
        let Some((from, at)) = plan.predecessor.zip(done.iter().position(|key| *key == step.key))
        else {
            continue;
        };
        done.swap_remove(at);
        events.push(step_ended(step.number, StepEnd::Carried { from }));
    }
    let carried = events.len() - 1;
    match start {
        Start::AtOnce if carried > 0 && carried == plan.steps().len() => {
            let account = Account::Steps { done: carried as u32, skipped: 0 };
            events.push(ending_of(plan, Ended::Completed, account));
        }
        Start::AtOnce => events.push(started(plan)),
        Start::Hold => {}
    }
    events
}

/// A person says that a step is not needed. The execution goes on when it is resumed.
fn skip(plan: &Plan, step: u32, by: &Person) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let status = || plan.status.label().to_owned();
    match &plan.status {
        PlanStatus::Executing(_, Progress::Paused(PauseReason::AsksPermission { .. })) => {
            return Err(PlanRefusal::PermissionPending);
        }
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_) => {}
        PlanStatus::Collecting
        | PlanStatus::Ready
        | PlanStatus::Executing(_, Progress::Running) => {
            return Err(PlanRefusal::CannotSkip { status: status() });
        }
    }
    if plan.unsettled().any(|unsettled| unsettled.number == step) {
        Ok(vec![step_ended(step, StepEnd::Skipped { by: by.clone() })])
    } else {
        Err(PlanRefusal::NoSuchStep { step, open: numbers(plan.unsettled()) })
    }
}

fn resume(plan: &Plan, doubts_open: usize) -> Result<Vec<PlanEvent>, PlanRefusal> {
    match &plan.status {
        PlanStatus::Executing(_, Progress::Paused(PauseReason::AsksPermission { .. })) => {
            Err(PlanRefusal::PermissionPending)
        }
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_)
            if doubts_open > 0 =>
        {
            Err(PlanRefusal::DoubtsOpen { count: doubts_open })
        }
        PlanStatus::Approved(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
        | PlanStatus::Failed(_) => Ok(vec![going_on(plan)]),
        PlanStatus::Collecting
        | PlanStatus::Ready
        | PlanStatus::Executing(_, Progress::Running) => {
            Err(PlanRefusal::NothingToResume { status: plan.status.label().into() })
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
            ending_of(plan, Ended::Completed, Account::Model { summary, evidence })
        }
        Report::Failed { summary } => PlanEvent::PlanFailed { summary },
        Report::Blocked { summary } => {
            PlanEvent::ExecutionPaused { reason: PauseReason::Blocked { summary } }
        }
    }
}

/// The execution goes on, or ends because every step came out meanwhile.
pub(crate) fn going_on(plan: &Plan) -> PlanEvent {
    if plan.steps().is_empty() || plan.next_step().is_some() {
        started(plan)
    } else {
        ending_of(plan, Ended::Completed, steps_word(plan))
    }
}

/// The record's word on a plan whose steps have all come out.
pub(crate) fn steps_word(plan: &Plan) -> Account {
    let skipped =
        plan.outcomes.values().filter(|end| matches!(end, StepEnd::Skipped { .. })).count();
    Account::Steps { done: (plan.steps().len() - skipped) as u32, skipped: skipped as u32 }
}

/// An execution of this plan starts or goes on.
pub(crate) fn started(plan: &Plan) -> PlanEvent {
    PlanEvent::ExecutionStarted { plan: plan.id, number: plan.executions + 1 }
}

/// A step came out, and nobody adds words to it.
pub(crate) fn step_ended(step: u32, end: StepEnd) -> PlanEvent {
    PlanEvent::StepEnded { step, end, summary: None }
}

pub(crate) fn ending_of(plan: &Plan, ended: Ended, account: Account) -> PlanEvent {
    PlanEvent::PlanEnded {
        plan: plan.id,
        ended,
        touched: plan.touched.clone(),
        touched_more: plan.touched_more,
        observation: observe_end(plan, ended, &account),
        account,
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
        (PlanStatus::Ready, Some(head)) => Err(stale(Some(digest), head)),
        (PlanStatus::Approved(approval) | PlanStatus::Executing(approval, _), _) => {
            Err(PlanRefusal::AlreadyDecided {
                revision: approval.revision,
                by: approval.by.id.0.clone(),
                surface: approval.by.surface.0.clone(),
            })
        }
        (PlanStatus::Collecting | PlanStatus::Ready | PlanStatus::Failed(_), _) => {
            Err(PlanRefusal::NothingToDecide { status: plan.status.label().into() })
        }
    }
}
