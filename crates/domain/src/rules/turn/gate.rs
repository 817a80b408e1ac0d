//! The gate: every effect passes here, inside the decision that starts it. No setting opens it.
//!
//! Reads run. The rest runs under the lease of an approved plan that executes, or by a person's
//! permission; everything else asks.

use std::collections::BTreeSet;

use crate::model::{
    command::StartingCall,
    effect::{Effect, ToolFacts},
    id::PlanId,
    plan::{Plan, PlanStatus, Progress},
    session::Session,
    time::Time,
    turn::{Call, CallKind, Turn},
};

/// What the gate says to one call.
pub(crate) enum Gate {
    /// It may start, under the lease of this plan or because it needs none.
    Open(Option<PlanId>),
    /// A person decides; the execution of this plan waits for it.
    Ask { why: String, plan: Option<PlanId> },
    /// It may not.
    Shut { kind: &'static str, words: String },
    /// It is leased, but the tool is not the one that was leased.
    Changed,
}

/// What the gate says to a call that is about to start.
pub(crate) fn gate(
    session: &Session,
    turn: &Turn,
    at: Time,
    pending: &Call,
    starting: &StartingCall,
) -> Gate {
    let name = &pending.requested.tool;
    if pending.step.is_some() {
        return replay(session, turn, pending, starting.tool.as_ref());
    }
    let Some(facts) = &starting.tool else {
        let words = format!("there is no tool {name} any more");
        return Gate::Shut { kind: "unknown_tool", words };
    };
    if !turn.may_use(name) {
        let profile = turn.profile.as_ref().map_or("", |profile| &profile.name);
        let words = format!("policy_denied: the profile {profile} may not use {name}");
        return Gate::Shut { kind: "policy_denied", words };
    }
    match facts.effect {
        Effect::Internal | Effect::Read => return Gate::Open(None),
        Effect::Write | Effect::External => {}
    }
    let plan = leasing_plan(session, turn);
    let id = plan.map(|plan| plan.id);
    match (pending.permit, plan.and_then(|plan| Some((plan, plan.status.approval()?)))) {
        (Some(schema), _) if schema == facts.schema => Gate::Open(id),
        (Some(_), _) => Gate::Ask { why: format!("{name} changed since it was allowed"), plan: id },
        (None, None) => Gate::Ask {
            why: format!("{name} changes things, and no approved plan leases it"),
            plan: None,
        },
        (None, Some((plan, approval))) => {
            let granted = plan.grants.iter().any(|grant| {
                grant.tool == *name
                    && grant.schema == facts.schema
                    && grant.scope.covers(&starting.aim)
            });
            match approval.envelope.excludes(name, &starting.aim, plan.calls_made, at) {
                None if approval.envelope.tools.get(name) == Some(&facts.schema) => Gate::Open(id),
                None => Gate::Changed,
                Some(_) if granted => Gate::Open(id),
                Some(why) => Gate::Ask { why, plan: id },
            }
        }
    }
}

/// The hosts that a call of this tool may reach: those of the lease, if it leases the tool as it is.
#[must_use]
pub fn leased_hosts(
    session: &Session,
    tool: &str,
    facts: &ToolFacts,
    at: Time,
) -> BTreeSet<String> {
    let plan = session.turn.as_ref().and_then(|turn| leasing_plan(session, turn));
    let lease = plan.and_then(|plan| plan.status.approval()).map(|approval| &approval.envelope);
    let lease = lease.filter(|lease| {
        let is_over = lease.expires_at.is_some_and(|end| end <= at);
        lease.tools.get(tool) == Some(&facts.schema) && !is_over
    });
    lease.map(|lease| lease.hosts.clone()).unwrap_or_default()
}

/// A recorded call runs as it was approved, by the tool as it was approved, or not at all.
fn replay(session: &Session, turn: &Turn, pending: &Call, tool: Option<&ToolFacts>) -> Gate {
    let recorded = match &pending.requested.kind {
        CallKind::Tool(facts) => Some(facts),
        CallKind::Plan | CallKind::Unusable { .. } => None,
    };
    match leasing_plan(session, turn) {
        Some(plan) if tool.is_some() && tool == recorded => Gate::Open(Some(plan.id)),
        Some(_) => Gate::Changed,
        None => Gate::Shut {
            kind: "policy_denied",
            words: "policy_denied: the plan does not run any more".into(),
        },
    }
}

/// The plan whose lease this turn has: it executes that plan, the plan runs, and what was approved
/// is what is current.
pub(crate) fn leasing_plan<'a>(session: &'a Session, turn: &Turn) -> Option<&'a Plan> {
    let plan = session.plan().filter(|plan| turn.executes() == Some(plan.id) && !turn.reported)?;
    match (&plan.status, &plan.current) {
        (PlanStatus::Executing(approval, Progress::Running), Some(head))
            if approval.plan == plan.id && approval.revision_digest == head.digest =>
        {
            Some(plan)
        }
        _ => None,
    }
}
