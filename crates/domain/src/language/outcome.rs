//! How a turn came out, and what a surface says of it. Derived, never written into an answer.

use serde::{Deserialize, Serialize};

use crate::{
    model::{
        digest::Digest,
        effect::Envelope,
        id::PlanId,
        plan::{
            Begun, Plan, PlanStatus, Progress, Review, Strategy,
            observation::Basis,
            step::{StepEnd, StepHead},
        },
        session::{EndedPlan, Session, is_foreign},
        turn::{FailureKind, event::TurnEnd},
    },
    rules::plan::observe::observe,
};

/// How a turn came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model's words are the answer.
    Answer {
        /// Its words.
        text: String,
    },
    /// The turn wrote or reported on a plan.
    Plan {
        /// The plan.
        plan_id: PlanId,
        /// Where it stands now, as people read it.
        status: String,
        /// The planner's word, while nobody decided: draft or proposal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planner: Option<String>,
        /// What the model said beside it.
        text: String,
    },
    /// It failed.
    Failure {
        /// Who can mend it.
        kind: FailureKind,
        /// In words.
        message: String,
    },
    /// Someone or something ended it.
    Interruption {
        /// In words.
        reason: String,
    },
}

impl TurnOutcome {
    /// The outcome of a turn that ended so, in a session that stands so, with these last words.
    #[must_use]
    pub fn of(end: &TurnEnd, session: &Session, text: &str) -> Self {
        match end {
            TurnEnd::Answered => Self::Answer { text: text.into() },
            TurnEnd::Planned { plan } => {
                let active = session.plan().filter(|active| active.id == *plan);
                let ended = session.last_ended.as_ref().filter(|ended| ended.plan == *plan);
                let status = match (active, ended) {
                    (Some(plan), _) => plan.status.label(),
                    (None, Some(ended)) => ended.ended.label(),
                    (None, None) => "Superseded",
                };
                let planner = active.and_then(|plan| plan.status.planner_word());
                let planner = planner.map(str::to_owned);
                Self::Plan { plan_id: *plan, status: status.into(), planner, text: text.into() }
            }
            TurnEnd::Failed { failure } => {
                Self::Failure { kind: failure.kind, message: failure.message.clone() }
            }
            TurnEnd::Stopped { .. } => Self::Interruption { reason: "stopped".into() },
            TurnEnd::Compacted { messages: 0 } => {
                Self::Answer { text: "there is nothing to sum up yet".into() }
            }
            TurnEnd::Compacted { messages } => Self::Answer {
                text: format!(
                    "{messages} messages are summed up for the model; everything stays recorded"
                ),
            },
            TurnEnd::Yielded => Self::Interruption { reason: "it makes way for you".into() },
            TurnEnd::InDoubt { .. } => {
                Self::Interruption { reason: "the outcome of a call is unknown".into() }
            }
        }
    }
}

/// What a surface says of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutgoingResponse {
    /// Words.
    pub text: String,
    /// The plan, where it matters.
    pub card: Option<PlanCard>,
    /// What the person can say next.
    pub quick_commands: Vec<String>,
}

/// A plan as a surface shows it before anyone decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanCard {
    /// The plan.
    pub plan_id: PlanId,
    /// How it is written; none once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Its title.
    pub title: String,
    /// Where it stands, as people read it.
    pub status: String,
    /// The current revision.
    pub revision: Option<u32>,
    /// Its digest.
    pub digest: Option<Digest>,
    /// What approving it allows, or has allowed.
    pub allows: Vec<String>,
    /// What came from outside and was read before it was written, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// Why it waits, if it does.
    pub waits: Option<String>,
    /// By whose word it ended, and what they say, if it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
    /// Who says that it is done, if it ended as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// What was observed of its work: calls that ran, files that changed, hosts that were reached.
    pub observed: Vec<String>,
    /// The steps for which no call was reported, once it ended as done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// Its steps, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRow>,
    /// How many steps its draft has, if one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<usize>,
}

/// A step as a surface lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRow {
    /// Its number.
    pub number: u32,
    /// In a few words.
    pub words: String,
    /// How it came out, as people read it; none while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_out: Option<String>,
}

impl OutgoingResponse {
    /// What to say of this outcome. `would_lease` is what approving now would allow.
    #[must_use]
    pub fn of(outcome: &TurnOutcome, session: &Session, would_lease: &Envelope) -> Self {
        let card = || PlanCard::of(session, would_lease);
        match outcome {
            TurnOutcome::Answer { text } => {
                Self { text: text.clone(), card: None, quick_commands: Vec::new() }
            }
            TurnOutcome::Plan { text, .. } => {
                Self { text: text.clone(), card: card(), quick_commands: quick_commands(session) }
            }
            TurnOutcome::Failure { message, .. } => Self {
                text: message.clone(),
                card: session.plan().and_then(|_| card()),
                quick_commands: quick_commands(session),
            },
            TurnOutcome::Interruption { reason } => Self {
                text: reason.clone(),
                card: session.plan().and_then(|_| card()),
                quick_commands: quick_commands(session),
            },
        }
    }
}

impl PlanCard {
    /// The card of the session's plan, or of the one that ended last.
    #[must_use]
    pub fn of(session: &Session, would_lease: &Envelope) -> Option<Self> {
        if let Some(plan) = session.plan() {
            let head = plan.current.as_ref();
            let envelope =
                plan.status.approval().map_or(would_lease, |approval| &approval.envelope);
            let waits = match &plan.status {
                PlanStatus::Executing(_, Progress::Paused(reason)) => Some(reason.in_words()),
                PlanStatus::Approved(_) => Some("approved and held; /plan resume starts it".into()),
                PlanStatus::Failed(_) => {
                    Some("the model reported failure; /plan resume tries again".into())
                }
                PlanStatus::Ready if !plan.awaits_decision() => {
                    Some(match head.map(|head| head.review) {
                        Some(Review::Expired) => {
                            "nobody decided in time; a newer revision is needed".into()
                        }
                        Some(Review::Open | Review::Withdrawn) | None => {
                            "changes were requested; a newer revision is needed".into()
                        }
                    })
                }
                PlanStatus::Executing(_, Progress::Running) => plan.begun.as_ref().map(|begun| {
                    let Begun { step, title, by } = begun;
                    format!("{by} was given step {step} ({title}) and has not reported it yet")
                }),
                PlanStatus::Collecting | PlanStatus::Ready => None,
            };
            return Some(Self {
                plan_id: plan.id,
                strategy: Some(plan.strategy),
                title: head.map_or_else(String::new, |head| head.title.clone()),
                status: plan.status.label().into(),
                revision: head.map(|head| head.number),
                digest: head.map(|head| head.digest),
                allows: allows(session, envelope),
                outside: outside(session),
                waits,
                claimed: None,
                basis: None,
                observed: observe(plan).in_words(&plan.touched, plan.touched_more),
                gaps: Vec::new(),
                steps: steps(session, plan),
                drafted: plan.draft.as_ref().map(|draft| draft.steps.len()),
            });
        }
        session.last_ended.as_ref().map(Self::of_ended)
    }

    fn of_ended(ended: &EndedPlan) -> Self {
        let observation = &ended.observation;
        let basis = observation.basis;
        Self {
            plan_id: ended.plan,
            strategy: None,
            title: ended.title.clone(),
            status: ended.ended.label().into(),
            revision: None,
            digest: None,
            allows: Vec::new(),
            outside: None,
            waits: None,
            claimed: Some(observation.claim(&ended.account)),
            basis,
            observed: observation.in_words(&ended.touched, ended.touched_more),
            gaps: basis.map(|_| observation.gaps()).unwrap_or_default(),
            steps: Vec::new(),
            drafted: None,
        }
    }
}

/// What approving allows, or has allowed, in words.
#[must_use]
pub fn allows(session: &Session, envelope: &Envelope) -> Vec<String> {
    let agent = "let the agent work with its own tools, which Planwright neither sees nor limits";
    let foreign = is_foreign(session).then(|| agent.to_owned());
    let allowed: Vec<_> = foreign.into_iter().chain(envelope.in_words()).collect();
    let place = session.root.as_ref().map(|root| format!("work in {}", root.0));
    place.into_iter().chain(allowed).collect()
}

/// What came from outside and was read before the current revision was written, in words; nothing, if nothing did.
#[must_use]
pub fn outside(session: &Session) -> Option<String> {
    let head = session.plan()?.current.as_ref()?;
    if is_foreign(session) {
        return Some("Written by an agent that reads what Planwright does not see.".into());
    }
    let tools: Vec<_> = head.outside.iter().map(String::as_str).collect();
    (!tools.is_empty()).then(|| {
        format!(
            "Written after reading what came from outside ({}), which may have steered it.",
            tools.join(", ")
        )
    })
}

/// The tools of this envelope that this machine does not confine, in words.
#[must_use]
pub fn unconfined<'a>(envelope: &Envelope, tools: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = tools.filter(|name| envelope.tools.contains_key(*name)).collect();
    let words = "unconfined: on this machine they reach whatever the server's user does";
    (!names.is_empty()).then(|| format!("use {} {words}", names.join(", ")))
}

/// The steps of the current revision, and how each came out.
fn steps(session: &Session, plan: &Plan) -> Vec<StepRow> {
    let row = |step: &StepHead| {
        let doubted = session
            .doubts
            .values()
            .any(|doubt| doubt.plan == Some(plan.id) && doubt.step == Some(step.number));
        let ended = plan.outcomes.get(&step.number).map(|end| match (end, plan.strategy) {
            // Only a recorded call is the work itself; what another step came to is the model's report.
            (StepEnd::Done, Strategy::Build | Strategy::Document) => "reported done",
            (end, _) => end.label(),
        });
        let came_out = if doubted { Some("in doubt") } else { ended }.map(str::to_owned);
        StepRow { number: step.number, words: step.in_words().to_owned(), came_out }
    };
    plan.steps().iter().map(row).collect()
}

/// What a person can say next, given where the plan stands.
#[must_use]
pub fn quick_commands(session: &Session) -> Vec<String> {
    if let Some(ask) = &session.ask {
        let id = ask.digest.short();
        let lasting = ask.plan.and_then(|_| ask.aim.pattern()).map(|_| format!("/allow {id} plan"));
        let replan = ask.plan.map(|_| "/plan replan <text>".to_owned());
        let words = [Some(format!("/allow {id}")), lasting, Some(format!("/deny {id}")), replan];
        return words.into_iter().flatten().collect();
    }
    if session.turn.as_ref().is_some_and(|turn| turn.paused.is_some()) {
        return vec!["/limits raise".into(), "/limits".into(), "/stop".into()];
    }
    let Some(plan) = session.plan() else {
        let asks = session.auto.asks();
        return if asks { vec!["/auto resume".into(), "/auto off".into()] } else { Vec::new() };
    };
    let words: &[&str] = match &plan.status {
        PlanStatus::Ready if plan.awaits_decision() => {
            &["/plan show", "/plan approve", "/plan changes <text>", "/plan reject"]
        }
        PlanStatus::Approved(_)
        | PlanStatus::Failed(_)
        | PlanStatus::Executing(_, Progress::Paused(_))
            if plan.unsettled().next().is_some() =>
        {
            &["/plan resume", "/plan skip <step>", "/plan off"]
        }
        PlanStatus::Approved(_)
        | PlanStatus::Failed(_)
        | PlanStatus::Executing(_, Progress::Paused(_)) => &["/plan resume", "/plan off"],
        PlanStatus::Executing(_, Progress::Running) => &["/plan stop", "/stop"],
        PlanStatus::Collecting | PlanStatus::Ready => &["/plan status", "/plan off"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}
