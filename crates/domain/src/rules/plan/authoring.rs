//! How a plan is written: content, recorded calls, steps, and the revision that comes of them.
//!
//! Every way ends in [`added`]: the next revision, or a successor if the plan was already decided.

use std::collections::BTreeMap;

use crate::{
    model::{
        actor::Person,
        digest::Digest,
        effect::Declared,
        given::Given,
        id::{PlanId, Seq},
        identity::SessionKey,
        limits,
        plan::{
            Ended, Plan, PlanStatus, Revision, Strategy,
            draft::{self, Brief, Draft},
            event::{Account, DraftChange, PlanEvent},
            refusal::PlanRefusal,
            review::{Author, Reply},
            step::{PlanStep, StepEnd, StepHead, StepWork},
        },
        turn::{CallKind, RequestedCall},
    },
    rules::plan::{
        bounds::{bounded, stale},
        comments,
        decide::ending_of,
        front_matter, rendering,
    },
};

/// What writing needs to know of the turn that does it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authoring<'a> {
    /// The session.
    pub(crate) session: &'a SessionKey,
    /// Where in the stream the turn began.
    pub(crate) turn_started: Seq,
    /// What the decision needs from outside.
    pub(crate) given: &'a Given,
}

/// `plan_set_content`: the whole document.
pub(crate) fn set_content(
    plan: &Plan,
    authoring: Authoring<'_>,
    markdown: &str,
    title: Option<&str>,
    replies: Vec<Reply>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let said = Authorship { author: Author::Model, replies: comments::answered(plan, replies)? };
    added(plan, authoring, document(markdown, title)?, said)
}

/// The document as a person leaves it.
#[derive(Clone, Copy)]
pub(crate) struct Edited<'a> {
    pub(crate) markdown: &'a str,
    /// Whether words that somebody suggested are taken over.
    pub(crate) suggested: bool,
}

/// A person writes the document: a revision by them, in which their comments are addressed.
pub(crate) fn edit(
    plan: &Plan,
    authoring: Authoring<'_>,
    base: Option<Digest>,
    edited: Edited<'_>,
    by: &Person,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let Edited { markdown, suggested } = edited;
    if plan.strategy != Strategy::Document {
        return Err(PlanRefusal::NotADocument { strategy: plan.strategy.name().into() });
    }
    if let Some(head) = plan.current.as_ref().filter(|head| Some(head.digest) != base) {
        return Err(stale(base, head));
    }
    let replies = plan.comments_open.difference(&plan.resolved);
    let replies =
        replies.map(|comment| Reply { comment: *comment, declined: None, answer: None }).collect();
    let said = Authorship { author: Author::Person(by.clone()), replies };
    let mut events = added(plan, authoring, document(markdown, None)?, said)?;
    // What somebody writes they have seen; what they take over they may not have read.
    if let Some(PlanEvent::RevisionAdded { digest, .. }) = events.last()
        && !suggested
    {
        events.extend(rendering::written(plan, *digest, markdown, by));
    }
    Ok(events)
}

/// A document, read.
fn document(markdown: &str, title: Option<&str>) -> Result<Written, PlanRefusal> {
    if markdown.trim().is_empty() {
        return Err(PlanRefusal::EmptyPlan);
    }
    bounded("plan_markdown", markdown, limits::PLAN_MARKDOWN_BYTES_MAX)?;
    bounded("the title", title.unwrap_or_default(), limits::TITLE_BYTES_MAX)?;
    let title = title.map_or_else(|| title_of(markdown), str::to_owned);
    let envelope = front_matter::declared(markdown)?;
    let (markdown, steps, brief) = (markdown.into(), Vec::new(), None);
    Ok(Written { title, markdown, steps, brief, envelope })
}

/// A call becomes a step instead of running.
pub(crate) fn record(plan: &Plan, call: &RequestedCall) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let CallKind::Tool(facts) = &call.kind else { return Ok(Vec::new()) };
    bounded("the arguments of a step", &call.arguments, limits::STEP_BYTES_MAX)?;
    let recorded = plan.draft.as_ref().map_or(0, |draft| draft.steps.len());
    let number = room_for_one(recorded)?;
    let (tool, arguments) = (call.tool.clone(), call.arguments.clone());
    let work = StepWork::Call { tool, arguments, facts: facts.clone() };
    Ok(vec![changed(DraftChange::StepAdded { step: PlanStep { number, work } })])
}

/// `plan_finalize`: the recorded calls become a revision; none at all cancels the plan.
pub(crate) fn finalize(
    plan: &Plan,
    authoring: Authoring<'_>,
    summary: &str,
    replies: Vec<Reply>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    bounded("the summary", summary, limits::SUMMARY_BYTES_MAX)?;
    let steps = plan.draft.as_ref().map_or(&[][..], |draft| &draft.steps);
    match (steps, &plan.current) {
        ([], None) => {
            let account = Account::Model { summary: "nothing was planned".into(), evidence: None };
            Ok(vec![ending_of(plan, Ended::Cancelled, account)])
        }
        ([], Some(head)) => Err(PlanRefusal::NothingNew { number: head.number }),
        (steps, _) => {
            let count = steps.len();
            let plain = format!("{count} recorded {}", if count == 1 { "call" } else { "calls" });
            let summary = summary.trim();
            let title = if summary.is_empty() { plain } else { title_of(summary) };
            let markdown = draft::collected(&title, summary, steps);
            bounded("the plan", &markdown, limits::PLAN_MARKDOWN_BYTES_MAX)?;
            let steps = steps.to_vec();
            let said =
                Authorship { author: Author::Model, replies: comments::answered(plan, replies)? };
            let written = Written { title, markdown, steps, brief: None, envelope: None };
            added(plan, authoring, written, said)
        }
    }
}

/// `plan_create`: the goal, once.
pub(crate) fn create(
    plan: &Plan,
    goal: &str,
    title: Option<&str>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    if let Some(goal) = working(plan).brief.goal {
        return Err(PlanRefusal::GoalIsSet { goal });
    }
    let goal = required_text("goal", goal, limits::METADATA_BYTES_MAX)?;
    let title =
        title.map(|title| required_text("title", title, limits::TITLE_BYTES_MAX)).transpose()?;
    Ok(vec![changed(DraftChange::GoalSet { goal, title })])
}

/// `plan_set_metadata`: what is given replaces what was there.
pub(crate) fn set_metadata(plan: &Plan, given: Metadata) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let mut brief = working(plan).brief;
    let parts = [
        ("assumptions", given.assumptions, &mut brief.assumptions),
        ("risks", given.risks, &mut brief.risks),
        ("verification", given.verification, &mut brief.verification),
        ("files", given.files, &mut brief.files),
    ];
    for (name, given, kept) in parts {
        let Some(entries) = given else { continue };
        if entries.len() > limits::METADATA_MAX {
            let (size, limit) = (entries.len(), limits::METADATA_MAX);
            return Err(PlanRefusal::TooLong { what: format!("the list of {name}"), size, limit });
        }
        let entry = |entry: &String| required_text(name, entry, limits::METADATA_BYTES_MAX);
        *kept = entries.iter().map(entry).collect::<Result<_, _>>()?;
    }
    Ok(vec![changed(DraftChange::MetadataSet { brief })])
}

/// What `plan_set_metadata` may set.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) assumptions: Option<Vec<String>>,
    pub(crate) risks: Option<Vec<String>>,
    pub(crate) verification: Option<Vec<String>>,
    pub(crate) files: Option<Vec<String>>,
}

/// `plan_add_step`: one more task at the end.
pub(crate) fn add_step(
    plan: &Plan,
    authoring: Authoring<'_>,
    title: &str,
    instructions: &str,
    profile: &str,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let draft = working(plan);
    room_for_one(draft.steps.len())?;
    let work = task(authoring, title, instructions, profile)?;
    let number = draft.next_number(plan.numbered);
    Ok(vec![changed(DraftChange::StepAdded { step: PlanStep { number, work } })])
}

/// `plan_update_step`: what is given replaces what was there.
pub(crate) fn update_step(
    plan: &Plan,
    authoring: Authoring<'_>,
    number: u32,
    title: Option<&str>,
    instructions: Option<&str>,
    profile: Option<&str>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    let draft = working(plan);
    let StepWork::Task { title: old_title, instructions: old_instructions, profile: old_profile } =
        find(&draft, number)?
    else {
        return Err(no_such_step(&draft, number));
    };
    let work = task(
        authoring,
        title.unwrap_or(old_title),
        instructions.unwrap_or(old_instructions),
        profile.unwrap_or(old_profile),
    )?;
    Ok(vec![changed(DraftChange::StepUpdated { step: PlanStep { number, work } })])
}

/// `plan_remove_step`.
pub(crate) fn remove_step(plan: &Plan, number: u32) -> Result<Vec<PlanEvent>, PlanRefusal> {
    find(&working(plan), number)?;
    Ok(vec![changed(DraftChange::StepRemoved { step: number })])
}

/// `plan_submit`: the draft becomes a revision, if nothing is missing.
pub(crate) fn submit(
    plan: &Plan,
    authoring: Authoring<'_>,
    replies: Vec<Reply>,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    if let (None, Some(head)) = (&plan.draft, &plan.current) {
        return Err(PlanRefusal::NothingNew { number: head.number });
    }
    let draft = working(plan);
    let gaps = draft.gaps(&authoring.given.profiles);
    if !gaps.is_empty() {
        return Err(PlanRefusal::Gaps { gaps });
    }
    let markdown = draft.to_markdown();
    bounded("the plan", &markdown, limits::PLAN_MARKDOWN_BYTES_MAX)?;
    let title = title_of(draft.title().unwrap_or_default());
    let Draft { brief, steps } = draft;
    let (brief, envelope) = (Some(brief), None);
    let said = Authorship { author: Author::Model, replies: comments::answered(plan, replies)? };
    added(plan, authoring, Written { title, markdown, steps, brief, envelope }, said)
}

/// The draft as it would be changed now: the open one, or a copy of the current revision's.
pub(crate) fn working(plan: &Plan) -> Draft {
    plan.draft.clone().or_else(|| plan.basis.clone()).unwrap_or_default()
}

/// This turn may still write this plan.
pub(crate) fn writable(plan: &Plan, authoring: Authoring<'_>) -> Result<(), PlanRefusal> {
    let older = plan.approved_seq.is_some_and(|approved| authoring.turn_started < approved);
    if older { Err(PlanRefusal::TurnOlderThanApproval) } else { Ok(()) }
}

/// What a new revision says.
struct Written {
    title: String,
    markdown: String,
    steps: Vec<PlanStep>,
    brief: Option<Brief>,
    envelope: Option<Declared>,
}

/// Who says it, and what they say to the comments.
struct Authorship {
    author: Author,
    replies: Vec<Reply>,
}

/// The next revision, or a successor if the plan was already decided.
fn added(
    plan: &Plan,
    authoring: Authoring<'_>,
    written: Written,
    authorship: Authorship,
) -> Result<Vec<PlanEvent>, PlanRefusal> {
    writable(plan, authoring)?;
    let Written { title, markdown, steps, brief, envelope } = written;
    let (strategy, Authorship { author, replies }) = (plan.strategy, authorship);
    let revision = |plan: PlanId, number: u32| {
        let revision = Revision { plan, number, strategy, title, markdown, steps, brief, envelope };
        let digest = revision.digest(authoring.session);
        let revision = Box::new(revision);
        PlanEvent::RevisionAdded { revision, digest, author, replies, waits: None }
    };
    match &plan.status {
        PlanStatus::Collecting | PlanStatus::Ready => {
            let number = plan.current.as_ref().map_or(0, |head| head.number) + 1;
            Ok(vec![revision(plan.id, number)])
        }
        PlanStatus::Approved(_) | PlanStatus::Executing(..) | PlanStatus::Failed(_) => {
            let successor = authoring.given.fresh;
            let started = PlanEvent::PlanStarted {
                plan: successor,
                strategy,
                predecessor: Some(plan.id),
                reads: plan.reads,
                carried: done(plan),
                claimed: claimed(plan),
                by: None,
            };
            Ok(vec![
                ending_of(plan, Ended::Superseded, Account::Successor { plan: successor }),
                started,
                revision(successor, 1),
            ])
        }
    }
}

/// The work that is done, by key: a successor need not do it again.
fn done(plan: &Plan) -> Vec<Digest> {
    let ends: &BTreeMap<u32, StepEnd> = &plan.outcomes;
    let is_done = |step: &&StepHead| {
        matches!(
            ends.get(&step.number),
            Some(StepEnd::Done | StepEnd::Reported { .. } | StepEnd::Carried { .. })
        )
    };
    plan.steps().iter().filter(is_done).map(|step| step.key).collect()
}

/// The part of it for which no call was observed: somebody said so, here or in a plan before.
fn claimed(plan: &Plan) -> Vec<Digest> {
    let is_claimed = |step: &&StepHead| match plan.outcomes.get(&step.number) {
        Some(StepEnd::Carried { .. }) => plan.claimed.contains(&step.key),
        Some(StepEnd::Done | StepEnd::Reported { .. }) => {
            !plan.steps_with_calls.contains(&step.number)
        }
        Some(StepEnd::Failed { .. } | StepEnd::Skipped { .. }) | None => false,
    };
    plan.steps().iter().filter(is_claimed).map(|step| step.key).collect()
}

fn task(
    authoring: Authoring<'_>,
    title: &str,
    instructions: &str,
    profile: &str,
) -> Result<StepWork, PlanRefusal> {
    let title = required_text("title", title, limits::TITLE_BYTES_MAX)?;
    let instructions = required_text("instructions", instructions, limits::STEP_BYTES_MAX)?;
    if !authoring.given.profiles.contains(profile) {
        let known = authoring.given.profiles.iter().cloned().collect();
        return Err(PlanRefusal::ProfileUnknown { profile: profile.into(), known });
    }
    Ok(StepWork::Task { title, instructions, profile: profile.into() })
}

fn find(draft: &Draft, number: u32) -> Result<&StepWork, PlanRefusal> {
    let found = draft.steps.iter().find(|step| step.number == number);
    found.map(|step| &step.work).ok_or_else(|| no_such_step(draft, number))
}

fn no_such_step(draft: &Draft, step: u32) -> PlanRefusal {
    let heads: Vec<_> = draft.steps.iter().map(PlanStep::head).collect();
    PlanRefusal::NoSuchStep { step, open: crate::rules::plan::bounds::numbers(heads.iter()) }
}

/// The number that one more step has, if there is room for it.
fn room_for_one(have: usize) -> Result<u32, PlanRefusal> {
    let limit = limits::STEPS_MAX;
    if have < limit {
        Ok(have as u32 + 1)
    } else {
        Err(PlanRefusal::TooLong { what: "the list of steps".into(), size: have + 1, limit })
    }
}

/// A text that says something and is not too long.
fn required_text(what: &str, text: &str, limit: usize) -> Result<String, PlanRefusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(PlanRefusal::EmptyText { what: what.into() });
    }
    bounded(what, text, limit)?;
    Ok(text.to_owned())
}

fn changed(change: DraftChange) -> PlanEvent {
    PlanEvent::DraftChanged { change }
}

/// The document without its front matter.
fn after_front_matter(markdown: &str) -> &str {
    let rest = markdown.strip_prefix("---\n");
    rest.and_then(|rest| rest.split_once("\n---\n")).map_or(markdown, |(_, body)| body)
}

/// The first heading, or the first line, cut to the longest title.
fn title_of(markdown: &str) -> String {
    let body = after_front_matter(markdown);
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty());
    let line =
        lines().find(|line| line.starts_with('#')).or_else(|| lines().next()).unwrap_or_default();
    let title = line.trim_start_matches('#').trim();
    let mut end = title.len().min(limits::TITLE_BYTES_MAX);
    while !title.is_char_boundary(end) {
        end -= 1;
    }
    if title.is_empty() { "Plan".into() } else { title[..end].to_owned() }
}
