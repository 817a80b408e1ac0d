//! A call that waits for a person: asked, decided once, or denied when nobody did in time.

use crate::{
    model::{
        actor::Person,
        command::{Permit, StartingCall},
        digest::Digest,
        id::{CallId, PlanId},
        limits,
        plan::{PauseReason, event::PlanEvent, refusal::PlanRefusal, review::Comment},
        refusal::Refusal,
        session::{Session, SessionEvent},
        time::Time,
        turn::{
            Call, ToolReply,
            ask::Ask,
            ending::{answers, event, moved_on, stopped, unrun},
            event::{TurnEnd, TurnEvent},
        },
    },
    rules::plan::comments::asked,
};

/// The call asks.
pub(crate) fn ask(
    session: &Session,
    call: &Call,
    starting: &StartingCall,
    why: String,
    plan: Option<PlanId>,
    expires: Time,
) -> Vec<SessionEvent> {
    let (requested, Some(facts)) = (&call.requested, starting.tool.clone()) else {
        return Vec::new();
    };
    let digest = Ask::digest_of(&session.key(), session.version, requested, facts.schema);
    let (call, aim) = (requested.id, starting.aim.clone());
    vec![event(TurnEvent::PermissionAsked { call, digest, facts, aim, why, expires, plan })]
}

/// A person decides on the call that waits.
pub(crate) fn decide(
    session: &Session,
    at: Time,
    by: &Person,
    digest: Digest,
    permit: &Permit,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ask = session.ask.as_ref().filter(|ask| ask.digest == digest);
    let ask = ask.ok_or(Refusal::NoSuchAsk)?;
    if at >= ask.expires {
        return Err(Refusal::AskExpired);
    }
    let mut events = vec![decided(ask, permit.clone(), Some(by))];
    match permit {
        Permit::Once => {}
        Permit::UntilPlanEnds => {
            let plan = session.plan().filter(|plan| ask.plan == Some(plan.id));
            let plan = plan.ok_or(Refusal::NoPlanToGrantTo)?;
            ask.aim.pattern().ok_or(Refusal::NoPattern)?;
            if plan.grants.len() >= limits::GRANTS_MAX {
                let (what, size) = ("the list of grants".into(), plan.grants.len() + 1);
                let limit = limits::GRANTS_MAX;
                return Err(PlanRefusal::TooLong { what, size, limit }.into());
            }
        }
        Permit::Deny => {
            events.push(refused(ask.call, "permission_denied", "a person denied this call"));
        }
        Permit::Replan { text } => {
            let plan = session.plan().filter(|plan| ask.plan == Some(plan.id));
            let plan = plan.ok_or(Refusal::NoPlanToGrantTo)?;
            let head = plan.current.as_ref().ok_or(Refusal::NoPlanToGrantTo)?;
            let comments = asked(plan, head, &[Comment::on_the_whole(text)])?;
            events.extend(stopped(session, by));
            let reason = PauseReason::Stopped;
            events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
            events.push(SessionEvent::Plan(PlanEvent::ChangesRequested {
                digest: head.digest,
                comments,
                by: by.clone(),
            }));
        }
    }
    Ok(events)
}

/// Nobody decided in time: the call is denied, and an execution waits for a person.
pub(crate) fn expire(
    session: &Session,
    at: Time,
    call: CallId,
) -> Result<Vec<SessionEvent>, Refusal> {
    let ask = session.ask.as_ref().filter(|ask| ask.call == call && at >= ask.expires);
    let ask = ask.ok_or_else(|| moved_on("this call does not wait, or not long enough"))?;
    let mut events = vec![decided(ask, Permit::Deny, None)];
    events.push(refused(call, "permission_expired", "nobody allowed this call in time"));
    if let (Some(_), Some(turn)) = (ask.plan, &session.turn) {
        let rest =
            unrun(turn, "permission_expired", "not run: an earlier call was not allowed in time");
        events.extend(rest.into_iter().filter(|rest| !answers(rest, call)));
        let end = turn.planned.map_or(TurnEnd::Answered, |plan| TurnEnd::Planned { plan });
        events.push(event(TurnEvent::TurnFinished { turn: turn.id, end }));
        let reason = PauseReason::PermissionExpired { tool: ask.tool.clone() };
        events.push(SessionEvent::Plan(PlanEvent::ExecutionPaused { reason }));
    }
    Ok(events)
}

fn decided(ask: &Ask, permit: Permit, by: Option<&Person>) -> SessionEvent {
    let (call, digest, by) = (ask.call, ask.digest, by.cloned());
    event(TurnEvent::PermissionDecided { call, digest, permit, by })
}

fn refused(call: CallId, kind: &str, words: &str) -> SessionEvent {
    let reply = ToolReply::Refused { kind: kind.into(), words: words.into() };
    event(TurnEvent::CallAnswered { call, reply })
}
